#!/usr/bin/env python3
"""Checks what `sterna bench` prints, never how fast anything is."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "runner"))
from runner import main  # noqa: E402  (tests/runner/runner.py)

STERNA = sys.argv.pop(1)
KEYS = {"id", "params", "value", "unit", "reference", "reference_value", "ratio", "target", "pass"}
AIM = "aim, absolute"
IDS = ["thread.yield", "thread.create", "thread.yield.fiber", "thread.create.fiber",
       "thread.barrier.fiber", "thread.mutex.fiber", "thread.semaphore.fiber",
       "thread.condition.fiber", "thread.reuse",
       "thread.spawn.tbb", "thread.handover", "thread.million", "mpi.latency.node",
       "mpi.latency.mobile", "mpi.latency.shm", "mpi.latency.tcp", "mpi.bandwidth.shm", "mpi.copy.shm",
       "mpi.rate.shm",
       "mpi.bandwidth.tcp", "mpi.exchange.shm", "mpi.exchange.tcp",
       "mpi.unmatched.shm", "mpi.datatypes", "mpi.threads.16",
       "mpi.threads.rate", "mpi.multiple", "mpi.overlap.sender",
       "mpi.overlap.receiver", "mpi.bsp", "mpi.oversubscribed", "mpi.start", "rpc.latency",
       "rpc.bandwidth", "net.multirail", "net.layers", "migrate.bandwidth",
       "balance.gain", "bubble.overhead", "bubble.spawn", "loop.uneven", "gang.fairness", "conduction",
       "lu.tasks",
       "paper.000.t1", "paper.000.t2", "paper.000.f1", "paper.000.t3", "paper.000.f2.1", "paper.000.f2.2", "paper.000.f3", "paper.000.f4",
       "paper.000.t4", "paper.000.t5", "paper.000.t6", "paper.000.f5",
       "paper.000.t7", "paper.002.x1", "paper.002.f2", "paper.002.f3", "paper.002.f5",
       "paper.002.f6",
       "paper.002.f7", "paper.003.t1", "paper.004.f4", "paper.004.f5", "paper.004.f6",
       "paper.004.x1", "paper.004.x2", "paper.004.f7",
       "paper.004.f8", "paper.004.f9", "paper.004.f10"]
# Against other implementations; the other rows of mpi are against something of our own.
WITH_PEERS = {"mpi.latency.node", "mpi.latency.mobile", "mpi.latency.shm", "mpi.latency.tcp",
              "mpi.bandwidth.shm",
              "mpi.rate.shm", "mpi.bandwidth.tcp", "mpi.exchange.shm", "mpi.exchange.tcp",
              "mpi.unmatched.shm", "mpi.datatypes", "mpi.oversubscribed", "mpi.start"}


def bench(*arguments):
    return subprocess.run([STERNA, "bench", *arguments], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600)


class Bench(unittest.TestCase):
    def test_the_list_has_all_rows(self):
        done = bench("--list")
        self.assertEqual(done.returncode, 0)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], IDS)
        rows = [json.loads(line) for line in bench("--list", "--json").stdout.splitlines()]
        self.assertEqual([row["id"] for row in rows], IDS)
        self.assertTrue(all(row["target"] > 0 and row["summary"] for row in rows))

    def test_an_unknown_row_is_an_error(self):
        done = bench("mpi.lotency")
        self.assertEqual(done.returncode, 2)
        self.assertIn("mpi.lotency", done.stderr)

    def test_every_row_gives_figures_with_all_keys_and_no_peer_is_made_up(self):
        with tempfile.TemporaryDirectory() as nothing:
            done = bench("--quick", "--json", "--peers", nothing)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        figures = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(list(dict.fromkeys(figure["id"] for figure in figures)), IDS)
        for figure in figures:
            self.assertLessEqual(KEYS, set(figure), figure)
            self.assertIsInstance(figure["value"], (int, float), figure)
            self.assertGreater(figure["value"], 0, figure)
            if figure["id"] in WITH_PEERS and figure["reference"] != AIM:
                self.assertIsNone(figure["reference_value"], figure)
                self.assertIsNone(figure["ratio"], figure)
                self.assertIsNone(figure["pass"], figure)
            elif figure["reference_value"] is not None:  # Of our own, or an aim.
                cost = figure["value"] / figure["reference_value"]
                if figure["unit"] in ("speed-up", "MB/s", "M/s", "% kept"):  # More is better: the inverse.
                    cost = 1 / cost
                self.assertAlmostEqual(figure["ratio"], cost)
                if figure["target"] is not None:
                    self.assertEqual(figure["pass"], figure["ratio"] <= figure["target"])

    def test_aims_are_judged_only_when_absolute_times_are_asked_for(self):
        def aims(*options):
            done = bench("--quick", "--json", *options, "thread.yield", "thread.mutex.fiber")
            self.assertIn(done.returncode, (0, 1), done.stderr)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            return [line for line in lines if line["params"].endswith(", aim")]

        plain, judged = aims(), aims("--absolute")
        self.assertEqual([line["params"] for line in plain],
                         ["our bare switch, aim", "2 threads, C API, aim",
                          "1000 threads, C API, aim", "lock and unlock, C API, aim"])
        self.assertEqual([line["reference_value"] for line in plain], [2.5, 12, 15, 12])
        for line in plain:
            self.assertEqual((line["target"], line["pass"]), (None, None))
            self.assertAlmostEqual(line["ratio"], line["value"] / line["reference_value"])
        for line in judged:
            self.assertEqual(line["target"], 1)
            self.assertEqual(line["pass"], line["ratio"] <= 1)
        self.assertEqual(len(judged), len(plain))

    def test_the_table_says_which_peer_is_missing(self):
        with tempfile.TemporaryDirectory() as nothing:
            done = bench("--quick", "mpi.start", "--peers", nothing)
        self.assertIn("./dev peers", done.stdout)


if __name__ == "__main__":
    main()
