// Parses an ELF file: its headers. The tables of its dynamic section: elf_tables.cc.
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/elf_machine.h"
#include "memory/layout.h"
#include "program/elf/elf_parser.h"

namespace sterna::program {
namespace {

constexpr std::uint32_t kSegmentCountMax = 64;
// The images region of a rank begins at a quarter of its slot, whose bytes are a power of two.
constexpr std::uint64_t kImageAlignmentMax = std::uint64_t{1} << (memory::kRankSlotShiftMin - 2);

}  // namespace

Result<> ElfFile::Parser::run() {
  if (read_header() && read_segments() && read_dynamic() && read_tables() && read_versions() &&
      read_hash()) {
    return Done{};
  }
  return Error{code_, file_.path_ + ": " + wrong_};
}

bool ElfFile::Parser::read_header() {
  const auto bytes = file_.bytes_;
  if (bytes.size() >= 2 && std::memcmp(bytes.data(), "#!", 2) == 0) {
    return fail(
        "is a script; only the program that interprets it can be a rank: run the interpreter "
        "with the script as its argument",
        Errc::invalid_argument);
  }
  if (bytes.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) {
    return fail("is not an executable (ELF) file", Errc::invalid_argument);
  }
  std::memcpy(&header_, bytes.data(), sizeof header_);
  if (is_of_other_machine(bytes)) {
    return fail("was built for another kind of machine than this one", Errc::unsupported);
  }
  if (header_.e_type == ET_EXEC) {
    return fail(
        "is not position-independent, so it cannot be loaded once for each rank: rebuild it "
        "with -fPIE -pie (and without -static)",
        Errc::unsupported);
  }
  if (header_.e_type != ET_DYN) {
    return fail("is not an executable or shared library (an object file or a core?)",
                Errc::invalid_argument);
  }
  if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_phnum == 0 ||
      header_.e_phnum > kSegmentCountMax) {
    return fail("has impossible program headers: the file is damaged");
  }
  file_.entry_ = header_.e_entry;
  return true;
}

bool ElfFile::Parser::read_segments() {
  std::span<const Elf64_Phdr> headers;
  if (!table(header_.e_phoff, header_.e_phnum, headers)) {
    return false;
  }
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_LOAD && !add_load(header)) {
      return false;
    }
    file_.has_interpreter_ |= header.p_type == PT_INTERP;
    if (header.p_type == PT_GNU_EH_FRAME) {
      file_.unwind_table_ = header.p_vaddr;
    }
  }
  if (file_.segments_.empty()) {
    return fail("has nothing to load: the file is damaged");
  }
  // The headers themselves are at the start of the first segment, where linkers leave them.
  if (const Segment& first = file_.segments_.front(); first.file_offset == 0) {
    file_.program_headers_ = {first.address + header_.e_phoff,
                              std::uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr)};
  }
  // Only now, since these are found through the loaded segments.
  for (const Elf64_Phdr& header : headers) {
    if ((header.p_type == PT_TLS && !set_tls(header)) ||
        (header.p_type == PT_DYNAMIC &&
         !table(header.p_offset, header.p_filesz / sizeof(Elf64_Dyn), dynamic_))) {
      return false;
    }
    if (header.p_type == PT_NOTE) {
      find_build_id(header);
    }
  }
  if (dynamic_.empty()) {
    return fail("is statically linked: build it without -static, with -fPIE -pie",
                Errc::unsupported);
  }
  if (file_.unwind_table_ >= file_.image_bytes_ || file_.entry_ >= file_.image_bytes_) {
    return fail("has an address outside of its image: the file is damaged");
  }
  return true;
}

bool ElfFile::Parser::add_load(const Elf64_Phdr& header) {
  const std::uint64_t size = file_.bytes_.size();
  if (header.p_filesz > header.p_memsz || header.p_offset > size ||
      header.p_filesz > size - header.p_offset || header.p_vaddr > kElfImageBytesMax ||
      header.p_memsz > kElfImageBytesMax || (header.p_vaddr - header.p_offset) % 4096 != 0) {
    return fail("has a segment that is not all in the file: the file is damaged or cut short");
  }
  if (header.p_memsz == 0) {
    return true;
  }
  const std::uint64_t alignment = std::max<std::uint64_t>(header.p_align, 4096);
  if (!std::has_single_bit(alignment) || alignment > kImageAlignmentMax) {
    return fail("aligns its data to more than 256 MiB, more than ranks can be", Errc::unsupported);
  }
  file_.image_alignment_ = std::max(file_.image_alignment_, alignment);
  if (header.p_vaddr / 4096 * 4096 < file_.image_bytes_) {
    return fail("has segments that overlap or are not in order: the file is damaged");
  }
  file_.segments_.push_back({.address = header.p_vaddr,
                             .bytes = header.p_memsz,
                             .file_offset = header.p_offset,
                             .file_bytes = header.p_filesz,
                             .is_writable = (header.p_flags & PF_W) != 0,
                             .is_executable = (header.p_flags & PF_X) != 0});
  file_.image_bytes_ = (header.p_vaddr + header.p_memsz + 4095) / 4096 * 4096;
  return true;
}

bool ElfFile::Parser::set_tls(const Elf64_Phdr& header) {
  std::span<const std::byte> initial;
  if (header.p_filesz > header.p_memsz || header.p_memsz > kElfImageBytesMax ||
      !table(header.p_offset, header.p_filesz, initial)) {
    return fail("has a thread-local segment that is not in the file: the file is damaged");
  }
  const std::uint64_t alignment = std::max<std::uint64_t>(header.p_align, 1);
  if (!std::has_single_bit(alignment) || alignment > 4096) {
    return fail("aligns its thread-local variables to more than a page", Errc::unsupported);
  }
  if (!initial.empty() && file_.contents({header.p_vaddr, header.p_filesz}).empty()) {
    return fail("has a thread-local segment outside of its image: the file is damaged");
  }
  file_.tls_ = {header.p_vaddr, initial, header.p_memsz, alignment};
  return true;
}

void ElfFile::Parser::find_build_id(const Elf64_Phdr& header) {
  std::uint64_t offset = header.p_offset;
  const std::uint64_t size = file_.bytes_.size();
  if (offset > size || header.p_filesz > size - offset) {
    return;
  }
  const std::uint64_t end = offset + header.p_filesz;
  while (end - offset >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, file_.bytes_.data() + offset, sizeof note);
    const std::uint64_t name = (std::uint64_t{note.n_namesz} + 3) / 4 * 4;
    const std::uint64_t text = (std::uint64_t{note.n_descsz} + 3) / 4 * 4;
    if (name + text > end - offset - sizeof note) {
      return;
    }
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(file_.bytes_.data() + offset + sizeof note, "GNU", 4) == 0) {
      file_.build_id_ = file_.bytes_.subspan(offset + sizeof note + name, note.n_descsz);
    }
    offset += sizeof note + name + text;
  }
}

bool ElfFile::is_of_other_machine(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) {
    return false;
  }
  // What is looked at lies at the same place in the headers of both classes.
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
         header.e_machine != elf_machine::kMachine;
}

Result<ElfFile> ElfFile::parse(std::string path, std::span<const std::byte> bytes) {
  ElfFile file;
  file.path_ = std::move(path);
  file.bytes_ = bytes;
  if (auto parsed = Parser{file}.run(); !parsed) {
    return parsed.error();
  }
  return file;
}

}  // namespace sterna::program
