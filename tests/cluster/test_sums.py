"""The same bits wherever ranks are: reductions of communicators of all sizes in processes, on one node, on
several, and while the ranks move."""


from moving import CLUSTER, MoveTest, main

RANKS = 19  # Eight and more for each of two nodes: crowded; no power of two.
WAYS = {
    "one node": ["--nodes", 1],
    "two nodes": ["--nodes", 2],
    "two nodes, moving": ["--nodes", 2, "--set", "shuffle=3"],
    "three nodes": ["--nodes", 3],
    "three nodes, moving, over tcp": ["--nodes", 3, "--set", "shuffle=5", "--set", "drivers=tcp"],
}


class Sums(MoveTest):
    def results(self, *way):
        done, report = self.run_moving("-n", RANKS, *way, program=[CLUSTER / "cluster_sums"])
        self.assert_right(done, report)
        lines = sorted(line for line in done.stdout.splitlines() if ": " in line)
        self.assertEqual(len(lines), RANKS - 1, done.stdout)
        return lines

    def test_the_bits_do_not_depend_on_where_ranks_are(self):
        processes = self.results()
        for name, way in WAYS.items():
            with self.subTest(name):
                self.assertEqual(self.results(*way), processes)


if __name__ == "__main__":
    main()
