/* Random exchanges, which all ranks know from one seed: messages of all lengths between any two of
 * them in three communicators, in memory of one piece, of many and of two, by all kinds of sends,
 * received before they are sent or after, by all kinds of receives; collectives between them. What
 * arrives is what was sent, and messages of one sender come in its order.
 *
 * usage: random SEED ROUNDS */
#include <stdint.h>

#include "../check.h"

enum { kMessages = 60, kTags = 3, kComms = 3, kEdge = 64 };
enum { kBufferBytes = 8 << 20, kBufferedMax = 20000 };
enum shape { one_piece, many_pieces, two_pieces, shape_count };
enum way_out {
  out_isend, out_send, out_ssend, out_bsend, out_kept, out_rsend, out_issend, out_count
};
enum way_in { in_irecv, in_any_tag, in_kept, in_recv, in_matched, in_probed, in_count };

struct message {
  int from, to, tag, comm, bytes;
  enum shape shape;
  enum way_out out;
  enum way_in in;
  unsigned seed;
  unsigned char* sent;
  unsigned char* received;
};

static struct message messages[kMessages];
static MPI_Comm comms[kComms]; /* The world, a copy of it, and one that counts backwards. */
static MPI_Request requests[2 * kMessages];
static int request_count;
static uint64_t common, own; /* States of random numbers: the same for all ranks, and not. */

static unsigned below(uint64_t* state, unsigned bound) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((*state >> 33) % bound);
}

static int random_length(void) {
  switch (below(&common, 7)) {
    case 0: return 0;
    case 1: return (int)below(&common, 64);
    case 2: return (int)below(&common, 2000);
    case 3: return (int)below(&common, 20000);
    case 4: return (int)below(&common, 120000);
    case 5: return (int)below(&common, 1500000) * (below(&common, 3) == 0);
    default: return (int)below(&common, 9000);
  }
}

static void invent(struct message* m) {
  m->from = (int)below(&common, (unsigned)world_size);
  m->to = (int)below(&common, (unsigned)world_size);
  m->tag = (int)below(&common, kTags);
  m->comm = (int)below(&common, kComms);
  m->bytes = random_length();
  const int is_plain = below(&common, 3) != 0 || m->bytes < 8;
  m->shape = is_plain ? one_piece : (enum shape)below(&common, shape_count);
  m->out = (enum way_out)below(&common, out_count);
  m->in = (enum way_in)below(&common, in_count);
  m->seed = below(&common, 256);
}

static int rank_in(const struct message* m, int rank) {
  return m->comm == 2 ? world_size - 1 - rank : rank;
}

/* Where byte `i` of the message lies: four together and a gap of four, or a gap behind a third. */
static size_t place_of(const struct message* m, int i) {
  if (m->shape == many_pieces) return (size_t)(i / 4) * 8 + (size_t)(i % 4);
  return (size_t)i + (m->shape == two_pieces && i >= m->bytes / 3 ? 33 : 0);
}

static size_t extent_of(const struct message* m) { return 2 * (size_t)m->bytes + kEdge; }

static unsigned char byte_of(const struct message* m, int i) {
  return (unsigned char)(m->seed + (unsigned)i * 31 + ((unsigned)i >> 9));
}

static int is_whole(const struct message* m) {
  for (int i = 0; i < m->bytes; ++i) {
    if (m->received[place_of(m, i)] != byte_of(m, i)) return 0;
  }
  const unsigned char* behind = m->received + (m->bytes == 0 ? 0 : place_of(m, m->bytes - 1) + 1);
  return *behind == 0xee;
}

