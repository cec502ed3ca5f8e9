#!/usr/bin/env python3
"""Checks a protocol model with spin: in all its states the protocol keeps what the model asserts, each
of its transitions can happen, and the wrong protocols that its first comment names are found out.

    test_model.py MODEL.pml
"""
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def search(model, wrong):
    """What spin's checker says of all states; `wrong`: the macro of a wrong protocol, or None."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(model, f"{folder}/model.pml")
        run(["spin", "-a", *([f"-D{wrong}"] if wrong else []), "model.pml"], folder)
        run(["cc", "-O1", "-DSAFETY", "-DMEMLIM=1024", "-o", "pan", "pan.c"], folder)
        return run(["./pan", "-m100000"], folder)


def errors_in(said):
    count = int(re.search(r"errors: (\d+)", said)[1])
    if count == 0 and re.search("max search depth too small|Search not completed", said):
        sys.exit(f"not all states were seen:\n{said}")
    return count


def main():
    model = sys.argv[1]
    if not shutil.which("spin") or not shutil.which("cc"):
        print("skipped: spin is not installed (Debian package spin)")
        return SKIPPED
    with open(model) as file:
        comment = file.read().split("*/")[0]
    said = search(model, None)
    if errors_in(said) != 0:
        sys.exit(f"the protocol breaks a promise:\n{said}")
    never = [line for line in re.findall(r"^\t.*, state \d+, .*$", said, re.M) if '"-end-"' not in line]
    if never:
        sys.exit("transitions that never happen:\n" + "\n".join(never))
    states = re.search(r"(\d+) states, stored", said)[1]
    print(f"{states} states, all good")
    wrongs = re.findall(r"^ \*   ([A-Z_]+)  ", comment, re.M)
    if not wrongs:
        sys.exit("the model names no wrong protocol: who knows that the check can fail?")
    for wrong in wrongs:
        if errors_in(search(model, wrong)) == 0:
            sys.exit(f"the wrong protocol {wrong} is not found out")
        print(f"{wrong} is found out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
