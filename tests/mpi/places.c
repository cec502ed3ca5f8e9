/* Messages of datatypes in many places, short and long, in all ways of sending and receiving: what
 * arrives is what was sent, and nothing between the places is touched. Neighbours exchange; one
 * without a neighbour does so with itself. */
#include <unistd.h>

#include "check.h"

enum { kCells = 1200000, kIntsMax = 300000, kRounds = 150 };
enum kind { kVector, kAlike, kUnlike, kRows, kCount, kWhole, kKinds };

static unsigned state = 7;
static int draw(int values) {
  state = state * 1103515245u + 12345u;
  return (int)((state >> 16) % (unsigned)values);
}

/* A type of `ints` numbers, a multiple of 12, and how often it is taken. */
typedef struct {
  MPI_Datatype type;
  int count;
} shape;

static shape make(enum kind kind, int ints) {
  static int places[kIntsMax / 3], lengths[kIntsMax / 3];
  const int block = kind == kRows ? 12 : ints % 36 == 0 ? 3 : 4;
  const int blocks = ints / block;
  shape made = {MPI_DATATYPE_NULL, 1};
  MPI_Datatype inner;
  int place = draw(5);
  for (int i = 0; i < blocks; ++i) {
    places[i] = place;
    lengths[i] = block;
    place += kind == kRows ? 24 + draw(3) : block + 1 + draw(4);
  }
  for (int i = 0; i + 1 < blocks; i += 2) { /* As long together; none is empty. */
    const int more = draw(block);
    lengths[i] -= more;
    lengths[i + 1] += more;
    places[i + 1] -= more;
  }
  switch (kind) {
    case kVector:
      MPI_Type_vector(blocks, block, block + 2, MPI_INT, &made.type);
      break;
    case kAlike:
      for (int i = 0; i + 1 < blocks; i += 2) {
        places[i + 1] = places[i] + block + 1;
      }
      MPI_Type_create_indexed_block(blocks, block, places, MPI_INT, &made.type);
      break;
    case kUnlike:
      MPI_Type_indexed(blocks, lengths, places, MPI_INT, &made.type);
      break;
    case kRows:
      for (int i = 0; i < blocks; ++i) {
        places[i] = 25 * i + draw(2);
      }
      MPI_Type_vector(4, 3, 6, MPI_INT, &inner);
      MPI_Type_create_resized(inner, 0, sizeof(int), &made.type);
      MPI_Type_free(&inner);
      inner = made.type;
      MPI_Type_create_indexed_block(blocks, 1, places, inner, &made.type);
      MPI_Type_free(&inner);
      break;
    case kCount: /* Many of a small one. */
      MPI_Type_vector(2, 3, 4, MPI_INT, &inner);
      MPI_Type_create_resized(inner, 0, 9 * sizeof(int), &made.type);
      MPI_Type_free(&inner);
      made.count = ints / 6;
      break;
    default:
      MPI_Type_contiguous(ints, MPI_INT, &made.type);
      break;
  }
  MPI_Type_commit(&made.type);
  return made;
}

static int *out, *in, *stream, *expected;
static int is_sterna;

static void fill(int* cells, int seed) {
  for (int i = 0; i < kCells; ++i) {
    cells[i] = seed + 7 * i;
  }
}

/* `in` has the first `ints` numbers of what was sent with that seed, and what it had elsewhere. */
static void check_arrived(shape sent, int seed, shape taken, int ints, int all) {
  int position = 0;
  fill(out, seed);
  MPI_Pack(out, sent.count, sent.type, expected, kIntsMax * (int)sizeof(int), &position,
           MPI_COMM_WORLD);
  position = 0;
  MPI_Pack(in, taken.count, taken.type, stream, kIntsMax * (int)sizeof(int), &position,
           MPI_COMM_WORLD);
  CHECK(position == all * (int)sizeof(int));
  CHECK(memcmp(stream, expected, (size_t)ints * sizeof(int)) == 0);
  memset(stream, 0xff, (size_t)all * sizeof(int));
  position = 0;
  MPI_Unpack(stream, all * (int)sizeof(int), &position, in, taken.count, taken.type,
             MPI_COMM_WORLD);
  int touched = 0;
  for (int i = 0; i < kCells; ++i) {
    touched += in[i] != -1;
  }
  CHECK(touched == 0);
}

static void compute(int way) {
  if (way == 1) {
    usleep(300);
  } else if (way == 2) {
    volatile double sum = 0;
    for (int i = 0; i < 100000; ++i) {
      sum += i;
    }
  }
}

static void send(int way, int late, shape it, int peer) {
  MPI_Request request;
  switch (way) {
    case 0:
      MPI_Send(out, it.count, it.type, peer, 1, MPI_COMM_WORLD);
      break;
    case 1:
      MPI_Ssend(out, it.count, it.type, peer, 1, MPI_COMM_WORLD);
      break;
    default:
      MPI_Isend(out, it.count, it.type, peer, 1, MPI_COMM_WORLD, &request);
      compute(late);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
  }
}

