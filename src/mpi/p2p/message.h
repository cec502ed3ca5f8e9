// Point-to-point messages: checking their arguments, starting them.
#pragma once

#include <mpi.h>

#include "mpi/comm/comm.h"
#include "mpi/datatype/datatype.h"
#include "mpi/errors/error.h"
#include "mpi/p2p/packed.h"
#include "mpi/p2p/typed_layout.h"
#include "mpi/request/request.h"
#include "net/message.h"

namespace sterna::mpi {

inline constexpr int kTagMax = 0x7fff'ffff;
// Of a message that is worth the background's while; shorter ones come whole.
inline constexpr std::uint64_t kLargeBytes = 16 << 10;
// The same of a receive: up to here a message of this host comes in one packet (shm_chunk_bytes).
// Who starts several would poll after each, and take in what comes for the next before that is
// posted, to copy it twice.
inline constexpr std::uint64_t kLargeReceiveBytes = 22 << 10;

/// The arguments of one side of a message, checked. `comm` is that of the Call.
struct Side {
  void* buffer;
  MPI_Count count;
  MPI_Datatype datatype;
  int peer;
  int tag;
};

/// MPI_SUCCESS, or what the entry point returns (the handler was called). Sets call.comm.
int check_comm(Call& call, MPI_Comm handle) noexcept;
int check_send(const Call& call, const Side& side) noexcept;
int check_receive(const Call& call, const Side& side) noexcept;
/// Buffer, count and type alone.
int check_data(const Call& call, const void* buffer, MPI_Count count,
               MPI_Datatype datatype) noexcept;
/// Source and tag of a receive or a probe.
int check_pattern(const Call& call, int source, int tag) noexcept;

/// What the transport is given for a receive or a probe.
[[nodiscard]] inline net::Pattern pattern_of(const Comm& comm, int source, int tag) noexcept {
  return {source == MPI_ANY_SOURCE ? net::kAnySource
                                   : comm.peers().world_of(static_cast<std::uint32_t>(source)),
          comm.context_for(ContextUse::messages), tag == MPI_ANY_TAG ? net::kAnyTag : tag};
}
[[nodiscard]] inline net::Target target_of(const Comm& comm, int peer, int tag) noexcept {
  return {comm.peers().world_of(static_cast<std::uint32_t>(peer)),
          comm.context_for(ContextUse::messages), tag};
}

/// The bytes of a side that is one run of a predefined type, not empty, in memory. False: it is not
/// that.
[[nodiscard, gnu::always_inline]] inline bool find_run(const Side& side,
                                                       net::Buffer& run) noexcept {
  constexpr std::uint64_t kCountMax = std::uint64_t{1} << 40;  // No product overflows.
  const auto type = reinterpret_cast<std::uintptr_t>(side.datatype);
  const auto count = static_cast<std::uint64_t>(side.count);
  if (type - 0x200 >= 0x200 || count - 1 >= kCountMax || side.buffer <= MPI_IN_PLACE) [[unlikely]] {
    return false;
  }
  run = net::Buffer::of(side.buffer, count * kDenseBytes[type & 0x1ff]);
  return run.bytes != 0;
}

/// Bytes to send or room to receive, for the time of one message: the program's memory where that
/// is one run, else a block (packed.h), or a layout that is given for that.
class Bytes {
 public:
  /// `layout` outlives the message; null: none is used.
  explicit Bytes(RankState& state, TypedLayout* layout = nullptr) noexcept
      : state_{state}, layout_{layout} {}
  ~Bytes() {
    if (packed_ != nullptr) {
      deallocate_packed(state_, packed_);
    }
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  /// False: no memory. `to_rank` counts where there is a layout.
  [[nodiscard]] bool for_send(const Side& side, std::uint32_t to_rank = 0) noexcept;
  /// Longer ones than `laid_out_max` have no layout: others cannot write them as a whole.
  [[nodiscard]] bool for_receive(const Side& side,
                                 std::uint64_t laid_out_max = ~std::uint64_t{0}) noexcept;
  /// Into the program's memory, after a receive of `bytes` bytes.
  void deliver(std::uint64_t bytes) noexcept;
  [[nodiscard]] const net::Buffer& buffer() const noexcept { return buffer_; }
  /// Gives the block away; null: there is none.
  [[nodiscard]] std::byte* take_packed() noexcept;

 private:
  RankState& state_;
  TypedLayout* const layout_;
  net::Buffer buffer_;
  std::byte* packed_ = nullptr;
  Side side_{};
};

/// Starts the operation of a request of type send or receive, whose `arguments` are set. Also
/// again, for persistent ones. Result: an error class.
int start_message(RankState& state, Request& request) noexcept;

/// A buffered send: copies, and leaves the rest to itself. Result: an error class.
int send_buffered(const Call& call, const Side& side) noexcept;

}  // namespace sterna::mpi
