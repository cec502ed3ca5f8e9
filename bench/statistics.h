// Medians.
#pragma once

#include <algorithm>
#include <vector>

namespace sterna::bench {

/// `values` has at least one element.
[[nodiscard]] inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace sterna::bench
