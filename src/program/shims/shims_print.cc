// The functions of stdio that mean stdout, stderr or stdin without saying so.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/syscall.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"
#include "program/streams.h"

extern "C" {
int __vfprintf_chk(std::FILE*, int, const char*, va_list);
int __isoc99_vfscanf(std::FILE*, const char*, va_list);
}

namespace sterna::program {
namespace {

// A handler of a signal that found the worker in the runtime writes to the node's.
std::FILE* out() noexcept {
  return standard_file(Variable::standard_output, stdout);
}
std::FILE* err() noexcept {
  return standard_file(Variable::standard_error, stderr);
}
std::FILE* in() noexcept {
  return standard_file(Variable::standard_input, stdin);
}

int shim_vprintf(const char* format, va_list arguments) {
  return std::vfprintf(out(), format, arguments);
}

[[gnu::format(printf, 1, 2)]] int shim_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = std::vfprintf(out(), format, arguments);
  va_end(arguments);
  return result;
}

int shim_vprintf_checked(int flag, const char* format, va_list arguments) {
  return __vfprintf_chk(out(), flag, format, arguments);
}

int shim_printf_checked(int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = __vfprintf_chk(out(), flag, format, arguments);
  va_end(arguments);
  return result;
}

int shim_puts(const char* text) {
  std::FILE* file = out();
  ::flockfile(file);
  const bool is_written = ::fputs_unlocked(text, file) >= 0 && ::putc_unlocked('\n', file) >= 0;
  ::funlockfile(file);
  return is_written ? 1 : EOF;
}

int shim_putchar(int character) {
  return std::putc(character, out());
}
int shim_putchar_unlocked(int character) {
  return ::putc_unlocked(character, out());
}
int shim_getchar() {
  return std::getc(in());
}
int shim_getchar_unlocked() {
  return ::getc_unlocked(in());
}

int shim_vscanf(const char* format, va_list arguments) {
  return std::vfscanf(in(), format, arguments);
}

[[gnu::format(scanf, 1, 2)]] int shim_scanf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = std::vfscanf(in(), format, arguments);
  va_end(arguments);
  return result;
}

int shim_c99_vscanf(const char* format, va_list arguments) {
  return __isoc99_vfscanf(in(), format, arguments);
}

int shim_c99_scanf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = __isoc99_vfscanf(in(), format, arguments);
  va_end(arguments);
  return result;
}

void shim_perror(const char* text) {
  const int number = last_error_number();
  const std::string words = error_number_text(number);
  if (text != nullptr && *text != '\0') {
    std::fprintf(err(), "%s: %s\n", text, words.c_str());
  } else {
    std::fprintf(err(), "%s\n", words.c_str());
  }
}

int shim_fflush(std::FILE* file) {
  return file != nullptr ? std::fflush(file) : flush_all(calling_data());
}

// err.h and error.h.

const char* short_name() noexcept {
  return calling_data().variables.program_short_name;
}

void print_warning(const char* format, va_list arguments, int number) {
  std::FILE* file = err();
  std::fprintf(file, "%s: ", short_name());
  if (format != nullptr) {
    std::vfprintf(file, format, arguments);
  }
  if (number != 0) {
    std::fprintf(file, "%s%s", format != nullptr ? ": " : "", error_number_text(number).c_str());
  }
  std::fputc('\n', file);
}

/// exit() of the rank, found as the program finds it.
[[noreturn]] void end_rank(int status) {
  for (const Shim& shim : start_shims()) {
    if (shim.name == "exit") {
      reinterpret_cast<void (*)(int)>(shim.function)(status);
    }
  }
  __builtin_unreachable();
}

void shim_vwarn(const char* format, va_list arguments) {
  print_warning(format, arguments, last_error_number());
}
void shim_vwarnx(const char* format, va_list arguments) {
  print_warning(format, arguments, 0);
}

void shim_warn(const char* format, ...) {
  const int number = last_error_number();
  va_list arguments;
  va_start(arguments, format);
  print_warning(format, arguments, number);
  va_end(arguments);
}

void shim_warnx(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_warning(format, arguments, 0);
  va_end(arguments);
}

[[noreturn]] void shim_err(int status, const char* format, ...) {
  const int number = last_error_number();
  va_list arguments;
  va_start(arguments, format);
  print_warning(format, arguments, number);
  va_end(arguments);
  end_rank(status);
}

