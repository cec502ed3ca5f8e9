// The table of calls under way. A number is a slot and how often that was used: a reply that comes
// too late finds another generation, or nobody.
#include "rpc/call.h"

namespace sterna::rpc {

std::uint64_t CallTable::add(PendingCall& call) {
  const SpinGuard guard{lock_};
  if (call.to_node < lost_.size() && lost_[call.to_node]) {
    return 0;
  }
  if (first_free_ == kNone) {
    slots_.emplace_back();
    first_free_ = static_cast<std::uint32_t>(slots_.size() - 1);
    slots_[first_free_].next_free = kNone;
  }
  const std::uint32_t index = first_free_;
  Slot& slot = slots_[index];
  first_free_ = slot.next_free;
  slot.call = &call;
  call.id = std::uint64_t{slot.generation} << 32 | index;
  return call.id;
}

PendingCall* CallTable::take(std::uint64_t id) noexcept {
  const auto index = static_cast<std::uint32_t>(id);
  const SpinGuard guard{lock_};
  if (index >= slots_.size() || slots_[index].generation != id >> 32) {
    return nullptr;
  }
  Slot& slot = slots_[index];
  PendingCall* const call = std::exchange(slot.call, nullptr);
  if (call == nullptr) {
    return nullptr;
  }
  slot.generation += slot.generation == ~std::uint32_t{0} ? 2 : 1;  // Never 0.
  slot.next_free = first_free_;
  first_free_ = index;
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
