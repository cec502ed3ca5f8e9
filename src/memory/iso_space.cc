// The iso-address space of a node: opening it, and the slots of ranks.
#include "memory/iso_space.h"

#include <new>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory_file.h"
#include "memory/iso_ranks.h"
#include "memory/iso_stacks.h"

namespace sterna::memory {

namespace detail {
constinit std::uint32_t rank_slot_shift = 0;
}  // namespace detail

struct IsoSpace::RankMemory {
  std::uint32_t rank = 0;
  FileDescriptor file;  // Not open: anonymous memory.
};

namespace {

constexpr std::size_t kFirstHeapBytes = 1 << 20;  // Mapped at first; heaps grow by themselves.
// The top of the stack, the header and the start of the thread-local block are used at once: one
// system call instead of a page fault each.
constexpr std::size_t kPopulateBytes = 2 * kPageBytes;

// A file of the size of a slot, without memory.
Result<FileDescriptor> create_file(std::uint32_t rank) {
  Result<FileDescriptor> file =
      create_memory_file("sterna-rank", std::uint64_t{1} << rank_slot_shift());
  if (!file) {
    return Error{file.error().code,
                 fmt::format("rank {}: cannot create its memory: {}", rank, file.error().text)};
  }
  return file;
}

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
  return (bytes + unit - 1) & ~(unit - 1);
}

Error bad_shape(std::uint32_t rank, std::string_view what) {
  return {Errc::invalid_argument, fmt::format("rank {}: {}", rank, what)};
}

/// Pages of another size, or addresses that end below our places, are how some kernels of AArch64
/// are built.
Result<> check_kernel() {
  if (const long bytes = ::sysconf(_SC_PAGESIZE); bytes != static_cast<long>(kPageBytes)) {
    return Error{Errc::unsupported,
                 fmt::format("this kernel has pages of {} KiB, and Sterna needs pages of {} KiB: "
                             "start one that was built for these",
                             bytes >> 10, kPageBytes >> 10)};
  }
  void* const last = reinterpret_cast<void*>(kIsoEnd - kPageBytes);
  void* const got =
      ::mmap(last, kPageBytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED) {
    ::munmap(got, kPageBytes);
  } else if (last_error_number() != EEXIST) {
    return system_error(
        fmt::format("cannot map at {:#x}, where ranks and threads lie (ulimit -v is "
                    "the usual limit; or this kernel was built for less than 47 "
                    "bits of addresses)",
                    kIsoEnd - kPageBytes),
        last_error_number());
  }
  return Done{};
}

// All or nothing: where something of another owner lies (a simulated node that holds the rank), it
// stays.
Result<> map_regions(const RankShape& shape, int fd) {
  const RankRegions regions = rank_regions(shape.rank);
  // Stack, header, thread-local block and system heap are neighbours: one mapping.
  const Extent parts[] = {{regions.head.base - shape.stack_bytes,
                           shape.stack_bytes + kRankHeadBytes + shape.system_heap_bytes},
                          {regions.images.base, shape.images_bytes},
                          {regions.user_heap.base, shape.user_heap_bytes}};
  for (std::size_t i = 0; i < std::size(parts); ++i) {
    if (Result<> done = map_part(shape.rank, fd, parts[i].base, parts[i].bytes); !done) {
      while (i-- > 0) {
        ::munmap(reinterpret_cast<void*>(parts[i].base), parts[i].bytes);
      }
      return done;
    }
  }
  return Done{};
}

}  // namespace

