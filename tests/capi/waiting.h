/* What the programs that use sterna/io.h share: threads on one worker, another one that goes on
 * there meanwhile, a pair of sockets or the ends of a pipe, and calls that wait at its first end.
 */
#ifndef STERNA_TESTS_CAPI_WAITING_H
#define STERNA_TESTS_CAPI_WAITING_H

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/control.h"
#include "sterna/io.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/thread.h"

static int ends[2];
static int turns; /* Atomic: of the thread that goes on meanwhile. */
static int stop;  /* Atomic. */

static sterna_thread* start(sterna_thread_function function, void* argument, int is_cancellable) {
  sterna_thread* thread = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.worker = 0; /* All on one worker: who blocks it would block all. */
  options.is_bound = 1;
  options.is_cancellable = is_cancellable != 0;
  EXPECT(sterna_thread_create(&options, function, argument, &thread) == STERNA_SUCCESS);
  return thread;
}

static void join(sterna_thread* thread) {
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
}

static void run(sterna_thread_function function, void* argument) {
  join(start(function, argument, 0));
}

static void go_on(void* argument) {
  (void)argument;
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
    sterna_thread_yield();
  }
}

/* Returns when the other thread of the worker has run many times since. */
static void let_others_run(void) {
  const int before = __atomic_load_n(&turns, __ATOMIC_RELAXED);
  while (__atomic_load_n(&turns, __ATOMIC_RELAXED) < before + 100) {
    usleep(100);
  }
}

/* What a waiting thread does, and what ends its wait. */
typedef struct one_wait {
  void (*wait)(void);
  void (*end)(void);
} one_wait;

static void wait_once(void* what) {
  ((const one_wait*)what)->wait();
}

static void make_pair(int type) {
  EXPECT(socketpair(AF_UNIX, type, 0, ends) == 0);
}

static void close_pair(void) {
  EXPECT(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void read_x(void) {
  char text[8];
  EXPECT(sterna_read(ends[0], text, sizeof text) == 3 && memcmp(text, "xyz", 3) == 0);
}

static void recvmsg_x(void) {
  char text[8];
  struct iovec part = {text, sizeof text};
  struct msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  EXPECT(sterna_recvmsg(ends[0], &message, 0) == 3 && memcmp(text, "xyz", 3) == 0);
}

static void poll_x(void) {
  struct pollfd one = {ends[0], POLLIN, 0};
  EXPECT(sterna_poll(&one, 1, -1) == 1 && one.revents == POLLIN);
  read_x();
}

static void poll_several(void) { /* One twice, one never. */
  struct pollfd all[] = {
      {ends[1], POLLIN, 0}, {-1, POLLIN, 7}, {ends[0], POLLPRI, 0}, {ends[0], POLLIN, 0}};
  EXPECT(sterna_poll(all, 4, 60000) == 1);
  EXPECT(all[0].revents == 0 && all[1].revents == 0 && all[3].revents == POLLIN);
  read_x();
}

static void select_x(void) {
  fd_set readable, writable;
  struct timeval timeout = {60, 0};
  FD_ZERO(&readable);
  FD_ZERO(&writable);
  FD_SET(ends[0], &readable);
  EXPECT(sterna_select(ends[0] + 1, &readable, &writable, NULL, &timeout) == 1);
  EXPECT(FD_ISSET(ends[0], &readable) && timeout.tv_sec < 60);
  read_x();
}

/* Starts with two workers, then the thread that goes on. */
static sterna_thread* open_team(void) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 2;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  return start(go_on, NULL, 0);
}

static int close_team(sterna_thread* other) {
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  join(other);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}

#endif
