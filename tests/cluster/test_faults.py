"""A process is killed at each step of a move: the rank goes on at one place, exactly once, or the job ends
soon and says which rank was lost with which node."""

import os
import pathlib
import signal

from moving import CLUSTER, SECONDS, MoveTest, main, wait_until

# Of a rank that is ordered to move: the destination is prepared, and takes it without an offer.
STAYS = ("destination:preparing", "destination:prepared")
LOST_AT_SOURCE = ("source:prepared", "source:frozen", "source:given")
# Of a rank that goes on its own, where nothing is prepared: given, and taken by a node that maps it first;
# or offered, and copied.
COPIED = ("--set", "rank_memory=private")
STAYS_ON_ITS_OWN = (("destination:offered",), ("destination:mapped",), ("destination:offered", *COPIED),
                    ("destination:mapped", *COPIED), ("destination:received", *COPIED))
LOST_ON_ITS_OWN = (("source:frozen",), ("source:given",), ("source:frozen", *COPIED), ("source:offered", *COPIED),
                   ("source:sent", *COPIED), ("source:received", *COPIED))


class Faults(MoveTest):
    """Rank r starts on node r of three; node 2 is the one that dies."""

    def start_with(self, fault, *options, going=None):
        """`going`: rank and node; that rank moves itself there as soon as self.go exists."""
        self.end = pathlib.Path(self.directory.name) / "end"
        self.go = pathlib.Path(self.directory.name) / "go"
        self.end.unlink(missing_ok=True)
        self.go.unlink(missing_ok=True)
        program = ([CLUSTER / "cluster_counting", self.end] if going is None else
                   [CLUSTER / "cluster_going", self.end, self.go, *going])
        job = self.start_job(*self.words("-n", 3, "--nodes", 3, "--set", f"fault={fault}@2", *options,
                                         program=program))
        self.assertTrue(wait_until(lambda: self.places(job) == [0, 1, 2] and all(
            rank["state"] == "running" for rank in self.ranks(job))))
        self.pid_of_2 = self.node_pid(job, 2)
        return job

    def refusal_of(self, job, rank):
        return (self.ranks(job) or [{}] * 3)[rank].get("refusal", "")

    def finish(self, job):
        output, errors = job.communicate(timeout=SECONDS)
        return output, errors

    def assert_goes_on(self, job, places):
        self.assertTrue(wait_until(lambda: not pathlib.Path(f"/proc/{self.pid_of_2}").exists()))
        self.end.touch()
        output, errors = self.finish(job)
        self.assertEqual(job.returncode, 0, errors)
        self.assertIn("No Errors", output)
        for rank in range(3):
            self.assertEqual(output.count(f"rank {rank} counted right"), 1, output)
        self.assertRegex(errors, "warning: the process of node 2, .* no rank was on it")
        self.assertEqual([rank["node"] for rank in self.report()["ranks"]], places)

    def assert_ends(self, job, *texts):
        _, errors = self.finish(job)
        self.assertEqual(job.returncode, 137, errors)
        for text in texts:
            self.assertRegex(errors, text)
        self.assertNotIn("MPI_Abort", errors)

    def order_until_there(self, job, rank, node):
        """A node that waits for a processor may not answer within a short move_timeout: asked again."""
        def is_there():
            self.order(job, rank, node)
            return wait_until(lambda: self.places(job)[rank] == node, 3)
        self.assertTrue(wait_until(is_there), self.ranks(job))

    def empty_node_2(self, job):
        self.order_until_there(job, 2, 0)
        self.assertEqual(self.places(job), [0, 1, 0])
        self.assertTrue(wait_until(lambda: not self.nodes(job)[2]["holds_messages"]))

    def test_a_rank_goes_on_where_it_is_when_the_destination_dies_before_the_commit(self):
        for step in STAYS:
            with self.subTest(step):
                job = self.start_with(step)
                self.empty_node_2(job)
                self.order(job, 1, 2)
                self.assert_goes_on(job, [0, 1, 0])

        for step in STAYS_ON_ITS_OWN:
            with self.subTest(step):
                job = self.start_with(*step, going=(1, 2))
                self.empty_node_2(job)
                self.go.touch()
                self.assert_goes_on(job, [0, 1, 0])

    def test_a_rank_is_lost_with_the_destination_that_had_it(self):
        job = self.start_with("destination:committed")
        self.empty_node_2(job)
        self.order(job, 1, 2)
        # The source tells of the move when it has taken place.
        self.assert_ends(job, "node 2, .*signal 9", "rank 1 was lost: it was moving to node 2")
        job = self.start_with("destination:committed", going=(1, 2))
        self.empty_node_2(job)
        self.go.touch()
        self.assert_ends(job, "node 2, .*signal 9", "rank 1 was lost: it was moving to node 2")
        # The launcher is told of a copy before it can be taken.
        job = self.start_with("destination:committed", *COPIED, going=(1, 2))
        self.empty_node_2(job)
        self.go.touch()
        self.assert_ends(job, "node 2, .*signal 9.*rank 1 on it")

    def test_a_rank_is_lost_with_its_source_before_the_commit(self):
        for step in LOST_AT_SOURCE:
            with self.subTest(step):
                job = self.start_with(step)
                self.order(job, 2, 1)
                self.assert_ends(job, "node 2, .*signal 9.*rank 2 on it")
        for step in LOST_ON_ITS_OWN:
            with self.subTest(step):
                job = self.start_with(*step, going=(2, 1))
                self.go.touch()
                self.assert_ends(job, "node 2, .*signal 9.*rank 2 on it")

    def test_a_node_that_dies_before_it_has_handed_over_what_ranks_left_in_it_ends_the_job(self):
        for fault in ("source:committed", "source:flushing"):
            for options in ((), ("--set", "rank_memory=private"),
                            ("--set", "drivers=tcp", "--set", "rank_memory=private")):
                with self.subTest((fault, options)):
                    job = self.start_with(fault, *options)
                    self.order(job, 2, 1)
                    self.assert_ends(job, "node 2, .*signal 9.*no rank was on it any more, but it had "
                                          "not yet handed over all messages")

    def test_a_node_that_dies_just_after_it_has_handed_over_is_no_loss(self):
        for options in ((), ("--set", "rank_memory=private"), ("--set", "drivers=tcp")):
            with self.subTest(options):
                job = self.start_with("source:flushed", *options)
                self.order(job, 2, 1)
                self.assert_goes_on(job, [0, 1, 1])

    def test_a_rank_stays_when_the_destination_does_not_answer_in_time(self):
        for options in ((), ("--set", "rank_memory=private")):
            with self.subTest(options):
                job = self.start_with("none", "--set", "move_timeout=300ms", *options)
                pid = self.node_pid(job, 2)
                self.empty_node_2(job)
                os.kill(pid, signal.SIGSTOP)
                self.order(job, 1, 2)
                self.assertTrue(wait_until(lambda: "did not answer" in self.refusal_of(job, 1)))
                os.kill(pid, signal.SIGCONT)
                self.end.touch()
                output, errors = self.finish(job)
                self.assertEqual(job.returncode, 0, errors)
                self.assertEqual([rank["node"] for rank in self.report()["ranks"]], [0, 1, 0])
                for rank in range(3):
                    self.assertEqual(output.count(f"rank {rank} counted right"), 1, output)

    def test_a_rank_that_moves_itself_is_taken_back_from_a_node_that_does_not_map_it_in_time(self):
        job = self.start_with("none", "--set", "move_timeout=300ms", going=(1, 2))
        pid = self.node_pid(job, 2)
        self.empty_node_2(job)
        os.kill(pid, signal.SIGSTOP)
        self.go.touch()
        self.assertTrue(wait_until(lambda: "did not answer migration.gift" in self.refusal_of(job, 1)))
        os.kill(pid, signal.SIGCONT)  # It maps what it is not given any more.
        for node in (0, 2, 1):
            self.order_until_there(job, 1, node)
        self.end.touch()
        output, errors = self.finish(job)
        self.assertEqual(job.returncode, 0, errors)
        for rank in range(3):
            self.assertEqual(output.count(f"rank {rank} counted right"), 1, output)

    def test_a_rank_that_is_given_is_taken_back_from_a_node_that_does_not_take_it(self):
        # Node 2 keeps rank 2 mapped: it is given back without an offer, and not taken in time.
        job = self.start_with("none", "--set", "move_timeout=300ms")
        pid = self.node_pid(job, 2)
        self.empty_node_2(job)
        os.kill(pid, signal.SIGSTOP)
        self.order(job, 2, 2)
        self.assertTrue(wait_until(lambda: "did not answer migration.take" in self.refusal_of(job, 2)))
        os.kill(pid, signal.SIGCONT)  # What it finds now is not its own any more.
        self.order_until_there(job, 2, 1)
        self.assertEqual(self.places(job), [0, 1, 1])
        self.order_until_there(job, 2, 2)
        self.assertEqual(self.places(job), [0, 1, 2])
        self.end.touch()
        output, errors = self.finish(job)
        self.assertEqual(job.returncode, 0, errors)
        for rank in range(3):
            self.assertEqual(output.count(f"rank {rank} counted right"), 1, output)

    def test_an_empty_node_is_no_loss_once_everybody_knows_that_it_is_empty(self):
        for options in ((), ("--set", "drivers=tcp")):
            with self.subTest(options):
                job = self.start_with("none", *options)
                pid = self.node_pid(job, 2)
                self.empty_node_2(job)
                os.kill(pid, signal.SIGKILL)
                self.assert_goes_on(job, [0, 1, 0])

    def test_ranks_of_a_killed_node_end_the_job(self):
        job = self.start_with("none")
        pid = self.node_pid(job, 2)
        os.kill(pid, signal.SIGKILL)
        self.assert_ends(job, "node 2, .*signal 9.*rank 2 on it")


if __name__ == "__main__":
    main()
