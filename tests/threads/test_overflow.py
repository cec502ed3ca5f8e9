"""A rank that overflows its stack is named, with the size of the stack and the option for it."""

import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "runner"))
from runner import main  # noqa: E402  (runner/runner.py)

STERNA = os.path.join(os.environ["STERNA_BIN"], "sterna")
PROGRAM = os.environ["STERNA_OVERFLOW"]


def job(*words):
    return subprocess.run([STERNA, "run", "-n", "2", "--nodes", "1", *words], text=True,
                          capture_output=True, timeout=240)


class Overflow(unittest.TestCase):
    def test_the_thread_its_size_and_the_option_are_named(self):
        done = job("--stack-size", "1M", PROGRAM)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("stack overflow in thread 'rank 1'", done.stderr)
        size = int(done.stderr.split("its stack has ")[1].split()[0])
        self.assertLess(abs(size - (1 << 20)), 1 << 16)
        self.assertIn("--stack-size", done.stderr)

    def test_a_larger_stack_is_enough(self):
        depth = "3000"  # Of 1 KiB and a little.
        self.assertIn("stack overflow", job("--stack-size", "1M", PROGRAM, depth).stderr)
        done = job("--stack-size", "16M", PROGRAM, depth)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    main()
