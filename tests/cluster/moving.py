"""What the tests of moves share: jobs of mobile ranks, their reports, and orders to move."""

import json
import os
import pathlib
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "launch"))
from harness import SECONDS, LaunchTest, STERNA, main, run, wait_until  # noqa: E402,F401  (launch/harness.py)

CLUSTER = pathlib.Path(os.environ["STERNA_CLUSTER_PROGRAMS"])
MPI = pathlib.Path(os.environ["STERNA_MPI_PROGRAMS"])


class MoveTest(LaunchTest):
    """Runs jobs with a report; every job has ended, with nothing left behind, when a test ends."""

    def setUp(self):
        super().setUp()
        self.directory = tempfile.TemporaryDirectory()
        self.report_file = pathlib.Path(self.directory.name) / "report.json"
        self.addCleanup(self.directory.cleanup)

    def words(self, *options, program):
        program = [str(word) for word in program]
        return [STERNA, "run", "--timeout", f"{SECONDS}s", "--json", str(self.report_file),
                *[str(option) for option in options], *program]

    def run_moving(self, *options, program):
        """The finished job and its report."""
        done = self.run_job(*self.words(*options, program=program))
        return done, self.report()

    def report(self):
        return json.loads(self.report_file.read_text()) if self.report_file.exists() else None

    def assert_right(self, done, report):
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        self.assertIn("No Errors", done.stdout)
        self.assertIsNotNone(report)


    def order(self, process, rank, node):
        return self.run_job(STERNA, "move", process.pid, rank, node)

    def ranks(self, process):
        return self.job_of(process).get("ranks", [])

    def nodes(self, process):
        return self.job_of(process).get("nodes", [])

    def places(self, process):
        """The node of each rank, or None when the job is not to be seen."""
        ranks = self.ranks(process)
        return [rank["node"] for rank in ranks] if ranks else None


class CountingTest(MoveTest):
    """`self.job`: four ranks on two nodes that count until they are interrupted: nobody makes the file that
    would end them."""

    def setUp(self):
        super().setUp()
        self.job = self.start_job(*self.words("-n", 4, "--nodes", 2,
                                              program=[CLUSTER / "cluster_counting", self.directory.name + "/end"]))
        self.assertTrue(wait_until(lambda: len(self.ranks(self.job)) == 4 and all(
            "activity" in rank for rank in self.ranks(self.job))))

    def tearDown(self):
        self.job.send_signal(signal.SIGINT)
        self.job.communicate(timeout=SECONDS)
        super().tearDown()
