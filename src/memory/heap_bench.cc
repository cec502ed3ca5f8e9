// malloc+free of the rank's heap against glibc's, in one run: id, ns of ours, ns of glibc, ratio.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sys/mman.h>

#include "base/clock.h"
#include "base/random.h"
#include "memory/heap.h"

namespace {

using namespace sterna;

struct Ours {
  memory::Heap* heap;
  void* get(std::size_t bytes) const { return heap->allocate(bytes); }
  void put(void* block) const { heap->deallocate(block); }
};
struct Glibc {
  static void* get(std::size_t bytes) {
    void* block = std::malloc(bytes);
    asm volatile("" : "+r"(block)::"memory");  // Or the compiler removes the pair.
    return block;
  }
  static void put(void* block) { std::free(block); }
};

constexpr int kRounds = 2'000'000;

template <typename Allocator>
double pairs(const Allocator& allocator, std::size_t bytes) {
  const std::uint64_t start = now_ns();
  for (int i = 0; i < kRounds; ++i) {
    allocator.put(allocator.get(bytes));
  }
  return static_cast<double>(now_ns() - start) / kRounds;
}

// Random sizes and lifetimes among `count` living blocks.
template <typename Allocator>
double mixed(const Allocator& allocator, std::size_t count, std::size_t bytes_max) {
  Random random{1};
  std::vector<void*> blocks(count);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> plan(1 << 16);
  for (auto& [index, bytes] : plan) {
    index = static_cast<std::uint32_t>(random.below(count));
    bytes = static_cast<std::uint32_t>(1 + random.below(bytes_max));
  }
  const auto run = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      const auto [index, bytes] = plan[static_cast<std::size_t>(i) % plan.size()];
      if (blocks[index] != nullptr) {
        allocator.put(blocks[index]);
      }
      blocks[index] = allocator.get(bytes);
      *static_cast<char*>(blocks[index]) = 1;
    }
  };
  run(200'000);
  const std::uint64_t start = now_ns();
  run(kRounds);
  const double ns = static_cast<double>(now_ns() - start) / kRounds;
  for (void* block : blocks) {
    allocator.put(block);
  }
  return ns;
}

void print(const char* id, double ours, double glibc) {
  std::printf("%-28s %8.1f ns %8.1f ns  ratio %.2f\n", id, ours, glibc, ours / glibc);
}

}  // namespace

int main() {
  constexpr std::size_t kBytesMax = std::size_t{8} << 30;
  void* base = mmap(reinterpret_cast<void*>(0x20'0000'0000), 1 << 20, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  const Ours ours{memory::Heap::create_in({static_cast<std::byte*>(base), 1 << 20, kBytesMax})};
  const Glibc glibc;
  for (const std::size_t bytes : {16, 64, 256, 1000, 4000, 20'000, 100'000, 1'000'000}) {
    char id[64];
    std::snprintf(id, sizeof id, "heap.pair %zu", bytes);
    print(id, pairs(ours, bytes), pairs(glibc, bytes));
  }
  print("heap.mixed 1000 x 256", mixed(ours, 1000, 256), mixed(glibc, 1000, 256));
  print("heap.mixed 10000 x 2000", mixed(ours, 10'000, 2000), mixed(glibc, 10'000, 2000));
  print("heap.mixed 1000 x 200000", mixed(ours, 1000, 200'000), mixed(glibc, 1000, 200'000));
  return 0;
}
