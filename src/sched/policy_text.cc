// From a name with arguments to a policy: "gang(numa,slice=5)", "fallback(burst,steal)".
#include <array>
#include <cstdlib>

#include "base/spin_lock.h"
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"

namespace sterna::sched {
namespace {

constexpr std::size_t kRegisteredMax = 32;
constexpr std::uint32_t kTextNestingMax = 8;  // Within the outermost; `split` says it, too.
constexpr const char* kUnmatched = "do not match";
constinit SpinLock registry_lock;
constinit std::array<const PolicyEntry*, kRegisteredMax> registered{};  // Guard: registry_lock.

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  return text;
}

/// Splits at the commas that stand in no inner bracket. Null, or what is wrong with the brackets.
const char* split(std::string_view text, std::vector<std::string_view>& words) {
  std::uint32_t depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      words.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')' && depth-- == 0) {
      return kUnmatched;
    }
    if (depth > kTextNestingMax) {
      return "are more than 8 deep within the outermost ones: that many are the most";
    }
  }
  return depth == 0 ? nullptr : kUnmatched;
}

/// For people: a text without end is not repeated to them.
std::string beginning_of(std::string_view text) {
  constexpr std::size_t kShown = 100;
  return text.size() <= kShown ? std::string{text} : std::string{text.substr(0, kShown)} + "...";
}

}  // namespace

const PolicyEntry* find_policy(std::string_view name) noexcept {
  for (const PolicyEntry* const policy : builtin_policies()) {
    if (policy->name == name) {
      return policy;
    }
  }
  const SpinGuard guard{registry_lock};
  for (const PolicyEntry* const policy : registered) {
    if (policy != nullptr && policy->name == name) {
      return policy;
    }
  }
  return nullptr;
}

Result<> register_policy(const PolicyEntry& entry) {
  if (entry.name.empty() || entry.name.find_first_of("(), ") != std::string_view::npos) {
    return Error{Errc::invalid_argument, "sched: \"" + std::string{entry.name} +
                                             "\" is no name for a policy: brackets, commas and "
                                             "spaces separate arguments"};
  }
  if (find_policy(entry.name) != nullptr) {
    return Error{Errc::invalid_argument,
                 "sched: there is a policy \"" + std::string{entry.name} + "\" already"};
  }
  const SpinGuard guard{registry_lock};
  for (const PolicyEntry*& slot : registered) {
    if (slot == nullptr) {
      slot = &entry;
      return Done{};
    }
  }
  return Error{Errc::refused, "sched: a program registers " + std::to_string(kRegisteredMax) +
                                  " policies at most"};
}

std::size_t registered_policies(std::span<const PolicyEntry*> entries) noexcept {
  const SpinGuard guard{registry_lock};
  std::size_t count = 0;
  for (const PolicyEntry* const policy : registered) {
    if (policy != nullptr) {
      if (count < entries.size()) {
        entries[count] = policy;
      }
      ++count;
    }
  }
  return count;
}

namespace {

Result<std::unique_ptr<Policy>> make_from(std::string_view text) {
  const std::size_t bracket = text.find('(');
  const std::string_view name = trimmed(text.substr(0, bracket));
  const PolicyEntry* const entry = find_policy(name);
  if (entry == nullptr) {
    return Error{Errc::invalid_argument, "sched: there is no policy \"" + std::string{name} +
                                             "\"; `sterna info --policies` lists them"};
  }
  std::vector<std::string_view> arguments;
  std::string_view inner;
  if (bracket != std::string_view::npos) {
    inner = text.substr(bracket + 1);
    const bool is_closed = inner.ends_with(')');
    inner.remove_suffix(is_closed ? 1 : 0);
    const char* const wrong = is_closed ? split(inner, arguments) : kUnmatched;
    if (wrong != nullptr) {
      return Error{Errc::invalid_argument,
                   "sched: the brackets of \"" + beginning_of(text) + "\" " + wrong};
    }
  }
  if (entry->make_foreign == nullptr) {
    return entry->make(arguments);
  }
  if (!arguments.empty() && entry->arguments.empty()) {
    return unexpected_argument(name, arguments.front(), {});
  }
  return entry->make_foreign(entry->foreign, trimmed(inner));
}

}  // namespace

Result<std::unique_ptr<Policy>> make_policy(std::string_view text) {
  text = trimmed(text);
  auto made = make_from(text);
  if (made) {
    made.value()->set_text(text);
  }
  return made;
}

std::optional<topology::PlaceKind> to_place_kind(std::string_view word) noexcept {
  using enum topology::PlaceKind;
  for (const auto kind : {network, machine, package, numa, group, l3, l2, core, pu}) {
    if (topology::to_string(kind) == word) {
      return kind;
    }
  }
  return word == "node" ? std::optional{numa} : std::nullopt;
}

Result<std::optional<std::uint64_t>> to_slice_ns(std::string_view word) {
  constexpr std::string_view kKey = "slice=";
  if (!word.starts_with(kKey)) {
    return std::optional<std::uint64_t>{};
  }
  const std::string number{word.substr(kKey.size())};
  char* end = nullptr;
  const double milliseconds = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !(milliseconds >= 0.001 && milliseconds <= 1e6)) {
    return Error{Errc::invalid_argument, "sched: \"" + std::string{word} +
                                             "\" is no time slice; it is 0.001 to 1000000 ms"};
  }
  return std::optional{static_cast<std::uint64_t>(milliseconds * 1e6)};
}

Error unexpected_argument(std::string_view policy, std::string_view word,
                          std::string_view allowed) {
  return Error{Errc::invalid_argument,
               "sched: policy " + std::string{policy} + " does not take \"" + std::string{word} +
                   "\"; it takes " + std::string{allowed.empty() ? "nothing" : allowed}};
}

}  // namespace sterna::sched
