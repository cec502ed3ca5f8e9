"""sterna run --trace and sterna trace: what is recorded agrees with what the job says of itself."""

import json
import os
import pathlib

from moving import CLUSTER, SECONDS, STERNA, MoveTest, main, wait_until


class Trace(MoveTest):
    def setUp(self):
        super().setUp()
        self.trace = pathlib.Path(self.directory.name) / "job.trace"

    def summary(self, *files):
        done = self.run_job(STERNA, "trace", "--json", *(files or [self.trace]))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def run_counting(self, *options, milliseconds=200, how=("nothing",)):
        return self.run_moving("--trace", self.trace, *options,
                               program=[CLUSTER / "cluster_counting", milliseconds, *how])

    def left_over(self):
        return [f.name for f in self.trace.parent.iterdir() if ".node-" in f.name]

    def test_what_a_killed_job_left_is_not_of_the_next_one(self):
        self.trace.with_name("job.trace.node-1").write_text("of an earlier job")
        done = self.run_job(STERNA, "run", "--trace", self.trace, "-n", 2, "true")
        self.assertIn("node 1 left no trace", done.stderr)
        self.assertEqual(self.left_over(), [])

    def test_moves_calls_and_messages_agree_with_the_report(self):
        done, report = self.run_counting("-n", 4, "--nodes", 2, "--set", "shuffle=40")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.left_over(), [])
        summary = self.summary()
        made = [move for move in summary["moves"] if move["done"]]
        self.assertGreater(len(made), 0)
        self.assertEqual(len(made), sum(rank["moves"] for rank in report["ranks"]))
        calls = {call["name"]: call["count"] for call in summary["calls"]}
        self.assertEqual(calls["MPI_Init"], 4)
        self.assertEqual(calls["MPI_Finalize"], 4)
        self.assertEqual(calls["MPI_Allreduce"] % 4, 0)
        self.assertGreaterEqual(calls["MPI_Allreduce"], 80)
        self.assertEqual(summary["messages"]["paired"], summary["messages"]["sent"])
        self.assertGreater(summary["messages"]["sent"], 100)
        ranks = {t["name"]: t for t in summary["threads"] if t["name"].startswith("rank ")}
        self.assertEqual(sorted(ranks), [f"rank {i}" for i in range(4)])
        for thread in ranks.values():
            whole = sum(thread[k] for k in ("running_ns", "ready_ns", "waiting_ns", "moving_ns"))
            self.assertLessEqual(whole, summary["duration_ns"])
            self.assertGreater(thread["running_ns"], 0)
        for worker in summary["workers"]:
            self.assertLessEqual(worker["running_ns"] + worker["asleep_ns"],
                                 summary["duration_ns"])
        self.assertEqual([node["clock_by"] for node in summary["nodes"]], ["same clock"] * 2)
        self.assertEqual([node["broken_records"] for node in summary["nodes"]], [0, 0])

    def test_ranks_that_are_processes_record_their_calls(self):
        done, _ = self.run_counting("-n", 3, milliseconds=50)
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary()
        self.assertEqual(len(summary["nodes"]), 3)
        calls = {call["name"]: call["count"] for call in summary["calls"]}
        self.assertEqual(calls["MPI_Allreduce"] % 3, 0)
        self.assertEqual(calls["MPI_Bcast"] % 3, 0)
        self.assertEqual(summary["messages"]["paired"], summary["messages"]["sent"])

    def test_a_variable_is_as_good_as_the_option(self):
        self.environment["STERNA_TRACE"] = str(self.trace)
        done, _ = self.run_moving("-n", 2, "--nodes", 2,
                                  program=[CLUSTER / "cluster_counting", 20, "nothing"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.summary()["events"], 50)

    def test_a_job_that_crashes_leaves_its_trace(self):
        done, _ = self.run_counting("-n", 4, "--nodes", 2, how=("segv", 1))
        self.assertNotEqual(done.returncode, 0)
        summary = self.summary()
        self.assertEqual(len(summary["nodes"]), 2)
        self.assertGreaterEqual({c["name"]: c["count"] for c in summary["calls"]}["MPI_Allreduce"],
                                4 * 19)

    def test_the_files_of_a_killed_launcher_are_there_and_can_be_merged(self):
        job = self.start_job(*self.words("-n", 2, "--nodes", 2, "--trace", self.trace,
                                         program=[CLUSTER / "cluster_counting", self.trace.with_name("end")]))
        self.assertTrue(wait_until(lambda: all(rank.get("messages", 0) > 200 for rank in self.ranks(job))))
        job.kill()
        job.communicate(timeout=SECONDS)
        files = sorted(self.trace.parent.glob("job.trace.node-*"))
        self.assertEqual(len(files), 2)
        merged = self.trace.parent / "merged"
        self.assertEqual(self.run_job(STERNA, "trace", *files, "-o", merged).returncode, 0)
        summary = self.summary(merged)
        self.assertGreater(summary["events"], 100)
        self.assertEqual(summary, self.summary(*files))
        again = self.trace.parent / "again"
        self.assertEqual(self.run_job(STERNA, "trace", merged, "-o", again).returncode, 0)
        self.assertEqual(summary, self.summary(again))

    def test_a_small_limit_cuts_the_trace_short_not_the_job(self):
        done, _ = self.run_counting("-n", 4, "--nodes", 2, "--set", "trace_bytes=1M",
                                    milliseconds=2000)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("counted right", done.stdout)
        self.assertLessEqual(self.trace.stat().st_size, 16 << 20)
        self.summary()

    def test_a_file_that_cannot_be_written_is_told_before_the_job(self):
        self.trace = "/nowhere/at/all.trace"
        done, _ = self.run_counting("-n", 2)
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere/at/all.trace", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_what_is_no_trace_is_refused_with_its_name(self):
        for content in (b"", b"\n\x00", os.urandom(10000), b"x" * 5000):
            self.trace.write_bytes(content)
            done = self.run_job(STERNA, "trace", self.trace)
            self.assertEqual(done.returncode, 1)
            self.assertIn(str(self.trace), done.stderr)

    def test_a_crossing_of_hosts_keeps_messages_in_order(self):
        # The other host is this one, reached by a command: its file is fetched as from any other.
        elsewhere = pathlib.Path(self.directory.name) / "ssh"
        elsewhere.write_text("#!/bin/sh\nshift\nexec sh -c \"$*\"\n")
        elsewhere.chmod(0o755)
        done, _ = self.run_counting("-n", 2, "--nodes", 2, "--hosts", "localhost,elsewhere",
                                    "--launcher-exec", elsewhere, milliseconds=50)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.summary()["nodes"]), 2)


if __name__ == "__main__":
    main()
