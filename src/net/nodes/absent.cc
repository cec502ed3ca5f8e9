// Programs that compute while their messages are under way: what is open, and who is to be woken.
#include "net/core.h"

namespace sterna::net {

std::atomic<std::uint32_t>* TransportCore::absence_flag() const noexcept {
  for (const auto& rail : rails_) {
    if (std::atomic<std::uint32_t>* const flag = rail->driver().absence_flag(); flag != nullptr) {
      return flag;
    }
  }
  return nullptr;
}

bool TransportCore::rings_absent() const noexcept {
  for (std::uint32_t node = 0; node < limits_.node_count; ++node) {
    const Gate& gate = gates_[node];
    if (gate.is_open() && gate.driver()->absence_flag() == nullptr) {
      return false;
    }
  }
  return true;
}

bool TransportCore::has_open(const Endpoint& endpoint) const noexcept {
  return endpoint.pending_count != 0 || endpoint.partial_count != 0 || kept_.is_any() ||
         (endpoint.posted_count[0] | endpoint.posted_count[1] | endpoint.posted_count[2] |
          endpoint.posted_count[3]) != 0 ||
         job_count_.load(std::memory_order_relaxed) != 0;
}

bool TransportCore::wake_absent(Driver& driver, bool is_long) noexcept {
  bool has_woken = false;
  if (driver.absence_flag() == nullptr) {
    return false;
  }
  // Either we see a flag, or who sets it, and looks at its inbox then, what we sent.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::uint32_t node = 0; node < limits_.node_count; ++node) {
    Gate& gate = gates_[node];
    if (!gate.is_open() || gate.driver() != &driver || gate.is_lost()) {
      continue;
    }
    if (Channel* const channel = gate.open_channel(); channel != nullptr) {
      has_woken = channel->ring_absent(is_long) || has_woken;
    }
  }
  return has_woken;
}

bool Rail::wake_absent(bool is_long) noexcept {
  return core_.wake_absent(*driver_, is_long);
}

}  // namespace sterna::net
