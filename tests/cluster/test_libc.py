"""Mobile ranks and their one libc: what it keeps when a rank has ended."""

from moving import CLUSTER, MoveTest, main


class Leaving(MoveTest):
    def test_nothing_of_a_rank_that_ended_is_used(self):
        for what in ("time_zone", "characters", "locale", "own_locale", "user_names", "host_names", "service_names",
                     "system_log", "thread"):
            with self.subTest(what):
                done, _ = self.run_moving("-n", 3, "--nodes", 1, program=[CLUSTER / "cluster_leaving", what])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(sorted(done.stdout.splitlines()), ["rank 1 well", "rank 2 well"])


if __name__ == "__main__":
    main()
