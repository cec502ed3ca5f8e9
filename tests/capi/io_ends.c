/* System calls that block, of user threads: connections come about, and a cancelled thread ends in
 * each of them, with nothing left open. */
#include <fcntl.h>
#include <netinet/in.h>

#include "waiting.h"

static int listener;
static struct sockaddr_in listened;

static void accept_one(void* argument) {
  struct sockaddr_in from;
  socklen_t bytes = sizeof from;
  char text[4];
  (void)argument;
  const int fd = sterna_accept(listener, (struct sockaddr*)&from, &bytes, SOCK_CLOEXEC);
  EXPECT(fd >= 0 && from.sin_family == AF_INET);
  EXPECT(sterna_read(fd, text, 4) == 4 && memcmp(text, "ping", 4) == 0);
  EXPECT(sterna_write(fd, "pong", 4) == 4);
  EXPECT(close(fd) == 0);
}

static void connect_one(void* argument) {
  char text[4];
  (void)argument;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT(sterna_connect(fd, (struct sockaddr*)&listened, sizeof listened) == 0);
  EXPECT((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0);
  EXPECT(sterna_write(fd, "ping", 4) == 4);
  EXPECT(sterna_recv(fd, text, 4, MSG_WAITALL) == 4 && memcmp(text, "pong", 4) == 0);
  EXPECT(close(fd) == 0);
}

static void connect_to_nobody(void* argument) {
  (void)argument;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT(sterna_connect(fd, (struct sockaddr*)&listened, sizeof listened) == -1);
  EXPECT(*sterna_errno() == ECONNREFUSED);
  EXPECT(close(fd) == 0);
}

static void test_connections(void) {
  socklen_t bytes = sizeof listened;
  sterna_thread* threads[8];
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  listened.sin_family = AF_INET;
  listened.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT(bind(listener, (struct sockaddr*)&listened, sizeof listened) == 0);
  EXPECT(getsockname(listener, (struct sockaddr*)&listened, &bytes) == 0);
  EXPECT(listen(listener, 8) == 0);
  for (int i = 0; i < 4; ++i) {
    threads[i] = start(accept_one, NULL, 0);
  }
  let_others_run();
  for (int i = 4; i < 8; ++i) {
    threads[i] = start(connect_one, NULL, 0);
  }
  for (int i = 0; i < 8; ++i) {
    join(threads[i]);
  }
  EXPECT(close(listener) == 0);
  /* The port stays ours: nobody else's socket answers there. */
  bytes = sizeof listened;
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  listened.sin_port = 0;
  EXPECT(bind(listener, (struct sockaddr*)&listened, bytes) == 0);
  EXPECT(getsockname(listener, (struct sockaddr*)&listened, &bytes) == 0);
  run(connect_to_nobody, NULL);
  EXPECT(close(listener) == 0);
}

static int cleaned;

static void clean(void* argument) {
  (void)argument;
  ++cleaned;
}

static void be_cancelled(void* what) {
  sterna_cleanup cleanup;
  EXPECT(sterna_thread_cleanup_push(&cleanup, clean, NULL) == STERNA_SUCCESS);
  wait_once(what);
  EXPECT(!"a cancelled thread does not return");
}

static void sleep_long(void) {
  const struct timespec hour = {3600, 0};
  (void)sterna_nanosleep(&hour);
}

static void poll_nothing(void) {
  (void)sterna_poll(NULL, 0, -1);
}

static void accept_none(void) {
  (void)sterna_accept(listener, NULL, NULL, 0);
}

static void test_cancel(void) {
  static const one_wait waits[] = {{read_x, NULL},       {recvmsg_x, NULL},  {poll_x, NULL},
                                   {poll_several, NULL}, {select_x, NULL},   {sleep_long, NULL},
                                   {poll_nothing, NULL}, {accept_none, NULL}};
  const int count = sizeof waits / sizeof *waits;
  make_pair(SOCK_STREAM);
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT(listen(listener, 1) == 0);
  const int spare = dup(0); /* The lowest that is free: the same at the end if none is left open. */
  EXPECT(close(spare) == 0);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < count; ++i) {
      sterna_thread* const thread = start(be_cancelled, (void*)&waits[i], 1);
      if (round % 2 == 0) {
        let_others_run();
      }
      EXPECT(sterna_thread_cancel(thread) == STERNA_SUCCESS);
      EXPECT(sterna_thread_join(thread) == STERNA_CANCELLED);
    }
  }
  EXPECT(cleaned == 10 * count);
  const int again = dup(0);
  EXPECT(again == spare && close(again) == 0 && close(listener) == 0);
  close_pair();
}

int main(void) {
  sterna_thread* const other = open_team();
  test_connections();
  test_cancel();
  return close_team(other);
}
