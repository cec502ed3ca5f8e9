// The environment of a rank: getenv and its family on the rank's own `environ`.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/syscall.h"
#include "program/rank_heap.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"

namespace sterna::program {
namespace {

char**& environment_of(RankData& data) noexcept {
  return variable<char**>(data, Variable::environment);
}

/// The entry "name=..." of the environment, or null.
char** find_entry(RankData& data, std::string_view name) noexcept {
  char** entry = environment_of(data);
  for (; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name.data(), name.size()) == 0 && (*entry)[name.size()] == '=') {
      return entry;
    }
  }
  return nullptr;
}

std::size_t count_entries(char** environment) noexcept {
  std::size_t count = 0;
  while (environment != nullptr && environment[count] != nullptr) {
    ++count;
  }
  return count;
}

/// Puts "name=value" into the environment, which keeps it.
int put_entry(RankData& data, char* text, std::string_view name) noexcept {
  if (char** entry = find_entry(data, name); entry != nullptr) {
    *entry = text;
    return 0;
  }
  char**& environment = environment_of(data);
  const std::size_t count = count_entries(environment);
  const bool is_ours = data.owned_environment != nullptr && environment == data.owned_environment;
  auto* grown = static_cast<char**>(
      rank_reallocate(*data.slot, is_ours ? environment : nullptr, (count + 2) * sizeof(char*)));
  if (grown == nullptr) {
    set_last_error_number(ENOMEM);
    return -1;
  }
  if (!is_ours && count != 0) {
    std::memcpy(grown, environment, count * sizeof(char*));
  }
  grown[count] = text;
  grown[count + 1] = nullptr;
  environment = data.owned_environment = grown;
  return 0;
}

bool is_name(const char* name) noexcept {
  return name != nullptr && *name != '\0' && std::strchr(name, '=') == nullptr;
}

char* shim_getenv(const char* name) {
  RankData* const data = find_calling_data();
  if (data == nullptr) {
    return std::getenv(name);  // The handler of a signal.
  }
  char** entry = find_entry(*data, name);
  return entry != nullptr ? *entry + std::strlen(name) + 1 : nullptr;
}

int shim_setenv(const char* name, const char* value, int overwrite) {
  RankData& data = calling_data();
  if (!is_name(name)) {
    set_last_error_number(EINVAL);
    return -1;
  }
  if (overwrite == 0 && find_entry(data, name) != nullptr) {
    return 0;
  }
  const std::size_t name_bytes = std::strlen(name);
  const std::size_t value_bytes = std::strlen(value);
  // The old value stays allocated, as in libc: the program may hold it.
  auto* text = static_cast<char*>(rank_allocate(*data.slot, name_bytes + value_bytes + 2));
  if (text == nullptr) {
    set_last_error_number(ENOMEM);
    return -1;
  }
  std::memcpy(text, name, name_bytes);
  text[name_bytes] = '=';
  std::memcpy(text + name_bytes + 1, value, value_bytes + 1);
  return put_entry(data, text, name);
}

int shim_unsetenv(const char* name) {
  if (!is_name(name)) {
    set_last_error_number(EINVAL);
    return -1;
  }
  RankData& data = calling_data();
  while (char** entry = find_entry(data, name)) {
    for (; *entry != nullptr; ++entry) {
      entry[0] = entry[1];
    }
  }
  return 0;
}

int shim_putenv(char* text) {
  const char* equals = std::strchr(text, '=');
  if (equals == nullptr) {
    return shim_unsetenv(text);
  }
  return put_entry(calling_data(), text, {text, static_cast<std::size_t>(equals - text)});
}

int shim_clearenv() {
  environment_of(calling_data()) = nullptr;
  return 0;
}

}  // namespace

std::span<const Shim> environment_shims() {
  static const Shim shims[] = {
      variable_shim("environ", offsetof(RankData, variables.environment)),
      variable_shim("__environ", offsetof(RankData, variables.environment)),
      variable_shim("_environ", offsetof(RankData, variables.environment)),
      function_shim("getenv", shim_getenv),
      function_shim("secure_getenv", shim_getenv),
      function_shim("setenv", shim_setenv),
      function_shim("unsetenv", shim_unsetenv),
      function_shim("putenv", shim_putenv),
      function_shim("clearenv", shim_clearenv),
  };
  return shims;
}

}  // namespace sterna::program
