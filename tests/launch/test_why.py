"""sterna info --why net PEER SIZE --job ID: what a process of a running job would do now, and why."""

import json
import os
import pathlib
import signal
import socket

from harness import BIN, PROBE, SECONDS, STERNA, LaunchTest, build_program, main, wait_until

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* The first two ranks exchange messages, then all go on calling MPI until the file is there. */
enum { kBytes = 1 << 20 };
int main(int argc, char **argv) {
  int rank, flag;
  char *block = calloc(kBytes, 1);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 40 && rank < 2; ++i)
    MPI_Sendrecv_replace(block, kBytes, MPI_CHAR, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) { printf("on the way\n"); fflush(stdout); }
  while (access(argv[1], F_OK) != 0)
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  MPI_Finalize();
}
"""


class Why(LaunchTest):
    @classmethod
    def setUpClass(cls):
        build_program(cls, PROGRAM)

    def setUp(self):
        super().setUp()
        self.finishers = []

    def tearDown(self):
        for finish in self.finishers:  # Before it is looked what jobs leave behind.
            finish()
        super().tearDown()

    def begin(self, *options):
        end = self.folder / "end"
        end.unlink(missing_ok=True)
        job = self.start_job(STERNA, "run", "--timeout", f"{SECONDS}s", *options, self.program, end)

        def finish():
            end.touch()
            job.communicate(timeout=SECONDS)

        self.finishers.append(finish)
        self.assertEqual(job.stdout.readline(), "on the way\n")
        return job

    def why(self, job, *words):
        return self.run_job(STERNA, "info", "--why", "net", *words, "--job", getattr(job, "pid", job))

    def told(self, job, *words):
        done = self.why(job, *words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_each_rail_has_its_share_by_what_was_measured(self):
        job = self.begin("-n", 2, "--drivers", "tcp", "--set", "tcp_connections=2", "--set", "net_strategy=split")
        way = self.told(job, 1, "4M")
        self.assertEqual((way["job"], way["from_rank"], way["peer_rank"]), (job.pid, 0, 1))
        self.assertEqual((way["strategy"], way["bytes"]), ("split", 4 << 20))
        self.assertTrue(way["driver"].startswith("link(tcp"), way["driver"])
        rails = way["link"]["rails"]
        self.assertEqual(len(rails), 2)
        self.assertEqual(sum(rail["bytes"] for rail in rails), 4 << 20)
        self.assertEqual([rail["state"] for rail in rails], ["up", "up"])
        self.assertIn("measured lately", [rail["figures"] for rail in rails])
        self.assertTrue(way["link"]["choice"])
        is_lent = way["thresholds"]["lent_from_bytes"] is not None
        self.assertEqual("no zero copy" in way["link"]["copies"], not is_lent)
        text = self.why(job, 1, "4M").stdout
        for word in ("4194304 bytes from rank 0", "split", "thresholds: ", "latency_ns", "A link: ", "on their way"):
            self.assertIn(word, text)

    def test_another_network_is_a_rail_beside_one_that_needs_no_addresses(self):
        job = self.begin("-n", 2, "--drivers", "delay(shm,bandwidth=800M),delay(unix,bandwidth=800M)",
                         "--set", "net_rails=any")
        rails = self.told(job, 1, "4M")["link"]["rails"]
        self.assertEqual([rail["driver"] for rail in rails], ["delay(shm)", "delay(unix)"])
        self.assertEqual([rail["state"] for rail in rails], ["up", "up"])

    def test_what_messages_have_taught_is_told(self):
        job = self.begin("-n", 3, "--drivers", "tcp", "--set", "net_cost_sampling=off")
        learnt = {cost["name"]: cost for cost in self.told(job, 1, 64)["costs"]}
        self.assertGreater(sum(cost["corrections"] for cost in learnt.values()), 0, learnt)
        unused = self.told(job, 2, 64)
        self.assertEqual(unused["from_rank"], 0)
        self.assertEqual({cost["origin"] for cost in unused["costs"]}, {"profile"})
        self.assertEqual(self.told(job, 0, 64)["from_rank"], 1)  # Not from a rank to itself,
        own = self.told(job, 0, 64, "--from", 0)  # unless it is asked for.
        self.assertTrue(own["is_here"])
        self.assertIn("within a node", own["protocol"])

    def test_whether_messages_are_lent_is_told_of_the_way_as_it_is(self):
        absent = json.loads(self.run_job(STERNA, "info", "--why", "net", "fabric@tcp", "1K", "--json").stdout)
        if absent["link"]["absent"]:
            self.skipTest(absent["link"]["absent"][0])
        way = self.told(self.begin("-n", 2, "--drivers", "fabric@tcp"), 1, "4M")
        self.assertIn("4194304 bytes: rendezvous, lent", way["protocol"])
        self.assertGreater(way["thresholds"]["lent_from_bytes"], 0)
        self.assertNotIn("copies", way["link"])
        job = self.begin("-n", 2, "--drivers", "fabric@tcp", "--set", "fabric_read=off")
        way = self.told(job, 1, "4M")
        self.assertNotIn("lent", way["protocol"])
        self.assertIsNone(way["thresholds"]["lent_from_bytes"])

    def test_a_link_tells_what_becomes_of_zero_copy(self):
        absent = json.loads(self.run_job(STERNA, "info", "--why", "net", "fabric@tcp", "1K", "--json").stdout)
        if absent["link"]["absent"]:
            self.skipTest(absent["link"]["absent"][0])
        job = self.begin("-n", 2, "--drivers", "fabric@tcp", "--set", "net_links=on")
        way = self.told(job, 1, "4M")
        is_lent = way["thresholds"]["lent_from_bytes"] is not None
        self.assertEqual("rendezvous, lent" in way["protocol"], is_lent)
        copies = way["link"]["copies"]
        self.assertEqual(copies.endswith("would be lent, with no copy, by fabric@tcp"), not is_lent)
        self.assertIn(copies, self.why(job, 1, "4M").stdout)

    def test_a_threshold_that_is_set_is_the_one_that_is_told(self):
        job = self.begin("-n", 2, "--drivers", "shm", "--set", "net_eager_bytes=3000")
        way = self.told(job, 1, 3001)
        self.assertEqual((way["driver"], way["thresholds"]["eager_bytes"]), ("shm", 3000))
        self.assertFalse(way["link"]["is_link"])
        self.assertIn("3001 bytes: rendezvous", way["protocol"])
        self.assertIn("3000 bytes: eager", self.told(job, 1, 3000)["protocol"])
        self.assertIn("No link", self.why(job, 1, 3000).stdout)

    def test_mobile_ranks_are_found_where_they_are(self):
        job = self.begin("-n", 4, "--nodes", 2, "--drivers", "tcp")
        node = {rank["rank"]: rank["node"] for rank in self.job_of(job)["ranks"]}
        beside = next(rank for rank in node if rank != 0 and node[rank] == node[0])
        beyond = next(rank for rank in node if node[rank] != node[0])
        self.assertTrue(self.told(job, beside, 100)["is_here"])
        way = self.told(job, beyond, 100)
        self.assertFalse(way["is_here"])
        self.assertEqual((way["from_node"], way["peer_node"]), (node[0], node[beyond]))

    def refused(self, code, text, job, *words):
        done = self.why(job, *words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertIn(text, done.stderr)

    def test_what_cannot_be_answered_says_why(self):
        job = self.begin("-n", 2, "--drivers", "tcp")
        self.refused(1, f"job {job.pid}: it has no rank 2, but 2 of them", job, 2, "1K")
        self.refused(1, "it has no rank 9", job, 1, "1K", "--from", 9)
        self.refused(2, "'tcp' is none", job, "tcp", "1K")
        self.refused(2, "'-1' is none", job, "-1", "1K")
        self.refused(2, "size", job, 1, "much")
        self.refused(2, "terabyte", job, 1, "2T")
        self.refused(1, "no job 1 is running", 1, 1, "1K")
        self.told(job, 1, "1T")  # Takes no time.
        done = self.run_job(STERNA, "info", "--job", job.pid)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--why", done.stderr)

    def test_a_process_that_ends_or_does_not_answer_meanwhile_is_told(self):
        job = self.begin("-n", 2, "--drivers", "tcp")
        victim = self.node_pid(job, 0)
        os.kill(victim, signal.SIGSTOP)
        try:
            self.refused(1, "the process of rank 0 does not answer", job, 1, "1K")
        finally:
            os.kill(victim, signal.SIGCONT)
        os.kill(victim, signal.SIGSTOP)
        asker = self.start_job(STERNA, "info", "--why", "net", 1, "1K", "--job", job.pid)
        os.kill(victim, signal.SIGKILL)
        _, errors = asker.communicate(timeout=SECONDS)
        self.assertEqual(asker.returncode, 1)
        self.assertRegex(errors, "has ended|ended before it answered|no job|does not answer")
        job.wait(timeout=SECONDS)
        self.refused(1, f"no job {job.pid} is running", job, 1, "1K")

    def test_a_program_that_does_not_communicate_is_told(self):
        job = self.start_job(STERNA, "run", "-n", 2, PROBE, "hang")
        self.finishers.append(lambda: (job.send_signal(signal.SIGINT), job.communicate(timeout=SECONDS)))
        self.wait_for_ranks(2)
        path = pathlib.Path(self.environment["XDG_RUNTIME_DIR"]) / "sterna" / f"job-{job.pid}"
        self.assertTrue(wait_until(path.exists))
        self.refused(1, "has not begun to communicate", job, 1, "1K")
        for words in (b"why\n", b"why 0 1\n", b"why 0 1 x\n", b"why 0 1 9999999999999999\n", b"why 0 1 1 1\n"):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(str(path))
                stranger.settimeout(SECONDS)
                stranger.sendall(words)
                self.assertEqual(stranger.recv(100), b"", words)


if __name__ == "__main__":
    main()
