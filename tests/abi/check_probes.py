#!/usr/bin/env python3
"""Compares the USDT probes of the library with the list in this file and with docs/guide/looking.md.

usage: check_probes.py LIBRARY GUIDE

With --absent instead: skipped (77), as it was built without sys/sdt.h and has none.
"""

import re
import subprocess
import sys

ARGUMENTS = {
    "thread_create": 1, "thread_block": 1, "thread_wake": 1, "thread_switch": 2, "thread_preempt": 2,
    "thread_exit": 1, "message_send": 4, "message_receive": 4, "rank_leave": 2, "rank_arrive": 2,
}
NOTE = re.compile(r"Provider: (\S+)\s+Name: (\S+)\s+Location: \S+ Base: \S+ Semaphore: (\S+)\s+Arguments: ?(.*)")


def probes(library):
    """{name: numbers of arguments that its places have}, of our provider."""
    notes = subprocess.run(["readelf", "--notes", "--wide", library], text=True, capture_output=True, check=True).stdout
    found = {}
    for provider, name, semaphore, arguments in NOTE.findall(notes):
        if provider == "sterna":
            found.setdefault(name, set()).add(arguments.count("@"))
            assert int(semaphore, 16) == 0, f"{name} has a semaphore: then a probe is more than a nop"
    return found


def main(library, guide):
    found = probes(library)
    complaints = [f"{name}: no such probe in the library" for name in ARGUMENTS.keys() - found.keys()]
    for name, counts in sorted(found.items()):
        if counts != {ARGUMENTS.get(name)}:
            complaints.append(f"{name}: the library has it with {sorted(counts)} arguments, the list in {__file__} "
                              f"says {ARGUMENTS.get(name, 'nothing of it')}")
    text = open(guide, encoding="utf-8").read()
    complaints += [f"{name}: not in {guide}" for name in ARGUMENTS if f"`{name}`" not in text]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] == "--absent":
        print("sys/sdt.h was not there when this was built (package systemtap-sdt-dev): it has no probes")
        sys.exit(77)
    sys.exit(main(*sys.argv[1:]))
