// net.layers: what each layer adds to a message of 8 bytes between two nodes, and what it costs
// that any thread may send (paper 004, figure 4). Both nodes are driven by one kernel thread over
// shared memory, so that nothing is waited for: these are instructions, not the way of a line from
// one processor to the other.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/spin_lock.h"
#include "bench/bench.h"
#include "bench/statistics.h"
#include "memory/heap.h"
#include "net/drivers/choice.h"
#include "net/drivers/test_job.h"
#include "net/endpoint.h"
#include "net/matching/gate.h"
#include "net/packets/packet.h"
#include "net/transport.h"
#include "progress/progress.h"

namespace sterna::bench {
namespace {

constexpr int kBatch = 64;      // Messages at once: fewer than wait for room or credit.
constexpr int kMessages = 500;  // Of a round of single ones.
constexpr std::size_t kBytes = 8;
// A difference below the noise means nothing.
constexpr double kLeastNs = 0.1;

template <typename Operation>
double ns_of_one(int count, Operation operation) {
  const std::uint64_t begin = now_ns();
  for (int i = 0; i < count; ++i) {
    operation(i);
  }
  return static_cast<double>(now_ns() - begin) / count;
}

struct Sink final : net::PacketSink {
  void on_packet(std::uint32_t, net::Packet) noexcept override { ++count; }
  void on_peer_lost(std::uint32_t, std::string_view) noexcept override {}
  int count = 0;
};

/// A driver with its channel, alone and below a gate.
class Below {
 public:
  explicit Below(const net::DriverChoice& choice) {
    for (std::uint32_t node = 0; node < 2; ++node) {
      auto opened = net::open_driver(choice, {.bootstrap = &job_.node(node)});
      check(opened.has_value(), "the driver of the bench opens");
      drivers_[node] = std::move(opened.value());
    }
    gate_.open(1, *drivers_[0], drivers_[1]->address(),
               net::CostModel{drivers_[0]->capabilities(), false, {}},
               {&pool_, net::builtin_strategies().front()->strategy, &waiting_, &is_serial_,
                nullptr, nullptr, nullptr});
  }

  void round(std::vector<double>& driver_sends, std::vector<double>& driver_polls,
             std::vector<double>& gate_sends) {
    net::Channel& channel = *gate_.channel();
    net::FrameHeader header;
    const std::array<std::byte, kBytes> bytes{};
    const net::Piece frame[2] = {std::as_bytes(std::span{&header, 1}), bytes};
    driver_sends.push_back(ns_of_one(kBatch, [&](int) {
      check(channel.try_send(frame) == net::SendState::accepted, "a batch has room");
    }));
    driver_polls.push_back(poll());
    gate_sends.push_back(ns_of_one(kBatch, [&](int) {
      check(gate_.send(frame) == net::Gate::SendResult::sent, "a batch has room");
    }));
    (void)poll();
  }

 private:
  double poll() {
    Sink sink;
    const std::uint64_t begin = now_ns();
    while (sink.count < kBatch) {
      drivers_[1]->poll(sink, kBatch);
    }
    return static_cast<double>(now_ns() - begin) / kBatch;
  }

  net::TestJob job_{2};
  std::array<std::unique_ptr<net::Driver>, 2> drivers_;
  net::PacketPool pool_;
  std::atomic<std::uint32_t> waiting_{0};
  const bool is_serial_ = false;
  net::Gate gate_;
};

enum class Safety : std::uint8_t { none, one_lock, many_locks };

/// Two nodes with a rank each.
class Nodes {
 public:
  explicit Nodes(const std::vector<net::DriverChoice>& drivers) {
    for (std::uint32_t node = 0; node < 2; ++node) {
      auto opened = net::Transport::open({.bootstrap = &job_.node(node), .drivers = drivers});
      check(opened.has_value(), "a node of the bench opens");
      transports_[node] = std::move(opened.value());
      auto progress = progress::Progress::open();
      check(progress.has_value(), "the progress of the bench opens");
      progress_[node] = std::move(progress.value());
      transports_[node]->add_to(*progress_[node]);
      endpoints_[node] = net::create_endpoint(*memory::Heap::process(), node);
      endpoints_[node]->is_fixed = true;
      transports_[node]->install(node, endpoints_[node]);
    }
  }
  ~Nodes() {
    for (std::uint32_t node = 0; node < 2; ++node) {
      transports_[node]->remove(node);
      net::destroy_endpoint(endpoints_[node]);
      transports_[node]->remove_from(*progress_[node]);
    }
  }
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  /// One message there and one back, each received as it comes: ns of one.
  double there_and_back(Safety safety) {
    for (std::uint32_t node = 0; node < 2; ++node) {
      transports_[node]->serve_one_caller(safety != Safety::many_locks);
      progress_[node]->serve_one_caller(safety != Safety::many_locks);
    }
    return ns_of_one(kMessages, [&](int i) {
      const std::uint32_t to = static_cast<std::uint32_t>(i) % 2;
      net::RecvRequest receive;
      net::SendRequest send;
      within(safety, [&] { post(to, receive); });
      within(safety, [&] { this->send(1 - to, send); });
      while (!receive.done.done()) {
        within(safety, [&] { (void)progress_[to]->poll(); });
      }
      check(send.done.done(), "so short a message is not waited for");
    });
  }

