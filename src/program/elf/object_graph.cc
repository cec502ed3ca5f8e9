// Breadth-first, as the dynamic linker's scope is.
#include "program/elf/object_graph.h"

#include <algorithm>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>

#include "base/elf_machine.h"
#include "program/elf/library_search.h"

namespace sterna::program {
namespace {

// At least; a file may ask for more.
constexpr std::uint64_t kImageAlignment = 64 * 1024;
constexpr std::size_t kObjectCountMax = 256;

// glibc's parts share state with libc; libgcc_s holds no state but asks for unwind tables
// (node/find_object.cc); ours are the runtime itself.
constexpr std::string_view kHostLibraries[] = {
    "libc.so.",   "libm.so.",       "libgcc_s.so.", "ld-linux",    "libpthread.so.",
    "libdl.so.",  "librt.so.",      "libmvec.so.",  "libutil.so.", "libresolv.so.",
    "libanl.so.", "libmpi_abi.so.", "libsterna.so."};

constexpr std::string_view kOtherMpi[] = {"libmpi.so.", "libmpich.so.", "libmpi_cxx.so.",
                                          "libmpicxx.so.", "libmpi_mpifh.so."};

template <std::size_t n>
bool starts_with_any(std::string_view name, const std::string_view (&prefixes)[n]) noexcept {
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) noexcept {
  return (value + alignment - 1) / alignment * alignment;
}

Result<std::unique_ptr<PrivateObject>> load_object(const std::string& path) {
  auto object = std::make_unique<PrivateObject>();
  auto mapping = MappedFile::open(path);
  if (!mapping) {
    return mapping.error();
  }
  object->mapping = std::move(mapping.value());
  auto file = ElfFile::parse(path, object->mapping.bytes());
  if (!file) {
    return file.error();
  }
  object->file = std::move(file.value());
  const long fd = system_call([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (fd < 0) {
    return system_error("cannot open " + path, static_cast<int>(-fd));
  }
  object->descriptor = FileDescriptor{static_cast<int>(fd)};
  return object;
}

class Loader {
 public:
  Loader(ObjectGraph& graph, TlsRoom room) noexcept : graph_{graph}, room_{room} {}

  Result<> run(const std::string& path) {
    auto executable = load_object(path);
    if (!executable) {
      return executable.error();
    }
    const ElfFile& file = executable.value()->file;
    if (file.entry() == 0) {
      return Error{Errc::unsupported, path + ": is a shared library, not a program"};
    }
    if (file.needed().empty() && !file.has_interpreter()) {
      return Error{Errc::unsupported, path +
                                          ": is statically linked: build it without -static "
                                          "and -static-pie, with -fPIE -pie"};
    }
    add(std::move(executable.value()));
    for (std::size_t index = 0; index < graph_.objects.size(); ++index) {
      for (const std::string_view name : graph_.objects[index]->file.needed()) {
        if (auto added = require(name, *graph_.objects[index]); !added) {
          return added;
        }
      }
    }
    std::vector<bool> seen(graph_.objects.size());
    order(0, seen);
    return place_tls();
  }

 private:
  Result<> require(std::string_view name, PrivateObject& needer) {
    if (starts_with_any(name, kOtherMpi)) {
      return Error{Errc::unsupported, needer.file.path() + " was built for another MPI (it needs " +
                                          std::string{name} + "): rebuild it with Sterna's mpicc"};
    }
    if (is_host_library(name)) {
      return require_host(std::string{name}, needer);
    }
    for (std::uint32_t index = 0; index < graph_.objects.size(); ++index) {
      if (names_[index] == name || graph_.objects[index]->file.soname() == name) {
        needer.needs.push_back(index);
        return Done{};
      }
    }
    auto path = find_library(name, needer.file, graph_.objects.front()->file);
    if (!path) {
      return path.error();
    }
    if (graph_.objects.size() == kObjectCountMax) {
      return Error{Errc::unsupported, needer.file.path() + ": needs more than 256 libraries"};
    }
    auto object = load_object(path.value());
    if (!object) {
      return object.error();
    }
    needer.needs.push_back(static_cast<std::uint32_t>(graph_.objects.size()));
    add(std::move(object.value()), name);
    return Done{};
  }

  Result<> require_host(const std::string& name, const PrivateObject& needer) {
    if (std::any_of(graph_.host.begin(), graph_.host.end(),
                    [&](const HostLibrary& library) { return library.name == name; })) {
      return Done{};
    }
    void* handle = ::dlopen(name.c_str(), RTLD_NOW);
    if (handle == nullptr) {
      const char* reason = ::dlerror();
      return Error{Errc::unsupported, needer.file.path() + " needs " + name +
                                          ", which cannot be loaded: " +
                                          (reason != nullptr ? reason : "unknown reason")};
    }
    link_map* map = nullptr;
    if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) {
      return Error{Errc::system, "cannot ask where " + name + " is loaded"};
    }
    graph_.host.push_back({name, map->l_name, handle, map->l_addr});
    return Done{};
  }

  void add(std::unique_ptr<PrivateObject> object, std::string_view name = {}) {
    object->offset = align_up(std::max(graph_.image_bytes, kFirstImageOffset),
                              object->file.image_alignment());
    graph_.image_bytes = align_up(object->offset + object->file.image_bytes(), kImageAlignment);
    names_.emplace_back(name);
    graph_.objects.push_back(std::move(object));
  }

  void order(std::uint32_t index, std::vector<bool>& seen) {
    seen[index] = true;
    for (const std::uint32_t need : graph_.objects[index]->needs) {
      if (!seen[need]) {
        order(need, seen);
      }
    }
    graph_.init_order.push_back(index);
  }

  /// The executable's must lie at the pointer itself: its code has the offsets built in.
  Result<> place_tls() {
    std::uint64_t used = elf_machine::kTlsReservedAtPointer;
    for (const auto& object : graph_.objects) {
      const TlsSegment& tls = object->file.tls();
      graph_.tls_alignment = std::max(graph_.tls_alignment, tls.alignment);
      if (elf_machine::kTlsIsBelow) {
        used = align_up(used + tls.bytes, tls.alignment);
        object->tls_offset = -static_cast<std::int64_t>(used);
      } else {
        used = align_up(used, tls.alignment);
        object->tls_offset = static_cast<std::int64_t>(used);
        used += tls.bytes;
      }
    }
    if (used > room_.bytes) {
      return Error{Errc::unsupported, graph_.objects.front()->file.path() +
                                          ": it and its libraries have " + std::to_string(used) +
                                          " bytes of thread-local variables, but ranks have " +
                                          std::to_string(room_.bytes)};
    }
    graph_.tls_bytes = used;
    return Done{};
  }

  ObjectGraph& graph_;
  const TlsRoom room_;
  std::vector<std::string> names_;  // Under which each object was asked for.
};

}  // namespace

bool is_host_library(std::string_view name) noexcept {
  return starts_with_any(name, kHostLibraries);
}

Result<ObjectGraph> load_objects(const std::string& path, TlsRoom room) {
  ObjectGraph graph;
  if (auto loaded = Loader{graph, room}.run(path); !loaded) {
    return loaded.error();
  }
  return graph;
}

}  // namespace sterna::program
