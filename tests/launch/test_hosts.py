"""Jobs over several machines: with a stand-in for ssh on this one, and over network namespaces."""

import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import stat
import subprocess
import tempfile
import termios
import time

from harness import GRID, PROBE, SECONDS, STERNA, GridTest, LaunchTest, main, run, start

COMPUTES = os.environ["STERNA_COMPUTES"]  # tests/mpi/background.c

SSH = """#!/bin/sh
echo "$*" >>"$0.words"
while :; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done
case $1 in
gone) echo "no route to host" >&2; exit 255 ;;
chatty) echo "Welcome to this machine, today is a good day." ;;
cut) shift; (sleep 1; kill -9 $$) & exec sh -c "$*" ;;
esac
shift
cd / && exec sh -c "$*"
"""


class StandIn(LaunchTest):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        ssh = pathlib.Path(self.folder.name) / "ssh"
        ssh.write_text(SSH)
        ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
        self.environment["STERNA_SSH"] = str(ssh)

    def tearDown(self):
        self.folder.cleanup()
        super().tearDown()

    def job(self, hosts, *words, flags=(), **options):
        return self.run_job(STERNA, "run", "-n", 4, "--hosts", hosts, *flags, PROBE, *words,
                            **options)

    def test_ranks_of_two_hosts_make_one_job(self):
        done = self.job("a,b", "init", "lines:200", "finalize", flags=("--tag-output",))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(done.stdout.splitlines()),
                         sorted(f"[{r}] rank {r} line {i} of 200"
                                for r in range(4) for i in range(200)))

    def test_messages_go_on_beside_computation_where_a_network_is_open_too(self):
        # Two of one host, which ring for each other, and one to whom only the kernel rings.
        for level in "single", "multiple":
            done = self.run_job(STERNA, "run", "-n", 3, "--hosts", "a:2,b:1", "--drivers", "shm,tcp",
                                COMPUTES, "background", level)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("No Errors", done.stdout)

    def test_ssh_asks_nobody_and_notices_a_host_that_says_nothing(self):
        self.environment["PATH"] = self.folder.name + ":" + self.environment["PATH"]
        del self.environment["STERNA_SSH"]
        done = self.job("a,b", "init", "finalize")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        words = (pathlib.Path(self.folder.name) / "ssh.words").read_text().splitlines()
        self.assertEqual(len(words), 2)
        for option in ("BatchMode=yes", "ConnectTimeout=", "ServerAliveInterval="):
            self.assertTrue(all(option in line for line in words), words)

    def test_a_failure_on_another_host_names_it(self):
        done = self.job("localhost,b", "init", "3=exit:5", "hang")
        self.assertEqual(done.returncode, 5)
        self.assertIn("rank 3 (node 3, host b, ", done.stderr)

    def test_standard_input_crosses_to_another_host(self):
        text = "".join(f"line {i}\n" for i in range(5000))
        done = self.job("a,b", "init", "read", "finalize", input=text)
        self.assertEqual((done.returncode, done.stdout), (0, text))

    def give(self, job, most, seconds):
        """The bytes of its input that the job takes, up to `most`, until it takes none for so long."""
        os.set_blocking(job.stdin.fileno(), False)
        given = 0
        while given < most and select.select([], [job.stdin], [], seconds)[1]:
            given += os.write(job.stdin.fileno(), b"x" * min(1 << 16, most - given))
        return given

    def start_reader(self, begin, end):
        """A rank elsewhere that does `end` with its input when the file `go` is there."""
        self.go = pathlib.Path(self.folder.name) / "go"
        job = self.start_job(STERNA, "run", "--hosts", "a", "-n", 1, "sh", "-c",
                             f"{begin}; echo begins; until [ -e {self.go} ]; do sleep 0.1; done; {end}",
                             stdin=subprocess.PIPE)
        self.assertEqual(job.stdout.readline(), "begins\n")
        return job

    def test_input_that_a_rank_elsewhere_does_not_read_waits_where_it_comes_from(self):
        most = 64 << 20
        job = self.start_reader(":", "wc -c")
        given = self.give(job, most, seconds=2)
        self.assertLess(given, most, "all of it waits in memory")
        self.go.touch()
        more = 8 << 20
        output, errors = job.communicate("x" * more, timeout=SECONDS)
        self.assertEqual((job.returncode, int(output), errors), (0, given + more, ""))

    def test_input_that_a_rank_elsewhere_does_not_want_is_dropped(self):
        most = 8 << 20
        job = self.start_reader("exec <&-", ":")
        self.assertEqual(self.give(job, most, seconds=SECONDS), most)
        self.go.touch()
        _, errors = job.communicate(timeout=SECONDS)
        self.assertEqual((job.returncode, errors), (0, ""))

    def test_the_end_of_what_is_typed_is_seen_beside_another_host(self):
        main, sub = pty.openpty()
        self.addCleanup(os.close, main)
        job = self.start_job(STERNA, "run", "--timeout", SECONDS, "-n", 2, "--hosts", "localhost,b", "cat",
                             stdin=sub, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(sub)
        os.write(main, b"typed\n\x04")  # A line, and the end of the input.
        output, errors = job.communicate(timeout=2 * SECONDS)
        self.assertEqual((job.returncode, output, errors), (0, "typed\n", ""))

    def test_an_unreachable_host_is_named(self):
        done = self.job("a,gone", "init", "finalize")
        self.assertEqual(done.returncode, 255)
        self.assertIn("host gone", done.stderr)

    def test_a_shell_that_prints_is_told(self):
        done = self.job("a,chatty", "init", "finalize")
        self.assertEqual(done.returncode, 255)
        self.assertIn("does the shell there print something", done.stderr)

    def test_a_connection_that_breaks_ends_the_job(self):
        done = self.job("a,cut", "init", "hang")
        self.assertEqual(done.returncode, 255)
        self.assertIn("host cut", done.stderr)

    def test_a_missing_program_there_is_named(self):
        done = self.run_job(STERNA, "run", "-n", 2, "--hosts", "a,b", "/no/such/program")
        self.assertEqual(done.returncode, 127)
        self.assertIn("/no/such/program", done.stderr)

    def test_control_c_and_a_killed_launcher_end_all_hosts(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
            job = self.start_job(STERNA, "run", "-n", 4, "--hosts", "a,b", PROBE, "deaf", "init",
                                 "leak", "hang")
            self.wait_for_ranks(8)
            job.send_signal(number)
            job.communicate(timeout=SECONDS)
            self.assertEqual(job.returncode, code)

    def test_slots_that_do_not_suffice_are_refused(self):
        done = self.run_job(STERNA, "run", "-n", 5, "--hosts", "a:2,b:2", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("take 4", done.stderr)

    def test_host_files_of_other_launchers_are_read(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = pathlib.Path(folder.name) / "hosts"
        for line in ("localhost slots=2 max_slots=4", "localhost   slots=2  # two", "localhost\tslots=2",
                     "localhost 2", "localhost:2", "localhost max_slots=2"):
            file.write_text(line + "\n")
            done = self.run_job(STERNA, "run", "-n", 2, "--hostfile", file, "true")
            self.assertEqual(done.returncode, 0, line + done.stderr)
            done = self.run_job(STERNA, "run", "-n", 3, "--hostfile", file, "true")
            self.assertIn("take 2", done.stderr, line)


PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* Counts for so many milliseconds, and 100 rounds, or until the file is there. */
int main(int argc, char** argv) {
  int rank, size, length, more = 1;
  long rounds = 0, sum;
  char host[MPI_MAX_PROCESSOR_NAME];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(host, &length);
  printf("rank %d of %d on %s\n", rank, size, host);
  fflush(stdout);
  const double begin = MPI_Wtime();
  for (; more; ++rounds) {
    long mine = rounds * size + rank;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (sum != rounds * size * size + (long)size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 50);
    more = argv[1][0] == '/' ? access(argv[1], F_OK) != 0
                             : rounds < 100 || MPI_Wtime() - begin < atoi(argv[1]) / 1000.0;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    usleep(200);
  }
  printf("rank %d counted right\n", rank);
  MPI_Finalize();
  return 0;
}
"""


class Namespaces(GridTest):
    """Hosts A1, A2 in one network and B1 behind a link that can be cut."""

    PROGRAM = PROGRAM

    def setUp(self):
        self.grid_up("sl", "site A hosts=2\nsite B hosts=1\nwan w0 A B rtt=2ms rate=1gbit\n")
        self.addCleanup(self.grid, "down")

    def test_a_job_runs_on_two_hosts_with_networks_of_their_own(self):
        done = self.grid("exec", "A1", STERNA, "run", "-n", "4", "--hosts", "A1,A2",
                         "--launcher-exec", f"/tmp/grid-{self.name}/ssh", "--tag-output",
                         "sh", "-c", "hostname")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()),
                         ["[0] A1", "[1] A1", "[2] A2", "[3] A2"])

    def words(self, *options, until):
        return ["exec", "A1", STERNA, "run", "--hosts", "A1,A2,B1", "--timeout", f"{SECONDS}s",
                "--launcher-exec", f"/tmp/grid-{self.name}/ssh", *options, self.program, until]

    def assert_right(self, done, ranks):
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("counted right"), ranks)

    def test_ranks_as_processes_talk_over_the_network(self):
        done = self.grid(*self.words("-n", 6, until=200))
        self.assert_right(done, 6)
        for rank, host in enumerate(("A1", "A1", "A2", "A2", "B1", "B1")):
            self.assertIn(f"rank {rank} of 6 on {host}\n", done.stdout)

    def test_ranks_move_between_hosts_that_share_no_memory(self):
        report = self.folder / "report.json"
        done = self.grid(*self.words("-n", 5, "--nodes", 3, "--set", "shuffle=1", "--json", report,
                                     until=1500))
        self.assert_right(done, 5)
        report = json.loads(report.read_text())
        self.assertEqual([node["host"] for node in report["nodes"]], ["A1", "A2", "B1"])
        self.assertGreaterEqual(min(node["arrived"] for node in report["nodes"]), 1)
        self.assertGreaterEqual(min(rank["moves"] for rank in report["ranks"]), 1)

    def test_memory_shared_between_hosts_is_not_to_be_had(self):
        done = self.grid(*self.words("-n", 3, "--drivers", "shm", until=200))
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "node [0-9].*(driver|reach|address)")

    def cut_after_start(self, *options, seconds):
        """The finished job whose link to B1 was cut for that long, while it was told to end."""
        end = self.folder / "end"
        end.unlink(missing_ok=True)
        job = start(GRID, "-n", self.name, *self.words(*options, until=end))
        try:
            self.assertIn("of 3 on", job.stdout.readline())
            self.assertEqual(self.grid("cut", "w0").returncode, 0)
            end.touch()
            time.sleep(seconds)
            self.assertIsNone(job.poll(), "the job went on without its link")
            self.assertEqual(self.grid("restore", "w0").returncode, 0)
            output, errors = job.communicate(timeout=SECONDS)
        finally:
            job.kill()
            job.communicate()
        return job.returncode, output, errors

    def test_a_job_goes_on_after_a_link_was_cut_for_a_while(self):
        for options in (("-n", 3), ("-n", 3, "--nodes", 3)):
            with self.subTest(options):
                code, output, errors = self.cut_after_start(*options, seconds=2)
                self.assertEqual((code, errors), (0, ""))
                self.assertEqual(output.count("counted right"), 3)

    def test_a_link_that_stays_cut_ends_the_job_and_names_who_is_lost(self):
        job = start(GRID, "-n", self.name, *self.words("-n", 3, "--set", "tcp_silence_timeout=2s",
                                                       until=self.folder / "never"))
        try:
            self.assertIn("of 3 on", job.stdout.readline())
            self.assertEqual(self.grid("cut", "w0").returncode, 0)
            _, errors = job.communicate(timeout=SECONDS)
        finally:
            job.kill()
            job.communicate()
        self.assertNotIn(job.returncode, (0, 124))
        self.assertRegex(errors, "node [0-2] is lost: ")


if __name__ == "__main__":
    main()
