"""Messages of all lengths in shared memory where the system forbids copies between processes: all of them, only to read, only
to write, and for one of the two processes."""

import os
import pathlib
import re

from moving import MPI, SECONDS, STERNA, MoveTest, main

NO_COPIES = pathlib.Path(os.environ["STERNA_NO_COPIES"])
LENGTHS = MPI / "mpi_test_lengths"
# What the log of a job's end says of a way on which none was made.
SAID = "node {}: net: info: ways to .*never copied directly"


class NoCopies(MoveTest):
    def run_lengths(self, *words):
        done = self.run_job(*[str(word) for word in words])
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        self.assertIn("No Errors", done.stdout)
        return done.stderr

    def of_both(self, forbidden, *options):
        return self.run_lengths(NO_COPIES, forbidden, STERNA, "run", "--timeout", f"{SECONDS}s", "--drivers", "shm",
                                "--set", "log=net=info", *options, LENGTHS)

    def test_messages_go_where_both_are_forbidden(self):
        errors = self.of_both("both", "-n", 2)
        self.assertRegex(errors, SAID.format(0))
        self.assertRegex(errors, SAID.format(1))

    def test_mobile_ranks_send_where_both_are_forbidden(self):
        self.of_both("both", "-n", 4, "--nodes", 2, "--set", "shuffle=7")

    def test_messages_go_where_to_read_is_forbidden(self):
        errors = self.of_both("read", "-n", 2)
        self.assertRegex(errors, SAID.format(0))
        self.assertRegex(errors, SAID.format(1))

    def test_messages_go_where_to_write_is_forbidden(self):
        self.assert_tried_once(self.of_both("write", "-n", 2), 2)

    def test_mobile_ranks_do_not_try_again_to_write_where_that_is_forbidden(self):
        errors = self.of_both("write", "-n", 2, "--nodes", 2)
        self.assert_tried_once(errors, 2)
        # Nothing of theirs is read either: the model of each way on which they have tried knows.
        for node in re.findall(r"node (\d): net: warning: direct copy", errors):
            self.assertRegex(errors, SAID.format(node))

    def assert_tried_once(self, errors, ways):
        tried = re.findall("direct copy to node .* failed, using packets", errors)
        self.assertLessEqual(len(tried), ways, errors[-2000:])

    def test_messages_go_where_one_process_may_not(self):
        for forbidden in ("both", "read", "write"):
            for first in (True, False):
                with self.subTest(forbidden=forbidden, first=first):
                    sides = [[NO_COPIES, forbidden, LENGTHS], [LENGTHS]]
                    one, other = sides if first else reversed(sides)
                    self.run_lengths(STERNA, "run", "--timeout", f"{SECONDS}s", "--drivers", "shm",
                                     "-n", 1, *one, ":", "-n", 1, *other)


if __name__ == "__main__":
    main()
