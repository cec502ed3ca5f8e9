/* Messages of all lengths beside computation of both sides, of some, or of none: what a message is
 * made of may be written, read, sent in the place of who computes, or go one way halfway and then
 * another. Each byte is checked. */
#include "check.h"

enum { kRounds = 120, kBytesMax = 3 << 20 };

/* The same for all ranks that ask the same. */
static unsigned drawn(int round, int rank, int what) {
  unsigned value = (unsigned)round * 2654435761u ^ (unsigned)rank * 40503u ^ (unsigned)what * 977u;
  for (int i = 0; i < 3; ++i) {
    value = (value ^ value >> 15) * 2246822519u;
  }
  return value ^ value >> 13;
}

/* Of what `sender` sends in a round: mostly long messages, whose ways are many. */
static int length_of(int round, int sender) {
  const unsigned most = drawn(round, sender, 0) % 4 == 0 ? kBytesMax : 600000;
  return (int)(drawn(round, sender, 1) % (most / (unsigned)(world_size > 8 ? 8 : 1))) + 1;
}

static char byte_of(unsigned seed, int i) {
  return (char)(seed + (unsigned)i * 7 + ((unsigned)i >> 8));
}

/* A third of the ranks by a round, a habit for as long as it lasts. */
static void compute(int round) {
  const int habit = (int)drawn(round / 20, world_rank, 3) % 3;
  const unsigned microseconds = habit == 0 ? 0 : drawn(round, world_rank, 4) % (habit == 1 ? 30 : 400);
  const double until = MPI_Wtime() + microseconds * 1e-6;
  while (microseconds != 0 && MPI_Wtime() < until) {
  }
}

/* From `left` and to `right`, and a short one behind each. */
static void exchange(int round, char* outgoing, char* incoming) {
  const int right = (world_rank + 1) % world_size;
  const int left = (world_rank + world_size - 1) % world_size;
  const int sent = length_of(round, world_rank);
  const int expected = length_of(round, left);
  const int room = drawn(round, world_rank, 5) % 4 == 0 ? kBytesMax + 1 : expected;
  const int is_awaited = drawn(round, world_rank, 6) % 3 == 0;
  int short_sent = world_rank + round, short_got = -1, got = -1;
  MPI_Request requests[4];
  MPI_Status states[4];
  const unsigned own_seed = drawn(round, world_rank, 2), seed = drawn(round, left, 2);
  for (int i = 0; i < sent; ++i) {
    outgoing[i] = byte_of(own_seed, i);
  }
  memset(incoming, 0, (size_t)expected);
  if (drawn(round, 0, 7) % 2 == 0) { /* They begin together; else whoever is first. */
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Irecv(incoming, room, MPI_CHAR, left, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&short_got, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[1]);
  if (is_awaited) {
    MPI_Send(outgoing, sent, MPI_CHAR, right, 1, MPI_COMM_WORLD);
    requests[2] = MPI_REQUEST_NULL;
  } else {
    MPI_Isend(outgoing, sent, MPI_CHAR, right, 1, MPI_COMM_WORLD, &requests[2]);
  }
  MPI_Isend(&short_sent, 1, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[3]);
  compute(round);
  CHECK(MPI_Waitall(4, requests, states) == MPI_SUCCESS);
  MPI_Get_count(&states[0], MPI_CHAR, &got);
  CHECK(got == expected);
  CHECK(short_got == left + round);
  int wrong = 0;
  for (int i = 0; i < expected; ++i) {
    wrong += incoming[i] != byte_of(seed, i);
  }
  CHECK(wrong == 0);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  char* const outgoing = malloc(kBytesMax + 1);
  char* const incoming = malloc(kBytesMax + 1);
  const int rounds = world_size > 8 ? kRounds / 4 : kRounds;
  for (int round = 0; round < rounds && error_count == 0; ++round) {
    exchange(round, outgoing, incoming);
  }
  free(outgoing);
  free(incoming);
  return end();
}
