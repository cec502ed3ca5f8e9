"""sterna doctor: what it says about a job that is well, one that is not, and one that is not there."""

import json
import os
import signal

from moving import STERNA, CountingTest, main, wait_until


class Doctor(CountingTest):
    def about_job(self, job):
        """What is said about it, each with its verdict; and that bad news are told by the code."""
        done = self.run_job(STERNA, "doctor", job, "--json")
        findings = json.loads(done.stdout)
        is_bad = any(one["verdict"] == "BAD" for one in findings)
        self.assertEqual(done.returncode, 1 if is_bad else 0, done.stdout)
        self.assertIn("processors", [one["about"] for one in findings])
        return [(one["verdict"], one["text"]) for one in findings if one["about"] == f"job {job}"]

    def test_a_job_that_is_well_is_good(self):
        # A node that waits for a processor may be late to answer once.
        said = []
        self.assertTrue(wait_until(lambda: said.extend(self.about_job(self.job.pid)) or said[-1][0] == "good"), said)
        verdict, text = said[-1]
        wrong = [text for verdict, text in said if verdict == "BAD" and "does not answer" not in text]
        self.assertEqual(wrong, [])
        self.assertIn("2 nodes", text)

    def test_a_node_that_is_stopped_is_named(self):
        pid = self.node_pid(self.job, 1)
        os.kill(pid, signal.SIGSTOP)
        try:
            said = []
            # It may have answered just before it was stopped.
            self.assertTrue(wait_until(lambda: said.extend(self.about_job(self.job.pid)) or
                                       any(verdict == "note" for verdict, _ in said)))
        finally:
            os.kill(pid, signal.SIGCONT)
        verdict, text = said[-1]
        self.assertIn("node 1", text)
        self.assertIn(f"process {pid}", text)

    def test_a_launcher_that_is_stopped_is_told(self):
        os.kill(self.job.pid, signal.SIGSTOP)
        try:
            (verdict, text), = self.about_job(self.job.pid)
        finally:
            os.kill(self.job.pid, signal.SIGCONT)
        self.assertEqual(verdict, "BAD")
        self.assertIn("does not answer", text)

    def test_a_job_that_is_not_there_is_told(self):
        (verdict, text), = self.about_job(1)
        self.assertEqual(verdict, "BAD")
        self.assertIn("not running", text)
        self.assertEqual(self.run_job(STERNA, "doctor", "--nothing").returncode, 2)


if __name__ == "__main__":
    main()
