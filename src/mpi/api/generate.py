#!/usr/bin/env python3
"""Makes from functions.def all that repeats every function of MPI: prototypes, entry points, exports.

  generate.py header FILE        rewrites the prototypes inside mpi.h
  generate.py check-header FILE  fails when the prototypes inside mpi.h are not those of the table
  generate.py sources DIRECTORY  writes what the library is built from: entry_points.cc, table.cc, and
                                 the version script libmpi_abi.map
  generate.py check-symbols LIB  fails when the library does not export exactly the ABI's symbols

A function is implemented when a file of this folder defines it: a line that starts with its type and
its name, as `int PMPI_Send_c(`. Of a pair, only the large form need be written where all that differs
are counts given by value: then the int form, made here, calls it. What nobody wrote is made here too
and reports MPI_ERR_UNSUPPORTED_OPERATION through the error handler of its communicator.
"""

import pathlib
import re
import subprocess
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


def hand_written():
    """Names of the functions that the files of this folder define."""
    names = set()
    for path in sorted(HERE.glob("*.cc")):
        if not path.name.endswith("_test.cc"):
            names |= set(re.findall(r"^[a-zA-Z]\w* PMPI_(\w+)\(", path.read_text(), re.M))
    return names


def is_forwardable(function, written):
    """The int form of a pair whose large form is written, and which differs in values only."""
    return (function.has_large and not function.large and function.name + "_c" in written
            and not any(re.search(r"\b(COUNT|DISPL|EXTENT)\b.*[*\[]|FN:", token)
                        for token in function.tokens))


def arguments(function):
    return ", ".join(p.name for p in function.parameters)


def entry_point(function, written):
    """The PMPI_ definition of a function that nobody wrote, or nothing."""
    if function.name in written:
        return ""
    if is_forwardable(function, written):
        return (f"{function.declaration('PMPI_')} {{\n"
                f"  return PMPI_{function.name}_c({arguments(function)});\n}}\n")
    if function.result != "int":
        sys.exit(f"PMPI_{function.name} returns no error: it must be written by hand")
    comm = next((p for p in function.parameters if p.type == "MPI_Comm" and not p.array), None)
    by_tool = function.name.startswith("T_")
    by_file = function.name.startswith("File_")
    if by_tool or by_file:
        comm = None
    named = [p.type + (" " + p.name if p is comm else "") + p.array for p in function.parameters]
    if by_tool:
        body = "return MPI_T_ERR_NOT_SUPPORTED;"
    elif by_file:
        body = "return MPI_ERR_UNSUPPORTED_OPERATION;  // The handler of files returns."
    else:
        handle = comm.name if comm else "MPI_COMM_SELF"
        body = f'return sterna::mpi::report_unsupported("MPI_{function.name}", {handle});'
    text = ", ".join(named) + (", ..." if function.variadic else "")
    return f"int PMPI_{function.name}({text}) {{\n  {body}\n}}\n"


def alias(function, index):
    """The MPI_ name: weak, so that a profiling library linked before ours may take it."""
    # MPI_Pcontrol drops what follows the level: it is for profilers only.
    body = f"return PMPI_{function.name}({arguments(function)});"
    traced = ""
    # The others (MPI_Wtime, sums of addresses) take no time; none of the ints is variadic but
    # MPI_Pcontrol. Apart, so that the usual case is a jump.
    if function.result == "int":
        declaration = function.declaration("traced_").replace(", ...", "")
        traced = (f"[[gnu::noinline, gnu::cold]] static {declaration} {{\n"
                  f"  const sterna::mpi::TracedCall call{{{index}}};\n  {body}\n}}\n")
        body = (f"if (sterna::trace::is_on()) [[unlikely]] {{\n"
                f"    return traced_{function.name}({arguments(function)});\n  }}\n  {body}")
    return f"{traced}[[gnu::weak]] {function.declaration('MPI_')} {{\n  {body}\n}}\n"


def write_sources(directory):
    functions, written = read_table(), hand_written()
    unknown = written - {f.name for f in functions}
    if unknown:
        sys.exit(f"defined, but not in functions.def: {', '.join(sorted(unknown))}")
    entries = [entry_point(f, written) for f in functions]
    made_here = {f.name for f, text in zip(functions, entries) if "report_unsupported" in text
                 or "return MPI_T_ERR" in text or "return MPI_ERR_UNSUPPORTED" in text}
    head = "// Made by src/mpi/api/generate.py from functions.def.\n"
    write(directory / "entry_points.cc",
          head + '#include <mpi.h>\n\n#include "mpi/api/traced_call.h"\n#include "mpi/api/unsupported.h"\n\nextern "C" {\n\n'
          + "\n".join(filter(None, entries)) + "\n"
          + "\n".join(alias(f, index) for index, f in enumerate(functions)) + "\n}  // extern \"C\"\n")
    rows = "".join(f'    {{"MPI_{f.name}", {"false" if f.name in made_here else "true"}}},\n'
                   for f in functions)
    write(directory / "table.cc",
          head + '#include "mpi/api/implemented.h"\n\nnamespace sterna::mpi {\nnamespace {\n\n'
          f"constexpr FunctionEntry kFunctions[] = {{\n{rows}}};\n\n}}  // namespace\n\n"
          "std::span<const FunctionEntry> functions() noexcept { return kFunctions; }\n\n"
          "}  // namespace sterna::mpi\n")
    names = "".join(f"    MPI_{f.name};\n    PMPI_{f.name};\n" for f in functions)
    write(directory / "libmpi_abi.map", f"{{\n  global:\n{names}  local: *;\n}};\n")


def write(path, text):
    """Leaves a file that is right alone, so that nothing is compiled again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def check_symbols(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                             text=True, check=True).stdout
    exported = {line.split()[-1].partition("@")[0] for line in listing.splitlines()}
    wanted = {prefix + f.name for f in read_table() for prefix in ("MPI_", "PMPI_")}
    if exported != wanted:
        sys.exit(f"{library}: missing: {sorted(wanted - exported)}; "
                 f"not of the ABI: {sorted(exported - wanted)}")


def main(command, path):
    if command == "sources":
        write_sources(pathlib.Path(path))
        return
    if command == "check-symbols":
        check_symbols(path)
        return
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
