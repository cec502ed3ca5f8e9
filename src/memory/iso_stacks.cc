// Stack slots: leased ranges, mapping ahead, guard pages, reuse.
#include "memory/iso_stacks.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/syscall.h"

namespace sterna::memory {

namespace {

constexpr std::size_t kRangeBytesMax = std::size_t{4} << 30;
constexpr std::size_t kMapAheadBytesMax = 64 << 20;

Result<> map_pages(std::uintptr_t base, std::size_t bytes) {
  void* wanted = reinterpret_cast<void*>(base);
  void* got = ::mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != wanted) {
    const int number = got == MAP_FAILED ? last_error_number() : EEXIST;
    if (got != MAP_FAILED) {
      ::munmap(got, bytes);  // A kernel before 4.17 took the address as a hint.
    }
    return system_error(fmt::format("cannot map {} KiB of thread stacks at {:#x} (ulimit -v and "
                                    "vm.max_map_count are the usual limits)",
                                    bytes >> 10, base),
                        number);
  }
  return Done{};
}

void unmap(std::uintptr_t base, std::size_t bytes) noexcept {
  if (bytes != 0) {
    ::munmap(reinterpret_cast<void*>(base), bytes);
  }
}

FreeSlot& link_of(std::uintptr_t base) noexcept {
  return *reinterpret_cast<FreeSlot*>(descriptor_address(base));
}

/// The first `bytes` of the last one, which is not empty, or all of it.
Extent take_from(std::vector<Extent>& list, std::size_t bytes) noexcept {
  Extent& last = list.back();
  const Extent taken{last.base, std::min(bytes, last.bytes)};
  last = {last.base + taken.bytes, last.bytes - taken.bytes};
  if (last.bytes == 0) {
    list.pop_back();
  }
  return taken;
}

bool take(std::vector<std::uintptr_t>& list, std::uintptr_t base) noexcept {
  const auto place = std::find(list.begin(), list.end(), base);
  if (place == list.end()) {
    return false;
  }
  *place = list.back();
  list.pop_back();
  return true;
}

}  // namespace

std::size_t range_bytes_of(std::uint32_t stack_class, std::uint32_t node_count) noexcept {
  const std::size_t share = kClassAreaBytes / (std::bit_ceil(std::size_t{node_count}) * 4);
  const std::size_t slot_bytes = stack_slot_bytes(stack_class);
  const std::size_t bytes = std::min(share, kRangeBytesMax);
  return std::max(bytes - bytes % slot_bytes, slot_bytes);  // Whole slots.
}

// Starts a new range. Called without the lock: the source may talk to another node.
Result<> IsoSpace::lease_range(std::uint32_t stack_class) {
  StackClass& own = classes_[stack_class];
  const std::size_t bytes = range_bytes_of(stack_class, options_.node_count);
  const std::size_t range_count = kClassAreaBytes / bytes;
  std::uint32_t range = options_.node_index;
  own.lock.lock();
  const bool is_first = !own.took_first && range < range_count;
  own.took_first = true;
  const bool is_alone = options_.leases == nullptr && options_.node_count == 1;
  if (!is_first && is_alone) {
    range = own.next_alone++;
  }
  own.lock.unlock();
  if (!is_first && !is_alone) {
    if (options_.leases == nullptr) {
      return Error{Errc::out_of_memory,
                   fmt::format("node {}: no addresses left for stacks of {} KiB",
                               options_.node_index, stack_slot_bytes(stack_class) >> 10)};
    }
    Result<std::uint32_t> leased = options_.leases->lease(stack_class);
    if (!leased) {
      return leased.error();
    }
    range = leased.value();
    check(range >= options_.node_count, "the first range of each node is not leased again");
  }
  if (range >= range_count) {
    return Error{
        Errc::out_of_memory,
        fmt::format("node {}: all {} ranges of addresses for stacks of {} KiB are taken",
                    options_.node_index, range_count, stack_slot_bytes(stack_class) >> 10)};
  }
  const SpinGuard guard{own.lock};
  // When two threads came here at once, the rest of the earlier range is given up: addresses only.
  own.next = stack_area(stack_class) + range * bytes;
  own.end = own.next + bytes;
  ++own.lease_count;
  return Done{};
}

void IsoSpace::add_range(std::uint32_t stack_class, std::uint32_t range) noexcept {
  const std::size_t bytes = range_bytes_of(stack_class, options_.node_count);
  StackClass& own = classes_[stack_class];
  const SpinGuard guard{own.lock};
  own.is_asked = false;
  if (range < options_.node_count || range >= kClassAreaBytes / bytes) {
    own.is_exhausted = true;  // Who needs one is told so.
    return;
  }
  own.spare = stack_area(stack_class) + range * bytes;
  own.spare_end = own.spare + bytes;
  ++own.lease_count;
}

void IsoSpace::forget_asked_ranges() noexcept {
  for (std::uint32_t stack_class = 0; stack_class < kStackClassCount; ++stack_class) {
    const SpinGuard guard{classes_[stack_class].lock};
    classes_[stack_class].is_asked = false;
  }
}

