/* One worker: whatever system call one thread sleeps in, also inside libraries that know nothing of
 * us, the other one goes on, without a call or a setting. What the first one waits for comes when
 * the second one has run for a while: else this never ends. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

enum { kYields = 1000, kBytes = 1 << 18 };

static int ends[2];
static int listener;
static int lock_file;
static struct sockaddr_in address;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int flag;                       /* Guard: mutex. */
static int word;                       /* Atomic. */
static int stage;                      /* Atomic: 1: it is about to sleep, 2: it goes on. */
static int yields;                     /* Atomic: of the other one, since then. */
static char sent[kBytes], got[kBytes]; /* By different threads at a time. */

static int get(int* what) {
  return __atomic_load_n(what, __ATOMIC_SEQ_CST);
}

static void set(int* what, int value) {
  __atomic_store_n(what, value, __ATOMIC_SEQ_CST);
}

static void read_one(void) {
  while (read(ends[0], got, 1) != 1) {
    EXPECT(errno == EINTR); /* As with any program that gets signals. */
  }
}

static void write_many(void) {
  for (ssize_t done = 0; done < kBytes;) { /* More than fits. */
    const ssize_t now = write(ends[1], sent, kBytes - (size_t)done);
    EXPECT(now > 0 || errno == EINTR);
    done += now > 0 ? now : 0;
  }
}

static void wait_in_poll(void) {
  struct pollfd ready = {ends[0], POLLIN, 0};
  while (poll(&ready, 1, -1) != 1) {
    EXPECT(errno == EINTR);
  }
  read_one();
}

static void wait_in_select(void) {
  fd_set set_of_one;
  do {
    FD_ZERO(&set_of_one);
    FD_SET(ends[0], &set_of_one);
  } while (select(ends[0] + 1, &set_of_one, NULL, NULL, NULL) != 1);
  read_one();
}

static void accept_one(void) {
  int other = -1;
  while ((other = accept(listener, NULL, NULL)) < 0) {
    EXPECT(errno == EINTR);
  }
  close(other);
}

static void sleep_long(void) {
  const struct timespec time = {0, 20000000};
  while (get(&yields) < kYields) {
    EXPECT(nanosleep(&time, NULL) == 0 || errno == EINTR);
  }
}

static void wait_in_futex(void) {
  while (get(&word) == 0) {
    (void)syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
  }
}

static void wait_in_sem(void) {
  while (sem_wait(&semaphore) != 0) {
    EXPECT(errno == EINTR);
  }
}

static void lock_mutex(void) {
  EXPECT(pthread_mutex_lock(&mutex) == 0);
  EXPECT(pthread_mutex_unlock(&mutex) == 0);
}

static void wait_in_condition(void) {
  pthread_mutex_lock(&mutex);
  while (flag == 0) {
    pthread_cond_wait(&condition, &mutex);
  }
  pthread_mutex_unlock(&mutex);
}

static void lock_a_file(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", lock_file);
  const int file = open(path, O_RDWR);
  EXPECT(file >= 0);
  while (flock(file, LOCK_EX) != 0) {
    EXPECT(errno == EINTR);
  }
  close(file);
}

static void wait_for_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
  }
  int status = 1;
  while (waitpid(child, &status, 0) != child) {
    EXPECT(errno == EINTR);
  }
  EXPECT(status == 0);
}

static void send_one(void) {
  EXPECT(write(ends[1], sent, 1) == 1);
}

static void take_many(void) {
  for (ssize_t taken = 0; taken < kBytes;) {
    taken += read(ends[0], got, kBytes);
  }
}

static void connect_one(void) {
  const int other = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT(connect(other, (struct sockaddr*)&address, sizeof address) == 0);
  close(other);
}

static void wake_futex(void) {
  set(&word, 1);
  (void)syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void post(void) {
  sem_post(&semaphore);
}

static void unlock(void) {
  pthread_mutex_unlock(&mutex);
}

static void signal_condition(void) {
  pthread_mutex_lock(&mutex);
  flag = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
}

static void unlock_file(void) {
  EXPECT(flock(lock_file, LOCK_UN) == 0);
}

static void nothing(void) {}

static const struct {
  const char* name;
  void (*sleep)(void);
  void (*wake)(void);
} kinds[] = {{"read", read_one, send_one},
             {"write", write_many, take_many},
             {"poll", wait_in_poll, send_one},
             {"select", wait_in_select, send_one},
             {"accept", accept_one, connect_one},
             {"nanosleep", sleep_long, nothing},
             {"futex", wait_in_futex, wake_futex},
             {"semaphore of the system", wait_in_sem, post},
             {"mutex of pthreads", lock_mutex, unlock},
             {"condition of pthreads", wait_in_condition, signal_condition},
             {"lock of a file", lock_a_file, unlock_file},
             {"child", wait_for_child, send_one}};

static void sleeper(void* argument) {
  void (*const sleep_in_the_kernel)(void) = *(void (*const*)(void))argument;
  set(&stage, 1);
  sleep_in_the_kernel();
  set(&stage, 2);
}

static void other(void* unused) {
  (void)unused;
  while (get(&stage) != 2) {
    __atomic_fetch_add(&yields, 1, __ATOMIC_SEQ_CST);
    sterna_thread_yield();
  }
}

/* A kernel thread of its own: what it does may sleep, too. */
static void* waker(void* wake) {
  if (*(void (**)(void))wake == unlock) {
    pthread_mutex_lock(&mutex);
  }
  set(&stage, 0);
  while (get(&stage) == 0 || get(&yields) < kYields) {
    usleep(1000);
  }
  (*(void (**)(void))wake)();
  return NULL;
}

static void run(size_t kind) {
  sterna_thread* threads[2];
  pthread_t kernel_thread;
  void (*wake)(void) = kinds[kind].wake;
  void (*sleep_in_the_kernel)(void) = kinds[kind].sleep;
  set(&stage, 3);
  set(&yields, 0);
  EXPECT(pthread_create(&kernel_thread, NULL, waker, &wake) == 0);
  while (get(&stage) == 3) {
    usleep(100);
  }
  EXPECT(sterna_thread_create(NULL, sleeper, &sleep_in_the_kernel, &threads[0]) == STERNA_SUCCESS);
  while (get(&stage) == 0) {
    usleep(100);
  }
  EXPECT(sterna_thread_create(NULL, other, NULL, &threads[1]) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(threads[0]) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(threads[1]) == STERNA_SUCCESS);
  EXPECT(pthread_join(kernel_thread, NULL) == 0);
  printf("%s: the other one goes on\n", kinds[kind].name);
  fflush(stdout);
}

int main(void) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  socklen_t size = sizeof address;
  options.workers = 1;
  EXPECT(pipe(ends) == 0 && sem_init(&semaphore, 0, 0) == 0);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT(bind(listener, (struct sockaddr*)&address, sizeof address) == 0);
  EXPECT(listen(listener, 4) == 0);
  EXPECT(getsockname(listener, (struct sockaddr*)&address, &size) == 0);
  FILE* const file = tmpfile();
  EXPECT(file != NULL);
  lock_file = fileno(file);
  EXPECT(flock(lock_file, LOCK_EX) == 0);
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    run(i);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
