// What an open Program is made of, for the files of this layer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "program/elf/data_template.h"
#include "program/elf/object_graph.h"
#include "program/elf/symbol_scope.h"
#include "program/elf/tls_block.h"
#include "program/program.h"
#include "program/rank_data.h"
#include "threads/observation/debug.h"

namespace sterna::program {

/// Variables of libc that a program may see. If the executable has its own copy of one (a copy
/// relocation), that copy is the variable.
enum class Variable : std::uint8_t {
  standard_output,
  standard_error,
  standard_input,
  environment,
  option_argument,
  option_index,
  option_error,
  option_unknown,
  gamma_sign,
  daylight,
  time_zone,
  zone_names,
};
inline constexpr std::size_t kVariableCount = 12;

class Program::Parts {
 public:
  ProgramOptions options;
  ObjectGraph graph;
  std::vector<threads::DebugObject> debug_objects;  // The graph's, for sterna_debug_objects.
  std::unique_ptr<SymbolScope> scope;
  DataTemplate data;
  TlsTemplate tls;
  std::array<std::uint64_t, kVariableCount> variable_offsets{};  // In the images region.
};

/// The process's open program, for code that is called without an object. Null: none.
[[nodiscard]] const Program* open_program() noexcept;
[[nodiscard]] HostCalls& host_calls() noexcept;

/// The place of a variable in a rank.
template <typename T>
[[nodiscard]] T& variable(const RankData& data, Variable which) noexcept {
  const auto& offsets = open_program()->parts().variable_offsets;
  return *reinterpret_cast<T*>(data.images + offsets[static_cast<std::size_t>(which)]);
}

/// Maps the text of all private objects over the slot's images region.
Result<> map_text(std::uint32_t rank, const ObjectGraph& graph) noexcept;

}  // namespace sterna::program