// False: none is on its way.
bool IsoSpace::ask_ahead(std::uint32_t stack_class) noexcept {
  StackClass& own = classes_[stack_class];
  {
    const SpinGuard guard{own.lock};
    if (own.is_asked || own.spare != own.spare_end) {
      return true;
    }
    own.is_asked = true;  // Before it is asked for: the answer takes it back.
  }
  if (options_.leases->lease_ahead(stack_class)) {
    return true;
  }
  const SpinGuard guard{own.lock};
  own.is_asked = false;
  return false;
}

// Of the present range, then of the spare one; nothing: another range is needed.
void IsoSpace::take_addresses(std::uint32_t stack_class, Extent& taken) noexcept {
  StackClass& own = classes_[stack_class];
  const std::size_t slot_bytes = stack_slot_bytes(stack_class);
  bool is_scarce = false;
  {
    const SpinGuard guard{own.lock};
    if (own.next == own.end && own.spare != own.spare_end) {
      own.next = own.spare;
      own.end = own.spare_end;
      own.spare = own.spare_end = 0;
    }
    const std::size_t wanted = std::max(own.map_ahead - own.map_ahead % slot_bytes, slot_bytes);
    own.map_ahead = std::min(2 * own.map_ahead, kMapAheadBytesMax);
    taken = {own.next, std::min(own.end - own.next, wanted)};
    own.next += taken.bytes;
    is_scarce = taken.bytes != 0 && own.spare == own.spare_end && !own.is_asked &&
                own.end - own.next <= range_bytes_of(stack_class, options_.node_count) / 2;
  }
  if (is_scarce && options_.leases != nullptr && options_.leases->is_slow()) {
    static_cast<void>(ask_ahead(stack_class));  // If not: who needs it asks again, and is told why.
  }
}

Result<> IsoSpace::get_range(std::uint32_t stack_class, bool may_wait) {
  const bool is_slow = options_.leases != nullptr && options_.leases->is_slow();
  StackClass& own = classes_[stack_class];
  bool is_first = false;
  bool is_exhausted = false;
  {
    const SpinGuard guard{own.lock};
    is_first = !own.took_first;
    is_exhausted = own.is_exhausted;
  }
  if (may_wait || is_first || !is_slow) {
    return lease_range(stack_class);
  }
  if (is_exhausted || !ask_ahead(stack_class)) {
    return Error{Errc::out_of_memory, "no addresses for thread stacks can be had any more"};
  }
  return Error{Errc::timed_out, "addresses for thread stacks are on their way"};
}

// Maps the next slots of the range.
Result<> IsoSpace::map_stacks(std::uint32_t stack_class, bool may_wait) {
  StackClass& own = classes_[stack_class];
  Extent taken;
  for (take_addresses(stack_class, taken); taken.bytes == 0; take_addresses(stack_class, taken)) {
    if (Result<> got = get_range(stack_class, may_wait); !got) {
      return got.error();
    }
  }
  if (Result<> mapped = map_pages(taken.base, taken.bytes); !mapped) {
    return mapped.error();
  }
  const std::size_t count = taken.bytes / stack_slot_bytes(stack_class);
  const SpinGuard guard{own.lock};
  own.mapped_count += count;
  own.free_count += count;
  own.batches.push_back(taken);
  own.fresh.push_back(taken);
  return Done{};
}

// Fresh slots that are to get their guards, without the lock; bytes == 0: there are none.
Extent IsoSpace::take_fresh(std::uint32_t stack_class) noexcept {
  StackClass& own = classes_[stack_class];
  const SpinGuard guard{own.lock};
  if (own.fresh.empty()) {
    return {};
  }
  const std::size_t wanted = own.guard_batch * stack_slot_bytes(stack_class);
  own.guard_batch = std::min(own.guard_batch * 2, kGuardBatchMax);
  return take_from(own.fresh, wanted);
}

// A slot that is ready for use, or 0.
std::uintptr_t IsoSpace::pop_ready(std::uint32_t stack_class) noexcept {
  StackClass& own = classes_[stack_class];
  const SpinGuard guard{own.lock};
  std::uintptr_t base = own.free;
  if (base != 0) {
    own.free = link_of(base).next;
  } else if (!own.guarded.empty()) {
    base = take_from(own.guarded, stack_slot_bytes(stack_class)).base;
  } else {
    return 0;
  }
  --own.free_count;
  return base;
}

