// Functions of libc that keep memory of their own for the process (the time zone, locales, the user
// database, message catalogues): they run on the worker's thread pointer, so that this memory is
// the process's and not that of the rank which happened to call first.
#include <execinfo.h>
#include <grp.h>
#include <iconv.h>
#include <libintl.h>
#include <locale.h>
#include <netdb.h>
#include <pwd.h>
#include <syslog.h>
#include <time.h>
#include <wchar.h>

#include "base/syscall.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"

namespace sterna::program {
namespace {

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

}  // namespace

std::span<const Shim> shared_shims() {
  static const Shim shims[] = {
      // The time zone.
      shared<::localtime>("localtime"),
      shared<::localtime_r>("localtime_r"),
      shared<::mktime>("mktime"),
      shared<::timelocal>("timelocal"),
      shared<::tzset>("tzset"),
      shared<::ctime>("ctime"),
      shared<::ctime_r>("ctime_r"),
      shared<::strftime>("strftime"),
      shared<::strftime_l>("strftime_l"),
      shared<::wcsftime>("wcsftime"),
      // Locales and character sets.
      shared<::newlocale>("newlocale"),
      shared<::duplocale>("duplocale"),
      shared<::freelocale>("freelocale"),
      shared<::iconv_open>("iconv_open"),
      shared<::iconv_close>("iconv_close"),
      shared<::bindtextdomain>("bindtextdomain"),
      shared<::bind_textdomain_codeset>("bind_textdomain_codeset"),
      shared<::textdomain>("textdomain"),
      shared<::gettext>("gettext"),
      shared<::dgettext>("dgettext"),
      shared<::dcgettext>("dcgettext"),
      shared<::ngettext>("ngettext"),
      // Users, groups, hosts: modules are loaded at the first question.
      shared<::getpwuid>("getpwuid"),
      shared<::getpwnam>("getpwnam"),
      shared<::getpwuid_r>("getpwuid_r"),
      shared<::getpwnam_r>("getpwnam_r"),
      shared<::getgrgid>("getgrgid"),
      shared<::getgrnam>("getgrnam"),
      shared<::gethostbyname>("gethostbyname"),
      shared<::gethostbyaddr>("gethostbyaddr"),
      shared<::getaddrinfo>("getaddrinfo"),
      shared<::freeaddrinfo>("freeaddrinfo"),
      shared<::getnameinfo>("getnameinfo"),
      shared<::getservbyname>("getservbyname"),
      shared<::getprotobyname>("getprotobyname"),
      // Others that load a library or keep a buffer.
      shared<::backtrace>("backtrace"),
      shared<::openlog>("openlog"),
      shared<::closelog>("closelog"),
  };
  return shims;
}

}  // namespace sterna::program
