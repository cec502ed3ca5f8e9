// The parser of ELF files, internal to elf_parse.cc and elf_tables.cc.
#pragma once

#include <array>
#include <limits>

#include "program/elf/elf_file.h"

namespace sterna::program {

inline constexpr std::uint64_t kElfImageBytesMax = std::uint64_t{1} << 36;

/// One use: fills `file_`, keeps the first thing found wrong.
class ElfFile::Parser {
 public:
  explicit Parser(ElfFile& file) noexcept : file_{file} {}

  Result<> run();

 private:
  struct DynamicValue {
    std::uint64_t value = 0;
    bool is_there = false;
  };

  bool fail(const char* what, Errc code = Errc::malformed) {
    wrong_ = what;
    code_ = code;
    return false;
  }

  /// `count` objects at a file offset; empty span and a failure if they are not all there.
  template <typename T>
  bool table(std::uint64_t offset, std::uint64_t count, std::span<const T>& result) {
    const std::uint64_t size = file_.bytes_.size();
    if (offset > size || count > (size - offset) / sizeof(T)) {
      return fail("a table reaches beyond the end of the file: the file is damaged");
    }
    if (offset % alignof(T) != 0) {
      return fail("a table is not aligned: the file is damaged");
    }
    result = {reinterpret_cast<const T*>(file_.bytes_.data() + offset), count};
    return true;
  }

  /// As table, by image address.
  template <typename T>
  bool table_at(std::uint64_t address, std::uint64_t count, std::span<const T>& result) {
    if (count > std::numeric_limits<std::uint64_t>::max() / sizeof(T)) {
      return fail("a table is longer than the file: the file is damaged");
    }
    const auto bytes = file_.contents({address, count * sizeof(T)});
    if (bytes.size() != count * sizeof(T) ||
        (reinterpret_cast<std::uintptr_t>(bytes.data()) - base()) % alignof(T) != 0) {
      return fail("a table of the dynamic section lies outside of the file: the file is damaged");
    }
    result = {reinterpret_cast<const T*>(bytes.data()), count};
    return true;
  }

  [[nodiscard]] std::uintptr_t base() const noexcept {
    return reinterpret_cast<std::uintptr_t>(file_.bytes_.data());
  }

  /// All objects of type T from an address to the end of its segment in the file.
  template <typename T>
  std::span<const T> rest_at(std::uint64_t address) {
    for (const Segment& segment : file_.segments_) {
      if (address >= segment.address && address - segment.address < segment.file_bytes) {
        std::span<const T> result;
        if (!table_at(address, (segment.file_bytes - (address - segment.address)) / sizeof(T),
                      result)) {
          return {};
        }
        return result;
      }
    }
    return {};
  }

  bool read_header();
  bool read_segments();
  bool add_load(const Elf64_Phdr& header);
  bool set_tls(const Elf64_Phdr& header);
  void find_build_id(const Elf64_Phdr& header);
  bool read_dynamic();
  bool read_tables();
  bool read_array(std::uint64_t tag, std::uint64_t size_tag, ImageRange& range);
  bool read_relocations();
  bool read_versions();
  bool read_needs();
  void add_version(std::uint32_t index, SymbolVersion version);
  bool read_hash();
  bool read_old_hash();

  std::string_view string_at(std::uint64_t offset) const noexcept {
    if (offset >= file_.strings_.size()) {
      return {};
    }
    const std::string_view rest = file_.strings_.substr(offset);
    return rest.substr(0, rest.find('\0'));
  }
  std::string_view string_of(std::uint64_t tag) const noexcept {
    return values_[tag].is_there ? string_at(values_[tag].value) : std::string_view{};
  }

  ElfFile& file_;
  Elf64_Ehdr header_{};
  std::span<const Elf64_Dyn> dynamic_;
  std::array<DynamicValue, 64> values_;
  DynamicValue gnu_hash_, versym_, verdef_, verneed_;
  std::string wrong_;
  Errc code_ = Errc::malformed;
};

}  // namespace sterna::program
