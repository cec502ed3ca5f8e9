"""sterna top: for programs, and in a terminal, which it gives back as it was; ranks, then user threads and bubbles."""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time

from moving import CLUSTER, SECONDS, STERNA, CountingTest, LaunchTest, main, wait_until

LEAVES = b"\x1b[?1049l"


class InTerminal:
    """Runs sterna top on `self.job` in a pseudo terminal, and reads what it shows."""

    def top(self, *words):
        return self.run_job(STERNA, "top", self.job.pid, *words)

    def start_in_terminal(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, theirs)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.terminal, self.theirs, self.screen = ours, theirs, b""
        top = subprocess.Popen([STERNA, "top", str(self.job.pid), "-i", "0.1"], stdin=theirs,
                               stdout=theirs, stderr=theirs, env=self.environment,
                               start_new_session=True)
        self.addCleanup(top.wait)
        self.addCleanup(top.kill)
        return top

    def read_until(self, text):
        end = time.monotonic() + SECONDS
        while text not in self.screen and time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.screen += os.read(self.terminal, 65536)
        self.assertIn(text, self.screen)
        self.screen = self.screen.partition(text)[2]

    def assert_restored(self):
        self.read_until(LEAVES)
        self.assertTrue(wait_until(lambda: termios.tcgetattr(self.theirs) == self.before))


