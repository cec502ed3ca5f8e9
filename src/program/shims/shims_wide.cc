// The functions of stdio for wide characters: a rank's standard streams, made by fopencookie, have
// no buffers of those in libc, so their characters are converted here. Not wscanf, which could not
// be told where the characters of a stream begin and end: on a standard stream it finds the end.
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include "program/shims/calling.h"
#include "program/shims/shims.h"
#include "program/streams.h"

extern "C" int __vfwprintf_chk(std::FILE*, int, const wchar_t*, va_list);

namespace sterna::program {
namespace {

std::FILE* out() noexcept {
  return standard_file(Variable::standard_output, stdout);
}
std::FILE* in() noexcept {
  return standard_file(Variable::standard_input, stdin);
}

/// Holds the lock of a FILE, as libc's functions do without "unlocked" in their names.
class FileLock {
 public:
  explicit FileLock(std::FILE* file) noexcept : file_{file} { ::flockfile(file); }
  ~FileLock() { ::funlockfile(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::FILE* const file_;
};

/// The bytes of a character; what the locale has none for is '?', as in libc's streams.
std::size_t to_bytes(wchar_t character, char (&bytes)[MB_LEN_MAX]) noexcept {
  std::mbstate_t state{};
  const std::size_t count = std::wcrtomb(bytes, character, &state);
  if (count <= MB_LEN_MAX) {
    return count;
  }
  bytes[0] = '?';
  return 1;
}

std::wint_t put(wchar_t character, std::FILE* file) noexcept {
  char bytes[MB_LEN_MAX];
  const std::size_t count = to_bytes(character, bytes);
  return ::fwrite_unlocked(bytes, 1, count, file) == count ? static_cast<std::wint_t>(character)
                                                           : WEOF;
}

bool put_all(const wchar_t* text, std::size_t count, std::FILE* file) noexcept {
  const FileLock lock{file};
  for (std::size_t index = 0; index < count; ++index) {
    if (put(text[index], file) == WEOF) {
      return false;
    }
  }
  return true;
}

std::wint_t get(std::FILE* file) noexcept {
  std::mbstate_t state{};
  for (int next = ::getc_unlocked(file); next != EOF; next = ::getc_unlocked(file)) {
    const char byte = static_cast<char>(next);
    wchar_t character = 0;
    switch (std::mbrtowc(&character, &byte, 1, &state)) {
      case static_cast<std::size_t>(-1):
        return WEOF;
      case static_cast<std::size_t>(-2):
        break;
      default:
        return static_cast<std::wint_t>(character);
    }
  }
  return WEOF;
}

std::wint_t shim_fputwc(wchar_t character, std::FILE* file) {
  if (stream_of(file) < 0) {
    return std::fputwc(character, file);
  }
  const FileLock lock{file};
  return put(character, file);
}
std::wint_t shim_fputwc_unlocked(wchar_t character, std::FILE* file) {
  return stream_of(file) < 0 ? ::fputwc_unlocked(character, file) : put(character, file);
}
std::wint_t shim_putwchar(wchar_t character) {
  return shim_fputwc(character, out());
}
std::wint_t shim_putwchar_unlocked(wchar_t character) {
  return shim_fputwc_unlocked(character, out());
}

int shim_fputws(const wchar_t* text, std::FILE* file) {
  if (stream_of(file) < 0) {
    return std::fputws(text, file);
  }
  return put_all(text, std::wcslen(text), file) ? 1 : -1;
}

/// `print(file)` to the file, or to memory and from there to a standard stream.
template <typename Print>
int print_to(std::FILE* file, Print print) {
  if (stream_of(file) < 0) {
    return print(file);
  }
  wchar_t* text = nullptr;
  std::size_t count = 0;
  std::FILE* memory = ::open_wmemstream(&text, &count);
  if (memory == nullptr) {
    return -1;
  }
  int result = print(memory);
  if (std::fclose(memory) != 0 || (result >= 0 && !put_all(text, count, file))) {
    result = -1;
  }
  std::free(text);
  return result;
}

int shim_vfwprintf(std::FILE* file, const wchar_t* format, va_list arguments) {
  return print_to(file, [&](std::FILE* to) { return std::vfwprintf(to, format, arguments); });
}
int shim_fwprintf(std::FILE* file, const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = shim_vfwprintf(file, format, arguments);
  va_end(arguments);
  return result;
}
int shim_vwprintf(const wchar_t* format, va_list arguments) {
  return shim_vfwprintf(out(), format, arguments);
}
int shim_wprintf(const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = shim_vwprintf(format, arguments);
  va_end(arguments);
  return result;
}

int shim_vfwprintf_checked(std::FILE* file, int flag, const wchar_t* format, va_list arguments) {
  return print_to(file,
                  [&](std::FILE* to) { return __vfwprintf_chk(to, flag, format, arguments); });
}
int shim_fwprintf_checked(std::FILE* file, int flag, const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = shim_vfwprintf_checked(file, flag, format, arguments);
  va_end(arguments);
  return result;
}
int shim_vwprintf_checked(int flag, const wchar_t* format, va_list arguments) {
  return shim_vfwprintf_checked(out(), flag, format, arguments);
}
int shim_wprintf_checked(int flag, const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = shim_vwprintf_checked(flag, format, arguments);
  va_end(arguments);
  return result;
}

std::wint_t shim_fgetwc(std::FILE* file) {
  if (stream_of(file) < 0) {
    return std::fgetwc(file);
  }
  const FileLock lock{file};
  return get(file);
}
std::wint_t shim_fgetwc_unlocked(std::FILE* file) {
  return stream_of(file) < 0 ? ::fgetwc_unlocked(file) : get(file);
}
std::wint_t shim_getwchar() {
  return shim_fgetwc(in());
}
std::wint_t shim_getwchar_unlocked() {
  return shim_fgetwc_unlocked(in());
}

std::wint_t shim_ungetwc(std::wint_t character, std::FILE* file) {
  if (stream_of(file) < 0 || character == WEOF) {
    return std::ungetwc(character, file);
  }
  char bytes[MB_LEN_MAX];
  for (std::size_t count = to_bytes(static_cast<wchar_t>(character), bytes); count > 0; --count) {
    if (std::ungetc(static_cast<unsigned char>(bytes[count - 1]), file) == EOF) {
      return WEOF;
    }
  }
  return character;
}

wchar_t* shim_fgetws(wchar_t* text, int room, std::FILE* file) {
  if (stream_of(file) < 0) {
    return std::fgetws(text, room, file);
  }
  const FileLock lock{file};
  int count = 0;
  while (count + 1 < room && (count == 0 || text[count - 1] != L'\n')) {
    const std::wint_t next = get(file);
    if (next == WEOF) {
      break;
    }
    text[count++] = static_cast<wchar_t>(next);
  }
  if (room <= 0 || (count == 0 && room > 1)) {
    return nullptr;
  }
  text[count] = L'\0';
  return text;
}

/// A standard stream takes both kinds of characters whatever is set.
int shim_fwide(std::FILE* file, int mode) {
  const int stream = stream_of(file);
  if (stream < 0) {
    return std::fwide(file, mode);
  }
  std::int8_t& orientation = calling_data().orientations[stream];
  if (orientation == 0 && mode != 0) {
    orientation = mode > 0 ? 1 : -1;
  }
  return orientation;
}

}  // namespace

std::span<const Shim> wide_shims() {
  static const Shim shims[] = {
      function_shim("fputwc", shim_fputwc),
      function_shim("putwc", shim_fputwc),
      function_shim("putwchar", shim_putwchar),
      function_shim("fputwc_unlocked", shim_fputwc_unlocked),
      function_shim("putwc_unlocked", shim_fputwc_unlocked),
      function_shim("putwchar_unlocked", shim_putwchar_unlocked),
      function_shim("fputws", shim_fputws),
      function_shim("fputws_unlocked", shim_fputws),
      function_shim("fwprintf", shim_fwprintf),
      function_shim("vfwprintf", shim_vfwprintf),
      function_shim("wprintf", shim_wprintf),
      function_shim("vwprintf", shim_vwprintf),
      function_shim("__fwprintf_chk", shim_fwprintf_checked),
      function_shim("__vfwprintf_chk", shim_vfwprintf_checked),
      function_shim("__wprintf_chk", shim_wprintf_checked),
      function_shim("__vwprintf_chk", shim_vwprintf_checked),
      function_shim("fgetwc", shim_fgetwc),
      function_shim("getwc", shim_fgetwc),
      function_shim("getwchar", shim_getwchar),
      function_shim("fgetwc_unlocked", shim_fgetwc_unlocked),
      function_shim("getwc_unlocked", shim_fgetwc_unlocked),
      function_shim("getwchar_unlocked", shim_getwchar_unlocked),
      function_shim("ungetwc", shim_ungetwc),
      function_shim("fgetws", shim_fgetws),
      function_shim("fgetws_unlocked", shim_fgetws),
      function_shim("fwide", shim_fwide),
  };
  return shims;
}

}  // namespace sterna::program
