// The work that both sides of thread.spawn.tbb do: Fibonacci numbers by recursion, and an
// unbalanced tree in the manner of the "unbalanced tree search" (Olivier et al., 2006, its binomial
// trees): each node has 8 children or none, by a hash of its path, so that nobody knows how large a
// subtree is before it was walked.
#pragma once

#include <cstdint>

constexpr int kFibonacciNumber = 30;
constexpr int kTreeRootChildren = 500;
constexpr int kTreeChildren = 8;
// Of 2^32: 8 children with a probability of 0.1246, just below 1/8, where trees would not end.
constexpr std::uint32_t kTreeProbability = 535152926;

struct TreeNode {
  std::uint64_t hash;
};

inline std::uint64_t tree_mix(std::uint64_t x) {  // splitmix64.
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

inline TreeNode tree_root() {
  return {tree_mix(76)};
}

inline TreeNode tree_child(TreeNode node, int i) {
  return {tree_mix(node.hash + static_cast<std::uint64_t>(i) + 1)};
}

/// Of all but the root.
inline bool tree_has_children(TreeNode node) {
  return static_cast<std::uint32_t>(node.hash >> 32) < kTreeProbability;
}
