// Plain messages, of which most are: whole, in one packet, as send() makes them. What is asked of
// them and done with them where they are taken at once (short.cc, among.cc, and poll() by way of
// accept_plain()). All under the lock of the receiver.
#pragma once

#include <algorithm>
#include <atomic>

#include "base/prefetch.h"
#include "net/buffer.h"
#include "net/core.h"
#include "net/matching/posted.h"
#include "net/peer.h"
#include "net/traced.h"

namespace sterna::net {

[[nodiscard]] inline bool has_posted(const Endpoint& at) noexcept {
  return (at.posted_count[0] | at.posted_count[1] | at.posted_count[2] | at.posted_count[3]) != 0;
}

[[nodiscard]] inline bool fits(const Pattern& pattern, const FrameHeader& header) noexcept {
  return header.context == pattern.context &&
         (header.source == pattern.source || pattern.source == kAnySource) &&
         (header.tag == pattern.tag || pattern.tag == kAnyTag);
}

/// A whole message in one packet of `bytes` bytes, of the plain kind that send() makes.
[[nodiscard]] inline bool is_plain(const FrameHeader& header, std::size_t bytes) noexcept {
  return header.kind == FrameKind::eager && header.flags == kFrameHasCredit && header.hops == 0 &&
         header.priority <= kPriorityMax && header.tag >= 0 &&
         header.payload_bytes == bytes - kHeaderBytes && header.payload_bytes == header.total_bytes;
}

/// To take a lock waits for all loads before it, and what comes after it waits for the lock: the
/// lines of a packet are on their way meanwhile.
inline void fetch(Packet packet) noexcept {
  constexpr std::size_t kFetchedMax = 1024;
  const std::size_t bytes = std::min(packet.size(), kFetchedMax);
  for (std::size_t at = kCacheLineBytes; at < bytes; at += kCacheLineBytes) {
    fetch_for_reading(packet.data() + at);
  }
}

/// As receive() begins.
inline void prepare(RecvRequest& request, std::byte* into, std::uint64_t bytes) noexcept {
  request.may_be_written = false;  // Of its last use.
  check(request.state == RecvRequest::State::idle, "a receive request is used once at a time");
  request.done.reset();
  request.fault = Fault::none;
  request.id = kNoId;
  // Field by field: a copy of what was just written in parts would wait for them.
  request.data.address = into;
  request.data.bytes = bytes;
  request.data.extents = nullptr;
  request.data.extent_count = 0;
}

/// A message of so many bytes is taken and consumed at once.
[[gnu::always_inline]] inline void take_plain(Peer& peer, std::uint64_t bytes,
                                              std::uint32_t told_credit) noexcept {
  const std::uint32_t credit = credit_of(bytes);
  take_credit(peer, told_credit);
  ++peer.receive_sequence;
  peer.eager_received += credit;
  peer.consumed += credit;
}

/// The peer of a plain message whose turn it is; null: not that, or there is more to do than to
/// take it: it goes beyond the credit of its sender, or it is time to tell that of ours.
[[nodiscard, gnu::always_inline]] inline Peer* find_plain_peer(const Endpoint& at,
                                                               const FrameHeader& header,
                                                               std::uint32_t window) noexcept {
  Peer* const peer = find_peer(at, header.source);
  if (peer == nullptr || turn_of(*peer, header.sequence) != Turn::now || peer->early != nullptr ||
      peer->partial_left != 0) {
    return nullptr;
  }
  const std::uint32_t credit = credit_of(header.total_bytes);
  const bool is_more = header.total_bytes > window ||
                       peer->eager_received + credit - peer->consumed > window ||
                       peer->consumed + credit - peer->consumed_told >= window / 2;
  return is_more ? nullptr : peer;
}

/// A receive that was posted has its plain message. `is_serial`: one thread calls.
[[gnu::always_inline]] inline void finish_plain(Peer& peer, const FrameHeader& header,
                                                Packet packet, RecvRequest& request,
                                                bool is_serial) noexcept {
  take_plain(peer, header.total_bytes, header.credit);
  request.envelope = {header.source, header.context, header.tag, header.total_bytes};
  request.message_bytes = request.received_bytes = header.total_bytes;
  trace_message(trace::Kind::receives, request.envelope, header.destination);
  if (header.total_bytes > request.data.bytes) {
    request.envelope.bytes = request.data.bytes;
    request.fault = Fault::truncated;
  }
  if (request.data.extents == nullptr) [[likely]] {
    copy_bytes(request.data.address, packet.data() + kHeaderBytes, request.envelope.bytes);
  } else {
    copy_in(request.data, 0, packet.data() + kHeaderBytes, request.envelope.bytes);
  }
  request.state = RecvRequest::State::idle;
  if (is_serial) {
    request.done.complete_alone();
    return;
  }
  // Who waits suspended is withdrawn under this lock only, and needs no exchange.
  const threads::Waiter waiter = request.done.complete_unsignalled();
  if (waiter) {
    // For the record of the waiter, as complete() acquires it.
    std::atomic_thread_fence(std::memory_order_acquire);
    waiter.signal();
  }
}

/// A receive of `pattern` that is posted after all others takes a message in place, or finds for
/// whom it is. `kBesidePosted` false: there are no others.
template <bool kBesidePosted>
[[nodiscard, gnu::always_inline]] inline Taken TransportCore::take_seen(
    RankEntry& entry, Endpoint& at, const Pattern& pattern, std::span<std::byte> into,
    Packet packet, Envelope& found) noexcept {
  // Unlikely, so that the header is copied by a few moves, not by an instruction that repeats.
  FrameHeader header;
  if (packet.size() < kHeaderBytes) [[unlikely]] {
    return Taken::nothing;
  }
  std::memcpy(&header, packet.data(), kHeaderBytes);
  if (!is_plain(header, packet.size()) || header.destination != at.rank) [[unlikely]] {
    return Taken::nothing;
  }
  Peer* const peer = find_plain_peer(at, header, options_.eager_window_bytes);
  if (peer == nullptr) [[unlikely]] {
    return Taken::nothing;
  }
  if constexpr (kBesidePosted) {
    RecvRequest* const request =
        has_posted(at) ? take_posted(entry, at, {header.source, header.context, header.tag},
                                     header.sequence + 1)
                       : nullptr;
    if (request != nullptr) {
      finish_plain(*peer, header, packet, *request, is_serial_);
      return Taken::posted;
    }
  }
  if (!fits(pattern, header) || header.total_bytes > into.size()) {
    return Taken::nothing;
  }
  copy_bytes(into.data(), packet.data() + kHeaderBytes, header.total_bytes);
  take_plain(*peer, header.total_bytes, header.credit);
  found = {header.source, header.context, header.tag, header.total_bytes};
  trace_message(trace::Kind::receives, found, at.rank);
  return Taken::ours;
}

}  // namespace sterna::net
