// Parses an ELF file: headers, then the dynamic section, then the tables it names.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/elf_machine.h"
#include "program/elf_file.h"

namespace sterna::program {
namespace {

constexpr std::uint64_t kImageBytesMax = std::uint64_t{1} << 36;
constexpr std::uint32_t kSegmentCountMax = 64;
constexpr std::uint32_t kVersionCountMax = 4096;
constexpr std::uint64_t kDtRelr = 36, kDtRelrSize = 35;  // Younger than some elf.h.

}  // namespace

/// One use: fills `file_`, keeps the first thing found wrong.
class ElfFile::Parser {
 public:
  explicit Parser(ElfFile& file) noexcept : file_{file} {}

  Result<> run() {
    if (read_header() && read_segments() && read_dynamic() && read_tables() && read_versions() &&
        read_hash()) {
      return Done{};
    }
    return Error{code_, file_.path_ + ": " + wrong_};
  }

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

  bool read_header() {
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
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
        header_.e_machine != elf_machine::kMachine) {
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

  bool read_segments() {
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

  bool add_load(const Elf64_Phdr& header) {
    const std::uint64_t size = file_.bytes_.size();
    if (header.p_filesz > header.p_memsz || header.p_offset > size ||
        header.p_filesz > size - header.p_offset || header.p_vaddr > kImageBytesMax ||
        header.p_memsz > kImageBytesMax || (header.p_vaddr - header.p_offset) % 4096 != 0) {
      return fail("has a segment that is not all in the file: the file is damaged or cut short");
    }
    if (header.p_memsz == 0) {
      return true;
    }
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

  bool set_tls(const Elf64_Phdr& header) {
    std::span<const std::byte> initial;
    if (header.p_filesz > header.p_memsz || header.p_memsz > kImageBytesMax ||
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

  void find_build_id(const Elf64_Phdr& header) {
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

  bool read_dynamic() {
    for (const Elf64_Dyn& entry : dynamic_) {
      const auto tag = static_cast<std::uint64_t>(entry.d_tag);
      if (tag == DT_NULL) {
        break;
      }
      if (tag < values_.size()) {
        values_[tag] = {entry.d_un.d_val, true};
      } else if (tag == DT_GNU_HASH) {
        gnu_hash_ = {entry.d_un.d_val, true};
      } else if (tag == DT_VERSYM) {
        versym_ = {entry.d_un.d_val, true};
      } else if (tag == DT_VERDEF) {
        verdef_ = {entry.d_un.d_val, true};
      } else if (tag == DT_VERNEED) {
        verneed_ = {entry.d_un.d_val, true};
      }
    }
    if (values_[DT_TEXTREL].is_there ||
        (values_[DT_FLAGS].value & DF_TEXTREL) != 0) {
      return fail("has relocations in its text, so it cannot be shared: rebuild it with -fPIE",
                  Errc::unsupported);
    }
    return true;
  }

  bool read_tables() {
    std::span<const char> strings;
    if (!table_at(values_[DT_STRTAB].value, values_[DT_STRSZ].value, strings)) {
      return false;
    }
    file_.strings_ = {strings.data(), strings.size()};
    file_.symbols_ = rest_at<Elf64_Sym>(values_[DT_SYMTAB].value);
    file_.soname_ = string_of(DT_SONAME);
    file_.rpath_ = string_of(DT_RPATH);
    file_.runpath_ = string_of(DT_RUNPATH);
    for (const Elf64_Dyn& entry : dynamic_) {
      if (entry.d_tag == DT_NULL) {
        break;
      }
      if (entry.d_tag == DT_NEEDED) {
        file_.needed_.push_back(string_at(entry.d_un.d_val));
      }
    }
    file_.init_function_ = values_[DT_INIT].value;
    file_.fini_function_ = values_[DT_FINI].value;
    return read_array(DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ, file_.preinit_array_) &&
           read_array(DT_INIT_ARRAY, DT_INIT_ARRAYSZ, file_.init_array_) &&
           read_array(DT_FINI_ARRAY, DT_FINI_ARRAYSZ, file_.fini_array_) && read_relocations();
  }

  bool read_array(std::uint64_t tag, std::uint64_t size_tag, ImageRange& range) {
    range = {values_[tag].value, values_[size_tag].value / 8 * 8};
    if (range.bytes != 0 && (range.address % 8 != 0 || !file_.is_in_writable(range))) {
      return fail("has an array of initialisers outside of its data: the file is damaged");
    }
    return true;
  }

  bool read_relocations() {
    if (values_[DT_JMPREL].is_there && values_[DT_PLTREL].value != DT_RELA) {
      return fail("has relocations of another kind than its machine uses: the file is damaged");
    }
    return (!values_[DT_RELA].is_there ||
            table_at(values_[DT_RELA].value, values_[DT_RELASZ].value / sizeof(Elf64_Rela),
                     file_.rela_)) &&
           (!values_[DT_JMPREL].is_there ||
            table_at(values_[DT_JMPREL].value, values_[DT_PLTRELSZ].value / sizeof(Elf64_Rela),
                     file_.jmprel_)) &&
           (!values_[kDtRelr].is_there ||
            table_at(values_[kDtRelr].value, values_[kDtRelrSize].value / 8, file_.relr_));
  }

  bool read_versions() {
    if (!versym_.is_there) {
      return true;
    }
    file_.version_indexes_ = rest_at<std::uint16_t>(versym_.value);
    file_.versions_.resize(2);  // Local and unversioned: no names.
    std::uint64_t at = verdef_.value;
    for (std::uint32_t count = 0; verdef_.is_there && count < kVersionCountMax; ++count) {
      std::span<const Elf64_Verdef> definition;
      std::span<const Elf64_Verdaux> name;
      if (!table_at(at, 1, definition) || !table_at(at + definition[0].vd_aux, 1, name)) {
        return false;
      }
      add_version(definition[0].vd_ndx, {string_at(name[0].vda_name), {}});
      if (definition[0].vd_next == 0) {
        break;
      }
      at += definition[0].vd_next;
    }
    return !verneed_.is_there || read_needs();
  }

  bool read_needs() {
    std::uint64_t at = verneed_.value;
    std::uint32_t count = 0;
    for (std::span<const Elf64_Verneed> need; count < kVersionCountMax; at += need[0].vn_next) {
      if (!table_at(at, 1, need)) {
        return false;
      }
      std::uint64_t item = at + need[0].vn_aux;
      for (std::span<const Elf64_Vernaux> version; count < kVersionCountMax; ++count) {
        if (!table_at(item, 1, version)) {
          return false;
        }
        add_version(version[0].vna_other,
                    {string_at(version[0].vna_name), string_at(need[0].vn_file)});
        if (version[0].vna_next == 0) {
          break;
        }
        item += version[0].vna_next;
      }
      if (need[0].vn_next == 0) {
        break;
      }
      ++count;
    }
    return true;
  }

  void add_version(std::uint32_t index, SymbolVersion version) {
    index &= 0x7fff;
    if (index >= 2 && index < kVersionCountMax) {
      file_.versions_.resize(std::max<std::size_t>(file_.versions_.size(), index + 1));
      file_.versions_[index] = version;
    }
  }

  bool read_hash() {
    if (!gnu_hash_.is_there) {
      // Nothing can be found in it, which is right for a program that defines nothing for others.
      return true;
    }
    std::span<const std::uint32_t> header;
    if (!table_at(gnu_hash_.value, 4, header)) {
      return false;
    }
    const std::uint64_t buckets = gnu_hash_.value + 16 + std::uint64_t{header[2]} * 8;
    if (header[0] == 0 || !table_at(buckets, header[0], file_.buckets_)) {
      return fail("has a damaged table of symbols");
    }
    file_.first_hashed_ = header[1];
    file_.chains_ = rest_at<std::uint32_t>(buckets + std::uint64_t{header[0]} * 4);
    return true;
  }

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
