// Shims of functions of libc that keep memory of their own for the process: they run on the
// worker's thread pointer, so that this memory is the process's and not that of the rank which
// happened to call first.
#pragma once

#include <string_view>
#include <type_traits>

#include "base/syscall.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"

namespace sterna::program {

/// Calls `function` on the worker's thread pointer; what it says in errno becomes the rank's.
template <auto function, typename Result, typename... Args>
Result call_on_worker(Args... arguments) {
  int number = 0;
  const RankData& data = calling_data();
  if constexpr (std::is_void_v<Result>) {
    on_worker(data, [&] {
      function(arguments...);
      number = last_error_number();
    });
    set_last_error_number(number);
  } else {
    const Result result = on_worker(data, [&] {
      const Result inner = function(arguments...);
      number = last_error_number();
      return inner;
    });
    set_last_error_number(number);
    return result;
  }
}

template <auto function, typename Result, typename... Args>
Shim shared_as(std::string_view name, Result (*)(Args...)) {
  return function_shim(name, &call_on_worker<function, Result, Args...>);
}

template <auto function>
Shim shared(std::string_view name) {
  return shared_as<function>(name, function);
}

}  // namespace sterna::program
