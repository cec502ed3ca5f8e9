// Copies of bytes, in pieces.
#include "rpc/bytes.h"

#include <algorithm>

#include "net/buffer.h"

namespace sterna::rpc {

void append(Bytes& to, std::span<const std::byte> from) {
  if (from.size() > net::kLoopBytes) {
    to.reserve(std::max(to.size() + from.size(), 2 * to.size()));
  }
  while (!from.empty()) {
    const auto piece = from.first(std::min(from.size(), net::kLoopBytes));
    to.insert(to.end(), piece.data(), piece.data() + piece.size());
    from = from.subspan(piece.size());
  }
}

void assign(Bytes& to, std::span<const std::byte> from) {
  if (from.size() > to.capacity()) {
    to = copy_of(from);
    return;
  }
  to.clear();
  append(to, from);
}

Bytes copy_of(std::span<const std::byte> from) {
  Bytes copy;
  append(copy, from);
  return copy;
}

}  // namespace sterna::rpc
