// Each name is looked up once a node; ranks are then made from the results.
#include "program/elf/symbol_scope.h"

#include <dlfcn.h>

namespace sterna::program {

SymbolScope::SymbolScope(const ObjectGraph& graph, std::span<const Shim> more_shims)
    : graph_{graph} {
  for (const auto shims :
       {start_shims(), stdio_shims(), print_shims(), environment_shims(), getopt_shims(),
        file_shims(), descriptor_shims(), memory_shims(), thread_shims(), c11_thread_shims(),
        time_shims(), library_shims(), shared_shims(), more_shims}) {
    for (const Shim& shim : shims) {
      shims_.emplace(shim.name, shim);
    }
  }
}

Result<Binding> SymbolScope::resolve(const PrivateObject& object, std::uint32_t index,
                                     bool skip_executable) {
  const Elf64_Sym* symbol = object.file.symbol(index);
  if (symbol == nullptr) {
    return Error{Errc::malformed,
                 object.file.path() + ": a relocation names a symbol that does not exist"};
  }
  const bool is_own =
      ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ||
      (ELF64_ST_VISIBILITY(symbol->st_other) != STV_DEFAULT && symbol->st_shndx != SHN_UNDEF);
  if (is_own) {
    return Binding{Binding::Kind::image, object.offset + symbol->st_value, &object, symbol};
  }
  const std::string_view name = object.file.symbol_name(*symbol);
  const SymbolVersion version = object.file.symbol_version(index);
  std::string key{name};
  key.append("@").append(version.name).append(skip_executable ? "!" : "");
  auto known = known_.find(key);
  if (known == known_.end()) {
    known = known_.emplace(key, find(name, version, skip_executable)).first;
  }
  if (known->second.kind == Binding::Kind::missing && ELF64_ST_BIND(symbol->st_info) != STB_WEAK) {
    std::string what = object.file.path() + ": undefined symbol " + std::string{name};
    if (!version.name.empty()) {
      what += ", version " + std::string{version.name};
    }
    if (!version.library.empty()) {
      what += " of " + std::string{version.library};
    }
    return Error{Errc::unsupported, what + ": no library that it needs defines it"};
  }
  return known->second;
}

Binding SymbolScope::find(std::string_view name, SymbolVersion version,
                          bool skip_executable) const {
  for (const auto& object : graph_.objects) {
    if (skip_executable && object == graph_.objects.front()) {
      continue;
    }
    if (const Elf64_Sym* symbol = object->file.find(name, version.name); symbol != nullptr) {
      return {Binding::Kind::image, object->offset + symbol->st_value, object.get(), symbol};
    }
  }
  if (const auto shim = shims_.find(name); shim != shims_.end()) {
    if (shim->second.function != 0) {
      return {.kind = Binding::Kind::absolute, .value = shim->second.function};
    }
    return {.kind = Binding::Kind::image, .value = shim->second.variable_offset};
  }
  return find_in_host(name, version);
}

Binding SymbolScope::find_in_host(std::string_view name, SymbolVersion version) const {
  const std::string symbol{name};
  const std::string version_name{version.name};
  // First the library that the version was taken from, then all in order.
  for (const bool is_named : {true, false}) {
    for (const HostLibrary& library : graph_.host) {
      if (is_named != (library.name == version.library)) {
        continue;
      }
      void* address = version_name.empty()
                          ? ::dlsym(library.handle, symbol.c_str())
                          : ::dlvsym(library.handle, symbol.c_str(), version_name.c_str());
      if (address != nullptr) {
        return {.kind = Binding::Kind::absolute, .value = reinterpret_cast<std::uint64_t>(address)};
      }
    }
  }
  return {};
}

}  // namespace sterna::program
