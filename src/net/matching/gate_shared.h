// What the gates of one node share.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "net/driver.h"
#include "net/packets/packet_pool.h"
#include "net/packets/strategy.h"
#include "threads/hand_over.h"

namespace sterna::net {

class SideWork;

/// What a thread that sends a frame does next.
enum class Sender : std::uint8_t {
  waits,    // For an answer, or somebody else does: it sends at once.
  goes_on,  // With something else, and would rather have it sent by somebody idle.
  follows,  // With another frame to the same node, at once: a short one may go with that.
};

struct GateShared {
  PacketPool* pool;
  const Strategy* strategy;
  std::atomic<std::uint32_t>* waiting_count;  // Gates whose frames wait for room.
  const bool* is_serial;                      // See Transport::serve_one_caller().
  // Takes over a frame that waited for a gate while the route it was given became old.
  void (*on_stale)(void* core, HeldPacket* packet) noexcept;
  // The strategy broke a rule of its interface.
  void (*on_bad_choice)(void* core, const char* rule) noexcept;
  void* core;
  Clock* clock = nullptr;  // For strategies that learn, and for what messages turn out to cost.
  // Of the workers that progress this node; null where there are none, or none may send for others.
  const std::atomic<threads::HandOver*>* hand_over = nullptr;
  // Frames begin to wait for room, or some that others had left here have gone: who sleeps for the
  // network has to wait for room too, or to wake who is to answer them.
  void (*wake_sleeper)(void* core) noexcept = nullptr;
  KeptCount* kept = nullptr;      // Has one of each gate whose frames wait; null: nobody asks.
  SideWork* side_work = nullptr;  // For hand_over, of pieces: see Gate::try_send_two().
};

}  // namespace sterna::net
