// status.h: texts, and what errors of the runtime are for a C program.
#include <sterna/status.h>

#include "base/clock.h"
#include "runtime/capi/program.h"

namespace sterna::runtime::capi {

sterna_status to_status(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument:
      return STERNA_INVALID_ARGUMENT;
    case Errc::out_of_memory:
      return STERNA_OUT_OF_MEMORY;
    case Errc::unreachable:
    case Errc::closed:
      return STERNA_CLOSED;
    case Errc::unsupported:
      return STERNA_UNSUPPORTED;
    case Errc::refused:
      return STERNA_REFUSED;
    case Errc::timed_out:
      return STERNA_TIMED_OUT;
    case Errc::malformed:
    case Errc::system:
      return STERNA_SYSTEM;
  }
  return STERNA_SYSTEM;
}

std::uint64_t deadline_of(std::uint64_t timeout_ns) noexcept {
  if (timeout_ns == STERNA_FOREVER) {
    return kNever;  // The usual one, which asks no clock.
  }
  const std::uint64_t now = now_ns();
  return timeout_ns >= kNever - now ? kNever : now + timeout_ns;
}

}  // namespace sterna::runtime::capi

const char* sterna_status_text(sterna_status status) noexcept {
  switch (status) {
    case STERNA_SUCCESS:
      return "success";
    case STERNA_OUT_OF_MEMORY:
      return "out of memory";
    case STERNA_INVALID_ARGUMENT:
      return "an argument is not valid";
    case STERNA_BUSY:
      return "it is in use";
    case STERNA_TIMED_OUT:
      return "the time was over first";
    case STERNA_NOT_OWNER:
      return "the caller does not hold it";
    case STERNA_DEADLOCK:
      return "the caller would wait for itself";
    case STERNA_NOT_STARTED:
      return "Sterna is not started: call sterna_start";
    case STERNA_UNSUPPORTED:
      return "not possible from this thread or in this kind of job";
    case STERNA_CLOSED:
      return "the other node is gone";
    case STERNA_TRUNCATED:
      return "the buffer is too short";
    case STERNA_REFUSED:
      return "refused";
    case STERNA_NOT_FOUND:
      return "there is no such thing";
    case STERNA_SYSTEM:
      return "the operating system or the configuration said no";
    case STERNA_CANCELLED:
      return "it was cancelled";
  }
  return "not a status of this version";
}
