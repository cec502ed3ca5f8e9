// The arithmetic of sizes and bounds: how repetition, displacement and union act on a type map.
#include <algorithm>

#include "mpi/datatype/assembly.h"

namespace sterna::mpi {
namespace {

/// a + b and a * b that remember when the result does not fit.
std::int64_t add(std::int64_t a, std::int64_t b, bool& is_overflown) noexcept {
  std::int64_t sum = 0;
  is_overflown |= __builtin_add_overflow(a, b, &sum);
  return sum;
}

}  // namespace

Shape Shape::of(const Datatype& type) noexcept {
  Shape shape;
  shape.bytes = type.bytes;
  shape.element_count = type.element_count;
  shape.lb = type.lb;
  shape.ub = add(type.lb, type.extent, shape.is_overflown);
  shape.true_lb = type.true_lb;
  shape.true_ub = add(type.true_lb, type.true_extent, shape.is_overflown);
  shape.alignment = type.alignment;
  shape.basic = type.basic;
  shape.has_markers = type.has_markers;
  shape.is_empty = type.bytes == 0 && !type.has_markers;
  return shape;
}

void Shape::repeat(std::uint64_t count, std::int64_t stride) noexcept {
  if (count == 0 || is_empty) {
    *this = Shape{};
    return;
  }
  std::int64_t reach = 0;
  is_overflown |= __builtin_mul_overflow(count - 1, stride, &reach);
  is_overflown |= __builtin_mul_overflow(bytes, count, &bytes);
  is_overflown |= __builtin_mul_overflow(element_count, count, &element_count);
  const std::int64_t low = std::min<std::int64_t>(reach, 0);
  const std::int64_t high = std::max<std::int64_t>(reach, 0);
  lb = add(lb, low, is_overflown);
  true_lb = add(true_lb, low, is_overflown);
  ub = add(ub, high, is_overflown);
  true_ub = add(true_ub, high, is_overflown);
}

void Shape::shift(std::int64_t displacement) noexcept {
  if (is_empty) {
    return;
  }
  for (std::int64_t* bound : {&lb, &ub, &true_lb, &true_ub}) {
    *bound = add(*bound, displacement, is_overflown);
  }
}

void Shape::join(const Shape& other) noexcept {
  const bool overflow = is_overflown || other.is_overflown;
  if (other.is_empty) {
    is_overflown = overflow;
    return;
  }
  if (is_empty) {
    *this = other;
    is_overflown = overflow;
    return;
  }
  is_overflown = overflow;
  // Bounds that the program set hide those of the data.
  if (has_markers == other.has_markers) {
    lb = std::min(lb, other.lb);
    ub = std::max(ub, other.ub);
  } else if (other.has_markers) {
    lb = other.lb;
    ub = other.ub;
    has_markers = true;
  }
  if (bytes == 0) {
    true_lb = other.true_lb;
    true_ub = other.true_ub;
    basic = other.basic;
  } else if (other.bytes != 0) {
    true_lb = std::min(true_lb, other.true_lb);
    true_ub = std::max(true_ub, other.true_ub);
    basic = basic == other.basic ? basic : Basic::none;
  }
  alignment = std::max(alignment, other.alignment);
  bytes = add(bytes, other.bytes, is_overflown);
  element_count += other.element_count;
}

}  // namespace sterna::mpi
