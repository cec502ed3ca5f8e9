/* Moving the calling rank to another node.
 *
 * For mobile ranks (`sterna run --nodes`); elsewhere a rank is its process, and the calls fail with
 * UNSUPPORTED. The balancer and `sterna move` move ranks too, at any call that communicates.
 */
#ifndef STERNA_MIGRATE_H
#define STERNA_MIGRATE_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Moves the caller to `node`, and returns there; at once if it is there. Addresses stay the same.
 * Switches. Waits up to two seconds for large messages of the caller that are being copied. Fails
 * with INVALID_ARGUMENT (no such node), or REFUSED: the rank is where it was; sterna_migratable,
 * `sterna ps` and the report say why. */
sterna_status sterna_migrate_to(uint32_t node) STERNA_NOEXCEPT;

/* A safe point: moves the caller if somebody asked for it. For loops that compute for long and do
 * not communicate. Costs one load, else switches. SUCCESS elsewhere too. */
sterna_status sterna_migration_point(void) STERNA_NOEXCEPT;

/* SUCCESS: nothing known holds the caller here. REFUSED: `buffer` (may be NULL) names what does,
 * say "file /x/y is open", as much of it as fits. Does not switch. */
sterna_status sterna_migratable(char* buffer, size_t bytes) STERNA_NOEXCEPT;

/* Whether the balancer, `sterna move` and others may move the caller from now on; 1 at first. 0:
 * it stays, and the report says that its program asked for it; sterna_migrate_to is REFUSED, too.
 * Does not switch. UNSUPPORTED: no mobile rank. */
sterna_status sterna_set_migratable(int is_migratable) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_MIGRATE_H */
