// memory.h, migrate.h, balance.h: what mobile ranks ask for.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "migration/refusal.h"
#include "runtime/capi/program.h"
#include "runtime/node.h"
#include "runtime/node_of_process.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"
#include <sterna/balance.h>
#include <sterna/memory.h>
#include <sterna/migrate.h>

namespace {

using sterna::runtime::RankContext;
using sterna::runtime::RuntimeScope;

/// The caller as a mobile rank; null: it is none.
RankContext* mobile_rank() noexcept {
  RankContext* const rank = sterna::runtime::find_current_rank();
  return rank != nullptr && rank->slot != nullptr ? rank : nullptr;
}

/// What holds the rank here, as known to its slot. Kinds that program/ counts have no text here.
std::string_view reason_of(const sterna::memory::RankSlot& slot) noexcept {
  for (std::uint32_t kind = 0; kind < sterna::memory::kRefusalKindCount; ++kind) {
    if (slot.refusals[kind].load(std::memory_order_relaxed) != 0) {
      const auto known = std::min<std::uint32_t>(
          kind, static_cast<std::uint32_t>(sterna::migration::Refusal::refused_there));
      return kind == known ? to_string(static_cast<sterna::migration::Refusal>(kind))
                           : to_string(sterna::migration::Refusal::held_resource);
    }
  }
  return {};
}

}  // namespace

// On the thread pointer of the caller, without a scope: it says whose memory malloc gives.
void* sterna_iso_alloc(size_t bytes) noexcept { return std::malloc(bytes); }
void sterna_iso_free(void* memory) noexcept { std::free(memory); }

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
  rank->slot->move_request.store(static_cast<std::int32_t>(node), std::memory_order_release);
  sterna::runtime::move_if_asked(*rank);
  return rank->transport->job().node_index == node ? STERNA_SUCCESS : STERNA_REFUSED;
}

sterna_status sterna_migration_point(void) noexcept {
  const RuntimeScope scope;
  if (RankContext* const rank = mobile_rank(); rank != nullptr) {
    sterna::runtime::safe_point(*rank);
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_migratable(char* buffer, size_t bytes) noexcept {
  const RuntimeScope scope;
  const RankContext* const rank = mobile_rank();
  if (rank == nullptr) {
    return STERNA_UNSUPPORTED;
  }
  const std::string_view reason = reason_of(*rank->slot);
  if (reason.empty()) {
    return STERNA_SUCCESS;
  }
  if (buffer != nullptr && bytes != 0) {
    const std::size_t stored = std::min(bytes - 1, reason.size());
    std::memcpy(buffer, reason.data(), stored);
    buffer[stored] = '\0';
  }
  return STERNA_REFUSED;
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
