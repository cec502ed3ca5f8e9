"""A policy that loses what it was given, in a job that runs: the rule and the bubble are named by those who look."""

import json
import os
import pathlib
import tempfile
import unittest

from moving import CLUSTER, SECONDS, STERNA, LaunchTest, main, wait_until


class LosingTest(LaunchTest):
    """The job runs with SETTINGS; SAYS is what an idle worker says of the bubble."""

    SETTINGS = ()
    SAYS = "sched: policies took 1 entities and did not put them back, the first was "

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        folder = pathlib.Path(directory.name)
        self.end, self.out, self.err = folder / "end", folder / "out", folder / "err"
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.job = self.start_job(STERNA, "run", *self.SETTINGS, "--timeout", f"{SECONDS}s",
                                      CLUSTER / "cluster_losing", self.end, stdout=out, stderr=err)
        self.addCleanup(self.job.wait)
        self.addCleanup(self.job.kill)
        self.assertTrue(wait_until(lambda: self.out.read_text().endswith("\n") or self.job.poll() is not None))
        words = self.out.read_text().split()
        self.assertEqual(words[:1], ["lost"], self.err.read_text())
        self.bubble = f"bubble {words[1]}"

    def tearDown(self):
        """The bubble was put back where it was: its thread has run, and the program ends as it should."""
        self.end.touch()
        self.assertEqual(self.job.wait(timeout=SECONDS), 0, self.err.read_text())
        self.assertIn("No Errors", self.out.read_text())
        super().tearDown()


class Losing(LosingTest):
    def test_who_reads_the_output_is_told_at_once(self):
        self.assertTrue(wait_until(lambda: f"a policy took {self.bubble} and did not put it back" in
                                   self.err.read_text()), self.err.read_text())

    def test_the_doctor_names_the_bubble_and_the_rule(self):
        said = []

        def is_told():
            done = self.run_job(STERNA, "doctor", self.job.pid, "--json")
            said.extend(one["text"] for one in json.loads(done.stdout) if one["verdict"] == "BAD" and
                        one["about"] == f"job {self.job.pid}")
            return done.returncode == 1 and any(
                "did not put them back" in text and self.bubble in text for text in said)

        self.assertTrue(wait_until(is_told), said)

    @unittest.skipUnless(os.environ.get("STERNA_DEBUG") == "1", "the setting is on in debug builds only")
    def test_a_debug_build_looks_by_itself(self):
        self.assertTrue(wait_until(lambda: self.SAYS + self.bubble in self.err.read_text()), self.err.read_text())


class LosingWithAudit(LosingTest):
    """What a debug build does by itself, in any build."""

    SETTINGS = ("--set", "audit=50ms")

    def test_an_idle_worker_looks_again_and_again(self):
        self.assertTrue(wait_until(lambda: self.err.read_text().count(self.SAYS + self.bubble) > 1),
                        self.err.read_text())


class LosingWithoutAudit(LosingTest):
    SETTINGS = ("--set", "audit=0")

    def test_nobody_looks_who_is_not_to(self):
        # Asked, it is told; by itself it says nothing, however idle it was meanwhile.
        self.assertTrue(wait_until(lambda: self.run_job(STERNA, "doctor", self.job.pid).returncode == 1))
        self.assertNotIn(self.SAYS, self.err.read_text())


if __name__ == "__main__":
    main()
