"""How jobs end: exit codes, aborts, crashes, signals, time limits; each names who and where.

Within what time is tested with a driven clock, in launch/job_ending_test.cc.
"""

import signal
import subprocess
import sys

from harness import MPIEXEC, PROBE, SECONDS, STERNA, LaunchTest, main, processes_with


def ignore(*numbers):
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


class Endings(LaunchTest):
    def job(self, *words, count=3, **options):
        return self.run_job(STERNA, "run", "-n", count, *options.pop("flags", ()), PROBE, *words,
                            **options)

    def test_a_good_job_exits_with_0_and_says_nothing(self):
        done = self.job("init", "finalize")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_plain_program_runs_in_all_ranks(self):
        done = self.run_job(MPIEXEC, "-n", 3, "echo", "hello")
        self.assertEqual((done.returncode, done.stdout), (0, "hello\n" * 3))

    def test_the_code_of_the_first_failing_rank_is_the_code_of_the_job(self):
        done = self.job("init", "finalize", "1=exit:7", "sleep:300")
        self.assertEqual(done.returncode, 7)

    def test_an_exit_before_finalize_ends_the_others(self):
        done = self.job("init", "1=exit:4", "hang")
        self.assertEqual(done.returncode, 4)
        self.assertIn("rank 1 (node 1, host ", done.stderr)
        self.assertIn("exited with code 4 before MPI_Finalize", done.stderr)

    def test_an_exit_with_0_before_finalize_is_a_failure_too(self):
        done = self.job("init", "2=exit:0", "hang")
        self.assertEqual(done.returncode, 1)
        self.assertIn("rank 2 ", done.stderr)

    def test_a_rank_that_never_comes_to_init_does_not_hang_the_others(self):
        done = self.run_job(MPIEXEC, "-n", 2, PROBE, "init", ":", "-n", 1, "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("rank 2 ", done.stderr)
        self.assertIn("without MPI_Init", done.stderr)

    def test_abort_ends_the_job_with_its_code(self):
        done = self.job("init", "1=abort:42", "hang")
        self.assertEqual(done.returncode, 42)
        self.assertIn("rank 1 ", done.stderr)
        self.assertIn("MPI_Abort with code 42: the test wants it", done.stderr)

    def test_a_rank_that_ignores_sigterm_is_killed(self):
        done = self.job("deaf", "init", "1=abort:3", "hang")
        self.assertEqual(done.returncode, 3)

    def test_a_crash_names_rank_signal_and_address(self):
        done = self.job("init", "2=crash", "hang")
        self.assertEqual(done.returncode, 128 + signal.SIGSEGV)
        self.assertIn("rank 2 (node 2, host ", done.stderr)
        self.assertIn("signal 11 (Segmentation fault) at address 0x1234", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, "one message, not several")

    def test_a_signal_without_a_report_is_told_too(self):
        done = self.job("init", f"0=kill:{int(signal.SIGKILL)}", "hang")
        self.assertEqual(done.returncode, 128 + signal.SIGKILL)
        self.assertIn("rank 0 ", done.stderr)
        self.assertIn("signal 9 (Killed)", done.stderr)

    def test_bytes_that_are_no_messages_end_the_job(self):
        script = ("import os, time; os.write(int(os.environ['STERNA_CONTROL_FD']), bytes([255]) * 99);"
                  "time.sleep(60)")
        done = self.run_job(STERNA, "run", "-n", 2, sys.executable, "-c", script)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "node [01], host .* sent a message that makes no sense")

    def test_the_timeout_ends_the_job(self):
        done = self.job("init", "hang", flags=("--timeout", "500ms"))
        self.assertEqual(done.returncode, 124)
        self.assertIn("--timeout", done.stderr)

    def end_by(self, number, expected):
        job = self.start_job(STERNA, "run", "-n", 3, PROBE, "init", "leak", "hang")
        self.wait_for_ranks(6)
        job.send_signal(number)
        job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, expected)

    def test_control_c_ends_the_job_and_what_it_started(self):
        self.end_by(signal.SIGINT, 130)

    def test_sigterm_ends_the_job_and_what_it_started(self):
        self.end_by(signal.SIGTERM, 143)

    def test_what_was_ignored_at_its_start_ends_no_job(self):
        numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
        job = self.start_job(STERNA, "run", "-n", 1, PROBE, "init", "read", "finalize",
                             stdin=subprocess.PIPE, preexec_fn=lambda: ignore(*numbers))
        self.wait_for_ranks(1)
        for number in numbers:
            job.send_signal(number)
        output, errors = job.communicate("it goes on\n", timeout=SECONDS)
        self.assertEqual((job.returncode, output, errors), (0, "it goes on\n", ""))

    def test_ends_are_heard_of_where_sigchld_was_ignored(self):
        done = self.run_job(STERNA, "run", "--timeout", SECONDS, "-n", 1, "grep", "SigIgn",
                            "/proc/self/status", preexec_fn=lambda: ignore(signal.SIGCHLD))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        ignored = int(done.stdout.split()[1], 16)
        self.assertEqual(ignored >> (signal.SIGCHLD - 1) & 1, 0, "ranks hear of their children")

    def test_nothing_survives_a_killed_launcher(self):
        self.end_by(signal.SIGKILL, -signal.SIGKILL)

    def test_a_child_that_outlives_its_rank_is_ended(self):
        done = self.job("init", "finalize", "leak")
        self.assertEqual(done.returncode, 0)

    def test_a_child_in_a_group_of_its_own_is_ended(self):
        done = self.run_job(MPIEXEC, "-n", 2, "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &")
        self.assertEqual(done.returncode, 0)

    def test_a_rank_below_a_script_belongs_to_the_job(self):
        done = self.run_job(MPIEXEC, "-n", 2, "sh", "-c", f"{PROBE} init finalize; exit 0")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_many_ranks_start_and_end(self):
        done = self.job("init", "finalize", count=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_secret_is_in_no_command_line_and_no_environment(self):
        job = self.start_job(STERNA, "run", "-n", 2, PROBE, "init", "hang")
        self.wait_for_ranks(2)
        for pid in processes_with(self.marker):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    names = {v.split(b"=")[0] for v in file.read().split(b"\0")} - {b""}
            except OSError:  # It was there for a moment only.
                continue
            added = {n.decode() for n in names if n.decode() not in self.environment}
            # glibc cuts its tunables into pieces where they lie.
            tunables = {"GLIBC_TUNABLES", "glibc.malloc.mmap_threshold", "glibc.malloc.trim_threshold"}
            self.assertLessEqual(added, {"STERNA_CONTROL_FD", "LD_LIBRARY_PATH"} | tunables)
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=SECONDS)


if __name__ == "__main__":
    main()
