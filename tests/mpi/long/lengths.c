/* Messages of all lengths up to 16 MB between two ranks, both ways at once: none, one byte, each power
 * of two and its neighbours; several long ones at a time; into memory in one piece and in many. Ranks
 * 2k and 2k + 1 talk to each other. In some rounds they compute before they wait: long messages of
 * who does are left to the receiver. */
#include <stdint.h>

#include "../check.h"

enum { kLongest = 16 << 20, kAtOnce = 6, kPart = 1 << 20, kTag = 3 };

static int partner;
static char* out;
static char* in;

/* The bytes that `rank` sends in `round`. */
static void fill(char* to, size_t bytes, int rank, int round) {
  const uint64_t seed = (uint64_t)(round * 2 + (rank & 1)) * 0x9e3779b97f4a7c15u + 1;
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    const uint64_t word = seed * (i + 1);
    memcpy(to + i, &word, 8);
  }
  for (; i < bytes; ++i) to[i] = (char)(seed + i);
}

static int is_right(const char* found, size_t bytes, int round) {
  const uint64_t seed = (uint64_t)(round * 2 + (partner & 1)) * 0x9e3779b97f4a7c15u + 1;
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    const uint64_t word = seed * (i + 1);
    if (memcmp(found + i, &word, 8) != 0) return 0;
  }
  for (; i < bytes; ++i) {
    if (found[i] != (char)(seed + i)) return 0;
  }
  return 1;
}

static void compute(int round) {
  volatile unsigned turns = (round & 2) != 0 ? 50000 : 0; /* Some 20 us and more. */
  while (turns != 0) --turns;
}

static void exchange(int bytes, int round) {
  MPI_Request q[2];
  MPI_Status s[2];
  int count = -1;
  fill(out, (size_t)bytes, world_rank, round);
  memset(in, 0x55, (size_t)bytes + 1);
  MPI_Irecv(in, kLongest + 1, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &q[0]);
  MPI_Isend(out, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &q[1]);
  compute(round);
  MPI_Waitall(2, q, s);
  MPI_Get_count(&s[0], MPI_BYTE, &count);
  CHECK(count == bytes);
  CHECK(is_right(in, (size_t)bytes, round));
  CHECK(in[bytes] == 0x55); /* Nothing behind it was written. */
}

/* Several at once, received in the other order. */
static void flood(int round) {
  MPI_Request q[2 * kAtOnce];
  fill(out, (size_t)kAtOnce * kPart, world_rank, round);
  memset(in, 0, (size_t)kAtOnce * kPart);
  for (int i = 0; i < kAtOnce; ++i) {
    const int k = kAtOnce - 1 - i;
    MPI_Irecv(in + (size_t)k * kPart, kPart, MPI_BYTE, partner, 10 + k, MPI_COMM_WORLD, &q[i]);
  }
  for (int i = 0; i < kAtOnce; ++i) {
    MPI_Isend(out + (size_t)i * kPart, kPart, MPI_BYTE, partner, 10 + i, MPI_COMM_WORLD,
              &q[kAtOnce + i]);
  }
  compute(round);
  MPI_Waitall(2 * kAtOnce, q, MPI_STATUSES_IGNORE);
  CHECK(is_right(in, (size_t)kAtOnce * kPart, round));
}

/* Sent from one piece, received in pieces of 1000 bytes with as much between them. */
static void scatter(int round) {
  enum { kPieces = 2000, kPiece = 1000 };
  MPI_Datatype holes;
  MPI_Request q[2];
  fill(out, (size_t)kPieces * kPiece, world_rank, round);
  memset(in, 0x55, (size_t)kPieces * kPiece * 2);
  MPI_Type_vector(kPieces, kPiece, 2 * kPiece, MPI_BYTE, &holes);
  MPI_Type_commit(&holes);
  MPI_Irecv(in, 1, holes, partner, kTag, MPI_COMM_WORLD, &q[0]);
  MPI_Isend(out, kPieces * kPiece, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &q[1]);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  MPI_Type_free(&holes);
  for (int i = 0; i < kPieces; ++i) {
    CHECK(in[(size_t)i * 2 * kPiece + kPiece] == 0x55);
    memmove(in + (size_t)i * kPiece, in + (size_t)i * 2 * kPiece, kPiece);
  }
  CHECK(is_right(in, (size_t)kPieces * kPiece, round));
}

int main(int argc, char** argv) {
  int round = 0;
  begin(&argc, &argv);
  partner = (world_rank ^ 1) < world_size ? world_rank ^ 1 : world_rank;
  out = malloc(kLongest + 8);
  in = malloc(kLongest + 8);
  CHECK(out != NULL && in != NULL);
  exchange(0, ++round);
  for (int bytes = 1; bytes <= kLongest; bytes *= 2) {
    for (int more = -1; more <= 1; ++more) {
      if (bytes + more <= kLongest) exchange(bytes + more, ++round);
    }
  }
  for (int i = 0; i < 5; ++i) flood(++round);
  scatter(++round);
  free(out);
  free(in);
  return end();
}
