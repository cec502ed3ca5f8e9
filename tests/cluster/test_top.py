"""sterna top: for programs, and in a terminal, which it gives back as it was."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from moving import SECONDS, STERNA, CountingTest, wait_until

LEAVES = b"\x1b[?1049l"


class Top(CountingTest):
    def top(self, *words):
        return self.run_job(STERNA, "top", self.job.pid, *words)

    def test_one_look_for_programs(self):
        looks = []

        def each_has_sent():
            """Between two looks; on a busy machine a rank may not have had its turn."""
            done = self.top("--once", "--json", "-i", 0.3)
            self.assertEqual(done.returncode, 0, done.stderr)
            looks.append(json.loads(done.stdout))
            return all(rank["messages_per_second"] > 0 for rank in looks[-1]["ranks"])

        self.assertTrue(wait_until(each_has_sent), looks[-1])
        look = looks[-1]
        self.assertEqual(look["job"], self.job.pid)
        self.assertEqual([rank["node"] for rank in look["ranks"]], [0, 0, 1, 1])
        for rank in look["ranks"]:
            self.assertIn(rank["activity"], ("running", "ready", "waiting"))
            self.assertTrue(0 <= rank["use"] <= 1)
        for node in look["nodes"]:
            self.assertEqual(len(node["use"]), node["workers"])
            self.assertGreaterEqual(node["threads"], 2)
            self.assertTrue(all(0 <= use <= 1 for use in node["use"]))

    def test_one_look_for_people_shows_each_rank_and_a_move(self):
        self.assertEqual(self.order(self.job, 1, 1).returncode, 0)
        self.assertTrue(wait_until(lambda: self.places(self.job) == [0, 1, 1, 1]))
        done = self.top("--once", "-i", 0.1)
        rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()
                if line.strip() and line.split()[0].isdigit()}
        self.assertEqual(sorted(rows), ["0", "1", "2", "3"], done.stdout)
        self.assertEqual([rows[str(rank)][1] for rank in range(4)], ["0", "1", "1", "1"])
        self.assertIn("1 moves", done.stdout)

    def test_without_a_number_it_is_the_only_job(self):
        done = self.run_job(STERNA, "top", "--once", "--json", "-i", 0.1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["job"], self.job.pid)

    def test_a_job_that_is_not_there_is_told(self):
        done = self.run_job(STERNA, "top", 1, "--once")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no job 1", done.stderr)
        self.assertEqual(self.run_job(STERNA, "top", "--interval", "never").returncode, 2)

    # --- In a terminal ---------------------------------------------------------------------------

    def start_in_terminal(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, theirs)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.terminal, self.theirs, self.screen = ours, theirs, b""
        top = subprocess.Popen([STERNA, "top", str(self.job.pid), "-i", "0.1"], stdin=theirs,
                               stdout=theirs, stderr=theirs, env=self.environment,
                               start_new_session=True)
        self.addCleanup(top.wait)
        self.addCleanup(top.kill)
        return top

    def read_until(self, text):
        end = time.monotonic() + SECONDS
        while text not in self.screen and time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.screen += os.read(self.terminal, 65536)
        self.assertIn(text, self.screen)
        self.screen = self.screen.partition(text)[2]

    def assert_restored(self):
        self.read_until(LEAVES)
        self.assertTrue(wait_until(lambda: termios.tcgetattr(self.theirs) == self.before))

    def test_keys_choose_what_is_shown_and_q_leaves(self):
        top = self.start_in_terminal()
        self.read_until(b"RANK")
        self.assertNotEqual(termios.tcgetattr(self.theirs), self.before)
        os.write(self.terminal, b"b")
        self.read_until(b"worker 0")
        os.write(self.terminal, b"?")
        self.read_until(b"order by use")
        os.write(self.terminal, b"?p")
        self.read_until(b"stands still")
        os.write(self.terminal, b"pt")
        self.read_until(b"RANK")
        os.write(self.terminal, b"q")
        self.assertEqual(top.wait(timeout=SECONDS), 0)
        self.assert_restored()

    def test_the_terminal_is_given_back_after_signals_and_faults(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV):
            with self.subTest(number.name):
                top = self.start_in_terminal()
                self.read_until(b"RANK")
                top.send_signal(number)
                code = top.wait(timeout=SECONDS)
                self.assertEqual(code, -number if number == signal.SIGSEGV else 0)
                self.assert_restored()

    def test_the_terminal_is_given_back_while_it_is_stopped(self):
        top = self.start_in_terminal()
        self.read_until(b"RANK")
        top.send_signal(signal.SIGTSTP)
        self.assert_restored()
        # The terminal is given back before it stops: a SIGCONT in between would be lost.
        os.waitid(os.P_PID, top.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        top.send_signal(signal.SIGCONT)
        self.read_until(b"\x1b[?1049h")
        os.write(self.terminal, b"q")
        self.assertEqual(top.wait(timeout=SECONDS), 0)
        self.assert_restored()

    def test_it_leaves_when_the_job_has_ended(self):
        top = self.start_in_terminal()
        self.read_until(b"RANK")
        self.job.send_signal(signal.SIGINT)
        self.assertEqual(top.wait(timeout=SECONDS), 0)
        self.read_until(b"the job has ended")


if __name__ == "__main__":
    unittest.main()
