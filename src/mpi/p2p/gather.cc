// See gather.h.
#include "mpi/p2p/gather.h"

#include <algorithm>

#include "base/clock.h"
#include "mpi/rank_state.h"
#include "net/matching/direct.h"
#include "net/transport.h"
#include "threads/wait/handover.h"

namespace sterna::mpi {
namespace {

constexpr std::uint64_t kCloseNs = 1500;  // Two messages and answers between two workers.
constexpr std::uint32_t kPenalty = 16;    // Waits that one which is not close undoes.
constexpr std::uint32_t kLimitMax = 1 << 20;

}  // namespace

bool add_wait(CloseWaits& waits, std::uint32_t source, std::uint64_t now_ns) noexcept {
  if (waits.source != source) {
    waits = {.source = source, .last_ns = now_ns};
    return false;
  }
  const bool is_close = now_ns - waits.last_ns < kCloseNs;
  waits.last_ns = now_ns;
  // One that took longer (an interrupt) does not spoil all; several in a row do.
  waits.count = is_close ? waits.count + 1 : waits.count - std::min(waits.count, kPenalty);
  if (waits.count < waits.limit) {
    return false;
  }
  waits.count = 0;
  return true;
}

void double_limit(CloseWaits& waits) noexcept {
  waits.limit = std::min(2 * waits.limit, kLimitMax);
}

void gather_for(RankState& state, std::uint32_t source) noexcept {
  // Without direct messages, for anybody, or for one who comes here, there is nowhere to go.
  if (state.context->slot == nullptr || state.context->slot->mpi == nullptr ||
      source == net::kAnySource || state.context->rank < source ||
      !add_wait(state.close_waits, source, now_ns())) {
    return;
  }
  threads::Worker* const worker = state.context->transport->direct_way().worker_of(source);
  if (worker != nullptr && threads::go_to(*worker)) {
    double_limit(state.close_waits);
  }
}

}  // namespace sterna::mpi
