// The naive model of datatypes that tests compare with: a type is the list of its basic elements,
// each with its displacement, exactly as the standard defines type maps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/datatype/datatype.h"

namespace sterna::mpi {

struct ModelEntry {
  Basic basic;
  std::int64_t displacement;
};

struct Model {
  std::vector<ModelEntry> map;
  std::int64_t lb = 0;
  std::int64_t ub = 0;
  std::uint32_t alignment = 1;
  bool has_markers = false;

  [[nodiscard]] std::int64_t extent() const { return ub - lb; }
  [[nodiscard]] bool is_empty() const { return map.empty() && !has_markers; }

  static Model of(const Datatype& predefined) {
    Model model;
    for (std::uint32_t i = 0; i < predefined.elements.loop_count; ++i) {
      const Loop& loop = predefined.elements.loops[i];
      const std::uint32_t bytes = sizes_of(loop.basic).bytes;
      for (std::uint64_t at = 0; at < loop.block_bytes; at += bytes) {
        model.map.push_back({loop.basic, loop.displacement + static_cast<std::int64_t>(at)});
      }
    }
    model.ub = predefined.extent;
    model.alignment = predefined.alignment;
    return model;
  }

  /// Adds all entries of `other`, moved by `displacement`.
  void add(const Model& other, std::int64_t displacement) {
    if (other.is_empty()) {
      return;
    }
    const std::int64_t low = other.lb + displacement;
    const std::int64_t high = other.ub + displacement;
    if (is_empty() || (other.has_markers && !has_markers)) {
      lb = low;
      ub = high;
    } else if (has_markers == other.has_markers) {
      lb = std::min(lb, low);
      ub = std::max(ub, high);
    }
    has_markers |= other.has_markers;
    alignment = std::max(alignment, other.alignment);
    for (const ModelEntry& entry : other.map) {
      map.push_back({entry.basic, entry.displacement + displacement});
    }
  }

  void pad() {
    while (!has_markers && extent() % alignment != 0) {
      ++ub;
    }
  }

  [[nodiscard]] std::int64_t true_lb() const {
    std::int64_t low = map.empty() ? 0 : map[0].displacement;
    for (const ModelEntry& entry : map) {
      low = std::min(low, entry.displacement);
    }
    return low;
  }
  [[nodiscard]] std::int64_t true_ub() const {
    std::int64_t high = map.empty() ? 0 : map[0].displacement;
    for (const ModelEntry& entry : map) {
      high = std::max(high, entry.displacement + sizes_of(entry.basic).bytes);
    }
    return high;
  }
  [[nodiscard]] std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const ModelEntry& entry : map) {
      sum += sizes_of(entry.basic).bytes;
    }
    return sum;
  }

  /// The places of the bytes of `count` instances, in the order of the stream.
  [[nodiscard]] std::vector<std::int64_t> places(std::uint64_t count) const {
    std::vector<std::int64_t> all;
    for (std::uint64_t i = 0; i < count; ++i) {
      for (const ModelEntry& entry : map) {
        for (std::int64_t byte = 0; byte < sizes_of(entry.basic).bytes; ++byte) {
          all.push_back(static_cast<std::int64_t>(i) * extent() + entry.displacement + byte);
        }
      }
    }
    return all;
  }
};

}  // namespace sterna::mpi
