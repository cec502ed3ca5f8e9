// sync.h: semaphores that are found by name, within the process.
#include <cstring>
#include <list>
#include <string>

#include <sterna/sync.h>

#include "base/spin_lock.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"

namespace capi = sterna::runtime::capi;
using sterna::runtime::RuntimeScope;

namespace {

constexpr std::size_t kNameMax = 250;

struct Named {
  sterna_semaphore semaphore = STERNA_SEMAPHORE_INIT;
  std::string name;  // Empty: it was unlinked.
  std::uint64_t opens = 0;
};

// Quick services use them too: who has the lock neither waits, nor makes or frees memory.
constinit sterna::SpinLock registry_lock;

// Few, so a list. Guard: registry_lock.
std::list<Named>& registry() {
  static std::list<Named> all;
  return all;
}

bool is_name(const char* name) noexcept {
  return name != nullptr && *name != '\0' && ::strnlen(name, kNameMax + 1) <= kNameMax;
}

/// registry_lock is held.
Named* find(std::string_view name) {
  for (Named& one : registry()) {
    if (one.name == name) {
      return &one;
    }
  }
  return nullptr;
}

/// registry_lock is held: one that nobody can reach any more goes to `dropped`.
void drop_if_unused(const Named& named, std::list<Named>& dropped) {
  if (named.opens != 0 || !named.name.empty()) {
    return;
  }
  for (auto one = registry().begin(); one != registry().end(); ++one) {
    if (&*one == &named) {
      dropped.splice(dropped.end(), registry(), one);
      return;
    }
  }
}

/// They are memory of the process, which a rank may leave.
sterna_status refuse_mobile(const char* call) noexcept {
  return capi::refuse(STERNA_UNSUPPORTED,
                      "{}: a semaphore with a name belongs to a process, which a mobile rank may "
                      "leave",
                      call);
}

sterna_status refuse_name() noexcept {
  return capi::refuse(STERNA_INVALID_ARGUMENT, "the name of a semaphore has 1 to {} bytes",
                      kNameMax);
}

}  // namespace

sterna_status sterna_semaphore_open(const char* name, uint32_t flags, uint32_t count,
                                    sterna_semaphore** semaphore) noexcept {
  const RuntimeScope scope;
  if (capi::is_mobile()) {
    return refuse_mobile(__func__);
  }
  if (!is_name(name)) {
    return refuse_name();
  }
  const bool creates = (flags & STERNA_SEMAPHORE_CREATE) != 0;
  if (semaphore == nullptr || flags > (STERNA_SEMAPHORE_CREATE | STERNA_SEMAPHORE_EXCLUSIVE) ||
      (!creates && flags != 0)) {
    return capi::refuse_argument(__func__);
  }
  return capi::guarded([&] {
    std::list<Named> made;  // Perhaps in vain.
    if (creates) {
      made.emplace_back().name = name;
      (void)sterna_semaphore_init(&made.front().semaphore, count);
    }
    Named* found = nullptr;
    bool is_new = false;
    {
      const sterna::SpinGuard guard{registry_lock};
      found = find(name);
      is_new = found == nullptr && creates;
      if (is_new) {
        found = &made.front();
        registry().splice(registry().end(), made);
      }
      if (is_new || (found != nullptr && (flags & STERNA_SEMAPHORE_EXCLUSIVE) == 0)) {
        ++found->opens;
        *semaphore = &found->semaphore;
        return STERNA_SUCCESS;
      }
    }
    return found == nullptr
               ? capi::refuse(STERNA_NOT_FOUND,
                              "there is no semaphore \"{}\": STERNA_SEMAPHORE_CREATE makes it",
                              name)
               : capi::refuse(STERNA_BUSY, "there is a semaphore \"{}\" already", name);
  });
}

sterna_status sterna_semaphore_close(sterna_semaphore* semaphore) noexcept {
  const RuntimeScope scope;
  if (capi::is_mobile()) {
    return refuse_mobile(__func__);
  }
  std::list<Named> dropped;
  {
    const sterna::SpinGuard guard{registry_lock};
    for (Named& one : registry()) {
      if (&one.semaphore == semaphore && one.opens != 0) {
        --one.opens;
        drop_if_unused(one, dropped);
        return STERNA_SUCCESS;
      }
    }
  }
  return capi::refuse(STERNA_NOT_FOUND,
                      "semaphore {} has no name, or was closed as often as it was opened",
                      static_cast<const void*>(semaphore));
}

sterna_status sterna_semaphore_unlink(const char* name) noexcept {
  const RuntimeScope scope;
  if (capi::is_mobile()) {
    return refuse_mobile(__func__);
  }
  if (!is_name(name)) {
    return refuse_name();
  }
  std::list<Named> dropped;
  {
    const sterna::SpinGuard guard{registry_lock};
    if (Named* const found = find(name)) {
      found->name.clear();
      drop_if_unused(*found, dropped);
      return STERNA_SUCCESS;
    }
  }
  return capi::refuse(STERNA_NOT_FOUND, "there is no semaphore \"{}\"", name);
}
