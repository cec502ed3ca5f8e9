"""Jobs over several machines: with a stand-in for ssh on this one, and over network namespaces."""

import os
import pathlib
import signal
import stat
import tempfile
import time
import unittest

from harness import PROBE, STERNA, LaunchTest, run

GRID = pathlib.Path(__file__).resolve().parents[2] / "tools" / "grid" / "grid"

SSH = """#!/bin/sh
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

    def test_a_failure_on_another_host_names_it(self):
        done = self.job("localhost,b", "init", "3=exit:5", "hang")
        self.assertEqual(done.returncode, 5)
        self.assertIn("rank 3 (node 3, host b, ", done.stderr)

    def test_standard_input_crosses_to_another_host(self):
        text = "".join(f"line {i}\n" for i in range(5000))
        done = self.job("a,b", "init", "read", "finalize", input=text)
        self.assertEqual((done.returncode, done.stdout), (0, text))

    def test_an_unreachable_host_is_named(self):
        done = self.job("a,gone", "init", "finalize")
        self.assertEqual(done.returncode, 255)
        self.assertIn("host gone", done.stderr)

    def test_a_shell_that_prints_is_told(self):
        done = self.job("a,chatty", "init", "finalize")
        self.assertEqual(done.returncode, 255)
        self.assertIn("does the shell there print something", done.stderr)

    def test_a_connection_that_breaks_ends_the_job(self):
        begin = time.monotonic()
        done = self.job("a,cut", "init", "hang")
        self.assertEqual(done.returncode, 255)
        self.assertIn("host cut", done.stderr)
        self.assertLess(time.monotonic() - begin, 7)

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
            job.communicate(timeout=10)
            self.assertEqual(job.returncode, code)

    def test_slots_that_do_not_suffice_are_refused(self):
        done = self.run_job(STERNA, "run", "-n", 5, "--hosts", "a:2,b:2", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("take 4", done.stderr)


@unittest.skipUnless(os.getuid() == 0, "network namespaces need root")
class Namespaces(unittest.TestCase):
    def setUp(self):
        self.name = f"sl{os.getpid() % 10000}"
        self.topology = tempfile.NamedTemporaryFile("w", suffix=".grid")
        self.topology.write("site A hosts=2\n")
        self.topology.flush()
        up = self.grid("up", self.topology.name)
        if up.returncode != 0:
            self.topology.close()
            self.skipTest(f"no namespaces here: {up.stderr.strip()}")

    def tearDown(self):
        self.grid("down")
        self.topology.close()

    def grid(self, *words, **options):
        return run(GRID, "-n", self.name, *words, seconds=40, **options)

    def test_a_job_runs_on_two_hosts_with_networks_of_their_own(self):
        done = self.grid("exec", "A1", STERNA, "run", "-n", "4", "--hosts", "A1,A2",
                         "--launcher-exec", f"/tmp/grid-{self.name}/ssh", "--tag-output",
                         "sh", "-c", "hostname")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()),
                         ["[0] A1", "[1] A1", "[2] A2", "[3] A2"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
