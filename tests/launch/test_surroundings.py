"""Surroundings that a job does not expect: few descriptors, no HOME, nowhere to write, odd names, a node that
is stopped. The job runs all the same; nothing hangs."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import BIN, SECONDS, STERNA, LaunchTest, main, processes_with, wait_until

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  enum { kLarge = 1 << 20 };
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char* in = malloc(kLarge);
  char* out = calloc(kLarge, 1);
  out[kLarge - 1] = (char)(rank + 1);
  MPI_Sendrecv(out, kLarge, MPI_CHAR, (rank + 1) % size, 1, in, kLarge, MPI_CHAR, (rank + size - 1) % size, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (in[kLarge - 1] != (char)((rank + size - 1) % size + 1)) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Sendrecv(NULL, 0, MPI_CHAR, rank, 2, NULL, 0, MPI_CHAR, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (argc > 1) { puts("waits"); fflush(stdout); for (;;) pause(); }
  MPI_Finalize();
  printf("well %d\n", rank);
  return 0;
}
"""


def can_unshare():
    return shutil.which("unshare") and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


class Surroundings(LaunchTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name) / "a folder, \u00fcn\u00ef\u4ee3"
        folder.mkdir()
        (folder / "p.c").write_text(PROGRAM)
        cls.program = str(folder / "the program \u00e9")
        subprocess.run([BIN / "mpicc", folder / "p.c", "-o", cls.program], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def each_way(self, count=3):
        for way in (["-n", count], ["-n", count, "--drivers", "tcp"], ["-n", count, "--nodes", 2]):
            with self.subTest(way=way):
                yield [STERNA, "run", *way, self.program]

    def assert_well(self, done, count=3):
        self.assertEqual((done.returncode, sorted(done.stdout.split("\n"))[1:]),
                         (0, [f"well {rank}" for rank in range(count)]), done.stderr)

    def in_shell(self, setup, words, **options):
        return self.run_job("sh", "-c", f'{setup}; exec "$@"', "sh", *words, **options)

    def test_names_with_blanks_and_other_letters(self):
        for words in self.each_way():
            self.assert_well(self.run_job(*words))

    def test_without_home_and_any_variable(self):
        for words in self.each_way():
            self.environment = {"STERNA_TEST_MARK": self.marker.partition("=")[2]}
            self.assert_well(self.run_job(*words))

    def test_few_descriptors_are_enough(self):
        for words in self.each_way():
            self.assert_well(self.in_shell("ulimit -n 64", words))

    def test_a_limit_of_files_bounds_no_memory(self):
        for words in self.each_way():
            self.assert_well(self.in_shell("ulimit -S -f 0", words))
            done = self.in_shell("ulimit -f 100", words)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("ulimit -f", done.stderr)

    @unittest.skipUnless(can_unshare(), "other mounts need root and unshare")
    def test_nowhere_to_write(self):
        hide = ["unshare", "-m", "sh", "-c",
                "for d in /dev/shm /var/tmp /run; do mount -t tmpfs -o ro none $d || exit 99; done; exec \"$@\"",
                "sh"]
        self.environment.pop("XDG_RUNTIME_DIR", None)
        self.environment["TMPDIR"] = "/nowhere"
        for words in self.each_way():
            self.assert_well(self.run_job(*hide, *words))

    def test_a_stopped_node_does_not_keep_a_job_from_its_end(self):
        for way in (["-n", 2], ["-n", 2, "--nodes", 2]):
            with self.subTest(way=way):
                job = self.start_job(STERNA, "run", *way, self.program, "wait")
                job.stdout.readline()
                word = b"sterna-node" if "--nodes" in way else self.program.encode()
                ours = lambda: sorted(p for p, c in processes_with(self.marker).items()
                                      if word in c.split(b"\0")[0])
                self.assertTrue(wait_until(lambda: len(ours()) == 2))
                os.kill(ours()[1], signal.SIGSTOP)
                job.send_signal(signal.SIGINT)
                job.communicate(timeout=SECONDS)
                self.assertEqual(job.returncode, 130)


if __name__ == "__main__":
    main()
