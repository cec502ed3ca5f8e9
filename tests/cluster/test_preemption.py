"""More ranks than workers, and who has a worker computes, or sleeps in the kernel."""

import os

from moving import CLUSTER, MoveTest, main

MORE = 2 * (os.cpu_count() or 1) + 1  # Ranks of a node: more than it has workers.
SLICE = ["--set", "preemption=slice", "--set", "slice=1ms"]


class Preemption(MoveTest):
    def run_crowded(self, what, *options):
        done, report = self.run_moving("-n", MORE, "--nodes", 1, *options,
                                       program=[CLUSTER / "cluster_crowded", what,
                                                self.directory.name])
        self.assert_right(done, report)

    def test_ranks_that_compute_until_others_have_computed(self):
        self.run_crowded("spin", *SLICE)

    def test_a_rank_that_computes_lets_those_go_on_that_owe_a_barrier(self):
        self.run_crowded("owe", *SLICE)

    def test_ranks_that_sleep_in_the_kernel_until_others_have_called_it(self):
        self.run_crowded("pipe", "--set", "take_over=on")

    def test_the_same_with_slices(self):
        self.run_crowded("pipe", *SLICE)

    def test_storms_in_libraries(self):
        for name, way in {"slices": SLICE, "direct": SLICE + ["--set", "direct_messages=on"],
                          "moves": SLICE + ["--set", "shuffle=5"]}.items():
            with self.subTest(name):
                done, report = self.run_moving("-n", 2 * MORE, "--nodes", 2, *way,
                                               program=[CLUSTER / "cluster_storm"])
                self.assert_right(done, report)


if __name__ == "__main__":
    main()
