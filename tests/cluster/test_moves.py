"""Programs under permanent motion: every rank moves at every place where it can, at random with a seed."""

import collections
import os
import pathlib
import tempfile

from moving import CLUSTER, MPI, SECONDS, STERNA, MoveTest, main, wait_until

WAYS = {
    "two nodes": ["--nodes", 2],
    "three nodes over tcp": ["--nodes", 3, "--set", "drivers=tcp"],
    "four nodes": ["--nodes", 4],
    "copies": ["--nodes", 2, "--set", "rank_memory=private"],
    "copies over tcp": ["--nodes", 3, "--set", "rank_memory=private", "--set", "drivers=tcp"],
}


def open_files(pid):
    found = []
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(entry))
        except OSError:  # Closed meanwhile.
            pass
    return found


class Moves(MoveTest):
    def in_all_ways(self, program, least_moves, *options, ranks=5):
        for number, (name, way) in enumerate(WAYS.items()):
            with self.subTest(name):
                done, report = self.run_moving("-n", ranks, *way, "--set", "shuffle=1", "--set",
                                               f"shuffle_seed={number + 1}", *options,
                                               program=program)
                self.assert_right(done, report)
                moves = [rank["moves"] for rank in report["ranks"]]
                self.assertGreaterEqual(min(moves), least_moves)
                self.assertEqual(sum(moves), sum(node["arrived"] for node in report["nodes"]))

    def test_streams_arrive_once_and_in_order(self):
        # A rank has 5 MiB of buffers, and a copied one takes them along at each of its moves.
        self.in_all_ways([CLUSTER / "cluster_streams", 8, 7], 50)

    def test_what_a_program_and_mpi_keep_survives(self):
        self.in_all_ways([CLUSTER / "cluster_state"], 100)

    def test_each_line_is_written_once_by_the_rank_it_belongs_to(self):
        done, _ = self.run_moving("-n", 4, "--nodes", 2, "--set", "shuffle=1",
                                  program=[CLUSTER / "cluster_state"])
        lines = collections.Counter(done.stdout.splitlines())
        for rank in range(4):
            for number in range(40):
                self.assertEqual(lines[f"line {number} of rank {rank}"], 1)

    def test_messages_of_the_standard(self):
        self.in_all_ways([MPI / "mpi_test_messages"], 20)

    def test_the_order_of_messages_is_kept(self):
        # Pairs, which move a thousand times and more; at each place, not at each tenth, it took as long
        # as all other tests here together.
        self.in_all_ways([MPI / "mpi_test_order"], 500, "--set", "shuffle=10", ranks=4)

    def test_all_ways_to_send_and_to_receive(self):
        self.in_all_ways([MPI / "mpi_test_mixed", 300], 100)

    def test_communicators_of_the_standard(self):
        self.in_all_ways([MPI / "mpi_test_communicators"], 5)
        self.in_all_ways([MPI / "mpi_test_inter"], 5)

    def test_graphs_of_the_standard(self):
        self.in_all_ways([MPI / "mpi_test_graphs"], 5)

    def test_collectives_of_the_standard(self):
        self.in_all_ways([MPI / "mpi_test_collectives"], 100)


class Orders(MoveTest):
    def start_counting(self, how="nothing", who=0):
        """Three ranks on three nodes, which count until finish()."""
        self.end = pathlib.Path(self.directory.name) / "end"
        job = self.start_job(*self.words("-n", 3, "--nodes", 3,
                                         program=[CLUSTER / "cluster_counting", self.end, how, who]))
        self.assertTrue(wait_until(lambda: self.places(job) is not None and all(
            rank["state"] == "running" for rank in self.ranks(job))))
        return job

    def finish(self, job):
        self.end.touch()
        output, errors = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0, errors)
        return output

    def test_an_order_moves_a_rank_and_ps_shows_where_it_is(self):
        job = self.start_counting()
        self.assertEqual(self.places(job), [0, 1, 2])
        self.assertEqual(self.order(job, 1, 2).returncode, 0)
        self.assertTrue(wait_until(lambda: self.places(job) == [0, 2, 2]))
        self.assertEqual(self.order(job, 0, 1).returncode, 0)
        self.assertTrue(wait_until(lambda: self.places(job) == [1, 2, 2]))
        self.assertEqual(self.finish(job).count("counted right"), 3)
        self.assertEqual([rank["moves"] for rank in self.report()["ranks"]], [1, 1, 0])

    def test_a_rank_that_waits_for_a_message_moves_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            go_on = pathlib.Path(folder, "go_on")
            job = self.start_job(*self.words("-n", 6, "--nodes", 2,
                                             program=[CLUSTER / "cluster_waiting", go_on]))
            self.assertTrue(wait_until(pathlib.Path(folder, "go_on.waits").exists))
            wait_until(lambda: False, 0.2)
            here = self.places(job)[1]
            self.assertEqual(self.order(job, 1, 1 - here).returncode, 0)
            # Nobody sends before it has moved.
            self.assertTrue(wait_until(lambda: self.places(job)[1] == 1 - here))
            go_on.touch()
            output, errors = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0, errors)
        self.assertIn("No Errors", output)
        self.assertEqual([rank["moves"] for rank in self.report()["ranks"]], [0, 1, 0, 0, 0, 0])

    def test_an_order_to_nowhere_is_refused(self):
        job = self.start_counting()
        for rank, node in ((7, 1), (1, 9)):
            refused = self.order(job, rank, node)
            self.assertNotEqual(refused.returncode, 0)
        self.finish(job)

    def test_a_rank_with_an_open_file_stays_and_says_which(self):
        job = self.start_counting("file", 1)
        self.assertTrue(wait_until(lambda: "/etc/hostname" in open_files(self.node_pid(job, 1))))
        self.order(job, 1, 2)
        refused = lambda: any("/etc/hostname" in rank.get("refusal", "") for rank in self.ranks(job))
        self.assertTrue(wait_until(refused))
        self.finish(job)
        report = self.report()
        self.assertEqual(report["ranks"][1]["node"], 1)
        self.assertTrue(any("/etc/hostname" in reason for reason in report["nodes"][1]["refusals"]))


if __name__ == "__main__":
    main()
