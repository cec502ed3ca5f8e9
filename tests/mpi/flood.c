/* Far more is sent than its receiver has windows for, while that does nothing; then it receives in
 * the reverse order of what was sent, by tag, also from any source, and probes for what was sent
 * last. All comes, in order, and what waits does not fill the memory of its receiver.
 * flood [COUNT [bounded]]: messages of a byte, and a tenth as many long ones; "bounded": the ranks
 * are processes, whose memory is looked at. Ranks 2k and 2k + 1 talk to each other. */
#define _GNU_SOURCE
#include <unistd.h>

#include "../resident.h"
#include "check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TIMES 3 /* Of each page that is touched there is a shadow, and more around each block. */
#else
#define TIMES 1
#endif
enum { kLongBytes = 100000, kGrowthMax = TIMES * (6 << 20) };

static int partner, short_count, long_count, is_bounded;
static char bytes[kLongBytes], got[kLongBytes];
static MPI_Request* requests;

static int length_of(int tag) {
  return tag < short_count ? 1 : kLongBytes;
}

static void start_sends(void) {
  for (int tag = 0; tag < short_count + long_count; ++tag) {
    MPI_Isend(bytes, length_of(tag), MPI_CHAR, partner, tag, MPI_COMM_WORLD, &requests[tag]);
  }
}

static void check_received(const MPI_Status* s, int tag) {
  int count = -1;
  MPI_Get_count(s, MPI_CHAR, &count);
  CHECK(s->MPI_TAG == tag && s->MPI_SOURCE == partner && count == length_of(tag));
}

static void receive(int source, int wanted, int tag) {
  MPI_Status s;
  MPI_Recv(got, kLongBytes, MPI_CHAR, source, wanted, MPI_COMM_WORLD, &s);
  check_received(&s, tag);
}

/* Also by a probe first, matched or not. */
static void receive_last(int tag) {
  MPI_Status s;
  MPI_Message m;
  MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &s);
  check_received(&s, tag);
  receive(partner, tag, tag);
  MPI_Mprobe(partner, tag - 1, MPI_COMM_WORLD, &m, &s);
  MPI_Mrecv(got, kLongBytes, MPI_CHAR, &m, &s);
  check_received(&s, tag - 1);
}

static void receive_reverse(void) {
  const int last = short_count + long_count - 1;
  receive_last(last);
  for (int tag = last - 2; tag >= 0; --tag) {
    receive(tag % 3 == 0 ? MPI_ANY_SOURCE : partner, tag, tag);
  }
}

static void receive_in_order(void) {
  for (int tag = 0; tag < short_count + long_count; ++tag) {
    receive(tag % 3 == 0 ? MPI_ANY_SOURCE : partner, MPI_ANY_TAG, tag);
  }
}

/* Posted all at once, by tag from the last on: each gets its own. */
static void receive_posted(void) {
  MPI_Status s;
  char words[64];
  MPI_Request q[64];
  const int last = short_count - 1;
  for (int i = 0; i < 64; ++i) {
    MPI_Irecv(&words[i], 1, MPI_CHAR, i % 5 == 0 ? MPI_ANY_SOURCE : partner, last - i,
              MPI_COMM_WORLD, &q[i]);
  }
  for (int i = 0; i < 64; ++i) {
    MPI_Wait(&q[i], &s);
    check_received(&s, last - i);
  }
  for (int tag = 0; tag < short_count + long_count; ++tag) {
    if (tag > last || tag <= last - 64) {
      receive(partner, MPI_ANY_TAG, tag);
    }
  }
}

/* Those that are taken back do not come, the others do. */
static void send_and_cancel(void) {
  MPI_Status s;
  int count = 0, is_cancelled = 0;
  const int all = short_count + long_count;
  start_sends();
  for (int tag = 0; tag < short_count; tag += 7) {
    MPI_Cancel(&requests[tag]);
  }
  for (int tag = 0; tag < short_count; tag += 7) {
    MPI_Wait(&requests[tag], &s);
    MPI_Test_cancelled(&s, &is_cancelled);
    count += is_cancelled;
  }
  count = all - count;
  MPI_Send(&count, 1, MPI_INT, partner, all, MPI_COMM_WORLD);
  MPI_Waitall(all, requests, MPI_STATUSES_IGNORE);
  MPI_Send(&count, 1, MPI_INT, partner, all, MPI_COMM_WORLD);
}

