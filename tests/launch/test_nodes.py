"""Node mode from the launcher's side: real programs as mobile ranks, and how they end."""

import os
import pathlib
import signal
import subprocess
import tempfile

from harness import BIN, SECONDS, STERNA, LaunchTest, main

PROGRAM = r"""
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* what = argv[1];
  for (int i = 0; i < 300; ++i) { printf("rank %d ", rank); printf("line %d\n", i); }
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (!strcmp(what, "abort") && rank == 2) MPI_Abort(MPI_COMM_WORLD, 42);
  if (!strcmp(what, "exit") && rank == 2) exit(9);
  if (!strcmp(what, "crash") && rank == 2) *(volatile int*)0x40 = 1;
  if (!strcmp(what, "read") && rank == 0) for (int c; (c = getchar()) != EOF;) putchar(c);
  if (!strcmp(what, "load")) ((void (*)(int))dlsym(dlopen(argv[2], RTLD_NOW), "say"))(rank);
  if (strcmp(what, "end") && strcmp(what, "read") && strcmp(what, "load")) for (;;) { MPI_Barrier(MPI_COMM_WORLD); usleep(1000); }
  MPI_Finalize();
  return 0;
}
"""

MODULE = r"""
#include <stdio.h>
void say(int rank) { printf("<module of %d>", rank); }
"""


class Nodes(LaunchTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        source = pathlib.Path(cls.folder.name) / "program.c"
        source.write_text(PROGRAM)
        cls.program = str(source.with_suffix(""))
        subprocess.run([BIN / "mpicc", source, "-o", cls.program], check=True)
        module = pathlib.Path(cls.folder.name) / "module.c"
        module.write_text(MODULE)
        cls.module = str(module.with_suffix(".so"))
        subprocess.run([BIN / "mpicc", "-shared", "-fPIC", module, "-o", cls.module], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def job(self, *what, **options):
        done = self.run_job(STERNA, "run", "-n", 4, "--nodes", 2, "--tag-output", self.program, *what,
                            **options)
        return done

    def test_a_good_job_prints_whole_lines_and_says_nothing_else(self):
        done = self.job("end")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(done.stdout.splitlines()),
                         sorted(f"[{r}] rank {r} line {i}" for r in range(4) for i in range(300)))

    def test_what_a_loaded_library_prints_comes_out(self):
        done = self.job("load", self.module)
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(4):
            self.assertEqual(done.stdout.count(f"<module of {rank}>"), 1, done.stdout[-400:])

    def test_standard_input_goes_to_rank_0(self):
        done = self.job("read", input="to whom?\n")
        self.assertIn("[0] to whom?\n", done.stdout)

    def test_abort_names_the_rank(self):
        done = self.job("abort")
        self.assertEqual(done.returncode, 42)
        self.assertRegex(done.stderr, r"rank 2 \(node 1, host .*MPI_Abort with code 42")

    def test_an_exit_before_finalize_names_the_rank(self):
        done = self.job("exit")
        self.assertEqual(done.returncode, 9)
        self.assertRegex(done.stderr, r"rank 2 \(node 1, host .*exited with code 9")

    def test_a_crash_names_rank_node_and_signal(self):
        done = self.job("crash")
        self.assertEqual(done.returncode, 128 + signal.SIGSEGV)
        self.assertRegex(done.stderr, r"rank 2 \(node 1, host .*signal 11 .*0x40")

    def test_a_killed_node_names_its_ranks(self):
        job = self.start_job(STERNA, "run", "-n", 4, "--nodes", 2, self.program, "hang")
        job.stdout.readline()
        os.kill(self.node_pid(job, 1), signal.SIGKILL)
        _, error = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 137)
        self.assertRegex(error, r"node 1, host .*signal 9 \(Killed\); ranks 2, 3 on it")


if __name__ == "__main__":
    main()
