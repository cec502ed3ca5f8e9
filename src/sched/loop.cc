// See loop.h.
#include "sched/loop.h"

#include <algorithm>
#include <new>

#include "threads/carriers/border.h"
#include "threads/control/cancel.h"
#include "threads/scheduler.h"

namespace sterna::sched {
namespace {

/// A loop that runs; lies on the caller's stack.
struct Loop {
  LoopChunks* chunks;
  std::uint64_t begin;
  LoopBody body;
  void* argument;

  void run(std::uint32_t party) const noexcept {
    for (;;) {
      const LoopRange range = chunks->next(party);
      if (range.size() == 0) {
        return;
      }
      body(argument, begin + range.begin, begin + range.end);
    }
  }
};

/// One of those who share it, other than the caller.
struct Member {
  const Loop* loop = nullptr;
  std::uint32_t party = 0;
  threads::Thread* thread = nullptr;  // Null: it could not start.
  Entity entity;

  static void main(void* member) noexcept {
    const threads::RuntimeEntry entry;
    auto& its = *static_cast<Member*>(member);
    its.loop->run(its.party);
  }
};

/// The worker of the caller, which is party 0: 0 for others.
std::uint32_t own_worker(const threads::Team& team) noexcept {
  const threads::Worker* const here = threads::current_worker();
  return here != nullptr && here->team.handle == &team ? here->index : 0;
}

void start(threads::Team& team, const LoopOptions& options, Member& member,
           std::uint32_t worker) noexcept {
  threads::ThreadOptions its{
      .name = "loop", .stack_bytes = options.stack_bytes, .is_user_code = options.is_user_code};
  const bool is_placed = member.entity.holder() != nullptr;
  if (is_placed) {
    its.entity = &member.entity;
  } else {
    its.worker = worker;
    its.bound = true;
  }
  if (auto started = team.spawn(its, Member::main, &member)) {
    member.thread = started.value();
  } else if (is_placed) {
    options.scheduler->engine().remove(member.entity);
  }
}

/// Those who share a loop with the caller, on whose stack this lies.
struct Helpers {
  std::unique_ptr<LoopChunks> chunks;
  std::unique_ptr<Member[]> members;
  std::uint32_t count = 0;
  Engine* engine = nullptr;  // Null: they are no bubble.
  Bubble bubble;

  /// Nobody works on what lies here any more.
  static void finish(void* helpers) noexcept {
    auto& its = *static_cast<Helpers*>(helpers);
    for (std::uint32_t i = 0; i < its.count; ++i) {
      if (its.members[i].thread != nullptr) {
        threads::join(*its.members[i].thread);
      }
    }
    if (its.engine != nullptr) {
      its.engine->remove(its.bubble);
    }
    its.members.reset();  // No destructor may come: see share().
    its.chunks.reset();
  }
};

/// With threads other than the caller: party 0 is the caller's.
void share(threads::Team& team, const LoopOptions& options, const Loop& loop,
           Helpers& helpers) noexcept {
  Member* const members = helpers.members.get();
  const std::uint32_t count = helpers.count;
  Bubble& bubble = helpers.bubble;
  Engine* const engine = options.scheduler != nullptr ? &options.scheduler->engine() : nullptr;
  const bool has_bubble = engine != nullptr && engine->insert(engine->root(), bubble).has_value();
  for (std::uint32_t i = 0; i < count && has_bubble; ++i) {
    (void)engine->insert(bubble, members[i].entity);
  }
  if (has_bubble) {
    engine->submit(bubble);
  }
  helpers.engine = has_bubble ? engine : nullptr;
  // A body may end its thread, though it should not: no frame is unwound then.
  threads::Cleanup cleanup{.function = Helpers::finish, .argument = &helpers};
  const bool is_user_thread = threads::self() != nullptr;
  if (is_user_thread) {
    threads::push_cleanup(cleanup);
  }
  const std::uint32_t here = own_worker(team);
  for (std::uint32_t i = 0; i < count; ++i) {
    members[i].loop = &loop;
    members[i].party = i + 1;
    start(team, options, members[i], (here + 1 + i) % team.worker_count());
  }
  loop.run(0);
  // Schemes with parts of their own leave those of the missing ones.
  for (std::uint32_t i = 0; i < count; ++i) {
    if (members[i].thread == nullptr) {
      loop.run(members[i].party);
    }
  }
  if (is_user_thread) {
    threads::drop_cleanup(cleanup);
  }
  Helpers::finish(&helpers);
}

}  // namespace

void run_loop(threads::Team& team, std::uint64_t begin, std::uint64_t end,
              const LoopOptions& options, LoopBody body, void* argument) noexcept {
  if (begin >= end) {
    return;
  }
  const std::uint64_t count = end - begin;
  const auto parties = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(options.parties != 0 ? options.parties : team.worker_count(), count));
  Helpers helpers;
  helpers.count = parties - 1;
  if (parties > 1 && count >> 62 == 0) {
    helpers.chunks = LoopChunks::make({.count = count,
                                       .parties = parties,
                                       .scheme = options.scheme,
                                       .chunk = options.chunk,
                                       .first = options.first,
                                       .group = options.group});
    helpers.members.reset(new (std::nothrow) Member[helpers.count]);
  }
  if (helpers.chunks == nullptr || helpers.members == nullptr) {
    body(argument, begin, end);  // Alone, as one chunk.
    return;
  }
  // The others work on what lies on this stack.
  const threads::Uncancellable uncancellable{threads::self()};
  const Loop loop{
      .chunks = helpers.chunks.get(), .begin = begin, .body = body, .argument = argument};
  share(team, options, loop, helpers);
}

}  // namespace sterna::sched
