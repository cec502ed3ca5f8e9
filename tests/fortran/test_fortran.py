"""Programs in Fortran on threads and bubbles: compiled with the module that is installed, then run.

Arguments: the folder with bin/ and lib/. Exit code 77: there is no Fortran compiler ($FC, gfortran).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = (
    (ROOT / "tests/fortran/threads.f90", "No Errors"),
    (ROOT / "examples/bubbles.f90", "sum  8002000."),
)
SECONDS = 600


def check_constants():
    """The numbers of the module are those of the C headers."""
    module = (ROOT / "include/sterna/sterna.f90").read_text()
    headers = "".join((ROOT / f"include/sterna/{name}.h").read_text() for name in ("status", "thread"))
    numbers = dict(re.findall(r"(?:#define )?(STERNA_\w+)(?: =)? (\d+)u?\b", headers))
    mine = re.findall(r"(STERNA_\w+) = (\d+)", module)
    assert len(mine) >= 20, mine
    for name, number in mine:
        if numbers.get(name) != number:
            sys.exit(f"not true: {name} is {number} in sterna.f90, {numbers.get(name)} in the headers")


def run(words, **more):
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=SECONDS, **more)
    if done.returncode != 0:
        sys.exit(f"not true: {' '.join(map(str, words))}\n{done.stdout}\nends with {done.returncode}")
    return done.stdout


def main(tree):
    check_constants()
    compiler = shutil.which(os.environ.get("FC", "gfortran"))
    if compiler is None:
        print("skipped: no Fortran compiler: neither $FC nor gfortran is there")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        for source, expected in PROGRAMS:
            program = pathlib.Path(folder) / source.stem
            run([compiler, "-std=f2008", "-Wall", "-Wextra", "-Werror", "-Wno-unused-dummy-argument",
                 "-frecursive", "-O2", ROOT / "include/sterna/sterna.f90", source, "-o", program,
                 f"-L{tree}/lib", "-lsterna", f"-Wl,-rpath,{tree}/lib"], cwd=folder)
            for command in ([program], [f"{tree}/bin/sterna", "run", "-n", "2", "--timeout", "200s",
                                        program]):
                text = run(command)
                if expected not in text:
                    sys.exit(f"not true: {command} says '{expected}'\n{text}")


if __name__ == "__main__":
    main(sys.argv[1])
