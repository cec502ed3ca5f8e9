"""Runs the examples of the guides: lines of docs/guide/*.md and docs/extending/*.md that begin with `$`.

What follows two spaces is a remark. In a folder with the examples, sources and programs; none may fail.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root, bin_folder, examples = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}


def commands():
    """(page, number of the line, command)."""
    for page in sorted([*(root / "docs/guide").glob("*.md"), *(root / "docs/extending").glob("*.md")]):
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if found := re.match(r"    \$ (.*)", line):
                yield page.name, number, re.split(r" {2,}", found[1])[0]


def run(command, folder):
    """Exit code and output."""
    try:
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, timeout=240,
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return "none within 240 s", ""


failed = 0
count = 0
with tempfile.TemporaryDirectory() as folder:
    shutil.copytree(root / "examples", folder, dirs_exist_ok=True)
    shutil.copytree(examples, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("CMakeFiles"))
    for page, number, command in commands():
        if command.startswith("gfortran") and shutil.which("gfortran") is None:
            (pathlib.Path(folder) / "bubbles").symlink_to(shutil.which("true"))  # Not on this machine.
            continue
        count += 1
        code, output = run(command, folder)
        if code != 0:
            failed += 1
            print(f"{page}:{number}: {command}\nexit code {code}\n{output}")
print(f"{count} commands, {failed} failed")
sys.exit(1 if failed != 0 or count == 0 else 0)
