// The end of a process whose test asked for it.
#include "migration/fault.h"

#include <csignal>

namespace sterna::migration {

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
