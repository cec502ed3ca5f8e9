// Communicators: a group, contexts that no other communicator of its members has, and what the
// program attached. An intercommunicator has a remote group, and a private communicator of the
// local one.
#pragma once

#include <atomic>
#include <cstdint>

#include <mpi.h>

#include "mpi/attribute/attribute.h"
#include "mpi/group/group.h"
#include "mpi/rank_state.h"

namespace sterna::mpi {

struct Topology;
struct BufferPool;
struct LocalMeeting;

/// Each communicator has four contexts of the transport: its number + one of these.
enum class ContextUse : std::uint32_t {
  messages = 0,     // Point-to-point.
  collectives = 1,  // Tag: the sequence number of the collective.
  creation = 2,     // MPI_Comm_create_group and MPI_Intercomm_create. Tag: the program's.
  neighbours = 3,   // Reserved.
};
inline constexpr std::uint32_t kContextsPerComm = 4;

struct Comm final : Object {
  Comm() noexcept : Object{ObjectKind::communicator} {}

  // Constant after creation.
  Group* group = nullptr;   // The local group.
  Group* remote = nullptr;  // Of an intercommunicator; else null.
  Comm* local = nullptr;    // Of an intercommunicator: for what its local group does alone.
  int rank = 0;
  std::uint32_t size = 0;
  std::uint32_t context = 0;     // First of its four; the same in all members.
  Topology* topology = nullptr;  // Owned.
  bool is_low_group = false;     // Of an intercommunicator: orders the two groups.
  bool is_predefined = false;

  // Written by the program's calls; it must not race them (MPI-5.0 §11.6).
  MPI_Errhandler errhandler = MPI_ERRORS_ARE_FATAL;  // One reference.
  AttributeSet attributes;
  BufferPool* buffers = nullptr;  // MPI_Comm_attach_buffer.
  char name[MPI_MAX_OBJECT_NAME] = {};
  // Where its members meet, once they have (coll/local.h). Memory of the node: only in a job that
  // has one, and so moves nothing.
  LocalMeeting* meeting = nullptr;

  // One thread at a time calls collectives of a communicator (MPI-5.0 §6.1); atomic for MPI_Isend
  // families that run beside them.
  std::atomic<std::uint32_t> collective_count{0};

  [[nodiscard]] bool is_inter() const noexcept { return remote != nullptr; }
  /// The group whose ranks messages go to.
  [[nodiscard]] const Group& peers() const noexcept { return remote != nullptr ? *remote : *group; }
  [[nodiscard]] std::uint32_t context_for(ContextUse use) const noexcept {
    return context + static_cast<std::uint32_t>(use);
  }
  /// The tag of the next collective operation; equal in all members, as they agree on the order.
  [[nodiscard]] int next_collective_tag() noexcept {
    return static_cast<int>(collective_count.fetch_add(1, std::memory_order_relaxed) & 0x7fff'ffff);
  }
};

[[nodiscard]] Comm* find_comm_slow(RankState& state, MPI_Comm handle) noexcept;
/// The communicator of a handle, or null: MPI_COMM_NULL, freed, or not a communicator.
[[nodiscard]] inline Comm* find_comm(RankState& state, MPI_Comm handle) noexcept {
  return handle == MPI_COMM_WORLD ? state.world : find_comm_slow(state, handle);
}
[[nodiscard]] MPI_Comm handle_of(RankState& state, Comm* comm) noexcept;

[[nodiscard]] inline NearComm near_of(MPI_Comm handle, Comm& comm) noexcept {
  const Group& peers = comm.peers();
  return {handle,      &comm,      peers.members,
          peers.first, peers.size, comm.context_for(ContextUse::messages)};
}
/// Makes it the one of RankState::near. False: find_comm() finds none. By the rank's main thread.
[[nodiscard, gnu::cold]] bool come_near(RankState& state, MPI_Comm handle) noexcept;

/// A communicator of this group in a context that its members agreed upon; takes the reference to
/// the group. Null: no memory, or the rank is not a member. Error handler: that of `parent`, if
/// any.
[[nodiscard]] Comm* create_comm(RankState& state, Group* group, std::uint32_t context,
                                const Comm* parent) noexcept;
/// Drops a reference; the last one frees. Attributes must have been deleted before.
void release_comm(RankState& state, Comm* comm) noexcept;

/// Context numbers for communicators that this rank leads (it is their rank 0): no other rank ever
/// gives the same. 0: all used up.
[[nodiscard]] std::uint32_t reserve_context(RankState& state) noexcept;
/// Takes back the one that was reserved last, if it is still the last.
void return_context(RankState& state, std::uint32_t context) noexcept;

}  // namespace sterna::mpi
