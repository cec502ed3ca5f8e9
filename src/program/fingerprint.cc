// What must be equal in two nodes so that a rank can go on in the other.
#include <cstring>
#include <span>
#include <string_view>

#include <elf.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <link.h>

#include "base/hash.h"
#include "program/elf/parts.h"
#include "program/elf/tls_block.h"

namespace sterna::program {
namespace {

/// The build id among the notes of a loaded object; empty: it was linked without one.
std::span<const std::byte> build_id_of(const dl_phdr_info& object) noexcept {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const Elf64_Phdr& header = object.dlpi_phdr[i];
    const auto* at = reinterpret_cast<const std::byte*>(object.dlpi_addr + header.p_vaddr);
    const std::byte* const end = at + header.p_memsz;
    while (header.p_type == PT_NOTE && at + sizeof(Elf64_Nhdr) <= end) {
      Elf64_Nhdr note;
      std::memcpy(&note, at, sizeof note);
      const std::byte* const name = at + sizeof note;
      const std::byte* const text = name + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(name, "GNU", 4) == 0) {
        return {text, note.n_descsz};
      }
      at = text + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return {};
}

struct Listing {
  const ObjectGraph& graph;
  std::string text;
};

/// A line for what ranks share with us, and for our own parts: one version of the runtime on both
/// sides, also of what a program does not ask for by name.
int list_object(dl_phdr_info* object, std::size_t, void* argument) noexcept {
  auto& listing = *static_cast<Listing*>(argument);
  const std::string_view path = object->dlpi_name;
  const std::string_view name =
      path.empty() ? std::string_view{"sterna-node"} : path.substr(path.rfind('/') + 1);
  bool is_part =
      path.empty() || name.starts_with("libsterna.so") || name.starts_with("libmpi_abi.so");
  for (const HostLibrary& library : listing.graph.host) {
    is_part = is_part || library.address == object->dlpi_addr;
  }
  if (is_part) {
    listing.text += fmt::format("{} is {:016x} at {:#x}\n", name, hash_bytes(build_id_of(*object)),
                                object->dlpi_addr);
  }
  return 0;
}

}  // namespace

std::string Program::describe() const {
  std::string text = fmt::format("glibc {}\n", ::gnu_get_libc_version());
  for (const auto& object : parts_->graph.objects) {
    const ElfFile& file = object->file;
    const auto identity = file.build_id().empty() ? object->mapping.bytes() : file.build_id();
    text += fmt::format("{} is {:016x} at {:#x}\n", file.path().substr(file.path().rfind('/') + 1),
                        hash_bytes(identity), object->offset);
  }
  Listing listing{parts_->graph, std::move(text)};
  ::dl_iterate_phdr(list_object, &listing);
  text = std::move(listing.text);
  const TlsGeometry& tls = parts_->tls.geometry();
  text += fmt::format("thread block {} + {}, room {}\n", tls.static_bytes, tls.pthread_bytes,
                      find_tls_room().bytes);
  text += fmt::format("bound addresses {:016x}\n", parts_->data.host_hash());
  return text;
}

std::uint64_t Program::fingerprint() const noexcept {
  return hash_text(describe());
}

}  // namespace sterna::program
