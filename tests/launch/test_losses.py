"""A process that dies in a job that goes on without it (--on-loss go_on): all that waits for it ends with an error, the
living meet each other as before, and the job ends with the code of the loss.

Over shared memory and TCP, as processes and as mobile ranks: the programs say "not true" where that does not hold.
"""

import os
import pathlib
import signal
import unittest

from harness import PROBE, SECONDS, STERNA, LaunchTest, build_program, main

MPI_PROGRAM = os.environ["STERNA_LOST_MPI"]
C_PROGRAM = os.environ["STERNA_LOST_CAPI"]
GOES_ON = ("--on-loss", "go_on")
# Looks each 10 ms for a message of a rank that is dead: polls are few, and are to hear of it.
LOOKS = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
enum { kLooks = 300 };
int main(int argc, char **argv) {
  int rank, flag = 0, error = MPI_SUCCESS, looks = 0;
  char byte = 0;
  const int by_probe = strcmp(argv[1], "probe") == 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Sendrecv(&byte, 1, MPI_CHAR, 1 - rank, 0, &byte, 1, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) raise(SIGKILL);
  if (!by_probe) MPI_Irecv(&byte, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request);
  for (; looks < kLooks && error == MPI_SUCCESS; ++looks) {
    for (double begin = MPI_Wtime(); MPI_Wtime() - begin < 0.01;) {}
    error = by_probe ? MPI_Iprobe(1, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE)
                     : MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  }
  if (looks == kLooks) printf("not true: it hears of the loss\n");
  printf("rank %d goes on\n", rank);
  fflush(stdout);
  MPI_Finalize();
}
"""


class Losses(LaunchTest):
    @classmethod
    def setUpClass(cls):
        build_program(cls, LOOKS)

    def lose(self, program, count, survivors, *flags, argument="goes on"):
        done = self.run_job(STERNA, "run", "--timeout", SECONDS, "-n", count, *GOES_ON, *flags, program, argument)
        text = done.stdout + done.stderr
        self.assertNotIn("not true", text)
        self.assertIn("was ended by signal 9 (Killed)", done.stderr)
        self.assertIn("the job goes on without it", done.stderr)
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, text)
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(survivors))

    @staticmethod
    def others(*ranks):
        return [f"rank {rank} goes on" for rank in ranks]

    def test_processes_over_shared_memory_go_on(self):
        self.lose(MPI_PROGRAM, 4, self.others(0, 2, 3))

    def test_the_one_that_is_left_of_two_goes_on(self):
        self.lose(MPI_PROGRAM, 2, self.others(0))

    def test_more_processes_than_processors_go_on(self):
        self.lose(MPI_PROGRAM, 12, self.others(0, *range(2, 12)))

    def test_processes_over_tcp_go_on(self):
        self.lose(MPI_PROGRAM, 3, self.others(0, 2), "--drivers", "tcp")
        self.lose(MPI_PROGRAM, 9, self.others(0, *range(2, 9)), "--drivers", "tcp")

    def test_who_looks_now_and_then_hears_of_it(self):
        for argument in ("test", "probe"):
            for driver in ("shm", "tcp"):
                with self.subTest(argument, driver=driver):
                    self.lose(self.program, 2, self.others(0), "--drivers", driver, argument=argument)

    def test_calls_and_messages_of_a_dead_node_end(self):
        self.lose(C_PROGRAM, 3, ["rank 0 heard of it"])
        self.lose(C_PROGRAM, 3, ["rank 0 heard of it"], "--drivers", "tcp")

    @unittest.skipUnless(os.environ.get("STERNA_TEST_RANKS"), "this build runs no mobile ranks")
    def test_mobile_ranks_of_other_nodes_go_on(self):
        self.lose(MPI_PROGRAM, 6, self.others(0, 2, 3, 5), "--nodes", 3, "--map", "cyclic")
        self.lose(MPI_PROGRAM, 6, self.others(0, 2, 3, 5), "--nodes", 3, "--map", "cyclic", "--drivers", "tcp")

    def test_an_exit_before_finalize_is_a_loss(self):
        done = self.run_job(STERNA, "run", "-n", 3, *GOES_ON, PROBE, "init", "1=exit:4", "finalize")
        self.assertEqual(done.returncode, 4)
        self.assertIn("exited with code 4 before MPI_Finalize; the job goes on", done.stderr)

    def test_a_crash_is_told_and_the_first_loss_gives_the_code(self):
        done = self.run_job(STERNA, "run", "-n", 3, *GOES_ON, PROBE, "init", "2=crash", "finalize")
        self.assertEqual(done.returncode, 128 + signal.SIGSEGV)
        self.assertIn("signal 11 (Segmentation fault)", done.stderr)

    def test_who_dies_before_all_have_met_ends_the_job(self):
        first = pathlib.Path(self.environment["XDG_RUNTIME_DIR"]) / "first"
        done = self.run_job(STERNA, "run", "--timeout", SECONDS, "-n", 2, *GOES_ON, "sh", "-c",
                            f'mkdir {first} 2>/dev/null && kill -9 $$; exec "$@"', "sh", PROBE, "init", "hang")
        self.assertNotIn(done.returncode, (0, 124), done.stderr)

    def test_by_default_a_loss_ends_the_job(self):
        done = self.run_job(STERNA, "run", "-n", 3, PROBE, "init", f"1=kill:{int(signal.SIGKILL)}", "hang")
        self.assertEqual(done.returncode, 128 + signal.SIGKILL)
        self.assertNotIn("goes on", done.stderr)

    def test_another_word_is_refused(self):
        done = self.run_job(STERNA, "run", "--on-loss", "weep", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--on-loss", done.stderr)


if __name__ == "__main__":
    main()
