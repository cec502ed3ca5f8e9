// bubble.h and thread.h: the threads of bubbles, from their options to their last cleanup.
#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/control/cancel.h"
#include "threads/life/life.h"
#include "threads/life/unstarted.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
namespace sched = sterna::sched;
namespace threads = sterna::threads;
using capi::Member;
using sterna::runtime::RuntimeScope;

namespace {

/// They stand in the descriptor of a thread that has left, in place of run_member and
/// run_handed_member.
void left_member(void*) {
  sterna::fail("a thread that has left its bubble is not started", __FILE__, __LINE__);
}
void left_handed_member(void*) {
  sterna::fail("a thread with a handle that has left its bubble is not started", __FILE__,
               __LINE__);
}

/// Acquire: the argument that goes with it.
threads::Entry entry_of(const threads::Thread& thread) noexcept {
  return std::atomic_ref{const_cast<threads::Thread&>(thread).entry}.load(
      std::memory_order_acquire);
}

Member* argument_of(const threads::Thread& thread) noexcept {
  return static_cast<Member*>(std::atomic_ref{const_cast<threads::Thread&>(thread).argument}.load(
      std::memory_order_relaxed));
}

/// bubbles_lock is held. From now on nobody finds the member by the handle of its thread, so that
/// its memory may go. A new thread in the same slot has its argument before its entry (birth.cc):
/// run_member is never found beside the argument of a former one.
void mark_left(Member& member, threads::Thread& thread) noexcept {
  member.has_left = true;
  std::atomic_ref{thread.entry}.store(
      capi::is_joined_by_bubble(thread) ? left_member : left_handed_member,
      std::memory_order_relaxed);
}

void leave_bubble(void* member) noexcept {
  auto& leaver = *static_cast<Member*>(member);
  const sterna::FairGuard guard{capi::bubbles_lock};
  mark_left(leaver, *leaver.thread);
  if (sterna_bubble* const bubble = leaver.bubble; bubble != nullptr) {
    if (!leaver.is_joined_by_bubble) {  // A bubble may live for long, and many leave it.
      bubble->left.splice(bubble->left.end(), bubble->members, leaver.self);
    }
    capi::leave(*bubble);
  }
}

}  // namespace

/// Runs the program's function; however it ends, the others do not wait for it at their barrier.
void capi::run_member(void* argument) {
  auto& member = *static_cast<Member*>(argument);
  {
    const RuntimeScope scope;
    member.leaving.function = leave_bubble;
    member.leaving.argument = &member;
    threads::push_cleanup(member.leaving);
    const FairGuard guard{bubbles_lock};
    member.thread = threads::self();
    tell_preemptible(program()->scheduler->engine(), member);
  }
  member.function(member.argument);
}

void capi::run_handed_member(void* argument) {
  run_member(argument);
}

Member* capi::member_of(const threads::Thread* thread) noexcept {
  if (thread == nullptr) {
    return nullptr;
  }
  const threads::Entry entry = entry_of(*thread);
  return entry == run_member || entry == run_handed_member || entry == left_member ||
                 entry == left_handed_member
             ? argument_of(*thread)
             : nullptr;
}

Member* capi::living_member_of(const threads::Thread& thread) noexcept {
  const threads::Entry entry = entry_of(thread);
  return entry == run_member || entry == run_handed_member ? argument_of(thread) : nullptr;
}

bool capi::is_joined_by_bubble(const threads::Thread& thread) noexcept {
  const threads::Entry entry = entry_of(thread);
  return entry == run_member || entry == left_member;
}

bool capi::is_unstarted(const Member& member) noexcept {
  return member.made != nullptr && member.thread == nullptr && member.bubble != nullptr &&
         !member.bubble->is_submitted;
}

void capi::end_made(sterna_bubble& bubble) noexcept {
  for (const auto& member : bubble.members) {
    if (member->made == nullptr) {
      continue;
    }
    {
      const FairGuard guard{bubbles_lock};
      mark_left(*member, *member->made);
    }
    if (member->is_joined_by_bubble) {
      (void)threads::try_detach(*member->made);  // Freed by its end.
    }
    threads::end_unstarted(*member->made);
  }
  for (const auto& child : bubble.children) {
    end_made(*child);
  }
}

