// The time zone, locales, message catalogues, the system's log: what libc keeps of them is the
// process's.
#include <clocale>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include <execinfo.h>
#include <iconv.h>
#include <libintl.h>
#include <locale.h>
#include <mntent.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "program/blocker_table.h"
#include "program/shims/process_state.h"
#include "program/shims/shared.h"

extern "C" void __vsyslog_chk(int, int, const char*, va_list);

namespace sterna::program {
namespace {

/// A locale's tables for multibyte characters are made at the first character that is converted.
void load_conversions() noexcept {
  (void)std::mblen(nullptr, 0);
}

void load_conversions_of(locale_t locale) noexcept {
  if (locale != nullptr) {
    const locale_t own = ::uselocale(locale);
    load_conversions();
    ::uselocale(own);
  }
}

/// These two are in libc itself; all others are in memory of this process.
bool is_built_in(const char* name) noexcept {
  return std::strcmp(name, "C") == 0 || std::strcmp(name, "POSIX") == 0 ||
         std::strcmp(name, "C.UTF-8") == 0 || std::strcmp(name, "C.utf8") == 0;
}

char* shim_setlocale(int category, const char* name) {
  RankData& data = calling_data();
  // Locales belong to the process: loaded by one rank, used by all.
  char* result = on_worker(data, [&] {
    char* const inner = std::setlocale(category, name);
    load_conversions();
    return inner;
  });
  if (result != nullptr && name != nullptr) {
    const auto key = static_cast<std::uint64_t>(category);
    remove_blocker(data, BlockerKind::locale, key);
    if (!is_built_in(result)) {
      add_blocker(data, BlockerKind::locale, key, "locale %s is in use", result);
    }
  }
  return result;
}

locale_t create_locale(int mask, const char* name, locale_t base) {
  const locale_t locale = ::newlocale(mask, name, base);
  load_conversions_of(locale);
  return locale;
}

locale_t copy_locale(locale_t from) {
  const locale_t locale = ::duplocale(from);
  load_conversions_of(locale);
  return locale;
}

/// libc keeps the pointer, for all ranks: it gets a copy, which stays, since another rank may be
/// about to use it.
void open_log(const char* name, int option, int facility) {
  ::openlog(name != nullptr ? ::strdup(name) : nullptr, option, facility);
}

void log_checked(int priority, int flag, const char* format, va_list arguments) {
  const int number = last_error_number();  // For %m.
  on_worker(calling_data(), [&] {
    set_last_error_number(number);
    __vsyslog_chk(priority, flag, format, arguments);
  });
}

void shim_vsyslog(int priority, const char* format, va_list arguments) {
  log_checked(priority, 0, format, arguments);
}

[[gnu::format(printf, 2, 3)]] void shim_syslog(int priority, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  shim_vsyslog(priority, format, arguments);
  va_end(arguments);
}

void shim_syslog_checked(int priority, int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  log_checked(priority, flag, format, arguments);
  va_end(arguments);
}

}  // namespace

void prepare_process_state() noexcept {
  ::tzset();
  load_conversions();
}

std::span<const Shim> shared_shims() {
  static const Shim shims[] = {
      // Of the time zone what shims_zone.cc has not.
      shared<::strptime_l>("strptime_l"),
      shared<::getdate>("getdate"),
      // Locales and character sets, also by the names that libstdc++ has for them.
      function_shim("setlocale", shim_setlocale),
      shared<create_locale>("newlocale"),
      shared<create_locale>("__newlocale"),
      shared<copy_locale>("duplocale"),
      shared<copy_locale>("__duplocale"),
      shared<::freelocale>("freelocale"),
      shared<::freelocale>("__freelocale"),
      shared<::iconv_open>("iconv_open"),
      shared<::iconv_close>("iconv_close"),
      shared<::bindtextdomain>("bindtextdomain"),
      shared<::bind_textdomain_codeset>("bind_textdomain_codeset"),
      shared<::textdomain>("textdomain"),
      shared<::gettext>("gettext"),
      shared<::dgettext>("dgettext"),
      shared<::dcgettext>("dcgettext"),
      shared<::ngettext>("ngettext"),
      shared<::dngettext>("dngettext"),
      shared<::dcngettext>("dcngettext"),
      // The system's log.
      shared<open_log>("openlog"),
      shared<::closelog>("closelog"),
      function_shim("syslog", shim_syslog),
      function_shim("vsyslog", shim_vsyslog),
      function_shim("__syslog_chk", shim_syslog_checked),
      function_shim("__vsyslog_chk", log_checked),
      // Others that load a library or keep a buffer.
      shared<::backtrace>("backtrace"),
      shared<::getmntent>("getmntent"),
      shared<::getusershell>("getusershell"),
      shared<::setusershell>("setusershell"),
      shared<::endusershell>("endusershell"),
      shared<::ttyname>("ttyname"),
  };
  return shims;
}

}  // namespace sterna::program
