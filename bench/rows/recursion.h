// Fork-join recursion by seeds, as rows measure it.
#pragma once

#include "threads/seeds/seed.h"

namespace sterna::bench {

inline long fibonacci(int n) {
  if (n < 2) {
    return n;
  }
  long left = 0;
  threads::Branch branch{[&] { left = fibonacci(n - 1); }};
  const long right = fibonacci(n - 2);
  branch.join();
  return left + right;
}

/// How often fibonacci(n) plants.
inline double spawn_count(int n) {
  return n < 2 ? 0 : 1 + spawn_count(n - 1) + spawn_count(n - 2);
}

}  // namespace sterna::bench
