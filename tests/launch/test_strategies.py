"""Strategies of a user's, which a job loads from a library: used, told of, or refused with the reason."""

import json
import os
import pathlib
import re
import subprocess

from harness import BIN, SECONDS, STERNA, LaunchTest, build_program, main

SOURCES = pathlib.Path(__file__).resolve().parents[2]
ABI = int(re.search(r"kStrategyAbi = (\d+);",
                    (SOURCES / "include/sterna/strategy.hpp").read_text()).group(1))

# Tells by explain() how often it was called, and of which traffic with which tags and contexts.
COUNTING = r"""
#include <atomic>
#include <string>
#include <sterna/strategy.hpp>
using namespace sterna::net;
class Counting : public Strategy {
 public:
  std::uint32_t form(std::span<const WaitingFrame> waiting, const PacketLimits&,
                     std::span<std::uint8_t> chosen) const noexcept override {
    ++formed;
    for (const WaitingFrame& frame : waiting) {
      const auto kind = static_cast<unsigned>(frame.traffic);
      ++seen[kind];
      if (frame.tag == 4711) ++tagged[kind];
      if (frame.message_bytes == 4000) ++long_enough[kind];
    }
    chosen[0] = 0;
    return 1;
  }
  std::uint32_t choose_rail(std::span<const RailView> rails, std::uint32_t bytes) const noexcept override {
    ++chosen_rails;
    return earliest_rail(rails, bytes);
  }
  std::string explain(const PacketLimits&) const override {
    std::string text = "formed " + std::to_string(formed) + ", rails " + std::to_string(chosen_rails);
    for (unsigned i = 0; i < 8; ++i)
      text += "; " + std::to_string(seen[i]) + " of which " + std::to_string(tagged[i]) +
              " and " + std::to_string(long_enough[i]);
    return text;
  }
 private:
  mutable std::atomic<unsigned long> formed{0}, chosen_rails{0}, seen[8]{}, tagged[8]{}, long_enough[8]{};
};
STERNA_STRATEGY(Counting, "counting", "counts its calls")
"""

# The strategy of the example, but that it tells how often it formed a packet, and how often of others than the first
# frame alone.
COUNTED = r"""
class Counted : public Shortest {
 public:
  std::uint32_t form(std::span<const WaitingFrame> waiting, const PacketLimits& limits,
                     std::span<std::uint8_t> chosen) const noexcept override {
    const std::uint32_t count = Shortest::form(waiting, limits, chosen);
    ++formed;
    if (count > 1 || chosen[0] != 0) ++changed;
    return count;
  }
  std::string explain(const PacketLimits& limits) const override {
    return Shortest::explain(limits) + "; formed " + std::to_string(formed) + ", changed " + std::to_string(changed);
  }
 private:
  mutable std::atomic<unsigned long> formed{0}, changed{0};
};
"""

