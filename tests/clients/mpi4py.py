#!/usr/bin/env python3
"""mpi4py, built from its source distribution with our mpicc, passes its own tests.

Usage: mpi4py.py BUILD [--ways DRIVER:COUNT...] [--only MODULE...] [--without PATTERN...]: with -n
1, 2, 4 over shm and over tcp; `--ways` without any builds it only. Tests of functions that Sterna does
not have are listed, with the reason, in mpi4py/skipped.txt.
"""

import argparse
import os
import pathlib
import re
import sys
import tarfile
import time

import cache

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 420  # For a configuration.


def skip_list():
    """Patterns of whole modules, and of single tests, from skipped.txt."""
    modules, tests = [], []
    for line in (HERE / "mpi4py" / "skipped.txt").read_text().splitlines():
        pattern = line.partition("#")[0].strip()
        if pattern:
            (tests if "." in pattern or "*" in pattern else modules).append(pattern)
    return modules, tests


def sources_of(archive):
    return cache.CACHE / archive.name.removesuffix(".tar.gz")


def installed_stamp(archive):
    return cache.CACHE / f"{sources_of(archive).name}.installed"


def prepare(build):
    """The folder of the unpacked sources and the interpreter that has mpi4py."""
    found = sorted(cache.CACHE.glob("mpi4py-*.tar.gz"))
    if found and installed_stamp(found[-1]).exists():
        return sources_of(found[-1]), cache.CACHE / "venv" / "bin" / "python"
    tools = cache.python_with("setuptools", "wheel", "cython", "numpy")
    if not found:
        cache.obtain("mpi4py", [tools / "pip", "download", "-q", "--disable-pip-version-check",
                                "--no-deps", "--no-binary", "mpi4py", "mpi4py", "-d", cache.CACHE])
        found = sorted(cache.CACHE.glob("mpi4py-*.tar.gz"))
    sources = sources_of(found[-1])
    if not sources.exists():
        with tarfile.open(found[-1]) as archive:
            archive.extractall(cache.CACHE)
    # The same library's ABI: built once, by whichever build tree was first, for all of them.
    environment = {**os.environ, "MPICC": str(build / "bin" / "mpicc"), "CFLAGS": "-O1 -g0"}
    cache.build("mpi4py", [tools / "pip", "install", "-q", "--force-reinstall", "--no-deps",
                           "--no-build-isolation", "--no-cache-dir",
                           sources], env=environment)
    installed_stamp(found[-1]).write_text("built with our mpicc\n")
    return sources, tools / "python"


def failures_of(text):
    """Names of tests that failed, from the reports at the end of each rank."""
    return sorted(set(re.findall(r"^(?:ERROR|FAIL): (\S+ \(\S+\))", text, re.MULTILINE)))


def run(build, sources, python, count, drivers, only, without):
    modules, tests = skip_list()
    words = [build / "bin" / "mpiexec", "-n", count, "--drivers", drivers, python,
             sources / "test" / "main.py", "--no-builddir", "-v"]
    for module in only:
        words += ["-i", module]
    for module in modules:
        words += ["-e", module]
    for test in tests + without:
        words += ["-x", test]
    begin = time.monotonic()
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    environment["LD_LIBRARY_PATH"] = str(build / "lib")
    code, text = cache.output_of(words, SECONDS, env=environment)
    seconds = time.monotonic() - begin
    ran = [int(number) for number in re.findall(r"^Ran (\d+) tests", text, re.MULTILINE)]
    skipped = [int(number) for number in re.findall(r"^OK.*skipped=(\d+)", text, re.MULTILINE)]
    failed = failures_of(text)
    is_good = code == 0 and not failed and len(ran) == count and min(ran) > 0
    print(f"mpi4py -n {count} {drivers}: {'passed' if is_good else 'FAILED'}, "
          f"{ran[0] if ran else 0} tests a rank, {max(skipped, default=0)} skipped by mpi4py, "
          f"{seconds:.0f} s", flush=True)
    if not is_good:
        print(f"exit code {code}, {len(ran)} of {count} ranks reported")
        print("\n".join(failed) if failed else "")
        print(text[-6000:])
    return is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--ways", nargs="*", default=[f"{drivers}:{count}" for drivers in ("shm", "tcp")
                                                      for count in (1, 2, 4)],
                        help="drivers and numbers of ranks")
    parser.add_argument("--only", nargs="*", default=[], help="these modules")
    parser.add_argument("--without", nargs="*", default=[], help="patterns of more tests to leave out")
    options = parser.parse_args()
    build = options.build.resolve()
    sources, python = prepare(build)
    ways = [(int(count), drivers) for drivers, _, count in (way.partition(":") for way in options.ways)]
    results = [run(build, sources, python, *way, options.only, options.without) for way in ways]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
