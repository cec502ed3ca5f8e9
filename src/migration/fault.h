// Dies on purpose at a named step, so that tests see what the other side makes of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sterna::migration {

/// The steps, in order: source: prepared, frozen, offered, sent, received, committed; destination:
/// preparing, prepared, offered, mapped, received, committed. As a setting: "source:sent", or
/// "destination:mapped@2" for node 2 only.
class FaultPoint {
 public:
  /// Empty: nothing happens at any step, at the cost of a comparison.
  FaultPoint(std::string_view setting, std::uint32_t node_index);

  /// Refuses what names no step ("none" and "" name none on purpose).
  [[nodiscard]] static Result<> verify(std::string_view setting);

  void reached(std::string_view step) const noexcept {
    if (!step_.empty() && step == step_) [[unlikely]] {
      die();
    }
  }

 private:
  static void die() noexcept;
  std::string step_;  // Constant; empty on nodes that are not meant.
};

}  // namespace sterna::migration
