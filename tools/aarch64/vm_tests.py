#!/usr/bin/env python3
"""Runs the tests of a build for AArch64 in a virtual machine, on a kernel of that processor:

    tools/aarch64/vm_tests.py --sysroot FOLDER --minutes 30 -R '^(threads|mpi)[.]'

The machine (qemu-system-aarch64) has no disk: its memory holds a static busybox, the libraries that
the tests need, taken from the sysroot (tools/aarch64/sysroot makes one), and the programs of the
build, at their paths. What ctest would run is run there, as far as it is built. A GoogleTest program
runs a hundred tests in a process. What was cut short by its time goes on with --first.
Scripts are run if the sysroot has Python, unless they compile programs or judge the sources. At the
end it says how many passed, were skipped and failed, by the first word of their names.
"""

import argparse
import collections
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

TESTS_OF_PART = 100
ROOT = pathlib.Path(__file__).resolve().parents[2]

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin HOME=/root LD_LIBRARY_PATH=/lib/aarch64-linux-gnu
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts; mount -t tmpfs tmp /dev/shm; mount -t tmpfs tmp /tmp
mount -t devpts pts /dev/pts
ip link set lo up; hostname aarch64; echo '127.0.0.1 localhost aarch64' > /etc/hosts
echo 'root:x:0:0::/root:/bin/sh' > /etc/passwd
. /tests.sh
echo "vm: end"
poweroff -f
"""

# PASS, FAIL, SKIP: what the words of a test must, and must not have, and where it is skipped.
# Without PASS: its code is 0. Says: what became of it, name, passed, skipped, failed, seconds.
HARNESS = r"""
number() {  # WORD: of GoogleTest's last lines
  sed -n "s/^\[  $1 *\] \([0-9]*\) test.*/\1/p" /tmp/output | tail -n 1
}
run() {  # NAME SECONDS PASS FAIL SKIP COMMAND...
  name=$1 seconds=$2 pass=$3 fail=$4 skip=$5; shift 5
  start=$(date +%s)
  timeout -s KILL "$seconds" "$@" > /tmp/output 2>&1 < /dev/null; code=$?; good=1
  if [ -n "$pass" ]; then grep -qE "$pass" /tmp/output || good=0
  elif [ $code != 0 ] && [ $code != 77 ]; then good=0; fi
  if [ -n "$fail" ] && grep -qE "$fail" /tmp/output; then good=0; fi
  passed=$(number PASSED) skipped=$(number SKIPPED) failed=$(number FAILED)
  if [ -n "$skip" ] && grep -qE "$skip" /tmp/output; then code=77 good=1; fi
  if [ -n "$passed" ]; then [ $good = 1 ] || failed=${failed:-1}
  elif [ $good = 0 ]; then failed=1
  elif [ $code = 77 ]; then skipped=1
  else passed=1; fi
  word=ok; [ $good = 1 ] || word=FAILED
  echo "vm: $word $name ${passed:-0} ${skipped:-0} ${failed:-0} $(($(date +%s) - start))"
  if [ $good = 0 ]; then
    echo "code $code"
    grep -B 12 '  FAILED  .*ms)' /tmp/output | head -n 100
    tail -n 25 /tmp/output
  fi
}
"""

Test = collections.namedtuple("Test", "name seconds wanted unwanted skipped environment command")
Count = collections.namedtuple("Count", "passed skipped failed seconds")


def output_of(command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def script_of(command):
    return next((word for word in command if word.endswith(".py")), None)


def is_for_the_machine(script):
    """Not what compiles programs, or looks at sources and at what tools say of them."""
    if pathlib.Path(script).parent.name not in ("capi", "cluster", "launch", "threads"):
        return False
    return not re.search("mpicc|GridTest|valgrind", pathlib.Path(script).read_text())


def tests_of(build, wanted, has_python):
    """Those that can run there, and the names of the others."""
    text = output_of(["ctest", "--show-only=json-v1"], cwd=build)
    found, left_out, parts = [], [], {}
    for test in json.loads(text)["tests"]:
        name, command = test["name"], test.get("command", [])
        if not wanted.match(name):
            continue
        script = script_of(command)
        if script is not None and has_python and is_for_the_machine(script):
            command = ["/usr/bin/python3", *command[command.index(script):]]
        elif script is not None:
            command = []
        else:
            while command and not command[0].startswith(str(build)):  # The emulator and its options.
                command = command[1:]
        if not command or not all(pathlib.Path(word).exists() for word in command
                                  if word.startswith(str(build))):
            left_out.append(name)
            continue
        properties = {one["name"]: one["value"] for one in test.get("properties", [])}
        environment = properties.get("ENVIRONMENT", [])
        seconds = int(properties.get("TIMEOUT", 240))
        words = ["|".join(properties.get(f"{kind}_REGULAR_EXPRESSION", []))
                 for kind in ("PASS", "FAIL", "SKIP")]
        filters = [word for word in command if word.startswith("--gtest_filter=")]
        if filters:
            name, seconds, command = pathlib.Path(command[0]).name, 900, [command[0], filters[0]]
            part = parts.get(name)
            if part is not None and part.command[1].count(":") + 1 < TESTS_OF_PART:
                part.command[1] += ":" + filters[0].split("=", 1)[1]
                continue
        found.append(Test(name, seconds, *words, environment, command))
        if filters:
            parts[name] = found[-1]
    return found, left_out


def is_program(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def copy_libraries(programs, sysroot, to):
    places = [sysroot / folder / "aarch64-linux-gnu" for folder in ("lib", "usr/lib")]
    left, seen = list(programs), set()
    while left:
        text = output_of(["readelf", "-d", str(left.pop())])
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
            source = next((place / name for place in places if (place / name).exists()), None)
            if name not in seen and source is not None:
                seen.add(name)
                shutil.copy(source, to / name)
                left.append(to / name)


def copy_program(path, target):
    """Without what debuggers read: the memory of the machine is its disk."""
    target.parent.mkdir(parents=True, exist_ok=True)
    strip = shutil.which("aarch64-linux-gnu-strip")
    if strip is None or path.is_symlink():
        shutil.copy(path, target, follow_symlinks=False)
    else:
        subprocess.run([strip, "--strip-debug", "-o", target, path], check=True)


def python_of(sysroot):
    """None: it has none."""
    return next((path for path in sysroot.glob("usr/bin/python3.*") if path.name[-1].isdigit()),
                None)


def copy_python(image, python):
    """Returns its programs and modules of machine code."""
    modules = python.parents[1] / "lib" / python.name
    copies = image / "usr/lib" / python.name
    shutil.copytree(modules, copies, symlinks=True, ignore_dangling_symlinks=True,
                    ignore=shutil.ignore_patterns("__pycache__", "test", "idlelib", "tkinter"))
    (image / "usr/bin").mkdir(parents=True, exist_ok=True)
    shutil.copy(python, image / "usr/bin/python3")
    return [image / "usr/bin/python3", *copies.rglob("*.so")]


def fill(image, options, build, tests):
    for folder in ("bin", "dev", "etc", "lib/aarch64-linux-gnu", "proc", "root", "sys", "tmp"):
        (image / folder).mkdir(parents=True)
    shutil.copy(options.busybox, image / "bin/busybox")
    (image / "bin/sh").symlink_to("busybox")
    named = {word for test in tests for word in test.command}
    programs = []
    for folder in ("bin", "lib", "tests", "src", "examples"):
        for path in (build / folder).rglob("*"):
            if re.search("_(tests|fuzz|bench)$", path.name) and str(path) not in named:
                continue
            is_wanted = path.stat().st_mode & 0o111 or path.parent.name == "wrong"  # To be refused.
            if path.is_file() and is_wanted and is_program(path):
                copy_program(path, image / path.relative_to("/"))
                programs.append(path)
    if any(script_of(test.command) for test in tests):
        programs += copy_python(image, python_of(options.sysroot))
    libraries = image / "lib/aarch64-linux-gnu"
    copy_libraries(programs, options.sysroot, libraries)
    (image / "lib/ld-linux-aarch64.so.1").symlink_to("aarch64-linux-gnu/ld-linux-aarch64.so.1")
    for folder in ("tests", "tools"):
        shutil.copytree(ROOT / folder, image / (ROOT / folder).relative_to("/"),
                        ignore=shutil.ignore_patterns("__pycache__"))
    script = HARNESS
    for command in options.command:
        script += f"echo {shlex.quote('vm: $ ' + command)}\n(export PATH={build}/bin:$PATH; {command}) 2>&1\n"
    for test in tests:
        words = [test.name, str(test.seconds * options.slower), test.wanted, test.unwanted,
                 test.skipped, "env", *test.environment, *test.command]
        script += "run " + " ".join(shlex.quote(word) for word in words) + "\n"
    (image / "tests.sh").write_text(script)
    (image / "init").write_text(INIT)
    (image / "init").chmod(0o755)


def run_machine(options, archive):
    """(name, Count) of each test that came to its end; and whether all did."""
    machine = ["qemu-system-aarch64", "-M", "virt", "-cpu", options.cpu, "-smp", options.processors,
               "-m", options.memory, "-nographic", "-no-reboot", "-nic", "none",
               "-kernel", options.kernel, "-initrd", archive,
               "-append", "console=ttyAMA0 quiet rdinit=/init"]
    running = subprocess.Popen(machine, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               errors="replace")
    timer = threading.Timer(options.minutes * 60, running.kill)
    timer.start()
    counts, is_whole = [], False
    for line in running.stdout:
        print(line, end="", flush=True)
        match = re.match(r"vm: (?:ok|FAILED) (\S+) (\d+) (\d+) (\d+) (\d+)", line)
        if match:
            counts.append((match[1], Count(*map(int, match.groups()[1:]))))
        is_whole = is_whole or line.startswith("vm: end")
    timer.cancel()
    return counts, is_whole


def print_summary(counts):
    suites = collections.OrderedDict()
    for name, count in counts:
        suite = re.split(r"[.]|_tests$", name)[0]
        sums = suites.get(suite, Count(0, 0, 0, 0))
        suites[suite] = Count(*map(sum, zip(sums, count)))
    for suite, sums in suites.items():
        print(f"{suite:12}{sums.passed:6} passed{sums.skipped:6} skipped{sums.failed:6} failed"
              f"{sums.seconds:7} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", type=pathlib.Path,
                        help="an Image of Linux for AArch64; without: boot/vmlinuz-* of the sysroot")
    parser.add_argument("--sysroot", required=True, type=pathlib.Path,
                        help="a folder with libraries of AArch64, as for the build")
    parser.add_argument("--busybox", type=pathlib.Path,
                        help="a static one of AArch64; without: bin/busybox of the sysroot")
    parser.add_argument("--build", default=ROOT / "build/aarch64", type=pathlib.Path)
    parser.add_argument("--cpu", default="max,pauth-impdef=on,sve=off")
    parser.add_argument("--processors", default="2")
    parser.add_argument("--memory", default="6G")
    parser.add_argument("--minutes", default=60, type=float, help="the machine ends then (60)")
    parser.add_argument("--first", default=1, type=int, metavar="N",
                        help="begins with the N-th of its runs: one that was cut short says which")
    parser.add_argument("--slower", default=4, type=int, help="factor of the tests' time limits")
    parser.add_argument("--command", action="append", default=[], metavar="LINE",
                        help="runs that before the tests and shows what it says; may be repeated")
    parser.add_argument("-R", default="", metavar="REGEX", help="the tests with such names")
    parser.add_argument("-E", default="^$", metavar="REGEX", help="but not those")
    options = parser.parse_args()
    needed = {"qemu-system-aarch64": "qemu-system-arm", "cpio": "cpio"}
    missing = [package for program, package in needed.items() if shutil.which(program) is None]
    if missing:
        parser.error(f"missing; apt-get install {' '.join(missing)}")
    options.kernel = options.kernel or next(options.sysroot.glob("boot/vmlinuz-*"))
    options.busybox = options.busybox or options.sysroot / "bin/busybox"
    build = options.build.resolve()
    has_python = python_of(options.sysroot) is not None
    tests, left_out = tests_of(build, re.compile(f"(?!.*(?:{options.E}))(?=.*(?:{options.R}))"),
                               has_python)
    tests = tests[options.first - 1:]
    with tempfile.TemporaryDirectory() as folder:
        image = pathlib.Path(folder) / "image"
        fill(image, options, build, tests)
        archive = f"{folder}/image.cpio"
        subprocess.run(f"find . | cpio -o -H newc --quiet > {shlex.quote(archive)}", shell=True,
                       cwd=image, check=True)
        shutil.rmtree(image)
        counts, is_whole = run_machine(options, archive)
    print_summary(counts)
    if left_out:
        print(f"not built, or not for that machine: {len(left_out)}: {' '.join(left_out)[:2000]}")
    if not is_whole:
        print(f"it did not come to its end: {len(tests) - len(counts)} of {len(tests)} are missing; "
              f"go on with --first {options.first + len(counts)}")
    sys.exit(0 if is_whole and not any(count.failed for _, count in counts) else 1)


if __name__ == "__main__":
    main()
