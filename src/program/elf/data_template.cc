// Copies a template into a rank.
#include "program/elf/data_template.h"

#include <cstring>

namespace sterna::program {

void DataTemplate::copy_to(std::byte* base) const noexcept {
  const auto shift = reinterpret_cast<std::uint64_t>(base);
  for (const TemplatePart& part : parts_) {
    std::byte* to = base + part.offset;
    std::memcpy(to, part.contents.get(), part.used_bytes);
    for (const std::uint64_t offset : part.own_pointers) {
      // Relocated words may be unaligned in packed structures.
      std::uint64_t word;
      std::memcpy(&word, to + offset, sizeof word);
      word += shift;
      std::memcpy(to + offset, &word, sizeof word);
    }
  }
}

}  // namespace sterna::program