# Many messages at once, short ones and long ones, over a network that takes few of them: they wait.
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum { kCount = 300, kShort = 4000, kLong = 1 << 20, kLongCount = 3 };
int main(int argc, char **argv) {
  int rank, flag;
  MPI_Request requests[kCount + kLongCount];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *bytes = calloc((size_t)kCount * kShort + (size_t)kLongCount * kLong, 1);
  for (int i = 0; i < kCount + kLongCount; ++i) {
    char *at = bytes + (i < kCount ? (size_t)i * kShort : (size_t)kCount * kShort + (size_t)(i - kCount) * kLong);
    int size = i < kCount ? kShort : kLong;
    if (rank == 0) MPI_Isend(at, size, MPI_CHAR, 1, 4711, MPI_COMM_WORLD, &requests[i]);
    else MPI_Irecv(at, size, MPI_CHAR, 0, 4711, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(kCount + kLongCount, requests, MPI_STATUSES_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) { printf("on the way\n"); fflush(stdout); }
  while (access(argv[1], F_OK) != 0)
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  MPI_Finalize();
}
"""

# Of rails it chooses always the same, which may be none.
STUBBORN = r"""
#include <sterna/strategy.hpp>
using namespace sterna::net;
class Stubborn : public Strategy {
 public:
  std::uint32_t form(std::span<const WaitingFrame>, const PacketLimits&,
                     std::span<std::uint8_t> chosen) const noexcept override {
    chosen[0] = 0;
    return 1;
  }
  std::uint32_t choose_rail(std::span<const RailView>, std::uint32_t) const noexcept override { return %s; }
};
STERNA_STRATEGY(Stubborn, "stubborn", "chooses always the same rail")
"""

PLUGIN = r"""
struct { unsigned abi; const char *name, *summary; const void *strategy; } sterna_strategy_plugin = {%d, "x", "y", 0};
"""


class Strategies(LaunchTest):
    @classmethod
    def setUpClass(cls):
        build_program(cls, PROGRAM)
        cls.counting = cls.library("counting.cc", COUNTING)
        example = (SOURCES / "examples" / "strategy_shortest.cc").read_text()
        cls.shortest = cls.library("shortest.cc", example)
        ending = "}  // namespace\n\nSTERNA_STRATEGY(Shortest,"
        assert example.count(ending) == 1
        counted = example.replace(ending, COUNTED + ending.replace("Shortest", "Counted"))
        cls.counted = cls.library("counted.cc", "#include <atomic>\n" + counted)

    @classmethod
    def library(cls, name, text):
        """As docs/extending/strategy.md says, with the compiler of the build."""
        source = cls.folder / name
        source.write_text(text)
        output = source.with_suffix(".so")
        words = [BIN / "mpicxx", "-std=c++20"] if name.endswith(".cc") else [BIN / "mpicc"]
        subprocess.run([*words, f"-I{SOURCES / 'include'}", "-shared", "-fPIC", source, "-o", output], check=True)
        return output

    def told(self, library, *options):
        """What the job says of its way from rank 0 to rank 1, after the messages of the program."""
        end = self.folder / "end"
        end.unlink(missing_ok=True)
        job = self.start_job(STERNA, "run", "-n", 2, "--timeout", f"{SECONDS}s",
                             "--set", f"net_strategy={library}", *options, self.program, end)
        try:
            self.assertEqual(job.stdout.readline(), "on the way\n")
            done = self.run_job(STERNA, "info", "--why", "net", 1, "1M", "--job", job.pid, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)
        finally:
            end.touch()
            job.communicate(timeout=SECONDS)

    def test_that_of_the_example_forms_the_packets_of_a_job_that_names_it(self):
        way = self.told(self.shortest, "--drivers", "tcp")
        self.assertEqual(way["strategy"], str(self.shortest))
        sentence = "the shortest messages go first, as many as fit one packet"
        self.assertEqual(way["forming"], sentence)
        way = self.told(self.counted, "--drivers", "delay(tcp,bandwidth=40M)", "--set", "tcp_packet_bytes=16K")
        counts = re.fullmatch(sentence + r"; formed (\d+), changed (\d+)", way["forming"])
        self.assertTrue(counts, way["forming"])
        self.assertGreater(int(counts[1]), 0, way["forming"])
        self.assertGreater(int(counts[2]), 0, way["forming"])

    def test_what_waits_is_shown_to_it_and_each_packet_of_a_link_asks_for_its_rail(self):
        way = self.told(self.counting, "--drivers", "delay(tcp,bandwidth=40M)", "--set", "tcp_connections=2",
                        "--set", "tcp_packet_bytes=16K")
        self.assertTrue(way["driver"].startswith("link("), way["driver"])
        counts = re.fullmatch(r"formed (\d+), rails (\d+); (.*)", way["forming"])
        self.assertTrue(counts, way["forming"])
        self.assertGreater(int(counts[1]), 0, way["forming"])
        self.assertGreater(int(counts[2]), 300, way["forming"])
        kinds = [tuple(map(int, re.findall(r"\d+", part))) for part in counts[3].split("; ")]
        message, more, announcement, head = kinds[:4]
        self.assertGreater(message[0], 0, way["forming"])
        self.assertEqual(message[0], message[1], "all of rank 0's have that tag")
        self.assertEqual(message[0], message[2], "and its length")
        for kind in (more, announcement, head):
            self.assertEqual(kind[0], kind[1], "the same of long messages")

    def test_one_that_chooses_no_rail_that_could_be_is_told_of_once_and_holds_up_nothing(self):
        for rail in ("99", "kNoRail"):
            library = self.library(f"stubborn_{rail}.cc", STUBBORN % rail)
            done = self.run_job(STERNA, "run", "-n", 2, "--timeout", f"{SECONDS}s", "--drivers", "tcp",
                                "--set", "tcp_connections=2", "--set", f"net_strategy={library}", self.program, "/")
            self.assertEqual((done.stdout, done.returncode), ("on the way\n", 0), done.stderr)
            told = [line for line in done.stderr.splitlines() if "breaks a rule" in line]
            self.assertEqual(len(told), 2, f"each node once: {done.stderr}")
            self.assertEqual(len(set(told)), 2, done.stderr)

    def refused(self, library, *texts):
        environment = {**self.environment, "STERNA_NET_STRATEGY": str(library)}
        asked = self.run_job(STERNA, "info", "--why", "net", "tcp", "1K", env=environment)
        self.assertEqual(asked.stdout, "")
        done = self.run_job(STERNA, "run", "-n", 2, "--drivers", "tcp", "--set", f"net_strategy={library}",
                            self.program, "/")
        self.assertEqual(done.stdout, "")
        for process in (asked, done):
            self.assertNotEqual(process.returncode, 0)
            for text in (str(library), *texts):
                self.assertIn(text, process.stderr)

    def test_a_library_without_one_and_one_for_another_version_are_refused(self):
        self.refused(self.library("nothing.c", "int nothing;"), "it does not say STERNA_STRATEGY(...)")
        self.refused(self.library("old.c", PLUGIN % (ABI - 1)), f"was built for version {ABI - 1} of",
                     f"this is version {ABI}: build it again")
        self.refused(self.library("new.c", PLUGIN % (ABI + 1)), f"was built for version {ABI + 1} of",
                     f"this is version {ABI}: ")
        self.refused(self.library("null.c", PLUGIN % ABI), "has no object")
        self.refused(self.folder / "none_such.so", "cannot be loaded")


if __name__ == "__main__":
    main()
