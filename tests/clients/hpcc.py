#!/usr/bin/env python3
"""HPC Challenge, from Debian's sources, verifies itself: as processes, and as ranks that share them.

Usage: hpcc.py BUILD. Sources and OpenBLAS come from the package archives that apt is configured for
(at run time, with lists and packages in our cache: the machine is not changed).
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import cache

INPUT = pathlib.Path(__file__).resolve().parent / "hpcc" / "hpccinf.txt"
FOLDER = cache.CACHE / "hpcc"
LIBRARIES = ["libopenblas-serial-dev", "libopenblas0-serial", "libgfortran5", "libquadmath0"]
SETTINGS = """#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{folder}/sources";
Dir::State::lists "{folder}/lists";
Dir::Cache "{folder}/archives";
APT::Sandbox::User "root";
"""


def source_entries():
    """The machine's own entries of binary packages, changed to name sources: {file name: text}."""
    entries = {}
    folder = pathlib.Path("/etc/apt")
    for file in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]:
        if file.suffix not in (".list", ".sources") or not file.is_file():
            continue
        text = file.read_text()
        if file.suffix == ".sources":
            text = re.sub(r"(?m)^Types:.*", "Types: deb-src", text)
        else:
            text = "\n".join(re.sub(r"^deb\s", "deb-src ", line) for line in text.splitlines()
                             if line.startswith("deb ")) + "\n"
        entries[file.name] = text
    return entries


def obtain_sources():
    found = sorted(FOLDER.glob("hpcc_*.orig.tar.*"))
    if found:
        return found[-1]
    for name in ("sources", "lists/partial", "archives/archives/partial"):
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    for name, text in source_entries().items():
        (FOLDER / "sources" / name).write_text(text)
    settings = FOLDER / "apt.conf"
    settings.write_text(SETTINGS.format(folder=FOLDER))
    cache.output_of(["apt-get", "-c", settings, "-q", "update"], 120)  # Some archives may fail.
    cache.obtain("hpcc", ["apt-get", "-c", settings, "-q", "source", "--tar-only", "hpcc"],
                 cwd=FOLDER)
    found = sorted(FOLDER.glob("hpcc_*.orig.tar.*"))
    return found[-1] if found else cache.skip("hpcc is not among the sources")


def obtain_blas():
    """The folders of OpenBLAS and of what it needs."""
    root = FOLDER / "blas"
    if not root.exists():
        packages = FOLDER / "packages"
        packages.mkdir(parents=True, exist_ok=True)
        cache.obtain("OpenBLAS", ["apt-get", "-q", "download", *LIBRARIES], cwd=packages)
        for package in packages.glob("*.deb"):
            cache.obtain("OpenBLAS", ["dpkg", "-x", package, root])
    library = next(root.glob("usr/lib/*/openblas-serial/libopenblas.so"), None)
    if library is None:
        cache.skip("the packages of OpenBLAS have another form here")
    return library.parent, library.parent.parent


def build_hpcc(build, blas, others, scratch):
    cache.build("hpcc", ["tar", "xf", obtain_sources(), "-C", scratch])
    sources = next(scratch.glob("hpcc-*"))
    makefile = (sources / "hpl/setup/Make.Linux_PII_CBLAS").read_text()
    (sources / "hpl/Make.sterna").write_text(makefile)
    compiler = build / "bin" / "mpicc"
    # Without HPL's own types: they are made with functions that MPI removed in 2012.
    cache.build("hpcc", [
        "make", "-j2", "arch=sterna", "ARCH=sterna", f"CC={compiler}", f"LINKER={compiler}",
        "MPinc=", "MPlib=", f"LAlib=-L{blas} -Wl,-rpath-link,{others} -lopenblas",
        "CCFLAGS=$(HPL_DEFS) -DHPL_NO_MPI_DATATYPE -O2 -w"], cwd=sources)
    return sources / "hpcc"


def check(name, words, folder, environment):
    report = folder / "hpccoutf.txt"
    report.unlink(missing_ok=True)
    code, text = cache.output_of(words, 120, cwd=folder, env=environment)
    found = report.read_text(errors="replace") if report.exists() else ""
    passed = len(re.findall(r"\bPASSED\b", found))
    bad = [line for line in found.splitlines()
           if re.search(r"\bFAILED\b|[1-9]\d* tests completed and failed", line)]
    is_good = code == 0 and "Success=1" in found and passed > 0 and not bad
    print(f"hpcc {name}: {'passed' if is_good else f'FAILED, exit code {code}'}, "
          f"{passed} results verified", flush=True)
    if not is_good:
        print("\n".join(bad), text[-2000:], found[-2000:], sep="\n")
    return is_good


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for tool in ("apt-get", "dpkg", "make"):
        if subprocess.run(["sh", "-c", f"command -v {tool}"], stdout=subprocess.DEVNULL,
                          check=False).returncode != 0:
            cache.skip(f"{tool} is not here")
    blas, others = obtain_blas()
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{blas}:{others}",
                   "OPENBLAS_NUM_THREADS": "1"}
    sterna, mpiexec = build / "bin" / "sterna", build / "bin" / "mpiexec"
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        program = build_hpcc(build, blas, others, scratch)
        (scratch / "hpccinf.txt").write_text(INPUT.read_text())
        results = [
            check("-n 4, processes", [mpiexec, "-n", 4, program], scratch, environment),
            check("-n 4, ranks of two processes",
                  [sterna, "run", "-n", 4, "--nodes", 2, program], scratch, environment),
        ]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
