// tune.h: settings of a C program.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include <sterna/tune.h>
#include <unistd.h>

#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "runtime/settings.h"

namespace capi = sterna::runtime::capi;
using sterna::runtime::RuntimeScope;

namespace {

const sterna::Tunable* find_tunable(std::string_view name) noexcept {
  for (const auto table : sterna::runtime::all_tunables()) {
    for (const sterna::Tunable& tunable : table) {
      if (tunable.name == name) {
        return &tunable;
      }
    }
  }
  return nullptr;
}

}  // namespace

sterna_status capi::with_settings(FunctionRef<sterna_status(const Settings&)> use) noexcept {
  if (const auto* rank = sterna::runtime::find_current_rank(); rank != nullptr) {
    return use(rank->runtime->settings());
  }
  return guarded([&]() -> sterna_status {
    Settings settings{sterna::runtime::all_tunables()};
    if (!settings.load(environ)) {
      return STERNA_SYSTEM;
    }
    return use(settings);
  });
}

sterna_status sterna_setting_set(const char* name, const char* value) noexcept {
  const RuntimeScope scope;
  if (name == nullptr || value == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (sterna::runtime::find_current_rank() != nullptr) {
    return capi::refuse(STERNA_BUSY, "setting {}: it is set before the start", name);
  }
  const sterna::Tunable* const tunable = find_tunable(name);
  if (tunable == nullptr) {
    return capi::refuse(STERNA_NOT_FOUND, "there is no setting \"{}\": sterna info lists them",
                        name);
  }
  if (!sterna::parse_tunable(*tunable, value)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "setting {}: \"{}\" is no value of it: sterna info has what is", name,
                        value);
  }
  return capi::guarded([&] {
    std::string variable = "STERNA_";
    std::ranges::transform(tunable->name, std::back_inserter(variable),
                           [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
    return ::setenv(variable.c_str(), value, 1) == 0 ? STERNA_SUCCESS : STERNA_OUT_OF_MEMORY;
  });
}

sterna_status sterna_setting_get(const char* name, char* buffer, size_t bytes) noexcept {
  const RuntimeScope scope;
  if (name == nullptr || buffer == nullptr || bytes == 0) {
    return capi::refuse_argument(__func__);
  }
  const sterna::Tunable* const tunable = find_tunable(name);
  if (tunable == nullptr) {
    return capi::refuse(STERNA_NOT_FOUND, "there is no setting \"{}\": sterna info lists them",
                        name);
  }
  return capi::with_settings([&](const sterna::Settings& settings) {
    const std::string_view value = settings.text(*tunable);
    const std::size_t stored = std::min(bytes - 1, value.size());
    std::memcpy(buffer, value.data(), stored);
    buffer[stored] = '\0';
    return stored == value.size() ? STERNA_SUCCESS : STERNA_TRUNCATED;
  });
}

sterna_status sterna_setting_list(sterna_setting_visit visit, void* context) noexcept {
  const RuntimeScope scope;
  if (visit == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return capi::with_settings([&](const sterna::Settings& settings) {
    settings.for_each([&](const sterna::SettingRow& row) {
      const std::string name{row.tunable->name};
      const std::string value{row.value};
      const std::string source{row.place};
      const sterna::runtime::UserScope user;
      visit(context, name.c_str(), value.c_str(), source.c_str());
    });
    return STERNA_SUCCESS;
  });
}