/* `count` of the type are the message; the type is to be freed, but for MPI_BYTE. */
static MPI_Datatype type_of(const struct message* m, int* count) {
  MPI_Datatype type = MPI_BYTE;
  *count = m->shape == one_piece ? m->bytes : 1;
  if (m->shape == many_pieces) {
    MPI_Datatype pieces, parts[2];
    MPI_Type_vector(m->bytes / 4, 4, 8, MPI_BYTE, &pieces);
    parts[0] = pieces;
    parts[1] = MPI_BYTE;
    const int lengths[2] = {1, m->bytes % 4};
    const MPI_Aint places[2] = {0, (MPI_Aint)(m->bytes / 4) * 8};
    MPI_Type_create_struct(2, lengths, places, parts, &type);
    MPI_Type_free(&pieces);
  } else if (m->shape == two_pieces) {
    const int lengths[2] = {m->bytes / 3, m->bytes - m->bytes / 3};
    const int places[2] = {0, m->bytes / 3 + 33};
    MPI_Type_indexed(2, lengths, places, MPI_BYTE, &type);
  }
  if (type != MPI_BYTE) MPI_Type_commit(&type);
  return type;
}

static void check_status(const struct message* m, const MPI_Status* status) {
  int bytes = -1;
  MPI_Get_count(status, MPI_BYTE, &bytes);
  CHECK(bytes == m->bytes);
  CHECK(status->MPI_SOURCE == rank_in(m, m->from) && status->MPI_TAG == m->tag);
}

/* At once, from among those that have been sent and have not been received. */
static void receive_now(struct message* m, int count, MPI_Datatype type) {
  const int source = rank_in(m, m->from);
  MPI_Status status;
  if (m->in == in_matched) {
    MPI_Message matched;
    MPI_Mprobe(source, m->tag, comms[m->comm], &matched, &status);
    check_status(m, &status);
    MPI_Mrecv(m->received, count, type, &matched, &status);
    return;
  }
  if (m->in == in_probed) {
    MPI_Probe(source, m->tag, comms[m->comm], &status);
    check_status(m, &status);
  }
  MPI_Recv(m->received, count, type, source, m->tag, comms[m->comm], &status);
}

/* In the order of all messages: so MPI_ANY_TAG finds the one that is meant. */
static void receive(struct message* m, int is_early) {
  const int source = rank_in(m, m->from);
  const int tag = m->in == in_any_tag ? MPI_ANY_TAG : m->tag;
  int count;
  const MPI_Datatype type = type_of(m, &count);
  m->received = malloc(extent_of(m));
  memset(m->received, 0xee, extent_of(m));
  if (!is_early && m->in >= in_recv) {
    receive_now(m, count, type);
  } else if (m->in == in_kept) {
    MPI_Recv_init(m->received, count, type, source, tag, comms[m->comm], &requests[request_count]);
    MPI_Start(&requests[request_count++]);
  } else {
    MPI_Irecv(m->received, count, type, source, tag, comms[m->comm], &requests[request_count++]);
  }
  MPI_Datatype freed = type;
  if (freed != MPI_BYTE) MPI_Type_free(&freed);
}

/* Where nobody receives yet, a send that waits for that would wait for ever. */
static enum way_out way_of(const struct message* m, int is_late) {
  const int waits = m->out == out_send || m->out == out_ssend || m->out == out_rsend;
  const int is_large = m->out == out_bsend && m->bytes > kBufferedMax;
  return (!is_late && waits) || is_large ? out_isend : m->out;
}

static void send(struct message* m, int is_late) {
  const int to = rank_in(m, m->to);
  const MPI_Comm comm = comms[m->comm];
  MPI_Request* const request = &requests[request_count];
  int count;
  MPI_Datatype type = type_of(m, &count);
  *request = MPI_REQUEST_NULL; /* Of those that are done when they return. */
  m->sent = malloc(extent_of(m));
  for (int i = 0; i < m->bytes; ++i) m->sent[place_of(m, i)] = byte_of(m, i);
  switch (way_of(m, is_late)) {
    case out_send: MPI_Send(m->sent, count, type, to, m->tag, comm); break;
    case out_ssend: MPI_Ssend(m->sent, count, type, to, m->tag, comm); break;
    case out_bsend: MPI_Bsend(m->sent, count, type, to, m->tag, comm); break;
    case out_rsend: MPI_Rsend(m->sent, count, type, to, m->tag, comm); break;
    case out_issend: MPI_Issend(m->sent, count, type, to, m->tag, comm, request); break;
    case out_kept:
      MPI_Send_init(m->sent, count, type, to, m->tag, comm, request);
      MPI_Start(request);
      break;
    default: MPI_Isend(m->sent, count, type, to, m->tag, comm, request);
  }
  request_count += *request != MPI_REQUEST_NULL;
  if (type != MPI_BYTE) MPI_Type_free(&type);
}

