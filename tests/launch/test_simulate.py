"""sterna sched simulate: one line a policy, for people and for scripts; what is wrong is named."""

import json
import os
import pathlib
import pty
import subprocess
import tempfile

from harness import STERNA, LaunchTest, main

MACHINE = "node:4 core:4 pu:1"
FILE = """# Two groups, one of them heavy.
rounds 3
bubble
threads 4 load 2
compute_us 500
barrier
group
threads 2
compute_us 100
"""


class Simulate(LaunchTest):
    def simulate(self, *words):
        return self.run_job(STERNA, "sched", "simulate", *words)

    def objects(self, *words):
        done = self.simulate(*words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def refused(self, *words, naming):
        done = self.simulate(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertTrue(done.stderr.startswith("sterna sched: "), done.stderr)
        for word in naming:
            self.assertIn(word, done.stderr)

    def file(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "workload"
        path.write_text(text)
        return path

    def test_json_is_an_object_a_policy_in_the_order_asked_for(self):
        burst, flat = self.objects("--topology", MACHINE, "--workload", "conduction",
                                   "--policy", "burst", "--policy", "flat")
        for told, name in ((burst, "burst"), (flat, "flat")):
            self.assertEqual(told["policy"], name)
            self.assertGreater(told["makespan"], 0)
            for part in ("locality", "balance"):
                self.assertTrue(0 <= told[part] <= 1, told)
        # Figure 7 of paper 003: bubbles keep threads near their memory, one queue for all does not.
        self.assertLess(burst["makespan"], flat["makespan"])
        self.assertGreater(burst["locality"], flat["locality"] + 0.5)

    def test_equal_seeds_give_equal_runs(self):
        words = ("--topology", "node:2 core:2 pu:1", "--workload", "lu-tasks", "--tasks", 3,
                 "--threads", 2, "--policy", "flat")
        self.assertEqual(self.objects(*words, "--seed", 5), self.objects(*words, "--seed", 5))
        self.assertNotEqual(self.objects(*words, "--seed", 5), self.objects(*words, "--seed", 6))

    def test_gangs_keep_the_tasks_of_lu_together(self):
        gang, flat = self.objects("--topology", "node:4 core:4 pu:1", "--workload", "lu-tasks",
                                  "--tasks", 8, "--threads", 4, "--policy", "gang(numa)",
                                  "--policy", "flat")
        self.assertEqual(gang["policy"], "gang(numa)")
        self.assertLess(gang["makespan"], flat["makespan"])

    def test_a_file_says_what_the_threads_do(self):
        (told,) = self.objects("--topology", "pu:8", "--workload", self.file(FILE),
                               "--policy", "flat")
        # Four threads of three rounds of 0.5 ms, each with a processor; two of 0.3 ms beside them.
        self.assertAlmostEqual(told["makespan"], 1.5e-3, delta=1e-5)
        self.assertAlmostEqual(told["speedup"], (4 * 1.5 + 2 * 0.3) / 1.5, delta=0.05)

    def test_loops_are_simulated_by_scheme(self):
        told = self.objects("--topology", "node:2 pu:4", "--workload", "loop", "--policy", "spread")
        self.assertEqual([its["scheme"] for its in told],
                         ["block", "cyclic", "dynamic", "guided", "trapezoid", "factoring",
                          "affinity", "clustered", "hierarchical"])
        by_scheme = {its["scheme"]: its["makespan"] for its in told}
        self.assertLess(by_scheme["factoring"], by_scheme["block"] * 0.7)
        some = self.objects("--topology", "node:2 pu:4", "--workload", "loop", "--policy", "spread",
                            "--policy", "flat", "--scheme", "guided", "--scheme", "block")
        self.assertEqual([(its["policy"], its["scheme"]) for its in some],
                         [("spread", "block"), ("spread", "guided"), ("flat", "block"),
                          ("flat", "guided")])
        done = self.simulate("--topology", "pu:2", "--workload", "loop", "--policy", "flat",
                             "--scheme", "guided")
        self.assertIn("\nflat guided ", done.stdout)

    def test_the_table_has_a_head_and_a_line_a_policy(self):
        words = ("--topology", MACHINE, "--policy", "burst", "--policy", "fallback(flat,steal)")
        done = self.simulate(*words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        head, *lines = done.stdout.splitlines()
        self.assertEqual(head.split(),
                         ["policy", "makespan", "s", "speedup", "locality", "balance"])
        told = self.objects(*words)
        self.assertEqual(len(lines), len(told))
        for line, its in zip(lines, told):
            name, makespan, speedup, locality, balance = line.split()
            self.assertEqual(name, its["policy"])
            for shown, exact in ((makespan, "makespan"), (speedup, "speedup"),
                                 (locality, "locality"), (balance, "balance")):
                self.assertAlmostEqual(float(shown), its[exact], delta=0.01)

    def test_a_machine_may_have_1024_processors_and_no_more(self):
        (told,) = self.objects("--topology", "node:8 core:64 pu:2", "--policy", "flat",
                               "--workload", self.file("group\nthreads 2048\ncompute_us 100\n"))
        self.assertAlmostEqual(told["speedup"], 1024, delta=1)
        self.refused("--topology", "node:8 core:64 pu:4", "--policy", "flat",
                     naming=["--topology", "2048 processors", "1024 are the most", "fewer"])

    def test_who_waits_at_a_terminal_sees_how_far_it_is(self):
        words = [str(STERNA), "sched", "simulate", "--workload", "lu-tasks", "--tasks", "400",
                 "--threads", "100", "--policy", "gang"]
        ours, theirs = pty.openpty()
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs, text=True) as running:
            self.addCleanup(os.close, ours)
            os.close(theirs)
            seen = b""
            while b"of virtual time" not in seen:
                seen += os.read(ours, 1000)
            running.kill()
        self.assertRegex(seen.decode(), r"gang: \d+ of 40000 threads have ended, \d+\.\d+ s of virtual time")

    def test_what_is_wrong_is_named_with_what_to_do(self):
        for words, naming in (
            ([], ["--policy is required", "--help"]),
            (["--policy", "nosuch"], ["\"nosuch\"", "sterna info --policies"]),
            (["--policy", "flat", "--policy", "gang(moon)"], ["\"moon\"", "it takes"]),
            (["--policy", "parts(numa,flat)", "--topology", "pu:2"],
             ["no numa", "sterna topo"]),
            (["--policy", "flat", "--workload", "nosuch"],
             ["\"nosuch\"", "No such file", "conduction", "lu-tasks", "docs/guide/policies.md"]),
            (["--policy", "flat", "--workload", "/"], ["\"/\"", "directory"]),
            (["--policy", "flat", "--topology", "garbage"],
             ["\"garbage\" does not describe a machine", "for example \"node:2 core:4 pu:2\""]),
            (["--policy", "flat", "--topology", ""], ["\"\" does not describe a machine"]),
            (["--policy", "flat", "--tasks", "0"], ["--tasks", "1 to 10000"]),
            (["--policy", "flat", "--workload", "lu-tasks", "--tasks", "1001", "--threads", "1000"],
             ["--tasks", "1001000 threads", "1000000 are the most"]),
            (["--policy", "flat", "--quantum", "0"], ["--quantum", "0.01"]),
            (["--policy", "flat", "--quantum", "nan"], ["--quantum", "no number"]),
            (["--policy", "fallback(" * 99 + "flat" + ")" * 99], ["more than 8 deep"]),
            (["--policy", "flat", "--workload", "loop", "--scheme", "fair"],
             ["--scheme", "\"fair\"", "sterna info --loops"]),
            (["--policy", "flat", "--scheme", "guided"], ["--scheme", "--workload loop"]),
            (["--policy", "flat", "--frob"], ["--frob", "--help"]),
        ):
            with self.subTest(words=words):
                self.refused(*words, naming=naming)

    def test_the_line_of_a_file_that_is_wrong_is_named(self):
        for text, naming in (
            ("threads 2\n", ["line 1", "\"threads 2\"", "\"bubble\" or \"group\" before"]),
            ("bubble\ncompute_us 5\n", ["line 2", "\"threads N\" before"]),
            ("bubble\n\n# x\nfrob 5\n", ["line 4", "\"frob 5\"", "docs/guide/policies.md"]),
            ("rounds many\n", ["line 1", "\"rounds many\""]),
            ("x\x1b[31m" + 100 * "y", ["line 1", "\"x?[31m" + 54 * "y" + "...\""]),
            ("memory_part 2\n", ["line 1", "\"memory_part 2\""]),
            ("bubble\nthreads 2\n", ["no steps", "compute"]),
            ("bubble\n", ["no thread"]),
            ("", ["empty"]),
            ("group\nthreads 1 processor 9\ncompute_us 1\n", ["processor 9", "machine with 2"]),
        ):
            with self.subTest(text=text):
                self.refused("--policy", "flat", "--topology", "pu:2", "--workload",
                             self.file(text), naming=naming)

    def test_help_says_what_a_workload_and_a_policy_are(self):
        done = self.simulate("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ("--topology", "--workload", "--policy", "conduction", "lu-tasks", "--json"):
            self.assertIn(word, done.stdout)
        done = self.run_job(STERNA, "sched", "frob")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--help", done.stderr)


if __name__ == "__main__":
    main()
