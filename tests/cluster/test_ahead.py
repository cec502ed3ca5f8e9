"""Moves that are prepared: while the rank computes the destination maps its memory before, and the node that
it leaves keeps it; both let go of it when the rank does not come."""

import os
import pathlib
import signal
import time

from moving import CLUSTER, SECONDS, MoveTest, main, wait_until


def memories(pid):
    """How many memories of ranks a node has mapped."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    return len({line.split()[4] for line in maps if "memfd:sterna-rank" in line})


class Ahead(MoveTest):
    """Rank 0 is on node 0 and computes until it is let go; ranks 1 and 2 are on nodes 1 and 2."""

    def start_busy(self):
        self.gate = pathlib.Path(self.directory.name) / "go"
        job = self.start_job(*self.words("-n", 3, "--nodes", 3,
                                         program=[CLUSTER / "cluster_busy", self.gate]))
        self.assertTrue(wait_until(lambda: self.places(job) == [0, 1, 2] and all(
            rank["state"] == "running" for rank in self.ranks(job))))
        self.pids = [self.node_pid(job, node) for node in range(3)]
        return job

    def assert_memories(self, expected):
        self.assertTrue(wait_until(lambda: [memories(pid) for pid in self.pids] == expected),
                        [memories(pid) for pid in self.pids])

    def finish(self, job, *places):
        self.gate.touch()
        output, errors = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0, errors)
        self.assertIn("No Errors", output)
        self.assertIn(self.report()["ranks"][0]["node"], places)

    def test_the_destination_maps_ahead_what_the_rank_still_uses(self):
        job = self.start_busy()
        self.assert_memories([1, 1, 1])
        self.order(job, 0, 1)
        self.assert_memories([1, 2, 1])
        self.assertEqual(self.places(job), [0, 1, 2])
        self.finish(job, 1)

    def test_a_later_order_lets_go_of_what_the_earlier_one_prepared(self):
        job = self.start_busy()
        self.order(job, 0, 1)
        self.assert_memories([1, 2, 1])
        self.order(job, 0, 2)
        self.assert_memories([1, 1, 2])
        self.finish(job, 2)

    def test_an_order_that_was_overtaken_is_not_followed(self):
        job = self.start_busy()
        self.order(job, 0, 1)
        self.assert_memories([1, 2, 1])
        os.kill(self.pids[2], signal.SIGSTOP)  # Does not say that it is prepared.
        self.order(job, 0, 2)
        self.assert_memories([1, 1, 1])
        self.gate.touch()  # The rank comes to a safe point, and waits there for the others.
        self.assertTrue(wait_until(lambda: self.ranks(job)[0].get("messages", 0) > 0))
        self.assertEqual(self.places(job), [0, 1, 2])
        os.kill(self.pids[2], signal.SIGCONT)
        self.finish(job, 0, 2)  # As soon as the others go on it may end.
        self.assertLessEqual(self.report()["ranks"][0]["moves"], 1)

    def test_an_order_to_stay_lets_go_of_what_was_prepared(self):
        job = self.start_busy()
        self.order(job, 0, 1)
        self.assert_memories([1, 2, 1])
        self.order(job, 0, 0)
        self.assert_memories([1, 1, 1])
        self.finish(job, 0)

    def test_orders_to_ranks_that_move_on_their_own_lose_none(self):
        # The order's preparation is under way, or dropped, while the rank leaves for the same node.
        finish = pathlib.Path(self.directory.name) / "end"
        job = self.start_job(*self.words("-n", 4, "--nodes", 2, "--set", "shuffle=1",
                                         program=[CLUSTER / "cluster_counting", finish]))
        self.assertTrue(wait_until(lambda: self.places(job) is not None))
        orders, end = 0, time.monotonic() + 5
        while orders < 8 or (orders < 400 and time.monotonic() < end):
            self.order(job, orders % 4, orders // 4 % 2)
            orders += 1
        finish.touch()
        output, errors = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0, errors)
        self.assertEqual(output.count("counted right"), 4)


class Kept(MoveTest):
    """One rank a node, three nodes; rank 0 is moved."""

    def start(self, program, *files):
        self.files = [pathlib.Path(self.directory.name) / file for file in files]
        job = self.start_job(*self.words("-n", 3, "--nodes", 3,
                                         program=[CLUSTER / program, *self.files]))
        self.assertTrue(wait_until(lambda: self.places(job) == [0, 1, 2] and all(
            rank["state"] == "running" for rank in self.ranks(job))))
        self.pids = [self.node_pid(job, node) for node in range(3)]
        self.assert_memories([1, 1, 1])
        return job

    def assert_memories(self, expected):
        self.assertTrue(wait_until(lambda: [memories(pid) for pid in self.pids] == expected),
                        [memories(pid) for pid in self.pids])

    def move(self, job, node):
        self.order(job, 0, node)
        self.assertTrue(wait_until(lambda: self.places(job)[0] == node))

    def test_the_node_that_a_rank_left_last_keeps_it_mapped(self):
        job = self.start("cluster_counting", "go")
        for node, expected in ((1, [1, 2, 1]), (0, [1, 2, 1]), (1, [1, 2, 1]),
                               (2, [0, 2, 2]),   # Node 0 has let go of it.
                               (1, [0, 2, 2]), (0, [1, 2, 1])):
            self.move(job, node)
            self.assert_memories(expected)
        self.files[0].touch()
        output, errors = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0, errors)
        self.assertEqual(output.count("counted right"), 3)

    def test_a_rank_that_ends_elsewhere_is_not_kept(self):
        job = self.start("cluster_early", "end", "go")
        self.move(job, 1)
        self.assert_memories([1, 2, 1])
        self.files[1].touch()
        self.assert_memories([0, 1, 1])
        self.files[0].touch()
        output, errors = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0, errors)
        self.assertIn("No Errors", output)


class Outlived(MoveTest):
    def test_an_order_ends_when_the_rank_has_moved_on_its_own(self):
        end, go = (pathlib.Path(self.directory.name) / name for name in ("end", "go"))
        job = self.start_job(*self.words("-n", 3, "--nodes", 3,
                                         program=[CLUSTER / "cluster_going", end, go, 0, 1]))
        self.assertTrue(wait_until(lambda: self.places(job) == [0, 1, 2] and all(
            rank["state"] == "running" for rank in self.ranks(job))))
        self.order(job, 2, 1)
        self.assertTrue(wait_until(lambda: self.places(job) == [0, 1, 1]))
        self.assertTrue(wait_until(lambda: not self.nodes(job)[2]["holds_messages"]))  # Nobody needs node 2.
        empty = self.node_pid(job, 2)
        os.kill(empty, signal.SIGSTOP)
        self.order(job, 0, 2)  # It is not asked before node 2 has answered.
        go.touch()
        self.assertTrue(wait_until(lambda: self.places(job) == [1, 1, 1]))
        self.order(job, 0, 0)
        self.assertTrue(wait_until(lambda: self.places(job) == [0, 1, 1]))
        os.kill(empty, signal.SIGCONT)
        self.order(job, 1, 2)  # When that has been followed node 2 has heard of rank 0, too.
        self.assertTrue(wait_until(lambda: self.places(job)[1] == 2))
        wait_until(lambda: self.places(job)[0] != 0, 0.3)
        self.assertEqual(self.places(job), [0, 2, 1])
        end.touch()
        output, errors = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0, errors)
        self.assertEqual(output.count("counted right"), 3)
        self.assertEqual([rank["moves"] for rank in self.report()["ranks"]], [2, 1, 1])


if __name__ == "__main__":
    main()
