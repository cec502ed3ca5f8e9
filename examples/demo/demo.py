#!/usr/bin/env python3
"""The demonstration: an uneven program as processes, as mobile ranks, and balanced. One table."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of sterna and mpicc")
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--cells", type=int, default=480)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    binaries = options.bin.resolve()
    ways = [("processes", [])]
    for nodes in (2, 4):
        ways += [(f"ranks, {nodes} nodes", ["--nodes", nodes]),
                 (f"balanced, {nodes} nodes", ["--nodes", nodes, "--balance", "refine"])]
    print(f"heat conduction, {options.cells} x {options.cells} cells, {options.steps} steps, "
          f"{options.ranks} ranks, {os.cpu_count()} processors", flush=True)
    print(f"{'':22} {'time':>9} {'per step':>11} {'moves':>6}  processor time of the nodes")
    results = set()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([binaries / "mpicc", "-O2", HERE / "heat.c", "-o", folder / "heat", "-lm"],
                       check=True)
        for label, flags in ways:
            begin = time.monotonic()
            done = subprocess.run(
                [binaries / "sterna", "run", "-n", str(options.ranks), *map(str, flags), "--json",
                 folder / "report", folder / "heat", str(options.cells), str(options.steps)],
                text=True, stdout=subprocess.PIPE)
            seconds = time.monotonic() - begin
            if done.returncode != 0:
                sys.exit(f"{label}: failed with {done.returncode}")
            report = json.loads((folder / "report").read_text())
            loads = " ".join(f"{n['cpu_seconds']:.2f}" for n in report["nodes"])
            moves = sum(r["moves"] for r in report["ranks"])
            print(f"{label:22} {seconds:7.2f} s {seconds / options.steps * 1e3:8.2f} ms {moves:6}  "
                  f"{loads}", flush=True)
            results.add(re.search(r"result (\w+)", done.stdout)[1])
    print("results are " + ("identical to the last bit" if len(results) == 1
                             else f"DIFFERENT: {results}"))
    return int(len(results) != 1)


if __name__ == "__main__":
    sys.exit(main())
