"""Every function that the public headers declare is exported, and no other C name sterna_*."""

import pathlib
import re
import subprocess
import sys

# Between libraries of one build, not for programs: the bottom of every stack.
INTERNAL = {"sterna_context_entry", "sterna_context_main", "sterna_context_switch"}


def main(headers, library):
    declared = set()
    for header in pathlib.Path(headers).glob("*.h"):
        code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        function = r"\b(sterna_\w+)\([^()]*(?:\([^()]*\)[^()]*)*\)\s*STERNA_NOEXCEPT;"
        declared |= set(re.findall(function, code))
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                             capture_output=True, text=True).stdout
    exported = set(re.findall(r" T (sterna_\w+)$", symbols, flags=re.MULTILINE)) - INTERNAL
    for name in sorted(declared - exported):
        print(f"{name} is declared and not exported")
    for name in sorted(exported - declared):
        print(f"{name} is exported and not declared")
    if len(declared) < 50:
        print(f"only {len(declared)} declarations were found: the check does not read the headers")
    return declared != exported or len(declared) < 50


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
