// User threads and bubbles of a node for people: a tree, in columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace sterna::launch {

/// Of what is in one bubble; what it holds stays below it.
enum class EntityOrder : std::uint8_t { tree, use, load, memory, place, state };

/// Adds "use" to each entity of `node` (1: all of a processor; a bubble: what its threads have
/// together), since the look `before`, `seconds` ago; without one there is none.
void add_entity_uses(nlohmann::json& node, const nlohmann::json& before, double seconds);

[[nodiscard]] std::string entity_title();
/// A row an entity, then one a fault. Empty: the program has none.
[[nodiscard]] std::vector<std::string> entity_rows(const nlohmann::json& node,
                                                   EntityOrder order = EntityOrder::tree);

}  // namespace sterna::launch