[[noreturn]] void shim_errx(int status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_warning(format, arguments, 0);
  va_end(arguments);
  end_rank(status);
}

[[noreturn]] void shim_verr(int status, const char* format, va_list arguments) {
  print_warning(format, arguments, last_error_number());
  end_rank(status);
}

[[noreturn]] void shim_verrx(int status, const char* format, va_list arguments) {
  print_warning(format, arguments, 0);
  end_rank(status);
}

void shim_error(int status, int number, const char* format, ...) {
  flush_all(calling_data());
  va_list arguments;
  va_start(arguments, format);
  print_warning(format, arguments, number);
  va_end(arguments);
  if (status != 0) {
    end_rank(status);
  }
}

void shim_error_at_line(int status, int number, const char* file, unsigned line, const char* format,
                        ...) {
  RankData& data = calling_data();
  flush_all(data);
  std::FILE* const to = err();
  std::fprintf(to, "%s:", data.variables.program_name);
  if (file != nullptr) {
    std::fprintf(to, "%s:%u: ", file, line);
  } else {
    std::fputc(' ', to);
  }
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(to, format, arguments);
  va_end(arguments);
  if (number != 0) {
    std::fprintf(to, ": %s", error_number_text(number).c_str());
  }
  std::fputc('\n', to);
  if (status != 0) {
    end_rank(status);
  }
}

// libc has one table for the process, in memory of whoever is first, with functions of that rank's
// copy of the library (libquadmath registers some): ranks cannot have their own, so they get none.
int shim_register_printf(int /*specifier*/, void* /*print*/, void* /*arguments*/) {
  return -1;
}

int shim_register_printf_one(void* /*what*/) {
  return -1;
}

}  // namespace

std::span<const Shim> print_shims() {
  static const Shim shims[] = {
      function_shim("printf", shim_printf),
      function_shim("vprintf", shim_vprintf),
      function_shim("__printf_chk", shim_printf_checked),
      function_shim("__vprintf_chk", shim_vprintf_checked),
      function_shim("puts", shim_puts),
      function_shim("putchar", shim_putchar),
      function_shim("putchar_unlocked", shim_putchar_unlocked),
      function_shim("getchar", shim_getchar),
      function_shim("getchar_unlocked", shim_getchar_unlocked),
      function_shim("scanf", shim_scanf),
      function_shim("vscanf", shim_vscanf),
      function_shim("__isoc99_scanf", shim_c99_scanf),
      function_shim("__isoc99_vscanf", shim_c99_vscanf),
      function_shim("__isoc23_scanf", shim_c99_scanf),
      function_shim("__isoc23_vscanf", shim_c99_vscanf),
      function_shim("perror", shim_perror),
      function_shim("fflush", shim_fflush),
      function_shim("fflush_unlocked", shim_fflush),
      function_shim("warn", shim_warn),
      function_shim("vwarn", shim_vwarn),
      function_shim("warnx", shim_warnx),
      function_shim("vwarnx", shim_vwarnx),
      function_shim("err", shim_err),
      function_shim("errx", shim_errx),
      function_shim("verr", shim_verr),
      function_shim("verrx", shim_verrx),
      function_shim("error", shim_error),
      function_shim("error_at_line", shim_error_at_line),
      function_shim("register_printf_specifier", shim_register_printf),
      function_shim("register_printf_function", shim_register_printf),
      function_shim("register_printf_modifier", shim_register_printf_one),
      function_shim("register_printf_type", shim_register_printf_one),
  };
  return shims;
}

std::span<const Shim> stdio_shims() {
  static const Shim shims[] = {
      variable_shim("stdout", offsetof(RankData, variables.standard_output)),
      variable_shim("stderr", offsetof(RankData, variables.standard_error)),
      variable_shim("stdin", offsetof(RankData, variables.standard_input)),
      variable_shim("program_invocation_name", offsetof(RankData, variables.program_name)),
      variable_shim("__progname_full", offsetof(RankData, variables.program_name)),
      variable_shim("program_invocation_short_name",
                    offsetof(RankData, variables.program_short_name)),
      variable_shim("__progname", offsetof(RankData, variables.program_short_name)),
      variable_shim("__libc_single_threaded", offsetof(RankData, variables.is_single_threaded)),
  };
  return shims;
}

}  // namespace sterna::program
