/* Work for soon: tasklets, and functions that are polled with the network.
 *
 * A tasklet is a function that anybody asks for, from anywhere, and that runs once for all who
 * asked before it began: on a user thread of its own, of a high priority, on the part of the
 * machine that it is bound to. It may wait and call everything. One tasklet never runs twice at a
 * time; several run side by side. After the tasklets of Marcel, which are those of Linux
 * (linux_interrupt.h), with the calls of theirs.
 *
 * A polling task is a function that workers call when they poll the network: while idle, between
 * two threads, at ticks when all compute. After the tasks of PIOMan. It must be short, must not
 * wait nor switch (what does ends with DEADLOCK, as in callbacks of messages), and runs on any
 * stack and kernel thread; what takes long it leaves to a tasklet, and who waits for it to a
 * semaphore.
 *
 * Between sterna_start and sterna_stop; not in mobile ranks (UNSUPPORTED). All fail with
 * INVALID_ARGUMENT for NULL and for memory that was not initialised.
 */
#ifndef STERNA_TASKLET_H
#define STERNA_TASKLET_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sterna_tasklet { /* Needs sterna_tasklet_init. Stays where it is. */
  uint64_t opaque[8];
} sterna_tasklet;

/* Keeps its worker while it computes, whatever the setting preemption says. */
#define STERNA_TASKLET_UNPREEMPTIBLE 1u

/* A tasklet that is not scheduled, enabled, and runs anywhere. `flags`: 0, or those above. Any
 * thread, also before sterna_start. */
sterna_status sterna_tasklet_init(sterna_tasklet* tasklet, void (*function)(void* argument),
                                  void* argument, uint32_t flags) STERNA_NOEXCEPT;

/* From the next schedule on it runs at that place (sterna_thread_options.place): on one of the
 * workers there; NULL: anywhere. One at a time, and not while others schedule it. NOT_FOUND. */
sterna_status sterna_tasklet_set_place(sterna_tasklet* tasklet, const char* place) STERNA_NOEXCEPT;

/* It runs once after this, with all seen that the caller has written. *is_new (may be NULL) is 0 if
 * it was scheduled already and has not begun: then this is the same run, where that is to be. One
 * that runs now runs again afterwards. Any thread, kernel threads too; does not switch. Fails with
 * OUT_OF_MEMORY: no thread could be started, and it is not scheduled, nor for those who asked
 * meanwhile. */
sterna_status sterna_tasklet_schedule(sterna_tasklet* tasklet, int* is_new) STERNA_NOEXCEPT;
/* The same at another place, this time. */
sterna_status sterna_tasklet_schedule_at(sterna_tasklet* tasklet, const char* place,
                                         int* is_new) STERNA_NOEXCEPT;

/* After disable it does not run until enable was called as often; it is scheduled meanwhile all the
 * same, and runs then. disable waits for a run that is under way, unless the tasklet itself calls.
 * Any thread; disable switches. REFUSED: it is not disabled, or too often (65535). */
sterna_status sterna_tasklet_disable(sterna_tasklet* tasklet) STERNA_NOEXCEPT;
sterna_status sterna_tasklet_enable(sterna_tasklet* tasklet) STERNA_NOEXCEPT;

/* Takes back that it was scheduled and waits for a run that is under way: afterwards its memory may
 * go, if nobody schedules it. Switches. DEADLOCK: it calls this itself. */
sterna_status sterna_tasklet_cancel(sterna_tasklet* tasklet) STERNA_NOEXCEPT;

/* Bits of state. An old answer, but who sees neither of the first two sees all that it has done. */
#define STERNA_TASKLET_SCHEDULED 1u
#define STERNA_TASKLET_BUSY 2u /* A thread runs it, or is about to. */
#define STERNA_TASKLET_DISABLED 4u
sterna_status sterna_tasklet_state(const sterna_tasklet* tasklet, uint32_t* state) STERNA_NOEXCEPT;

typedef struct sterna_poll_task { /* Needs sterna_poll_task_init. Stays where it is. */
  uint64_t opaque[10];
} sterna_poll_task;

/* When it is called. */
#define STERNA_POLL_IDLE 1u    /* A worker has nothing to run, or a kernel thread waits. */
#define STERNA_POLL_SWITCH 2u  /* Between two threads, when nobody has polled for a while. */
#define STERNA_POLL_TICK 4u    /* All workers compute: by the ticker, as the setting tick says. */
#define STERNA_POLL_ENTER 8u   /* A call that communicates begins. */
#define STERNA_POLL_FORCED 16u /* sterna_poll_now, and calls that need progress. */
#define STERNA_POLL_ANY 31u

/* `function` returns how many events it has handled: while there are some, idle workers stay awake.
 * repeat 0: it is called once, then it is out. */
sterna_status sterna_poll_task_init(sterna_poll_task* task, uint32_t (*function)(void* argument),
                                    void* argument, uint32_t points, int repeat) STERNA_NOEXCEPT;
/* Workers that sleep get up so often to call it (with STERNA_POLL_IDLE); 0, as at first: they need
 * not. Before it is added. */
sterna_status sterna_poll_task_set_period(sterna_poll_task* task,
                                          uint64_t period_ns) STERNA_NOEXCEPT;
/* Only workers of this place of the machine call it ("numa:0": as sterna_thread_options.place); at
 * ticks whoever ticks. NULL, as at first: all. Before it is added. NOT_FOUND: no such
 * place, or none of its workers is of this node; NOT_STARTED. Any thread; does not switch. */
sterna_status sterna_poll_task_set_place(sterna_poll_task* task, const char* place) STERNA_NOEXCEPT;
/* Of tasks that are due at once those of a higher priority (-128 to 127; at first 0) are called
 * first, those of the same in the order in which they were added. Before it is added. */
sterna_status sterna_poll_task_set_priority(sterna_poll_task* task,
                                            int32_t priority) STERNA_NOEXCEPT;
/* From now on it is called. Any thread, and from a polling task. Does not switch. BUSY: it is in
 * already; OUT_OF_MEMORY. */
sterna_status sterna_poll_task_add(sterna_poll_task* task) STERNA_NOEXCEPT;
/* No call begins after this, and none is under way unless it calls this itself: its memory may go.
 * sterna_stop removes those that are left. NOT_FOUND: it is not in (it was called once, or has
 * removed itself); all the same a call that is under way has ended then. Switches. */
sterna_status sterna_poll_task_remove(sterna_poll_task* task) STERNA_NOEXCEPT;

/* *is_in is 1 while it is to be called: one that is called once is out when its call begins. Any
 * thread; does not switch. */
sterna_status sterna_poll_task_is_in(sterna_poll_task* task, int* is_in) STERNA_NOEXCEPT;

/* It stays in, but is not called before it is unmasked: no call begins after this, and none is
 * under way unless it calls this itself. Any number of times, also before it is added. Any thread;
 * mask switches. NOT_STARTED. */
sterna_status sterna_poll_task_mask(sterna_poll_task* task) STERNA_NOEXCEPT;
sterna_status sterna_poll_task_unmask(sterna_poll_task* task) STERNA_NOEXCEPT;

/* Polls now, once, unless somebody else does: *events (may be NULL) is how many there were. Any
 * thread; does not switch. */
sterna_status sterna_poll_now(uint32_t* events) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_TASKLET_H */