Result<> map_part(std::uint32_t rank, int fd, std::uintptr_t base, std::size_t bytes) {
  if (bytes == 0) {
    return Done{};
  }
  void* wanted = reinterpret_cast<void*>(base);
  const int flags =
      MAP_NORESERVE | MAP_FIXED_NOREPLACE | (fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
  void* got = ::mmap(wanted, bytes, PROT_READ | PROT_WRITE, flags, fd,
                     fd >= 0 ? static_cast<off_t>(base - slot_base(rank)) : 0);
  if (got == wanted) {
    return Done{};
  }
  const int number = got == MAP_FAILED ? last_error_number() : EEXIST;
  if (got != MAP_FAILED) {
    ::munmap(got, bytes);
  }
  return system_error(fmt::format("rank {}: cannot map {} KiB at {:#x} (ulimit -v and "
                                  "vm.max_map_count are the usual limits)",
                                  rank, bytes >> 10, base),
                      number);
}

Result<> check_shape(const RankShape& shape) {
  const RankRegions regions = rank_regions(shape.rank);
  const auto fits = [](std::uint64_t bytes, const Region& region, std::size_t unit) {
    return bytes % unit == 0 && bytes <= region.bytes_max;
  };
  if (shape.stack_bytes < 4 * kPageBytes || !fits(shape.stack_bytes, regions.stack, kPageBytes)) {
    return bad_shape(shape.rank, fmt::format("its stack must have 16 KiB to {} MiB",
                                             regions.stack.bytes_max >> 20));
  }
  if (shape.system_heap_bytes < kHeapChunkBytes || shape.user_heap_bytes < kHeapChunkBytes ||
      !fits(shape.system_heap_bytes, regions.system_heap, kHeapChunkBytes) ||
      !fits(shape.user_heap_bytes, regions.user_heap, kHeapChunkBytes) ||
      !fits(shape.images_bytes, regions.images, kPageBytes)) {
    return bad_shape(shape.rank, "its heaps or images do not fit its slot");
  }
  return Done{};
}

IsoSpace::IsoSpace(const IsoOptions& options)
    : options_{options},
      has_one_memory_node_{memory::has_one_memory_node()},
      classes_{std::make_unique<StackClass[]>(kStackClassCount)} {
  ranks_.resize(options.rank_count);
}

Result<std::unique_ptr<IsoSpace>> IsoSpace::open(const IsoOptions& options) {
  if (options.node_index >= options.node_count || options.rank_count > kRankCountMax) {
    return Error{
        Errc::invalid_argument,
        fmt::format("node {} of {} with {} ranks: a job has at most {} ranks", options.node_index,
                    options.node_count, options.rank_count, kRankCountMax)};
  }
  if (Result<> possible = check_kernel(); !possible) {
    return possible.error();
  }
  const std::uint32_t shift = rank_slot_shift_for(options.rank_count);
  // Relaxed: nodes of one process are opened by one thread, before their workers start.
  const std::atomic_ref<std::uint32_t> process_shift{detail::rank_slot_shift};
  std::uint32_t present = 0;
  if (!process_shift.compare_exchange_strong(present, shift, std::memory_order_relaxed) &&
      present != shift) {
    return Error{Errc::invalid_argument,
                 fmt::format("rank slots of {} GiB were laid out in this process, {} ranks need {}"
                             " GiB",
                             std::uint64_t{1} << (present - 30), options.rank_count,
                             std::uint64_t{1} << (shift - 30))};
  }
  std::unique_ptr<IsoSpace> space{new (std::nothrow) IsoSpace{options}};
  if (space == nullptr) {
    return Errc::out_of_memory;
  }
  return space;
}

IsoSpace::~IsoSpace() {
  for (const std::unique_ptr<RankMemory>& rank : ranks_) {
    if (rank != nullptr) {
      ::munmap(reinterpret_cast<void*>(slot_base(rank->rank)), std::size_t{1} << rank_slot_shift());
    }
  }
  unmap_stacks();
}

IsoSpace::RankMemory* IsoSpace::find_rank(std::uint32_t rank) noexcept {
  const SpinGuard guard{ranks_lock_};
  return rank < ranks_.size() ? ranks_[rank].get() : nullptr;
}

Result<> IsoSpace::map_rank_memory(const RankShape& shape, FileDescriptor file) {
  if (shape.rank >= options_.rank_count) {
    return bad_shape(shape.rank, fmt::format("this job has {} ranks", options_.rank_count));
  }
  Result<> done = check_shape(shape);
  if (!done) {
    return done;
  }
  if (has_rank(shape.rank)) {
    return Error{Errc::invalid_argument,
                 fmt::format("rank {}: its slot is mapped in this node already", shape.rank)};
  }
  if (!file.is_open() && options_.is_rank_memory_shared) {
    Result<FileDescriptor> created = create_file(shape.rank);
    if (!created) {
      return created.error();
    }
    file = std::move(created.value());
  }
  auto memory = std::make_unique<RankMemory>();
  memory->rank = shape.rank;
  memory->file = std::move(file);
  done = map_regions(shape, memory->file.get());
  if (!done) {
    return done;
  }
  const SpinGuard guard{ranks_lock_};
  ranks_[shape.rank] = std::move(memory);
  return Done{};
}

Result<RankSlot*> IsoSpace::map_rank(std::uint32_t rank, const RankOptions& options) {
  const RankShape shape{.rank = rank,
                        .stack_bytes = round_up(options.stack_bytes, kPageBytes),
                        .system_heap_bytes = kFirstHeapBytes,
                        .user_heap_bytes = kFirstHeapBytes};
  if (Result<> done = map_rank_memory(shape, FileDescriptor{}); !done) {
    return done.error();
  }
  const RankRegions regions = rank_regions(rank);
  // May fail on an old kernel: then each page faults.
  static_cast<void>(::madvise(reinterpret_cast<void*>(regions.head.base - kPopulateBytes),
                              2 * kPopulateBytes, kAdvisePopulateWrite));
  auto* slot = ::new (rank_slot_address(rank)) RankSlot;
  slot->rank = rank;
  slot->stack = regions.stack;
  slot->stack.base = regions.head.base - shape.stack_bytes;
  slot->stack.bytes = shape.stack_bytes;
  slot->tls = regions.tls;
  slot->tls.bytes = regions.tls.bytes_max;
  slot->images = regions.images;
  slot->system_heap_region = regions.system_heap;
  slot->user_heap_region = regions.user_heap;
  const auto make_heap = [&](const Region& region, bool is_locked) {
    return Heap::create_in({.base = reinterpret_cast<std::byte*>(region.base),
                            .bytes = kFirstHeapBytes,
                            .bytes_max = region.bytes_max & ~(kHeapChunkBytes - 1),
                            .backing = options_.is_rank_memory_shared ? HeapBacking::shared_file
                                                                      : HeapBacking::private_pages,
                            .is_locked = is_locked,
                            .colour_bytes = static_cast<std::uint32_t>(colour_offset(rank))});
  };
  // Whoever polls the network puts unexpected messages there, while the rank runs.
  slot->system_heap = make_heap(regions.system_heap, true);
  slot->user_heap = make_heap(regions.user_heap, options.is_heap_locked);
  return slot;
}

Result<RankSlot*> IsoSpace::adopt_rank(const RankShape& shape, FileDescriptor memory_fd) {
  if (Result<> done = map_rank_memory(shape, std::move(memory_fd)); !done) {
    return done.error();
  }
  return rank_slot_address(shape.rank);
}

void IsoSpace::unmap_rank(std::uint32_t rank) noexcept {
  std::unique_ptr<RankMemory> memory;
  {
    const SpinGuard guard{ranks_lock_};
    check(rank < ranks_.size() && ranks_[rank] != nullptr, "a rank that is unmapped is here");
    memory = std::move(ranks_[rank]);
  }
  check(
      ::munmap(reinterpret_cast<void*>(slot_base(rank)), std::size_t{1} << rank_slot_shift()) == 0,
      "the slot of a rank can be unmapped");
}

Result<std::span<std::byte>> IsoSpace::map_images(std::uint32_t rank, std::size_t bytes) {
  RankMemory* memory = find_rank(rank);
  check(memory != nullptr, "images are mapped in a rank that is here");
  RankSlot* slot = rank_slot_address(rank);
  bytes = round_up(bytes, kPageBytes);
  if (bytes > slot->images.bytes_max) {
    return bad_shape(rank, fmt::format("the program's private data of {} MiB is larger than its "
                                       "part of the slot, {} MiB: use fewer ranks",
                                       bytes >> 20, slot->images.bytes_max >> 20));
  }
  if (bytes > slot->images.bytes) {
    if (Result<> done = map_part(rank, memory->file.get(), slot->images.base + slot->images.bytes,
                                 bytes - slot->images.bytes);
        !done) {
      return done.error();
    }
    slot->images.bytes = bytes;
  }
  return std::span{reinterpret_cast<std::byte*>(slot->images.base), slot->images.bytes};
}

int IsoSpace::rank_memory_fd(std::uint32_t rank) noexcept {
  const RankMemory* memory = find_rank(rank);
  return memory == nullptr ? -1 : memory->file.get();
}

bool IsoSpace::has_rank(std::uint32_t rank) noexcept {
  return find_rank(rank) != nullptr;
}

IsoCounters IsoSpace::counters() noexcept {
  IsoCounters counters = stack_counters();
  const SpinGuard guard{ranks_lock_};
  for (const std::unique_ptr<RankMemory>& rank : ranks_) {
    counters.ranks_mapped += rank != nullptr ? 1 : 0;
  }
  return counters;
}

}  // namespace sterna::memory
