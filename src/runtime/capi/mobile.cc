// memory.h, migrate.h, balance.h: what mobile ranks ask for.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sterna/balance.h>
#include <sterna/memory.h>
#include <sterna/migrate.h>

#include "base/clock.h"
#include "migration/refusal.h"
#include "runtime/capi/program.h"
#include "runtime/node.h"
#include "runtime/node_of_process.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"
#include "threads/this_thread.h"

namespace {

using sterna::runtime::RankContext;
using sterna::runtime::RuntimeScope;

/// The caller as a mobile rank; null: it is none.
RankContext* mobile_rank() noexcept {
  RankContext* const rank = sterna::runtime::find_current_rank();
  return rank != nullptr && rank->slot != nullptr ? rank : nullptr;
}

/// What holds the rank here now; empty: nothing known. By the rank.
std::string blockers_of(sterna::runtime::Node& node, sterna::memory::RankSlot& slot) {
  if (node.runner().fingerprint() == 0) {
    return std::string{to_string(sterna::migration::Refusal::random_addresses)};
  }
  if (sterna::threads::has_live_exception()) {
    return std::string{to_string(sterna::migration::Refusal::live_exception)};
  }
  return node.runner().describe_blockers(slot);
}

// How long sterna_migrate_to asks again while large messages of the rank are being copied.
constexpr std::uint64_t kRetryNs = 2'000'000'000;

}  // namespace

// On the thread pointer of the caller, without a scope: it says whose memory malloc gives.
void* sterna_iso_alloc(size_t bytes) noexcept {
  return std::malloc(bytes);
}
void sterna_iso_free(void* memory) noexcept {
  std::free(memory);
}

int sterna_is_iso(const void* address) noexcept {
  return sterna::memory::rank_slot_of(address) != nullptr ? 1 : 0;
}

sterna_status sterna_migrate_to(uint32_t node) noexcept {
  const RuntimeScope scope;
  RankContext* const rank = mobile_rank();
  if (rank == nullptr) {
    return STERNA_UNSUPPORTED;
  }
  if (node >= rank->transport->job().node_count) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (node == rank->transport->job().node_index) {
    return STERNA_SUCCESS;
  }
  const auto wanted = static_cast<std::int32_t>(node);
  const std::uint64_t give_up_ns = sterna::now_ns() + kRetryNs;
  rank->slot->move_request.store(wanted, std::memory_order_release);
  sterna::runtime::move_if_asked(*rank);
  // What is short-lived leaves the request where it is.
  while (rank->slot->move_request.load(std::memory_order_relaxed) == wanted &&
         rank->transport->job().node_index != node && sterna::now_ns() < give_up_ns) {
    sterna::runtime::tested_in_vain(*rank);
  }
  std::int32_t left = wanted;
  rank->slot->move_request.compare_exchange_strong(left, -1, std::memory_order_relaxed);
  return rank->transport->job().node_index == node ? STERNA_SUCCESS : STERNA_REFUSED;
}

sterna_status sterna_migration_point(void) noexcept {
  const RuntimeScope scope;
  if (RankContext* const rank = mobile_rank(); rank != nullptr) {
    sterna::runtime::safe_point(*rank);
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_set_migratable(int is_migratable) noexcept {
  const RuntimeScope scope;
  const RankContext* const rank = mobile_rank();
  if (rank == nullptr) {
    return STERNA_UNSUPPORTED;
  }
  // Relaxed: the rank reads it itself before it moves; for others it is a report.
  rank->slot->refusals[sterna::migration::kBlockerKindOrder].store(is_migratable == 0 ? 1 : 0,
                                                                   std::memory_order_relaxed);
  return STERNA_SUCCESS;
}

sterna_status sterna_migratable(char* buffer, size_t bytes) noexcept {
  const RuntimeScope scope;
  const RankContext* const rank = mobile_rank();
  sterna::runtime::Node* const node = sterna::runtime::node_of_process();
  if (rank == nullptr || node == nullptr) {
    return STERNA_UNSUPPORTED;
  }
  return sterna::runtime::capi::guarded([&] {
    const std::string reason = blockers_of(*node, *rank->slot);
    if (reason.empty()) {
      return STERNA_SUCCESS;
    }
    if (buffer != nullptr && bytes != 0) {
      const std::size_t stored = std::min(bytes - 1, reason.size());
      std::memcpy(buffer, reason.data(), stored);
      buffer[stored] = '\0';
    }
    return STERNA_REFUSED;
  });
}

sterna_status sterna_balance_point(void) noexcept {
  const RuntimeScope scope;
  RankContext* const rank = mobile_rank();
  sterna::runtime::Node* const node = sterna::runtime::node_of_process();
  if (rank != nullptr && node != nullptr) {
    node->balance_point(*rank);
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_load_query(sterna_load* load) noexcept {
  const RuntimeScope scope;
  const RankContext* const rank = mobile_rank();
  if (rank == nullptr) {
    return STERNA_UNSUPPORTED;
  }
  if (load == nullptr || load->size_bytes != sizeof *load) {
    return STERNA_INVALID_ARGUMENT;
  }
  load->processor_ns = sterna::threads::processor_ns(*rank->slot->thread);
  load->moves = rank->slot->moves.load(std::memory_order_relaxed);
  return STERNA_SUCCESS;
}
