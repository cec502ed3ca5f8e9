// Users, groups, hosts, services: libc loads modules at the first question, keeps what it has read
// of its configuration, and has one place in each list for the process (getpwent).
#include <glob.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <shadow.h>
#include <unistd.h>
#include <wordexp.h>

#include <cstring>

#include "program/shims/shared.h"

namespace sterna::program {
namespace {

/// Before libc asks for home directories on the rank's thread pointer: what it gives has to lie in
/// the rank's memory, what it keeps has not.
void load_user_database() noexcept {
  on_worker(calling_data(), [] {
    char text[1024];
    passwd entry;
    passwd* found = nullptr;
    (void)::getpwnam_r("root", &entry, text, sizeof text, &found);
    (void)::getpwuid_r(::geteuid(), &entry, text, sizeof text, &found);
  });
}

int shim_glob(const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found) {
  if (pattern[0] == '~') {
    load_user_database();
  }
  return ::glob(pattern, flags, on_error, found);
}

int shim_wordexp(const char* words, wordexp_t* found, int flags) {
  if (std::strchr(words, '~') != nullptr) {
    load_user_database();
  }
  return ::wordexp(words, found, flags);
}

}  // namespace

std::span<const Shim> name_shims() {
  static const Shim shims[] = {
      shared<::getpwuid>("getpwuid"),
      shared<::getpwnam>("getpwnam"),
      shared<::getpwuid_r>("getpwuid_r"),
      shared<::getpwnam_r>("getpwnam_r"),
      shared<::setpwent>("setpwent"),
      shared<::getpwent>("getpwent"),
      shared<::getpwent_r>("getpwent_r"),
      shared<::endpwent>("endpwent"),
      shared<::fgetpwent>("fgetpwent"),
      shared<::getgrgid>("getgrgid"),
      shared<::getgrnam>("getgrnam"),
      shared<::getgrgid_r>("getgrgid_r"),
      shared<::getgrnam_r>("getgrnam_r"),
      shared<::setgrent>("setgrent"),
      shared<::getgrent>("getgrent"),
      shared<::getgrent_r>("getgrent_r"),
      shared<::endgrent>("endgrent"),
      shared<::fgetgrent>("fgetgrent"),
      shared<::getgrouplist>("getgrouplist"),
      shared<::initgroups>("initgroups"),
      shared<::getspnam>("getspnam"),
      shared<::getspnam_r>("getspnam_r"),
      shared<::setspent>("setspent"),
      shared<::getspent>("getspent"),
      shared<::getspent_r>("getspent_r"),
      shared<::endspent>("endspent"),
      shared<::getlogin>("getlogin"),
      shared<::getlogin_r>("getlogin_r"),
      function_shim("glob", shim_glob),
      function_shim("glob64", shim_glob),
      function_shim("wordexp", shim_wordexp),
      shared<::gethostbyname>("gethostbyname"),
      shared<::gethostbyname2>("gethostbyname2"),
      shared<::gethostbyaddr>("gethostbyaddr"),
      shared<::gethostbyname_r>("gethostbyname_r"),
      shared<::gethostbyname2_r>("gethostbyname2_r"),
      shared<::gethostbyaddr_r>("gethostbyaddr_r"),
      shared<::sethostent>("sethostent"),
      shared<::gethostent>("gethostent"),
      shared<::gethostent_r>("gethostent_r"),
      shared<::endhostent>("endhostent"),
      shared<::getaddrinfo>("getaddrinfo"),
      shared<::freeaddrinfo>("freeaddrinfo"),
      shared<::getnameinfo>("getnameinfo"),
      shared<::getservbyname>("getservbyname"),
      shared<::getservbyport>("getservbyport"),
      shared<::getservbyname_r>("getservbyname_r"),
      shared<::getservbyport_r>("getservbyport_r"),
      shared<::setservent>("setservent"),
      shared<::getservent>("getservent"),
      shared<::getservent_r>("getservent_r"),
      shared<::endservent>("endservent"),
      shared<::getprotobyname>("getprotobyname"),
      shared<::getprotobynumber>("getprotobynumber"),
      shared<::getprotobyname_r>("getprotobyname_r"),
      shared<::getprotobynumber_r>("getprotobynumber_r"),
      shared<::setprotoent>("setprotoent"),
      shared<::getprotoent>("getprotoent"),
      shared<::getprotoent_r>("getprotoent_r"),
      shared<::endprotoent>("endprotoent"),
      shared<::getnetbyname>("getnetbyname"),
      shared<::getnetbyaddr>("getnetbyaddr"),
      shared<::getnetbyname_r>("getnetbyname_r"),
      shared<::getnetbyaddr_r>("getnetbyaddr_r"),
      shared<::setnetent>("setnetent"),
      shared<::getnetent>("getnetent"),
      shared<::getnetent_r>("getnetent_r"),
      shared<::endnetent>("endnetent"),
      shared<::innetgr>("innetgr"),
      shared<::setnetgrent>("setnetgrent"),
      shared<::getnetgrent>("getnetgrent"),
      shared<::getnetgrent_r>("getnetgrent_r"),
      shared<::endnetgrent>("endnetgrent"),
  };
  return shims;
}

}  // namespace sterna::program
