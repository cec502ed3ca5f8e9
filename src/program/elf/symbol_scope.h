// What a name means for a program: its own definitions first, then shims, then the host's
// libraries.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "program/elf/object_graph.h"
#include "program/shims/shims.h"

namespace sterna::program {

struct Binding {
  enum class Kind : std::uint8_t {
    missing,   // Not defined anywhere: null, as weak references may be.
    absolute,  // `value` is an address of the host, the same for all ranks.
    image,     // `value` is an offset from the start of a rank's images region.
  };
  Kind kind = Kind::missing;
  std::uint64_t value = 0;
  const PrivateObject* object = nullptr;  // Who defines it, if a private object does.
  const Elf64_Sym* symbol = nullptr;      // Its definition there.
};

class SymbolScope {
 public:
  explicit SymbolScope(const ObjectGraph& graph, std::span<const Shim> more_shims = {});

  /// The meaning of symbol `index` of `object`. With `skip_executable`, as a copy relocation asks.
  /// An undefined symbol that is not weak is an error that names it.
  Result<Binding> resolve(const PrivateObject& object, std::uint32_t index,
                          bool skip_executable = false);

  /// Whether anything resolved creates kernel threads, beyond what language runtimes could.
  [[nodiscard]] bool creates_threads() const noexcept { return creates_threads_; }

  /// The meaning of a name for dlsym(RTLD_DEFAULT, name) of a rank.
  [[nodiscard]] Binding find(std::string_view name, SymbolVersion version = {},
                             bool skip_executable = false) const;

 private:
  [[nodiscard]] Binding find_in_host(std::string_view name, SymbolVersion version) const;

  const ObjectGraph& graph_;
  std::unordered_map<std::string_view, Shim> shims_;
  std::unordered_map<std::string, Binding> known_;
  bool creates_threads_ = false;
};

}  // namespace sterna::program
