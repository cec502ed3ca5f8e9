"""Mobile ranks and their one libc: what it keeps when a rank has ended, and the standard streams of ranks."""

import pathlib

from moving import CLUSTER, MoveTest, main


class Leaving(MoveTest):
    def test_nothing_of_a_rank_that_ended_is_used(self):
        for what in ("time_zone", "locale", "own_locale", "user_names", "host_names", "service_names", "system_log",
                     "thread"):
            with self.subTest(what):
                done, _ = self.run_moving("-n", 3, "--nodes", 1, program=[CLUSTER / "cluster_leaving", what])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(sorted(done.stdout.splitlines()), ["rank 1 well", "rank 2 well"])


class StandardStreams(MoveTest):
    def run_standard(self, *words, **options):
        done = self.run_job(*self.words("-n", 2, "--nodes", 1, program=[CLUSTER / "cluster_standard", *words]),
                            **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_go_to_files_and_come_from_them(self):
        folder = pathlib.Path(self.directory.name)
        (folder / "in").write_text("from a file\n")
        out = self.run_standard("reopen", folder)
        self.assertEqual(sorted(out.splitlines()), ["before 0", "before 1"])
        for rank in (0, 1):
            self.assertEqual((folder / f"out.{rank}").read_text(), f"line of {rank}\nwritten\nadded\n")

    def test_are_closed_and_nothing_of_them_is_used(self):
        self.assertEqual(sorted(self.run_standard("close").splitlines()),
                         ["by fdopen", "by fdopen", "hello 0", "hello 1"])

    def test_take_wide_characters(self):
        expected = [line for rank in (0, 1) for line in
                    (f"wide \u00e4 {rank}", f"fwprintf {rank}", "\u4ee3", "p", "fputws", "narrow")]
        self.assertEqual(sorted(self.run_standard("write").splitlines()), sorted(expected))

    def test_give_wide_characters(self):
        self.assertEqual(self.run_standard("read", input="\u00e4 line\nw\u00f6rd\n"), "")


if __name__ == "__main__":
    main()
