/* Messages by requests: each rank hands jobs to its neighbour and does those of the other one. One
 * description serves many messages, what has ended comes from a queue, urgent messages go first, a
 * session keeps the tags apart from those of others, and a receive that is not needed is taken
 * back. Each rank alone is its own neighbour. */
#include <stdio.h>
#include <sterna/message.h>
#include <sterna/pack.h>
#include <sterna/session.h>
#include <sterna/sterna.h>

enum { kJobs = 100, kWindow = 4 };
enum { kJob = 1, kDone = 2, kStop = 0x100, kStopReason = 0x101 };

#define CHECK(call)                                                              \
  do {                                                                           \
    if ((call) != STERNA_SUCCESS) {                                              \
      char why[240] = "";                                                        \
      sterna_error_detail(why, sizeof why);                                      \
      fprintf(stderr, "rank %u: %s: %s\n", (unsigned)sterna_rank(), #call, why); \
      return 1;                                                                  \
    }                                                                            \
  } while (0)

int main(void) {
  CHECK(sterna_start(NULL));
  const uint32_t ranks = sterna_rank_count();
  const uint32_t next = (sterna_rank() + 1) % ranks;
  const uint32_t before = (sterna_rank() + ranks - 1) % ranks;
  sterna_session session;
  CHECK(sterna_session_open(&session, "example.jobs"));

  /* Receives of jobs and of answers, which end in the queue. */
  sterna_message_queue ended = STERNA_MESSAGE_QUEUE_INIT;
  sterna_message_request jobs[kWindow], answers[kWindow];
  int job[kWindow], answer[kWindow];
  for (int i = 0; i < kWindow; ++i) {
    CHECK(sterna_message_receive_init(&jobs[i], before, kJob, &job[i], sizeof job[i]));
    CHECK(sterna_message_receive_init(&answers[i], next, kDone, &answer[i], sizeof answer[i]));
    sterna_message_request* const both[2] = {&jobs[i], &answers[i]};
    for (int j = 0; j < 2; ++j) {
      CHECK(sterna_message_set_session(both[j], &session));
      CHECK(sterna_message_set_queue(both[j], &ended));
      CHECK(sterna_message_start(both[j]));
    }
  }

  /* One description, started for every job. */
  int number = 0;
  sterna_message_request out;
  CHECK(sterna_message_send_init(&out, next, kJob, &number, sizeof number));
  CHECK(sterna_message_set_session(&out, &session));

  /* Answers are waited for: where messages wait for the network they go first. */
  int square = 0;
  sterna_message_request urgent;
  CHECK(sterna_message_send_init(&urgent, before, kDone, &square, sizeof square));
  CHECK(sterna_message_set_session(&urgent, &session));
  CHECK(sterna_message_set_priority(&urgent, STERNA_MESSAGE_PRIORITY_MAX));

  long sum = 0;
  int sent = 0, answered = 0, worked = 0;
  while (answered < kJobs || worked < kJobs) {
    for (; sent < kJobs && sent < answered + kWindow; ++sent) {
      number = sent;
      CHECK(sterna_message_start(&out));
      CHECK(sterna_message_wait(&out, NULL));
    }
    sterna_message_request* request = NULL;
    sterna_status status = STERNA_SUCCESS;
    CHECK(sterna_message_queue_take(&ended, STERNA_FOREVER, &request, &status, NULL));
    CHECK(status);
    if (request >= jobs && request < jobs + kWindow) {
      square = job[request - jobs] * job[request - jobs];
      ++worked;
      CHECK(sterna_message_start(&urgent));
      CHECK(sterna_message_wait(&urgent, NULL));
    } else {
      sum += answer[request - answers];
      ++answered;
    }
    CHECK(sterna_message_start(request)); /* For the next one. */
  }

  /* No more will come: the receives are taken back, and end in the queue as well. */
  for (int i = 0; i < kWindow; ++i) {
    CHECK(sterna_message_cancel(&jobs[i]));
    CHECK(sterna_message_cancel(&answers[i]));
  }
  for (int i = 0; i < 2 * kWindow; ++i) {
    sterna_message_request* request = NULL;
    sterna_status status = STERNA_SUCCESS;
    CHECK(sterna_message_queue_take(&ended, STERNA_FOREVER, &request, &status, NULL));
    if (status != STERNA_CANCELLED) {
      return 1;
    }
  }

  /* Farewell, a message in pieces that goes while this rank waits for the one of its neighbour:
   * whatever that stops for, a tag of 0x1.., is found by the mask. */
  sterna_packing packing;
  sterna_unpacking unpacking;
  sterna_envelope envelope;
  int done = 0;
  long theirs = 0;
  CHECK(sterna_pack_begin(&packing, &session, next, sum % 2 == 0 ? kStop : kStopReason));
  CHECK(sterna_pack_long(&packing, &sum, 1, STERNA_PACK_CHEAPER, STERNA_UNPACK_CHEAPER));
  CHECK(sterna_pack_start_end(&packing));
  CHECK(sterna_unpack_probe_for(&session, before, 0x100, 0xf00, STERNA_FOREVER, &envelope));
  CHECK(sterna_unpack_begin(&unpacking, &session, envelope.source, envelope.tag, NULL));
  CHECK(sterna_unpack_long(&unpacking, &theirs, 1, STERNA_PACK_CHEAPER, STERNA_UNPACK_CHEAPER));
  CHECK(sterna_unpack_end(&unpacking));
  while (done == 0) {
    CHECK(sterna_pack_test_end(&packing, &done));
  }
  printf("rank %u: %d jobs done, squares up to %d: %ld\n", (unsigned)sterna_rank(), worked,
         kJobs - 1, sum);
  CHECK(sterna_session_close(&session));
  CHECK(sterna_stop());
  return sum == theirs && sum == (kJobs - 1L) * kJobs * (2 * kJobs - 1) / 6 ? 0 : 1;
}
