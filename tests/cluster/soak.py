"""Random motion for some minutes: python3 soak.py MINUTES [SEED]. Prints each command before it runs it, so
that a failure can be repeated. Needs the environment of the cluster tests (ctest -N -V shows it)."""

import os
import pathlib
import random
import subprocess
import sys
import time

STERNA = str(pathlib.Path(os.environ["STERNA_BIN"]) / "sterna")
CLUSTER = pathlib.Path(os.environ["STERNA_CLUSTER_PROGRAMS"])
MPI = pathlib.Path(os.environ["STERNA_MPI_PROGRAMS"])
PROGRAMS = [[CLUSTER / "cluster_streams", "20"], [CLUSTER / "cluster_state"],
            [MPI / "mpi_test_messages"], [MPI / "mpi_test_collectives"],
            [MPI / "mpi_test_communicators"], [MPI / "mpi_test_inter"]]


def command(seed):
    choose = random.Random(seed)
    nodes = choose.randint(2, 4)
    words = [STERNA, "run", "--timeout", "120s", "-n", choose.randint(max(nodes, 4), 8), "--nodes", nodes,
             "--set", f"shuffle={choose.choice([1, 1, 2, 5, 20])}", "--set", f"shuffle_seed={seed}"]
    for option in ("drivers=tcp", "rank_memory=private", "spin=0"):
        if choose.random() < 0.3:
            words += ["--set", option]
    return [str(word) for word in words + choose.choice(PROGRAMS)]


def main():
    end = time.monotonic() + 60 * float(sys.argv[1] if len(sys.argv) > 1 else 1)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 29)
    while time.monotonic() < end:
        words = command(seed)
        print(f"seed {seed}:", *words, flush=True)
        done = subprocess.run(words, text=True, capture_output=True, timeout=150)
        if done.returncode != 0 or "No Errors" not in done.stdout:
            print(done.stdout[-3000:], done.stderr[-3000:], f"failed with seed {seed}", sep="\n")
            return 1
        seed += 1
    print("No Errors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
