/* Rank 0 does what the argument says and ends; the others do it, too, once its memory has gone. What libc
 * has kept of the first call must not have been in it. "thread" is what rank 0 leaves behind instead. Prints
 * "rank N well", N from 1 on. */
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <grp.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <stdint.h>
#include <sys/mman.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "../mpi/check.h"

locale_t __newlocale(int mask, const char* name, locale_t base); /* As libstdc++ calls it. */

static char text[8192];

static void time_zone(int is_first) {
  const time_t when = 86400 * 365;
  struct tm* parts = is_first ? gmtime(&when) : localtime(&when);
  CHECK(parts->tm_year == 70 || parts->tm_year == 71);
  if (!is_first) {
    CHECK(strftime(text, sizeof text, "%Y %Z", parts) > 4);
  }
}

static void locale(int is_first) {
  wchar_t wide[8];
  regex_t pattern;
  (void)is_first;
  CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL);
  CHECK(mblen(NULL, 0) == 0); /* How a shell begins. */
  CHECK(mbstowcs(wide, "\xc3\xa4", 8) == 1 && wide[0] == 0xe4);
  CHECK(regcomp(&pattern, "^a[[:alpha:]]+$", REG_EXTENDED | REG_ICASE) == 0);
  CHECK(regexec(&pattern, "aBc", 0, NULL, 0) == 0);
  regfree(&pattern);
  CHECK(fnmatch("[[:alpha:]]\xc3\xa4*", "a\xc3\xa4x", 0) == 0);
}

static void own_locale(int is_first) {
  wchar_t wide[8];
  const locale_t made = is_first ? newlocale(LC_ALL_MASK, "C.UTF-8", NULL)
                                 : __newlocale(LC_ALL_MASK, "C.UTF-8", NULL);
  CHECK(made != NULL);
  const locale_t before = uselocale(made);
  CHECK(mbstowcs(wide, "\xc3\xa4", 8) == 1 && wide[0] == 0xe4);
  uselocale(before);
  if (!is_first) { /* libc keeps what it has read of the first. */
    freelocale(made);
  }
}

static void user_names(int is_first) {
  glob_t found;
  struct group group, *which = NULL;
  if (is_first) {
    CHECK(getgrgid_r(0, &group, text, sizeof text, &which) == 0);
    CHECK(glob("~root", GLOB_TILDE, NULL, &found) == 0 || errno != 0);
    globfree(&found);
  }
  CHECK(getpwuid(0) != NULL && getgrgid(0) != NULL);
  setpwent();
  CHECK(getpwent() != NULL);
  endpwent();
  setgrent();
  CHECK(getgrent() != NULL);
  endgrent();
}

static void host_names(int is_first) {
  struct hostent host, *which = NULL;
  int number = 0;
  (void)is_first;
  gethostbyname_r("localhost", &host, text, sizeof text, &which, &number);
  CHECK(gethostbyname("127.0.0.1") != NULL);
}

static void service_names(int is_first) {
  struct servent service, *which = NULL;
  (void)is_first;
  CHECK(getservbyport_r(htons(80), "tcp", &service, text, sizeof text, &which) == 0 || which == NULL);
  getservbyport(htons(80), "tcp");
  getprotobynumber(6);
}

static void system_log(int is_first) {
  if (is_first) {
    char* name = strdup("sterna test"); /* In the rank's memory, as its text is. */
    openlog(name, 0, LOG_USER);
  }
  errno = ENOENT;
  syslog(LOG_DEBUG, "rank %d: %m", world_rank);
}

/* Its code and its data are the rank's; it is never joined, as the pool of an OpenMP library is not. */
static volatile unsigned long turns;
static void* turn(void* mode) {
  while (mode == NULL) {
    ++turns;
  }
  for (;;) {
    usleep(1000);
    ++turns;
  }
}

static void thread(int is_first) {
  static int sleeps;
  pthread_t made;
  if (is_first) {
    CHECK(pthread_create(&made, NULL, turn, NULL) == 0);
    CHECK(pthread_create(&made, NULL, turn, &sleeps) == 0 && pthread_detach(made) == 0);
    while (turns < 1000) {
      usleep(100);
    }
  } else {
    usleep(50000);
  }
}

static const struct {
  const char* name;
  void (*act)(int is_first);
} kActs[] = {{"time_zone", time_zone},   {"locale", locale},         {"own_locale", own_locale},
             {"user_names", user_names}, {"host_names", host_names}, {"service_names", service_names},
             {"system_log", system_log}, {"thread", thread}};

int main(int argc, char** argv) {
  uintptr_t page = (uintptr_t)malloc(1) & ~(uintptr_t)4095; /* Of rank 0: stays while it lives. */
  begin(&argc, &argv);
  void (*act)(int) = NULL;
  for (size_t i = 0; i < sizeof kActs / sizeof kActs[0]; ++i) {
    act = argc > 1 && strcmp(argv[1], kActs[i].name) == 0 ? kActs[i].act : act;
  }
  CHECK(act != NULL);
  if (world_rank == 0) {
    act(1);
  }
  MPI_Bcast(&page, sizeof page, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  if (world_rank != 0) {
    const int is_kept = act == thread;
    for (int i = 0; !is_kept && i < 10000 && msync((void*)page, 4096, MS_ASYNC) == 0; ++i) {
      usleep(1000);
    }
    act(0);
    printf("rank %d %s\n", world_rank, error_count == 0 ? "well" : "not well");
  }
  return error_count != 0;
}
