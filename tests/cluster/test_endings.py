"""How a job of moving ranks ends when a rank goes wrong: what is said, with which code."""

import os
import signal

from moving import CLUSTER, SECONDS, MoveTest, main, wait_until

LONG = 10_000_000  # Milliseconds: longer than any machine takes to make the moves. The test ends the job.


class Endings(MoveTest):
    def end(self, how, *options):
        done, _ = self.run_moving("-n", 4, "--nodes", 2, "--set", "shuffle=3", *options,
                                  program=[CLUSTER / "cluster_counting", 10000, how, 2])
        return done

    def test_a_fault_names_rank_node_and_signal(self):
        for how, text, code in (("segv", "rank 2 .*node [01].*signal 11 .*address 0x10, instruction 0x[1-9a-f]", 139),
                                ("abort", "rank 2 .*node [01].*SIGABRT|rank 2 .*node [01].*signal 6", 134),
                                ("overflow", "(?s)rank 2.*stack", 139)):
            with self.subTest(how):
                done = self.end(how)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertRegex(done.stderr, text)

    def test_an_exit_without_finalize_names_the_rank(self):
        done = self.end("exit")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, "rank 2 .*exited with code 3 before MPI_Finalize")

    def test_mpi_abort_names_the_rank(self):
        done = self.end("mpi_abort")
        self.assertEqual(done.returncode, 42, done.stderr)
        self.assertRegex(done.stderr, "rank 2 .*MPI_Abort with code 42")

    def test_an_interrupt_ends_a_moving_job(self):
        job = self.start_job(*self.words("-n", 4, "--nodes", 2, "--set", "shuffle=1",
                                         program=[CLUSTER / "cluster_counting", LONG]))
        self.assertTrue(wait_until(lambda: any(r["moves"] > 20 for r in self.ranks(job))))
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 130)

    def test_a_killed_node_ends_a_moving_job(self):
        job = self.start_job(*self.words("-n", 4, "--nodes", 2, "--set", "shuffle=1",
                                         program=[CLUSTER / "cluster_counting", LONG]))
        self.assertTrue(wait_until(lambda: any(r["moves"] > 20 for r in self.ranks(job))))
        os.kill(self.node_pid(job, 1), signal.SIGKILL)
        _, errors = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 137, errors)
        self.assertRegex(errors, "node 1|lost")


class Growth(MoveTest):
    def test_memory_and_descriptors_of_nodes_stay_bounded(self):
        job = self.start_job(*self.words("-n", 4, "--nodes", 2, "--set", "shuffle=1",
                                         program=[CLUSTER / "cluster_counting", LONG]))
        def moves():
            return sum(rank["moves"] for rank in self.ranks(job))
        self.assertTrue(wait_until(lambda: moves() > 200))
        def sizes():
            found = []
            for node in (0, 1):
                pid = self.node_pid(job, node)
                with open(f"/proc/{pid}/status", encoding="ascii") as status:
                    anonymous = next(line for line in status if line.startswith("RssAnon"))
                with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
                    areas = sum(1 for _ in maps)
                found.append((int(anonymous.split()[1]), len(os.listdir(f"/proc/{pid}/fd")), areas))
            return found
        before, first = sizes(), moves()
        self.assertTrue(wait_until(lambda: moves() > first + 1000))
        for old, new in zip(before, sizes()):
            self.assertLess(new[0], old[0] + 4096)  # KiB
            self.assertLess(new[1], old[1] + 16)
            self.assertLess(new[2], old[2] + 200)
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 130)


if __name__ == "__main__":
    main()
