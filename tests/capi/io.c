/* System calls that block, of user threads: the others of the worker go on, values and errors are
 * those of the plain calls. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/un.h>

#include "waiting.h"

static void write_x(void) {
  EXPECT(write(ends[1], "xyz", 3) == 3);
}

static void readv_x(void) {
  char text[8];
  const struct iovec parts[] = {{text, 1}, {text + 1, 7}};
  EXPECT(sterna_readv(ends[0], parts, 2) == 3 && memcmp(text, "xyz", 3) == 0);
}

static void recv_x(void) {
  char text[8];
  EXPECT(sterna_recv(ends[0], text, sizeof text, 0) == 3 && memcmp(text, "xyz", 3) == 0);
}

static void recvfrom_x(void) {
  char text[8];
  struct sockaddr_un address;
  socklen_t bytes = sizeof address;
  EXPECT(sterna_recvfrom(ends[0], text, sizeof text, 0, (struct sockaddr*)&address, &bytes) == 3);
}

static void recv_all(void) { /* One piece would not do. */
  char text[4];
  EXPECT(sterna_recv(ends[0], text, 4, MSG_WAITALL) == 4);
}

static void write_twice(void) {
  write_x();
  usleep(2000);
  EXPECT(write(ends[1], "4", 1) == 1);
}

/* While one waits the other one of its worker goes on. */
static void test_waits(int type) {
  static const one_wait waits[] = {{read_x, write_x},       {readv_x, write_x},   {recv_x, write_x},
                                   {recvfrom_x, write_x},   {recvmsg_x, write_x}, {poll_x, write_x},
                                   {poll_several, write_x}, {select_x, write_x}};
  static const one_wait whole = {recv_all, write_twice};
  make_pair(type);
  for (size_t i = 0; i < sizeof waits / sizeof *waits; ++i) {
    sterna_thread* const thread = start(wait_once, (void*)&waits[i], 0);
    let_others_run();
    waits[i].end();
    join(thread);
    waits[i].end(); /* And when it is there already. */
    run(wait_once, (void*)&waits[i]);
  }
  if (type == SOCK_STREAM) {
    sterna_thread* const thread = start(wait_once, (void*)&whole, 0);
    let_others_run();
    whole.end();
    join(thread);
  }
  close_pair();
  if (type == SOCK_STREAM) {
    EXPECT(pipe(ends) == 0);
    for (int i = 0; i < 2; ++i) {
      sterna_thread* const thread = start(wait_once, (void*)&waits[i], 0);
      let_others_run();
      waits[i].end();
      join(thread);
    }
    close_pair();
  }
}

enum { kBlock = 1 << 20, kPart = 1 << 16 };
static unsigned char block[kBlock];

static void fill(void) {
  for (int i = 0; i < kBlock; ++i) {
    block[i] = (unsigned char)(i * 7 + (i >> 9));
  }
}

/* More than there is room for: all of it goes, in order. */
static void send_block(void* how) {
  struct iovec parts[40];
  const int count = sizeof parts / sizeof *parts;
  for (int i = 0; i < count; ++i) {
    parts[i].iov_base = block + (size_t)i * (kBlock / 40);
    parts[i].iov_len = i + 1 < count ? kBlock / 40 : kBlock - (size_t)i * (kBlock / 40);
  }
  struct msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = parts;
  message.msg_iovlen = (size_t)count;
  ssize_t sent = 0;
  switch ((int)(intptr_t)how) {
    case 0:
      sent = sterna_write(ends[1], block, kBlock);
      break;
    case 1:
      sent = sterna_writev(ends[1], parts, count);
      break;
    case 2:
      sent = sterna_send(ends[1], block, kBlock, 0);
      break;
    case 3:
      sent = sterna_sendto(ends[1], block, kBlock, 0, NULL, 0);
      break;
    default:
      sent = sterna_sendmsg(ends[1], &message, 0);
      break;
  }
  EXPECT(sent == kBlock);
  EXPECT(*sterna_errno() != EAGAIN || sent == kBlock);
}

static void take_block(void* argument) {
  static unsigned char part[kPart];
  (void)argument;
  for (size_t done = 0; done < kBlock;) {
    const ssize_t got = sterna_read(ends[0], part, sizeof part);
    EXPECT(got > 0 && memcmp(part, block + done, (size_t)got) == 0);
    done += (size_t)got;
  }
}

static void test_sending(void) {
  for (intptr_t how = 0; how < 5; ++how) {
    make_pair(SOCK_STREAM);
    sterna_thread* const sender = start(send_block, (void*)how, 0);
    let_others_run();
    sterna_thread* const taker = start(take_block, NULL, 0);
    join(sender);
    join(taker);
    close_pair();
    if (how < 2) {
      EXPECT(pipe(ends) == 0);
      sterna_thread* const to_pipe = start(send_block, (void*)how, 0);
      let_others_run();
      run(take_block, NULL);
      join(to_pipe);
      close_pair();
    }
  }
}

