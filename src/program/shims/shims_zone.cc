// Time zones: TZ is the rank's, libc's zone is the process's. For each call libc is shown an
// environment with the TZ of the rank, and what it answers is taken to the rank's memory, where it
// may stay.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include <pthread.h>
#include <unistd.h>
#include <wchar.h>

#include "base/syscall.h"
#include "program/rank_heap.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"

namespace sterna::program {
namespace {

// Held over libc's reading of files, so none that spins; never over a switch.
constinit pthread_mutex_t zone_lock = PTHREAD_MUTEX_INITIALIZER;

/// Environments that libc may see, under zone_lock. Other threads of the node may be reading
/// whichever is there, so that nothing of them is ever freed.
struct ShownEnvironment {
  char** with_zone = nullptr;  // "TZ=...", and then what is without.
  struct Text {
    Text* next;
    char bytes[1];  // More follow.
  };
  Text* texts = nullptr;
};
constinit ShownEnvironment shown;

constexpr std::string_view kZoneEntry = "TZ=";

bool is_zone(const char* entry) noexcept {
  return std::strncmp(entry, kZoneEntry.data(), kZoneEntry.size()) == 0;
}

/// The entry of TZ, or null.
const char* find_zone(char* const* environment) noexcept {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (is_zone(*environment)) {
      return *environment;
    }
  }
  return nullptr;
}

/// An entry that stays. Null: no memory.
char* keep(const char* entry) noexcept {
  for (ShownEnvironment::Text* text = shown.texts; text != nullptr; text = text->next) {
    if (std::strcmp(text->bytes, entry) == 0) {
      return text->bytes;
    }
  }
  const std::size_t bytes = std::strlen(entry);
  auto* text = static_cast<ShownEnvironment::Text*>(
      std::malloc(sizeof(ShownEnvironment::Text) + bytes));
  if (text == nullptr) {
    return nullptr;
  }
  std::memcpy(text->bytes, entry, bytes + 1);
  text->next = shown.texts;
  shown.texts = text;
  return text->bytes;
}

/// The process's environment with this entry of TZ, or with none. Null: no memory.
char** environment_with(const char* entry) noexcept {
  if (shown.with_zone == nullptr) {
    std::size_t count = 0;
    while (environ != nullptr && environ[count] != nullptr) {
      ++count;
    }
    auto** const copy = static_cast<char**>(std::malloc((count + 2) * sizeof(char*)));
    if (copy == nullptr) {
      return nullptr;
    }
    char** to = copy;
    *to++ = const_cast<char*>("TZ=");
    for (std::size_t index = 0; index < count; ++index) {
      if (!is_zone(environ[index])) {
        *to++ = environ[index];
      }
    }
    *to = nullptr;
    shown.with_zone = copy;
  }
  if (entry == nullptr) {
    return shown.with_zone + 1;
  }
  char* const kept = keep(entry);
  if (kept == nullptr) {
    return nullptr;
  }
  std::atomic_ref{shown.with_zone[0]}.store(kept, std::memory_order_release);
  return shown.with_zone;
}

bool is_same(const char* one, const char* other) noexcept {
  return one == other || (one != nullptr && other != nullptr && std::strcmp(one, other) == 0);
}

/// The same abbreviation in the rank's memory.
const char* name_of_rank(RankData& data, const char* name) noexcept {
  if (name == nullptr || memory::rank_slot_of(name) == data.slot) {
    return name;
  }
  const SpinGuard guard{data.lock};
  for (ZoneName* known = data.libc.time.zone_names; known != nullptr; known = known->next) {
    if (std::strcmp(known->text, name) == 0) {
      return known->text;
    }
  }
  const std::size_t bytes = std::strlen(name);
  auto* const made = static_cast<ZoneName*>(rank_allocate(*data.slot, sizeof(ZoneName) + bytes));
  if (made == nullptr) {
    return "";
  }
  std::memcpy(made->text, name, bytes + 1);
  made->next = data.libc.time.zone_names;
  data.libc.time.zone_names = made;
  return made->text;
}

/// tzname, timezone and daylight of the rank are libc's.
void take_variables(RankData& data) noexcept {
  auto* const names = &variable<char*>(data, Variable::zone_names);
  for (const int index : {0, 1}) {
    names[index] = const_cast<char*>(name_of_rank(data, ::tzname[index]));
  }
  variable<long>(data, Variable::time_zone) = ::timezone;
  variable<int>(data, Variable::daylight) = ::daylight;
}

/// `call()` on the worker's thread pointer, with the time zone of the rank.
template <typename Call>
auto in_zone(RankData& data, Call&& call) noexcept {
  int number = last_error_number();
  const auto result = on_worker(data, [&] {
    ::pthread_mutex_lock(&zone_lock);
    char** const own = environ;
    const char* const zone = find_zone(variable<char**>(data, Variable::environment));
    if (!is_same(zone, find_zone(own))) {
      if (char** const with = environment_with(zone); with != nullptr) {
        std::atomic_ref{environ}.store(with, std::memory_order_release);
      }
    }
    ::tzset();
    set_last_error_number(number);
    const auto inner = call();
    number = last_error_number();
    take_variables(data);
    std::atomic_ref{environ}.store(own, std::memory_order_release);
    ::pthread_mutex_unlock(&zone_lock);
    return inner;
  });
  set_last_error_number(number);
  return result;
}

void shim_tzset() {
  (void)in_zone(calling_data(), [] { return 0; });
}

std::tm* localtime_to(RankData& data, const std::time_t* time, std::tm* fields) noexcept {
  return in_zone(data, [&] {
    std::tm* const result = ::localtime_r(time, fields);
    if (result != nullptr) {
      result->tm_zone = name_of_rank(data, result->tm_zone);
    }
    return result;
  });
}

std::tm* shim_localtime(const std::time_t* time) {
  RankData& data = calling_data();
  return localtime_to(data, time, &data.libc.time.fields);
}
std::tm* shim_localtime_r(const std::time_t* time, std::tm* fields) {
  return localtime_to(calling_data(), time, fields);
}

std::tm* gmtime_to(RankData& data, const std::time_t* time, std::tm* fields) noexcept {
  return in_zone(data, [&] {
    std::tm* const result = ::gmtime_r(time, fields);
    if (result != nullptr) {
      result->tm_zone = name_of_rank(data, result->tm_zone);
    }
    return result;
  });
}

std::tm* shim_gmtime(const std::time_t* time) {
  RankData& data = calling_data();
  return gmtime_to(data, time, &data.libc.time.fields);
}
std::tm* shim_gmtime_r(const std::time_t* time, std::tm* fields) {
  return gmtime_to(calling_data(), time, fields);
}

template <std::time_t (*function)(std::tm*)>
std::time_t shim_to_time(std::tm* fields) {
  RankData& data = calling_data();
  return in_zone(data, [&] {
    std::tm normal = *fields;
    normal.tm_zone = nullptr;  // Whatever it was: it says whether libc has written.
    const std::time_t time = function(&normal);
    if (normal.tm_zone != nullptr) {
      normal.tm_zone = name_of_rank(data, normal.tm_zone);
      *fields = normal;
    }
    return time;
  });
}

/// asctime() of libc writes to a place of its own, which is under zone_lock, too.
char* shim_asctime(const std::tm* fields) {
  RankData& data = calling_data();
  return in_zone(data, [&]() -> char* {
    const char* const text = std::asctime(fields);
    return text != nullptr ? std::strcpy(data.libc.time.text, text) : nullptr;
  });
}

char* shim_ctime(const std::time_t* time) {
  std::tm fields;
  return shim_localtime_r(time, &fields) != nullptr ? shim_asctime(&fields) : nullptr;
}
char* shim_ctime_r(const std::time_t* time, char* text) {
  std::tm fields;
  return shim_localtime_r(time, &fields) != nullptr ? ::asctime_r(&fields, text) : nullptr;
}

template <auto function, typename Result, typename... Args>
Result call_in_zone(Args... arguments) {
  return in_zone(calling_data(), [&] { return function(arguments...); });
}

template <auto function, typename Result, typename... Args>
Shim zoned_as(std::string_view name, Result (*)(Args...)) {
  return function_shim(name, &call_in_zone<function, Result, Args...>);
}

template <auto function>
Shim zoned(std::string_view name) {
  return zoned_as<function>(name, function);
}

}  // namespace

