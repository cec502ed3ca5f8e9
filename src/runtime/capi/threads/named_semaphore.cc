// sync.h: semaphores that are found by name, within the process.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <sterna/sync.h>

#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/sync/mutex.h"

namespace capi = sterna::runtime::capi;
using sterna::runtime::RuntimeScope;

namespace {

constexpr std::size_t kNameMax = 250;

struct Named {
  sterna_semaphore semaphore = STERNA_SEMAPHORE_INIT;
  std::string name;  // Empty: it was unlinked.
  std::uint64_t opens = 0;
};

// Few, so a list. Guard: registry_mutex.
constinit sterna::threads::Mutex registry_mutex;

std::vector<std::unique_ptr<Named>>& registry() {
  static std::vector<std::unique_ptr<Named>> all;
  return all;
}

bool is_name(const char* name) noexcept {
  return name != nullptr && *name != '\0' && ::strnlen(name, kNameMax + 1) <= kNameMax;
}

Named* find(std::string_view name) {
  for (const auto& one : registry()) {
    if (one->name == name) {
      return one.get();
    }
  }
  return nullptr;
}

/// registry_mutex is held: one that nobody can reach any more goes.
void drop_if_unused(const Named& named) {
  if (named.opens == 0 && named.name.empty()) {
    std::erase_if(registry(), [&](const auto& one) { return one.get() == &named; });
  }
}

sterna_status refuse_name() noexcept {
  return capi::refuse(STERNA_INVALID_ARGUMENT, "the name of a semaphore has 1 to {} bytes",
                      kNameMax);
}

}  // namespace

sterna_status sterna_semaphore_open(const char* name, uint32_t flags, uint32_t count,
                                    sterna_semaphore** semaphore) noexcept {
  const RuntimeScope scope;
  if (!is_name(name)) {
    return refuse_name();
  }
  const bool creates = (flags & STERNA_SEMAPHORE_CREATE) != 0;
  if (semaphore == nullptr || flags > (STERNA_SEMAPHORE_CREATE | STERNA_SEMAPHORE_EXCLUSIVE) ||
      (!creates && flags != 0)) {
    return capi::refuse_argument(__func__);
  }
  return capi::guarded([&] {
    const sterna::threads::MutexGuard guard{registry_mutex};
    Named* found = find(name);
    if (found == nullptr && !creates) {
      return capi::refuse(STERNA_NOT_FOUND,
                          "there is no semaphore \"{}\": STERNA_SEMAPHORE_CREATE makes it", name);
    }
    if (found != nullptr && (flags & STERNA_SEMAPHORE_EXCLUSIVE) != 0) {
      return capi::refuse(STERNA_BUSY, "there is a semaphore \"{}\" already", name);
    }
    if (found == nullptr) {
      auto made = std::make_unique<Named>();
      made->name = name;
      (void)sterna_semaphore_init(&made->semaphore, count);
      found = made.get();
      registry().push_back(std::move(made));
    }
    ++found->opens;
    *semaphore = &found->semaphore;
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_semaphore_close(sterna_semaphore* semaphore) noexcept {
  const RuntimeScope scope;
  const sterna::threads::MutexGuard guard{registry_mutex};
  for (const auto& one : registry()) {
    if (&one->semaphore == semaphore && one->opens != 0) {
      --one->opens;
      drop_if_unused(*one);
      return STERNA_SUCCESS;
    }
  }
  return capi::refuse(STERNA_NOT_FOUND,
                      "semaphore {} has no name, or was closed as often as it was opened",
                      static_cast<const void*>(semaphore));
}

sterna_status sterna_semaphore_unlink(const char* name) noexcept {
  const RuntimeScope scope;
  if (!is_name(name)) {
    return refuse_name();
  }
  const sterna::threads::MutexGuard guard{registry_mutex};
  Named* const found = find(name);
  if (found == nullptr) {
    return capi::refuse(STERNA_NOT_FOUND, "there is no semaphore \"{}\"", name);
  }
  found->name.clear();
  drop_if_unused(*found);
  return STERNA_SUCCESS;
}