static void use_file(void* argument) {
  char name[] = "/tmp/sterna_io_XXXXXX";
  char text[32];
  struct iovec parts[] = {{(void*)"one ", 4}, {(void*)"two", 3}};
  (void)argument;
  EXPECT(close(mkstemp(name)) == 0);
  const int fd = sterna_open(name, O_RDWR | O_CLOEXEC, 0);
  EXPECT(fd >= 0);
  EXPECT(sterna_writev(fd, parts, 2) == 7);
  EXPECT(sterna_pwrite(fd, "TWO", 3, 4) == 3);
  EXPECT(sterna_fsync(fd) == 0 && sterna_fdatasync(fd) == 0);
  EXPECT(sterna_pread(fd, text, sizeof text, 4) == 3 && memcmp(text, "TWO", 3) == 0);
  EXPECT(lseek(fd, 0, SEEK_SET) == 0);
  EXPECT(sterna_read(fd, text, 3) == 3 && memcmp(text, "one", 3) == 0);
  EXPECT(sterna_read(fd, text, sizeof text) == 4 && memcmp(text, " TWO", 4) == 0);
  EXPECT(sterna_read(fd, text, sizeof text) == 0);
  EXPECT(sterna_write(fd, block, kBlock) == kBlock);
  EXPECT(sterna_fsync(fd) == 0);
  (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* Part of it comes from the disk. */
  static unsigned char copy[kBlock];
  EXPECT(sterna_pread(fd, copy, kBlock, 7) == kBlock && memcmp(copy, block, kBlock) == 0);
  /* To a file O_NONBLOCK says nothing. */
  EXPECT(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
  (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  EXPECT(sterna_pread(fd, copy, kBlock, 7) == kBlock && memcmp(copy, block, kBlock) == 0);
  EXPECT(close(fd) == 0 && unlink(name) == 0);
}

static int count_kernel_threads(void) {
  DIR* const folder = opendir("/proc/self/task");
  int count = 0;
  EXPECT(folder != NULL);
  while (readdir(folder) != NULL) {
    ++count;
  }
  EXPECT(closedir(folder) == 0);
  return count;
}

/* A file that is in memory ends there: no spare kernel thread, which the first call that needs one
 * makes, is asked for the rest. Before all other tests. */
static void read_to_end(void* argument) {
  char name[] = "/tmp/sterna_io_XXXXXX";
  char text[32];
  struct iovec part = {text, sizeof text};
  (void)argument;
  const int fd = mkstemp(name);
  EXPECT(fd >= 0 && unlink(name) == 0 && write(fd, "one two", 7) == 7);
  if (preadv2(fd, &part, 1, 0, RWF_NOWAIT) != 7) {
    puts("Not tried: this file system cannot say what is in memory.");
  } else {
    const int before = count_kernel_threads();
    EXPECT(sterna_pread(fd, text, sizeof text, 4) == 3 && memcmp(text, "two", 3) == 0);
    EXPECT(lseek(fd, 0, SEEK_SET) == 0 && sterna_read(fd, text, sizeof text) == 7);
    EXPECT(count_kernel_threads() == before);
  }
  EXPECT(close(fd) == 0);
}

static void use_errors(void* argument) {
  char text[4];
  struct timeval short_time = {0, 20000};
  struct pollfd closed = {987, POLLIN, 0};
  struct timespec wrong = {0, 2000000000};
  struct timespec little = {0, 1000000};
  fd_set set;
  (void)argument;
  EXPECT(sterna_read(987, text, 1) == -1 && *sterna_errno() == EBADF);
  EXPECT(sterna_write(987, text, 1) == -1 && *sterna_errno() == EBADF);
  EXPECT(sterna_recv(987, text, 1, 0) == -1 && *sterna_errno() == EBADF);
  EXPECT(sterna_fsync(987) == -1 && *sterna_errno() == EBADF);
  EXPECT(sterna_accept(987, NULL, NULL, 0) == -1 && *sterna_errno() == EBADF);
  EXPECT(sterna_connect(987, NULL, 0) == -1 && *sterna_errno() == EBADF);
  EXPECT(sterna_tcdrain(ends[0]) == -1 && *sterna_errno() == ENOTTY);
  EXPECT(sterna_open("/no/such/file", O_RDONLY, 0) == -1 && *sterna_errno() == ENOENT);
  EXPECT(sterna_pread(ends[0], text, 1, 0) == -1 && *sterna_errno() == ESPIPE);
  EXPECT(sterna_pread(ends[0], text, 1, -5) == -1 && *sterna_errno() == EINVAL);
  EXPECT(sterna_poll(&closed, 1, -1) == 1 && closed.revents == POLLNVAL);
  EXPECT(sterna_nanosleep(&wrong) == -1 && *sterna_errno() == EINVAL);
  EXPECT(sterna_nanosleep(&little) == 0);
  FD_ZERO(&set);
  FD_SET(987, &set);
  EXPECT(sterna_select(988, &set, NULL, NULL, NULL) == -1 && *sterna_errno() == EBADF);
  /* A hang-up is nothing exceptional: the time runs out, and other sets are waited for. */
  int hung_up[2];
  struct timeval some_time = {0, 30000};
  EXPECT(pipe(hung_up) == 0 && close(hung_up[1]) == 0);
  FD_ZERO(&set);
  FD_SET(hung_up[0], &set);
  EXPECT(sterna_select(hung_up[0] + 1, NULL, NULL, &set, &some_time) == 0);
  EXPECT(some_time.tv_sec == 0 && some_time.tv_usec == 0 && !FD_ISSET(hung_up[0], &set));
  FD_SET(hung_up[0], &set);
  EXPECT(sterna_select(hung_up[0] + 1, &set, NULL, NULL, NULL) == 1);
  EXPECT(close(hung_up[0]) == 0);
  EXPECT(sterna_select(-1, NULL, NULL, NULL, NULL) == -1 && *sterna_errno() == EINVAL);
  /* Timeouts and flags that say "do not wait". */
  EXPECT(sterna_poll(NULL, 0, 1) == 0);
  closed.fd = ends[0];
  EXPECT(sterna_poll(&closed, 1, 0) == 0 && sterna_poll(&closed, 1, 5) == 0);
  EXPECT(sterna_recv(ends[0], text, 1, MSG_DONTWAIT) == -1 && *sterna_errno() == EAGAIN);
  EXPECT(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof short_time) == 0);
  EXPECT(sterna_recv(ends[0], text, 1, 0) == -1 && *sterna_errno() == EAGAIN);
  EXPECT(sterna_read(ends[0], text, 1) == -1 && *sterna_errno() == EAGAIN);
  EXPECT(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
  EXPECT(sterna_read(ends[0], text, 1) == -1 && *sterna_errno() == EAGAIN);
  /* The end of the other side. */
  EXPECT(fcntl(ends[0], F_SETFL, 0) == 0 && shutdown(ends[1], SHUT_WR) == 0);
  EXPECT(sterna_read(ends[0], text, 1) == 0);
  EXPECT(shutdown(ends[0], SHUT_RDWR) == 0);
  EXPECT(sterna_send(ends[1], text, 1, MSG_NOSIGNAL) == -1 && *sterna_errno() == EPIPE);
}

static char long_text[300000]; /* More than a socket holds. */
static char long_copy[sizeof long_text];

static void write_long(void* argument) {
  (void)argument;
  const struct iovec parts[] = {{long_text, 100000}, {NULL, 0}, {long_text + 100000, 200000}};
  EXPECT(sterna_writev_exactly(ends[1], parts, 3) == (ssize_t)sizeof long_text);
  EXPECT(sterna_write_exactly(ends[1], "end", 3) == 3);
  EXPECT(shutdown(ends[1], SHUT_WR) == 0);
}

/* All of it, in whatever pieces it comes, and also of descriptors that do not block. */
static void test_exactly(int flags) {
  char rest[8];
  const struct iovec parts[] = {{long_copy, 1}, {long_copy + 1, sizeof long_copy - 1}};
  for (size_t i = 0; i < sizeof long_text; ++i) {
    long_text[i] = (char)(i * 7 + i / 251);
  }
  memset(long_copy, 0, sizeof long_copy);
  make_pair(SOCK_STREAM | flags);
  sterna_thread* const writer = start(write_long, NULL, 0);
  EXPECT(sterna_readv_exactly(ends[0], parts, 2) == (ssize_t)sizeof long_copy);
  EXPECT(memcmp(long_text, long_copy, sizeof long_text) == 0);
  EXPECT(sterna_read_exactly(ends[0], rest, sizeof rest) == 3); /* The end comes before. */
  EXPECT(memcmp(rest, "end", 3) == 0);
  EXPECT(sterna_read_exactly(ends[0], rest, 0) == 0);
  join(writer);
  EXPECT(sterna_read_exactly(987, rest, 1) == -1 && *sterna_errno() == EBADF);
  EXPECT(sterna_readv_exactly(ends[0], parts, -1) == -1 && *sterna_errno() == EINVAL);
  close_pair();
}

static void test_exactly_in_thread(void* argument) {
  test_exactly(*(int*)argument);
}

int main(void) {
  int flags[] = {0, SOCK_NONBLOCK};
  char byte = 0;
  fill();
  EXPECT(pipe(ends) == 0); /* Plain calls before the start and on kernel threads. */
  EXPECT(sterna_write(ends[1], "x", 1) == 1 && sterna_read(ends[0], &byte, 1) == 1);
  sterna_thread* const other = open_team();
  EXPECT(sterna_write(ends[1], "x", 1) == 1 && sterna_read(ends[0], &byte, 1) == 1);
  EXPECT(sterna_read(987, &byte, 1) == -1 && errno == EBADF);
  close_pair();
  run(read_to_end, NULL);
  test_waits(SOCK_STREAM);
  test_waits(SOCK_DGRAM);
  test_sending();
  for (int i = 0; i < 2; ++i) {
    test_exactly(flags[i]); /* Of a kernel thread. */
    run(test_exactly_in_thread, &flags[i]);
  }
  run(use_file, NULL);
  make_pair(SOCK_STREAM);
  run(use_errors, NULL);
  close_pair();
  return close_team(other);
}
