// A message of a datatype as the transport sees it where it packs and unpacks by itself.
#pragma once

#include "mpi/datatype/datatype.h"
#include "net/message.h"

namespace sterna::mpi {

class TypedLayout final : public net::Layout {
 public:
  /// The type outlives the message.
  void describe(const TypedBuffer& typed) noexcept { typed_ = typed; }

  void copy_out(std::uint64_t offset, std::byte* to, std::uint64_t bytes) const noexcept override {
    (void)pack(typed_, offset, {to, bytes});
  }
  void copy_in(std::uint64_t offset, const std::byte* from,
               std::uint64_t bytes) const noexcept override {
    (void)unpack(typed_, offset, {from, bytes});
  }

 private:
  TypedBuffer typed_{};
};

}  // namespace sterna::mpi
