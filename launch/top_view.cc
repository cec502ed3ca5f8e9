// Rates, and the lines of a page.
#include "launch/top_view.h"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "launch/entity_view.h"

namespace sterna::launch {
namespace {

using nlohmann::json;

constexpr std::size_t kBarCells = 20;
constexpr std::size_t kScrollRows = 10;

constexpr const char* kHelp[] = {
    "q  leave                      t  ranks, one a line",
    "p  stand still, go on         b  ranks by node and worker",
    "r  order by rank              c  order by use of the processor",
    "m  order by messages          v  order by moves",
    "n  order by node              e  user threads and bubbles alone",
    "threads and bubbles, those of each bubble by themselves (c: by use, too):",
    "l  order by load              y  order by memory",
    "w  order by where they ran    s  order by state",
    "+ -  scroll                   ?  this",
};
constexpr const char* kKeys =
    "keys: q leave, p stand still, t b e pages, r c m v n l y w s order, + - scroll, ? help";

double per_second(double now, double before, double seconds) {
  return seconds > 0 && now > before ? (now - before) / seconds : 0;
}

std::string bar(double use) {
  const auto full = static_cast<std::size_t>(std::clamp(use, 0.0, 1.0) * kBarCells + 0.5);
  return "[" + std::string(full, '#') + std::string(kBarCells - full, '.') + "]";
}

std::string percent(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number()
             ? fmt::format("{:.0f} %", found->get<double>() * 100)
             : "-";
}

std::string activity_of(const json& rank) {
  const std::string state = rank.value("state", "");
  return state == "running" ? rank.value("activity", state) : state;
}

EntityOrder entity_order(TopOrder order) {
  switch (order) {
    case TopOrder::processor:
      return EntityOrder::use;
    case TopOrder::load:
      return EntityOrder::load;
    case TopOrder::memory:
      return EntityOrder::memory;
    case TopOrder::place:
      return EntityOrder::place;
    case TopOrder::state:
      return EntityOrder::state;
    default:
      return EntityOrder::tree;
  }
}

/// User threads and bubbles of a node, if it has some.
void add_entities(const json& node, TopOrder order, std::vector<std::string>& rows) {
  std::vector<std::string> found = entity_rows(node, entity_order(order));
  if (node.contains("entities")) {
    rows.push_back(fmt::format("node {}", node.value("node", 0)));
    rows.push_back(entity_title());
  }
  std::ranges::move(found, std::back_inserter(rows));
}

std::vector<const json*> ordered_ranks(const json& job, TopOrder order) {
  std::vector<const json*> ranks;
  for (const json& rank : job.at("ranks")) {
    ranks.push_back(&rank);
  }
  const auto key = [&](const json* rank) -> double {
    switch (order) {
      case TopOrder::rank:
        return 0;
      case TopOrder::processor:
        return -rank->value("use", 0.0);
      case TopOrder::messages:
        return -rank->value("messages_per_second", 0.0);
      case TopOrder::moves:
        return -rank->value("moves", 0.0);
      case TopOrder::node:
        return rank->value("node", 0.0);
      default:
        return 0;  // Of user threads.
    }
    return 0;
  };
  std::ranges::stable_sort(ranks, {}, key);
  return ranks;
}

std::string rank_row(const json& rank) {
  return fmt::format("{:>6} {:>5} {:>6}  {:<10} {:>6} {:>9.2f} {:>11.0f} {:>6}{} {}",
                     rank.value("rank", 0), rank.value("node", 0),
                     rank.contains("worker") ? std::to_string(rank.value("worker", 0)) : "-",
                     activity_of(rank), percent(rank, "use"), rank.value("cpu_seconds", 0.0),
                     rank.value("messages_per_second", 0.0), rank.value("moves", 0),
                     rank.value("moved", 0) != 0 ? "*" : " ", rank.value("refusal", ""));
}

std::string rank_title() {
  return fmt::format("{:>6} {:>5} {:>6}  {:<10} {:>6} {:>9} {:>11} {:>6}  {}", "RANK", "NODE",
                     "WORKER", "STATE", "USE", "CPU s", "MESSAGES/s", "MOVES", "WHY IT STAYED");
}

void add_workers(const json& job, std::vector<std::string>& lines) {
  for (const json& node : job.at("nodes")) {
    std::string line =
        fmt::format("node {:<4} {:<16} {:>4} ranks {:>6} threads", node.value("node", 0),
                    node.value("host", ""), node.value("ranks", 0), node.value("threads", 0));
    for (const json& use : node.value("use", json::array())) {
      line += fmt::format("  {} {:>4.0f} %", bar(use.get<double>()), use.get<double>() * 100);
    }
    lines.push_back(line);
  }
}

/// Ranks below the worker that runs them.
void add_places(const json& job, TopOrder order, std::vector<std::string>& rows) {
  const std::vector<const json*> ranks = ordered_ranks(job, order);
  for (const json& node : job.at("nodes")) {
    rows.push_back(fmt::format("node {} ({}, process {})", node.value("node", 0),
                               node.value("host", ""), node.value("pid", 0)));
    std::map<int, std::vector<const json*>> by_worker;
    const json uses = node.value("use", json::array());
    for (std::size_t worker = 0; worker < uses.size(); ++worker) {
      by_worker[static_cast<int>(worker)] = {};
    }
    for (const json* rank : ranks) {
      if (rank->value("node", -1) == node.value("node", -2) && activity_of(*rank) != "ended") {
        by_worker[rank->value("worker", -1)].push_back(rank);
      }
    }
    for (const auto& [worker, its_ranks] : by_worker) {
      if (worker >= 0) {
        const auto index = static_cast<std::size_t>(worker);
        const double use = index < uses.size() ? uses[index].get<double>() : 0;
        rows.push_back(fmt::format("  worker {:<4} {} {:>4.0f} %", worker, bar(use), use * 100));
      }
      for (const json* rank : its_ranks) {
        rows.push_back(fmt::format("    rank {:<6} {:<10} {:>6} {:>10.0f} messages/s {:>5} moves{}",
                                   rank->value("rank", 0), activity_of(*rank),
                                   percent(*rank, "use"), rank->value("messages_per_second", 0.0),
                                   rank->value("moves", 0),
                                   rank->value("moved", 0) != 0 ? " *" : ""));
      }
    }
    add_entities(node, order, rows);
  }
}

}  // namespace

json with_rates(json now, const json& before) {
  const double seconds =
      before.is_null() ? 0 : now.value("seconds", 0.0) - before.value("seconds", 0.0);
  for (std::size_t i = 0; i < now["nodes"].size(); ++i) {
    json& node = now["nodes"][i];
    const json busy = node.value("busy_seconds", json::array());
    json use = json::array();
    for (std::size_t worker = 0; worker < busy.size(); ++worker) {
      double earlier = 0;
      if (seconds > 0 && i < before["nodes"].size()) {
        const json old = before["nodes"][i].value("busy_seconds", json::array());
        earlier = worker < old.size() ? old[worker].get<double>() : 0;
      }
      use.push_back(std::min(1.0, per_second(busy[worker].get<double>(), earlier,
                                             seconds > 0 ? seconds : now.value("seconds", 0.0))));
    }
    node["use"] = use;
    if (seconds > 0 && i < before["nodes"].size()) {
      add_entity_uses(node, before["nodes"][i], seconds);
    }
  }
  for (std::size_t i = 0; i < now["ranks"].size(); ++i) {
    json& rank = now["ranks"][i];
    const bool has_old = seconds > 0 && i < before["ranks"].size();
    const json old = has_old ? before["ranks"][i] : json::object();
    const double since = has_old ? seconds : now.value("seconds", 0.0);
    if (rank.contains("cpu_seconds")) {
      rank["use"] = std::min(
          1.0, per_second(rank.value("cpu_seconds", 0.0), old.value("cpu_seconds", 0.0), since));
    }
    rank["messages_per_second"] =
        per_second(rank.value("messages", 0.0), old.value("messages", 0.0), since);
    rank["moved"] = has_old ? rank.value("moves", 0) - old.value("moves", 0) : 0;
  }
  return now;
}

std::vector<std::string> render_top(const json& job, const TopChoices& choices, std::size_t width,
                                    std::size_t height) {
  std::vector<std::string> lines;
  int moves = 0;
  double messages = 0;
  for (const json& rank : job.at("ranks")) {
    moves += rank.value("moves", 0);
    messages += rank.value("messages_per_second", 0.0);
  }
  // The command last: it may be long.
  lines.push_back(fmt::format("job {}{}  {}, {:.1f} s, {} ranks, {:.0f} messages/s, {} moves  {}",
                              job.value("job", 0), choices.is_paused ? "  [stands still: p]" : "",
                              job.value("state", ""), job.value("seconds", 0.0),
                              job.at("ranks").size(), messages, moves, job.value("command", "")));
  if (height != 0) {
    lines.emplace_back(kKeys);
  }
  if (choices.is_help_wanted) {
    lines.insert(lines.end(), std::begin(kHelp), std::end(kHelp));
  }
  add_workers(job, lines);
  std::vector<std::string> rows;
  if (choices.page == TopPage::places) {
    add_places(job, choices.order, rows);
  } else if (choices.page == TopPage::entities) {
    for (const json& node : job.at("nodes")) {
      add_entities(node, choices.order, rows);
    }
  } else {
    lines.push_back(rank_title());
    for (const json* rank : ordered_ranks(job, choices.order)) {
      rows.push_back(rank_row(*rank));
    }
    for (const json& node : job.at("nodes")) {
      add_entities(node, choices.order, rows);
    }
  }
  const std::size_t first = std::min(choices.first_row, rows.empty() ? 0 : rows.size() - 1);
  lines.insert(lines.end(), rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end());
  if (height != 0 && lines.size() > height) {
    const std::size_t hidden = lines.size() - height + 1;
    lines.resize(height - 1);
    lines.push_back(fmt::format("... {} more: + and - scroll", hidden));
  }
  for (std::string& line : lines) {
    // What others have named may hold anything; a terminal must not obey it.
    std::ranges::replace_if(line, [](char c) { return c < ' ' || c > '~'; }, '?');
    line.resize(std::min(line.size(), width));
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

bool take_key(TopChoices& choices, char key) noexcept {
  switch (key) {
    case 'q':
    case '\x03':
      return false;
    case 'p':
    case ' ':
      choices.is_paused = !choices.is_paused;
      break;
    case 't':
      choices.page = TopPage::ranks;
      break;
    case 'b':
      choices.page = TopPage::places;
      break;
    case 'e':
      choices.page = TopPage::entities;
      break;
    case 'r':
      choices.order = TopOrder::rank;
      break;
    case 'c':
      choices.order = TopOrder::processor;
      break;
    case 'm':
      choices.order = TopOrder::messages;
      break;
    case 'v':
      choices.order = TopOrder::moves;
      break;
    case 'n':
      choices.order = TopOrder::node;
      break;
    case 'l':
      choices.order = TopOrder::load;
      break;
    case 'y':
      choices.order = TopOrder::memory;
      break;
    case 'w':
      choices.order = TopOrder::place;
      break;
    case 's':
      choices.order = TopOrder::state;
      break;
    case '?':
    case 'h':
      choices.is_help_wanted = !choices.is_help_wanted;
      break;
    case '+':
      choices.first_row += kScrollRows;
      break;
    case '-':
      choices.first_row -= std::min(choices.first_row, kScrollRows);
      break;
    default:
      break;
  }
  return true;
}

}  // namespace sterna::launch