static int receive(int way, int late, shape it, int peer) {
  MPI_Status status;
  MPI_Request request;
  MPI_Message message;
  int error = MPI_SUCCESS;
  const int source = late == 1 ? MPI_ANY_SOURCE : peer;
  switch (way) {
    case 0:
      compute(late);
      error = MPI_Recv(in, it.count, it.type, peer, 1, MPI_COMM_WORLD, &status);
      break;
    case 1:
      MPI_Irecv(in, it.count, it.type, peer, 1, MPI_COMM_WORLD, &request);
      compute(late);
      error = MPI_Wait(&request, &status);
      break;
    case 2:
      MPI_Probe(source, 1, MPI_COMM_WORLD, &status);
      error = MPI_Recv(in, it.count, it.type, status.MPI_SOURCE, 1, MPI_COMM_WORLD, &status);
      break;
    default:
      MPI_Mprobe(peer, 1, MPI_COMM_WORLD, &message, &status);
      error = MPI_Mrecv(in, it.count, it.type, &message, &status);
      break;
  }
  if (error == MPI_SUCCESS) {
    int ints = 0;
    MPI_Get_elements(&status, MPI_INT, &ints);
    CHECK(status.MPI_SOURCE == peer && ints % 12 == 0);
  }
  return error;
}

/* What both sides draw is the same: the order of the draws is that of the pair. */
static void exchange(int round, int peer) {
  static const int sizes[] = {12, 360, 5400, 7200, 18000, 36000, 90000, 300000};
  const int ints = sizes[draw(round % 10 == 9 ? 8 : 6)];
  const int is_short = round % 7 == 6; /* The message has less than there is room for. */
  const int is_long = round % 7 == 5;  /* It has more. */
  const int out_ints = is_short ? ints / 24 * 12 + 12 * (ints < 24) : ints;
  const int in_ints = is_long && ints > 12 ? ints / 24 * 12 : ints;
  const int kinds[2] = {draw(kKinds), draw(kKinds)};
  const int ways[4] = {draw(4), draw(4), draw(3), draw(3)};
  const int seed = draw(1000) + 1;
  const shape sent = make((enum kind)kinds[0], out_ints);
  const shape taken = make((enum kind)kinds[1], in_ints);
  /* Of what is too long other libraries need not store what fits. */
  const int arrived = out_ints <= in_ints ? out_ints : is_sterna ? in_ints : 0;
  int error = MPI_SUCCESS;
  fill(out, seed + (peer == world_rank ? 0 : world_rank));
  memset(in, 0xff, kCells * sizeof(int));
  if (peer == world_rank || ways[0] == 3) {
    error = MPI_Sendrecv(out, sent.count, sent.type, peer, 1, in, taken.count, taken.type, peer, 1,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (world_rank < peer) {
    send(ways[0], ways[2], sent, peer);
    error = receive(ways[1], ways[3], taken, peer);
  } else {
    error = receive(ways[1], ways[3], taken, peer);
    send(ways[0], ways[2], sent, peer);
  }
  if (out_ints > in_ints) {
    FAILS(MPI_ERR_TRUNCATE, error);
  } else {
    CHECK(error == MPI_SUCCESS);
  }
  check_arrived(sent, seed + (peer == world_rank ? 0 : peer), taken, arrived, in_ints);
  MPI_Datatype used[2] = {sent.type, taken.type};
  MPI_Type_free(&used[0]);
  MPI_Type_free(&used[1]);
}

/* Both started, and waited for at once, as halves of a domain do; now and then one computes. */
static void exchange_at_once(int round, int peer) {
  const int ints = round % 3 == 0 ? 300000 : 36000;
  const int kinds[2] = {draw(kKinds), draw(kKinds)};
  const int seed = draw(1000) + 1;
  const shape sent = make((enum kind)kinds[0], ints);
  const shape taken = make((enum kind)kinds[1], ints);
  MPI_Request requests[2];
  fill(out, seed + world_rank);
  memset(in, 0xff, kCells * sizeof(int));
  MPI_Irecv(in, taken.count, taken.type, peer, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, sent.count, sent.type, peer, 2, MPI_COMM_WORLD, &requests[1]);
  if (round % 10 == 9 && world_rank < peer) {
    compute(2);
  }
  CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  check_arrived(sent, seed + peer, taken, ints, ints);
  MPI_Datatype used[2] = {sent.type, taken.type};
  MPI_Type_free(&used[0]);
  MPI_Type_free(&used[1]);
}

int main(int argc, char** argv) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  begin(&argc, &argv);
  MPI_Get_library_version(version, &length);
  is_sterna = strstr(version, "Sterna") != NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  out = malloc(kCells * sizeof(int));
  in = malloc(kCells * sizeof(int));
  stream = malloc(kIntsMax * sizeof(int));
  expected = malloc(kIntsMax * sizeof(int));
  if (out == NULL || in == NULL || stream == NULL || expected == NULL) {
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int other = world_rank ^ 1;
  const int peer = other < world_size ? other : world_rank;
  const int rounds = world_size > 8 ? kRounds / 5 : kRounds;
  for (int round = 0; round < rounds; ++round) {
    exchange(round, peer);
  }
  for (int round = 0; round < rounds / 3; ++round) {
    exchange_at_once(round, peer);
  }
  free(out);
  free(in);
  free(stream);
  free(expected);
  return end();
}
