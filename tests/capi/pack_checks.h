/* Packs whose pieces say what they are, or do not: who has the setting pack_checks. */
#ifndef STERNA_TESTS_CAPI_PACK_CHECKS_H
#define STERNA_TESTS_CAPI_PACK_CHECKS_H

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "ring.h"
#include "sterna/tune.h"

static int gets_checked; /* The neighbour that sends has the setting. */

/* After join_ring. */
static inline void learn_of_checks(void) {
  char value[8] = "";
  sterna_message_request request;
  EXPECT(sterna_setting_get("pack_checks", value, sizeof value) == STERNA_SUCCESS);
  const int sends_checked = strcmp(value, "on") == 0;
  EXPECT(sterna_message_send_start(&request, to, 2, &sends_checked, sizeof sends_checked) ==
         STERNA_SUCCESS);
  EXPECT(sterna_message_receive(from, 2, &gets_checked, sizeof gets_checked, NULL) ==
         STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&request, NULL) == STERNA_SUCCESS);
}

/* One process of the job has the setting: who locks the file first. The others have called it when
 * all have started. */
static inline void choose_who_checks(const char* path) {
  const int file = open(path, O_CREAT | O_RDWR, 0600);
  EXPECT(file >= 0);
  const int is_first = flock(file, LOCK_EX | LOCK_NB) == 0;
  EXPECT(sterna_setting_set("pack_checks", is_first ? "on" : "off") == STERNA_SUCCESS);
}

#endif
