// Rates and rows of user threads and bubbles.
#include "launch/entity_view.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/priority.h"

namespace sterna::launch {
namespace {

using nlohmann::json;

constexpr std::size_t kNameCells = 34;
constexpr std::size_t kIndentMax = 10;  // Levels; deeper ones are not moved further.

/// An entity and what is below it: indices of the list, whose order is that of the tree.
struct Branch {
  std::size_t entity = 0;
  std::vector<Branch> held;
};

std::vector<Branch> branches(const json& entities, std::size_t& at, unsigned depth) {
  std::vector<Branch> found;
  while (at < entities.size() && entities[at].value("depth", 0U) >= depth) {
    Branch& branch = found.emplace_back(Branch{.entity = at, .held = {}});
    ++at;
    branch.held = branches(entities, at, depth + 1);
  }
  return found;
}

bool is_bubble(const json& entity) {
  return entity.value("kind", "") == "bubble";
}

/// Where it runs or ran last: as rows are ordered by it, "pu 10" comes after "pu 9".
std::pair<std::size_t, std::string> place_key(const json& entity) {
  std::string place = entity.value("last_place", "");
  return {place.size(), std::move(place)};
}

void sort_branches(const json& entities, EntityOrder order, std::vector<Branch>& found) {
  const auto number = [&](const Branch& one, const char* name) {
    return -entities[one.entity].value(name, 0.0);  // Most first.
  };
  const auto text = [&](const Branch& one, const char* name) {
    return entities[one.entity].value(name, "");
  };
  std::ranges::stable_sort(found, [&](const Branch& one, const Branch& other) {
    switch (order) {
      case EntityOrder::use:
        return number(one, "use") < number(other, "use");
      case EntityOrder::load:
        return number(one, "load") < number(other, "load");
      case EntityOrder::memory:
        return number(one, "memory_bytes") < number(other, "memory_bytes");
      case EntityOrder::place:
        return place_key(entities[one.entity]) < place_key(entities[other.entity]);
      case EntityOrder::state:
        return text(one, "state") < text(other, "state");
      case EntityOrder::tree:
        break;
    }
    return false;
  });
  for (Branch& branch : found) {
    sort_branches(entities, order, branch.held);
  }
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"", "K", "M", "G", "T"};
  std::size_t unit = 0;
  while (bytes >= 10'000 && unit + 1 < std::size(kUnits)) {
    bytes >>= 10;
    ++unit;
  }
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

std::string name_of(const json& entity) {
  std::string name = entity.value("name", "");
  const std::uint64_t key = entity.value("id", std::uint64_t{0});
  if (name.empty() && key != 0) {  // As the doctor and messages name it.
    name = is_bubble(entity) ? fmt::format("{:#x}", key) : fmt::format("{}", key);
  }
  return name.empty() ? "-" : name;
}

/// Of a bubble how many of its threads run, of those that could.
std::string state_of(const json& entity) {
  if (!is_bubble(entity)) {
    return entity.value("state", "");
  }
  return fmt::format("{}/{} run", entity.value("running", 0U), entity.value("threads", 0U));
}

std::string row(const json& entity) {
  const auto use = entity.find("use");
  const std::string indent(2 * std::min<std::size_t>(entity.value("depth", 0U), kIndentMax), ' ');
  std::string name = fmt::format("{}{} {}", indent, entity.value("kind", ""), name_of(entity));
  const unsigned priority = entity.value("priority", unsigned{kPriorityNormal});
  std::string line =
      fmt::format("    {:<{}} {:>6} {:<9} {:<9} {:<9} {:>5} {:>6} {}", name, kNameCells,
                  use != entity.end() ? fmt::format("{:.0f} %", use->get<double>() * 100) : "-",
                  state_of(entity), entity.value("last_place", ""), entity.value("place", ""),
                  entity.value("load", std::uint64_t{0}),
                  bytes_text(entity.value("memory_bytes", std::uint64_t{0})),
                  priority != kPriorityNormal ? fmt::format("priority {}", priority) : "");
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

void add_rows(const json& entities, const std::vector<Branch>& found,
              std::vector<std::string>& rows) {
  for (const Branch& branch : found) {
    rows.push_back(row(entities[branch.entity]));
    add_rows(entities, branch.held, rows);
  }
}

/// What the threads of each bubble have together.
double add_bubble_uses(json& entities, const std::vector<Branch>& found) {
  double sum = 0;
  for (const Branch& branch : found) {
    json& entity = entities[branch.entity];
    if (is_bubble(entity)) {
      entity["use"] = add_bubble_uses(entities, branch.held);
    }
    sum += entity.value("use", 0.0);
  }
  return sum;
}

}  // namespace

void add_entity_uses(json& node, const json& before, double seconds) {
  const auto found = node.find("entities");
  if (found == node.end() || seconds <= 0) {
    return;
  }
  std::map<std::uint64_t, double> earlier;  // Threads by number.
  for (const json& entity : before.value("entities", json::array())) {
    if (!is_bubble(entity)) {
      earlier[entity.value("id", std::uint64_t{0})] = entity.value("cpu_seconds", 0.0);
    }
  }
  for (json& entity : *found) {
    const double now = entity.value("cpu_seconds", 0.0);
    const auto old = earlier.find(entity.value("id", std::uint64_t{0}));
    if (!is_bubble(entity)) {
      // Who was not there, or is measured anew, has had at least what is counted since.
      const double since = old != earlier.end() && old->second <= now ? old->second : 0;
      entity["use"] = std::clamp((now - since) / seconds, 0.0, 1.0);
    }
  }
  std::size_t at = 0;
  static_cast<void>(add_bubble_uses(*found, branches(*found, at, 0)));
}

std::string entity_title() {
  return fmt::format("    {:<{}} {:>6} {:<9} {:<9} {:<9} {:>5} {:>6}", "THREADS AND BUBBLES",
                     kNameCells, "USE", "STATE", "RAN ON", "QUEUE", "LOAD", "MEMORY");
}

std::vector<std::string> entity_rows(const json& node, EntityOrder order) {
  std::vector<std::string> rows;
  if (const auto entities = node.find("entities"); entities != node.end()) {
    std::size_t at = 0;
    std::vector<Branch> found = branches(*entities, at, 0);
    sort_branches(*entities, order, found);
    add_rows(*entities, found, rows);
  }
  for (const json& fault : node.value("faults", json::array())) {
    rows.push_back("    wrong: " + fault.get<std::string>());
  }
  return rows;
}

}  // namespace sterna::launch
