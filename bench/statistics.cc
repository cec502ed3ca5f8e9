// Least squares by the normal equations: a handful of coefficients.
#include "bench/statistics.h"

#include <cmath>
#include <utility>

namespace sterna::bench {
namespace {

using Matrix = std::vector<std::vector<double>>;

/// Of a square matrix with the right-hand side as its last column; pivots by rows.
std::vector<double> solve(Matrix matrix) {
  const std::size_t size = matrix.size();
  for (std::size_t column = 0; column < size; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < size; ++row) {
      if (std::abs(matrix[row][column]) > std::abs(matrix[pivot][column])) {
        pivot = row;
      }
    }
    std::swap(matrix[column], matrix[pivot]);
    for (std::size_t row = 0; row < size; ++row) {
      if (row != column && matrix[column][column] != 0) {
        const double factor = matrix[row][column] / matrix[column][column];
        for (std::size_t i = column; i <= size; ++i) {
          matrix[row][i] -= factor * matrix[column][i];
        }
      }
    }
  }
  std::vector<double> solution;
  for (std::size_t row = 0; row < size; ++row) {
    solution.push_back(matrix[row][row] == 0 ? 0 : matrix[row][size] / matrix[row][row]);
  }
  return solution;
}

}  // namespace

Estimate estimate(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  // As many are below the median as heads in so many throws: half, give or take 0.98 of the root.
  const auto count = static_cast<double>(values.size());
  const double half_width = 0.98 * std::sqrt(count);
  const auto low = static_cast<std::size_t>(std::max(count / 2 - half_width, 0.0));
  const std::size_t high = values.size() - 1 - low;
  return {median(values), (values[high] - values[low]) / 2};
}

std::vector<double> fit(const std::vector<Sample>& samples) {
  const std::size_t size = samples.front().terms.size();
  Matrix normal(size, std::vector<double>(size + 1, 0));
  for (const Sample& sample : samples) {
    const double weight = sample.weight / (sample.value * sample.value);
    for (std::size_t row = 0; row < size; ++row) {
      for (std::size_t column = 0; column < size; ++column) {
        normal[row][column] += weight * sample.terms[row] * sample.terms[column];
      }
      normal[row][size] += weight * sample.terms[row] * sample.value;
    }
  }
  return solve(std::move(normal));
}

std::vector<double> fit_evenly(std::vector<Sample> samples) {
  // Lawson's: who is far off counts for more the next time.
  std::vector<double> best = fit(samples);
  for (int turn = 0; turn < 100; ++turn) {
    const std::vector<double> coefficients = fit(samples);
    if (worst_error(samples, coefficients) < worst_error(samples, best)) {
      best = coefficients;
    }
    double sum = 0;
    for (Sample& sample : samples) {
      sample.weight *= std::abs(sample.predicted(coefficients) / sample.value - 1) + 1e-12;
      sum += sample.weight;
    }
    for (Sample& sample : samples) {
      sample.weight /= sum;
    }
  }
  return best;
}

double worst_error(const std::vector<Sample>& samples, const std::vector<double>& coefficients) {
  double worst = 0;
  for (const Sample& sample : samples) {
    worst = std::max(worst, std::abs(sample.predicted(coefficients) / sample.value - 1));
  }
  return worst;
}

}  // namespace sterna::bench
