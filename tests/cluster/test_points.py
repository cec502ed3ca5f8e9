"""Balance points of programs whose ranks move between them: all ranks have called a point before one leaves it."""

import pathlib

from moving import CLUSTER, MoveTest, main


class Points(MoveTest):
    def run_points(self, ranks, nodes, balancer, steps, *more):
        done, report = self.run_moving("-n", ranks, "--nodes", nodes, "--balance", balancer,
                                       program=[CLUSTER / "cluster_points", steps,
                                                pathlib.Path(self.directory.name) / "calls", *more])
        self.assert_right(done, report)
        return report

    def test_of_ranks_that_move_themselves(self):
        report = self.run_points(6, 4, "refine", 300, 4)
        self.assertGreater(sum(rank["moves"] for rank in report["ranks"]), 300)

    def test_of_ranks_that_the_balancer_moves(self):
        self.run_points(8, 4, "greedy", 200)


if __name__ == "__main__":
    main()
