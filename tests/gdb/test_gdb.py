"""tools/gdb/sterna.py: user threads of a live process and of a core file, and ranks of a node."""

import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "launch"))
from harness import SECONDS, STERNA, LaunchTest, main, wait_until  # noqa: E402

SCRIPT = os.environ["STERNA_GDB_SCRIPT"]
PARKED = os.environ["STERNA_PARKED"]
COUNTING = os.environ["STERNA_COUNTING"]


def gdb(*commands, program=(), core=None, pid=None):
    words = ["gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set pagination off",
             "-ex", f"source {SCRIPT}"]
    for command in commands:
        words += ["-ex", command]
    if pid is not None:
        words += ["-p", str(pid)]
    words += ["--args", *program] if program and core is None else [*program]
    words += [str(core)] if core else []
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=SECONDS, stdin=subprocess.DEVNULL)
    return done.stdout


def why_not():
    if shutil.which("gdb") is None:
        return "there is no gdb"
    if "yes" not in gdb("python print('yes')"):
        return "this gdb has no Python"
    if "exited" not in gdb("run", program=["/bin/true"]):
        return "gdb may not trace processes here"
    return None


class Threads(unittest.TestCase):
    """All is asked of one live process and of its core file."""

    COMMANDS = ["sterna threads", "sterna bt locker", "sterna bt all", "sterna thread locker", "bt",
                "up", "frame function waits_for_mutex", "info locals", "sterna thread", "bt 20",
                "sterna thread nobody", "sterna bt unborn"]

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.no_core = None
        asked = [word for command in cls.COMMANDS
                 for word in (f"echo \\n=== {command}\\n", command)]
        cls.live = gdb("break all_are_parked", "run", *asked, "continue", program=[PARKED])
        core = cls.leave_core()
        cls.dead = gdb(*asked, program=[PARKED], core=core) if core else None

    @classmethod
    def leave_core(cls):
        """The kernel's own: gdb's generate-core-file does not read beyond guard pages."""
        pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
        if "/" in pattern or pattern.startswith("|"):
            cls.no_core = f"cores of this machine go to {pattern}"
            return None
        most = resource.getrlimit(resource.RLIMIT_CORE)[1]
        limit = lambda: resource.setrlimit(resource.RLIMIT_CORE, (most, most))
        subprocess.run([PARKED, "abort"], cwd=cls.folder.name, preexec_fn=limit, timeout=SECONDS,
                       capture_output=True)
        return next(iter(pathlib.Path(cls.folder.name).iterdir()), None)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def answers(self, command):
        for name, text in (("live", self.live), ("core", self.dead)):
            with self.subTest(name):
                if text is None:
                    self.skipTest(self.no_core)
                found = text.partition(f"=== {command}\n")[2].partition("\n=== ")[0]
                self.assertTrue(found, text[-3000:])
                yield found

    def test_the_list_has_state_and_place_of_each_thread_and_no_other(self):
        for listed in self.answers("sterna threads"):
            rows = {line.split()[1]: line for line in listed.splitlines()
                    if re.match(r"\s+\d+ ", line)}
            self.assertEqual(sorted(rows), ["conductor", "locker", "taker", "unborn"], listed)
            self.assertRegex(rows["conductor"], " running ")
            self.assertRegex(rows["locker"], r" waiting .*sterna_mutex_lock\w* < hold_on_mutex")
            self.assertRegex(rows["taker"], r" waiting .*sterna_semaphore_acquire < waits_for_unit")
            self.assertRegex(rows["unborn"], r" ready ")

    def test_a_back_trace_goes_from_the_lock_down_to_the_first_function(self):
        for trace in self.answers("sterna bt locker"):
            order = [trace.find(word) for word in
                     ("sterna_mutex_lock", "hold_on_mutex", "waits_for_mutex",
                      "sterna_context_main")]
            self.assertEqual(order, sorted(order), trace)
            self.assertNotIn(-1, order, trace)
            self.assertEqual(trace.count("in hold_on_mutex"), 4)

    def test_all_back_traces(self):
        for traces in self.answers("sterna bt all"):
            for word in ("waits_for_unit", "waits_for_mutex", "all_are_parked"):
                self.assertIn(word, traces)

    def test_a_thread_is_looked_at_with_the_commands_of_gdb(self):
        for trace in self.answers("bt"):
            self.assertIn("hold_on_mutex", trace)
        for found in self.answers("info locals"):
            self.assertIn("secret = 4711", found)
        for back in self.answers("bt 20"):
            self.assertIn("all_are_parked", back)
            self.assertNotIn("hold_on_mutex", back)

    def test_a_thread_that_has_not_run_says_so(self):
        for trace in self.answers("sterna bt unborn"):
            self.assertIn("sterna_context_entry", trace)

    def test_a_thread_that_is_not_there_is_an_error_with_its_name(self):
        for answer in self.answers("sterna thread nobody"):
            self.assertIn("there is no thread 'nobody'", answer)

    def test_the_process_goes_on_unharmed(self):
        self.assertIn("exited normally", self.live)
        self.assertIn("No Errors", self.live)


class Ranks(LaunchTest):
    def test_ranks_have_the_symbols_of_their_program(self):
        job = self.start_job(STERNA, "run", "-n", 3, "--nodes", 1, COUNTING, 60000)
        try:
            def nodes():
                return [int(entry.name) for entry in pathlib.Path("/proc").iterdir()
                        if entry.name.isdigit() and self.is_node(entry)]
            self.assertTrue(wait_until(lambda: len(nodes()) == 1))
            listed = ""
            for _ in range(20):   # Until they are beyond MPI_Init.
                listed = gdb("sterna threads", "sterna bt r1", pid=nodes()[0])
                if listed.count("main") >= 4:
                    break
            for rank in range(3):
                self.assertRegex(listed, rf"\n\s+r{rank}\s+rank {rank}\s.*main")
            self.assertRegex(listed, r"in main at .*counting\.c:\d+")
        finally:
            job.terminate()
            job.communicate(timeout=SECONDS)

    def is_node(self, entry):
        try:
            return (b"sterna-node" in (entry / "cmdline").read_bytes() and
                    self.marker.encode() in (entry / "environ").read_bytes())
        except OSError:
            return False


class WrongUse(unittest.TestCase):
    def test_a_process_without_sterna_is_told(self):
        self.assertIn("there is no libsterna",
                      gdb("start", "sterna threads", program=["/bin/true"]) +
                      gdb("sterna threads"))


if __name__ == "__main__":
    reason = why_not()
    if reason is not None:
        print("skipped:", reason)
        sys.exit(77)
    main()
