"""Output and input of ranks: lines stay whole, tags, slow readers, a terminal, standard input."""

import errno
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

from harness import MPIEXEC, PROBE, SECONDS, STERNA, LaunchTest, main, wait_until


class Output(LaunchTest):
    def test_lines_of_many_ranks_stay_whole(self):
        done = self.run_job(STERNA, "run", "-n", 8, PROBE, "init", "lines:1000", "finalize")
        self.assertEqual(done.returncode, 0)
        lines = done.stdout.splitlines()
        expected = {f"rank {r} line {i} of 1000" for r in range(8) for i in range(1000)}
        self.assertEqual(len(lines), 8000)
        self.assertEqual(set(lines), expected)
        for rank in range(8):  # And in order.
            own = [line for line in lines if line.startswith(f"rank {rank} ")]
            self.assertEqual(own, [f"rank {rank} line {i} of 1000" for i in range(1000)])

    def test_tags_name_the_rank_on_both_streams(self):
        for command, flag in ((MPIEXEC, "-l"), (MPIEXEC, "-prepend-rank"), (MPIEXEC, "--tag-output")):
            done = self.run_job(command, "-n", 2, flag, PROBE, "init", "lines:2", "error:oops",
                                "finalize")
            self.assertEqual(sorted(done.stdout.splitlines()),
                             [f"[{r}] rank {r} line {i} of 2" for r in range(2) for i in range(2)])
            self.assertEqual(sorted(done.stderr.splitlines()), ["[0] oops", "[1] oops"])

    def test_an_unfinished_line_comes_out_at_the_end(self):
        done = self.run_job(STERNA, "run", "-n", 2, PROBE, "init", "text:half", "finalize")
        self.assertEqual(done.stdout, "half\nhalf\n")

    def test_one_rank_alone_writes_bytes_as_they_come(self):
        job = self.start_job(MPIEXEC, "-n", 1, PROBE, "text:prompt", "hang")
        self.assertEqual(job.stdout.read(6), "prompt")
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=SECONDS)

    def test_what_was_begun_is_shown_before_its_end(self):
        job = self.start_job(MPIEXEC, "-n", 2, PROBE, "init", "0=text:prompt", "hang")
        self.assertEqual(job.stdout.read(6), "prompt")
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=SECONDS)

    def test_one_writer_of_several_ranks_writes_long_lines_as_they_are(self):
        text = "0123456789" * 100_000  # And no end.
        done = self.run_job(MPIEXEC, "-n", 2, "cat", input=text)
        self.assertEqual(len(done.stdout), len(text))
        self.assertEqual(done.stdout, text)

    def test_a_slow_reader_loses_nothing(self):
        job = self.start_job(STERNA, "run", "-n", 4, PROBE, "init", "lines:20000", "finalize")
        self.wait_until_full(job.stdout)
        out, _ = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0)
        self.assertEqual(len(out.splitlines()), 80000)

    def wait_until_full(self, pipe):
        """Until nothing more goes into a pipe that nobody reads."""
        def waiting():
            return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
        almost_all = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) * 3 // 4  # The last page may be too small for a line.
        self.assertTrue(wait_until(lambda: waiting() >= almost_all))

    def test_output_that_cannot_be_written_is_no_success(self):
        for ranks in (1, 3):
            with open("/dev/full", "w") as full:
                job = self.start_job(STERNA, "run", "-n", ranks, PROBE, "init", "lines:10", "finalize",
                                     stdout=full)
                _, error = job.communicate(timeout=SECONDS)
            self.assertEqual(job.returncode, 1)
            self.assertIn("output of the ranks was lost", error)
            self.assertIn(os.strerror(errno.ENOSPC), error)

    def test_a_reader_that_leaves_does_not_hang_the_job(self):
        job = self.start_job(STERNA, "run", "-n", 2, PROBE, "init", "lines:50000", "finalize")
        job.stdout.readline()
        job.stdout.close()
        self.assertEqual(job.wait(timeout=SECONDS), 0)
        job.stderr.close()

    def test_a_reader_that_leaves_ends_a_job_that_prints_on_for_ever(self):
        for ranks in (1, 2):
            job = self.start_job(STERNA, "run", "-n", ranks, "yes")
            job.stdout.readline()
            job.stdout.close()
            self.assertEqual(job.wait(timeout=SECONDS), 128 + signal.SIGPIPE)
            self.assertIn("nobody reads the output", job.stderr.read())
            job.stderr.close()

    def test_a_stopped_reader_does_not_keep_a_failed_job(self):
        job = self.start_job(STERNA, "run", "-n", 2, PROBE, "init", "lines:50000", "hang")
        self.wait_until_full(job.stdout)
        job.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(timeout=SECONDS), 143)
        job.communicate()

    def test_standard_input_goes_to_rank_0_only(self):
        text = "".join(f"line {i}\n" for i in range(20000))
        done = self.run_job(STERNA, "run", "-n", 3, "--tag-output", PROBE, "init", "read",
                            "finalize", input=text)
        self.assertEqual(done.stdout, re.sub("^", "[0] ", text, flags=re.M).removesuffix("[0] "))

    def test_a_terminal_is_served_and_control_c_typed_there_ends_the_job(self):
        main, sub = pty.openpty()
        job = subprocess.Popen([STERNA, "run", "-n", "2", "--tag-output", PROBE, "init", "0=read",
                                "hang"], stdin=sub, stdout=sub, stderr=sub, env=self.environment,
                               start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(sub)
        self.wait_for_ranks(2)
        os.write(main, b"typed\n\x04")  # A line, and the end of the input.
        seen = b""
        while b"[0] typed" not in seen:
            seen += os.read(main, 1000)
        os.write(main, b"\x03")
        self.assertEqual(job.wait(timeout=SECONDS), 130)
        os.close(main)


if __name__ == "__main__":
    main()
