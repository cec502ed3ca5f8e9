#!/usr/bin/env python3
"""Makes from functions.def all that repeats every function of MPI: prototypes, entry points, exports.

  generate.py header FILE            rewrites the prototypes inside mpi.h
  generate.py check-header FILE      fails when the prototypes inside mpi.h are not those of the table
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
BEGIN = "/* ==== Prototypes: "
END = "/* ==== End of the prototypes ==== */"
SHORT = {"COUNT": "int", "DISPL": "int", "EXTENT": "MPI_Aint"}
LARGE = {"COUNT": "MPI_Count", "DISPL": "MPI_Aint", "EXTENT": "MPI_Count"}


class Parameter:
    """One parameter: `type` without array brackets, `name`, `array` (brackets or nothing)."""

    def __init__(self, text, types, large):
        self.text = re.sub(r"\b(COUNT|DISPL|EXTENT)\b", lambda m: types[m[1]], text)
        self.text = re.sub(r"FN:(\w+)", lambda m: m[1] + ("_c" if large else ""), self.text)
        match = re.fullmatch(r"(.*?)(\w+)((?:\[\w*\])*)", self.text)
        self.type, self.name, self.array = match[1].strip(), match[2], match[3]


class Function:
    """One function, in one form: `name` is without prefix, `large` says that it is name_c."""

    def __init__(self, chapter, name, result, parameters, deprecated, has_large, large):
        self.chapter, self.result, self.deprecated = chapter, result or "int", deprecated
        self.name = name + "_c" if large else name
        self.short_name, self.large, self.has_large = name, large, has_large
        self.variadic = "..." in parameters
        types = LARGE if large else SHORT
        self.parameters = [Parameter(p, types, large) for p in parameters if p != "..."]
        # The tokens of the table beside the types: what the forwarders convert.
        self.tokens = [p for p in parameters if p != "..."]

    def declaration(self, prefix):
        texts = [p.text for p in self.parameters] + (["..."] if self.variadic else [])
        return f"{self.result} {prefix}{self.name}({', '.join(texts) or 'void'})"


def read_table(path=HERE / "functions.def"):
    """Returns every function of the table, the short form before the large one."""
    lines = []
    for line in path.read_text().splitlines():
        if line.startswith(" "):
            lines[-1] += " " + line.strip()
        elif line and not line.startswith("#"):
            lines.append(line)
    functions, chapter = [], None
    for line in lines:
        if line.startswith("["):
            chapter = line.strip("[]")
            continue
        match = re.fullmatch(r"(\w+)(?: (\w+))?( ~)?( !)? \((.*)\)", line)
        assert match, f"functions.def: cannot read: {line}"
        name, result, has_large, deprecated, text = match.groups()
        parameters = [] if text == "void" else text.split(", ")
        for large in (False, True) if has_large else (False,):
            functions.append(
                Function(chapter, name, result, parameters, deprecated, has_large, large))
    return functions


def wrap(declaration):
    """Folds a declaration at 100 columns, under its parenthesis."""
    head, _, rest = declaration.partition("(")
    lines, indent = [head + "("], " " * (len(head) + 1)
    for word in re.split(r"(?<=,) ", rest + ";"):
        glue = "" if lines[-1].endswith("(") or lines[-1].strip() == "" else " "
        if len(lines[-1]) + len(glue) + len(word) > 100:
            lines.append(indent + word)
        else:
            lines[-1] += glue + word
    return "\n".join(lines)


def prototypes(functions):
    """The text between BEGIN and END: each chapter with its MPI_ and its PMPI_ names."""
    text, chapter = [], None
    for prefix in ("MPI_", "PMPI_"):
        if prefix == "PMPI_":
            text.append("\n/* ---- The same functions under the names of the profiling interface ---- */\n")
        for function in functions:
            if prefix == "MPI_" and function.chapter != chapter:
                chapter = function.chapter
                text.append(f"\n/* {chapter}. */\n")
            line = wrap(function.declaration(prefix))
            text.append(line + (" /* deprecated */" if function.deprecated else ""))
    return "\n".join(text) + "\n"


def with_prototypes(header):
    """The text of mpi.h with its prototypes made anew."""
    before, begin, after = header.partition(BEGIN)
    first, _, after = after.partition("\n")
    _, end, after = after.partition(END)
    assert begin and end, "mpi.h has lost the lines around its prototypes"
    return before + begin + first + "\n" + prototypes(read_table()) + "\n" + end + after


def main(command, path, *arguments):
    if command in ("header", "check-header"):
        header = pathlib.Path(path)
        text = with_prototypes(header.read_text())
        if command == "header":
            header.write_text(text)
        elif text != header.read_text():
            sys.exit(f"{path}: prototypes differ from functions.def: run generate.py header {path}")
        return
    sys.exit(f"unknown command {command}")


if __name__ == "__main__":
    main(*sys.argv[1:])
