/* The places of the machine: what they are, what memory belongs to them, and memory from there.
 *
 * A place is named as in sterna_thread_options.place: "machine:0", "package:1", "numa:0", "l3:0",
 * "l2:0", "core:3", "pu:7", counted from left to right; `sterna topo` shows them. Between
 * sterna_start and sterna_stop; not in mobile ranks (UNSUPPORTED). Any thread, kernel threads too,
 * also in a quick service (rpc.h).
 */
#ifndef STERNA_PLACE_H
#define STERNA_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Set size_bytes before a query. */
typedef struct sterna_place_info {
  size_t size_bytes; /* sizeof(sterna_place_info). */
  char name[24];     /* "core:3". */
  uint32_t depth;    /* 0: the outermost. */
  uint32_t processors;
  uint32_t workers;  /* Of this process. */
  uint32_t os_index; /* The system's number of it; UINT32_MAX: it has none. */
  /* Of levels 1 (for data) to 3: the cache of the first processor of the place, and how many
   * processors share it, in the place or not; 0: not known, or none. */
  uint64_t cache_bytes[3];
  uint32_t cache_processors[3];
  uint32_t memory_nodes; /* NUMA nodes in it, or around it: 1 then. 0: not known. */
  uint64_t memory_bytes; /* Of those. */
  uint32_t memory_node;  /* The system's number, if it is one; else UINT32_MAX. */
  uint32_t is_bound;     /* 1: sterna_malloc_at gives pages of those nodes; 0: nothing is moved: the
                          * machine has one node only, or its system does not take the order. */
} sterna_place_info;

/* Fails with INVALID_ARGUMENT (NULL, size_bytes), NOT_FOUND, NOT_STARTED, OUT_OF_MEMORY. */
sterna_status sterna_place_query(const char* place, sterna_place_info* info) STERNA_NOEXCEPT;

/* All places, outermost first, parents before what is in them: the infos of the first `capacity`
 * (size_bytes of the first counts for all), and to *count how many there are. Fails as query. */
sterna_status sterna_place_list(sterna_place_info* infos, size_t capacity,
                                size_t* count) STERNA_NOEXCEPT;

/* Memory whose pages are on the NUMA node of that place, whoever touches them first, while there is
 * room; of a place with several nodes: page by page in turn. NULL for the place: where the caller
 * runs. Aligned to 16; small sizes cost no system call. On a machine of one node it is ordinary
 * memory. NULL: there is none left, or no such place (sterna_error_detail). It is there until it is
 * freed, or until sterna_stop. */
void* sterna_malloc_at(const char* place, size_t bytes) STERNA_NOEXCEPT;
/* count * bytes, all zero. */
void* sterna_calloc_at(const char* place, size_t count, size_t bytes) STERNA_NOEXCEPT;
/* Larger or smaller, where it was; NULL: none left, and the old memory stays. */
void* sterna_realloc_at(void* memory, size_t bytes) STERNA_NOEXCEPT;
/* NULL is allowed. INVALID_ARGUMENT: it is none of this memory. Freed twice: the process stops. */
sterna_status sterna_free_at(void* memory) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_PLACE_H */
