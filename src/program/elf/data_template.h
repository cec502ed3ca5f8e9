// The data of a program, relocated once: what each new rank gets as its own by a copy.
//
// Words that point into the rank's own images hold offsets from the start of its images region and
// are listed; everything else is the same for all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "program/elf/object_graph.h"
#include "program/elf/symbol_scope.h"

namespace sterna::program {

/// A writable segment: [offset, offset + bytes) of the images region.
struct TemplatePart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t used_bytes = 0;             // Beyond, all is zero.
  std::unique_ptr<std::byte[]> contents;    // used_bytes at least.
  std::vector<std::uint64_t> own_pointers;  // Of words, from the start of the part; ascending.
};

/// Done for each rank once its images are in place.
struct LateCopy {  // Of a variable that each rank has (stdout) into the executable's own.
  std::uint64_t to, from, bytes;
};
struct LateChoice {  // A word that a function of the program computes (IFUNC).
  std::uint64_t to, resolver;
  std::int64_t addend;
};

class DataTemplate {
 public:
  static Result<DataTemplate> build(const ObjectGraph& graph, SymbolScope& scope);

  /// Writes the data of a rank whose images region starts at `base`; the memory is zero.
  void copy_to(std::byte* base) const noexcept;
  [[nodiscard]] std::span<const LateCopy> late_copies() const noexcept { return late_copies_; }
  [[nodiscard]] std::span<const LateChoice> late_choices() const noexcept { return late_choices_; }
  [[nodiscard]] std::span<const TemplatePart> parts() const noexcept { return parts_; }
  /// Covers every address of the host that was bound: where they are, and which variants.
  [[nodiscard]] std::uint64_t host_hash() const noexcept { return host_hash_; }

 private:
  friend class Relocator;

  std::vector<TemplatePart> parts_;
  std::vector<LateCopy> late_copies_;
  std::vector<LateChoice> late_choices_;
  std::uint64_t host_hash_ = 0;
};

}  // namespace sterna::program
