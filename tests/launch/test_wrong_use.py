"""Programs that use MPI wrongly, or give up: they say why, as processes and as mobile ranks."""

import pathlib
import subprocess
import tempfile

from harness import BIN, MPIEXEC, STERNA, LaunchTest, main

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char** argv) {
  if (!strcmp(argv[1], "late")) MPI_Barrier(MPI_COMM_WORLD);
  if (!strcmp(argv[1], "key")) MPI_Info_set(MPI_INFO_ENV, "", "a value");
  MPI_Init(&argc, &argv);
  if (!strcmp(argv[1], "abort")) { printf("the input is empty\n"); MPI_Abort(MPI_COMM_WORLD, 5); }
  MPI_Finalize();
  MPI_Init(&argc, &argv);
  return 0;
}
"""


class WrongUse(LaunchTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        source = pathlib.Path(cls.folder.name) / "program.c"
        source.write_text(PROGRAM)
        cls.program = str(source.with_suffix(""))
        subprocess.run([BIN / "mpicc", source, "-o", cls.program], check=True)
        cls.ways = ([cls.program], [MPIEXEC, "-n", 1, cls.program],
                    [STERNA, "run", "-n", 1, "--nodes", 1, cls.program])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def each_way(self, what):
        for way in self.ways:
            with self.subTest(way=way[:-1]):
                yield self.run_job(*way, what)

    def test_a_second_start_is_refused_with_a_sentence(self):
        for done in self.each_way("again"):
            self.assertEqual(done.returncode, 1)
            self.assertIn("MPI_Init was called after MPI_Finalize", done.stderr)

    def test_a_call_before_the_start_is_refused_with_a_sentence(self):
        for done in self.each_way("late"):
            self.assertEqual(done.returncode, 1)
            self.assertIn("MPI_Barrier was called before MPI_Init", done.stderr)

    def test_a_mistake_before_the_start_names_the_function_and_the_rule(self):
        for done in self.each_way("key"):
            self.assertEqual(done.returncode, 1)
            self.assertIn("MPI_Info_set failed before MPI_Init: MPI_ERR_INFO_KEY", done.stderr)
            self.assertIn("the key is null, empty or longer", done.stderr)

    def test_what_was_printed_before_an_abort_is_not_lost(self):
        for done in self.each_way("abort"):
            self.assertEqual(done.returncode, 5)
            self.assertEqual(done.stdout, "the input is empty\n")


if __name__ == "__main__":
    main()
