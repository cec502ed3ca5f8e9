// Parses an ELF file: the tables that its dynamic section names.
#include <algorithm>

#include "program/elf/elf_parser.h"

namespace sterna::program {
namespace {

constexpr std::uint32_t kVersionCountMax = 4096;
constexpr std::uint64_t kDtRelr = 36, kDtRelrSize = 35;  // Younger than some elf.h.

}  // namespace

bool ElfFile::Parser::read_dynamic() {
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
  if (values_[DT_TEXTREL].is_there || (values_[DT_FLAGS].value & DF_TEXTREL) != 0) {
    return fail("has relocations in its text, so it cannot be shared: rebuild it with -fPIE",
                Errc::unsupported);
  }
  return true;
}

bool ElfFile::Parser::read_tables() {
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

bool ElfFile::Parser::read_array(std::uint64_t tag, std::uint64_t size_tag, ImageRange& range) {
  range = {values_[tag].value, values_[size_tag].value / 8 * 8};
  if (range.bytes != 0 && (range.address % 8 != 0 || !file_.is_in_writable(range))) {
    return fail("has an array of initialisers outside of its data: the file is damaged");
  }
  return true;
}

bool ElfFile::Parser::read_relocations() {
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

bool ElfFile::Parser::read_versions() {
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

bool ElfFile::Parser::read_needs() {
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

void ElfFile::Parser::add_version(std::uint32_t index, SymbolVersion version) {
  index &= 0x7fff;
  if (index >= 2 && index < kVersionCountMax) {
    file_.versions_.resize(std::max<std::size_t>(file_.versions_.size(), index + 1));
    file_.versions_[index] = version;
  }
}

bool ElfFile::Parser::read_hash() {
  if (!gnu_hash_.is_there) {
    return read_old_hash();
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

/// Of linkers that were told so (--hash-style=sysv), or that know no other.
bool ElfFile::Parser::read_old_hash() {
  const auto& [at, is_there] = values_[DT_HASH];
  if (!is_there) {
    // Nothing can be found in it, which is right for a program that defines nothing for others.
    return true;
  }
  std::span<const std::uint32_t> counts;  // Of buckets and of chains, which are as many as symbols.
  if (!table_at(at, 2, counts)) {
    return false;
  }
  const std::uint64_t chains = at + 8 + std::uint64_t{counts[0]} * 4;
  if (counts[0] == 0 || !table_at(at + 8, counts[0], file_.buckets_) ||
      !table_at(chains, counts[1], file_.chains_)) {
    return fail("has a damaged table of symbols");
  }
  file_.has_old_hash_ = true;
  return true;
}

}  // namespace sterna::program
