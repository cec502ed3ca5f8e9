// Look-ups in a parsed ELF file.
#include "program/elf/elf_file.h"

#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/syscall.h"

namespace sterna::program {
namespace {

std::uint32_t gnu_hash(std::string_view name) noexcept {
  std::uint32_t hash = 5381;
  for (const char c : name) {
    hash = hash * 33 + static_cast<unsigned char>(c);
  }
  return hash;
}

std::uint32_t old_hash(std::string_view name) noexcept {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fff'ffff;
  }
  return hash;
}

bool is_definition(const Elf64_Sym& symbol) noexcept {
  const auto binding = ELF64_ST_BIND(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF &&
         (binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE);
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const long fd = system_call([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (fd < 0) {
    return system_error("cannot open " + path, static_cast<int>(-fd));
  }
  const FileDescriptor file{static_cast<int>(fd)};
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{Errc::invalid_argument, path + " is not a file"};
  }
  MappedFile mapped;
  if (status.st_size > 0) {
    const auto bytes = static_cast<std::size_t>(status.st_size);
    void* base = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (base == MAP_FAILED) {
      return system_error("cannot map " + path, last_error_number());
    }
    mapped.bytes_ = {static_cast<const std::byte*>(base), bytes};
  }
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_{std::exchange(other.bytes_, {})} {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

std::vector<std::uint64_t> ElfFile::packed_relocations() const {
  // An even word is an address; an odd one a bitmap of the 63 words that follow.
  std::vector<std::uint64_t> addresses;
  std::uint64_t next = 0;
  for (const std::uint64_t word : relr_) {
    if ((word & 1) == 0) {
      addresses.push_back(word);
      next = word + 8;
      continue;
    }
    for (std::uint32_t bit = 0; bit < 63; ++bit) {
      if ((word >> (bit + 1) & 1) != 0) {
        addresses.push_back(next + std::uint64_t{bit} * 8);
      }
    }
    next += 63 * 8;
  }
  return addresses;
}

const Elf64_Sym* ElfFile::symbol(std::uint32_t index) const noexcept {
  return index < symbols_.size() ? &symbols_[index] : nullptr;
}

std::string_view ElfFile::symbol_name(const Elf64_Sym& symbol) const noexcept {
  if (symbol.st_name >= strings_.size()) {
    return {};
  }
  const std::string_view rest = strings_.substr(symbol.st_name);
  return rest.substr(0, rest.find('\0'));
}

SymbolVersion ElfFile::symbol_version(std::uint32_t index) const noexcept {
  if (index >= version_indexes_.size()) {
    return {};
  }
  const std::uint32_t version = version_indexes_[index] & 0x7fffu;
  return version < versions_.size() ? versions_[version] : SymbolVersion{};
}

/// Of one name, while its chain is walked.
struct ElfFile::Search {
  std::string_view name, version;
  const Elf64_Sym* found = nullptr;
  const Elf64_Sym* other = nullptr;  // What will do when the best does not exist.
};

bool ElfFile::is_best(std::uint64_t index, Search& search) const noexcept {
  const Elf64_Sym* candidate = symbol(static_cast<std::uint32_t>(index));
  if (candidate == nullptr || !is_definition(*candidate) ||
      symbol_name(*candidate) != search.name) {
    return false;
  }
  const std::string_view defined = symbol_version(static_cast<std::uint32_t>(index)).name;
  const bool is_hidden =
      index < version_indexes_.size() && (version_indexes_[index] & 0x8000u) != 0;
  if (search.version.empty() ? !is_hidden : defined == search.version) {
    search.found = candidate;
    return true;
  }
  if (search.other == nullptr && (search.version.empty() || defined.empty())) {
    search.other = candidate;
  }
  return false;
}

void ElfFile::find_by_gnu_hash(Search& search) const noexcept {
  const std::uint32_t hash = gnu_hash(search.name);
  std::uint64_t index = buckets_[hash % buckets_.size()];
  for (; index >= first_hashed_ && index - first_hashed_ < chains_.size(); ++index) {
    const std::uint32_t chain = chains_[index - first_hashed_];
    if (((chain | 1) == (hash | 1) && is_best(index, search)) || (chain & 1) != 0) {
      return;
    }
  }
}

void ElfFile::find_by_old_hash(Search& search) const noexcept {
  std::uint32_t index = buckets_[old_hash(search.name) % buckets_.size()];
  // A damaged chain may be a ring.
  for (std::size_t steps = 0; index != 0 && index < chains_.size() && steps < chains_.size();
       ++steps) {
    if (is_best(index, search)) {
      return;
    }
    index = chains_[index];
  }
}

const Elf64_Sym* ElfFile::find(std::string_view name, std::string_view version) const noexcept {
  Search search{name, version};
  if (!buckets_.empty()) {
    has_old_hash_ ? find_by_old_hash(search) : find_by_gnu_hash(search);
  }
  return search.found != nullptr ? search.found : search.other;
}

std::span<const std::byte> ElfFile::contents(ImageRange range) const noexcept {
  for (const Segment& segment : segments_) {
    if (range.address >= segment.address && range.address - segment.address <= segment.file_bytes &&
        range.bytes <= segment.file_bytes - (range.address - segment.address)) {
      return bytes_.subspan(segment.file_offset + (range.address - segment.address), range.bytes);
    }
  }
  return {};
}

bool ElfFile::is_in_writable(ImageRange range) const noexcept {
  for (const Segment& segment : segments_) {
    if (segment.is_writable && range.address >= segment.address &&
        range.address - segment.address <= segment.bytes &&
        range.bytes <= segment.bytes - (range.address - segment.address)) {
      return true;
    }
  }
  return false;
}

}  // namespace sterna::program
