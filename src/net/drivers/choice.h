// What a list like "shm,drop(tcp@eth0,rate=1000)" names: drivers, their instances, and what is put
// around them.
//
//   list       choice, choice, ...
//   choice     driver | driver@instance | decorator(choice) | decorator(choice,name=value,...)
//
// An instance is one network of a driver that can serve several, in words of the driver (tcp: an
// interface). Parameters are the tunables of the decorator, without its name in front: those
// written here count for this driver only, others are settings of the job.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/driver.h"

namespace sterna::net {

/// A parameter as written: name and value.
using Parameter = std::pair<std::string, std::string>;

struct DecoratorEntry;

struct DecoratorOptions {
  const DecoratorEntry* entry;
  const DriverOptions& driver;            // What the driver inside was opened with.
  std::span<const Parameter> parameters;  // Checked against the entry's tunables.
  std::string_view name;                  // Of the whole: "drop(tcp)". Lives as long as the driver.
};

/// Something around a driver that is itself one: it changes, counts or records what goes through.
struct DecoratorEntry {
  std::string_view name;
  std::string_view summary;           // One line, for `sterna info`.
  std::span<const Tunable> tunables;  // Each name begins with that of the decorator and '_'.
  Result<std::unique_ptr<Driver>> (*wrap)(std::unique_ptr<Driver> inner,
                                          const DecoratorOptions& options) noexcept;
  // What the driver inside is capable of becomes this. Null: no more than around any driver.
  void (*change)(Capabilities& capabilities, const DecoratorOptions& options) noexcept = nullptr;
};

/// As `entry.change` has it, and what no decorator hands on.
void change_capabilities(const DecoratorEntry& entry, Capabilities& capabilities,
                         const DecoratorOptions& options) noexcept;

/// All decorators of this build; see net/drivers/builtin.cc.
[[nodiscard]] std::span<const DecoratorEntry* const> builtin_decorators() noexcept;

/// One driver of a list.
struct DriverChoice {
  struct Around {
    const DecoratorEntry* entry;
    std::vector<Parameter> parameters{};
    std::string name{};  // Of what it makes; empty: made from the entries.
  };
  const DriverEntry* entry = nullptr;
  std::string name{};            // As written without parameters: "drop(tcp@eth0)"; empty: entry's.
  std::string instance{};        // What follows '@'.
  std::vector<Around> around{};  // The innermost first.
  std::string full_name{};       // With parameters; empty: there are none.

  [[nodiscard]] std::string_view text() const noexcept {
    return name.empty() ? entry->name : std::string_view{name};
  }
  /// What it costs is kept under this name: parameters make another network of it.
  [[nodiscard]] std::string_view full_text() const noexcept {
    return full_name.empty() ? text() : std::string_view{full_name};
  }
};

/// The drivers that a list names, in its order; an empty one: all built-in ones. What is wrong with
/// a text is an error that lists what could be meant.
[[nodiscard]] Result<std::vector<DriverChoice>> choose_drivers(std::string_view list);

/// As many of each as it has connections (DriverEntry::connections, by `settings`, which may be
/// null): "tcp@eth0", "tcp@eth0*2", ... An error where that makes too many.
[[nodiscard]] Result<std::vector<DriverChoice>> repeat_by_connections(
    std::span<const DriverChoice> chosen, const Settings* settings);

/// Why a text is no value of the setting `drivers`.
[[nodiscard]] Result<> verify_drivers(std::string_view list);

/// What is known of one without opening it; what is absent begins with its name.
[[nodiscard]] ProbedDriver probe_driver(const DriverChoice& choice,
                                        const DriverOptions& options) noexcept;

/// Opens one. `choice` outlives the driver. Errors begin with its name.
[[nodiscard]] Result<std::unique_ptr<Driver>> open_driver(const DriverChoice& choice,
                                                          const DriverOptions& options) noexcept;

}  // namespace sterna::net
