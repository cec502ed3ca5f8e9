/* Sizes and offsets of the public structs on 64-bit systems: constant within libsterna.so.0. */
#include "sterna/balance.h"
#include "sterna/control.h"
#include "sterna/counter.h"
#include "sterna/held.h"
#include "sterna/loop.h"
#include "sterna/message.h"
#include "sterna/pack.h"
#include "sterna/place.h"
#include "sterna/policy.h"
#include "sterna/seed.h"
#include "sterna/session.h"
#include "sterna/stats.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/tasklet.h"
#include "sterna/thread.h"

_Static_assert(sizeof(sterna_status) == 4, "status");
_Static_assert(STERNA_CANCELLED == 14, "the last status");
_Static_assert(sizeof(sterna_options) == 24, "options");
_Static_assert(offsetof(sterna_options, workers) == 8, "options");
_Static_assert(offsetof(sterna_options, policy) == 16, "options");
_Static_assert(sizeof(sterna_policy) == 136, "policy");
_Static_assert(offsetof(sterna_policy, tick_ns) == 32, "policy");
_Static_assert(offsetof(sterna_policy, leave) == 72, "policy");
_Static_assert(offsetof(sterna_policy, arguments) == 80, "policy");
_Static_assert(offsetof(sterna_policy, grow) == 128, "policy");
_Static_assert(sizeof(sterna_thread_options) == 80, "thread options");
_Static_assert(offsetof(sterna_thread_options, preemption) == 48, "thread options");
_Static_assert(offsetof(sterna_thread_options, load) == 52, "thread options");
_Static_assert(offsetof(sterna_thread_options, bubble) == 56, "thread options");
_Static_assert(offsetof(sterna_thread_options, stack) == 64, "thread options");
_Static_assert(offsetof(sterna_thread_options, auto_bubbles) == 72, "thread options");
_Static_assert(offsetof(sterna_thread_options, guard_bytes) == 32, "thread options");
_Static_assert(offsetof(sterna_thread_options, priority) == 36, "thread options");
_Static_assert(offsetof(sterna_thread_options, place) == 40, "thread options");
_Static_assert(sizeof(sterna_loop_options) == 40, "loop options");
_Static_assert(offsetof(sterna_loop_options, threads) == 12, "loop options");
_Static_assert(offsetof(sterna_loop_options, chunk) == 16, "loop options");
_Static_assert(offsetof(sterna_loop_options, first) == 24, "loop options");
_Static_assert(offsetof(sterna_loop_options, group) == 32, "loop options");
_Static_assert(offsetof(sterna_loop_options, is_bubble) == 36, "loop options");
_Static_assert(sizeof(sterna_thread_info) == 64, "thread info");
_Static_assert(offsetof(sterna_thread_info, name) == 32, "thread info");
_Static_assert(sizeof(sterna_held_stats) == 96, "stats");
_Static_assert(offsetof(sterna_held_stats, attributes) == 40, "stats");
_Static_assert(offsetof(sterna_held_stats, last_place) == 72, "stats");
_Static_assert(sizeof(sterna_switch_hook) == 32, "switch hook");
_Static_assert(STERNA_EVENT_COUNT == 8, "events");
_Static_assert(sizeof(sterna_timer) == 48, "timer");
_Static_assert(sizeof(sterna_rwlock) == 56, "rwlock");
_Static_assert(sizeof(sterna_spin_lock) == 4, "spin lock");
_Static_assert(sizeof(sterna_futex) == 24, "futex");
_Static_assert(offsetof(sterna_thread_options, name) == 8, "thread options");
_Static_assert(offsetof(sterna_thread_options, stack_bytes) == 16, "thread options");
_Static_assert(offsetof(sterna_thread_options, worker) == 24, "thread options");
_Static_assert(offsetof(sterna_thread_options, is_bound) == 28, "thread options");
_Static_assert(sizeof(sterna_seed) == 64, "seed");
_Static_assert(sizeof(sterna_mutex) == 40, "mutex");
_Static_assert(sizeof(sterna_condition) == 32, "condition");
_Static_assert(sizeof(sterna_semaphore) == 40, "semaphore");
_Static_assert(sizeof(sterna_barrier) == 40, "barrier");
_Static_assert(sizeof(sterna_once) == 40, "once");
_Static_assert(sizeof(sterna_envelope) == 16, "envelope");
_Static_assert(offsetof(sterna_envelope, bytes) == 8, "envelope");
_Static_assert(sizeof(sterna_message_request) == 432, "message request");
_Static_assert(sizeof(sterna_message_queue) == 48, "message queue");
_Static_assert(sizeof(sterna_packing) == 128, "packing");
_Static_assert(sizeof(sterna_unpacking) == 128, "unpacking");
_Static_assert(sizeof(sterna_piece) == 16, "piece");
_Static_assert(sizeof(sterna_session) == 64, "session");
_Static_assert(sizeof(sterna_load) == 24, "load");
_Static_assert(sizeof(sterna_held) == 16, "held");
_Static_assert(offsetof(sterna_held, bubble) == 8, "held");
_Static_assert(sizeof(sterna_tasklet) == 64, "tasklet");
_Static_assert(sizeof(sterna_poll_task) == 80, "poll task");
_Static_assert(sizeof(sterna_place_info) == 104, "place info");
_Static_assert(offsetof(sterna_place_info, cache_bytes) == 48, "place info");
_Static_assert(offsetof(sterna_place_info, memory_bytes) == 88, "place info");
