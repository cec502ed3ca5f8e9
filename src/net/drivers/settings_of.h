// How a driver reads a tunable of its own: the job's settings, or the default without them.
#pragma once

#include "base/tunable.h"
#include "net/driver.h"

namespace sterna::net {

[[nodiscard]] inline std::int64_t number_of(const DriverOptions& options, const Tunable& tunable) {
  if (options.settings != nullptr && options.settings->has(tunable.name)) {
    return options.settings->number(tunable);
  }
  return parse_tunable(tunable, tunable.fallback).value();
}

[[nodiscard]] inline std::string_view text_of(const DriverOptions& options,
                                              const Tunable& tunable) {
  if (options.settings != nullptr && options.settings->has(tunable.name)) {
    return options.settings->text(tunable);
  }
  return tunable.fallback;
}

}  // namespace sterna::net
