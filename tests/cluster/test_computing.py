"""All workers of a node compute, without a call, until what others want of the node has happened."""

import os
import pathlib

from moving import CLUSTER, SECONDS, MoveTest, main, wait_until

WAYS = {
    "shared memory": [],
    "shared memory, packets": ["--set", "shm_direct=off"],
    "tcp": ["--set", "drivers=tcp"],
    "copied ranks": ["--set", "rank_memory=private"],
}


class Computing(MoveTest):
    # One rank or more for each worker of a node.
    ranks_of_job = 2 * (os.cpu_count() or 1)

    def flag(self):
        return pathlib.Path(self.directory.name) / "flag"

    def test_large_sends_end_while_their_receiver_computes(self):
        for name, way in WAYS.items():
            with self.subTest(name):
                done, report = self.run_moving("-n", self.ranks_of_job, "--nodes", 2, *way,
                                               program=[CLUSTER / "cluster_computing", self.flag()])
                self.assert_right(done, report)
                self.flag().rmdir()

    def test_a_node_whose_workers_compute_is_listed(self):
        job = self.start_job(*self.words("-n", self.ranks_of_job, "--nodes", 1,
                                         program=[CLUSTER / "cluster_computing", self.flag(),
                                                  "all"]))
        # More of the processor than before the barrier: the node has answered since.
        self.assertTrue(wait_until(lambda: sum(r.get("cpu_seconds", 0)
                                               for r in self.ranks(job)) > 0.3))
        self.flag().mkdir()
        out, errors = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0, errors)
        self.assertIn("No Errors", out)


if __name__ == "__main__":
    main()