  void round(std::vector<double>& posts, std::vector<double>& sends, std::vector<double>& polls) {
    std::array<net::RecvRequest, kBatch> receives;
    std::array<net::SendRequest, kBatch> sent;
    const std::uint32_t to = turn_++ % 2;  // To and fro: credit comes back with what goes there.
    posts.push_back(ns_of_one(kBatch, [&](int i) { post(to, receives[i]); }));
    sends.push_back(ns_of_one(kBatch, [&](int i) { send(1 - to, sent[i]); }));
    const std::uint64_t begin = now_ns();
    while (!receives.back().done.done()) {
      (void)progress_[to]->poll();
    }
    polls.push_back(static_cast<double>(now_ns() - begin) / kBatch);
  }

 private:
  template <typename Call>
  void within(Safety safety, Call call) {
    if (safety == Safety::one_lock) {
      const SpinGuard guard{lock_};
      call();
    } else {
      call();
    }
  }
  void post(std::uint32_t at, net::RecvRequest& request) {
    transports_[at]->receive(*endpoints_[at], request, net::Pattern{1 - at, 1, 1},
                             net::Buffer::of(bytes_.data(), bytes_.size()));
  }
  void send(std::uint32_t from, net::SendRequest& request) {
    transports_[from]->send(*endpoints_[from], request, {.rank = 1 - from, .context = 1, .tag = 1},
                            net::Buffer::of(bytes_.data(), bytes_.size()));
  }

  net::TestJob job_{2};
  std::array<std::unique_ptr<progress::Progress>, 2> progress_;
  std::array<std::unique_ptr<net::Transport>, 2> transports_;
  std::array<net::Endpoint*, 2> endpoints_{};
  std::array<std::byte, kBytes> bytes_{};
  std::uint32_t turn_ = 0;
  SpinLock lock_;
};

/// "It is done", said and asked, in memory that is there.
double completion_ns() {
  std::array<progress::Completion, kBatch> completions;
  return ns_of_one(kBatch, [&](int i) {
    completions[i].complete();
    check(completions[i].done(), "a completion that is completed is done");
  });
}

void print_layers(const Row& row, Bench& bench, Below& below, Nodes& nodes) {
  std::vector<double> driver_sends, driver_polls, gate_sends, posts, sends, polls, completions;
  for (int left = bench.rounds(500); left > 0; --left) {
    below.round(driver_sends, driver_polls, gate_sends);
    nodes.round(posts, sends, polls);
    completions.push_back(completion_ns());
  }
  const double transfer = median(driver_sends) + median(driver_polls);
  const double completion = median(completions);
  const auto add = [&](const char* layer, double ns) {
    bench.add({.id = row.id, .params = layer, .unit = "ns", .value = std::max(ns, kLeastNs)});
  };
  add("collect: frame, route, order, credit", median(sends) - median(gate_sends));
  add("optimise: who may send now, what goes first", median(gate_sends) - median(driver_sends));
  add("transfer: into the driver, out of it", transfer);
  add("matching: posted, found, copied",
      median(posts) + median(polls) - median(driver_polls) - completion);
  add("completion", completion);
  add("a message, all together, 64 at once", median(posts) + median(sends) + median(polls));
}

void print_safety(const Row& row, Bench& bench, Nodes& nodes) {
  std::vector<double> none, one, many;
  for (int left = bench.rounds(101); left > 0; --left) {
    none.push_back(nodes.there_and_back(Safety::none));
    one.push_back(nodes.there_and_back(Safety::one_lock));
    many.push_back(nodes.there_and_back(Safety::many_locks));
  }
  bench.add({.id = row.id,
             .params = "a message, one by one, one caller",
             .unit = "ns",
             .value = median(none)});
  const auto add = [&](const char* what, const std::vector<double>& ns, double there) {
    bench.add({.id = row.id,
               .params = what,
               .unit = "ns",
               .value = std::max(median(ns) - median(none), kLeastNs),
               .reference = "there",
               .reference_value = there,
               .target = row.target});
  };
  add("one lock adds", one, 140);
  add("locks of parts, as they are, add", many, 230);
}

}  // namespace

void run_layers(const Row& row, Bench& bench) {
  auto drivers = net::choose_drivers("shm");
  Below below{drivers.value().front()};
  Nodes nodes{drivers.value()};
  print_layers(row, bench, below, nodes);
  print_safety(row, bench, nodes);
}

}  // namespace sterna::bench
