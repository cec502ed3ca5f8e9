/* One sender, many threads that receive (paper 004, figures 5 and 7): prints, for each number N of
 * threads on each side that is asked for, "one.N MICROSECONDS": rank 0 sends 4 bytes, whichever of
 * the N threads of rank 1 gets them answers; and "pairs.N": N threads of rank 0, each with one of
 * rank 1 that answers it, all at once, time of one message one way as each pair sees it.
 *
 * With "-rate" behind the first word instead "rate.N MILLIONS": N such pairs at once, of which one
 * side sends 64 messages of 8 bytes, whose receives are posted, and gets an empty answer, again and
 * again: messages of all pairs in a second.
 *
 * usage: receivers user[-rate]|kernel[-rate] BATCHES N...
 *
 * user: threads of Sterna; kernel: those of the system. MPI_THREAD_MULTIPLE.
 */
#include <mpi.h>
#include <pthread.h>
#include <sterna/sterna.h>
#include <sterna/thread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

#define THREADS_MAX 256
enum { TAG_ONE = 1, TAG_ANSWER = 2, TAG_PAIRS = 16 };
enum { GO = 1, STOP = 2 };

static int uses_kernel_threads, rank, messages;
static union {
  sterna_thread* user;
  pthread_t kernel;
} threads[THREADS_MAX];

struct job {
  void (*run)(int);
  int argument;
};
static struct job jobs[THREADS_MAX];

static void run_user(void* job) { ((struct job*)job)->run(((struct job*)job)->argument); }
static void* run_kernel(void* job) {
  run_user(job);
  return NULL;
}

static void start(int index, void (*run)(int)) {
  jobs[index] = (struct job){run, index};
  const int failed =
      uses_kernel_threads
          ? pthread_create(&threads[index].kernel, NULL, run_kernel, &jobs[index])
          : sterna_thread_create(NULL, run_user, &jobs[index], &threads[index].user) != STERNA_SUCCESS;
  if (failed) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void join(int index) {
  if (uses_kernel_threads) {
    pthread_join(threads[index].kernel, NULL);
  } else {
    sterna_thread_join(threads[index].user);
  }
}

static void answer_any(int index) {
  (void)index;
  for (int word = GO; word != STOP;) {
    MPI_Recv(&word, 1, MPI_INT, 0, TAG_ONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (word == GO) MPI_Send(&word, 1, MPI_INT, 0, TAG_ANSWER, MPI_COMM_WORLD);
  }
}

static void ask(int tag, int answer, int count) {
  int word = GO;
  for (int i = 0; i < count; ++i) {
    MPI_Send(&word, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
    MPI_Recv(&word, 1, MPI_INT, 1, answer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static double one(int count) {
  double seconds = 0;
  if (rank == 1) {
    for (int i = 0; i < count; ++i) start(i, answer_any);
    for (int i = 0; i < count; ++i) join(i);
  } else {
    int stop = STOP;
    ask(TAG_ONE, TAG_ANSWER, 2 * count);
    const double begin = MPI_Wtime();
    ask(TAG_ONE, TAG_ANSWER, messages);
    seconds = MPI_Wtime() - begin;
    for (int i = 0; i < count; ++i) MPI_Send(&stop, 1, MPI_INT, 1, TAG_ONE, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return seconds / (2 * messages) * 1e6;
}

static void pair(int index) {
  const int tag = TAG_PAIRS + index;
  int word = GO;
  if (rank == 0) {
    ask(tag, tag, messages);
    return;
  }
  for (int i = 0; i < messages; ++i) {
    MPI_Recv(&word, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&word, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
  }
}

static double pairs(int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < count; ++i) start(i, pair);
  for (int i = 0; i < count; ++i) join(i);
  const double seconds = MPI_Wtime() - begin;
  MPI_Barrier(MPI_COMM_WORLD);
  return seconds / (2 * messages) * 1e6;
}

enum { WINDOW = 64 };

static void stream(int index) {
  const int tag = TAG_PAIRS + index;
  char bytes[WINDOW][8] = {{0}};
  MPI_Request requests[WINDOW];
  for (int i = 0; i < messages / WINDOW; ++i) {
    for (int k = 0; k < WINDOW; ++k) {
      if (rank == 0)
        MPI_Isend(bytes[k], 8, MPI_CHAR, 1, tag, MPI_COMM_WORLD, &requests[k]);
      else
        MPI_Irecv(bytes[k], 8, MPI_CHAR, 0, tag, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
      MPI_Recv(NULL, 0, MPI_CHAR, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(NULL, 0, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
  }
}

static double rate(int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < count; ++i) start(i, stream);
  for (int i = 0; i < count; ++i) join(i);
  const double seconds = MPI_Wtime() - begin;
  MPI_Barrier(MPI_COMM_WORLD);
  return (double)count * (messages / WINDOW) * WINDOW / seconds / 1e6;
}

static void measure_all(int argc, char** argv, int batches, double (*measure)(int),
                        const char* name) {
  double* times = malloc(sizeof(double) * batches * argc);
  if (times == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int batch = 0; batch < batches; ++batch) { /* In turn: noise hits all of them. */
    for (int i = 3; i < argc; ++i) times[i * batches + batch] = measure(atoi(argv[i]));
  }
  for (int i = 3; i < argc && rank == 0; ++i) {
    printf("%s.%s %.4f\n", name, argv[i], median(times + i * batches, batches));
  }
  free(times);
}

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int batches = argc > 3 ? atoi(argv[2]) : 0;
  int count_max = 0;
  for (int i = 3; i < argc; ++i) count_max = atoi(argv[i]) > count_max ? atoi(argv[i]) : count_max;
  if (batches < 1 || count_max < 1 || count_max > THREADS_MAX || level != MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "usage: receivers user[-rate]|kernel[-rate] BATCHES N...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int is_rate = strstr(argv[1], "-rate") != NULL;
  uses_kernel_threads = strncmp(argv[1], "kernel", 6) == 0;
  messages = is_rate ? (uses_kernel_threads ? 6400 : 64000) : uses_kernel_threads ? 200 : 2000;
  if (!uses_kernel_threads && sterna_start(NULL) != STERNA_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
  if (is_rate) {
    measure_all(argc, argv, batches, rate, "rate");
  } else {
    measure_all(argc, argv, batches, one, "one");
    measure_all(argc, argv, batches, pairs, "pairs");
  }
  fflush(stdout);
  if (!uses_kernel_threads) sterna_stop();
  MPI_Finalize();
  return 0;
}