std::span<const Shim> zone_shims() {
  static const Shim shims[] = {
      variable_shim("timezone", offsetof(RankData, variables.seconds_west)),
      variable_shim("__timezone", offsetof(RankData, variables.seconds_west)),
      variable_shim("daylight", offsetof(RankData, variables.has_daylight)),
      variable_shim("__daylight", offsetof(RankData, variables.has_daylight)),
      variable_shim("tzname", offsetof(RankData, variables.zone_names)),
      variable_shim("__tzname", offsetof(RankData, variables.zone_names)),
      function_shim("tzset", shim_tzset),
      function_shim("localtime", shim_localtime),
      function_shim("localtime_r", shim_localtime_r),
      function_shim("gmtime", shim_gmtime),
      function_shim("gmtime_r", shim_gmtime_r),
      function_shim("mktime", shim_to_time<::mktime>),
      function_shim("timelocal", shim_to_time<::mktime>),
      function_shim("timegm", shim_to_time<::timegm>),
      function_shim("asctime", shim_asctime),
      function_shim("ctime", shim_ctime),
      function_shim("ctime_r", shim_ctime_r),
      zoned<::strftime>("strftime"),
      zoned<::strftime_l>("strftime_l"),
      zoned<::strftime_l>("__strftime_l"),
      zoned<::wcsftime>("wcsftime"),
      zoned<::wcsftime_l>("wcsftime_l"),
      zoned<::wcsftime_l>("__wcsftime_l"),
      zoned<::strptime>("strptime"),
  };
  return shims;
}

}  // namespace sterna::program
