/* Parallel loops: the iterations of a loop, shared by user threads.
 *
 * The schemes, from even loops to very uneven ones, for n iterations and p threads (r are left):
 *   BLOCK         p equal parts, one each
 *   CYCLIC        chunks in turn: part k goes to thread k mod p
 *   DYNAMIC       chunks to whoever asks
 *   GUIDED        r / p at a time, `chunk` at least (Polychronopoulos, Kuck 1987)
 *   TRAPEZOID     from `first` (n / 2p) down to `chunk`, linearly (Tzen, Ni 1993)
 *   FACTORING     p chunks of r / 2p at a time (Hummel, Schonberg, Flynn 1992)
 *   AFFINITY      of its own part, then of that with most left (Markatos, LeBlanc 1994)
 *   CLUSTERED     the same, but from others of its group only (Wang 1997)
 *   HIERARCHICAL  the same, and from the group with most left when its own has none (Wang 2000)
 * AFFINITY and those after it give a thread the same iterations each time, as far as loads allow:
 * what it touched is still in its cache.
 */
#ifndef STERNA_LOOP_H
#define STERNA_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sterna_loop_scheme {
  STERNA_LOOP_BLOCK = 0,
  STERNA_LOOP_CYCLIC = 1,
  STERNA_LOOP_DYNAMIC = 2,
  STERNA_LOOP_GUIDED = 3,
  STERNA_LOOP_TRAPEZOID = 4,
  STERNA_LOOP_FACTORING = 5,
  STERNA_LOOP_AFFINITY = 6,
  STERNA_LOOP_CLUSTERED = 7,
  STERNA_LOOP_HIERARCHICAL = 8
} sterna_loop_scheme;

/* Fill it with STERNA_LOOP_OPTIONS_DEFAULT, then set what you need. */
typedef struct sterna_loop_options {
  size_t size_bytes;         /* sizeof(sterna_loop_options), which says the caller's version. */
  sterna_loop_scheme scheme; /* STERNA_LOOP_GUIDED. */
  uint32_t threads;  /* That share it, the caller among them, up to 65536; 0: one a worker. */
  uint64_t chunk;    /* Of CYCLIC, DYNAMIC; least of GUIDED, TRAPEZOID. 0: 1. */
  uint64_t first;    /* First chunk of TRAPEZOID. 0: as above. */
  uint32_t group;    /* Threads of a group. 0: the root of their number. */
  uint8_t is_bubble; /* 1: they are a bubble, which the policy places. 0: one a worker. */
} sterna_loop_options;

#define STERNA_LOOP_OPTIONS_DEFAULT \
  { sizeof(sterna_loop_options), STERNA_LOOP_GUIDED, 0, 0, 0, 0, 0 }

/* Does iterations [begin, end). */
typedef void (*sterna_loop_body)(uint64_t begin, uint64_t end, void* argument);

/* Calls `body` for chunks of [begin, end), from several threads at once, until each iteration was
 * done once; the caller takes part. What the bodies wrote is seen after it. `options` may be NULL.
 * User threads and kernel threads; bodies may run loops. Switches. Fails, before anything was done,
 * with INVALID_ARGUMENT (no body, end before begin, unknown scheme or version), NOT_STARTED,
 * UNSUPPORTED (in a mobile rank). Where no thread can be had the others do the work. */
sterna_status sterna_loop_run(uint64_t begin, uint64_t end, const sterna_loop_options* options,
                              sterna_loop_body body, void* argument) STERNA_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */

#include <memory>
#include <type_traits>

namespace sterna {

/// body(i) for each i of [begin, end), as sterna_loop_run(). An exception that leaves it ends the
/// process.
template <typename Body>
sterna_status parallel_for(uint64_t begin, uint64_t end, Body&& body,
                           const sterna_loop_options* options = nullptr) noexcept {
  typedef typename std::remove_reference<Body>::type Callable;
  return sterna_loop_run(
      begin, end, options,
      [](uint64_t first, uint64_t last, void* argument) noexcept {
        for (Callable& its = *static_cast<Callable*>(argument); first < last; ++first) {
          its(first);
        }
      },
      const_cast<typename std::remove_const<Callable>::type*>(std::addressof(body)));
}

}  // namespace sterna
#endif

#endif /* STERNA_LOOP_H */
