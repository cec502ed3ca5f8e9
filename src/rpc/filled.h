// For tests: bytes of which no two stretches are alike.
#pragma once

#include <cstddef>

#include "rpc/bytes.h"

namespace sterna::rpc {

inline Bytes filled(std::size_t bytes, unsigned seed = 0) {
  Bytes data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>(i * 31 + i / 251 + seed);
  }
  return data;
}

}  // namespace sterna::rpc
