"""Installs to a new folder, moves it, and builds and runs an example in every way a user may."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CMAKE = """cmake_minimum_required(VERSION 3.21)
project(user C)
find_package(Sterna REQUIRED)
add_executable(sum {source})
target_link_libraries(sum PRIVATE Sterna::mpi)
"""
FIND_MPI = """cmake_minimum_required(VERSION 3.21)
project(user C)
find_package(MPI REQUIRED COMPONENTS C)
add_executable(sum {source})
target_link_libraries(sum PRIVATE MPI::MPI_C)
"""


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}\nfailed with {done.returncode}")
    return done.stdout


def runs(prefix, program):
    """As processes and as mobile ranks, whatever way the program was built."""
    assert run(prefix / "bin/mpiexec", "-n", 3, program) == "3 ranks, sum 6\n"
    assert run(prefix / "bin/sterna", "run", "-n", 4, "--nodes", 2, program) == "4 ranks, sum 10\n"


def main(build):
    source = ROOT / "examples" / "sum.c"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run("cmake", "--install", build, "--prefix", folder / "first")
        prefix = folder / "a place with blanks"
        shutil.move(folder / "first", prefix)
        environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}

        run(prefix / "bin/mpicc", source, "-o", folder / "direct")
        runs(prefix, folder / "direct")
        run(prefix / "bin/mpicc", "-c", source, "-o", folder / "sum.o")
        run(prefix / "bin/mpicc", folder / "sum.o", "-o", folder / "linked")
        runs(prefix, folder / "linked")
        run(prefix / "bin/mpicc", "-shared", "-fPIC", source, "-o", folder / "libsum.so")
        cpp = folder / "sum.cc"
        cpp.write_text(source.read_text())
        run(prefix / "bin/mpicxx", cpp, "-o", folder / "cpp")
        runs(prefix, folder / "cpp")
        assert "-lmpi_abi" in run(prefix / "bin/mpicc", "-show", source)
        assert "-lmpi_abi" not in run(prefix / "bin/mpicc", "-compile-info")

        if shutil.which("pkg-config"):
            plain = folder / "plain"  # Flags with blanks are more than the shell can carry.
            plain.symlink_to(prefix)
            environment["PKG_CONFIG_PATH"] = str(plain / "lib/pkgconfig")
            run("sh", "-c", f"cc {source} $(pkg-config --cflags --libs mpi) -o {folder}/pkg",
                env=environment)
            runs(prefix, folder / "pkg")

        for kind, text, option in (
            ("package", CMAKE, f"-DCMAKE_PREFIX_PATH={prefix}"),
            ("find_mpi", FIND_MPI, f"-DMPI_C_COMPILER={prefix}/bin/mpicc"),
        ):
            user = folder / kind
            user.mkdir()
            (user / "CMakeLists.txt").write_text(text.format(source=source))
            run("cmake", "-S", user, "-B", user / "build", option)
            run("cmake", "--build", user / "build")
            runs(prefix, user / "build/sum")
        assert "Sterna" in run(prefix / "bin/sterna", "info")
        for file in ("include/mpi.h", "share/doc/sterna/README.md", "share/sterna/examples/sum.c",
                     "share/man/man1/sterna-run.1"):
            assert (prefix / file).exists(), file


if __name__ == "__main__":
    main(sys.argv[1])
