// Judging a figure.
#include "bench/row.h"

namespace sterna::bench {

std::optional<double> ratio(const Figure& figure) noexcept {
  if (!figure.value || !figure.reference_value || *figure.value <= 0 ||
      *figure.reference_value <= 0) {
    return std::nullopt;
  }
  return figure.more_is_better ? *figure.reference_value / *figure.value
                               : *figure.value / *figure.reference_value;
}

std::optional<bool> passes(const Figure& figure) noexcept {
  if (!figure.target) {
    return std::nullopt;
  }
  if (!figure.value) {
    return false;
  }
  const std::optional<double> cost = ratio(figure);
  return cost ? std::optional{*cost <= *figure.target} : std::nullopt;
}

}  // namespace sterna::bench
