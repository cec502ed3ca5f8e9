// See switch_hook.h.
#include "threads/control/switch_hook.h"

#include "base/check.h"
#include "threads/flags.h"
#include "threads/this_thread.h"

namespace sterna::threads {
namespace {

void run_oldest_first(const SwitchHook* hook) noexcept {
  if (hook != nullptr) {
    run_oldest_first(hook->older);
    if (hook->after != nullptr) {
      hook->after(hook->argument);
    }
  }
}

}  // namespace

void add_switch_hook(SwitchHook& hook) noexcept {
  Thread* const me = self();
  check(me != nullptr, "add_switch_hook() is called on a user thread");
  hook.older = (me->flags & ThreadFlag::hooked) != 0 ? me->switch_hooks : nullptr;
  me->switch_hooks = &hook;
  set_flags(*me, me->flags | ThreadFlag::hooked);
}

bool remove_switch_hook(SwitchHook& hook) noexcept {
  Thread* const me = self();
  check(me != nullptr, "remove_switch_hook() is called on a user thread");
  if ((me->flags & ThreadFlag::hooked) == 0) {
    return false;
  }
  SwitchHook** link = &me->switch_hooks;
  while (*link != nullptr && *link != &hook) {
    link = &(*link)->older;
  }
  if (*link == nullptr) {
    return false;
  }
  *link = hook.older;
  if (me->switch_hooks == nullptr) {
    set_flags(*me, me->flags & ~ThreadFlag::hooked);
  }
  return true;
}

void run_hooks_before(const Thread& thread) noexcept {
  for (const SwitchHook* hook = thread.switch_hooks; hook != nullptr; hook = hook->older) {
    if (hook->before != nullptr) {
      hook->before(hook->argument);
    }
  }
}

void run_hooks_after(const Thread& thread) noexcept {
  run_oldest_first(thread.switch_hooks);
}

}  // namespace sterna::threads
