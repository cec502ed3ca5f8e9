// Rounds, in turn, and their medians.
#include "bench/contest.h"

#include <algorithm>

#include <fmt/format.h>

#include "bench/statistics.h"

namespace sterna::bench {
namespace {

struct Runner {
  Command command;
  std::vector<Readings> rounds;
  std::string trouble;
};

Runner prepare(const Contest& contest, const Candidate& candidate, Bench& bench) {
  Runner runner;
  Result<std::string> executable = build_program(bench, candidate.maker, contest.program);
  if (!executable) {
    runner.trouble = executable.error().text;
    return runner;
  }
  runner.command =
      launch_command(bench, candidate, contest.rank_count, executable.value(), contest.arguments);
  runner.command.seconds_max = contest.seconds_max;
  runner.command.is_preferred = contest.is_preferred;
  return runner;
}

Standing finish(const Candidate& candidate, const Runner& runner, const Bench& bench) {
  Standing standing{candidate.name, {}, runner.trouble, runner.rounds};
  if (!standing.trouble.empty()) {
    bench.say(fmt::format("{}: {}", candidate.name, standing.trouble));
    return standing;
  }
  std::map<std::string, std::vector<double>> samples_of;
  for (const Readings& readings : runner.rounds) {
    for (const auto& [name, value] : readings) {
      samples_of[name].push_back(value);
    }
  }
  for (const auto& [name, samples] : samples_of) {
    standing.medians[name] = median(samples);
    bench.say(fmt::format("{}: {} {:.4g}", candidate.name, name, standing.medians[name]));
  }
  return standing;
}

/// Who is at `place` in that round: the first one changes, and so does the direction, so that each
/// comes before and after each other one. Of two, either first, by turns.
std::size_t at_place(std::size_t place, std::size_t round, std::size_t count) noexcept {
  return (round + (round % 2 == 0 ? place : count - place)) % count;
}

/// Ours over the other's, of the rounds that have both. Empty: none has.
std::optional<double> ratio_of_rounds(const Standing& ours, const Standing& other,
                                      const std::string& reading) {
  Pairs pairs;
  for (std::size_t i = 0; i < std::min(ours.rounds.size(), other.rounds.size()); ++i) {
    const auto own = ours.rounds[i].find(reading);
    const auto its = other.rounds[i].find(reading);
    if (own != ours.rounds[i].end() && its != other.rounds[i].end()) {
      pairs.add(own->second, its->second);
    }
  }
  return pairs.ours.empty() ? std::nullopt : std::optional{pairs.ratio()};
}

}  // namespace

std::vector<Standing> hold(const Contest& contest, Bench& bench) {
  std::vector<Runner> runners;
  for (const Candidate& candidate : contest.candidates) {
    runners.push_back(prepare(contest, candidate, bench));
  }
  for (int round = 0; round < contest.rounds; ++round) {
    for (std::size_t place = 0; place < runners.size(); ++place) {
      Runner& runner = runners[at_place(place, static_cast<std::size_t>(round), runners.size())];
      if (!runner.trouble.empty()) {
        continue;
      }
      Result<Readings> readings = run_command(runner.command, bench.work_folder());
      if (!readings) {
        runner.trouble = readings.error().text;
        continue;
      }
      runner.rounds.push_back(std::move(readings.value()));
    }
  }
  std::vector<Standing> standings;
  for (std::size_t i = 0; i < runners.size(); ++i) {
    standings.push_back(finish(contest.candidates[i], runners[i], bench));
  }
  return standings;
}

std::string size_text(int bytes) {
  return bytes < 64 << 10  ? fmt::format("{} B", bytes)
         : bytes < 1 << 20 ? fmt::format("{} KB", bytes >> 10)
                           : fmt::format("{} MB", bytes >> 20);
}

std::optional<double> reading_of(const Standing& standing, const std::string& name) {
  const auto found = standing.medians.find(name);
  return found != standing.medians.end() ? std::optional{found->second} : std::nullopt;
}

Figure compare_with(const Row& row, const Standing& ours, const Judged& judged,
                    std::string reference, std::optional<double> reference_value) {
  Figure figure{.id = row.id,
                .params = judged.params,
                .unit = judged.unit,
                .reference = std::move(reference),
                .reference_value = reference_value,
                .more_is_better = judged.more_is_better};
  if (!judged.is_information) {
    figure.target = row.target;
  }
  if (const auto own = reading_of(ours, judged.reading)) {
    figure.value = *own * judged.scale;
  } else {
    figure.note = "ours: " + (ours.trouble.empty() ? "printed no figure" : ours.trouble);
  }
  return figure;
}

Figure compare(const Row& row, const std::vector<Standing>& standings, const Judged& judged) {
  Figure figure = compare_with(row, standings.front(), judged, {}, {});
  const Standing* best = nullptr;
  for (std::size_t i = 1; i < standings.size(); ++i) {
    const auto reading = reading_of(standings[i], judged.reading);
    if (!reading) {
      continue;
    }
    const double value = *reading * judged.scale;
    if (!figure.reference_value || (judged.more_is_better ? value > *figure.reference_value
                                                          : value < *figure.reference_value)) {
      figure.reference_value = value;
      best = &standings[i];
    }
  }
  if (best != nullptr) {
    figure.reference = best->name;
    // What happens to the machine in a round happens to both: steadier than the ratio of medians.
    const auto cost = ratio_of_rounds(standings.front(), *best, judged.reading);
    figure.value =
        figure.value && cost ? std::optional{*figure.reference_value * *cost} : figure.value;
  }
  if (!figure.reference_value && figure.note.empty()) {
    figure.reference = "none";
    figure.note = standings.size() > 1 ? standings[1].trouble : "";
  }
  return figure;
}

}  // namespace sterna::bench
