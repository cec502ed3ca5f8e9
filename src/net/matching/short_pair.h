// For tests: two nodes of this process that share memory, with a rank each.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "memory/heap.h"
#include "net/drivers/builtin.h"
#include "net/drivers/test_job.h"
#include "net/endpoint.h"
#include "net/transport.h"
#include "progress/progress.h"

namespace sterna::net {

/// Ranks 0 and 1, each in its node, as two processes would have them.
class Pair {
  static constexpr int kPatience = 1'000'000;  // Rounds of polling.

 public:
  static constexpr std::uint32_t kContext = 3;

  explicit Pair(const std::vector<std::pair<const char*, const char*>>& set = {}) {
    for (const auto& [name, value] : set) {
      check(settings_.set(name, value, SettingSource::command_line, "the test").has_value(),
            "the test sets what there is");
    }
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      static const DriverChoice kDrivers[] = {{.entry = &kShmDriver}};
      auto opened = Transport::open(
          {.bootstrap = &job_.node(rank), .drivers = kDrivers, .settings = &settings_});
      check(opened.has_value(), "a node of the test opens");
      nodes[rank] = std::move(opened.value());
      endpoints[rank] = create_endpoint(*memory::Heap::process(), rank);
      endpoints[rank]->is_fixed = true;
      nodes[rank]->install(rank, endpoints[rank]);
      nodes[rank]->serve_one_caller(true);
    }
  }
  ~Pair() {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      if (progress[rank] != nullptr) {
        nodes[rank]->remove_from(*progress[rank]);
      }
      nodes[rank].reset();
      destroy_endpoint(endpoints[rank]);
    }
  }

  /// Several threads may call from now on; of ranks that never move, or may.
  void share(bool may_move = false) {
    for (Endpoint* const endpoint : endpoints) {
      endpoint->is_fixed = !may_move;
    }
    for (const auto& node : nodes) {
      node->serve_one_caller(false);
    }
    use_progress();
  }
  /// Polls say from now on who polls.
  void use_progress() {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      progress[rank] = std::move(progress::Progress::open().value());
      nodes[rank]->add_to(*progress[rank]);
    }
  }

  bool send_short(std::uint32_t from, std::int32_t tag, std::span<const std::byte> bytes) {
    return nodes[from]->try_send_short(*endpoints[from], {1 - from, kContext, tag}, bytes);
  }
  bool receive_short(std::uint32_t at, std::int32_t tag, std::span<std::byte> into, Envelope& found,
                     std::uint32_t source = kAnySource, Fault* fault = nullptr) {
    return nodes[at]->try_receive_short(*endpoints[at], {source, kContext, tag}, into, found,
                                        fault);
  }
  void send(std::uint32_t from, SendRequest& request, std::int32_t tag,
            std::span<const std::byte> bytes, std::uint8_t priority = 0) {
    nodes[from]->send(*endpoints[from], request, {1 - from, kContext, tag, priority},
                      Buffer::of(bytes.data(), bytes.size()));
  }
  void receive(std::uint32_t at, RecvRequest& request, std::int32_t tag, std::span<std::byte> into,
               std::uint32_t source = kAnySource) {
    nodes[at]->receive(*endpoints[at], request, {source, kContext, tag},
                       Buffer::of(into.data(), into.size()));
  }
  void poll(std::uint32_t node) {
    progress[node] != nullptr ? progress[node]->poll() : nodes[node]->poll();
  }
  /// By who does that; after use_progress().
  void poll_as(threads::SchedulingPoint point, std::uint32_t node, int rounds = 1) {
    while (rounds-- != 0) {
      (void)progress[node]->poll(point);
    }
  }
  void poll() {
    poll(0);
    poll(1);
  }
  template <typename Done>
  bool poll_until(Done is_done) {
    for (int round = 0; round < kPatience && !is_done(); ++round) {
      poll();
    }
    return is_done();
  }
  /// The first message between two ranks goes the long way: it makes what the short one needs.
  void meet() {
    std::array<std::byte, 8> bytes{};
    for (std::uint32_t from = 0; from < 2; ++from) {
      SendRequest send_request;
      RecvRequest receive_request;
      receive(1 - from, receive_request, 0, bytes);
      send(from, send_request, 0, bytes);
      ASSERT_TRUE(
          poll_until([&] { return send_request.done.done() && receive_request.done.done(); }));
    }
  }

 private:
  TestJob job_{2};
  Settings settings_{transport_tunables()};

 public:
  std::array<std::unique_ptr<progress::Progress>, 2> progress;  // Null: one thread calls.
  std::array<std::unique_ptr<Transport>, 2> nodes;
  std::array<Endpoint*, 2> endpoints{};
};

}  // namespace sterna::net
