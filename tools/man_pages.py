#!/usr/bin/env python3
"""Writes the manual pages from what the commands say with --help, so that there is one source.

  man_pages.py --bin build/release/bin --output DIR           writes DIR/sterna.1, sterna-run.1, ...
  man_pages.py --bin build/release/bin --output DIR --check   and fails unless man can show them
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys


def say(*words):
    """What a command prints, without settings of ours."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STERNA_")}
    return subprocess.run([str(word) for word in words], env=environment, check=True, text=True,
                          capture_output=True, timeout=60).stdout


def escape(line):
    line = line.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return "\\&" + line if line[:1] in (".", "'") else line


def page(name, version, summary, help_text):
    """The help as it is laid out, below the headings that man wants."""
    usage = re.search(r"^Usage: (.*)$", help_text, re.MULTILINE)
    text = help_text.replace(usage[0], "").strip("\n") if usage else help_text
    lines = [f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "Sterna {version}"', ".SH NAME",
             f"{escape(name)} \\- {escape(summary)}", ".SH SYNOPSIS", escape(usage[1]) if usage else name,
             ".SH DESCRIPTION", ".nf"]
    lines += [escape(line) for line in re.sub(r"\n{3,}", "\n\n", text).split("\n")]
    return "\n".join([*lines, ".fi", ""])


def make_pages(folder):
    sterna = folder / "sterna"
    version = say(sterna, "--version").split()[-1]
    overview = say(sterna, "--help")
    commands = dict(re.findall(r"^  (\w+) +(\S.*)$", overview, re.MULTILINE))
    pages = {"sterna": page("sterna", version, "parallel programs whose threads can move", overview)}
    for command, summary in commands.items():
        pages[f"sterna-{command}"] = page(f"sterna-{command}", version, summary,
                                          say(sterna, command, "--help"))
    pages["mpiexec.sterna"] = page("mpiexec.sterna", version, "run an MPI program with Sterna",
                                   say(folder / "mpiexec", "--help"))
    return pages


def check(file, name):
    """man shows the page without a warning, and with every option of --help."""
    shown = subprocess.run(["man", "--warnings", "-l", str(file)], text=True, capture_output=True, timeout=60,
                           env={**os.environ, "MANWIDTH": "200", "MAN_KEEP_FORMATTING": "", "LC_ALL": "C.UTF-8"})
    options = set(re.findall(r"^ +(?:-\w,)?(--[\w-]+)", file.read_text().replace("\\-", "-"), re.MULTILINE))
    missing = [option for option in options if option not in shown.stdout.replace("\u2010", "-")]
    if shown.returncode != 0 or shown.stderr or missing or name.upper() not in shown.stdout:
        sys.exit(f"{file}: man fails: {shown.stderr} missing: {missing}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    pages = make_pages(options.bin)
    for name, text in pages.items():
        (options.output / f"{name}.1").write_text(text)
    if options.check and "sterna-run" not in pages:
        sys.exit("no page for sterna run")
    if options.check and shutil.which("man"):
        for name in pages:
            check(options.output / f"{name}.1", name)


if __name__ == "__main__":
    main()
