// The table of calls under way. A number is a slot and how often that was used: a reply that comes
// too late finds another generation, or nobody.
#include "rpc/call.h"

#include <utility>

#include "base/check.h"

namespace sterna::rpc {

CallTable::Slot& CallTable::take_free() {
  if (first_free_ == kNone) {
    check(slots_.size() >> kIndexBits == 0, "a process has fewer calls under way than ids");
    slots_.emplace_back();
    first_free_ = static_cast<std::uint32_t>(slots_.size() - 1);
    slots_[first_free_].next_free = kNone;
  }
  Slot& slot = slots_[first_free_];
  first_free_ = slot.next_free;
  ++taken_;
  return slot;
}

std::uint64_t CallTable::add(PendingCall& call) {
  const SpinGuard guard{lock_};
  if (is_known_lost(call.to_node)) {
    return 0;
  }
  Slot& slot = take_free();
  slot.call = &call;
  call.id = id_of(slot);
  return call.id;
}

std::uint64_t CallTable::reserve() {
  const SpinGuard guard{lock_};
  return id_of(take_free());
}

std::uint64_t CallTable::next(std::uint64_t id) noexcept {
  const std::uint64_t generation = ((id >> kIndexBits) + 1) & ~std::uint32_t{0};
  return (generation == 0 ? 1 : generation) << kIndexBits | (id & kIndexMask);
}

bool CallTable::put(std::uint64_t id, PendingCall& call) noexcept {
  const SpinGuard guard{lock_};
  Slot& slot = slots_[id & kIndexMask];
  slot.generation = static_cast<std::uint32_t>(id >> kIndexBits);
  if (is_known_lost(call.to_node)) {
    slot.next_free = first_free_;
    first_free_ = static_cast<std::uint32_t>(id & kIndexMask);
    return false;
  }
  slot.call = &call;
  call.id = id;
  return true;
}

PendingCall* CallTable::find(std::uint64_t id) const noexcept {
  const std::uint64_t index = id & kIndexMask;
  const SpinGuard guard{lock_};
  return index < slots_.size() && slots_[index].generation == id >> kIndexBits
             ? slots_[index].call
             : nullptr;
}

PendingCall* CallTable::take(std::uint64_t id) noexcept {
  const std::uint64_t index = id & kIndexMask;
  const SpinGuard guard{lock_};
  if (index >= slots_.size() || slots_[index].generation != id >> kIndexBits) {
    return nullptr;
  }
  Slot& slot = slots_[index];
  PendingCall* const call = std::exchange(slot.call, nullptr);
  if (call == nullptr) {
    return nullptr;
  }
  slot.generation = static_cast<std::uint32_t>(next(id) >> kIndexBits);
  slot.next_free = first_free_;
  first_free_ = static_cast<std::uint32_t>(index);
  return call;
}

std::vector<std::uint64_t> CallTable::lose(std::uint32_t node) {
  std::vector<std::uint64_t> ids;
  const SpinGuard guard{lock_};
  if (lost_.size() <= node) {
    lost_.resize(node + 1);
  }
  lost_[node] = true;
  for (const Slot& slot : slots_) {
    if (slot.call != nullptr && slot.call->to_node == node) {
      ids.push_back(slot.call->id);
    }
  }
  return ids;
}

std::uint64_t CallTable::taken_count() const noexcept {
  const SpinGuard guard{lock_};
  return taken_;
}

bool CallTable::is_lost(std::uint32_t node) const noexcept {
  const SpinGuard guard{lock_};
  return is_known_lost(node);
}

}  // namespace sterna::rpc
