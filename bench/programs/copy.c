/* Ping-pong between ranks 0 and 1, by messages and, in turn with these, by process_vm_readv from
 * the sender's buffer, told and acknowledged by messages of one byte: prints "message.BYTES
 * MICROSECONDS" and "readv.BYTES MICROSECONDS" (one way), medians of as many short batches of each.
 *
 * usage: copy BATCHES BYTES...
 * For two processes of one host: a rank says where its buffer is.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "timing.h"

enum { kCount = 5 }; /* Exchanges of a batch. */

static char* buffer;
static struct {
  int64_t pid;
  uint64_t address;
} peer;

static void send_message(int to, int bytes) {
  MPI_Send(buffer, bytes, MPI_CHAR, to, 1, MPI_COMM_WORLD);
}

static void receive_message(int from, int bytes) {
  MPI_Recv(buffer, bytes, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_readable(int to, int bytes) {
  (void)bytes;
  MPI_Send(NULL, 0, MPI_CHAR, to, 2, MPI_COMM_WORLD);
}

static void read_it(int from, int bytes) {
  MPI_Recv(NULL, 0, MPI_CHAR, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const struct iovec here = {buffer, (size_t)bytes};
  const struct iovec there = {(void*)(uintptr_t)peer.address, (size_t)bytes};
  if (process_vm_readv((pid_t)peer.pid, &here, 1, &there, 1, 0) != bytes) {
    perror("copy: process_vm_readv");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* Returns the microseconds one way. */
static double batch(int rank, int bytes, void (*give)(int, int), void (*take)(int, int)) {
  const double begin = MPI_Wtime();
  for (int i = 0; i < kCount; ++i) {
    if (rank == 0) {
      give(1, bytes);
      take(1, bytes);
    } else {
      take(0, bytes);
      give(0, bytes);
    }
  }
  return (MPI_Wtime() - begin) / (2 * kCount) * 1e6;
}

static void meet_peer(int rank) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const struct {
    int64_t pid;
    uint64_t address;
  } own = {getpid(), (uint64_t)(uintptr_t)buffer};
  MPI_Sendrecv(&own, sizeof own, MPI_BYTE, 1 - rank, 0, &peer, sizeof peer, MPI_BYTE, 1 - rank, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  int rank = 0, size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int batches = argc > 1 ? atoi(argv[1]) : 0;
  if (argc < 3 || batches < 1 || size != 2) {
    fprintf(stderr, "usage: copy BATCHES BYTES... (2 ranks)\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  buffer = take_memory(largest(argv + 2, argc - 2));
  double* messages = take_memory(sizeof(double) * (size_t)batches);
  double* reads = take_memory(sizeof(double) * (size_t)batches);
  meet_peer(rank);
  prefer_this_thread();
  for (int i = 2; i < argc; ++i) {
    const int bytes = atoi(argv[i]);
    batch(rank, bytes, send_message, receive_message);
    batch(rank, bytes, send_readable, read_it);
    for (int b = 0; b < batches; ++b) {
      messages[b] = batch(rank, bytes, send_message, receive_message);
      reads[b] = batch(rank, bytes, send_readable, read_it);
    }
    if (rank == 0) {
      printf("message.%d %.4f\n", bytes, median(messages, batches));
      printf("readv.%d %.4f\n", bytes, median(reads, batches));
    }
  }
  fflush(stdout);
  stop_preferring();
  MPI_Barrier(MPI_COMM_WORLD);
  free(reads);
  free(messages);
  free(buffer);
  MPI_Finalize();
  return 0;
}
