"""Workers of a process that may not use all processors: taskset, a cpuset of cgroups, what Slurm
leaves; and of one that loses a processor while it runs.

Arguments: the launcher, the test program (cpuset.c). Exit code 77: this machine has too few
processors, or lets nobody restrict them.
"""

import os
import shutil
import subprocess
import sys
import time

SECONDS = 240


def run(command, what, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, **more)
    text = done.stdout + done.stderr
    if done.returncode != 0 or "No Errors" not in text:
        sys.exit(f"not true: {what}: {' '.join(command)}\n{text}")
    print("ok:", what)


def in_cpuset(program, cpu):
    """A cgroup of the first or second version with that processor; False: not to be had."""
    for root, own in (("/sys/fs/cgroup/cpuset", "cgroup.procs"), ("/sys/fs/cgroup", "cgroup.procs")):
        group = os.path.join(root, f"sterna-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            mems = os.path.join(group, "cpuset.mems")
            with open(os.path.join(root, "cpuset.mems"), encoding="ascii") as source:
                text = source.read()
            with open(mems, "w", encoding="ascii") as file:
                file.write(text)
            with open(os.path.join(group, "cpuset.cpus"), "w", encoding="ascii") as file:
                file.write(str(cpu))
            with open(os.path.join(group, own), "a", encoding="ascii"):
                pass
        except OSError:
            os.rmdir(group)
            continue

        def enter(group=group):
            with open(os.path.join(group, own), "w", encoding="ascii") as file:
                file.write(str(os.getpid()))

        try:
            run([program, "1"], "a cpuset of cgroups", preexec_fn=enter)
        finally:
            for _ in range(50):
                try:
                    os.rmdir(group)
                    break
                except OSError:  # Its last process is on its way out.
                    time.sleep(0.1)
        return True
    return False


def restrict(pid, cpus):
    """As taskset -ap: all threads of a process that runs."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            os.sched_setaffinity(int(thread), cpus)
        except ProcessLookupError:
            pass


def watch(launcher, program, cpus):
    with subprocess.Popen(
        [launcher, "run", "-n", "1", "--set", "follow_processors=20ms", program, "watch"],
        stdout=subprocess.PIPE, text=True) as job:
        try:
            for expected, allowed in (("all", None), ("fewer", set(cpus[:-1])), ("all", set(cpus))):
                if allowed is not None:
                    restrict(pid, allowed)
                word = job.stdout.readline().split()
                if not word or word[0] != expected:
                    sys.exit(f"not true: the workers follow: {word} is {expected}")
                pid = int(word[1])
            if "No Errors" not in job.stdout.read():
                sys.exit("not true: the program ends well")
        finally:
            job.kill()
    print("ok: a processor goes and returns")


def main():
    launcher, program = sys.argv[1:3]
    cpus = sorted(os.sched_getaffinity(0))
    taskset = shutil.which("taskset")
    if len(cpus) < 2 or taskset is None:
        print("skipped: it takes two processors and taskset (util-linux) to leave some out")
        sys.exit(77)
    run([taskset, "-c", str(cpus[-1]), program, "1"], "taskset to one")
    run([taskset, "-c", f"{cpus[0]},{cpus[-1]}", program, "2"], "taskset to two")
    run([taskset, "-c", str(cpus[0]), launcher, "run", "-n", "2", program, "1"],
        "two nodes share what taskset leaves")
    # Slurm binds a task to its processors; what it writes into the environment beside that is the
    # share of the step, which may be more or (--overcommit) less.
    slurm = dict(os.environ, SLURM_JOB_ID="1", SLURM_CPUS_PER_TASK="64", SLURM_CPUS_ON_NODE="64",
                 SLURM_NTASKS="1", SLURM_PROCID="0", SLURM_LOCALID="0")
    run([taskset, "-c", str(cpus[-1]), program, "1"], "a task of Slurm", env=slurm)
    if not in_cpuset(program, cpus[-1]):
        print("skipped: no cgroup for a cpuset is to be had here")
    watch(launcher, program, cpus)


main()
