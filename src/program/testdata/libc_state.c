/* Functions of libc that keep a state for the process, while other ranks run, or moved at each pause.
   As a process, it prints what a rank must print; its number is the first argument then. */
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test_calls.h"

static int may_pause;

/* Others run, or the rank moves: but not to where a child or a stream of it is not. */
static void between(void) {
  if (may_pause && sterna_test_pause) {
    sterna_test_pause();
  } else if (sterna_test_yield) {
    sterna_test_yield();
  }
}

static void numbers(int rank) {
  unsigned short own[3] = {(unsigned short)rank, 2, 3}, parameters[7] = {1, 2, 3, 4, 5, 6, 7};
  char table[64];
  printf("first %d %ld %.17g\n", rand(), random(), drand48());
  srand(100u + (unsigned)rank);
  srand48(100 + rank);
  between();
  printf("seeded %d %.17g\n", rand(), drand48());
  between();
  printf("next %d %ld %ld\n", rand(), lrand48(), mrand48());
  char* before = initstate(5u + (unsigned)rank, table, sizeof table);
  between();
  printf("table %ld %ld\n", random(), random());
  printf("same table %d\n", setstate(before) == table);
  between();
  printf("back %ld\n", random());
  printf("own %.17g %ld %ld\n", erand48(own), nrand48(own), jrand48(own));
  unsigned short* old = seed48(own);
  printf("old %d %d %d, new %ld\n", old[0], old[1], old[2], lrand48());
  parameters[0] = (unsigned short)rank;
  lcong48(parameters);
  between();
  printf("congruent %ld %.17g\n", lrand48(), drand48());
}

static void tables(int rank) {
  char text[64], key[16];
  snprintf(text, sizeof text, "a%d,b%d;c%d", rank, rank, rank);
  for (char* token = strtok(text, ",;"); token; token = strtok(NULL, ",;")) {
    printf("token %s\n", token);
    between();
  }
  snprintf(key, sizeof key, "key %d", rank);
  hcreate(10);
  hsearch((ENTRY){key, key}, ENTER);
  between();
  const ENTRY* found = hsearch((ENTRY){key, NULL}, FIND);
  printf("found %s, others %d\n", found ? (char*)found->data : "nothing",
         hsearch((ENTRY){(char*)"another", NULL}, FIND) != NULL);
  hdestroy();
  volatile double at = rank % 2 ? -0.5 : 0.5;
  const double value = lgamma(at);
  between();
  printf("lgamma %.17g %d, %.9g %d\n", value, signgam, (double)lgammaf((float)-at), signgam);
}

static void zones(int rank) {
  static const char* const names[] = {"EST5EDT", "CET-1CEST", "", "XYZ-5:30"};
  const time_t summer = 1720000000, winter = 0;
  printf("unset %ld %s\n", timezone, tzname[0]);
  setenv("TZ", names[rank % 4], 1);
  tzset();
  between();
  printf("zone %ld %d %s %s\n", timezone, daylight, tzname[0], tzname[1]);
  const struct tm* fields = localtime(&summer);
  between();
  printf("summer %d:%02d %s %ld\n", fields->tm_hour, fields->tm_min, fields->tm_zone, fields->tm_gmtoff);
  const char* text = ctime(&winter);
  between();
  printf("winter %s", text);
  struct tm noon = {.tm_year = 124, .tm_mon = 6, .tm_mday = 1, .tm_hour = 12, .tm_isdst = -1};
  const time_t time = mktime(&noon);
  char words[64];
  between();
  strftime(words, sizeof words, "%H %Z", &noon);
  printf("noon %ld %s\n", (long)time, words);
  memset(&noon, 0x55, sizeof noon);
  noon.tm_year = noon.tm_mon = 2147483647;
  printf("never %ld\n", (long)mktime(&noon));
  fields = gmtime(&summer);
  between();
  printf("universal %s %s", fields->tm_zone, asctime(fields));
}

static void children(int rank) {
  char value[16], line[64] = "";
  snprintf(value, sizeof value, "%d", rank + 3);
  setenv("OF_RANK", value, 1);
  const int status = system("exit $OF_RANK");
  between();
  FILE* file = popen("echo $OF_RANK; exit 2", "r");
  between();
  const char* got = fgets(line, sizeof line, file);
  const int second = pclose(file);
  printf("system %d, popen %d, %s", WEXITSTATUS(status), WEXITSTATUS(second), got ? got : "nothing\n");
  file = popen("read word; test $word = given", "we");
  fputs("given\n", file);
  printf("read %d, %d\n", pclose(file), system(NULL) != 0);
  int third = 0;
  const pid_t child = vfork();
  if (child == 0) {
    execlp("sh", "sh", "-c", "exit $OF_RANK", (char*)NULL);
    _exit(99);
  }
  waitpid(child, &third, 0);
  printf("vfork %d\n", WEXITSTATUS(third));
}

int main(int argc, char** argv) {
  const int rank = sterna_test_rank ? sterna_test_rank() : argc > 1 ? atoi(argv[1]) : 0;
  may_pause = argc > 1 && !strcmp(argv[1], "moves");
  numbers(rank);
  tables(rank);
  zones(rank);
  may_pause = 0;
  children(rank);
  return 0;
}