namespace {

/// Where the thread begins and stays, as places: SUCCESS, or why there is none, with a text.
sterna_status place_member(const capi::Program& program, const sterna_thread_options& options,
                           Member& member) noexcept {
  const std::uint32_t place = capi::place_for(program, options, member.options);
  if (place == sched::kAside) {
    return capi::refuse(STERNA_REFUSED,
                        "worker {} shares its processor with others, and a thread of a bubble has "
                        "whole processors: give a place (\"pu:0\"), or no is_bound",
                        options.worker);
  }
  member.entity.program_place = place;
  if (options.worker != STERNA_ANY_WORKER && options.is_bound == 0) {
    member.first_place = program.worker_places[options.worker]->id;
  }
  member.options.bound = false;  // What is left of these is the policy's.
  member.options.worker = threads::kAnyWorker;
  member.options.worker_count = 1;
  return STERNA_SUCCESS;
}

sterna_status fill_member(const capi::Program& program, const sterna_thread_options& options,
                          Member& member) {
  member.options.is_user_code = true;
  member.options.entity = &member.entity;
  if (const sterna_status status = capi::convert(options, *program.team, member.options);
      status != STERNA_SUCCESS) {
    return status;
  }
  member.name = options.name == nullptr ? "" : options.name;
  member.options.name = nullptr;
  member.extras = capi::extras_of(options);
  member.entity.load = std::max(options.load, 1U);
  if (options.priority != STERNA_PRIORITY_NORMAL) {  // Else that of its bubble.
    member.entity.priority = member.options.priority;
  }
  member.entity.makes_bubbles = capi::makes_bubbles(program, options);
  return place_member(program, options, member);
}

/// Out of `one` into the list of its bubble. False: that has ended, and it stays there.
bool put_member(sterna_bubble& bubble, capi::Members& one, bool& is_running) noexcept {
  capi::Members ended;  // Freed behind the lock.
  const sterna::FairGuard guard{capi::bubbles_lock};
  if (bubble.is_closed) {
    return false;
  }
  capi::take_ended(bubble.left, ended);
  bubble.members.splice(bubble.members.end(), one);
  is_running = bubble.is_submitted;
  if (is_running) {
    capi::enter(bubble);  // From here on the bubble stays, whoever moves the caller away.
  }
  return true;
}

}  // namespace

void capi::take_ended(Members& all, Members& ended) noexcept {
  for (int i = 0; i < 2 && !all.empty(); ++i) {
    const auto first = all.begin();
    const bool is_over = (*first)->has_left && !sched::Engine::is_in_tree((*first)->entity);
    Members& to = is_over ? ended : all;
    to.splice(to.end(), all, first);
  }
}

sterna_status capi::start_late(Program& program, sterna_bubble& bubble, Member& member) noexcept {
  sched::Engine& engine = program.scheduler->engine();
  (void)engine.insert(bubble.bubble, member.entity);
  put_first(engine, member);
  return start(program, member);
}

sterna_status capi::add_member(sterna_bubble& bubble, const sterna_thread_options& options,
                               sterna_thread_function function, void* argument,
                               sterna_thread** handle) noexcept {
  Program* const its = program();
  if (its == nullptr) {
    return why_no_program();
  }
  if (options.bubble != nullptr && options.bubble != &bubble) {
    return refuse(STERNA_INVALID_ARGUMENT,
                  "{}: the options of the thread name another bubble: a thread is in one",
                  words_for(bubble));
  }
  return guarded([&] {
    Members one;
    one.push_back(std::make_unique<Member>());
    Member& member = *one.front();
    member.self = one.begin();
    member.bubble = &bubble;
    member.function = function;
    member.argument = argument;
    if (const sterna_status status = fill_member(*its, options, member); status != STERNA_SUCCESS) {
      return status;
    }
    member.is_joined_by_bubble = handle == nullptr && !member.options.detached;
    if (handle != nullptr || options.stack != nullptr) {
      threads::ThreadOptions made = member.options;
      made.name = options.name;
      const threads::Entry entry = member.is_joined_by_bubble ? run_member : run_handed_member;
      if (const sterna_status status =
              make_unstarted(*its, options, made, entry, &member, member.made);
          status != STERNA_SUCCESS) {
        return status;
      }
    }
    threads::Thread* const thread = member.made;
    sterna_thread* const named = handle_of(thread);  // Afterwards it may have ended.
    bool is_running = false;
    if (!put_member(bubble, one, is_running)) {
      if (thread != nullptr) {
        (void)threads::try_detach(*thread);  // Nobody knows it: freed by its end.
        threads::end_unstarted(*thread);
      }
      return tell(kClosedVerdict);
    }
    if (handle != nullptr) {
      *handle = named;
    }
    return is_running ? start_late(*its, bubble, member) : STERNA_SUCCESS;
  });
}

sterna_status sterna_bubble_add_thread(sterna_bubble* bubble, const sterna_thread_options* options,
                                       sterna_thread_function function, void* argument) noexcept {
  const RuntimeScope scope;
  if (bubble == nullptr || function == nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "a thread of a bubble needs a bubble and a function");
  }
  const sterna_thread_options used =
      options == nullptr ? sterna_thread_options STERNA_THREAD_OPTIONS_DEFAULT : *options;
  return capi::add_member(*bubble, used, function, argument, nullptr);
}
