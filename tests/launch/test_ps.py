"""sterna ps and sterna move: what they show, what strangers get, what is left behind."""

import json
import os
import pathlib
import signal
import socket
import tempfile

from harness import PROBE, SECONDS, STERNA, LaunchTest, main, wait_until


class Ps(LaunchTest):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.environment["XDG_RUNTIME_DIR"] = self.folder.name
        self.sockets = pathlib.Path(self.folder.name) / "sterna"
        self.job = self.start_job(STERNA, "run", "-n", 3, PROBE, "init", "hang")
        self.wait_for_ranks(3)
        # Under a load the ranks are there before the launcher has opened its socket.
        self.assertTrue(wait_until(lambda: os.path.exists(self.path())))

    def tearDown(self):
        if self.job.poll() is None:
            self.job.send_signal(signal.SIGINT)
        self.job.communicate(timeout=SECONDS)
        super().tearDown()
        self.folder.cleanup()

    def jobs(self):
        return json.loads(self.run_job(STERNA, "ps", "--json").stdout)

    def path(self):
        return str(self.sockets / f"job-{self.job.pid}")

    def test_a_running_job_is_listed_with_its_ranks(self):
        running = lambda: [r["state"] for r in self.job_of(self.job)["ranks"]] == ["running"] * 3
        self.assertTrue(wait_until(running))
        job = self.job_of(self.job)
        self.assertEqual([n["ranks"] for n in job["nodes"]], [1, 1, 1])
        self.assertTrue(wait_until(lambda: str(self.job.pid) in self.run_job(STERNA, "ps").stdout))

    def test_only_its_user_can_enter_the_folder(self):
        self.assertEqual(self.sockets.stat().st_mode & 0o777, 0o700)

    def test_a_stopped_job_is_told_and_holds_nobody_up(self):
        self.job.send_signal(signal.SIGSTOP)
        waiting = []
        try:
            for full in (False, True):
                while full:  # Until it takes no more connections.
                    waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
                    full = waiting[-1].connect_ex(self.path()) == 0
                done = self.run_job(STERNA, "ps")
                self.assertEqual((done.returncode, done.stdout), (0, ""))
                self.assertIn(f"job {self.job.pid} does not answer", done.stderr)
        finally:
            self.job.send_signal(signal.SIGCONT)
            for one in waiting:
                one.close()

    def test_strangers_words_close_the_connection_and_harm_nobody(self):
        for words in (b"\n", b"status", b"status\nstatus\n", b"GET / HTTP/1.0\r\n\r\n",
                      b"move 1\n", b"move 0 0 0\n", os.urandom(63) + b"\n", b"x" * 100000):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(self.path())
                stranger.settimeout(SECONDS)
                try:
                    stranger.sendall(words)
                    stranger.shutdown(socket.SHUT_WR)
                    self.assertEqual(stranger.recv(100), b"", words[:20])
                except (BrokenPipeError, ConnectionResetError):
                    pass
        idle = [socket.socket(socket.AF_UNIX) for _ in range(40)]
        for stranger in idle[:16]:
            stranger.connect(self.path())
        for stranger in idle:
            stranger.close()
        self.assertTrue(wait_until(lambda: len(self.jobs()) == 1))
        self.assertIsNone(self.job.poll())

    def test_a_move_in_process_mode_is_refused(self):
        done = self.run_job(STERNA, "move", self.job.pid, 1, 2)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--nodes", done.stderr)
        done = self.run_job(STERNA, "move", 1, 1, 2)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no job 1", done.stderr)

    def test_the_socket_goes_with_its_job(self):
        self.assertEqual(os.listdir(self.sockets), [f"job-{self.job.pid}"])
        self.job.send_signal(signal.SIGINT)
        self.job.wait(timeout=SECONDS)
        self.assertEqual(os.listdir(self.sockets), [])

    def test_a_socket_of_a_killed_job_is_cleared_away(self):
        self.job.kill()
        self.job.wait(timeout=SECONDS)
        self.assertEqual(self.jobs(), [])
        self.assertEqual(os.listdir(self.sockets), [])


class OddWords(LaunchTest):
    """Words of a command line that are no UTF-8 are in what a job tells of itself."""

    WORD = os.fsdecode(b"sleep:caf\xe9")

    def test_a_job_that_is_looked_at_lives_on(self):
        job = self.start_job(STERNA, "run", "-n", 2, PROBE, "init", self.WORD, "hang")
        self.wait_for_ranks(2)
        self.assertIn("sleep:caf\ufffd", self.job_of(job)["command"])
        self.assertIn("sleep:caf\ufffd", self.run_job(STERNA, "ps").stdout)
        self.assertIsNone(job.poll())
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 130)

    def test_a_report_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report.json"
            done = self.run_job(STERNA, "run", "-n", 1, "--json", file, PROBE, self.WORD)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("caf\ufffd", json.loads(file.read_text())["command"])

    def test_settings_are_listed(self):
        environment = {**self.environment, "STERNA_TRACE": os.fsdecode(b"/tmp/\xff")}
        done = self.run_job(STERNA, "info", "--json", env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("/tmp/\ufffd", [row["value"] for row in json.loads(done.stdout)["settings"]])


class Report(LaunchTest):
    def test_a_folder_of_another_session_is_as_good_as_none(self):
        self.environment["XDG_RUNTIME_DIR"] = "/no/folder"
        done = self.run_job(STERNA, "run", "-n", 1, PROBE, "exit:0")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_report_says_how_each_rank_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report.json"
            done = self.run_job(STERNA, "run", "-n", 2, "--report", "--json", file, PROBE, "init",
                                "finalize", "1=exit:3")
            self.assertEqual(done.returncode, 3)
            report = json.loads(file.read_text())
            self.assertEqual(report["exit_code"], 3)
            self.assertEqual([r["exit_code"] for r in report["ranks"]], [0, 3])
            self.assertIn("rank", done.stderr)


if __name__ == "__main__":
    main()
