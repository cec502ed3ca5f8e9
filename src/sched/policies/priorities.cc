// Priorities (paper 003 §3.4.4, in levels): each outermost entity is ruled by the policy of its
// level, "priorities(realtime=gang,normal=steal,batch=flat)": that with the highest level which is
// not above its priority; below all of them, by that of the lowest. The mechanism runs what is more
// urgent first; what it leaves of the machine is for the others, under their usual policy.
#include <algorithm>
#include <array>
#include <charconv>

#include "sched/engine.h"
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/policies/combinator.h"

namespace sterna::sched {
namespace {

struct Level {
  std::uint8_t from = 0;  // Priorities from here on, up to the level before it.
  std::string_view policy;
};

class Priorities final : public Combinator {
 public:
  /// `from`: of each policy, descending.
  Priorities(Policies inner, std::vector<std::uint8_t> from) noexcept
      : Combinator{std::move(inner)}, from_{std::move(from)} {}

  void submit(View& view, Entity& top) noexcept override { give(view, top, level_of(top)); }

  void adjust(View& view, Entity& entity) noexcept override {
    if (const std::size_t level = level_of(entity);
        &view.top_of(entity) == &entity && !view.is_ruled_by(entity, *inner_[level])) {
      give(view, entity, level);
    } else {
      Combinator::adjust(view, entity);
    }
  }

  void shake(View& view) noexcept override {
    for (Entity* top = view.first_top(); top != nullptr; top = view.next_top(*top)) {
      if (view.is_ruled_by(*top, *this)) {
        submit(view, *top);
      }
    }
  }

  bool idle(View& view, const topology::Place& processor) noexcept override {
    for (std::size_t level = 0; level < inner_.size(); ++level) {
      if (View its = view_of(view, level); inner_[level]->idle(its, processor)) {
        return true;
      }
    }
    return false;
  }

 private:
  [[nodiscard]] std::size_t level_of(const Entity& top) const noexcept {
    const std::uint8_t priority = top.effective_priority();
    std::size_t level = 0;
    while (level + 1 < from_.size() && priority < from_[level]) {
      ++level;
    }
    return level;
  }

  const std::vector<std::uint8_t> from_;  // By inner policy, descending.
};

/// "realtime", or the number of a priority.
std::optional<std::uint8_t> to_priority(std::string_view word) noexcept {
  struct Name {
    std::string_view name;
    std::uint8_t from;
  };
  // Of the normal class the lowest: what is nice counts as normal, too.
  static constexpr std::array kNames{Name{"system", kPrioritySystem},
                                     Name{"realtime", kPriorityRealTime},
                                     Name{"normal", kPriorityBatch + 1},
                                     Name{"batch", kPriorityLowBatch}, Name{"idle", kPriorityIdle}};
  const auto* const known = std::ranges::find(kNames, word, &Name::name);
  if (known != kNames.end()) {
    return known->from;
  }
  std::uint8_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && end == word.data() + word.size() && number < kPriorityCount
             ? std::optional{number}
             : std::nullopt;
}

/// "realtime=gang(slice=5)". Nothing: no level is named.
std::optional<Level> to_level(std::string_view argument) noexcept {
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos || equals > argument.find('(')) {
    return std::nullopt;
  }
  std::string_view word = argument.substr(0, equals);
  while (word.ends_with(' ')) {
    word.remove_suffix(1);
  }
  const auto from = to_priority(word);
  return from ? std::optional{Level{*from, argument.substr(equals + 1)}} : std::nullopt;
}

Error unknown_level(std::string_view argument) {
  return {Errc::invalid_argument,
          "sched: policy priorities: \"" + std::string{argument} +
              "\" is no level with a policy; write system, realtime, normal, batch, idle or a "
              "priority from 0 to " +
              std::to_string(kPriorityCount - 1) + ", each once, as in \"realtime=gang\""};
}

/// The levels that are named, the most urgent first; without names the first is for real time.
Result<std::vector<Level>> read_levels(PolicyArguments arguments) {
  std::vector<Level> levels;
  const bool has_names =
      std::ranges::any_of(arguments, [](const auto& one) { return to_level(one).has_value(); });
  if (!has_names && arguments.size() == 2) {
    return std::vector<Level>{{kPriorityRealTime, arguments[0]}, {kPriorityIdle, arguments[1]}};
  }
  for (const std::string_view argument : arguments) {
    const auto level = to_level(argument);
    if (!level || std::ranges::find(levels, level->from, &Level::from) != levels.end()) {
      return unknown_level(argument);
    }
    levels.push_back(*level);
  }
  if (levels.empty()) {
    return unexpected_argument("priorities", "", kPrioritiesPolicy.arguments);
  }
  std::ranges::sort(levels, std::ranges::greater{}, &Level::from);
  return levels;
}

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  auto levels = read_levels(arguments);
  if (!levels) {
    return levels.error();
  }
  std::vector<std::string_view> texts;
  std::vector<std::uint8_t> from;
  for (const Level& level : levels.value()) {
    texts.push_back(level.policy);
    from.push_back(level.from);
  }
  auto inner = make_policies(texts, 0);
  if (!inner) {
    return inner.error();
  }
  return try_make<Policy, Priorities>(std::move(inner.value()), std::move(from));
}

}  // namespace

constinit const PolicyEntry kPrioritiesPolicy{
    .name = "priorities",
    .arguments = "LEVEL=POLICY,...",
    .summary = "a policy for each level of priority: realtime=gang,normal=steal,batch=flat",
    .make = make,
};

}  // namespace sterna::sched
