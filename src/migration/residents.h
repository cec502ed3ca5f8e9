// The ranks whose slots may be read now on this node: those that are here and are not leaving.
#pragma once

#include <cstdint>
#include <map>

#include "base/annotate.h"
#include "base/function_ref.h"
#include "base/spin_lock.h"
#include "memory/rank_slot.h"

namespace sterna::migration {

/// One a node. A rank is taken out before its memory can go away, so who looks at a slot inside
/// for_each or with() looks at mapped memory. Any thread; the callbacks must be short and not
/// switch.
class Residents {
 public:
  void add(memory::RankSlot& slot) {
    const SpinGuard guard{lock_};
    slots_[slot.rank] = &slot;
  }
  void remove(std::uint32_t rank) {
    const SpinGuard guard{lock_};
    slots_.erase(rank);
  }
  void for_each(FunctionRef<void(memory::RankSlot&)> visit) {
    const SpinGuard guard{lock_};
    for (const auto& [rank, slot] : slots_) {
      visit(*slot);
    }
  }
  /// False: the rank is not here.
  bool with(std::uint32_t rank, FunctionRef<void(memory::RankSlot&)> visit) {
    const SpinGuard guard{lock_};
    const auto found = slots_.find(rank);
    if (found == slots_.end()) {
      return false;
    }
    visit(*found->second);
    return true;
  }
  [[nodiscard]] std::size_t count() {
    const SpinGuard guard{lock_};
    return slots_.size();
  }

 private:
  SpinLock lock_;
  std::map<std::uint32_t, memory::RankSlot*> slots_ STERNA_GUARDED_BY(lock_);
};

}  // namespace sterna::migration
