#!/usr/bin/env python3
"""Checks that files which the documents name exist, and calls and fields of the C API, and the names
of C++ and the tests that docs/checklist.md names; that examples are no longer than promised. Run as
the ctest 'docs'."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Paths of this repository in running text or links: they begin with one of its folders.
PATH = re.compile(r"(?<![\w/.~-])((?:src|launch|tools|docs|examples|tests|cmake|include)/[\w./+-]*[\w+])")
POLICY_LINES = 30
STRATEGY_LINES = 100
CHECKLIST = ROOT / "docs" / "checklist.md"
TEST = re.compile(r"^TEST(?:_P|_F)?\((\w+),\s*(\w+)\)", re.MULTILINE)


def text_of(folder, pattern):
    return "\n".join(path.read_text() for path in sorted((ROOT / folder).rglob(pattern)))


def documents():
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def missing_calls():
    """What a document other than the checklist has in backquotes as a name of the C API: a call, a
    type, or a field behind a point; not as a file, a program or a symbol of a library."""
    known = set(re.findall(r"\w+", text_of("include/sterna", "*.h*")))
    for document in documents():
        for number, line in enumerate(document.read_text().splitlines(), 1):
            for name in re.findall(r"`(sterna_\w+(?:\.\w+)?)(?:\(\))?`", line):
                if document != CHECKLIST and not known.issuperset(name.split(".")):
                    yield document, number, name


def missing_names():
    """What docs/checklist.md has in backquotes and nobody else has: calls and fields of the C API,
    names of C++, tests."""
    tests = {f"{suite}.{name}" for suite, name in TEST.findall(text_of("src", "*_test.cc"))}
    headers = text_of("include/sterna", "*.h")
    words = {"C": set(re.findall(r"\w+", headers)),
             "C++": set(re.findall(r"\w+", headers + text_of("src", "*.h")))}
    for number, line in enumerate(CHECKLIST.read_text().splitlines(), 1):
        for name in re.findall(r"`([\w.:]+)`", line):
            if re.fullmatch(r"[A-Z]\w*\.[A-Z]\w*", name):
                is_there = name in tests
            elif name.startswith("sterna_"):
                is_there = words["C"].issuperset(name.split("."))
            elif "::" in name:
                is_there = words["C++"].issuperset(name.split("::"))
            else:
                continue
            if not is_there:
                yield number, name


def long_examples():
    """The examples of policies and strategies are as short as docs/extending says: of a policy what
    comes before the program that tries it out, without what it includes."""
    for path in sorted((ROOT / "examples").glob("policy_*.c")):
        policy = path.read_text().split("\nstatic ", 1)[1].split("\nenum {", 1)[0]
        lines = [line for line in ("static " + policy).splitlines() if line.strip()]
        if len(lines) > POLICY_LINES:
            yield path, len(lines), POLICY_LINES
    for path in sorted((ROOT / "examples").glob("strategy_*.cc")):
        lines = path.read_text().splitlines()
        if len(lines) > STRATEGY_LINES:
            yield path, len(lines), STRATEGY_LINES


def main():
    count = 0
    for path, lines, most in long_examples():
        print(f"{path}: {lines} lines; {most} are the most")
        count += 1
    for number, name in missing_names():
        print(f"{CHECKLIST}:{number}: there is no {name}")
        count += 1
    for document, number, name in missing_calls():
        print(f"{document}:{number}: there is no {name}")
        count += 1
    for document in documents():
        for number, line in enumerate(document.read_text().splitlines(), 1):
            for name in PATH.findall(line):
                candidates = [ROOT / name, document.parent / name]
                if not any(path.exists() for path in candidates):
                    print(f"{document}:{number}: there is no {name}")
                    count += 1
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main())
