// Drivers between two processes that spin, beside the bare machine in the same run: one cache line
// there and back, memcpy, a raw TCP socket. Prints one row a figure; ratio is cost-like, ours over
// the reference. Best of several rounds: the machine is shared.
//   drivers_bench [name of a driver]
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "net/driver.h"
#include "net/drivers/test_job.h"

namespace {

using namespace sterna;
using namespace sterna::net;

constexpr int kRounds = 5;
constexpr std::uint32_t kAddressRoom = 4096;

/// Shared by the two processes; made before fork.
struct Shared {
  alignas(128) std::atomic<std::uint32_t> ball;
  alignas(128) std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint32_t> address_bytes[2];
  std::byte addresses[2][kAddressRoom];
  alignas(128) double result;
  alignas(4096) std::byte target[4 << 20];
};

Shared* shared;

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

void meet(std::uint32_t& generation) {
  generation += 2;
  shared->arrived.fetch_add(1);
  while (shared->arrived.load() < generation) {
    cpu_pause();
  }
}

/// Runs `body(node)` in two processes on two processors; node 0 leaves its figure in `result`.
template <typename Body>
double in_two_processes(Body body) {
  shared->ball = 0;
  shared->arrived = 0;
  shared->address_bytes[0] = shared->address_bytes[1] = 0;
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    pin(1);
    body(1U);
    ::_exit(0);
  }
  pin(0);
  body(0U);
  int status = 0;
  ::waitpid(child, &status, 0);
  check(status == 0, "the other process ends well");
  return shared->result;
}

double best_ns(auto round) {
  double best = 1e18;
  for (int i = 0; i < kRounds; ++i) {
    best = std::min(best, round());
  }
  return best;
}

double cache_line_ns() {
  return in_two_processes([](std::uint32_t node) {
    constexpr std::uint32_t kTurns = 100'000;
    std::uint32_t next = node;
    const auto round = [&] {
      const std::uint64_t start = now_ns();
      for (std::uint32_t i = 0; i < kTurns; ++i, next += 2) {
        while (shared->ball.load(std::memory_order_acquire) != next) {
        }
        shared->ball.store(next + 1, std::memory_order_release);
      }
      return static_cast<double>(now_ns() - start) / kTurns / 2;
    };
    const double best = best_ns(round);
    if (node == 0) {
      shared->result = best;
    }
  });
}

double raw_tcp(std::size_t bytes, bool is_stream) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  check(::bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0, "bind");
  ::listen(listener, 1);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  const double ns = in_two_processes([&](std::uint32_t node) {
    int fd;
    if (node == 0) {
      fd = ::accept(listener, nullptr, nullptr);
    } else {
      fd = ::socket(AF_INET, SOCK_STREAM, 0);
      check(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connect");
    }
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::vector<char> buffer(bytes);
    const auto receive = [&] {
      for (std::size_t got = 0; got < bytes;) {
        const auto n = ::recv(fd, buffer.data() + got, bytes - got, MSG_DONTWAIT);
        got += n > 0 ? static_cast<std::size_t>(n) : 0;
      }
    };
    const auto send = [&] { check(::send(fd, buffer.data(), bytes, 0) > 0, "send"); };
    const int turns = is_stream ? static_cast<int>((256U << 20) / bytes) : 20'000;
    const auto round = [&] {
      const std::uint64_t start = now_ns();
      for (int i = 0; i < turns; ++i) {
        node == 0 ? send() : receive();
        if (!is_stream) {
          node == 0 ? receive() : send();
        }
      }
      if (is_stream) {
        node == 0 ? receive() : send();
      }
      return static_cast<double>(now_ns() - start) / turns / (is_stream ? 1 : 2);
    };
    const double best = best_ns(round);
    if (node == 0) {
      shared->result = best;
    }
    ::close(fd);
  });
  ::close(listener);
  return ns;
}

/// Copies what comes, as a receiver would, and counts it.
struct Counter final : PacketSink {
  void on_packet(std::uint32_t, Packet packet) noexcept override {
    std::memcpy(place + (offset & ((1U << 20) - 1)), packet.data(), packet.size());
    offset += packet.size();
    if (offset >= (1U << 20)) {
      offset = 0;
    }
    bytes += packet.size();
    ++count;
  }
  void on_peer_lost(std::uint32_t, std::string_view) noexcept override { check(false, "no loss"); }
  std::vector<std::byte> memory = std::vector<std::byte>((2U << 20) + 64);
  std::byte* place = memory.data();
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

struct Side {
  std::unique_ptr<Driver> driver;
  Channel* channel;
  Counter sink;
  std::vector<std::byte> data = std::vector<std::byte>(4U << 20);
  std::uint64_t expected = 0;

