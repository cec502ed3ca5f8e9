// The thread-local block of a rank: made as libc makes that of a new thread, but in the rank's
// slot.
//
// Layout (x86-64): [host libraries' variables | private objects' | struct pthread], thread pointer
// at struct pthread. aarch64: [struct pthread | private objects' | host libraries'].
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "memory/rank_slot.h"
#include "program/elf/object_graph.h"

namespace sterna::program {

/// How this process's libc lays out a thread. Asked from libc itself.
struct TlsGeometry {
  std::size_t static_bytes = 0;   // Of all variables on their side of the pointer, at most.
  std::size_t pthread_bytes = 0;  // sizeof(struct pthread)
  std::size_t list_offset = 0, tid_offset = 0, specific_offset = 0;  // In struct pthread.
  std::ptrdiff_t rseq_offset = 0;  // From the thread pointer; 0: this libc has none.
};

/// A thread's block as it is at its start, from which ranks' are copied.
class TlsTemplate {
 public:
  /// Of the calling kernel thread's process: all host libraries are loaded.
  static Result<TlsTemplate> build();

  /// Makes the block in slot.tls and sets slot.thread_pointer and slot.tls_bytes_used. Private
  /// objects' initial values are taken from the rank's own images, which are in place.
  Result<> create(memory::RankSlot& slot, const ObjectGraph& graph) const noexcept;

  [[nodiscard]] const TlsGeometry& geometry() const noexcept { return geometry_; }

 private:
  struct Piece {
    std::ptrdiff_t offset;  // From the thread pointer.
    std::vector<std::byte> bytes;
  };
  struct DtvEntry {  // As in libc since 2.26.
    void* value;
    void* to_free;
  };

  void keep(const std::byte* begin, const std::byte* end, const std::byte* pointer);

  TlsGeometry geometry_;
  std::vector<Piece> pieces_;  // All that is not zero of the host libraries' variables.
  std::vector<DtvEntry> dtv_;  // From its length word on; addresses are offsets from the pointer.
  std::vector<bool> dtv_is_own_;
};

/// Initialises the private objects' thread-local variables next to `pointer`, for the rank or for a
/// kernel thread that it has created. `images` is the start of its images region.
void init_private_tls(const ObjectGraph& graph, std::uintptr_t images,
                      std::uintptr_t pointer) noexcept;

/// Where the executable left room for ranks' variables: node/tls_reserve.S. Zero bytes: nowhere.
[[nodiscard]] TlsRoom find_tls_room() noexcept;

}  // namespace sterna::program
