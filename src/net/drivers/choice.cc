// Reads lists of drivers, and opens what they name.
#include "net/drivers/choice.h"

#include <algorithm>

#include "net/drivers/settings_of.h"

namespace sterna::net {
namespace {

constexpr std::size_t kChoicesMax = 16;
constexpr std::size_t kAroundMax = 8;

template <typename Entry>
const Entry* find_entry(std::span<const Entry* const> all, std::string_view name) {
  const auto found = std::ranges::find(all, name, [](const Entry* entry) { return entry->name; });
  return found == all.end() ? nullptr : *found;
}

template <typename Entry>
std::string names_of(std::span<const Entry* const> all) {
  std::string names;
  for (const Entry* entry : all) {
    names += (names.empty() ? "" : ", ") + std::string{entry->name};
  }
  return names;
}

Error wrong(std::string text) {
  return {Errc::invalid_argument, std::move(text)};
}

/// Takes the first part of `rest`, up to a comma that is in no parentheses.
std::string_view take_part(std::string_view& rest) {
  int depth = 0;
  std::size_t end = 0;
  for (; end < rest.size() && (depth > 0 || rest[end] != ','); ++end) {
    depth += rest[end] == '(' ? 1 : rest[end] == ')' ? -1 : 0;
  }
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

Result<> read_driver(std::string_view text, DriverChoice& choice) {
  const std::size_t at = text.find('@');
  const std::string_view name = text.substr(0, at);
  choice.entry = find_entry(builtin_drivers(), name);
  if (choice.entry == nullptr) {
    return wrong("there is no network driver '" + std::string{name} +
                 "'; the drivers of this build are: " + names_of(builtin_drivers()));
  }
  choice.name = text;
  if (at == std::string_view::npos) {
    return Done{};
  }
  choice.instance = text.substr(at + 1);
  if (choice.entry->instances.empty()) {
    return wrong("the network driver " + std::string{name} + " serves one network: write '" +
                 std::string{name} + "' instead of '" + std::string{text} + "'");
  }
  const bool is_plain = std::ranges::none_of(
      choice.instance, [](char c) { return c <= ' ' || c == '(' || c == ')' || c == '='; });
  if (choice.instance.empty() || !is_plain) {
    return wrong("what follows '@' in '" + std::string{text} + "' must be " +
                 std::string{choice.entry->instances});
  }
  return Done{};
}

Result<> read_parameter(std::string_view text, DriverChoice::Around& around) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  std::string known;
  for (const Tunable& tunable : around.entry->tunables) {
    const std::string_view own = tunable.name.substr(around.entry->name.size() + 1);
    if (equals != std::string_view::npos && own == name) {
      const std::string_view value = text.substr(equals + 1);
      if (Result<std::int64_t> parsed = parse_tunable(tunable, value); !parsed) {
        return wrong(std::string{around.entry->name} + ": " + std::string{name} + ": " +
                     parsed.error().text);
      }
      around.parameters.emplace_back(tunable.name, value);
      return Done{};
    }
    known += (known.empty() ? "" : ", ") + std::string{own} + "=...";
  }
  return wrong("'" + std::string{text} + "' is no parameter of " + std::string{around.entry->name} +
               ", which has: " + (known.empty() ? "none" : known));
}

Result<> read_choice(std::string_view text, DriverChoice& choice, std::size_t depth) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) {
    return read_driver(text, choice);
  }
  const std::string_view name = text.substr(0, open);
  const DecoratorEntry* const entry = find_entry(builtin_decorators(), name);
  if (entry == nullptr) {
    return wrong("there is nothing named '" + std::string{name} +
                 "' to put around a network driver; there are: " + names_of(builtin_decorators()));
  }
  if (text.back() != ')' || depth == kAroundMax) {
    return wrong("'" + std::string{text} + "' must look like " + std::string{name} +
                 "(DRIVER) or " + std::string{name} + "(DRIVER,NAME=VALUE)");
  }
  std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (Result<> read = read_choice(take_part(inside), choice, depth + 1); !read) {
    return read;
  }
  DriverChoice::Around around{.entry = entry};
  const std::string parameters = inside.empty() ? "" : "," + std::string{inside};
  while (!inside.empty()) {
    if (Result<> read = read_parameter(take_part(inside), around); !read) {
      return read;
    }
  }
  if (!parameters.empty() || !choice.full_name.empty()) {
    choice.full_name =
        std::string{name} + "(" + std::string{choice.full_text()} + parameters + ")";
  }
  choice.name = std::string{name} + "(" + choice.name + ")";
  around.name = choice.name;
  choice.around.push_back(std::move(around));
  return Done{};
}

}  // namespace

