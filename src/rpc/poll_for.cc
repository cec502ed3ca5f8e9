// The loop of a wait in place, and how long it is.
#include "rpc/poll_for.h"

#include <algorithm>

#include "progress/completion.h"
#include "progress/progress.h"
#include "threads/direct.h"
#include "threads/team.h"
#include "threads/this_thread.h"

namespace sterna::rpc {
namespace {

// One poll with its looks takes some tenths of a microsecond, as long as so many bytes.
constexpr std::uint64_t kBytesOfPoll = 2048;
constexpr std::uint64_t kPollsMax = 512;

}  // namespace

void poll_for(progress::Progress& progress, const progress::Completion& done,
              std::uint64_t part_bytes) noexcept {
  const threads::Thread* const me = threads::self();
  // Of what has an entity others may wait in queues that are not the worker's.
  if (me == nullptr || me->entity != nullptr || progress.options().is_oversubscribed ||
      me->team->worker_count() != 1) {
    return;
  }
  const std::uint64_t polls_max = std::min(part_bytes / kBytesOfPoll, kPollsMax);
  const threads::Worker& worker = *me->worker.load(std::memory_order_relaxed);
  for (std::uint64_t polls = 0; polls < polls_max && !done.done() && threads::is_alone(*me) &&
                                worker.timers.next_ns() == kNever;
       ++polls) {
    (void)progress.poll_and_look();
  }
}

}  // namespace sterna::rpc
