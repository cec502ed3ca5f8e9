// See gather.h.
#include "mpi/p2p/gather.h"

#include <algorithm>

#include "base/clock.h"
#include "mpi/rank_state.h"
#include "net/direct.h"
#include "net/transport.h"
#include "threads/handover.h"

namespace sterna::mpi {
namespace {

constexpr std::uint64_t kCloseNs = 1500;  // Two messages and answers between two workers.
constexpr std::uint32_t kPenalty = 16;    // Waits that one which is not close undoes.
constexpr std::uint32_t kLimitMax = 1 << 20;

}  // namespace

void gather_for(RankState& state, std::uint32_t source) noexcept {
  if (state.context->slot == nullptr || state.context->slot->mpi == nullptr ||
      source == net::kAnySource) {
    return;  // No direct messages; nobody to go to.
  }
  CloseWaits& waits = state.close_waits;
  const std::uint64_t now = now_ns();
  const bool is_close = now - waits.last_ns < kCloseNs;
  if (waits.source != source) {
    waits.source = source;
    waits.count = 0;
  }
  waits.last_ns = now;
  // One that took longer (an interrupt) does not spoil all; several in a row do.
  waits.count = is_close ? waits.count + 1 : waits.count - std::min(waits.count, kPenalty);
  if (waits.count < waits.limit) {
    return;
  }
  waits.count = 0;
  waits.limit = std::min(2 * waits.limit, kLimitMax);
  if (state.context->rank < source) {
    return;
  }
  if (threads::Worker* const worker = state.context->transport->direct_way().worker_of(source)) {
    threads::go_to(*worker);
  }
}

}  // namespace sterna::mpi