  void send(std::size_t bytes, std::size_t from = 0) {
    const Piece piece{data.data() + from, bytes};
    while (channel->try_send({&piece, 1}) != SendState::accepted) {
      driver->poll(sink, 64);
    }
  }
  void send_message(std::size_t bytes) {
    const std::size_t most = driver->capabilities().packet_bytes_max;
    for (std::size_t from = 0; from < bytes; from += most) {
      send(std::min(most, bytes - from), from);
    }
  }
  void receive(std::size_t bytes) {
    expected += bytes;
    while (sink.bytes < expected) {
      driver->poll(sink, 64);
    }
  }
};

std::unique_ptr<Side> open_side(const DriverEntry& entry, TestJob& job, std::uint32_t node,
                                std::uint32_t& generation) {
  auto side = std::make_unique<Side>();
  auto opened = entry.open({.bootstrap = &job.node(node)});
  check(opened.has_value(), "the driver opens");
  side->driver = std::move(opened.value());
  const Packet address = side->driver->address();
  std::memcpy(shared->addresses[node], address.data(), address.size());
  shared->address_bytes[node] = static_cast<std::uint32_t>(address.size());
  meet(generation);
  const std::uint32_t peer = 1 - node;
  auto channel =
      side->driver->connect(peer, {shared->addresses[peer], shared->address_bytes[peer]});
  check(channel.has_value(), "the driver connects");
  side->channel = channel.value();
  return side;
}

enum class Pattern { ping_pong, stream, direct };

double driver_ns(const DriverEntry& entry, std::size_t bytes, Pattern pattern, int turns) {
  TestJob job{2};
  return in_two_processes([&](std::uint32_t node) {
    std::uint32_t generation = 0;
    auto side = open_side(entry, job, node, generation);
    const auto round = [&] {
      const std::uint64_t start = now_ns();
      for (int i = 0; i < turns; ++i) {
        if (pattern == Pattern::direct) {
          const Piece local{side->data.data(), bytes};
          const RemotePiece remote{reinterpret_cast<std::uint64_t>(shared->target), bytes};
          check(node == 1 || side->channel->write_remote({&local, 1}, {&remote, 1}).has_value(),
                "a direct copy works");
          continue;
        }
        node == 0 ? side->send_message(bytes) : side->receive(bytes);
        if (pattern == Pattern::ping_pong) {
          node == 0 ? side->receive(bytes) : side->send_message(bytes);
        }
      }
      if (pattern != Pattern::ping_pong) {  // The end is when the other side has it all.
        node == 0 ? side->receive(1) : side->send(1);
      }
      const int ways = pattern == Pattern::ping_pong ? 2 : 1;
      return static_cast<double>(now_ns() - start) / turns / ways;
    };
    const double best = best_ns(round);
    if (node == 0) {
      shared->result = best;
    }
    meet(generation);
  });
}

void row(const std::string& id, double ns, std::size_t bytes, const char* reference,
         double reference_ns) {
  std::printf("%-28s %10.3f us %9.2f GB/s   reference %-18s %10.3f us   ratio %.2f\n", id.c_str(),
              ns / 1e3, static_cast<double>(bytes) / ns, reference, reference_ns / 1e3,
              ns / reference_ns);
}

double memcpy_ns(std::size_t bytes) {
  std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes);
  const int turns = static_cast<int>((64U << 20) / bytes);
  return best_ns([&] {
    const std::uint64_t start = now_ns();
    for (int i = 0; i < turns; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    return static_cast<double>(now_ns() - start) / turns;
  });
}

void bench_shm(const DriverEntry& entry) {
  const double line = cache_line_ns();
  const auto latency = [&](std::size_t bytes, int turns) {
    row("shm.latency " + std::to_string(bytes), driver_ns(entry, bytes, Pattern::ping_pong, turns),
        bytes, bytes <= 4096 ? "cache line" : "memcpy", bytes <= 4096 ? line : memcpy_ns(bytes));
  };
  latency(8, 100'000);
  latency(56, 100'000);
  latency(100, 100'000);
  latency(1024, 50'000);
  latency(4096, 20'000);
  latency(65536, 5'000);
  row("shm.packet 8", driver_ns(entry, 8, Pattern::stream, 2'000'000), 8, "cache line", line);
  row("shm.stream 65536", driver_ns(entry, 65536, Pattern::stream, 10'000), 65536, "memcpy",
      memcpy_ns(65536));
  row("shm.direct 65536", driver_ns(entry, 65536, Pattern::direct, 5'000), 65536, "memcpy",
      memcpy_ns(65536));
  row("shm.direct 1048576", driver_ns(entry, 1 << 20, Pattern::direct, 300), 1 << 20, "memcpy",
      memcpy_ns(1 << 20));
}

void bench_tcp(const DriverEntry& entry) {
  for (const std::size_t bytes : {8, 1024, 65536}) {
    row("tcp.latency " + std::to_string(bytes),
        driver_ns(entry, bytes, Pattern::ping_pong, bytes > 8192 ? 3'000 : 20'000), bytes,
        "raw socket", raw_tcp(bytes, false));
  }
  for (const std::size_t bytes : {8, 65536, 1 << 20}) {
    const int turns = static_cast<int>(std::min<std::size_t>(200'000, (256U << 20) / bytes));
    row("tcp.stream " + std::to_string(bytes), driver_ns(entry, bytes, Pattern::stream, turns),
        bytes, "raw socket",
        raw_tcp(std::max<std::size_t>(bytes, 4096), true) * static_cast<double>(bytes) /
            static_cast<double>(std::max<std::size_t>(bytes, 4096)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared = new (memory) Shared;
  std::memset(shared->target, 1, sizeof shared->target);
  for (const DriverEntry* entry : builtin_drivers()) {
    if (argc > 1 && entry->name != argv[1]) {
      continue;
    }
    if (entry->name == "shm") {
      bench_shm(*entry);
    } else if (entry->name == "tcp") {
      bench_tcp(*entry);
    }
  }
  return 0;
}
