// Settings: each is declared once, as a Tunable in a constexpr table of its layer; Settings holds
// their values and says where each came from. Read at start-up, then copied into options structs.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"

namespace sterna {

enum class TunableKind : std::uint8_t {
  integer,  // 42
  bytes,    // 4096, 64K, 8M, 2G, 1T (powers of 1024)
  time,     // 250us, 10ms, 2s, 1min; kept in nanoseconds ("0" needs no unit)
  flag,     // on, off, yes, no, true, false, 1, 0
  text,     // anything
  choice,   // one word of `choices`
  list,     // words of `choices`, each once at most, with commas between them; may be empty
};

/// A constant with static life: `inline constexpr Tunable kEagerBytes{.name = "eager_bytes", ...};`
struct Tunable {
  std::string_view name;  // snake_case; STERNA_<NAME> in the environment, --<name> on command lines
  TunableKind kind = TunableKind::integer;
  std::string_view fallback = {};  // The default, written as a user would.
  std::string_view choices = {};   // For choice and list: "shm tcp sim".
  std::int64_t minimum = 0;        // For numbers, in the base unit.
  std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
  std::string_view help = {};
  std::string (*names)() = nullptr;  // For choice and list: the words, where a table knows them.
  Result<> (*verify)(std::string_view text) = nullptr;  // For text: why it is refused.
};

/// Ordered: a later one wins.
enum class SettingSource : std::uint8_t { fallback, file, environment, command_line };

/// One row of `sterna info`.
struct SettingRow {
  const Tunable* tunable;
  std::string_view value;  // As written.
  SettingSource source;
  std::string_view place;  // "built in", a file name, "STERNA_LOG", "--log".
};

/// Not thread-safe while it is filled; constant afterwards.
class Settings {
 public:
  /// `tables` have static life. Two tunables of one name, or a default outside its own range, are
  /// broken rules.
  explicit Settings(std::span<const std::span<const Tunable>> tables);
  explicit Settings(std::span<const Tunable> table);

  /// STERNA_CONFIG, else $XDG_CONFIG_HOME/sterna/config.toml, else ~/.config/sterna/config.toml
  /// (these two may be missing), then every STERNA_<NAME>. `environment` is as `environ`.
  [[nodiscard]] Result<> load(const char* const* environment);
  /// A TOML file of `name = value` lines; tables are joined: [net] eager_bytes is net_eager_bytes.
  /// Errors name file, line and setting. Unknown names are errors.
  [[nodiscard]] Result<> load_file(const std::string& path);
  /// Variables STERNA_<NAME>; those that no tunable has are left alone.
  [[nodiscard]] Result<> load_environment(const char* const* environment);
  /// `place` is printed in errors and rows, for example "--drivers". A value from a lower source
  /// than the present one is checked, then dropped.
  [[nodiscard]] Result<> set(std::string_view name, std::string_view value, SettingSource source,
                             std::string_view place);

  [[nodiscard]] bool has(std::string_view name) const noexcept;
  /// For integer, bytes (bytes) and time (nanoseconds).
  [[nodiscard]] std::int64_t number(const Tunable& tunable) const noexcept;
  [[nodiscard]] bool flag(const Tunable& tunable) const noexcept;
  /// For all kinds: the value as written. Valid until the next change.
  [[nodiscard]] std::string_view text(const Tunable& tunable) const noexcept;
  [[nodiscard]] SettingSource source(const Tunable& tunable) const noexcept;
  /// In the order of the tables.
  void for_each(FunctionRef<void(const SettingRow&)> row) const;

 private:
  struct Value {
    const Tunable* tunable;
    std::string text;
    std::int64_t number = 0;
    SettingSource source = SettingSource::fallback;
    std::string place;
  };
  void add(std::span<const Tunable> table);
  [[nodiscard]] const Value& value_of(const Tunable& tunable) const noexcept;
  [[nodiscard]] Value* find(std::string_view name) noexcept;

  std::vector<Value> values_;
};

/// The number that `text` means for a kind and range, or an error with what is allowed.
[[nodiscard]] Result<std::int64_t> parse_tunable(const Tunable& tunable, std::string_view text);
/// "integer from 1 to 64", "bytes (K, M, G) ...", "one of: shm tcp": what a user may write.
[[nodiscard]] std::string allowed_values(const Tunable& tunable);
[[nodiscard]] std::string_view to_string(SettingSource source) noexcept;

}  // namespace sterna
