/* The main thread of each rank waits in the kernel, by a condition, for a thread of its own, which
 * waits for messages of the other ranks: as mobile ranks they are more than there are processors. */
#include <pthread.h>

#include "check.h"

enum { kRounds = 5 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int asked, answered;

static void* communicate(void* nothing) {
  for (int round = 1; round <= kRounds; ++round) {
    pthread_mutex_lock(&mutex);
    while (asked < round) {
      pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    const int left = (world_rank + world_size - 1) % world_size;
    int mine = world_rank + round, theirs = -1;
    MPI_Sendrecv(&mine, 1, MPI_INT, (world_rank + 1) % world_size, round, &theirs, 1, MPI_INT, left,
                 round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(theirs == left + round);
    pthread_mutex_lock(&mutex);
    answered = round;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
  return nothing;
}

int main(int argc, char** argv) {
  int level = 0;
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  CHECK(level == MPI_THREAD_MULTIPLE);
  pthread_create(&thread, NULL, communicate, NULL);
  for (int round = 1; round <= kRounds; ++round) {
    pthread_mutex_lock(&mutex);
    asked = round;
    pthread_cond_broadcast(&changed);
    while (answered < round) {
      pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
  }
  pthread_join(thread, NULL);
  return end();
}
