// Dies on purpose at a named step, so that tests see what the other side makes of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/result.h"

namespace sterna::migration {

/// In their order on each side.
inline constexpr std::array<std::string_view, 15> kFaultSteps{
    "source:prepared",    "source:frozen",         "source:given",         "source:offered",
    "source:sent",        "source:received",       "source:committed",     "source:flushing",
    "source:flushed",     "destination:preparing", "destination:prepared", "destination:offered",
    "destination:mapped", "destination:received",  "destination:committed"};

/// One of kFaultSteps: another word does not compile, so that the setting can be verified by them.
class FaultStep {
 public:
  consteval FaultStep(const char* name) : name_{name} {  // NOLINT(google-explicit-constructor)
    bool is_known = false;
    for (const std::string_view step : kFaultSteps) {
      is_known = is_known || step == name_;
    }
    check(is_known, "a step is one of kFaultSteps");
  }
  [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }

 private:
  std::string_view name_;
};

/// As a setting: "source:sent", or "destination:mapped@2" for node 2 only.
class FaultPoint {
 public:
  /// Empty: nothing happens at any step, at the cost of a comparison.
  FaultPoint(std::string_view setting, std::uint32_t node_index);

  /// Refuses what names no step ("none" and "" name none on purpose).
  [[nodiscard]] static Result<> verify(std::string_view setting);

  void reached(FaultStep step) const noexcept {
    if (!step_.empty() && step.name() == step_) [[unlikely]] {
      die();
    }
  }

 private:
  static void die() noexcept;
  std::string step_;  // Constant; empty on nodes that are not meant.
};

}  // namespace sterna::migration
