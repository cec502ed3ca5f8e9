// How the nodes of a job find out that nothing of a program goes on anywhere: sterna_stop.
//
// A service may post, so that no node alone knows when it is done: requests are under way, and what
// they start may ask others. So all exchange marks in rounds (after Mattern, "Algorithms for
// distributed termination detection", 1987, but over channels that keep their order). A node sends
// its mark when it has no thread and no request that has not begun, and when it has the marks of
// the round before from all; the mark is quiet if it has sent no request since its last one. Once
// all marks of a round are quiet, nothing can go on:
//
//   There was a moment after the last mark of the round before and before the first of this one. By
//   then, all of them being quiet, every request had been sent before its sender's mark of the
//   round before, which came after it. So it had come before its receiver sent this mark, and what
//   it has started had ended by then, and has sent nothing.
//
// A thread may also wait until somebody takes its reply (Rpc::reply_now), which nobody has to. Such
// threads keep no node from its mark, which is no better than `waiting` then. To give such a reply,
// and to take one, counts as a request: when no mark of a round is busy, there was a moment when
// nothing went on but those threads, so that nobody was left who could take their replies. Each
// node withdraws those that it had at its mark, the threads go on, and so do the rounds.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "rpc/rpc.h"

namespace sterna::runtime::capi {

struct Program;

/// One a node, from before other nodes can call.
class Leaving {
 public:
  explicit Leaving(rpc::Rpc& rpc);
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;

  /// What a mark says.
  enum class Mark : std::uint8_t { busy, waiting, quiet, ended, gone };

  /// Another round: here, nothing goes on, or (`waiting`) nothing but threads whose replies nobody
  /// takes. Waits for all. The least of all marks: what goes on anywhere.
  [[nodiscard]] Mark pass_round(Mark here) noexcept;
  /// Nothing goes on anywhere, and all that was to be replied is on its way: waits until that has
  /// come. Messages between two nodes keep their order.
  void end() noexcept;
  /// Nothing is wanted of others any more: waits until nobody wants anything of us.
  void go() noexcept;

  /// Nothing comes from that node, and nobody waits for it. By the poller.
  void lose(std::uint32_t node) noexcept;

 private:
  /// How far another node is, as it has told. Written by the poller.
  struct Other {
    // Released with the flag of the round. One that is in the next round already has told of this
    // one in another place; it cannot be further, as that takes our mark.
    std::atomic<std::uint32_t> rounds{0};
    std::array<std::atomic<Mark>, 2> marks{};
    std::atomic<Mark> stage{Mark::busy};  // Not before `ended` of meaning.
  };

  static Result<rpc::Bytes> on_mark(void* self, const rpc::Request& request);
  void post_to_all(Mark mark) noexcept;
  void await_all(Mark stage) noexcept;

  rpc::Rpc& rpc_;
  const std::unique_ptr<Other[]> others_;  // By node, this one too.
  // The initial kernel thread's.
  std::uint32_t rounds_ = 0;
  rpc::SentRequests sent_before_ = {};  // With our own marks.
};

/// Waits until all threads of this node have ended, and all requests have been served everywhere;
/// then nobody needs anything of this node.
void leave(Program& program) noexcept;

}  // namespace sterna::runtime::capi
