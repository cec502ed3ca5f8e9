// dlopen and its family, and what tells programs about their own objects.
#include <cstdio>
#include <cstring>
#include <utility>

#include <dlfcn.h>
#include <link.h>

#include "program/blocker_table.h"
#include "program/elf/find_object.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"

namespace sterna::program {
namespace {

/// What dlopen(NULL) gives a rank: stands for the program itself.
void* const kSelf = const_cast<char*>("the program");

/// Asks the dynamic linker on the worker's thread pointer. What it says there is kept for the
/// rank's dlerror(); what it has said before is forgotten.
template <typename Ask>
auto ask_linker(RankData& data, Ask&& ask) {
  LibcState& libc = data.libc;
  (void)::dlerror();
  return on_worker(data, [&] {
    (void)::dlerror();
    const auto result = ask();
    const char* const words = ::dlerror();
    libc.has_library_error = words != nullptr;
    std::snprintf(libc.library_error, sizeof libc.library_error, "%s",
                  words != nullptr ? words : "");
    return result;
  });
}

char* shim_dlerror() {
  LibcState& libc = calling_data().libc;
  // The symbols of a library are looked up on the rank's thread pointer, since they may be
  // thread-local: libc keeps what it says then.
  return std::exchange(libc.has_library_error, false) ? libc.library_error : ::dlerror();
}

void* shim_dlopen(const char* path, int flags) {
  if (path == nullptr) {
    return kSelf;
  }
  RankData& data = calling_data();
  void* handle = ask_linker(data, [&] { return ::dlopen(path, flags); });
  if (handle != nullptr) {
    add_blocker(data, BlockerKind::library, blocker_key(handle), "library %s is loaded", path);
  }
  return handle;
}

int shim_dlclose(void* handle) {
  if (handle == kSelf) {
    return 0;
  }
  RankData& data = calling_data();
  remove_blocker(data, BlockerKind::library, blocker_key(handle));
  return ask_linker(data, [&] { return ::dlclose(handle); });
}

void* find_symbol(const char* name, const char* version, bool skip_executable) {
  const RankData& data = calling_data();
  const Binding binding = open_program()->parts().scope->find(
      name, {version != nullptr ? version : "", {}}, skip_executable);
  switch (binding.kind) {
    case Binding::Kind::absolute:
      return reinterpret_cast<void*>(binding.value);
    case Binding::Kind::image: {
      const std::uint64_t address = data.images + binding.value;
      if (binding.symbol != nullptr && ELF64_ST_TYPE(binding.symbol->st_info) == STT_GNU_IFUNC) {
        return reinterpret_cast<void* (*)()>(address)();
      }
      return reinterpret_cast<void*>(address);
    }
    case Binding::Kind::missing:
      break;
  }
  return nullptr;
}

bool is_own_handle(const void* handle) {
  return handle == RTLD_DEFAULT || handle == RTLD_NEXT || handle == kSelf;
}

/// Not in the program: in a library that was opened for all, or nowhere.
void* find_elsewhere(const char* name) {
  if (void* const found = ::dlsym(RTLD_DEFAULT, name); found != nullptr) {
    return found;
  }
  (void)::dlerror();  // It names the node's executable.
  RankData& data = calling_data();
  LibcState& libc = data.libc;
  libc.has_library_error = true;
  std::snprintf(libc.library_error, sizeof libc.library_error, "%s: undefined symbol: %s",
                data.variables.program_name, name);
  return nullptr;
}

void* shim_dlsym(void* handle, const char* name) {
  calling_data().libc.has_library_error = false;
  if (!is_own_handle(handle)) {
    return ::dlsym(handle, name);
  }
  void* found = find_symbol(name, nullptr, handle == RTLD_NEXT);
  return found != nullptr ? found : find_elsewhere(name);
}

void* shim_dlvsym(void* handle, const char* name, const char* version) {
  calling_data().libc.has_library_error = false;
  if (!is_own_handle(handle)) {
    return ::dlvsym(handle, name, version);
  }
  void* found = find_symbol(name, version, handle == RTLD_NEXT);
  return found != nullptr ? found : ::dlvsym(RTLD_DEFAULT, name, version);
}

int shim_dladdr(const void* address, Dl_info* info) {
  if (!is_of_rank(address)) {
    return ::dladdr(address, info);
  }
  const FoundObject found = find_object(address);
  if (found.object == nullptr) {
    return 0;
  }
  *info = {};
  info->dli_fname = found.object->file.path().c_str();
  info->dli_fbase = reinterpret_cast<void*>(found.image);
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - found.image;
  for (std::uint32_t index = 0;; ++index) {
    const Elf64_Sym* symbol = found.object->file.symbol(index);
    if (symbol == nullptr || symbol->st_name > found.object->file.image_bytes()) {
      break;
    }
    if (symbol->st_shndx != SHN_UNDEF && offset - symbol->st_value < symbol->st_size) {
      info->dli_sname = found.object->file.symbol_name(*symbol).data();
      info->dli_saddr = reinterpret_cast<void*>(found.image + symbol->st_value);
      break;
    }
  }
  return 1;
}

int shim_iterate_headers(int (*callback)(dl_phdr_info*, std::size_t, void*), void* argument) {
  const RankData& data = calling_data();
  for (const auto& object : open_program()->parts().graph.objects) {
    const ImageRange headers = object->file.program_headers();
    dl_phdr_info info{};
    info.dlpi_addr = data.images + object->offset;
    info.dlpi_name = object->file.path().c_str();
    info.dlpi_phdr = reinterpret_cast<const Elf64_Phdr*>(info.dlpi_addr + headers.address);
    info.dlpi_phnum = static_cast<Elf64_Half>(headers.bytes / sizeof(Elf64_Phdr));
    if (const int result = callback(&info, sizeof info, argument); result != 0) {
      return result;
    }
  }
  return ::dl_iterate_phdr(callback, argument);
}

/// Thread-local variables of private objects: "module" is an offset from the thread pointer.
struct TlsIndex {
  std::uint64_t module_offset;
  std::uint64_t variable_offset;
};

void* shim_tls_address(const TlsIndex* index) {
  return reinterpret_cast<void*>(thread_pointer() + index->module_offset + index->variable_offset);
}

}  // namespace

std::span<const Shim> library_shims() {
  static const Shim shims[] = {
      function_shim("dlopen", shim_dlopen),
      function_shim("dlclose", shim_dlclose),
      function_shim("dlerror", shim_dlerror),
      function_shim("dlsym", shim_dlsym),
      function_shim("dlvsym", shim_dlvsym),
      function_shim("dladdr", shim_dladdr),
      function_shim("dl_iterate_phdr", shim_iterate_headers),
      function_shim("__tls_get_addr", shim_tls_address),
      function_shim("_dl_find_object", ::_dl_find_object),
  };
  return shims;
}

}  // namespace sterna::program
