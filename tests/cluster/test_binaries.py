"""Nodes whose binaries are not the same: the job says what differs, and runs on without moves. And containers
that forbid a process to turn address randomisation off: ranks move all the same."""

import os
import pathlib
import shutil
import stat
import subprocess
import unittest

from moving import CLUSTER, MPI, STERNA, MoveTest, main

BIN = pathlib.Path(os.environ["STERNA_BIN"])
SANDBOX = pathlib.Path(os.environ["STERNA_NO_PERSONALITY"])

# Host b has other files at the places that REPLACED names (pairs: place, file).
SSH = """#!/bin/sh
while :; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done
host=$1
shift
cd /
if [ "$host" = b ]; then
  exec unshare -m sh -c 'set -- $REPLACED; while [ $# -gt 0 ]; do mount --bind "$2" "$1" || exit 1; shift 2; done
    exec sh -c "$WORDS"'
fi
exec sh -c "$*"
"""

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static int filler[VARIANT * 3000 + 7];
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  filler[rank] = rank;
  for (int i = 0; i < 300; ++i) {
    MPI_Allreduce(&filler[rank], &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  if (rank == 0) printf("No Errors\n");
  MPI_Finalize();
  return 0;
}
"""


def can_replace():
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


@unittest.skipUnless(shutil.which("unshare") and can_replace(), "another view of files needs root and unshare")
class OtherBinaries(MoveTest):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.directory.name)
        ssh = folder / "ssh"
        ssh.write_text(SSH.replace('"$WORDS"', "\"$WORDS\""))
        ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
        self.environment["STERNA_SSH"] = str(ssh)
        self.environment["WORDS"] = f"exec '{STERNA}' agent"
        self.programs = []
        for variant in (1, 2):
            source = folder / f"program{variant}.c"
            source.write_text(PROGRAM.replace("VARIANT", str(variant)))
            self.programs.append(folder / f"program{variant}")
            subprocess.run([BIN / "mpicc", source, "-o", self.programs[-1]], check=True)

    def run_with(self, *replaced):
        self.environment["REPLACED"] = " ".join(str(path) for path in replaced)
        return self.run_moving("-n", 4, "--nodes", 2, "--hosts", "a,b", "--set", "shuffle=2",
                               program=[self.programs[0]])

    def assert_runs_without_moves(self, done, report, naming):
        self.assert_right(done, report)
        self.assertRegex(done.stderr, r"ranks cannot move between nodes [01] and [01]: .*binaries")
        self.assertRegex(done.stderr, f"Here: {naming} is .*; there: {naming} is ")
        self.assertEqual([rank["moves"] for rank in report["ranks"]], [0, 0, 0, 0])

    def test_the_same_binaries_let_ranks_move(self):
        done, report = self.run_with()
        self.assert_right(done, report)
        self.assertNotIn("cannot move between", done.stderr)
        self.assertGreater(sum(rank["moves"] for rank in report["ranks"]), 0)

    def test_another_build_of_the_program_is_named_and_nothing_moves(self):
        self.assert_runs_without_moves(*self.run_with(self.programs[0], self.programs[1]), "program1")

    def test_another_build_of_the_library_is_named_and_nothing_moves(self):
        library = next((BIN.parent / "lib").glob("libsterna.so.0*")).resolve()
        other = pathlib.Path(self.directory.name) / "other.so"
        shutil.copy(library, other)
        identity = subprocess.run(["objcopy", "-O", "binary", "--only-section=.note.gnu.build-id",
                                   str(library), "/dev/stdout"], check=True, capture_output=True).stdout[-20:]
        content = other.read_bytes()
        self.assertEqual(content.count(identity), 1)
        other.write_bytes(content.replace(identity, bytes(20)))
        self.assert_runs_without_moves(*self.run_with(library, other), "libsterna.so.0")


class Containers(MoveTest):
    def test_ranks_move_where_personality_is_forbidden(self):
        for options in ((), ("--drivers", "tcp", "--set", "rank_memory=private")):
            with self.subTest(options):
                words = self.words("-n", 4, "--nodes", 2, "--set", "shuffle=3", *options,
                                   program=[MPI / "mpi_test_messages"])
                done = self.run_job(SANDBOX, *words)
                report = self.report()
                self.assert_right(done, report)
                self.assertNotIn("cannot move", done.stderr)
                self.assertGreater(sum(rank["moves"] for rank in report["ranks"]), 0)

    def test_an_unlimited_stack_is_no_obstacle(self):
        words = self.words("-n", 4, "--nodes", 2, "--set", "shuffle=3", program=[MPI / "mpi_test_messages"])
        done = self.run_job("sh", "-c", 'ulimit -s unlimited || exit 77; exec "$@"', "sh", SANDBOX, *words)
        if done.returncode == 77:
            self.skipTest("the limit of the stack cannot be raised here")
        report = self.report()
        self.assert_right(done, report)
        self.assertNotIn("cannot move", done.stderr)
        self.assertGreater(sum(rank["moves"] for rank in report["ranks"]), 0)

    def test_a_small_stack_is_no_obstacle(self):
        words = self.words("-n", 4, "--nodes", 2, "--set", "shuffle=3", program=[MPI / "mpi_test_messages"])
        for kibibytes in (64, 256):
            with self.subTest(kibibytes):
                done = self.run_job("sh", "-c", f'ulimit -s {kibibytes} && exec "$@"', "sh", *words)
                report = self.report()
                self.assert_right(done, report)
                self.assertGreater(sum(rank["moves"] for rank in report["ranks"]), 0)

    def test_the_sandbox_does_forbid_it(self):
        done = self.run_job(SANDBOX, "setarch", "-R", "true")
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    main()
