// The end of a process whose test asked for it.
#include "migration/fault.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>

namespace sterna::migration {
namespace {

constexpr std::array<std::string_view, 11> kSteps{"",
                                                  "none",
                                                  "source:frozen",
                                                  "source:offered",
                                                  "source:sent",
                                                  "source:received",
                                                  "source:committed",
                                                  "destination:offered",
                                                  "destination:mapped",
                                                  "destination:received",
                                                  "destination:committed"};

}  // namespace

Result<> FaultPoint::verify(std::string_view setting) {
  const std::size_t at = setting.find('@');
  const std::string_view step = setting.substr(0, at);
  const std::string_view node =
      at == std::string_view::npos ? std::string_view{"0"} : setting.substr(at + 1);
  std::uint32_t number = 0;
  const auto [end, bad] = std::from_chars(node.data(), node.data() + node.size(), number);
  if (bad == std::errc{} && end == node.data() + node.size() &&
      std::find(kSteps.begin(), kSteps.end(), step) != kSteps.end()) {
    return Done{};
  }
  std::string steps;
  for (const std::string_view known : kSteps) {
    steps += steps.empty() || known.empty() ? "" : ", ";
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
