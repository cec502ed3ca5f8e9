// bubble.h: how C programs build bubbles; bubble_member.cc has their threads, bubble_run.cc how
// they run.
#include <algorithm>
#include <new>

#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"

namespace capi = sterna::runtime::capi;
using capi::Member;
using sterna::runtime::RuntimeScope;

namespace {

// Bubbles in bubbles: less than the scheduler allows, for the root and the threads.
constexpr std::uint32_t kDepthMax = sterna::sched::kNestingMax - 4;
static_assert(kDepthMax == 60, "as rule_against() says");

std::uint32_t height(const sterna_bubble& bubble) noexcept {
  std::uint32_t most = 0;
  for (const auto& child : bubble.children) {
    most = std::max(most, height(*child));
  }
  return most + 1;
}

/// SUCCESS: its name may be set, which others read without a lock once it runs.
sterna_status check_unsubmitted(const sterna_bubble* bubble) noexcept {
  if (bubble == nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "a bubble is what sterna_bubble_create gave");
  }
  if (bubble->is_submitted) {
    return capi::refuse(STERNA_BUSY, "{} runs: that is set before it is submitted",
                        capi::words_for(*bubble));
  }
  return STERNA_SUCCESS;
}

/// bubbles_lock is held.
capi::Verdict check_put(const sterna_bubble& bubble, const sterna_bubble& child,
                        bool is_move) noexcept {
  if (child.holder != nullptr && !is_move) {
    return {STERNA_INVALID_ARGUMENT, "the bubble to put there is in another one already"};
  }
  if (child.is_submitted) {
    return {STERNA_BUSY, "the bubble runs already: sterna_held_move puts it into another one"};
  }
  if (child.holder != nullptr && child.holder->is_submitted) {
    return {STERNA_BUSY, "the bubble is being started: move it afterwards"};
  }
  return bubble.is_closed ? capi::kClosedVerdict : capi::check_nesting(bubble, child);
}

}  // namespace

std::string capi::words_for(const sterna_bubble& bubble) {
  return bubble.name[0] != '\0' ? fmt::format("bubble '{}'", bubble.name)
                                : fmt::format("bubble {}", static_cast<const void*>(&bubble));
}

sterna_status capi::tell(const Verdict& verdict) noexcept {
  return verdict.rule == nullptr ? verdict.status
                                 : capi::refuse(verdict.status, "{}", verdict.rule);
}

capi::Verdict capi::check_nesting(const sterna_bubble& bubble,
                                  const sterna_bubble& child) noexcept {
  std::uint32_t depth = height(child);
  for (const sterna_bubble* outer = &bubble; outer != nullptr; outer = outer->holder) {
    if (outer == &child) {
      return {STERNA_INVALID_ARGUMENT,
              "a bubble cannot be put into one that it holds: bubbles nest as a tree"};
    }
    if (++depth > kDepthMax) {
      return {STERNA_INVALID_ARGUMENT,
              "bubbles are nested 60 deep at most: put some beside each other"};
    }
  }
  return {};
}

sterna_status capi::put_bubble(sterna_bubble& bubble, sterna_bubble& child, bool is_move) noexcept {
  return guarded([&] {
    std::vector<Member*> members;
    list_all(child, members);  // What may fail comes before anything has changed.
    Bubbles one(1);            // For a child that is in no list yet.
    Verdict verdict;
    bool is_running = false;
    {
      const FairGuard guard{bubbles_lock};
      verdict = check_put(bubble, child, is_move);
      if (verdict.status == STERNA_SUCCESS) {
        if (child.holder == nullptr) {
          one.front().reset(&child);
          child.self = one.begin();
        }
        Bubbles& from = child.holder != nullptr ? child.holder->children : one;
        bubble.children.splice(bubble.children.end(), from, child.self);
        child.holder = &bubble;
        is_running = bubble.is_submitted;
        for (Member* const member : members) {
          if (is_running) {
            enter(*member->bubble);  // From here on the bubble stays.
          }
        }
      }
    }
    if (verdict.status != STERNA_SUCCESS) {
      return refuse(verdict.status, "{} into {}: {}", words_for(child), words_for(bubble),
                    verdict.rule);
    }
    if (!is_running) {
      return STERNA_SUCCESS;
    }
    sched::Engine& engine = program()->scheduler->engine();
    insert_all(engine, bubble.bubble, child);
    put_first(engine, child);
    return start_all(*program(), members);
  });
}

sterna_status sterna_bubble_create(sterna_bubble** bubble) noexcept {
  const RuntimeScope scope;
  if (capi::program() == nullptr) {
    return capi::why_no_program();
  }
  if (bubble == nullptr) {
    return capi::refuse_argument(__func__);
  }
  *bubble = new (std::nothrow) sterna_bubble;
  return *bubble != nullptr ? STERNA_SUCCESS : STERNA_OUT_OF_MEMORY;
}

sterna_status sterna_bubble_add_bubble(sterna_bubble* bubble, sterna_bubble* child) noexcept {
  const RuntimeScope scope;
  return bubble == nullptr || child == nullptr ? capi::refuse_argument(__func__)
                                               : capi::put_bubble(*bubble, *child, false);
}

sterna_status sterna_bubble_set_name(sterna_bubble* bubble, const char* name) noexcept {
  const RuntimeScope scope;
  if (const sterna_status status = check_unsubmitted(bubble); status != STERNA_SUCCESS) {
    return status;
  }
  const std::string_view shown = name != nullptr ? name : "";
  const std::size_t bytes = shown.copy(bubble->name, sizeof bubble->name - 1);
  bubble->name[bytes] = '\0';
  bubble->bubble.name = bytes != 0 ? bubble->name : nullptr;
  return STERNA_SUCCESS;
}

sterna_status sterna_bubble_own_memory(sterna_bubble* bubble, void* base, size_t bytes) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  // No program has that much: a length that went below 0 would be looked at page by page.
  constexpr std::size_t kBytesMax = std::size_t{1} << 47;
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  if (bubble == nullptr || base == nullptr || bytes == 0 || bytes > kBytesMax ||
      begin + bytes < begin) {
    return capi::refuse_argument(__func__);
  }
  const sterna::Result<> owned = program->scheduler->own_memory(bubble->bubble, base, bytes);
  return owned ? STERNA_SUCCESS
               : capi::refuse(capi::to_status(owned.error().code), "{}: {}",
                              capi::words_for(*bubble), owned.error().text);
}

sterna_status sterna_bubble_phase(uint32_t number) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  program->scheduler->engine().set_phase(number);
  return STERNA_SUCCESS;
}

sterna_status sterna_bubble_shake(void) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  program->scheduler->engine().shake();
  return STERNA_SUCCESS;
}

sterna_status sterna_bubble_destroy(sterna_bubble* bubble) noexcept {
  const RuntimeScope scope;
  if (bubble != nullptr && (bubble->holder != nullptr || bubble->is_submitted)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "bubble {} is in another one, or was submitted: join it then",
                        static_cast<const void*>(bubble));
  }
  if (bubble != nullptr) {
    if (!capi::is_in_poll()) {
      capi::forget_bubble(*bubble);
    }
    capi::end_made(*bubble);
  }
  delete bubble;
  return STERNA_SUCCESS;
}
