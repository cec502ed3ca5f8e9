// The table of calls under way. A number is a slot and how often that was used: a reply that comes
// too late finds another generation, or nobody.
#include "rpc/call.h"

#include <utility>

#include "base/check.h"

namespace sterna::rpc {

std::uint64_t CallTable::add(PendingCall& call) {
  const SpinGuard guard{lock_};
  if (call.to_node < lost_.size() && lost_[call.to_node]) {
    return 0;
  }
  if (first_free_ == kNone) {
    check(slots_.size() >> kIndexBits == 0, "a process has fewer calls under way than ids");
    slots_.emplace_back();
    first_free_ = static_cast<std::uint32_t>(slots_.size() - 1);
    slots_[first_free_].next_free = kNone;
  }
  const std::uint32_t index = first_free_;
  Slot& slot = slots_[index];
  first_free_ = slot.next_free;
  slot.call = &call;
  call.id = std::uint64_t{slot.generation} << kIndexBits | index;
  return call.id;
}

PendingCall* CallTable::take(std::uint64_t id) noexcept {
  const std::uint64_t index = id & ((std::uint64_t{1} << kIndexBits) - 1);
  const SpinGuard guard{lock_};
  if (index >= slots_.size() || slots_[index].generation != id >> kIndexBits) {
    return nullptr;
  }
  Slot& slot = slots_[index];
  PendingCall* const call = std::exchange(slot.call, nullptr);
  if (call == nullptr) {
    return nullptr;
  }
  slot.generation += slot.generation == ~std::uint32_t{0} ? 2 : 1;  // Never 0.
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

bool CallTable::is_lost(std::uint32_t node) const noexcept {
  const SpinGuard guard{lock_};
  return node < lost_.size() && lost_[node];
}

}  // namespace sterna::rpc
