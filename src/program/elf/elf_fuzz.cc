// Any bytes are parsed or refused: all look-ups of what was accepted stay inside of the bytes.
#include <cstdint>
#include <cstring>
#include <vector>

#include "program/elf/elf_file.h"
#include "program/elf/library_search.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Exactly as long as the input and aligned as a mapping is, so that sanitizers see an overrun.
  std::vector<std::uint64_t> words((size + 7) / 8);
  if (size != 0) {
    std::memcpy(words.data(), data, size);
  }
  const std::span bytes{reinterpret_cast<const std::byte*>(words.data()), size};
  (void)sterna::program::find_in_cache({reinterpret_cast<const char*>(bytes.data()), size}, "libc");
  auto parsed = sterna::program::ElfFile::parse("input", bytes);
  if (!parsed) {
    return 0;
  }
  const sterna::program::ElfFile& file = parsed.value();
  std::size_t sum = 0;
  for (std::uint32_t index = 0; index < 10'000; ++index) {
    const Elf64_Sym* symbol = file.symbol(index);
    if (symbol == nullptr) {
      break;
    }
    sum += file.symbol_name(*symbol).size() + file.symbol_version(index).name.size();
    sum += file.find(file.symbol_name(*symbol), file.symbol_version(index).name) != nullptr;
  }
  for (const Elf64_Rela& relocation : file.relocations()) {
    sum += relocation.r_info;
  }
  for (const Elf64_Rela& relocation : file.call_relocations()) {
    sum += relocation.r_info;
  }
  for (const std::string_view name : file.needed()) {
    sum += name.size();
  }
  sum += file.packed_relocations().size();
  sum += file.find("main") != nullptr ? 1 : 0;
  for (const std::byte byte : file.build_id()) {
    sum += static_cast<std::size_t>(byte);
  }
  return sum == static_cast<std::size_t>(-1) ? 1 : 0;
}
