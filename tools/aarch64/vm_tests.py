#!/usr/bin/env python3
"""Runs the tests of a build for AArch64 in a virtual machine, on a kernel of that processor:

    tools/aarch64/vm_tests.py --kernel IMAGE --busybox FILE --sysroot FOLDER -R '^memory|^mpi'

The machine (qemu-system-aarch64) has no disk: its memory holds a static busybox, the libraries that
the tests need, taken from the sysroot, and the programs of the build, at their paths. What ctest
would run is run there, as far as it is built and needs no interpreter; the rest is counted. The
tests of a GoogleTest program run in one process.
"""

import argparse
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root LD_LIBRARY_PATH=/lib/aarch64-linux-gnu
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts; mount -t tmpfs tmp /dev/shm; mount -t tmpfs tmp /tmp
mount -t devpts pts /dev/pts
ip link set lo up; hostname aarch64; echo '127.0.0.1 localhost aarch64' > /etc/hosts
echo 'root:x:0:0::/root:/bin/sh' > /etc/passwd
. /tests.sh
echo "vm: end"
poweroff -f
"""

# PASS and FAIL: what the words of a test must, and must not have. Without PASS: its code is 0.
HARNESS = """
count=0 bad=0
run() {  # NAME SECONDS PASS FAIL COMMAND...
  name=$1 seconds=$2 pass=$3 fail=$4; shift 4
  timeout -s KILL "$seconds" "$@" > /tmp/output 2>&1 < /dev/null; code=$?; good=1
  if [ -n "$pass" ]; then grep -qE "$pass" /tmp/output || good=0
  elif [ $code != 0 ] && [ $code != 77 ]; then good=0; fi
  if [ -n "$fail" ] && grep -qE "$fail" /tmp/output; then good=0; fi
  count=$((count + 1))
  if [ $good = 1 ]; then echo "vm: ok $name $(tail -n 1 /tmp/output | cut -c 1-80)"
  else
    bad=$((bad + 1)); echo "vm: FAILED $name (code $code)"
    grep -B 12 '  FAILED  .*ms)' /tmp/output | head -n 100
    tail -n 25 /tmp/output
  fi
}
"""


def output_of(command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def properties_of(test):
    return {one["name"]: one["value"] for one in test.get("properties", [])}


def tests_of(build, wanted):
    """(name, seconds, pass, fail, environment, command); and how many cannot run there."""
    text = output_of(["ctest", "--show-only=json-v1"], cwd=build)
    found, left_out, whole = [], 0, set()
    for test in json.loads(text)["tests"]:
        command = test.get("command", [])
        while command and not command[0].startswith(str(build)):  # The emulator and its options.
            command = command[1:]
        if not wanted.search(test["name"]):
            continue
        if not command or any(word.endswith(".py") for word in test["command"]):
            left_out += 1
            continue
        properties = properties_of(test)
        name = test["name"]
        if any(word.startswith("--gtest_filter=") for word in command):
            name = pathlib.Path(command[0]).name
            if name in whole:
                continue
            whole.add(name)
            command = command[:1]
        seconds = 900 if name in whole else int(properties.get("TIMEOUT", 240))
        found.append((name, seconds, "|".join(properties.get("PASS_REGULAR_EXPRESSION", [])),
                      "|".join(properties.get("FAIL_REGULAR_EXPRESSION", [])),
                      properties.get("ENVIRONMENT", []), command))
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


def fill(image, options, build, tests):
    for folder in ("bin", "dev", "etc", "lib/aarch64-linux-gnu", "proc", "root", "sys", "tmp"):
        (image / folder).mkdir(parents=True)
    shutil.copy(options.busybox, image / "bin/busybox")
    (image / "bin/sh").symlink_to("busybox")
    programs = []
    for folder in ("bin", "lib", "tests", "src", "examples"):
        for path in (build / folder).rglob("*"):
            if path.is_file() and path.stat().st_mode & 0o111 and is_program(path):
                target = image / path.relative_to("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target, follow_symlinks=False)
                programs.append(path)
    libraries = image / "lib/aarch64-linux-gnu"
    copy_libraries(programs, options.sysroot, libraries)
    (image / "lib/ld-linux-aarch64.so.1").symlink_to("aarch64-linux-gnu/ld-linux-aarch64.so.1")
    corpus = image / (ROOT / "tests/corpus").relative_to("/")
    shutil.copytree(ROOT / "tests/corpus", corpus)
    script = HARNESS
    for name, seconds, wanted, unwanted, environment, command in tests:
        words = [name, str(seconds * options.slower), wanted, unwanted]
        words += ["env", *environment, *command]
        script += "run " + " ".join(shlex.quote(word) for word in words) + "\n"
    script += 'echo "vm: $count tests, $bad failed"\n'
    (image / "tests.sh").write_text(script)
    (image / "init").write_text(INIT)
    (image / "init").chmod(0o755)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", required=True, help="an Image of Linux for AArch64")
    parser.add_argument("--busybox", required=True, help="a static busybox of AArch64")
    parser.add_argument("--sysroot", required=True, type=pathlib.Path)
    parser.add_argument("--build", default=ROOT / "build/aarch64", type=pathlib.Path)
    parser.add_argument("--cpu", default="max,pauth-impdef=on,sve=off")
    parser.add_argument("--processors", default="2")
    parser.add_argument("--memory", default="6G")
    parser.add_argument("--slower", default=4, type=int, help="factor of the tests' time limits")
    parser.add_argument("-R", default="", metavar="REGEX", help="the tests with such names")
    options = parser.parse_args()
    build = options.build.resolve()
    tests, left_out = tests_of(build, re.compile(options.R))
    with tempfile.TemporaryDirectory() as folder:
        image = pathlib.Path(folder) / "image"
        fill(image, options, build, tests)
        archive = shlex.quote(f"{folder}/image.cpio")
        subprocess.run(f"find . | cpio -o -H newc --quiet > {archive}", shell=True, cwd=image,
                       check=True)
        machine = ["qemu-system-aarch64", "-M", "virt", "-cpu", options.cpu,
                   "-smp", options.processors, "-m", options.memory, "-nographic", "-no-reboot",
                   "-nic", "none", "-kernel", options.kernel, "-initrd", f"{folder}/image.cpio",
                   "-append", "console=ttyAMA0 quiet rdinit=/init"]
        running = subprocess.Popen(machine, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   text=True, errors="replace")
        last = ""
        for line in running.stdout:
            print(line, end="", flush=True)
            last = line if re.match(r"vm: \d+ tests", line) else last
    print(f"{left_out} more are not built or need an interpreter, and were not run")
    sys.exit(0 if re.match(r"vm: \d+ tests, 0 failed", last) else 1)


if __name__ == "__main__":
    main()
