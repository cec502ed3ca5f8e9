// The end of a process whose test asked for it.
#include "migration/fault.h"

#include <algorithm>
#include <charconv>
#include <csignal>

namespace sterna::migration {
Result<> FaultPoint::verify(std::string_view setting) {
  const std::size_t at = setting.find('@');
  const std::string_view step = setting.substr(0, at);
  const std::string_view node =
      at == std::string_view::npos ? std::string_view{"0"} : setting.substr(at + 1);
  std::uint32_t number = 0;
  const auto [end, bad] = std::from_chars(node.data(), node.data() + node.size(), number);
  if (bad == std::errc{} && end == node.data() + node.size() &&
      (step.empty() || step == "none" ||
       std::find(kFaultSteps.begin(), kFaultSteps.end(), step) != kFaultSteps.end())) {
    return Done{};
  }
  std::string steps = "none";
  for (const std::string_view known : kFaultSteps) {
    steps += ", ";
    steps += known;
  }
  return Error{Errc::invalid_argument, "it must be one of " + steps + ", with @NODE or without"};
}

FaultPoint::FaultPoint(std::string_view setting, std::uint32_t node_index) {
  const std::size_t at = setting.find('@');
  if (at == std::string_view::npos || setting.substr(at + 1) == std::to_string(node_index)) {
    step_ = setting.substr(0, at);
  }
}

void FaultPoint::die() noexcept {
  ::raise(SIGKILL);
}

}  // namespace sterna::migration
