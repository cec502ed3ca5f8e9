// Start and end of a rank: __libc_start_main, exit and what runs at it.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>

#include <unistd.h>

#include "program/rank_heap.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"
#include "program/streams.h"

extern "C" int __cxa_thread_atexit_impl(void (*)(void*), void*, void*);

namespace sterna::program {
namespace {

using MainFunction = int (*)(int, char**, char**);
using PlainFunction = void (*)();

/// Function pointers of an array in the image, as DT_INIT_ARRAY has them.
template <typename Visit>
void for_each_function(const RankData& data, const PrivateObject& object, ImageRange array,
                       Visit&& visit) {
  const auto* words =
      reinterpret_cast<const std::uintptr_t*>(data.images + object.offset + array.address);
  for (std::size_t index = 0; index < array.bytes / sizeof(std::uintptr_t); ++index) {
    // 0 and -1 are fillers of old linkers.
    if (words[index] != 0 && words[index] != ~std::uintptr_t{0}) {
      visit(words[index], index);
    }
  }
}

void run_initialisers(RankData& data, MainFunction old_style_init) {
  const ObjectGraph& graph = open_program()->parts().graph;
  char** environment = variable<char**>(data, Variable::environment);
  const auto call = [&](std::uintptr_t function, std::size_t) {
    reinterpret_cast<MainFunction>(function)(data.argument_count, data.arguments, environment);
  };
  const PrivateObject& executable = *graph.objects.front();
  if (old_style_init == nullptr) {
    for_each_function(data, executable, executable.file.preinit_array(), call);
  }
  for (const std::uint32_t index : graph.init_order) {
    const PrivateObject& object = *graph.objects[index];
    if (index == 0 && old_style_init != nullptr) {
      // Linked against a libc before 2.34: it brings a function that does all of this.
      old_style_init(data.argument_count, data.arguments, environment);
      continue;
    }
    if (object.file.init_function() != 0) {
      call(data.images + object.offset + object.file.init_function(), 0);
    }
    for_each_function(data, object, object.file.init_array(), call);
  }
}

void run_finalisers(const RankData& data) {
  const ObjectGraph& graph = open_program()->parts().graph;
  for (auto index = graph.init_order.rbegin(); index != graph.init_order.rend(); ++index) {
    const PrivateObject& object = *graph.objects[*index];
    const ImageRange array = object.file.fini_array();
    // Last registered, first called.
    for (std::uint64_t count = array.bytes / 8; count > 0; --count) {
      for_each_function(data, object, {array.address + (count - 1) * 8, 8},
                        [](std::uintptr_t function, std::size_t) {
                          reinterpret_cast<PlainFunction>(function)();
                        });
    }
    if (object.file.fini_function() != 0) {
      reinterpret_cast<PlainFunction>(data.images + object.offset + object.file.fini_function())();
    }
  }
}

bool add_handler(RankData& data, ExitHandlers& list, const ExitHandler& handler) noexcept {
  const SpinGuard guard{data.lock};
  if (list.count == list.capacity) {
    const std::uint32_t capacity = list.capacity == 0 ? 32 : 2 * list.capacity;
    void* grown = rank_reallocate(*data.slot, list.handlers, capacity * sizeof(ExitHandler));
    if (grown == nullptr) {
      return false;
    }
    list.handlers = static_cast<ExitHandler*>(grown);
    list.capacity = capacity;
  }
  list.handlers[list.count++] = handler;
  return true;
}

/// Takes the last handler (of `library`, if not null) off the list.
bool take_handler(RankData& data, ExitHandlers& list, const void* library,
                  ExitHandler& handler) noexcept {
  const SpinGuard guard{data.lock};
  for (std::uint32_t index = list.count; index-- > 0;) {
    if (library != nullptr && list.handlers[index].library != library) {
      continue;
    }
    handler = list.handlers[index];
    std::memmove(&list.handlers[index], &list.handlers[index + 1],
                 (list.count - index - 1) * sizeof(ExitHandler));
    --list.count;
    return true;
  }
  return false;
}

void run_handlers(RankData& data, ExitHandlers& list, const void* library, int status) {
  // A handler may register others, which come next.
  for (ExitHandler handler; take_handler(data, list, library, handler);) {
    switch (handler.kind) {
      case ExitHandler::Kind::plain:
        reinterpret_cast<PlainFunction>(handler.function)();
        break;
      case ExitHandler::Kind::with_argument:
        reinterpret_cast<void (*)(void*)>(handler.function)(handler.argument);
        break;
      case ExitHandler::Kind::with_status:
        reinterpret_cast<void (*)(int, void*)>(handler.function)(status, handler.argument);
        break;
    }
  }
}

[[noreturn]] void leave_for_good(RankData& data, int status) noexcept {
  write_held_lines(data);
  if (!is_main_of(data)) {
    // Another thread of the rank: its main thread cannot be stopped from here.
    write_output(data, OutputStream::err,
                 "sterna: exit() was called outside of the rank's main thread: the rank aborts\n");
    std::abort();
  }
  data.has_ended.store(true, std::memory_order_relaxed);
  leave_user();
  host_calls().rank_exit(*data.slot, status & 0xff);
  __builtin_unreachable();
}

[[noreturn]] void shim_exit(int status) {
  RankData& data = calling_data();
  if (is_main_of(data) && !data.is_ending) {
    data.is_ending = true;
    run_handlers(data, data.thread_handlers, nullptr, status);
    run_handlers(data, data.exit_handlers, nullptr, status);
    run_finalisers(data);
    flush_all(data);
  }
  leave_for_good(data, status);
}

[[noreturn]] void shim_exit_now(int status) {
  RankData* const data = find_calling_data();
  if (data == nullptr) {
    ::_exit(status);
  }
  leave_for_good(*data, status);
}

[[noreturn]] void shim_quick_exit(int status) {
  RankData& data = calling_data();
  run_handlers(data, data.quick_handlers, nullptr, status);
  leave_for_good(data, status);
}

[[noreturn]] void shim_abort() {
  if (find_calling_data() == nullptr) {
    std::abort();
  }
  RankData& data = calling_data();
  write_held_lines(data);
  if (!is_main_of(data)) {
    std::abort();
  }
  leave_user();
  host_calls().rank_abort(*data.slot, SIGABRT);
  __builtin_unreachable();
}

int shim_start_main(MainFunction main_function, int, char**, MainFunction old_style_init, void*,
                    void*, void*) {
  RankData& data = calling_data();
  run_initialisers(data, old_style_init);
  shim_exit(main_function(data.argument_count, data.arguments,
                          variable<char**>(data, Variable::environment)));
}

int shim_cxa_atexit(void (*function)(void*), void* argument, void* library) {
  RankData& data = calling_data();
  const ExitHandler handler{reinterpret_cast<void*>(function), argument, library,
                            ExitHandler::Kind::with_argument};
  return add_handler(data, data.exit_handlers, handler) ? 0 : -1;
}

int shim_cxa_at_quick_exit(void (*function)(void*), void* library) {
  RankData& data = calling_data();
  const ExitHandler handler{reinterpret_cast<void*>(function), nullptr, library,
                            ExitHandler::Kind::with_argument};
  return add_handler(data, data.quick_handlers, handler) ? 0 : -1;
}

int shim_atexit(void (*function)()) {
  RankData& data = calling_data();
  const ExitHandler handler{reinterpret_cast<void*>(function), nullptr, nullptr,
                            ExitHandler::Kind::plain};
  return add_handler(data, data.exit_handlers, handler) ? 0 : -1;
}

int shim_on_exit(void (*function)(int, void*), void* argument) {
  RankData& data = calling_data();
  const ExitHandler handler{reinterpret_cast<void*>(function), argument, nullptr,
                            ExitHandler::Kind::with_status};
  return add_handler(data, data.exit_handlers, handler) ? 0 : -1;
}

int shim_thread_atexit(void (*function)(void*), void* object, void* library) {
  RankData& data = calling_data();
  if (!is_main_of(data)) {
    // libc looks for the library of the last argument, to keep it loaded: it gets one of the
    // host's.
    return __cxa_thread_atexit_impl(function, object, const_cast<Shim*>(start_shims().data()));
  }
  const ExitHandler handler{reinterpret_cast<void*>(function), object, library,
                            ExitHandler::Kind::with_argument};
  return add_handler(data, data.thread_handlers, handler) ? 0 : -1;
}

void shim_cxa_finalize(void* library) {
  RankData& data = calling_data();
  run_handlers(data, data.exit_handlers, library, 0);
}

[[noreturn]] void shim_stack_smashed() {
  write_output(calling_data(), OutputStream::err, "*** stack smashing detected ***: terminated\n");
  shim_abort();
}

[[noreturn]] void shim_buffer_overflow() {
  write_output(calling_data(), OutputStream::err, "*** buffer overflow detected ***: terminated\n");
  shim_abort();
}

[[noreturn]] void shim_assert_fail(const char* assertion, const char* file, unsigned line,
                                   const char* function) {
  RankData& data = calling_data();
  flush_all(data);
  std::fprintf(variable<std::FILE*>(data, Variable::standard_error),
               "%s: %s:%u: %s%sAssertion `%s' failed.\n", data.variables.program_short_name, file,
               line, function != nullptr ? function : "", function != nullptr ? ": " : "",
               assertion);
  shim_abort();
}

}  // namespace

std::span<const Shim> start_shims() {
  static const Shim shims[] = {
      function_shim("__libc_start_main", shim_start_main),
      function_shim("exit", shim_exit),
      function_shim("_exit", shim_exit_now),
      function_shim("_Exit", shim_exit_now),
      function_shim("quick_exit", shim_quick_exit),
      function_shim("abort", shim_abort),
      function_shim("atexit", shim_atexit),
      function_shim("on_exit", shim_on_exit),
      function_shim("__cxa_atexit", shim_cxa_atexit),
      function_shim("__cxa_at_quick_exit", shim_cxa_at_quick_exit),
      function_shim("__cxa_thread_atexit_impl", shim_thread_atexit),
      function_shim("__cxa_finalize", shim_cxa_finalize),
      function_shim("__stack_chk_fail", shim_stack_smashed),
      function_shim("__chk_fail", shim_buffer_overflow),
      function_shim("__assert_fail", shim_assert_fail),
  };
  return shims;
}

}  // namespace sterna::program
