"""Jobs that are recorded, and run again without their network; among them one that is killed."""

import pathlib
import tempfile

from harness import SECONDS, STERNA, LaunchTest, build_program, main

PROGRAM = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
/* Ranks hand on what they make of what they got; the second is killed in the middle if that is asked for. */
int main(int argc, char **argv) {
  int rank, size, mine, sum = 0;
  static char block[300000];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  mine = rank + 1;
  for (int i = 0; i < 100; ++i) {
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    mine = (3 * sum + rank) % 1009;
    memset(block, mine, sizeof block);
    MPI_Bcast(block, i % 10 == 0 ? sizeof block : 100, MPI_CHAR, i % size, MPI_COMM_WORLD);
    mine += block[99];
    if (i == 60 && rank == 1) {
      fprintf(stderr, "rank 1 had %d after 60\n", mine);
      if (argc > 1 && strcmp(argv[1], "die") == 0) raise(SIGKILL);
      if (argc > 1 && strcmp(argv[1], "wait") == 0)
        MPI_Recv(&mine, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  printf("rank %d of %d: %d\n", rank, size, mine);
  MPI_Finalize();
}
"""


class Replay(LaunchTest):
    @classmethod
    def setUpClass(cls):
        build_program(cls, PROGRAM)

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.recording = pathlib.Path(folder.name) / "run"

    def run_with(self, drivers, *words):
        return self.run_job(STERNA, "run", "--timeout", f"{SECONDS}s", "-n", 3, "--drivers", drivers, *words)

    def record(self, *words):
        return self.run_with(f"record(tcp,file={self.recording})", self.program, *words)

    def replay(self, *words, options=()):
        return self.run_with("replay", "--set", f"replay_file={self.recording}", "--set",
                             "log=net=info", *options, self.program, *words)

    def test_a_job_runs_again_without_its_network(self):
        recorded = self.record()
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        again = self.replay()
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(sorted(again.stdout.splitlines()), sorted(recorded.stdout.splitlines()))
        self.assertEqual(len(again.stdout.splitlines()), 3)
        self.assertRegex(again.stderr, r"node 2: net: info: driver replay: replayed (\d+) of \1 events")

    def test_a_killed_node_comes_to_the_same_end(self):
        recorded = self.record("die")
        self.assertNotEqual(recorded.returncode, 0)
        last = [line for line in recorded.stderr.splitlines() if line.startswith("rank 1 had")]
        self.assertEqual(len(last), 1, recorded.stderr)
        # The others, who had lost it, do not end the job before.
        again = self.replay("die", options=["--set", "replay_patience=0"])
        self.assertNotEqual(again.returncode, 0)
        self.assertIn(last[0], again.stderr.splitlines())

    def test_who_does_not_go_on_as_recorded_hears_that_it_does_not(self):
        self.assertEqual(self.record().returncode, 0)
        again = self.replay("wait", options=["--set", "replay_patience=1s"])
        self.assertNotEqual(again.returncode, 0)
        self.assertRegex(again.stderr, r"node 1: .*is lost: node 1 does not send the \d+ B to node \d that the recording has next")
        self.assertNotIn("the job has not ended", again.stderr)
        self.assertNotIn("rank 1 of 3", again.stdout)

    def test_who_goes_on_where_the_recording_ends_hears_that_it_does(self):
        self.assertEqual(self.record().returncode, 0)
        second = self.recording.with_suffix(".1")
        second.write_bytes(second.read_bytes()[:second.stat().st_size // 2])
        again = self.replay(options=["--set", "replay_patience=1s"])
        self.assertNotEqual(again.returncode, 0)
        self.assertRegex(again.stderr, "node 1: .*is lost: the recording ends here")
        self.assertNotIn("the job has not ended", again.stderr)
        self.assertNotIn("rank 1 of 3", again.stdout)


if __name__ == "__main__":
    main()