class Top(InTerminal, CountingTest):
    def test_one_look_for_programs(self):
        looks = []

        def each_has_sent():
            """Between two looks; on a busy machine a rank may not have had its turn."""
            done = self.top("--once", "--json", "-i", 0.3)
            self.assertEqual(done.returncode, 0, done.stderr)
            looks.append(json.loads(done.stdout))
            return all(rank["messages_per_second"] > 0 for rank in looks[-1]["ranks"])

        self.assertTrue(wait_until(each_has_sent), looks[-1])
        look = looks[-1]
        self.assertEqual(look["job"], self.job.pid)
        self.assertEqual([rank["node"] for rank in look["ranks"]], [0, 0, 1, 1])
        for rank in look["ranks"]:
            self.assertIn(rank["activity"], ("running", "ready", "waiting"))
            self.assertTrue(0 <= rank["use"] <= 1)
        for node in look["nodes"]:
            self.assertEqual(len(node["use"]), node["workers"])
            self.assertGreaterEqual(node["threads"], 2)
            self.assertTrue(all(0 <= use <= 1 for use in node["use"]))

    def test_one_look_for_people_shows_each_rank_and_a_move(self):
        self.assertEqual(self.order(self.job, 1, 1).returncode, 0)
        self.assertTrue(wait_until(lambda: self.places(self.job) == [0, 1, 1, 1]))
        done = self.top("--once", "-i", 0.1)
        rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()
                if line.strip() and line.split()[0].isdigit()}
        self.assertEqual(sorted(rows), ["0", "1", "2", "3"], done.stdout)
        self.assertEqual([rows[str(rank)][1] for rank in range(4)], ["0", "1", "1", "1"])
        self.assertIn("1 moves", done.stdout)

    def test_without_a_number_it_is_the_only_job(self):
        done = self.run_job(STERNA, "top", "--once", "--json", "-i", 0.1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["job"], self.job.pid)

    def test_a_job_that_is_not_there_is_told(self):
        done = self.run_job(STERNA, "top", 1, "--once")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no job 1", done.stderr)
        for interval in ("never", "nan", "-1"):
            self.assertEqual(self.run_job(STERNA, "top", "--interval", interval).returncode, 2)

    # --- In a terminal ---------------------------------------------------------------------------

    def test_keys_choose_what_is_shown_and_q_leaves(self):
        top = self.start_in_terminal()
        self.read_until(b"RANK")
        self.assertNotEqual(termios.tcgetattr(self.theirs), self.before)
        os.write(self.terminal, b"b")
        self.read_until(b"worker 0")
        os.write(self.terminal, b"?")
        self.read_until(b"order by use")
        os.write(self.terminal, b"?p")
        self.read_until(b"stands still")
        os.write(self.terminal, b"pt")
        self.read_until(b"RANK")
        os.write(self.terminal, b"q")
        self.assertEqual(top.wait(timeout=SECONDS), 0)
        self.assert_restored()

    def test_the_terminal_is_given_back_after_signals_and_faults(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV):
            with self.subTest(number.name):
                top = self.start_in_terminal()
                self.read_until(b"RANK")
                top.send_signal(number)
                code = top.wait(timeout=SECONDS)
                self.assertEqual(code, -number if number == signal.SIGSEGV else 0)
                self.assert_restored()

    def test_the_terminal_is_given_back_while_it_is_stopped(self):
        top = self.start_in_terminal()
        self.read_until(b"RANK")
        top.send_signal(signal.SIGTSTP)
        self.assert_restored()
        # The terminal is given back before it stops: a SIGCONT in between would be lost.
        os.waitid(os.P_PID, top.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        top.send_signal(signal.SIGCONT)
        self.read_until(b"\x1b[?1049h")
        os.write(self.terminal, b"q")
        self.assertEqual(top.wait(timeout=SECONDS), 0)
        self.assert_restored()

    def test_it_leaves_when_the_job_has_ended(self):
        top = self.start_in_terminal()
        self.read_until(b"RANK")
        self.job.send_signal(signal.SIGINT)
        self.assertEqual(top.wait(timeout=SECONDS), 0)
        self.read_until(b"the job has ended")


class TopOfThreads(InTerminal, LaunchTest):
    """A program with bubbles (cluster_gangs): red holds blue; green and a thread are beside it."""

    LAUNCHER = (STERNA, "run", "--timeout", f"{SECONDS}s")
    SETTINGS = {}

    def setUp(self):
        super().setUp()
        self.environment.update(self.SETTINGS)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.end = pathlib.Path(directory.name) / "end"
        self.job = self.start_job(*self.LAUNCHER, CLUSTER / "cluster_gangs", self.end)
        self.addCleanup(self.job.wait)
        self.addCleanup(self.job.kill)
        self.assertEqual(self.job.stdout.readline(), "here\n")

    def tearDown(self):
        self.end.touch()
        out, err = self.job.communicate(timeout=SECONDS)
        self.assertEqual(self.job.returncode, 0, err)
        self.assertIn("No Errors", out)
        super().tearDown()

    def look(self):
        """One look of a second, as programs get it: its node, and the entities by name."""
        done = self.top("--once", "--json", "-i", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        node, = json.loads(done.stdout)["nodes"]
        return node, {one["name"]: one for one in node["entities"]}

    def test_a_look_for_programs_has_all_of_threads_and_bubbles(self):
        looks = []

        def is_measured():
            """Of two looks the first one says that they are wanted; on a busy machine it may take one more."""
            looks[:] = self.look()
            return (all(looks[1][name].get("use", 0) > 0 for name in ("red 0", "blue 0", "blue 1"))
                    and looks[1]["green 0"]["state"] == "waiting")  # And not just awake for its next look.

        self.assertTrue(wait_until(is_measured), looks)
        node, entities = looks
        self.assertEqual(sorted(entities), ["alone", "blue", "blue 0", "blue 1", "green", "green 0", "red", "red 0"])
        holders = {name: one["holder"] for name, one in entities.items()}
        ids = {name: one["id"] for name, one in entities.items()}
        self.assertEqual(holders, {
            "red": None, "green": None, "alone": None, "red 0": ids["red"], "blue": ids["red"],
            "blue 0": ids["blue"], "blue 1": ids["blue"], "green 0": ids["green"]})
        self.assertEqual([entities[name]["depth"] for name in ("red", "blue", "blue 0")], [0, 1, 2])
        # What a bubble has is what its threads have; who waits has next to nothing.
        use = {name: one["use"] for name, one in entities.items()}
        self.assertAlmostEqual(use["blue"], use["blue 0"] + use["blue 1"], places=6)
        self.assertAlmostEqual(use["red"], use["red 0"] + use["blue"], places=6)
        self.assertLess(use["green"] + use["alone"], use["red"] / 4)
        # And all of them together what the workers have.
        busy = sum(node["use"])
        self.assertLess(use["red"] + use["green"] + use["alone"], busy + 0.3)
        self.assertEqual(len(node["use"]), 2)
        self.assertEqual([entities[name]["load"] for name in ("red", "red 0", "blue", "green")], [12, 7, 5, 1])
        self.assertEqual(entities["red"]["memory_bytes"], 1 << 20)
        self.assertEqual(entities["green"]["memory_bytes"], 0)
        self.assertEqual([entities[name]["threads"] for name in ("red", "blue", "green")], [3, 2, 1])
        for name in ("red 0", "blue 0", "alone"):
            self.assertRegex(entities[name]["last_place"], r"^pu \d+$")

    def read_line(self, *words):
        """Reads on until one line of the screen has all of them; what is after it was not read."""
        def found():
            lines = self.screen.split(b"\n")
            return next((at for at, line in enumerate(lines[:-1]) if all(word in line for word in words)), None)

        end = time.monotonic() + SECONDS
        while found() is None and time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.screen += os.read(self.terminal, 65536)
        at = found()
        self.assertIsNotNone(at, (words, self.screen[-4000:]))
        lines = self.screen.split(b"\n")
        self.screen = b"\n".join(lines[at + 1:])
        return lines[at]

    def test_a_terminal_shows_use_and_place_of_each_below_its_bubble(self):
        top = self.start_in_terminal()
        self.read_line(b"keys: q leave")
        os.write(self.terminal, b"e")
        self.read_line(b"THREADS AND BUBBLES", b"USE", b"RAN ON", b"LOAD", b"MEMORY")
        red = self.read_line(b"bubble red ", b" % ", b" run ", b"1024K")
        own = self.read_line(b"thread red 0 ", b" % ", b"pu ")
        inner = self.read_line(b"bubble blue ", b" % ")
        below = self.read_line(b"thread blue 0 ", b" % ", b"pu ")
        columns = [line.index(word) for line, word in
                   ((red, b"bubble"), (own, b"thread"), (inner, b"bubble"), (below, b"thread"))]
        self.assertEqual([column - columns[0] for column in columns], [0, 2, 2, 4])
        os.write(self.terminal, b"?")
        self.read_line(b"order by load", b"order by memory")
        os.write(self.terminal, b"?l")
        self.read_line(b"bubble red ")  # The heaviest first, in each bubble by itself.
        self.read_line(b"thread red 0 ")
        self.read_line(b"bubble blue ")
        self.read_line(b"thread blue 1 ")
        self.read_line(b"thread blue 0 ")
        self.read_line(b"bubble green ")
        os.write(self.terminal, b"q")
        self.assertEqual(top.wait(timeout=SECONDS), 0)
        self.assert_restored()

    def test_ps_shows_the_tree_too(self):
        looks = []

        def all_have_run():
            """The last thread of a gang has its turn after the others, a moment after the program is listed."""
            looks.append(self.run_job(STERNA, "ps").stdout)
            return re.search(r"thread blue 1 .* pu \d+", looks[-1])

        self.assertTrue(wait_until(all_have_run), looks[-1])
        self.assertIn("THREADS AND BUBBLES", looks[-1])


class TopOfALoneProgram(TopOfThreads):
    """The same without sterna run: the program itself answers who looks."""

    LAUNCHER = ()
    SETTINGS = {"STERNA_VISIBLE": "on"}

    def listed(self):
        return {job["job"]: job for job in json.loads(self.run_job(STERNA, "ps", "--json").stdout)}

    def test_it_is_found_without_its_number(self):
        done = self.run_job(STERNA, "top", "--once", "--json", "-i", 0.1)
        self.assertEqual(done.returncode, 0, done.stderr)
        look = json.loads(done.stdout)
        self.assertEqual((look["job"], look["mode"]), (self.job.pid, "alone"))
        self.assertIn("cluster_gangs", look["command"])
        self.assertGreater(look["nodes"][0]["cpu_seconds"], 0)

    def test_the_doctor_looks_at_it(self):
        done = self.run_job(STERNA, "doctor", self.job.pid, "--json")
        said = [one for one in json.loads(done.stdout) if one["about"] == f"job {self.job.pid}"]
        self.assertEqual([one["verdict"] for one in said], ["good"], said)

    def test_it_is_not_there_any_more_when_it_has_ended(self):
        self.assertIn(self.job.pid, self.listed())
        self.end.touch()
        self.assertEqual(self.job.wait(timeout=SECONDS), 0)
        folder = pathlib.Path(self.environment["XDG_RUNTIME_DIR"]) / "sterna"
        self.assertEqual(list(folder.iterdir()), [])
        self.assertEqual(self.listed(), {})

    def test_what_asks_for_something_else_gets_nothing(self):
        path = pathlib.Path(self.environment["XDG_RUNTIME_DIR"]) / "sterna" / f"program-{self.job.pid}"
        for question in (b"stat\n", b"status", b"x" * 100, b""):
            with self.subTest(question), socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(question)
                client.shutdown(socket.SHUT_WR)
                try:
                    self.assertEqual(client.recv(1), b"")
                except ConnectionResetError:
                    pass  # It did not read all of it.
        self.assertIn(self.job.pid, self.listed())


class LoneProgram(LaunchTest):
    def start(self, **settings):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.end = pathlib.Path(directory.name) / "end"
        job = self.start_job(CLUSTER / "cluster_gangs", self.end, env={**self.environment, **settings})
        self.addCleanup(job.communicate)
        self.addCleanup(job.kill)
        self.assertEqual(job.stdout.readline(), "here\n")
        return job

    def test_who_does_not_want_to_be_seen_is_not(self):
        job = self.start()
        self.assertEqual(json.loads(self.run_job(STERNA, "ps", "--json").stdout), [])
        self.assertEqual(self.run_job(STERNA, "top", job.pid, "--once").returncode, 1)
        self.end.touch()
        self.assertEqual(job.wait(timeout=SECONDS), 0)

    def test_one_that_was_killed_is_forgotten(self):
        job = self.start(STERNA_VISIBLE="on")
        self.assertEqual(len(json.loads(self.run_job(STERNA, "ps", "--json").stdout)), 1)
        job.kill()
        job.wait()
        done = self.run_job(STERNA, "ps", "--json")
        self.assertEqual((json.loads(done.stdout), done.stderr), ([], ""))


if __name__ == "__main__":
    main()
