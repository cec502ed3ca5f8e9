/* What seeds cost those who use them as programs do, by the calls of seed.h, in a program that is
 * linked to libsterna: the work that bench/programs/tasks.cc does by tasks of oneTBB. Prints the
 * medians of several rounds, in ns.
 *
 * usage: seeds ROUNDS WORKERS NUMBER
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sterna/seed.h>
#include <sterna/sterna.h>
#include <sterna/thread.h>
#include <time.h>

#include "timing.h"
#include "tree.h"

enum { kRoundsMax = 99 };

static int rounds = 5;
static int number = kFibonacciNumber;

static void check(sterna_status status, const char* what) {
  if (status != STERNA_SUCCESS) {
    fprintf(stderr, "seeds: %s: %s\n", what, sterna_status_text(status));
    exit(1);
  }
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

typedef struct {
  int n;
  long result;
} term;

static long fibonacci(int n);

static void run_term(void* argument) {
  term* const its = argument;
  its->result = fibonacci(its->n);
}

static long fibonacci(int n) {
  if (n < 2) {
    return n;
  }
  term left = {n - 1, 0};
  sterna_seed seed;
  check(sterna_seed_plant(&seed, run_term, &left), "sterna_seed_plant");
  const long right = fibonacci(n - 2);
  check(sterna_seed_join(&seed), "sterna_seed_join");
  return left.result + right;
}

typedef struct {
  sterna_seed seed;
  TreeNode root;
  long count;
} subtree;

static long count_tree(TreeNode node);

static void run_subtree(void* argument) {
  subtree* const its = argument;
  its->count = count_tree(its->root);
}

static void plant_subtree(subtree* its, TreeNode root) {
  its->root = root;
  check(sterna_seed_plant(&its->seed, run_subtree, its), "sterna_seed_plant");
}

static long join_subtree(subtree* its) {
  check(sterna_seed_join(&its->seed), "sterna_seed_join");
  return its->count;
}

static long count_tree(TreeNode node) {
  if (!tree_has_children(node)) {
    return 1;
  }
  subtree subtrees[kTreeChildren];
  for (int i = 1; i < kTreeChildren; ++i) {
    plant_subtree(&subtrees[i], tree_child(node, i));
  }
  long sum = 1 + count_tree(tree_child(node, 0));
  for (int i = kTreeChildren - 1; i > 0; --i) {
    sum += join_subtree(&subtrees[i]);
  }
  return sum;
}

static long count_from_root(void) {
  static subtree subtrees[kTreeRootChildren];
  for (int i = 0; i < kTreeRootChildren; ++i) {
    plant_subtree(&subtrees[i], tree_child(tree_root(), i));
  }
  long sum = 1;
  for (int i = kTreeRootChildren - 1; i >= 0; --i) {
    sum += join_subtree(&subtrees[i]);
  }
  return sum;
}

static void measure(void* argument) {
  (void)argument;
  double recursion[kRoundsMax], tree[kRoundsMax];
  long nodes = 0;
  if (fibonacci(20) != 6765) {
    exit(1);
  }
  for (int i = 0; i < rounds; ++i) {
    const double begin = now_ns();
    if (fibonacci(number) < 0) {
      exit(1);
    }
    const double middle = now_ns();
    nodes = count_from_root();
    recursion[i] = middle - begin;
    tree[i] = now_ns() - middle;
  }
  printf("fib %.3f\ntree %.3f\nnodes %ld\n", median(recursion, rounds), median(tree, rounds),
         nodes);
}

int main(int argc, char** argv) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  if (argc > 3) {
    rounds = atoi(argv[1]);
    rounds = rounds < 1 ? 1 : rounds > kRoundsMax ? kRoundsMax : rounds;
    options.workers = (uint32_t)atoi(argv[2]);
    number = atoi(argv[3]);
  }
  check(sterna_start(&options), "sterna_start");
  sterna_thread* thread;
  check(sterna_thread_create(NULL, measure, NULL, &thread), "sterna_thread_create");
  check(sterna_thread_join(thread), "sterna_thread_join");
  return sterna_stop() == STERNA_SUCCESS ? 0 : 1;
}
