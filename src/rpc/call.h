// What a caller holds of a call: the call under way, long pieces of its arguments, and the table
// that finds the call again when its reply comes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/annotate.h"
#include "base/result.h"
#include "base/spin_lock.h"
#include "net/message.h"
#include "progress/completion.h"
#include "rpc/bytes.h"
#include "rpc/message.h"

namespace sterna::threads {
struct Thread;
}

namespace sterna::rpc {

inline constexpr std::uint32_t kAnyNode = ~std::uint32_t{0};

struct OutPart;

/// A call whose reply is awaited later. Memory of the caller, until done; node callers only.
struct PendingCall {
  /// If it is set before the start: the reply is stored here, as much as fits, and not in `reply`.
  std::span<std::byte> room = {};
  /// If it is set before the start: no other thread waits for `done`.
  const threads::Thread* only_waiter = nullptr;

  progress::Completion done;
  // What follows is valid when done.
  Result<Bytes> reply = Bytes{};
  std::uint64_t reply_bytes = 0;  // Of the whole reply.
  std::uint32_t status = 0;       // The service's own word, 0 if it has none.
  std::string text;               // And why.
  // Not 0: the reply is a long piece and still to be received: Rpc::receive_reply().
  std::uint64_t part_bytes = 0;
  std::uint32_t part_number = 0;

  // Rpc's.
  std::uint64_t id = 0;
  std::uint32_t to_node = 0;
  std::uint32_t number = 0;            // Of the parts that are read,
  std::span<OutPart> read_parts = {};  // unless they are wanted.
};

/// A long piece of the arguments, which goes from where it lies to where the service wants it.
/// Memory of the caller, as its bytes, until `send.done`.
struct OutPart {
  Part part;  // Its address is Rpc's.
  const void* data = nullptr;
  net::SendRequest send;
};

/// A reply that its service waits for, and that goes from where it lies. Memory of the service, as
/// its bytes, until done.
struct AwaitedReply {
  progress::Completion done;
  net::Fault fault = net::Fault::none;  // Valid when done. Cancelled: Rpc::withdraw_awaited().
  // Rpc's.
  std::uint32_t node = 0;
  std::uint32_t number = 0;
};

struct CallOptions {
  ThreadWish wish = {};
  /// In the order in which they were packed. For nodes that are ranks (RpcOptions::endpoint) only.
  std::span<OutPart> parts = {};
  /// Of start(): they and their bytes stay as they are until the call has ended, which nobody
  /// withdraws: they may be read, then, and count as sent at once.
  bool are_parts_kept = false;
  /// Of post(): while the node has not begun enough of what was posted before. Switches then.
  bool may_wait = false;
};

/// Calls by number. Any thread.
class CallTable {
 public:
  /// The number, never 0, of kIdBits; the call is known until take(). `call.to_node` is set. 0:
  /// that node is lost. Throws bad_alloc.
  [[nodiscard]] std::uint64_t add(PendingCall& call);
  /// A number that is not in use, for put(). Throws bad_alloc.
  [[nodiscard]] std::uint64_t reserve();
  /// The next one in its place, for whoever has it and has not put() it.
  [[nodiscard]] static std::uint64_t next(std::uint64_t id) noexcept;
  /// As add(), under a number that the caller has reserved. False: the node is lost.
  [[nodiscard]] bool put(std::uint64_t id, PendingCall& call) noexcept;
  /// The call, which is known still; null: none. For who alone takes it.
  [[nodiscard]] PendingCall* find(std::uint64_t id) const noexcept;
  /// Null: nobody waits for that any more. The call is the caller's to complete.
  [[nodiscard]] PendingCall* take(std::uint64_t id) noexcept;
  /// From now on no call to `node` is added. The calls to it that are under way.
  [[nodiscard]] std::vector<std::uint64_t> lose(std::uint32_t node);
  [[nodiscard]] bool is_lost(std::uint32_t node) const noexcept;
  /// How many numbers were ever taken.
  [[nodiscard]] std::uint64_t taken_count() const noexcept;

 private:
  struct Slot {
    PendingCall* call = nullptr;
    std::uint32_t generation = 1;
    std::uint32_t next_free = 0;
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr int kIndexBits = kIdBits - 32;  // Below the generation.
  static constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kIndexBits) - 1;

  [[nodiscard]] Slot& take_free() STERNA_REQUIRES(lock_);
  [[nodiscard]] bool is_known_lost(std::uint32_t node) const noexcept STERNA_REQUIRES(lock_) {
    return node < lost_.size() && lost_[node];
  }
  [[nodiscard]] std::uint64_t id_of(const Slot& slot) const noexcept STERNA_REQUIRES(lock_) {
    return std::uint64_t{slot.generation} << kIndexBits |
           static_cast<std::uint64_t>(&slot - slots_.data());
  }

  mutable SpinLock lock_;
  std::vector<Slot> slots_ STERNA_GUARDED_BY(lock_);
  std::uint32_t first_free_ STERNA_GUARDED_BY(lock_) = kNone;
  std::uint64_t taken_ STERNA_GUARDED_BY(lock_) = 0;
  std::vector<bool> lost_ STERNA_GUARDED_BY(lock_);  // By node; as long as the last lost one.
};

}  // namespace sterna::rpc
