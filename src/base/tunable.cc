// Parses and keeps the values of settings.
#include "base/tunable.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace sterna {

namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};
constexpr std::array kByteUnits{
    Unit{"K", 1LL << 10},   Unit{"M", 1LL << 20},   Unit{"G", 1LL << 30},
    Unit{"T", 1LL << 40},   Unit{"KiB", 1LL << 10}, Unit{"MiB", 1LL << 20},
    Unit{"GiB", 1LL << 30}, Unit{"TiB", 1LL << 40}, Unit{"", 1}};
constexpr std::array kTimeUnits{Unit{"ns", 1}, Unit{"us", 1'000}, Unit{"ms", 1'000'000},
                                Unit{"s", 1'000'000'000}, Unit{"min", 60'000'000'000}};
constexpr std::array kNoUnits{Unit{"", 1}};

std::span<const Unit> units_of(TunableKind kind) noexcept {
  if (kind == TunableKind::bytes) {
    return kByteUnits;
  }
  if (kind == TunableKind::time) {
    return kTimeUnits;
  }
  return kNoUnits;
}

bool has_word(std::string_view words, std::string_view word) noexcept {
  while (!words.empty()) {
    const std::string_view first = words.substr(0, words.find(' '));
    if (first == word && !word.empty()) {
      return true;
    }
    words.remove_prefix(std::min(words.size(), first.size() + 1));
  }
  return false;
}

// The number, whatever its range; nothing when it is none or does not fit 64 bits.
std::optional<std::int64_t> parse_number(TunableKind kind, std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  if (text.empty() && value == 0) {
    return 0;  // Nothing needs no unit.
  }
  for (const Unit& unit : units_of(kind)) {
    std::int64_t product = 0;
    if (unit.name == text && !__builtin_mul_overflow(value, unit.factor, &product)) {
      return product;
    }
  }
  return std::nullopt;
}

std::string number_text(TunableKind kind, std::int64_t value) {
  const Unit* best = nullptr;
  for (const Unit& unit : units_of(kind)) {
    if (value % unit.factor == 0 && (best == nullptr || unit.factor > best->factor)) {
      best = &unit;
    }
  }
  return value == 0 ? "0" : fmt::format("{}{}", value / best->factor, best->name);
}

std::string choices_of(const Tunable& tunable) {
  return tunable.names != nullptr ? tunable.names() : std::string{tunable.choices};
}

// Each item one of `words`, and none twice.
bool is_list_of(std::string_view words, std::string_view items) noexcept {
  std::string_view rest = items;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    if (!has_word(words, item) || (comma != std::string_view::npos && rest.empty())) {
      return false;
    }
    for (std::string_view others = rest; !others.empty();) {
      const std::string_view other = others.substr(0, others.find(','));
      if (other == item) {
        return false;
      }
      others.remove_prefix(std::min(others.size(), other.size() + 1));
    }
  }
  return true;
}

std::string environment_name(std::string_view name) {
  std::string result = "STERNA_";
  for (const char c : name) {
    result += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return result;
}

}  // namespace

std::string_view to_string(SettingSource source) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"default", "configuration file", "environment",
                                                   "command line"};
  return kNames[static_cast<std::size_t>(source)];
}

std::string allowed_values(const Tunable& tunable) {
  const auto range = [&](std::string_view what) {
    const std::string low = number_text(tunable.kind, tunable.minimum);
    return tunable.maximum == std::numeric_limits<std::int64_t>::max()
               ? fmt::format("{}, {} or more", what, low)
               : fmt::format("{}, from {} to {}", what, low,
                             number_text(tunable.kind, tunable.maximum));
  };
  switch (tunable.kind) {
    case TunableKind::integer:
      return range("a whole number");
    case TunableKind::bytes:
      return range("bytes (a whole number with K, M, G, T or nothing)");
    case TunableKind::time:
      return range("a time (a whole number with ns, us, ms, s or min)");
    case TunableKind::flag:
      return "on or off";
    case TunableKind::choice:
      return fmt::format("one of: {}", choices_of(tunable));
    case TunableKind::list:
      return fmt::format("any of: {}; with commas between them", choices_of(tunable));
    case TunableKind::text:
      return "any text";
  }
  return {};
}

