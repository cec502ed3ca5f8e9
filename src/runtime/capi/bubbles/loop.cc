// loop.h: parallel loops.
#include "sched/loop.h"

#include <sterna/loop.h>

#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"

namespace capi = sterna::runtime::capi;
namespace sched = sterna::sched;
using sterna::runtime::RuntimeScope;

static_assert(STERNA_LOOP_HIERARCHICAL == static_cast<int>(sched::LoopScheme::hierarchical) &&
              STERNA_LOOP_GUIDED == static_cast<int>(sched::LoopScheme::guided) &&
              STERNA_LOOP_HIERARCHICAL + 1 == sched::kLoopSchemeCount);

namespace {

constexpr std::uint32_t kThreadsMax = 65536;

/// The program's body.
struct UserBody {
  sterna_loop_body function;
  void* argument;

  static void run(void* body, std::uint64_t begin, std::uint64_t end) {
    const auto& its = *static_cast<const UserBody*>(body);
    const sterna::runtime::UserScope user;
    its.function(begin, end, its.argument);
  }
};

}  // namespace

sterna_status sterna_loop_run(uint64_t begin, uint64_t end, const sterna_loop_options* options,
                              sterna_loop_body body, void* argument) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  const sterna_loop_options used =
      options == nullptr ? sterna_loop_options STERNA_LOOP_OPTIONS_DEFAULT : *options;
  if (body == nullptr || end < begin || used.size_bytes != sizeof used) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "a loop from {} to {}: it needs a body, an end that is not before its "
                        "begin, and options made by STERNA_LOOP_OPTIONS_DEFAULT",
                        begin, end);
  }
  const auto scheme = static_cast<std::uint32_t>(used.scheme);
  if (scheme >= sched::kLoopSchemeCount) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "a loop has no scheme {}; the last one is {}",
                        scheme, sched::kLoopSchemeCount - 1);
  }
  if (used.threads > kThreadsMax) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "a loop of {} threads: {} at most share one",
                        used.threads, kThreadsMax);
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  UserBody user{body, argument};
  sched::run_loop(*program->team, begin, end,
                  {.scheme = static_cast<sched::LoopScheme>(scheme),
                   .chunk = used.chunk,
                   .first = used.first,
                   .group = used.group,
                   .parties = used.threads,
                   .scheduler = used.is_bubble != 0 ? program->scheduler.get() : nullptr,
                   .is_user_code = true},
                  UserBody::run, &user);
  return STERNA_SUCCESS;
}
