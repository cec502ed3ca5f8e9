// The end of an assembly: the plans of the finished type, one that keeps basic types apart and one
// in which only bytes count.
#include <cstring>

#include "mpi/datatype/assembly.h"

namespace sterna::mpi {

/// Where a row of the plan that is stripped went: loops that share a row share it again.
struct Assembly::Memo {
  std::uint32_t first;
  std::uint32_t count;  // 0: not yet.
};

bool Assembly::make_plan(Plan& plan, std::int64_t bytes) noexcept {
  plan.top_first = pool_.size();
  plan.top_count = row_.size();
  push_row(row_);
  row_.clear();
  if (is_out_of_memory_) {
    return false;
  }
  plan.loop_count = pool_.size();
  plan.loops = pool_.take();
  plan.bytes = static_cast<std::uint64_t>(bytes);
  return true;
}

// Recurses at most 63 deep (loop.h).
void Assembly::strip_row(const Plan& plan, std::uint32_t first, std::uint32_t count,
                         LoopArray& into, Memo* memo) noexcept {
  for (std::uint32_t i = first; i < first + count && !is_out_of_memory_; ++i) {
    Loop loop = plan.loops[i];
    loop.basic = Basic::none;
    if (loop.inner_count == 0) {
      push_merged(into, loop);
      continue;
    }
    Memo& done = memo[loop.inner_first];
    if (done.count == 0) {
      LoopArray inner{*heap_};
      strip_row(plan, loop.inner_first, loop.inner_count, inner, memo);
      done = {push_row(inner), inner.size()};
      if (is_out_of_memory_) {
        return;
      }
    }
    if (done.count == 1) {
      Loop only = pool_[done.first];
      only.displacement += loop.displacement;
      push_merged(into, repeated(only, loop.count, loop.stride));
    } else {
      loop.inner_first = done.first;
      loop.inner_count = done.count;
      push_merged(into, loop);
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
