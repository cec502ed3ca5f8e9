// Who is at the other ends of the driver fabric: hellos, losses, orderly ends.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"
#include "net/drivers/fabric/driver.h"
#include "net/opening/auth.h"

namespace sterna::net::fabric {
namespace {

using State = FabricChannel::State;

// Beside the packets of the window: messages that only say what was taken, at most one for each
// half of a window that the peer was allowed to send, and the end.
constexpr std::uint32_t kSpareBuffers = 4;
// A connection that ended may be seen before what was sent earlier by another way: that comes
// first.
constexpr std::uint64_t kQuietNs = 2'000'000;

std::uint64_t random_token() noexcept {
  const Nonce nonce = random_nonce();
  std::uint64_t token;
  std::memcpy(&token, nonce.data(), sizeof token);
  return token | 1;  // 0 is none.
}

}  // namespace

bool FabricDriver::reaches(std::uint32_t node, Packet peer_address) const noexcept {
  auto peer = decode_address(peer_address);
  return peer && peer.value().provider == endpoint_->provider() &&
         control_->reaches(node, peer.value().control);
}

FabricChannel* FabricDriver::channel_to(std::uint32_t node) {
  std::unique_ptr<FabricChannel>& channel = channels_[node];
  if (channel == nullptr) {
    auto made = std::make_unique<FabricChannel>(*this, node);
    const std::uint32_t count = options_.window + kSpareBuffers;
    if (!endpoint_->make_buffers(count, true, node, made->free) ||
        !endpoint_->make_buffers(count, false, node, unposted_)) {
      return nullptr;
    }
    made->begin(random_token());
    channel = std::move(made);
    post_receives();
  }
  return channel.get();
}

Result<Channel*> FabricDriver::connect(std::uint32_t node, Packet peer_address) noexcept {
  auto peer = decode_address(peer_address);
  if (!peer) {
    return peer.error();
  }
  if (auto connected = control_->connect(node, peer.value().control); !connected) {
    return connected;
  }
  FabricChannel* channel;
  {
    const KernelGuard guard{lock_};
    if (is_closed_.load(std::memory_order_relaxed)) {
      return Errc::closed;
    }
    channel = channel_to(node);
    if (channel == nullptr) {
      return Errc::out_of_memory;
    }
    if (!channel->has_said_hello) {
      channel->wants_hello = true;
      needs_care_.store(true, std::memory_order_relaxed);
    }
  }
  ring();
  return static_cast<Channel*>(channel);
}

Result<Channel*> FabricDriver::revive(std::uint32_t node) noexcept {
  if (is_closed_.load(std::memory_order_relaxed)) {
    return Errc::closed;
  }
  const KernelGuard guard{lock_};
  FabricChannel* const channel = channels_[node].get();
  if (channel == nullptr) {
    return Error{Errc::unreachable, "node " + std::to_string(node) + " was never connected to"};
  }
  if (channel->is_closed) {
    return Errc::closed;
  }
  if (channel->state == State::ended) {
    if (auto revived = control_->revive(node); !revived) {
      return revived;
    }
    channel->begin(random_token());
    channel->wants_hello = true;
    needs_care_.store(true, std::memory_order_relaxed);
  }
  return static_cast<Channel*>(channel);
}

void FabricDriver::say_hello(FabricChannel& channel) noexcept {
  tcp::TcpChannel* const way = control_->known_channel(channel.node);
  if (way == nullptr) {
    return;
  }
  const auto name = endpoint_->name();
  const auto hello = encode(Hello{.token = channel.token_here,
                                  .window = options_.window,
                                  .message_bytes = options_.endpoint.message_bytes,
                                  .can_read = endpoint_->can_read(),
                                  .name = {name.begin(), name.end()}});
  const Piece piece{hello};
  const SendState sent = way->try_send({&piece, 1});
  channel.has_said_hello = sent == SendState::accepted;
  channel.wants_hello = sent == SendState::full;
}

void FabricDriver::on_packet(std::uint32_t from_node, Packet packet) noexcept {
  const KernelGuard guard{lock_};
  FabricChannel* const channel = channel_to(from_node);
  if (channel == nullptr) {
    return;  // No memory for it: it stays without an answer.
  }
  auto hello = decode_hello(packet);
  std::string wrong = hello ? judge(*channel, hello.value()) : hello.error().text;
  needs_care_.store(true, std::memory_order_relaxed);
  if (!wrong.empty()) {
    channel->broken = std::move(wrong);
    return;
  }
  channel->token_there = hello.value().token;
  channel->does_peer_read.store(hello.value().can_read && endpoint_->can_read(),
                                std::memory_order_relaxed);
  channel->state = State::standing;
  channel->wants_hello = !channel->has_said_hello;
}

/// What is wrong with a hello; empty: nothing, and its sender has an address.
std::string FabricDriver::judge(FabricChannel& channel, const Hello& hello) {
  if (channel.state != State::joining) {
    return "it said hello twice";
  }
  if (hello.window != options_.window || hello.message_bytes != options_.endpoint.message_bytes) {
    return "it has another fabric_window or fabric_message_bytes";
  }
  if (channel.name != hello.name) {
    auto address = endpoint_->insert(hello.name);
    if (!address) {
      return address.error().text;
    }
    channel.address = address.value();
    channel.name = hello.name;
  }
  return {};
}

void FabricDriver::on_peer_lost(std::uint32_t node, std::string_view reason) noexcept {
  const KernelGuard guard{lock_};
  FabricChannel* const channel = channel_to(node);
  if (channel == nullptr || channel->state >= State::ending) {
    return;
  }
  channel->state = State::ending;
  channel->ending_since_ns = now_ns();
  channel->heard_look = looks_;
  channel->reason = reason;
  return_loans(*channel);
  needs_care_.store(true, std::memory_order_relaxed);
}

std::string FabricDriver::figures() const {
  const KernelGuard guard{lock_};
  return fmt::format(
      "provider {} on {}: {} messages sent, {} of them injected, {} times the provider had no "
      "room; {} packets lent, {} of them came back, {} could not be registered; {} read from "
      "memory "
      "of others; {} messages came that were of nobody",
      endpoint_->provider(), endpoint_->domain(), sent_, injected_, deferred_, lent_, returned_,
      unregistered_, read_, strange_);
}

/// A peer that has closed its connection in good order, which no upcall says.
void FabricDriver::find_closed() noexcept {
  const KernelGuard guard{lock_};
  for (const auto& channel : channels_) {
    if (channel == nullptr || channel->state >= State::ending) {
      continue;
    }
    const tcp::TcpChannel* const way = control_->known_channel(channel->node);
    if (way != nullptr && way->has_ended_well) {
      channel->state = State::ending;
      channel->is_closed = true;
      channel->ending_since_ns = now_ns();
      channel->heard_look = looks_;
      return_loans(*channel);
      needs_care_.store(true, std::memory_order_relaxed);
    }
  }
}

void FabricDriver::care(PacketSink& sink) noexcept {
  needs_care_.store(false, std::memory_order_relaxed);  // Set again by what remains to be done.
  {
    const KernelGuard guard{lock_};
    start_reads();
  }
  for (std::uint32_t node = 0; node < node_count_; ++node) {
    std::string reason;
    {
      const KernelGuard guard{lock_};
      if (channels_[node] == nullptr) {
        continue;
      }
      care_for(*channels_[node]);
      if (!ends(*channels_[node], reason)) {
        continue;
      }
    }
    if (!reason.empty() && !is_closed_.load(std::memory_order_relaxed)) {
      sink.on_peer_lost(node, reason);
    }
  }
  if (is_closed_.load(std::memory_order_relaxed)) {
    finish_close();
  }
}

void FabricDriver::abandon(std::uint32_t node, std::string_view reason) noexcept {
  const KernelGuard guard{lock_};
  FabricChannel* const channel = channels_[node].get();
  if (channel != nullptr && channel->state < State::ending && channel->broken.empty()) {
    channel->broken = reason;
    needs_care_.store(true, std::memory_order_relaxed);
  }
}

void FabricDriver::care_for(FabricChannel& channel) noexcept {
  if (channel.wants_hello) {
    say_hello(channel);
  }
  if (!channel.broken.empty()) {
    if (channel.state < State::ending) {
      control_->abandon(channel.node, channel.broken);  // It calls on_peer_lost().
    }
    channel.broken.clear();
  }
  if (channel.owes_taken) {
    say_taken(channel);
  }
  push(channel);
  if (!channel.owed_ends.empty()) {
    say_ends(channel);
  }
  const bool is_behind =
      channel.wants_hello || channel.state == State::ending ||
      (channel.state == State::standing &&
       (channel.owes_taken || !channel.waiting.empty() || !channel.owed_ends.empty()));
  if (is_behind) {
    needs_care_.store(true, std::memory_order_relaxed);
  }
}

bool FabricDriver::ends(FabricChannel& channel, std::string& reason) noexcept {
  if (channel.is_closed && channel.state == State::standing && !channel.owes_taken &&
      channel.waiting.empty() && channel.owed_ends.empty() && channel.borrowed == 0) {
    channel.state = State::ending;  // It has said `end`, after all that it sent.
    channel.ending_since_ns = 0;
  }
  if (channel.state != State::ending || looks_ - channel.heard_look < kQuietLooks ||
      now_ns() - channel.ending_since_ns < kQuietNs) {
    return false;
  }
  if (!are_reads_over(channel)) {
    return false;
  }
  channel.state = State::ended;
  channel.free.insert(channel.free.end(), channel.waiting.begin(), channel.waiting.end());
  channel.waiting.clear();
  if (!channel.is_closed) {
    endpoint_->clean_after(channel.name);
    reason = channel.reason;
  }
  return true;
}

void FabricDriver::close() noexcept {
  is_closed_.store(true, std::memory_order_relaxed);
  finish_close();
  ring();
}

/// Says `end` to all peers, and once they have taken everything, closes the connections.
void FabricDriver::finish_close() noexcept {
  if (is_control_closed_) {
    return;
  }
  bool is_drained = true;
  {
    const KernelGuard guard{lock_};
    for (const auto& channel : channels_) {
      if (channel == nullptr || channel->state >= State::ending) {
        continue;
      }
      if (channel->borrowed != 0 || !channel->owed_ends.empty()) {
        is_drained = false;
        continue;
      }
      if (channel->state == State::standing && !channel->has_queued_end) {
        channel->has_queued_end = queue_frame(*channel, FrameKind::end) != nullptr;
        push(*channel);
      }
      const bool is_idle = channel->state == State::joining && channel->under_way() == 0;
      is_drained =
          is_drained && (is_idle || (channel->has_queued_end && channel->under_way() == 0));
    }
  }
  if (is_drained) {
    is_control_closed_ = true;
    control_->close();
  }
}

}  // namespace sterna::net::fabric
