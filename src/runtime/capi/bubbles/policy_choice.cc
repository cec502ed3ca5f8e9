// policy.h: which policies there are, and which one rules.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include <sterna/policy.h>

#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "runtime/settings.h"

namespace capi = sterna::runtime::capi;
namespace sched = sterna::sched;
using sterna::runtime::RuntimeScope;

namespace {

constexpr std::size_t kRegisteredMax = 64;
constexpr std::size_t kTextBytes = 512;

// What sterna_policy_set said before the start. Guard: written by the initial kernel thread while
// there are no others of ours, as the settings.
constinit char to_begin_with[kTextBytes] = "";

void visit_one(sterna_policy_visit visit, void* context, const sched::PolicyEntry& entry) {
  const std::string name{entry.name};
  const std::string arguments{entry.arguments};
  const std::string summary{entry.summary};
  const sterna::runtime::UserScope user;
  visit(context, name.c_str(), arguments.c_str(), summary.c_str());
}

sterna_status store(std::string_view text, char* buffer, std::size_t bytes) noexcept {
  const std::size_t stored = std::min(bytes - 1, text.size());
  std::memcpy(buffer, text.data(), stored);
  buffer[stored] = '\0';
  return stored == text.size() ? STERNA_SUCCESS : STERNA_TRUNCATED;
}

}  // namespace

std::string_view capi::policy_to_begin_with(const Settings& settings, const char* wanted) noexcept {
  if (const std::string_view set = settings.text(kPolicy); !set.empty()) {
    return set;
  }
  if (wanted != nullptr) {
    return wanted;
  }
  return to_begin_with[0] != '\0' ? to_begin_with : "flat";
}

sterna_status sterna_policy_list(sterna_policy_visit visit, void* context) noexcept {
  const RuntimeScope scope;
  if (visit == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return capi::guarded([&] {
    for (const sched::PolicyEntry* const entry : sched::builtin_policies()) {
      visit_one(visit, context, *entry);
    }
    std::array<const sched::PolicyEntry*, kRegisteredMax> registered;
    const std::size_t count = sched::registered_policies(registered);
    for (std::size_t i = 0; i < std::min(count, kRegisteredMax); ++i) {
      visit_one(visit, context, *registered[i]);
    }
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_policy_set(const char* policy) noexcept {
  const RuntimeScope scope;
  if (policy == nullptr || std::strlen(policy) >= kTextBytes) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "a policy is a text of less than {} bytes, as in sterna_options.policy",
                        kTextBytes);
  }
  capi::Program* const program = capi::program();
  if (program == nullptr && capi::is_mobile()) {
    return capi::why_no_program();
  }
  return capi::guarded([&] {
    auto made = sched::make_policy(policy);
    if (made && program == nullptr) {
      std::memcpy(to_begin_with, policy, std::strlen(policy) + 1);
      return STERNA_SUCCESS;
    }
    const sterna::Result<> changed =
        made ? program->scheduler->engine().change_policy(std::move(made.value())) : made.error();
    return changed
               ? STERNA_SUCCESS
               : capi::refuse(capi::to_status(changed.error().code), "{}", changed.error().text);
  });
}

sterna_status sterna_policy_get(char* buffer, size_t bytes) noexcept {
  const RuntimeScope scope;
  if (buffer == nullptr || bytes == 0) {
    return capi::refuse_argument(__func__);
  }
  if (const capi::Program* const program = capi::program(); program != nullptr) {
    char text[kTextBytes];
    const std::size_t length = program->scheduler->engine().policy_text(text);
    return store({text, std::min(length, sizeof text)}, buffer, bytes);
  }
  if (capi::is_mobile()) {
    return capi::why_no_program();
  }
  return capi::with_settings([&](const sterna::Settings& settings) {
    return store(capi::policy_to_begin_with(settings, nullptr), buffer, bytes);
  });
}
