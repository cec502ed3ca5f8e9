// The files of a program: the private ones, loaded by us once for each rank, and the host's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/syscall.h"
#include "program/elf/elf_file.h"

namespace sterna::program {

/// Images start here in the images region; the rank's RankData comes first.
inline constexpr std::uint64_t kFirstImageOffset = 64 * 1024;

struct PrivateObject {
  MappedFile mapping;
  ElfFile file;
  FileDescriptor descriptor;         // Its text is mapped from here, once for each rank.
  std::uint64_t offset = 0;          // Of its address 0, from the start of the images region.
  std::int64_t tls_offset = 0;       // Of its thread-local segment, from the thread pointer.
  std::vector<std::uint32_t> needs;  // Private ones, by index.
};

/// A library that all ranks and the host share.
struct HostLibrary {
  std::string name;  // As the program asks for it.
  std::string path;
  void* handle = nullptr;  // Of dlopen; never closed.
  std::uint64_t address = 0;
};

/// Where the host left room, just next to the thread pointer, for thread-local variables of private
/// objects: `bytes` on its side of the pointer.
struct TlsRoom {
  std::uint64_t bytes = 0;
};

struct ObjectGraph {
  std::vector<std::unique_ptr<PrivateObject>> objects;  // Breadth-first; first the executable.
  std::vector<HostLibrary> host;
  std::vector<std::uint32_t> init_order;  // Indexes of objects: what is needed comes first.
  std::uint64_t image_bytes = 0;          // Of the images region.
  std::uint64_t tls_bytes = 0;            // Of the room.
  std::uint64_t tls_alignment = 1;        // Of the thread pointer, for all in the room.
};

/// Reads the executable at `path` and all it needs, and lays them out.
Result<ObjectGraph> load_objects(const std::string& path, TlsRoom room);

/// True for libraries whose one copy serves host and ranks (libc and its family, libgcc_s, ours).
[[nodiscard]] bool is_host_library(std::string_view name) noexcept;

}  // namespace sterna::program