/* Three collectives at a time, between the messages. */
static void meet(int round) {
  int sum = 0, told[64];
  const int mine = world_rank + 1;
  MPI_Request begun[3];
  for (int i = 0; i < 64; ++i) told[i] = world_rank == 0 ? i * round : -1;
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &begun[0]);
  MPI_Ibcast(told, 64, MPI_INT, 0, comms[1], &begun[1]);
  MPI_Ibarrier(comms[2], &begun[2]);
  MPI_Waitall(3, begun, MPI_STATUSES_IGNORE);
  CHECK(sum == world_size * (world_size + 1) / 2);
  for (int i = 0; i < 64; ++i) CHECK(told[i] == i * round);
}

static void wait_all(void) {
  int index = 0, is_done = 0, done_count = 0, done[2 * kMessages];
  switch (below(&own, 3)) {
    case 0: MPI_Waitall(request_count, requests, MPI_STATUSES_IGNORE); break;
    case 1:
      while (!is_done || index != MPI_UNDEFINED) {
        MPI_Testany(request_count, requests, &index, &is_done, MPI_STATUS_IGNORE);
      }
      break;
    default:
      while (done_count != MPI_UNDEFINED) {
        MPI_Waitsome(request_count, requests, &done_count, done, MPI_STATUSES_IGNORE);
      }
  }
  for (int i = 0; i < request_count; ++i) {
    if (requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&requests[i]); /* A persistent one. */
  }
  request_count = 0;
}

static void exchange(int round) {
  const int are_posted = (int)below(&common, 2); /* Receives come first. */
  const int meets = below(&common, 3) == 0;
  for (int i = 0; i < kMessages; ++i) invent(&messages[i]);
  for (int half = 0; half < 2; ++half) {
    const int receives = (half == 0) == are_posted;
    for (int i = 0; i < kMessages; ++i) {
      if (receives && messages[i].to == world_rank) receive(&messages[i], are_posted);
      if (!receives && messages[i].from == world_rank) send(&messages[i], are_posted);
    }
    if (half == 0 && are_posted) MPI_Barrier(MPI_COMM_WORLD); /* For ready sends. */
    if (half == 0 && meets) meet(round);
  }
  wait_all();
  for (int i = 0; i < kMessages; ++i) {
    if (messages[i].to == world_rank) {
      CHECK(is_whole(&messages[i]));
      free(messages[i].received);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD); /* What was sent buffered, or at once, has gone. */
  for (int i = 0; i < kMessages; ++i) {
    if (messages[i].from == world_rank) free(messages[i].sent);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int seed = argc > 1 ? atoi(argv[1]) : 1;
  const int rounds = argc > 2 ? atoi(argv[2]) : 20;
  void* buffer = malloc(kBufferBytes);
  int buffer_bytes = 0;
  common = (uint64_t)seed * 7919 + 3;
  own = (uint64_t)seed * 31 + (uint64_t)world_rank * 1009;
  comms[0] = MPI_COMM_WORLD;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, world_size - world_rank, &comms[2]);
  MPI_Buffer_attach(buffer, kBufferBytes);
  for (int round = 0; round < rounds; ++round) exchange(round);
  MPI_Buffer_detach(&buffer, &buffer_bytes);
  free(buffer);
  MPI_Comm_free(&comms[1]);
  MPI_Comm_free(&comms[2]);
  return end();
}
