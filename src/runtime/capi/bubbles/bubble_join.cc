// bubble.h: the join of bubbles, by the program or by who stops it.
#include <iterator>
#include <utility>

#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/in_poll.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/control/cancel.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
using capi::Member;
using sterna::runtime::RuntimeScope;

namespace {

constexpr std::uint64_t kEndPauseNs = 50'000;
constexpr int kLooksAtOnce = 16;

/// One that has left, or was never started: waits for the end of its thread.
void finish(Member& member) noexcept {
  if (!member.has_left) {
    return;
  }
  if (!member.is_joined_by_bubble) {  // It is about to be gone, usually in a moment.
    for (int looks = 0; sterna::sched::Engine::is_in_tree(member.entity); ++looks) {
      if (looks < kLooksAtOnce) {
        sterna::threads::yield();
      } else {
        sterna::threads::sleep_for(kEndPauseNs);
      }
    }
    return;
  }
  sterna::threads::join(*member.thread);
}

/// What the joiner has taken out: one thing at a time.
struct Taken {
  capi::Members member;
  capi::Bubbles bubble;
};

enum class Next : std::uint8_t { running, taken, done };

/// The last of the innermost: threads, then the bubble that held them.
Next take_last(sterna_bubble& bubble, Taken& taken) noexcept {
  const sterna::FairGuard guard{capi::bubbles_lock};
  if (bubble.running_here != 0) {
    return Next::running;
  }
  sterna_bubble* inner = &bubble;
  while (!inner->children.empty()) {
    inner = inner->children.back().get();
  }
  if (capi::Members& from = inner->members.empty() ? inner->left : inner->members; !from.empty()) {
    taken.member.splice(taken.member.end(), from, std::prev(from.end()));
    return Next::taken;
  }
  inner->is_closed = true;
  if (inner == &bubble) {
    return Next::done;
  }
  taken.bubble.splice(taken.bubble.end(), inner->holder->children, inner->self);
  return Next::taken;
}

void remove_bubble(sterna::sched::Engine& engine, sterna_bubble& bubble) noexcept {
  engine.spill(bubble.bubble);  // Children that its threads have left behind live on.
  engine.remove(bubble.bubble);
}

/// Until it holds nothing more; what was moved out of it meanwhile is not waited for.
void join_all(capi::Program& program, sterna_bubble& bubble) noexcept {
  for (;;) {
    Taken taken;
    const Next next = take_last(bubble, taken);
    if (next == Next::done) {
      return;
    }
    if (next == Next::running) {
      bubble.ended.acquire();
    } else if (!taken.member.empty()) {
      finish(*taken.member.front());
    } else {
      remove_bubble(program.scheduler->engine(), *taken.bubble.front());
    }
  }
}

void join_and_free(capi::Program& program, sterna_bubble& bubble) noexcept {
  join_all(program, bubble);
  capi::forget_bubble(bubble);
  remove_bubble(program.scheduler->engine(), bubble);
  delete &bubble;
}

/// What a look for bubbles that the program has not joined has found.
struct Forgotten {
  sterna_bubble* bubble = nullptr;  // The caller's to join: somebody else gets BUSY.
  bool is_any_left = false;         // Or somebody is joining one, or submitting it.
};

/// Under both locks: what is in the tree is not freed yet, and nobody begins to join it meanwhile.
Forgotten claim_forgotten(capi::Program& program) noexcept {
  const sterna::FairGuard guard{capi::bubbles_lock};
  // Acquire: what has been joined is no more than that.
  Forgotten found{.is_any_left = program.joins.load(std::memory_order_acquire) != 0};
  program.scheduler->engine().look([&](const sterna::sched::Bubble& root) noexcept {
    for (const auto* held = root.first(); held != nullptr; held = held->next_sibling()) {
      void* const handle =
          held->is_bubble() ? static_cast<const sterna::sched::Bubble*>(held)->handle : nullptr;
      if (handle == nullptr) {
        continue;  // Of filiation.
      }
      found.is_any_left = true;
      auto& bubble = *static_cast<sterna_bubble*>(handle);
      if (bubble.is_submitted && !std::exchange(bubble.is_joined, true)) {
        found.bubble = &bubble;
        return;
      }
    }
  });
  return found;
}

/// The caller is a thread of it, or of a bubble in it. bubbles_lock is held.
bool has_caller(const sterna_bubble& bubble) noexcept {
  const Member* const member = capi::member_of(sterna::threads::self());
  const sterna_bubble* outer = member != nullptr ? member->bubble : nullptr;
  while (outer != nullptr && outer != &bubble) {
    outer = outer->holder;
  }
  return outer != nullptr;
}

/// SUCCESS: the caller may join it, and nobody else does. No text: refuse() may not come here.
sterna_status begin_join(sterna_bubble& bubble) noexcept {
  const sterna::FairGuard guard{capi::bubbles_lock};
  if (bubble.holder != nullptr || !bubble.is_submitted) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (has_caller(bubble)) {
    return STERNA_DEADLOCK;
  }
  return std::exchange(bubble.is_joined, true) ? STERNA_BUSY : STERNA_SUCCESS;
}

sterna_status refuse_join(sterna_status status, const sterna_bubble* bubble) noexcept {
  const auto* const shown = static_cast<const void*>(bubble);
  if (status == STERNA_DEADLOCK) {
    return capi::refuse(status,
                        "bubble {}: {}, which it holds, joins it, and would wait for itself", shown,
                        capi::words_for(sterna::threads::self()));
  }
  return status == STERNA_BUSY
             ? capi::refuse(status, "bubble {} is being joined by somebody: that is enough", shown)
             : capi::refuse(
                   status, "bubble {} is not submitted, or in another one, with which it is joined",
                   shown);
}

}  // namespace

void capi::join_forgotten(Program& program) noexcept {
  for (;;) {
    const Forgotten found = claim_forgotten(program);
    if (found.bubble != nullptr) {
      join_and_free(program, *found.bubble);
    } else if (found.is_any_left) {
      threads::sleep_for(kEndPauseNs);
    } else {
      return;
    }
  }
}

sterna_status sterna_bubble_join(sterna_bubble* bubble) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  const capi::JoinScope join{*program};
  const sterna_status status =
      bubble == nullptr ? STERNA_INVALID_ARGUMENT : begin_join(*bubble);
  if (status != STERNA_SUCCESS) {
    return refuse_join(status, bubble);
  }
  // Half a bubble could not be joined again.
  const sterna::threads::Uncancellable uncancellable{sterna::threads::self()};
  join_and_free(*program, *bubble);
  return STERNA_SUCCESS;
}