Result<std::int64_t> parse_tunable(const Tunable& tunable, std::string_view text) {
  const auto refuse = [&] {
    return Error{Errc::invalid_argument, fmt::format("\"{}\" is not a value of {}; allowed is {}",
                                                     text, tunable.name, allowed_values(tunable))};
  };
  switch (tunable.kind) {
    case TunableKind::flag:
      if (has_word("on yes true 1", text)) {
        return 1;
      }
      return has_word("off no false 0", text) ? Result<std::int64_t>{0} : refuse();
    case TunableKind::choice:
      return has_word(choices_of(tunable), text) ? Result<std::int64_t>{0} : refuse();
    case TunableKind::list:
      return is_list_of(choices_of(tunable), text) ? Result<std::int64_t>{0} : refuse();
    case TunableKind::text:
      if (Result<> verified = tunable.verify != nullptr ? tunable.verify(text) : Done{};
          !verified) {
        return Error{verified.error().code, fmt::format("\"{}\" is not a value of {}: {}", text,
                                                        tunable.name, verified.error().text)};
      }
      return 0;
    default:
      break;
  }
  const std::optional<std::int64_t> value = parse_number(tunable.kind, text);
  if (!value || *value < tunable.minimum || *value > tunable.maximum) {
    return refuse();
  }
  return *value;
}

Settings::Settings(std::span<const std::span<const Tunable>> tables) {
  for (const std::span<const Tunable> table : tables) {
    add(table);
  }
}

Settings::Settings(std::span<const Tunable> table) {
  add(table);
}

void Settings::add(std::span<const Tunable> table) {
  for (const Tunable& tunable : table) {
    check(!has(tunable.name), "two settings do not share a name");
    Result<std::int64_t> number = parse_tunable(tunable, tunable.fallback);
    check(number.has_value(), "the default of a setting is one of its allowed values");
    values_.push_back({&tunable, std::string{tunable.fallback}, number.value(),
                       SettingSource::fallback, "built in"});
  }
}

Settings::Value* Settings::find(std::string_view name) noexcept {
  for (Value& value : values_) {
    if (value.tunable->name == name) {
      return &value;
    }
  }
  return nullptr;
}

bool Settings::has(std::string_view name) const noexcept {
  return std::any_of(values_.begin(), values_.end(),
                     [&](const Value& value) { return value.tunable->name == name; });
}

Result<> Settings::set(std::string_view name, std::string_view text, SettingSource source,
                       std::string_view place) {
  Value* value = find(name);
  if (value == nullptr) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: there is no setting {}; `sterna info` lists them", place, name)};
  }
  Result<std::int64_t> number = parse_tunable(*value->tunable, text);
  if (!number) {
    return Error{number.error().code, fmt::format("{}: {}", place, number.error().text)};
  }
  if (source >= value->source) {
    value->text = text;
    value->number = number.value();
    value->source = source;
    value->place = place;
  }
  return Done{};
}

Result<> Settings::load_environment(const char* const* environment) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with("STERNA_") || name.size() == entry.size()) {
      continue;
    }
    for (const Value& value : values_) {
      if (environment_name(value.tunable->name) == name) {
        if (Result<> done = set(value.tunable->name, entry.substr(name.size() + 1),
                                SettingSource::environment, name);
            !done) {
          return done;
        }
        break;
      }
    }
  }
  return Done{};
}

const Settings::Value& Settings::value_of(const Tunable& tunable) const noexcept {
  const auto value = std::find_if(values_.begin(), values_.end(), [&](const Value& candidate) {
    return candidate.tunable->name == tunable.name;
  });
  check(value != values_.end(), "a setting is read from settings that hold its table");
  return *value;
}

std::int64_t Settings::number(const Tunable& tunable) const noexcept {
  check(tunable.kind == TunableKind::integer || tunable.kind == TunableKind::bytes ||
            tunable.kind == TunableKind::time,
        "number() reads integers, bytes and times");
  return value_of(tunable).number;
}

bool Settings::flag(const Tunable& tunable) const noexcept {
  check(tunable.kind == TunableKind::flag, "flag() reads flags");
  return value_of(tunable).number != 0;
}

std::string_view Settings::text(const Tunable& tunable) const noexcept {
  return value_of(tunable).text;
}

SettingSource Settings::source(const Tunable& tunable) const noexcept {
  return value_of(tunable).source;
}

void Settings::for_each(FunctionRef<void(const SettingRow&)> row) const {
  for (const Value& value : values_) {
    row({value.tunable, value.text, value.source, value.place});
  }
}

}  // namespace sterna
