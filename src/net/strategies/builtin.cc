// The table of strategies. A new one: write its file, declare it in builtin.h, add it here.
#include "net/strategies/builtin.h"

#include <string>

#include <dlfcn.h>
#include <fmt/format.h>

namespace sterna::net {
namespace {

constexpr const StrategyEntry* kStrategies[] = {&kAutoStrategy,   &kAggregateStrategy,
                                                &kDirectStrategy, &kSplitStrategy,
                                                &kUrgentStrategy, &kAdaptiveStrategy};

bool is_path(std::string_view name) noexcept {
  return name.find('/') != std::string_view::npos;
}

Result<const StrategyEntry*> find_builtin(std::string_view name) {
  std::string known;
  for (const StrategyEntry* entry : kStrategies) {
    if (entry->name == name) {
      return entry;
    }
    known += known.empty() ? "" : ", ";
    known += entry->name;
  }
  return Error{Errc::invalid_argument,
               fmt::format("there is no network strategy '{}'; net_strategy is one of: {}; or the "
                           "path of a library, with a '/' (see sterna/strategy.hpp)",
                           name, known)};
}

/// The library stays loaded: its object is in use until the process ends.
Result<const Strategy*> load(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error{Errc::invalid_argument,
                 fmt::format("the network strategy {} cannot be loaded: {}", path, ::dlerror())};
  }
  const auto* const plugin =
      static_cast<const StrategyPlugin*>(::dlsym(library, "sterna_strategy_plugin"));
  if (plugin == nullptr) {
    return Error{
        Errc::invalid_argument,
        fmt::format("{} is no network strategy: it does not say STERNA_STRATEGY(...)", path)};
  }
  if (plugin->abi != kStrategyAbi) {
    return Error{Errc::invalid_argument,
                 fmt::format("the network strategy {} was built for version {} of "
                             "sterna/strategy.hpp, this is version {}: build it again",
                             path, plugin->abi, kStrategyAbi)};
  }
  if (plugin->strategy == nullptr) {
    return Error{Errc::invalid_argument,
                 fmt::format("the network strategy {} has no object: STERNA_STRATEGY(...) gives it "
                             "one",
                             path)};
  }
  return plugin->strategy;
}

}  // namespace

std::span<const StrategyEntry* const> builtin_strategies() noexcept {
  return kStrategies;
}

Result<const Strategy*> find_strategy(std::string_view name) {
  if (is_path(name)) {
    return load(std::string{name});
  }
  Result<const StrategyEntry*> entry = find_builtin(name);
  if (!entry) {
    return entry.error();
  }
  return entry.value()->strategy;
}

Result<> verify_strategy(std::string_view name) {
  if (is_path(name)) {
    return Done{};
  }
  if (Result<const StrategyEntry*> entry = find_builtin(name); !entry) {
    return entry.error();
  }
  return Done{};
}

}  // namespace sterna::net
