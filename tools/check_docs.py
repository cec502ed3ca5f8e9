#!/usr/bin/env python3
"""Checks that files which the documents name exist. Run as the ctest 'docs'."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Paths of this repository in running text or links: they begin with one of its folders.
PATH = re.compile(r"(?<![\w/.~-])((?:src|launch|tools|docs|examples|tests|cmake|include)/[\w./+-]*[\w+])")


def main():
    count = 0
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for document in documents:
        for number, line in enumerate(document.read_text().splitlines(), 1):
            for name in PATH.findall(line):
                candidates = [ROOT / name, document.parent / name]
                if not any(path.exists() for path in candidates):
                    print(f"{document}:{number}: there is no {name}")
                    count += 1
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main())
