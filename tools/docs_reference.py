#!/usr/bin/env python3
"""Writes docs/reference from what an installation says of itself: `sterna info --json`.

  docs_reference.py --sterna build/release/bin/sterna           writes the pages
  docs_reference.py --sterna build/release/bin/sterna --check   fails when they are not up to date
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- Written by tools/docs_reference.py from `sterna info --json`: change the tables in src. -->\n"

# Key in the output -> title, how it is chosen, the table in src, the page of docs/extending.
TABLES = {
    "drivers": ("Network drivers", "`--drivers A,B`, setting `drivers`: the preferred one first; empty: all but those on request",
                "src/net/drivers/builtin.cc", "driver"),
    "strategies": ("Strategies of sending", "setting `net_strategy`",
                   "src/net/strategies/builtin.cc", "strategy"),
    "policies": ("Scheduling policies", "name in `sterna_options.policy`",
                 "src/sched/policies/builtin.cc", "policy"),
    "balancers": ("Balancers", "`--balance NAME`, setting `balance`",
                  "src/balance/policies/builtin.cc", "balancer"),
}


def ask(sterna, *arguments):
    """What this build says, without any setting of ours."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("STERNA_")}
    environment["HOME"] = environment["XDG_CONFIG_HOME"] = "/nonexistent"
    output = subprocess.run([sterna, "info", "--json", *arguments], env=environment, check=True,
                            capture_output=True, text=True, timeout=60).stdout
    return json.loads(output)


def cell(text):
    return text.replace("|", "\\|")


def name_in(key, name):
    """With a link, where each entry has a page of its own."""
    return f"[`{name}`](../policies/{name}.md)" if key == "policies" else f"`{name}`"


def page_of_table(key, entries):
    title, chosen, table, extending = TABLES[key]
    lines = [f"# {title}\n", NOTE, f"Chosen by {chosen}. The table is `{table}`; "
             f"[how to add one](../extending/{extending}.md).\n", "| name | what it does |", "|---|---|"]
    lines += [row_of(key, entry) for entry in entries]
    return "\n".join(lines) + "\n"


def row_of(key, entry):
    request = "; on request" if entry.get("on_request") else ""
    return f"| {name_in(key, entry['name'])}{request} | {cell(entry['summary'])} |"


def page_of_drivers(drivers, decorators):
    """And what can be put around them."""
    lines = ["\n## Around a driver\n", "As `--drivers 'drop(tcp)'`: [their values, and what they keep](../drivers/decorators.md).\n",
             "| name | what it does |", "|---|---|"]
    lines += [row_of("decorators", entry) for entry in decorators]
    return page_of_table("drivers", drivers) + "\n".join(lines) + "\n"


def page_of_settings(settings):
    lines = ["# Settings\n", NOTE,
             "Each may be given, the last one wins: built in, `~/.config/sterna/config.toml` (or the file that\n"
             "`STERNA_CONFIG` names), environment `STERNA_<NAME>`, command line `--set name=value`.\n"
             "`sterna info` shows the values that hold here and where they come from.\n",
             "| name | default | allowed | what it is |", "|---|---|---|---|"]
    for setting in settings:
        default = f"`{setting['default']}`" if setting["default"] else "empty"
        lines.append(f"| `{setting['name']}` | {default} | {cell(setting['allowed'])} | "
                     f"{cell(setting['help'])} |")
    return "\n".join(lines) + "\n"


def page_of_functions(functions):
    lines = ["# Functions of MPI\n", NOTE,
             "Every function of the standard ABI exists; those not yet implemented report\n"
             "MPI_ERR_UNSUPPORTED_OPERATION through the error handler. `sterna info --mpi` prints this list.\n"]
    for kind in ("implemented", "unsupported"):
        names = sorted(functions[kind])
        lines.append(f"## {kind.capitalize()}: {len(names)}\n")
        lines += [f"- `{name}`" for name in names]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def make_pages(sterna):
    info = ask(sterna)
    pages = {f"{key}.md": page_of_table(key, info[key]) for key in TABLES}
    pages["drivers.md"] = page_of_drivers(info["drivers"], info["decorators"])
    pages["settings.md"] = page_of_settings(info["settings"])
    pages["mpi.md"] = page_of_functions(ask(sterna, "--mpi"))
    return pages


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sterna", required=True, help="the executable that is asked")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on differences")
    options = parser.parse_args()
    pages = make_pages(options.sterna)
    if not options.check:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (FOLDER / name).write_text(text)
        return 0
    old = [name for name, text in pages.items()
           if not (FOLDER / name).is_file() or (FOLDER / name).read_text() != text]
    for name in old:
        print(f"docs/reference/{name} is not what this build says of itself; run "
              f"tools/docs_reference.py --sterna {options.sterna}")
    return min(len(old), 1)


if __name__ == "__main__":
    sys.exit(main())
