#!/usr/bin/env python3
"""Programs compiled by another MPI of the standard ABI run on ours unchanged, and the reverse.

Usage: abi.py BUILD. The other one is MPICH from PyPI, with its compiler mpicc_abi.
"""

import os
import pathlib
import sys

import cache

SOURCE = pathlib.Path(__file__).resolve().parent / "abi" / "ring.c"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    tools = cache.python_with("mpich")
    theirs, ours = cache.CACHE / "abi_theirs", cache.CACHE / "abi_ours"
    cache.build("a program", [tools / "mpicc_abi", SOURCE, "-o", theirs])
    cache.build("a program", [build / "bin" / "mpicc", SOURCE, "-o", ours])
    on_theirs = {**os.environ, "LD_LIBRARY_PATH": str(tools.parent / "lib")}
    sterna, mpiexec = build / "bin" / "sterna", build / "bin" / "mpiexec"
    results = []
    for name, words, environment, library in (
        ("theirs on ours, as processes", [mpiexec, "-n", 3, theirs], None, "Sterna"),
        ("theirs on ours, as processes over tcp",
         [mpiexec, "-n", 3, "--drivers", "tcp", theirs], None, "Sterna"),
        ("theirs on ours, as ranks of one process",
         [sterna, "run", "-n", 4, "--nodes", 1, theirs], None, "Sterna"),
        ("theirs on ours, as ranks of two processes",
         [sterna, "run", "-n", 4, "--nodes", 2, theirs], None, "Sterna"),
        ("ours on theirs", [tools / "mpiexec", "-n", 3, ours], on_theirs, "MPICH"),
    ):
        code, text = cache.output_of(words, 60, env=environment)
        count = words[words.index("-n") + 1]
        is_good = code == 0 and f"{count} ranks of {library}: no errors" in text
        print(f"{name}: {'passed' if is_good else f'FAILED, exit code {code}'}\n"
              f"{'' if is_good else text[-2000:]}", end="")
        results.append(is_good)
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
