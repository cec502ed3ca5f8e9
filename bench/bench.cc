// Prints figures: a table for readers, or one JSON object a line.
#include "bench/bench.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/json_text.h"
#include "launch/spawn.h"

namespace sterna::bench {
namespace {

using nlohmann::json;

json number(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
}

/// Three significant digits.
std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.3g}", *value >= 1000 ? std::round(*value) : *value) : "-";
}

std::string large_cell(const std::optional<double>& value) {
  return value && *value >= 1000 ? fmt::format("{:.0f}", *value) : cell(value);
}

void print_json(const Figure& figure) {
  const std::optional<bool> pass = passes(figure);
  json line{{"id", figure.id},
            {"params", figure.params},
            {"value", number(figure.value)},
            {"unit", figure.unit},
            {"reference", figure.reference},
            {"reference_value", number(figure.reference_value)},
            {"ratio", number(ratio(figure))},
            {"target", number(figure.target)},
            {"pass", pass ? json(*pass) : json(nullptr)}};
  if (!figure.note.empty()) {
    line["note"] = figure.note;
  }
  fmt::print("{}\n", launch::json_text(line));
}

void print_line(const Figure& figure) {
  const std::optional<bool> pass = passes(figure);
  const char* const verdict = !pass ? "-" : *pass ? "yes" : "NO";
  fmt::print("{:<22} {:<30} {:>9} {:>9} {:<5} {:>7} {:>6} {:<4}  {}{}{}\n", figure.id,
             figure.params, large_cell(figure.value), large_cell(figure.reference_value),
             figure.unit, cell(ratio(figure)), cell(figure.target), verdict, figure.reference,
             figure.note.empty() ? "" : ": ", figure.note);
}

}  // namespace

Bench::Bench(BenchOptions options, std::string work_folder)
    : options_{std::move(options)},
      work_folder_{std::move(work_folder)},
      bin_folder_{launch::own_folder()},
      program_folder_{bin_folder_ + "/../share/sterna/bench"} {}

void Bench::add(const Figure& figure) {
  all_pass_ = all_pass_ && passes(figure).value_or(true);
  if (options_.json) {
    print_json(figure);
  } else {
    if (!has_header_) {
      fmt::print("{:<22} {:<30} {:>9} {:>9} {:<5} {:>7} {:>6} {:<4}  {}\n", "id", "params", "ours",
                 "reference", "unit", "ratio", "target", "pass", "reference");
      has_header_ = true;
    }
    print_line(figure);
  }
  std::fflush(stdout);
}

void Bench::add_aim(Figure figure, double aim) {
  figure.params += ", aim";
  figure.reference = "aim, absolute";
  figure.reference_value = aim;
  figure.target = options_.absolute ? std::optional{1.0} : std::nullopt;
  figure.note.clear();
  if (figure.value) {
    add(figure);
  }
}

void Bench::say(const std::string& text) const {
  if (options_.verbose) {
    fmt::print(stderr, "  {}\n", text);
  }
}

}  // namespace sterna::bench
