// The same addresses in every node: the first thing sterna-node does.
#pragma once

namespace sterna::program {

enum class AddressLayout {
  fixed,       // This process's libraries are where those of all nodes are.
  randomized,  // Neither way works here: ranks run, but cannot move. The caller reports it.
};

/// Turns address randomisation off and starts the executable again, once (then it does not return).
/// At the start of main, before threads, with main's arguments.
[[nodiscard]] AddressLayout ensure_fixed_addresses(char** arguments, char** environment) noexcept;

}  // namespace sterna::program
