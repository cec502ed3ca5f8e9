// Medians, and fits of models to measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace sterna::bench {

/// `values` has at least one element. Of an even number, halfway between the two in the middle.
[[nodiscard]] inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 != 0 ? *middle
                                : (*middle + *std::max_element(values.begin(), middle)) / 2;
}

struct Estimate {
  double value;
  double error;
};
/// The median, and how far off it may be: half the width of its interval of 95 %, which lies
/// between two of the values, whatever their distribution.
[[nodiscard]] Estimate estimate(std::vector<double> values);

/// Ours and the reference, measured in turn: noise that lasts longer than a pair hits both.
struct Pairs {
  std::vector<double> ours = {}, reference = {};

  void add(double our, double other) {
    ours.push_back(our);
    reference.push_back(other);
  }
  [[nodiscard]] double reference_median() const { return median(reference); }
  [[nodiscard]] std::vector<double> ratios() const {
    std::vector<double> all;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      all.push_back(ours[i] / reference[i]);
    }
    return all;
  }
  /// Median of the ratios of pairs, which is steadier than the ratio of medians.
  [[nodiscard]] double ratio() const { return median(ratios()); }
  /// Ours, such that it is ratio() times the reference's median.
  [[nodiscard]] double our_median() const { return reference_median() * ratio(); }
};

/// One measurement, and the terms whose sum, each with its coefficient, should give it.
struct Sample {
  double value;
  std::vector<double> terms;
  double weight = 1;

  [[nodiscard]] double predicted(const std::vector<double>& coefficients) const {
    double sum = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      sum += coefficients[i] * terms[i];
    }
    return sum;
  }
};

/// Coefficients with the least sum of squared relative errors. As many samples as terms, at least,
/// and no term a combination of others.
[[nodiscard]] std::vector<double> fit(const std::vector<Sample>& samples);

/// The same with the least largest relative error, about: is there a model within so much of every
/// sample?
[[nodiscard]] std::vector<double> fit_evenly(std::vector<Sample> samples);

/// The largest relative error of the model.
[[nodiscard]] double worst_error(const std::vector<Sample>& samples,
                                 const std::vector<double>& coefficients);

}  // namespace sterna::bench
