"""What the tests of the launcher share: running it, and looking for what it leaves behind."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "runner"))
from runner import main  # noqa: E402,F401  (runner/runner.py)

GRID = pathlib.Path(__file__).resolve().parents[2] / "tools" / "grid" / "grid"
BIN = pathlib.Path(os.environ["STERNA_BIN"])
PROBE = os.environ["STERNA_PROBE"]
STERNA = str(BIN / "sterna")
MPIEXEC = str(BIN / "mpiexec")


# What starts us in the background has them ignored (a shell's script), and then so have our jobs.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

# Limits of time only bound what hangs: whatever a busy machine of one processor does takes less.
SECONDS = 120


def run(*words, seconds=SECONDS + 60, **options):
    """The finished process of a command, with its output as text."""
    return subprocess.run([str(word) for word in words], text=True, capture_output=True,
                          timeout=seconds, **options)


def start(*words, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([str(word) for word in words], text=True, **options)


def processes_with(marker):
    """Processes that carry `marker` in their environment: {pid: command line}."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:
                pass
    return found


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def build_program(cls, text):
    """For a class of tests, an MPI program: `folder`, which lasts as long as they, and `program` in it."""
    folder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(folder.cleanup)
    cls.folder = pathlib.Path(folder.name)
    cls.program = cls.folder / "program"
    source = cls.program.with_suffix(".c")
    source.write_text(text)
    subprocess.run([BIN / "mpicc", source, "-o", cls.program], check=True)


@unittest.skipUnless(os.getuid() == 0, "network namespaces need root")
class GridTest(unittest.TestCase):
    """An MPI program (PROGRAM), and hosts in network namespaces to run it on, by tools/grid."""

    PROGRAM: str

    @classmethod
    def setUpClass(cls):
        build_program(cls, cls.PROGRAM)

    @classmethod
    def grid_up(cls, prefix, topology):
        """The caller sees to it that it goes down."""
        cls.name = f"{prefix}{os.getpid() % 10000}"
        (cls.folder / "topology.grid").write_text(topology)
        up = cls.grid("up", cls.folder / "topology.grid")
        if up.returncode != 0:
            raise unittest.SkipTest(f"no namespaces here: {up.stderr.strip()}")

    @classmethod
    def grid(cls, *words):
        return run(GRID, "-n", cls.name, *words)


class LaunchTest(unittest.TestCase):
    """Each test has a marker in the environment by which its processes are known."""

    def setUp(self):
        self.marker = f"STERNA_TEST_MARK={os.getpid()}.{time.monotonic_ns()}"
        name, _, value = self.marker.partition("=")
        self.environment = {**os.environ, name: value}
        self.shared_memory = set(os.listdir("/dev/shm"))
        runtime = tempfile.TemporaryDirectory()  # Only our jobs are to be seen there, not those beside us.
        self.addCleanup(runtime.cleanup)
        self.environment["XDG_RUNTIME_DIR"] = runtime.name

    def tearDown(self):
        left = wait_until(lambda: not processes_with(self.marker))
        remains = processes_with(self.marker)
        for pid in remains:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.assertTrue(left, f"processes were left behind: {remains}")
        # What is there for a moment only may be of a test that runs beside this one.
        new = lambda: {n for n in set(os.listdir("/dev/shm")) - self.shared_memory if "sterna" in n}
        self.assertTrue(wait_until(lambda: not new()), f"shared memory was left behind: {new()}")

    def run_job(self, *words, **options):
        options.setdefault("env", self.environment)
        return run(*words, **options)

    def start_job(self, *words, **options):
        options.setdefault("env", self.environment)
        return start(*words, **options)

    def wait_for_ranks(self, count):
        """Until the ranks of the job run our probe."""
        def ranks():
            return [c for c in processes_with(self.marker).values() if c.startswith(PROBE.encode())]
        self.assertTrue(wait_until(lambda: len(ranks()) >= count), "the ranks did not start")

    def job_of(self, process):
        """What `sterna ps` says of the job; empty when it has ended. A launcher that is slow to open its
        socket, or to answer, is asked again."""
        found = {}

        def is_known():
            listed = json.loads(self.run_job(STERNA, "ps", "--json").stdout or "[]")
            found.update(next((job for job in listed if job["job"] == process.pid), {}))
            return found or process.poll() is not None

        wait_until(is_known)
        return found

    def node_pid(self, process, node):
        nodes = self.job_of(process).get("nodes", [])
        return nodes[node]["pid"] if nodes else None
