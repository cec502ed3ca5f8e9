/* Memory that moves with a rank.
 *
 * In a mobile rank all of its malloc is such memory; these calls are for libraries that want to say
 * so. Elsewhere they are malloc and free. From any thread; no call switches.
 */
#ifndef STERNA_MEMORY_H
#define STERNA_MEMORY_H

#include <stddef.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* At least `bytes` bytes, aligned to 16; NULL: none left. */
void* sterna_iso_alloc(size_t bytes) STERNA_NOEXCEPT;

/* By the rank that allocated it. NULL is allowed. */
void sterna_iso_free(void* memory) STERNA_NOEXCEPT;

/* 1: the address lies in the memory of a mobile rank, and is the same on every node. */
int sterna_is_iso(const void* address) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_MEMORY_H */
