/* The work that all sides of thread.spawn.tbb do, in C and in C++: Fibonacci numbers by recursion,
 * and an unbalanced tree in the manner of the "unbalanced tree search" (Olivier et al., 2006, its
 * binomial trees): each node has 8 children or none, by a hash of its path, so that nobody knows
 * how large a subtree is before it was walked. */
#ifndef STERNA_BENCH_TREE_H
#define STERNA_BENCH_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum {
  kFibonacciNumber = 30,
  kTreeRootChildren = 500,
  kTreeChildren = 8,
  /* Of 2^32: 8 children with a probability of 0.1246, just below 1/8, where trees would not end. */
  kTreeProbability = 535152926
};

typedef struct TreeNode {
  uint64_t hash;
} TreeNode;

static inline uint64_t tree_mix(uint64_t x) { /* splitmix64. */
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

static inline TreeNode tree_root(void) {
  const TreeNode root = {tree_mix(76)};
  return root;
}

static inline TreeNode tree_child(TreeNode node, int i) {
  const TreeNode child = {tree_mix(node.hash + (uint64_t)i + 1)};
  return child;
}

/* Of all but the root. */
static inline bool tree_has_children(TreeNode node) {
  return (uint32_t)(node.hash >> 32) < (uint32_t)kTreeProbability;
}

#endif
