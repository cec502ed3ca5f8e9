/* What the programs share whose ranks send around a ring: the neighbours, moves, meeting places. */
#ifndef STERNA_TESTS_CAPI_RING_H
#define STERNA_TESTS_CAPI_RING_H

#include <string.h>

#include "expect.h"
#include "sterna/message.h"
#include "sterna/migrate.h"
#include "sterna/sterna.h"

static uint32_t to, from; /* The neighbours in a ring; of one rank: itself. */

/* After sterna_start. */
static inline void join_ring(void) {
  to = (sterna_rank() + 1) % sterna_rank_count();
  from = (sterna_rank() + sterna_rank_count() - 1) % sterna_rank_count();
}

/* A mobile rank goes elsewhere, with all that is under way. */
static inline void wander(void) {
  if (sterna_worker_count() == 0) {
    EXPECT(sterna_migrate_to((sterna_node_index() + 1) % sterna_node_count()) == STERNA_SUCCESS);
  }
}

/* Whether the text of the last failure has this in it. */
static inline int detail_has(const char* words) {
  char text[240];
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  return strstr(text, words) != NULL;
}

/* Nothing that follows begins before all ranks are here: once around the ring. */
static inline void meet(void) {
  for (int round = 0; round < (int)sterna_rank_count(); ++round) {
    sterna_message_request request;
    EXPECT(sterna_message_send_start(&request, to, 1000 + round, NULL, 0) == STERNA_SUCCESS);
    EXPECT(sterna_message_receive(from, 1000 + round, NULL, 0, NULL) == STERNA_SUCCESS);
    EXPECT(sterna_message_wait(&request, NULL) == STERNA_SUCCESS);
  }
}

#endif
