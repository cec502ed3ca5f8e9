// What is done at the birth of every thread, inline: a usual one takes some 10 ns. Internal to
// threads/. birth.cc has the rest.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/probe.h"
#include "threads/control/roster.h"
#include "threads/life/life.h"
#include "threads/observation/traced.h"

namespace sterna::threads {

[[nodiscard]] constexpr std::size_t whole_stack_bytes(const ThreadOptions& options) noexcept {
  return options.stack_bytes * kStackFactor + options.guard_bytes;
}

/// The smallest class whose slots hold such a stack, with guard, descriptor and colours.
[[nodiscard]] constexpr std::uint32_t class_of_stack(std::size_t stack_bytes) noexcept {
  constexpr std::size_t kOther =
      memory::kPageBytes + memory::kDescriptorBytes + memory::kColourCount * memory::kColourBytes;
  return memory::stack_class_for(stack_bytes + kOther);
}

/// The switches of ThreadOptions as flags.
[[gnu::always_inline]] inline std::uint32_t flags_from(const ThreadOptions& options) noexcept {
  // Eight bools side by side, nearly always as they were: one comparison instead of eight.
  static_assert(offsetof(ThreadOptions, may_wait) - offsetof(ThreadOptions, bound) == 7);
  constexpr ThreadOptions kUsual;
  const auto switches_of = [](const ThreadOptions& its) noexcept {
    std::uint64_t switches = 0;
    std::memcpy(&switches,
                reinterpret_cast<const std::byte*>(&its) + offsetof(ThreadOptions, bound),
                sizeof switches);
    return switches;
  };
  const std::uint32_t placed =
      options.entity != nullptr ? ThreadFlag::managed | ThreadFlag::placed : 0;
  if (switches_of(options) == switches_of(kUsual)) [[likely]] {
    return placed;
  }
  return placed | (options.bound ? ThreadFlag::bound : 0) |
         (options.accounted ? ThreadFlag::accounted : 0) |
         (options.detached ? ThreadFlag::detached : 0) |
         (options.cancellable ? ThreadFlag::cancellable : 0) |
         (options.is_user_code ? ThreadFlag::user_code : 0) |
         (options.preemption == Preemption::as_team ? 0 : ThreadFlag::own_preemption);
}

/// The eight bytes from `priority` on, as a thread begins: one store, since a birth is bound by
/// how many instructions it takes.
[[gnu::always_inline]] inline void init_small(Thread& thread, const ThreadOptions& options,
                                              Activity activity) noexcept {
  using Word [[gnu::may_alias]] = std::uint64_t;
  constexpr std::size_t kFirst = offsetof(Thread, priority);
  static_assert(std::endian::native == std::endian::little && kFirst % sizeof(Word) == 0);
  static_assert(offsetof(Thread, is_interrupted) - kFirst == sizeof(Word) - 1);
  const auto at = [](std::size_t offset, auto value) noexcept {
    return static_cast<std::uint64_t>(value) << 8 * (offset - kFirst);
  };
  // Relaxed: list_threads() reads some of it, as hints.
  __atomic_store_n(reinterpret_cast<Word*>(&thread.priority),
                   at(kFirst, options.priority) |
                       at(offsetof(Thread, hold), options.held ? Hold::wanted : Hold::none) |
                       at(offsetof(Thread, activity), activity) |
                       at(offsetof(Thread, is_cancellable), options.cancellable),
                   __ATOMIC_RELAXED);
}

/// What every new thread has but for its flags, in a slot where nothing is left of what few threads
/// have. Returns its number. `activity`: `ready` if it starts next, else `none` until it does.
[[gnu::always_inline]] inline std::uint64_t init_usual(TeamState& team, Worker* here,
                                                       Thread& thread, const ThreadOptions& options,
                                                       void* stack_top, Entry entry, void* argument,
                                                       Activity activity) noexcept {
  thread.wait_word.store(0, std::memory_order_relaxed);
  thread.joiner.store(0, std::memory_order_relaxed);
  init_small(thread, options, activity);
  // In this order, for who looks at the slot by the handle of a former thread: an entry is found
  // with its own argument, or a later one.
  std::atomic_ref{thread.argument}.store(argument, std::memory_order_relaxed);
  std::atomic_ref{thread.entry}.store(entry, std::memory_order_release);
  thread.owner = options.owner;
  const std::uint64_t id = count_birth(team, here);
  thread.id.store(id, std::memory_order_relaxed);
  if constexpr (kSanitized) {
    sanitizer_begin(thread, false);
  }
  make_context(thread.context, stack_top);
  return id;
}

// Those of a birth whose thread, or whose slot's last one, has what init_rare() sets.
inline constexpr std::uint32_t kRareFlags = ThreadFlag::bound | ThreadFlag::accounted |
                                            ThreadFlag::placed | ThreadFlag::adopted |
                                            ThreadFlag::own_preemption;

/// A new thread, and its number, which says more than its address once it has ended.
struct Born {
  Thread* thread = nullptr;
  std::uint64_t id = 0;
};

/// A new thread in the queue of `here`, the worker of the caller, who is in the runtime. `kOptions`
/// has the usual ones, and is_user_code. Null: it takes more than that; nothing has happened.
///
/// With no call on its way, so that a caller which has none either keeps nothing on its stack: half
/// of the instructions of a birth that is made of calls.
template <const ThreadOptions& kOptions>
[[nodiscard, gnu::always_inline]] inline Born try_spawn_beside(Worker& here, Entry entry,
                                                               void* argument) noexcept {
  static_assert(kOptions.priority == kPriorityNormal && kOptions.worker == kAnyWorker &&
                    kOptions.guard_bytes == 0 && kOptions.name == nullptr &&
                    kOptions.entity == nullptr && !kOptions.held && !kOptions.bound &&
                    !kOptions.detached && !kOptions.cancellable && !kOptions.accounted &&
                    kOptions.preemption == Preemption::as_team,
                "the usual options");
  static constexpr std::uint32_t kFlags = kOptions.is_user_code ? ThreadFlag::user_code : 0;
  if (trace::is_on() || !here.lock.lock_at_once()) [[unlikely]] {
    return {};
  }
  SlotCache& slots = here.slots[class_of_stack(whole_stack_bytes(kOptions))];
  Thread* const thread = slots.take();
  if (thread == nullptr) [[unlikely]] {
    here.lock.unlock();
    return {};
  }
  if ((thread->flags & kRareFlags) != 0 || (thread->end_flags & EndFlag::guarded) != 0 ||
      thread->is_named.load(std::memory_order_relaxed)) [[unlikely]] {
    (void)slots.keep(*thread);
    here.lock.unlock();
    return {};
  }
  thread->flags = kFlags;
  thread->preempt_off.store(0, std::memory_order_relaxed);
  const std::uint64_t id = init_usual(here.team, &here, *thread, kOptions, thread, entry, argument,
                                      Activity::ready);
  STERNA_PROBE1(thread_create, thread);
  thread->worker.store(&here, std::memory_order_relaxed);
  here.queue.push_usual(*thread);
  here.lock.unlock();
  return {thread, id};
}

/// After that: somebody sleeps who may run it.
[[nodiscard]] inline bool has_sleeper(const Worker& here) noexcept {
  return here.team.sleeper_count.load(std::memory_order_relaxed) != 0;
}
inline void wake_sleeper(Worker& here) noexcept {
  here.team.wake_idle(0, static_cast<std::uint32_t>(here.team.workers.size()));
}

}  // namespace sterna::threads