static void receive_not_cancelled(void) {
  MPI_Status s;
  int count = 0, expected = -1, before = -1;
  /* Until then a message that a probe has seen may be taken back. */
  MPI_Recv(&expected, 1, MPI_INT, partner, short_count + long_count, MPI_COMM_WORLD, &s);
  for (;;) {
    MPI_Probe(partner, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
    if (s.MPI_TAG == short_count + long_count) {
      break;
    }
    CHECK(s.MPI_TAG > before);
    before = s.MPI_TAG;
    receive(partner, s.MPI_TAG, s.MPI_TAG);
    ++count;
  }
  MPI_Recv(&expected, 1, MPI_INT, partner, short_count + long_count, MPI_COMM_WORLD, &s);
  CHECK(count == expected);
}

static void exchange(int is_sender, void (*receive_all)(void)) {
  const long before = resident_bytes();
  if (is_sender) {
    start_sends();
  }
  if (partner != world_rank) {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (!is_sender || partner == world_rank) {
    usleep(50000); /* Nobody polls for the receiver, as a rule. */
    receive_all();
    CHECK(!is_bounded || partner == world_rank || resident_bytes() - before < kGrowthMax);
  }
  if (is_sender) {
    MPI_Waitall(short_count + long_count, requests, MPI_STATUSES_IGNORE);
  }
}

/* Windows of messages around what comes in one packet between two processes of a host, of which
 * other receives are told than of shorter and longer ones. All receives are posted one after the
 * other while the messages come. */
static void exchange_windows(void) {
  enum { kWindow = 64, kSizes = 4, kMost = 24000 };
  static const int sizes[kSizes] = {16000, 16384, 22528, kMost};
  char* const in = malloc(kWindow * kMost);
  char* const out = malloc(kWindow * kMost);
  CHECK(in != NULL && out != NULL);
  for (int round = 0; round < 3 * kSizes; ++round) {
    const int size = sizes[round % kSizes];
    MPI_Request all[2 * kWindow];
    for (int i = 0; i < kWindow; ++i) {
      memset(out + i * kMost, world_rank + i + round, (size_t)size);
      memset(in + i * kMost, 0xee, kMost);
    }
    for (int i = 0; i < kWindow; ++i) {
      MPI_Irecv(in + i * kMost, size, MPI_CHAR, partner, 7, MPI_COMM_WORLD, &all[i]);
      MPI_Isend(out + i * kMost, size, MPI_CHAR, partner, 7, MPI_COMM_WORLD, &all[kWindow + i]);
    }
    MPI_Waitall(2 * kWindow, all, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kWindow; ++i) {
      const char expected = (char)(partner + i + round);
      CHECK(in[i * kMost] == expected && in[i * kMost + size / 2] == expected &&
            in[i * kMost + size - 1] == expected);
    }
  }
  free(in);
  free(out);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  short_count = argc > 1 ? atoi(argv[1]) : world_size > 8 ? 1000 : 10000;
  long_count = short_count / 10;
  is_bounded = argc > 2;
  requests = malloc(sizeof(MPI_Request) * (size_t)(short_count + long_count));
  partner = (world_rank ^ 1) < world_size ? world_rank ^ 1 : world_rank;
  void (*const ways[])(void) = {receive_reverse, receive_in_order, receive_posted};
  /* That memory is bounded is seen in one direction of each way, which takes long enough. */
  const int times = is_bounded ? 1 : 2;
  for (int i = 0; i < 3 * times; ++i) {
    const int is_sender = partner == world_rank || (world_rank ^ i) % 2 == 0;
    exchange(is_sender, ways[i / times]);
    if (partner == world_rank) {
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  exchange_windows();
  if (partner != world_rank && !is_bounded) {
    world_rank % 2 == 0 ? send_and_cancel() : receive_not_cancelled();
  }
  free(requests);
  return end();
}
