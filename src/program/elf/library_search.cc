// The order of places is that of ld.so(8).
#include "program/elf/library_search.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include "base/elf_machine.h"
#include "base/syscall.h"

namespace sterna::program {
namespace {

constexpr std::string_view kCacheMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kCacheHeaderBytes = 48;
constexpr std::size_t kCacheEntryBytes = 24;

struct CacheEntry {
  std::int32_t flags;
  std::uint32_t name;
  std::uint32_t path;
  std::uint32_t os_version;
  std::uint64_t capabilities;
};
static_assert(sizeof(CacheEntry) == kCacheEntryBytes);

// Flags of an entry: ELF of libc6, for this machine (sysdeps/generic/ldconfig.h of glibc).
constexpr std::int32_t kCacheFlags = elf_machine::kMachine == EM_X86_64 ? 0x0303 : 0x0a03;

std::string_view text_at(std::string_view bytes, std::size_t offset) {
  if (offset >= bytes.size()) {
    return {};
  }
  const std::string_view rest = bytes.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

std::string directory_of(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  const std::string full = real != nullptr ? real : path;
  std::free(real);
  const std::size_t slash = full.rfind('/');
  return slash == std::string::npos ? "." : full.substr(0, slash);
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

/// Adds "a:b" with $ORIGIN, $LIB and $PLATFORM filled in for `owner`.
void add_directories(std::string_view list, const ElfFile& owner, std::vector<std::string>& to) {
  while (!list.empty()) {
    const std::size_t colon = list.find(':');
    std::string item{list.substr(0, colon)};
    list = colon == std::string_view::npos ? std::string_view{} : list.substr(colon + 1);
    if (item.empty()) {
      continue;
    }
    const std::pair<std::string, std::string> tokens[] = {
        {"ORIGIN", directory_of(owner.path())},
        {"LIB", "lib/" + std::string{elf_machine::kLibraryTriplet}},
        {"PLATFORM", elf_machine::kName}};
    for (const auto& [token, text] : tokens) {
      replace_all(item, "${" + token + "}", text);
      replace_all(item, "$" + token, text);
    }
    to.push_back(std::move(item));
  }
}

bool is_readable(const std::string& path) {
  return ::access(path.c_str(), R_OK) == 0;
}

/// A file that ends the search: one of another class or processor does not.
bool is_candidate(const std::string& path) {
  auto file = MappedFile::open(path);
  return file && !ElfFile::is_of_other_machine(file.value().bytes());
}

/// Where this process has it from, if it has it.
std::string find_loaded(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    return {};
  }
  link_map* map = nullptr;
  std::string path;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr) {
    path = map->l_name;
  }
  ::dlclose(handle);
  return path;
}

std::string find_cached(std::string_view name) {
  auto cache = MappedFile::open("/etc/ld.so.cache");
  if (!cache) {
    return {};
  }
  const auto bytes = cache.value().bytes();
  return find_in_cache({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
}

}  // namespace

std::string find_in_cache(std::string_view cache, std::string_view name) {
  if (cache.size() < kCacheHeaderBytes || !cache.starts_with(kCacheMagic)) {
    return {};
  }
  std::uint32_t count = 0;
  std::memcpy(&count, cache.data() + kCacheMagic.size(), sizeof count);
  if (count > (cache.size() - kCacheHeaderBytes) / kCacheEntryBytes) {
    return {};
  }
  for (std::uint32_t index = 0; index < count; ++index) {
    CacheEntry entry;
    std::memcpy(&entry, cache.data() + kCacheHeaderBytes + index * kCacheEntryBytes, sizeof entry);
    // Capabilities mark variants for newer processors, which not every node may have.
    if (entry.flags == kCacheFlags && entry.capabilities == 0 &&
        text_at(cache, entry.name) == name) {
      return std::string{text_at(cache, entry.path)};
    }
  }
  return {};
}

Result<std::string> find_library(std::string_view name, const ElfFile& needer,
                                 const ElfFile& executable) {
  if (name.find('/') != std::string_view::npos) {
    if (std::string path{name}; is_readable(path)) {
      return path;
    }
    return Error{Errc::invalid_argument,
                 needer.path() + " needs " + std::string{name} + ", which is not there"};
  }
  std::vector<std::string> directories;
  if (needer.runpath().empty()) {
    add_directories(needer.rpath(), needer, directories);
    if (executable.runpath().empty() && &executable != &needer) {
      add_directories(executable.rpath(), executable, directories);
    }
  }
  if (const char* list = std::getenv("LD_LIBRARY_PATH"); list != nullptr) {
    add_directories(list, needer, directories);
  }
  add_directories(needer.runpath(), needer, directories);
  for (const std::string& directory : directories) {
    if (std::string path = directory + "/" + std::string{name}; is_candidate(path)) {
      return path;
    }
  }
  if (std::string path = find_loaded(std::string{name}); !path.empty()) {
    return path;
  }
  if (std::string path = find_cached(name); !path.empty() && is_candidate(path)) {
    return path;
  }
  const std::string triplet = elf_machine::kLibraryTriplet;
  for (const std::string& directory :
       {"/lib/" + triplet, "/usr/lib/" + triplet, std::string{"/lib64"}, std::string{"/usr/lib64"},
        std::string{"/lib"}, std::string{"/usr/lib"}}) {
    if (std::string path = directory + "/" + std::string{name}; is_candidate(path)) {
      return path;
    }
  }
  std::string places;
  for (const std::string& directory : directories) {
    places += directory + ", ";
  }
  return Error{Errc::invalid_argument,
               needer.path() + " needs the library " + std::string{name} +
                   ", which was not found in " + places +
                   "/etc/ld.so.cache or the system's directories: install it, or name its "
                   "directory in LD_LIBRARY_PATH"};
}

}  // namespace sterna::program
