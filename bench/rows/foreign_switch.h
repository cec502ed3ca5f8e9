// The reference of thread.yield: a bare switch of contexts of another library.
#pragma once

#include <cstddef>
#include <span>

namespace sterna::bench {

/// Time of one of 2 * `count` switches between two contexts, the other one on `stack`; 0: this was
/// built without such a library.
[[nodiscard]] double foreign_switch_ns(std::span<std::byte> stack, int count);

}  // namespace sterna::bench
