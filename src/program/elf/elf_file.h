// A position-independent ELF file (executable or library), read defensively: it is bytes from
// outside. Every offset, size and index is checked against the file before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>

#include "base/result.h"

namespace sterna::program {

/// Bytes of a file, mapped read-only. Moves; what points into it stays right.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile() noexcept = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// A PT_LOAD: [address, address + bytes) of the image, the first file_bytes from the file.
struct Segment {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t file_bytes = 0;
  bool is_writable = false;
  bool is_executable = false;
};

/// A part of the image, by addresses as in the file.
struct ImageRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

struct TlsSegment {
  std::uint64_t address = 0;           // Of the initial contents in the image.
  std::span<const std::byte> initial;  // In the file; the rest of `bytes` is zero.
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 1;
};

/// A version that a symbol needs ("GLIBC_2.34" of "libc.so.6") or is defined with (no library).
struct SymbolVersion {
  std::string_view name;
  std::string_view library;
};

class ElfFile {
 public:
  /// `bytes` must outlive the result; `path` is for the messages.
  static Result<ElfFile> parse(std::string path, std::span<const std::byte> bytes);
  /// Whether this is the start of an ELF file of another class, byte order or processor, which a
  /// search for libraries passes over.
  static bool is_of_other_machine(std::span<const std::byte> bytes) noexcept;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t image_bytes() const noexcept { return image_bytes_; }
  /// What the address of the image must be a multiple of, at least a page.
  [[nodiscard]] std::uint64_t image_alignment() const noexcept { return image_alignment_; }
  [[nodiscard]] std::span<const Segment> segments() const noexcept { return segments_; }
  [[nodiscard]] const TlsSegment& tls() const noexcept { return tls_; }
  [[nodiscard]] std::uint64_t entry() const noexcept { return entry_; }
  [[nodiscard]] std::uint64_t unwind_table() const noexcept { return unwind_table_; }  // 0: none
  [[nodiscard]] ImageRange program_headers() const noexcept { return program_headers_; }
  [[nodiscard]] bool has_interpreter() const noexcept { return has_interpreter_; }

  [[nodiscard]] std::span<const std::string_view> needed() const noexcept { return needed_; }
  [[nodiscard]] std::string_view soname() const noexcept { return soname_; }
  [[nodiscard]] std::string_view rpath() const noexcept { return rpath_; }
  [[nodiscard]] std::string_view runpath() const noexcept { return runpath_; }
  [[nodiscard]] std::span<const std::byte> build_id() const noexcept { return build_id_; }

  [[nodiscard]] std::uint64_t init_function() const noexcept { return init_function_; }  // 0: none
  [[nodiscard]] std::uint64_t fini_function() const noexcept { return fini_function_; }
  [[nodiscard]] ImageRange preinit_array() const noexcept { return preinit_array_; }
  [[nodiscard]] ImageRange init_array() const noexcept { return init_array_; }
  [[nodiscard]] ImageRange fini_array() const noexcept { return fini_array_; }

  [[nodiscard]] std::span<const Elf64_Rela> relocations() const noexcept { return rela_; }
  [[nodiscard]] std::span<const Elf64_Rela> call_relocations() const noexcept { return jmprel_; }
  /// The addresses that DT_RELR packs, each a relative relocation with its addend in place.
  [[nodiscard]] std::vector<std::uint64_t> packed_relocations() const;

  /// Null: no such index.
  [[nodiscard]] const Elf64_Sym* symbol(std::uint32_t index) const noexcept;
  [[nodiscard]] std::string_view symbol_name(const Elf64_Sym& symbol) const noexcept;
  [[nodiscard]] SymbolVersion symbol_version(std::uint32_t index) const noexcept;
  /// A definition that others may use, by whichever table of hashes there is. With a version: that
  /// one, or an unversioned one; without: the default one, else any.
  [[nodiscard]] const Elf64_Sym* find(std::string_view name,
                                      std::string_view version = {}) const noexcept;

  /// `count` words of a writable segment's initial contents, or of any other: empty if the range is
  /// not all in the file.
  [[nodiscard]] std::span<const std::byte> contents(ImageRange range) const noexcept;
  [[nodiscard]] bool is_in_writable(ImageRange range) const noexcept;

 private:
  class Parser;
  struct Search;

  /// Whether symbol `index` is what is sought; else it may be kept as the second best.
  bool is_best(std::uint64_t index, Search& search) const noexcept;
  void find_by_gnu_hash(Search& search) const noexcept;
  void find_by_old_hash(Search& search) const noexcept;

  std::string path_;
  std::span<const std::byte> bytes_;
  std::vector<Segment> segments_;
  TlsSegment tls_;
  std::uint64_t image_bytes_ = 0, image_alignment_ = 4096, entry_ = 0, unwind_table_ = 0;
  ImageRange program_headers_;
  bool has_interpreter_ = false;
  std::vector<std::string_view> needed_;
  std::string_view soname_, rpath_, runpath_, strings_;
  std::span<const std::byte> build_id_;
  std::uint64_t init_function_ = 0, fini_function_ = 0;
  ImageRange preinit_array_, init_array_, fini_array_;
  std::span<const Elf64_Rela> rela_, jmprel_;
  std::span<const std::uint64_t> relr_;
  std::span<const Elf64_Sym> symbols_;
  std::span<const std::uint16_t> version_indexes_;  // Empty: no versions.
  std::vector<SymbolVersion> versions_;             // By version index.
  // A chain of symbols per bucket. GNU hash (its Bloom filter is not used): neighbours, whose
  // hashes the chains hold. The older table: the chains hold the next symbol, 0 is the end.
  std::span<const std::uint32_t> buckets_, chains_;
  std::uint32_t first_hashed_ = 0;
  bool has_old_hash_ = false;
};

}  // namespace sterna::program