Result<std::vector<DriverChoice>> choose_drivers(std::string_view list) {
  std::vector<DriverChoice> chosen;
  if (list.empty()) {
    for (const DriverEntry* entry : builtin_drivers()) {
      if (!entry->is_on_request) {
        chosen.push_back({.entry = entry});
      }
    }
    return chosen;
  }
  const bool ends_with_comma = list.ends_with(',');
  while (!list.empty()) {
    DriverChoice choice;
    if (Result<> read = read_choice(take_part(list), choice, 0); !read) {
      return read.error();
    }
    if (std::ranges::find(chosen, choice.name, &DriverChoice::name) != chosen.end()) {
      return wrong("the network driver '" + choice.name + "' is named twice");
    }
    chosen.push_back(std::move(choice));
  }
  if (ends_with_comma || chosen.size() > kChoicesMax) {
    return wrong(ends_with_comma ? "there is no network driver behind the last comma"
                                 : "no more than 16 network drivers are used at once");
  }
  return chosen;
}

Result<std::vector<DriverChoice>> repeat_by_connections(std::span<const DriverChoice> chosen,
                                                        const Settings* settings) {
  std::vector<DriverChoice> repeated;
  for (const DriverChoice& choice : chosen) {
    const Tunable* const connections = choice.entry->connections;
    const std::int64_t count =
        connections == nullptr ? 1 : number_of({.settings = settings}, *connections);
    for (std::int64_t i = 1; i <= count; ++i) {
      DriverChoice& one = repeated.emplace_back(choice);
      if (i > 1) {
        const std::string suffix = "*" + std::to_string(i);
        one.name = std::string{choice.text()} + suffix;
        one.full_name += one.full_name.empty() ? "" : suffix;
      }
    }
  }
  if (repeated.size() > kChoicesMax) {
    return wrong("the networks named and their connections are " + std::to_string(repeated.size()) +
                 ", of at most 16");
  }
  return repeated;
}

Result<> verify_drivers(std::string_view list) {
  Result<std::vector<DriverChoice>> chosen = choose_drivers(list);
  return chosen ? Result<>{Done{}} : Result<>{chosen.error()};
}

void change_capabilities(const DecoratorEntry& entry, Capabilities& capabilities,
                         const DecoratorOptions& options) noexcept {
  capabilities.has_short_way = capabilities.can_lend = false;
  if (entry.change != nullptr) {
    entry.change(capabilities, options);
  }
}

ProbedDriver probe_driver(const DriverChoice& choice, const DriverOptions& options) noexcept {
  DriverOptions own = options;
  own.instance = choice.instance;
  ProbedDriver probed = choice.entry->probe != nullptr
                            ? choice.entry->probe(own)
                            : ProbedDriver{.capabilities = choice.entry->profile};
  for (const DriverChoice::Around& around : choice.around) {
    change_capabilities(*around.entry, probed.capabilities,
                        {around.entry, own, around.parameters, around.name});
  }
  if (!probed.absent.empty()) {
    probed.absent = std::string{choice.text()} + ": " + probed.absent;
  }
  return probed;
}

Result<std::unique_ptr<Driver>> open_driver(const DriverChoice& choice,
                                            const DriverOptions& options) noexcept {
  DriverOptions own = options;
  own.instance = choice.instance;
  Result<std::unique_ptr<Driver>> driver = choice.entry->open(own);
  for (const DriverChoice::Around& around : choice.around) {
    if (driver) {
      driver = around.entry->wrap(std::move(driver.value()),
                                  {around.entry, own, around.parameters, around.name});
    }
  }
  if (!driver) {
    return Error{driver.error().code,
                 "network driver " + std::string{choice.text()} + ": " + driver.error().text};
  }
  return driver;
}

}  // namespace sterna::net