// No slot is ready: makes some so and takes the first.
Result<std::uintptr_t> IsoSpace::make_ready(std::uint32_t stack_class, bool may_wait) {
  StackClass& own = classes_[stack_class];
  const std::size_t slot_bytes = stack_slot_bytes(stack_class);
  Extent some = take_fresh(stack_class);
  while (some.bytes == 0) {
    if (Result<> mapped = map_stacks(stack_class, may_wait); !mapped) {
      return mapped.error();
    }
    some = take_fresh(stack_class);
  }
  if (has_one_memory_node_) {
    touch_slots(some, slot_bytes);  // First: it costs the guards less to find the tables of pages.
  }
  const Result<> guarded = guard_slots(some, slot_bytes);
  const SpinGuard guard{own.lock};
  if (!guarded) {
    own.fresh.push_back(some);
    return guarded.error();
  }
  if (some.bytes > slot_bytes) {
    own.guarded.push_back({some.base + slot_bytes, some.bytes - slot_bytes});
  }
  --own.free_count;
  return some.base;
}

Result<StackSlot> IsoSpace::acquire_stack(std::size_t bytes, bool may_wait) {
  // Room for the stack, the guard and the most coloured descriptor.
  const std::uint32_t stack_class =
      stack_class_for(bytes + kPageBytes + kDescriptorBytes + kColourCount * kColourBytes);
  if (bytes > stack_slot_bytes(kStackClassCount) || stack_class >= kStackClassCount) {
    return Error{Errc::invalid_argument,
                 fmt::format("a thread's stack of {} bytes is larger than the largest, {} MiB",
                             bytes, stack_slot_bytes(kStackClassCount - 1) >> 20)};
  }
  const std::size_t slot_bytes = stack_slot_bytes(stack_class);
  if (const std::uintptr_t base = pop_ready(stack_class); base != 0) {
    return StackSlot{base, slot_bytes};
  }
  Result<std::uintptr_t> made = make_ready(stack_class, may_wait);
  if (!made) {
    return made.error();
  }
  return StackSlot{made.value(), slot_bytes};
}

void IsoSpace::release_stack(StackSlot slot) noexcept {
  check(slot.bytes != 0 && slot_at(slot.base).base == slot.base &&
            slot_at(slot.base).bytes == slot.bytes && is_stack_address(slot.base),
        "a stack slot is released as it was acquired");
  StackClass& own = classes_[stack_class_at(slot.base)];
  FreeSlot& link = link_of(slot.base);
  const SpinGuard guard{own.lock};
  link = {own.free};
  own.free = slot.base;
  ++own.free_count;
}

void IsoSpace::depart_stack(StackSlot slot) noexcept {
  check(slot_at(slot.base).base == slot.base && slot_at(slot.base).bytes == slot.bytes,
        "a stack slot departs as it was acquired");
  check(::munmap(reinterpret_cast<void*>(slot.base), slot.bytes) == 0,
        "a stack slot that departs is mapped");
  StackClass& own = classes_[stack_class_at(slot.base)];
  const SpinGuard guard{own.lock};
  --own.mapped_count;
  if (!take(own.adopted, slot.base)) {
    own.departed.push_back(slot.base);
  }
}

Result<StackSlot> IsoSpace::adopt_stack(std::uintptr_t base) {
  const SlotRange slot = slot_at(base);
  if (!is_stack_address(base) || slot.base != base) {
    return Error{Errc::malformed, fmt::format("{:#x} is not the address of a stack slot", base)};
  }
  if (Result<> mapped = map_pages(base, slot.bytes); !mapped) {
    return mapped.error();
  }
  if (Result<> guarded = guard_slots({base, slot.bytes}, slot.bytes); !guarded) {
    return guarded.error();
  }
  StackClass& own = classes_[stack_class_at(base)];
  const SpinGuard guard{own.lock};
  ++own.mapped_count;
  if (!take(own.departed, base)) {
    own.adopted.push_back(base);
  }
  return StackSlot{base, slot.bytes};
}

void IsoSpace::unmap_stacks() noexcept {
  for (std::uint32_t stack_class = 0; stack_class < kStackClassCount; ++stack_class) {
    StackClass& own = classes_[stack_class];
    const std::size_t bytes = stack_slot_bytes(stack_class);
    const SpinGuard guard{own.lock};  // Nobody else is left; for the checker.
    std::sort(own.departed.begin(), own.departed.end());
    for (const Extent& batch : own.batches) {
      // What lies between the slots that departed: a call for each slot takes a second a million.
      std::uintptr_t from = batch.base;
      auto hole = std::lower_bound(own.departed.begin(), own.departed.end(), from);
      for (; hole != own.departed.end() && *hole < batch.base + batch.bytes; ++hole) {
        unmap(from, *hole - from);
        from = *hole + bytes;
      }
      unmap(from, batch.base + batch.bytes - from);
    }
    for (const std::uintptr_t base : own.adopted) {
      unmap(base, bytes);
    }
  }
}

IsoCounters IsoSpace::stack_counters() noexcept {
  IsoCounters counters;
  for (std::uint32_t stack_class = 0; stack_class < kStackClassCount; ++stack_class) {
    StackClass& own = classes_[stack_class];
    const SpinGuard guard{own.lock};
    counters.stacks_mapped += own.mapped_count;
    counters.stacks_free += own.free_count;
    counters.leases_held += own.lease_count;
  }
  return counters;
}

}  // namespace sterna::memory
