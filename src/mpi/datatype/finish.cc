// The end of an assembly: the plans of the finished type, one that keeps basic types apart and one
// in which only bytes count.
#include <algorithm>
#include <cstring>

#include "mpi/datatype/assembly.h"

namespace sterna::mpi {

/// Where a row of the plan that is stripped went: loops that share a row share it again.
struct Assembly::Memo {
  std::uint32_t first;
  std::uint32_t count;  // 0: not yet.
};

bool Assembly::make_plan(Plan& plan, std::int64_t bytes) noexcept {
  settle(row_);
  plan.top_first = pool_.size();
  plan.top_count = row_.settled.size();
  push_row(row_.settled);
  row_.settled.clear();
  if (is_out_of_memory_) {
    return false;
  }
  if (pool_.size() == 0) {
    places_.clear();  // Of a unit of which nothing was joined.
  }
  // One block of memory, the places behind the loops.
  const std::size_t loop_bytes = std::size_t{pool_.size()} * sizeof(Loop);
  const std::size_t place_bytes = std::size_t{places_.size()} * sizeof(std::int32_t);
  if (loop_bytes != 0) {
    auto* const place = static_cast<std::byte*>(heap_->allocate(loop_bytes + place_bytes));
    if (place == nullptr) {
      return false;
    }
    std::memcpy(place, pool_.data(), loop_bytes);
    plan.loops = reinterpret_cast<const Loop*>(place);
    if (place_bytes != 0) {
      std::memcpy(place + loop_bytes, places_.data(), place_bytes);
      plan.places = reinterpret_cast<const std::int32_t*>(place + loop_bytes);
    }
  }
  plan.loop_count = pool_.size();
  plan.place_count = places_.size();
  plan.bytes = static_cast<std::uint64_t>(bytes);
  pool_.clear();
  places_.clear();
  return true;
}

/// A copy of places of another plan: where it begins.
std::uint32_t Assembly::copy_places(const Plan& plan, std::uint32_t first,
                                    std::uint64_t count) noexcept {
  const std::uint32_t begin = places_.size();
  if (count != 0) {
    std::int32_t* const into = places_.extend(static_cast<std::uint32_t>(count));
    is_out_of_memory_ |= into == nullptr;
    if (into != nullptr) {
      std::copy_n(plan.places + first, count, into);
    }
  }
  return begin;
}

// Recurses at most 63 deep (loop.h).
void Assembly::strip_row(const Plan& plan, std::uint32_t first, std::uint32_t count,
                         Row& into, Memo* memo) noexcept {
  for (std::uint32_t i = first; i < first + count && !is_out_of_memory_; ++i) {
    Loop loop = plan.loops[i];
    loop.basic = Basic::none;
    if (loop.is_listed) {
      loop.places_first = copy_places(plan, loop.places_first, loop.count);
    }
    if (loop.has_blocks) {
      loop.inner_first =
          copy_places(plan, loop.inner_first, 2 * std::uint64_t{loop.inner_count} + 1);
    }
    if (loop.inner_count == 0 || loop.has_blocks) {
      add(into, loop);
      continue;
    }
    Memo& done = memo[loop.inner_first];
    if (done.count == 0) {
      Row inner{*heap_};
      strip_row(plan, loop.inner_first, loop.inner_count, inner, memo);
      settle(inner);
      done = {push_row(inner.settled), inner.settled.size()};
      if (is_out_of_memory_) {
        return;
      }
    }
    if (done.count == 1) {
      add(into, placed(pool_[done.first], loop));
    } else {
      loop.inner_first = done.first;
      loop.inner_count = done.count;
      add(into, loop);
    }
  }
}

bool Assembly::make_copy_plan(const Datatype& type, Plan& plan) noexcept {
  if (type.basic != Basic::none &&
      type.element_count * sizes_of(type.basic).bytes == static_cast<std::uint64_t>(type.bytes)) {
    plan = type.elements;  // One basic type all over: nothing is left to merge.
    return true;
  }
  const std::size_t memo_bytes = type.elements.loop_count * sizeof(Memo);
  auto* memo = static_cast<Memo*>(heap_->allocate_zeroed(memo_bytes == 0 ? 1 : memo_bytes));
  if (memo == nullptr) {
    return false;
  }
  strip_row(type.elements, type.elements.top_first, type.elements.top_count, row_, memo);
  heap_->deallocate(memo);
  return !is_out_of_memory_ && make_plan(plan, type.bytes);
}

int Assembly::finish(Datatype& type) noexcept {
  std::int64_t extent = 0;
  std::int64_t true_extent = 0;
  if (joined_.bytes == 0) {
    joined_.true_lb = 0;
    joined_.true_ub = 0;
  }
  joined_.is_overflown |= __builtin_sub_overflow(joined_.ub, joined_.lb, &extent);
  joined_.is_overflown |= __builtin_sub_overflow(joined_.true_ub, joined_.true_lb, &true_extent);
  if (!joined_.has_markers && extent % joined_.alignment != 0) {
    const std::int64_t padding = joined_.alignment - extent % joined_.alignment;
    joined_.is_overflown |= __builtin_add_overflow(extent, padding, &extent);
  }
  if (joined_.is_overflown) {
    return MPI_ERR_VALUE_TOO_LARGE;
  }
  type.bytes = joined_.bytes;
  type.lb = joined_.lb;
  type.extent = extent;
  type.true_lb = joined_.true_lb;
  type.true_extent = true_extent;
  type.element_count = joined_.element_count;
  type.alignment = joined_.alignment;
  type.basic = joined_.basic;
  type.has_markers = joined_.has_markers;
  if (is_out_of_memory_ || !make_plan(type.elements, type.bytes)) {
    return MPI_ERR_NO_MEM;
  }
  if (!make_copy_plan(type, type.copies)) {
    return MPI_ERR_NO_MEM;
  }
  const Loop* top = type.copies.loops + type.copies.top_first;
  type.is_one_run =
      type.bytes == 0 || (type.copies.top_count == 1 && top->inner_count == 0 && top->count == 1);
  type.is_dense = type.is_one_run && (type.bytes == 0 || type.bytes == type.extent);
  return MPI_SUCCESS;
}

void free_plans(memory::Heap& heap, Datatype& type) noexcept {
  if (type.copies.loops != type.elements.loops) {
    heap.deallocate(const_cast<Loop*>(type.copies.loops));
  }
  heap.deallocate(const_cast<Loop*>(type.elements.loops));
  type.copies = {};
  type.elements = {};
}

}  // namespace sterna::mpi
