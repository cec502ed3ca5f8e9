"""Threads under valgrind: it knows their stacks, and finds no errors.

Exit code 77: there is no valgrind, or its header was absent when the library was built.
"""

import os
import shutil
import subprocess
import sys

PROGRAM = os.environ["STERNA_VALGRIND_PROGRAM"]
SECONDS = 500


def main():
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("skipped: valgrind is not installed")
        sys.exit(77)
    done = subprocess.run([valgrind, "--error-exitcode=99", "--fair-sched=try", PROGRAM], text=True,
                          errors="replace", capture_output=True, timeout=SECONDS)
    if done.returncode == 77:
        print("skipped: the library was built without the header of valgrind")
        sys.exit(77)
    faults = [line for line in done.stderr.splitlines() if "switching stacks" in line]
    if done.returncode != 0 or "No Errors" not in done.stdout or "ERROR SUMMARY: 0 errors" not in done.stderr or faults:
        sys.exit(f"not true: valgrind has nothing to say\nends with {done.returncode}\n{done.stdout}\n"
                 f"{done.stderr[-4000:]}")


if __name__ == "__main__":
    main()
