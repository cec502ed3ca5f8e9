// Dies on purpose at a named step, so that tests see what the other side makes of it.
#pragma once

#include <string>
#include <string_view>

namespace sterna::migration {

/// The steps, in order: source: frozen, offered, sent, received, committed; destination: offered,
/// mapped, received, committed. As a setting: "source:sent", "destination:mapped".
class FaultPoint {
 public:
  /// Empty: nothing happens at any step, at the cost of a comparison.
  explicit FaultPoint(std::string_view step) : step_{step} {}

  void reached(std::string_view step) const noexcept {
    if (!step_.empty() && step == step_) [[unlikely]] {
      die();
    }
  }

 private:
  static void die() noexcept;
  const std::string step_;
};

}  // namespace sterna::migration
