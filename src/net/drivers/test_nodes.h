// For the tests of drivers: nodes that record what they receive, polled until something is true.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/driver.h"
#include "net/drivers/choice.h"
#include "net/drivers/test_job.h"

namespace sterna::net {

inline constexpr int kPatienceMs = 60'000;
inline constexpr std::uint64_t kPatienceNs = kPatienceMs * UINT64_C(1'000'000);

struct Recorder final : PacketSink {
  void on_packet(std::uint32_t from_node, Packet packet) noexcept override {
    packets.emplace_back(from_node,
                         std::string{reinterpret_cast<const char*>(packet.data()), packet.size()});
  }
  void on_peer_lost(std::uint32_t node, std::string_view reason) noexcept override {
    losses.emplace_back(node, reason);
    packets_before_loss = packets.size();
  }
  void on_copies_refused(std::uint32_t node) noexcept override { refusals.push_back(node); }
  std::vector<std::pair<std::uint32_t, std::string>> packets;
  std::vector<std::pair<std::uint32_t, std::string>> losses;
  std::vector<std::uint32_t> refusals;
  std::size_t packets_before_loss = 0;
};

inline SendState send_text(Channel& channel, const std::string& text) {
  const Piece piece = std::as_bytes(std::span{text});
  return channel.try_send({&piece, 1});
}

/// Where the nodes of this process, and of those that it forks, record what they send: made before
/// any of them, gone with it.
struct RecordFiles {
  ~RecordFiles() {
    for (int node = 0; node < 3; ++node) {
      ::unlink((path + "." + std::to_string(node)).c_str());
    }
  }
  const std::string path = "/tmp/sterna-record-" + std::to_string(::getpid());
};
inline const RecordFiles kRecordFiles;

/// What a text names, as in a list of drivers; "sim", which no list has, as well.
inline DriverChoice choice_of(std::string text) {
  if (text.starts_with("record(")) {
    text.insert(text.size() - 1, ",file=" + kRecordFiles.path);
  }
  const std::size_t simulated = text.find("sim");
  if (simulated != std::string::npos) {
    text.replace(simulated, 3, "tcp");
  }
  auto chosen = choose_drivers(text);
  check(chosen.has_value(), chosen ? "" : chosen.error().text.c_str());
  if (simulated != std::string::npos) {
    chosen.value().front().entry = &kSimDriver;
  }
  return chosen.value().front();
}

/// The name of a test that is about `text`: letters and digits.
inline std::string test_name_of(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  while (text.ends_with('_')) {
    text.pop_back();
  }
  return text;
}

/// All built-in drivers, by name; of fabric the providers that a single host has.
inline std::vector<std::string> drivers_to_test() {
  std::vector<std::string> names;
  for (const DriverEntry* entry : builtin_drivers()) {
    if (entry->name == "fabric") {
      names.insert(names.end(), {"fabric@tcp", "fabric@shm", "fabric@sockets"});
    } else if (entry->name != "replay") {  // It has no peers.
      names.emplace_back(entry->name);
    }
  }
  return names;
}

/// One node of a job with one driver.
struct TestNode {
  TestNode(const DriverEntry& entry, TestJob& job, std::uint32_t node, DriverOptions options = {})
      : TestNode{DriverChoice{.entry = &entry}, job, node, options} {}
  TestNode(DriverChoice what, TestJob& job, std::uint32_t node, DriverOptions options = {})
      : choice{std::move(what)} {
    // It knows its own start only.
    options.bootstrap = choice.entry == &kSimDriver ? &job.simulated_node(node) : &job.node(node);
    auto opened = open_driver(choice, options);
    if (!opened && opened.error().code == Errc::unsupported) {
      absent = opened.error().text;  // A library, or a provider of it.
      return;
    }
    check(opened.has_value(), opened ? "" : opened.error().text.c_str());
    driver = std::move(opened.value());
  }
  Channel& to(std::uint32_t node, Packet address) {
    Channel*& channel = channels[node];
    if (channel == nullptr) {
      auto connected = driver->connect(node, address);
      check(connected.has_value(), connected ? "" : connected.error().text.c_str());
      channel = connected.value();
    }
    return *channel;
  }
  Channel& to(const TestNode& peer, std::uint32_t node) { return to(node, peer.driver->address()); }
  std::uint32_t poll(std::uint32_t packets_max = 64) { return driver->poll(sink, packets_max); }

  const DriverChoice choice;  // The driver points into it.
  std::map<std::uint32_t, Channel*> channels;
  Recorder sink;
  std::unique_ptr<Driver> driver;
  std::string absent;  // Why there is no driver here; the test is to be skipped.
};

/// Polls all `nodes` until `is_done()`; false: it does not come true.
template <typename Done>
[[nodiscard]] bool poll_until(std::initializer_list<TestNode*> nodes, Done is_done,
                              std::uint64_t patience_ns = kPatienceNs) {
  const std::uint64_t deadline = now_ns() + patience_ns;
  while (!is_done()) {
    for (TestNode* node : nodes) {
      node->poll();
    }
    if (now_ns() > deadline) {
      return false;
    }
  }
  return true;
}

/// Sends, polling while the channel is full. False: closed, or full for ever.
[[nodiscard]] inline bool send_patiently(std::initializer_list<TestNode*> nodes, Channel& channel,
                                         const std::string& text) {
  SendState state = SendState::full;
  return poll_until(nodes, [&] { return (state = send_text(channel, text)) != SendState::full; }) &&
         state == SendState::accepted;
}

inline bool is_readable(int fd, int timeout_ms) {
  pollfd asked{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&asked, 1, timeout_ms) == 1;
}

}  // namespace sterna::net
