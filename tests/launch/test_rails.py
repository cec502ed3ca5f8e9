"""Jobs whose hosts are joined by two networks, of which one is cut, or one loses packets."""

import os
import signal
import time

from harness import GRID, SECONDS, STERNA, GridTest, main, run, start, wait_until

TOPOLOGY = """site A hosts=1
site B hosts=1
wan w0 A B rtt=4ms rate=400mbit
wan w1 A B rtt=8ms rate=200mbit
"""
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* Blocks of a megabyte go from rank to rank, each with its number in every word, until the first
   rank says that the time is over, or that the file is there. */
enum { kWords = 1 << 18 };
int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double seconds = atof(argv[1]), start = MPI_Wtime();
  int *block = malloc(kWords * sizeof *block), *got = malloc(kWords * sizeof *got);
  int rounds = 0, wrong = 0;
  for (int go_on = 1; go_on; ++rounds) {
    for (int i = 0; i < kWords; ++i) block[i] = rounds * size + rank;
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Sendrecv(block, kWords, MPI_INT, to, rounds, got, kWords, MPI_INT, from, rounds,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < kWords; ++i) wrong += got[i] != rounds * size + from;
    if (rank == 0 && rounds == 0) { printf("on the way\n"); fflush(stdout); }
    go_on = argv[1][0] == '/' ? access(argv[1], F_OK) != 0
                              : MPI_Wtime() - start < seconds;
    MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  printf("rank %d: %d rounds, %d words wrong\n", rank, rounds, wrong);
  MPI_Finalize();
}
"""


class TwoNetworks(GridTest):
    PROGRAM = PROGRAM

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.grid_up("sr", TOPOLOGY)
        cls.addClassCleanup(cls.grid, "down")

    def words(self, *options, until):
        return ["exec", "A1", STERNA, "run", "--hosts", "A1,B1", "--timeout", f"{SECONDS}s",
                "--launcher-exec", f"/tmp/grid-{self.name}/ssh", *options, self.program, until]

    def assert_right(self, code, output, ranks):
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count(", 0 words wrong"), ranks, output)

    def test_both_networks_carry_their_share(self):
        # On a busy machine it is not the networks that are slow: then one may have a small share.
        self.grid("zero")
        code, output = self.run_and(lambda: wait_until(lambda: min(self.megabytes().values()) > 10),
                                    "-n", 2, "--drivers", "tcp@eth0,tcp@eth1")
        self.assert_right(code, output, 2)
        self.assertGreater(min(self.megabytes().values()), 10, self.megabytes())

    def test_two_boards_of_one_provider_are_two_rails(self):
        self.grid("zero")
        drivers = "fabric@tcp:eth0,fabric@tcp:eth1"
        probe = self.grid(*self.words("-n", 2, "--drivers", drivers, until=0))
        if probe.returncode != 0 and "libfabric" in probe.stderr:
            self.skipTest(probe.stderr.splitlines()[0])
        code, output = self.run_and(lambda: wait_until(lambda: min(self.megabytes().values()) > 10),
                                    "-n", 2, "--drivers", drivers)
        self.assert_right(code, output, 2)
        self.assertGreater(min(self.megabytes().values()), 10, self.megabytes())

    def megabytes(self):
        """What each network has carried since it was last set to zero."""
        carried = {"w0": 0, "w1": 0}
        for line in self.grid("stats").stdout.splitlines():
            words = line.split()
            if words and words[0] in carried:
                values = dict(word.split("=") for word in words[2:])
                carried[words[0]] += int(values["tx_bytes"]) / 1e6
        return carried

    def run_and(self, what, *options):
        """Starts a job, and once it is on its way calls what(), then ends it; its exit code and all it said."""
        end = self.folder / "end"
        end.unlink(missing_ok=True)
        job = start(GRID, "-n", self.name, *self.words(*options, until=end))
        try:
            self.assertIn("on the way", job.stdout.readline())
            what()
            end.touch()
            output, errors = job.communicate(timeout=SECONDS)
        finally:
            job.kill()
            job.communicate()
        return job.returncode, output + errors

    def test_nothing_is_lost_when_one_network_is_cut_for_good(self):
        def cut():
            time.sleep(0.5)
            self.assertEqual(self.grid("cut", "w1").returncode, 0)
            time.sleep(2)  # Longer than the silence after which a rail is avoided.

        for options in (("-n", 2), ("-n", 4, "--nodes", 2, "--set", "shuffle=1")):
            with self.subTest(options):
                try:
                    code, output = self.run_and(cut, *options, "--drivers", "tcp@eth0,tcp@eth1")
                finally:
                    self.grid("restore", "w1")
                self.assert_right(code, output, options[1])

    def test_a_node_without_any_network_is_lost_in_time(self):
        """Though its driver would go on to connect anew, and take packets for it meanwhile."""
        def cut():
            self.assertEqual(self.grid("cut", "w1").returncode, 0)
            cut_at.append(time.monotonic())

        cut_at = []
        settings = ("net_links=on", "net_reconnect=2s", "tcp_silence_timeout=2s")
        try:
            code, output = self.run_and(cut, "-n", 2, "--drivers", "tcp@eth1",
                                        *(word for setting in settings for word in ("--set", setting)))
            took = time.monotonic() - cut_at[0]
        finally:
            self.grid("restore", "w1")
        self.assertNotEqual(code, 0, output)
        # What is set is 2 s for the silence and 2 s for new connections; what is set at first is ten times that.
        self.assertLess(took, 20, output)
        self.assertIn("trying again for 2 s", output)
        self.assertRegex(output, "node [01] is lost", output)

    def test_a_network_that_was_cut_is_used_again_when_it_is_restored(self):
        def cut_and_restore():
            self.assertEqual(self.grid("cut", "w1").returncode, 0)
            time.sleep(1)  # Longer than the silence after which a rail is avoided.
            self.grid("restore", "w1")
            self.grid("zero")
            end = time.monotonic() + 60
            while self.megabytes()["w1"] < 2 and time.monotonic() < end:
                time.sleep(0.2)
            carried.update(self.megabytes())

        carried = {}
        try:
            code, output = self.run_and(cut_and_restore, "-n", 2, "--drivers", "tcp@eth0,tcp@eth1")
        finally:
            self.grid("restore", "w1")
        self.assert_right(code, output, 2)
        self.assertGreater(carried["w1"], 2)

    def test_a_rail_that_loses_and_doubles_packets_loses_and_doubles_nothing(self):
        done = self.grid(*self.words("-n", 2, "--set", "net_checksums=on", "--drivers",
                                     "corrupt(drop(tcp@eth0)),tcp@eth1", until=2))
        self.assert_right(done.returncode, done.stdout + done.stderr, 2)

    def test_a_process_that_is_killed_ends_the_job(self):
        def kill():
            found = run("pgrep", "-f", self.program).stdout.split()
            victims = [int(pid) for pid in found if self.is_rank(pid)]
            self.assertEqual(len(victims), 2, found)
            os.kill(victims[1], signal.SIGKILL)

        code, output = self.run_and(kill, "-n", 2, "--drivers", "tcp@eth0,tcp@eth1")
        self.assertNotIn(code, (0, 124))
        self.assertRegex(output, "(?i)killed|signal 9|lost")

    def is_rank(self, pid):
        try:
            return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(self.program)
        except OSError:  # Not one of the job, and gone.
            return False


if __name__ == "__main__":
    main()
