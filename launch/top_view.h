// What `sterna top` shows: two looks at a job make rates; a look and the user's choices make lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace sterna::launch {

// The last ones order user threads and bubbles, those of each bubble by themselves; `processor`
// both.
enum class TopOrder : std::uint8_t {
  rank,
  processor,
  messages,
  moves,
  node,
  load,
  memory,
  place,
  state
};
// A list; by node and worker; user threads and bubbles alone.
enum class TopPage : std::uint8_t { ranks, places, entities };

struct TopChoices {
  TopOrder order = TopOrder::rank;
  TopPage page = TopPage::ranks;
  bool is_paused = false;
  bool is_help_wanted = false;
  std::size_t first_row = 0;
};

/// A look at a job (launch/report.h), with rates since the look before (null: none): adds
/// "use" of each worker and rank, user thread and bubble (1: all of a processor),
/// "messages_per_second" of ranks, "moved".
[[nodiscard]] nlohmann::json with_rates(nlohmann::json now, const nlohmann::json& before);

/// At most `height` lines of at most `width` characters; the first is the title. Height 0: all.
[[nodiscard]] std::vector<std::string> render_top(const nlohmann::json& job,
                                                  const TopChoices& choices, std::size_t width,
                                                  std::size_t height);

/// What a key changes; false: leave.
[[nodiscard]] bool take_key(TopChoices& choices, char key) noexcept;

}  // namespace sterna::launch
