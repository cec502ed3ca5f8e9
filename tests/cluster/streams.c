/* Streams of numbered messages of random sizes between all pairs, received by source, by wildcard and by
 * matched probe, in the order in which they were sent; with collectives in between. Rank R of N;
 * arguments: rounds, seed. Prints "No Errors". */
#include <stdint.h>

#include "../mpi/check.h"

enum { kEach = 2, kBytesMax = 1 << 18, kRanksMax = 16 };

static uint64_t seed = 1;
static unsigned char* outgoing[kRanksMax][kEach];
static unsigned char* incoming[kRanksMax][kEach];

static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static uint64_t key(int from, int to, int number) {
  return mix(seed ^ ((uint64_t)from << 48) ^ ((uint64_t)to << 32) ^ (uint64_t)number);
}

/* One in eight is large; some are empty but for their number. */
static int size_of(int from, int to, int number) {
  const uint64_t random = key(from, to, number);
  const uint64_t range = random % 8 == 0 ? kBytesMax : (random % 8 < 3 ? 20000 : 200);
  return 8 + (int)((random >> 8) % (range - 8));
}

static void fill(unsigned char* bytes, int from, int to, int number) {
  const int size = size_of(from, to, number);
  const uint64_t first = key(from, to, number);
  for (int i = 0; i < size; ++i) {
    bytes[i] = (unsigned char)((first >> (i % 8 * 8)) + (uint64_t)i / 8);
  }
}

static void compare(const unsigned char* bytes, int count, int from, int number) {
  const int size = size_of(from, world_rank, number);
  const uint64_t first = key(from, world_rank, number);
  int wrong = 0;
  CHECK(count == size);
  for (int i = 0; i < size && i < count; ++i) {
    wrong += bytes[i] != (unsigned char)((first >> (i % 8 * 8)) + (uint64_t)i / 8);
  }
  CHECK(wrong == 0);
}

static void receive_any(int round, int is_probed, int next[kRanksMax]) {
  MPI_Status status;
  MPI_Message message;
  int count;
  if (is_probed) {
    MPI_Mprobe(MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(incoming[0][0], kBytesMax, MPI_BYTE, &message, &status);
  } else {
    MPI_Recv(incoming[0][0], kBytesMax, MPI_BYTE, MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &status);
  }
  MPI_Get_count(&status, MPI_BYTE, &count);
  compare(incoming[0][0], count, status.MPI_SOURCE, round * kEach + next[status.MPI_SOURCE]++);
}

static void exchange(int round) {
  MPI_Request sends[kRanksMax * kEach], receives[kRanksMax * kEach];
  MPI_Status statuses[kRanksMax * kEach];
  int count = 0;
  int next[kRanksMax] = {0};
  const int way = round % 3;
  for (int peer = 0; peer < world_size && way == 0; ++peer) {
    for (int k = 0; k < kEach; ++k) {
      MPI_Irecv(incoming[peer][k], kBytesMax, MPI_BYTE, peer, round, MPI_COMM_WORLD,
                &receives[count++]);
    }
  }
  count = 0;
  for (int i = 0; i < world_size; ++i) {
    const int peer = (world_rank + i) % world_size;
    for (int k = 0; k < kEach; ++k) {
      const int number = round * kEach + k;
      fill(outgoing[peer][k], world_rank, peer, number);
      MPI_Isend(outgoing[peer][k], size_of(world_rank, peer, number), MPI_BYTE, peer, round,
                MPI_COMM_WORLD, &sends[count++]);
    }
  }
  if (way != 0) {
    for (int i = 0; i < world_size * kEach; ++i) {
      receive_any(round, way == 2, next);
    }
  } else {
    MPI_Waitall(count, receives, statuses);
    for (int i = 0; i < count; ++i) {
      int bytes;
      MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
      compare(incoming[i / kEach][i % kEach], bytes, i / kEach, round * kEach + i % kEach);
    }
  }
  MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int rounds = argc > 1 ? atoi(argv[1]) : 60;
  seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  CHECK(world_size <= kRanksMax);
  for (int peer = 0; peer < world_size; ++peer) {
    for (int k = 0; k < kEach; ++k) {
      outgoing[peer][k] = malloc(kBytesMax);
      incoming[peer][k] = malloc(kBytesMax);
    }
  }
  for (int round = 0; round < rounds; ++round) {
    exchange(round);
    if (round % 5 == 4) {
      long mine = (long)round + world_rank, sum = 0;
      MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
      CHECK(sum == (long)world_size * round + (long)world_size * (world_size - 1) / 2);
    }
  }
  return end();
}
