// Rates and lines of `sterna top`, from looks made by hand.
#include "launch/top_view.h"

#include <gtest/gtest.h>

#include "base/priority.h"

namespace sterna::launch {
namespace {

using nlohmann::json;

json job(double seconds, double busy, double cpu, int messages, int moves) {
  json ranks = json::array();
  for (int i = 0; i < 3; ++i) {
    ranks.push_back({{"rank", i},
                     {"node", 2 - i},
                     {"state", "running"},
                     {"activity", i == 1 ? "waiting" : "running"},
                     {"worker", 0},
                     {"cpu_seconds", cpu * i},
                     {"messages", messages * i},
                     {"moves", i == 1 ? moves : 0}});
  }
  return {{"job", 7},
          {"command", "app"},
          {"state", "running"},
          {"seconds", seconds},
          {"nodes", {{{"node", 0}, {"host", "h"}, {"busy_seconds", {busy}}, {"pid", 1}}}},
          {"ranks", ranks}};
}

bool has(const std::vector<std::string>& lines, const std::string& text) {
  for (const std::string& line : lines) {
    if (line.find(text) != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(TopView, RatesAreOfTheTimeBetweenTwoLooks) {
  const json rates = with_rates(job(12, 5, 0.5, 300, 4), job(10, 4, 0, 100, 3));
  EXPECT_DOUBLE_EQ(rates["nodes"][0]["use"][0].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(rates["ranks"][2]["use"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(rates["ranks"][2]["messages_per_second"].get<double>(), 200);
  EXPECT_EQ(rates["ranks"][1]["moved"].get<int>(), 1);
}

TEST(TopView, WithoutALookBeforeRatesAreSinceTheStart) {
  const json rates = with_rates(job(10, 4, 2, 100, 3), json{});
  EXPECT_DOUBLE_EQ(rates["nodes"][0]["use"][0].get<double>(), 0.4);
  EXPECT_DOUBLE_EQ(rates["ranks"][1]["messages_per_second"].get<double>(), 10);
  EXPECT_EQ(rates["ranks"][1]["moved"].get<int>(), 0);
}

TEST(TopView, CountsThatWentBackAreNoRate) {
  // A node tells of a rank that has just come from elsewhere: what is known is older.
  const json rates = with_rates(job(12, 1, 0, 1, 4), job(10, 4, 2, 100, 3));
  EXPECT_DOUBLE_EQ(rates["nodes"][0]["use"][0].get<double>(), 0);
  EXPECT_DOUBLE_EQ(rates["ranks"][2]["messages_per_second"].get<double>(), 0);
}

TEST(TopView, KeysOrderTheRows) {
  const json look = with_rates(job(12, 5, 0.5, 300, 4), job(10, 4, 0, 100, 3));
  const auto first_rank = [&](char key) {
    TopChoices choices;
    EXPECT_TRUE(take_key(choices, key));
    const std::vector<std::string> lines = render_top(look, choices, 200, 0);
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
      if (lines[i].find("RANK") != std::string::npos) {
        return std::stoi(lines[i + 1]);
      }
    }
    return -1;
  };
  EXPECT_EQ(first_rank('r'), 0);
  EXPECT_EQ(first_rank('c'), 2);
  EXPECT_EQ(first_rank('m'), 2);
  EXPECT_EQ(first_rank('v'), 1);
  EXPECT_EQ(first_rank('n'), 2);
  TopChoices choices;
  EXPECT_FALSE(take_key(choices, 'q'));
}

TEST(TopView, LinesFitTheWindowAndWhatIsNamedCannotCommandTheTerminal) {
  json look = with_rates(job(10, 4, 2, 100, 3), json{});
  look["command"] = "evil\x1b[2J\n";
  TopChoices choices;
  const std::vector<std::string> lines = render_top(look, choices, 40, 5);
  EXPECT_EQ(lines.size(), 5u);
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), 40u);
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
  }
  EXPECT_TRUE(has(lines, "more"));
}

TEST(TopView, ThePageOfPlacesPutsRanksBelowTheirWorkers) {
  TopChoices choices;
  EXPECT_TRUE(take_key(choices, 'b'));
  const json look = with_rates(job(10, 4, 2, 100, 3), json{});
  const std::vector<std::string> lines = render_top(look, choices, 200, 0);
  EXPECT_TRUE(has(lines, "worker 0"));
  EXPECT_TRUE(has(lines, "    rank 2"));
  EXPECT_FALSE(has(lines, "    rank 1"));  // Its node has not told of itself.
}

TEST(TopView, BubblesAreATreeOnBothPages) {
  json look = with_rates(job(10, 4, 2, 100, 3), json{});
  look["nodes"][0]["entities"] = {{{"depth", 0},
                                   {"kind", "bubble"},
                                   {"name", "team"},
                                   {"place", "numa 1"},
                                   {"priority", kPriorityNormal}},
                                  {{"depth", 1},
                                   {"kind", "thread"},
                                   {"name", "first"},
                                   {"place", "pu 3"},
                                   {"state", "ready"},
                                   {"priority", 4}}};
  look["nodes"][0]["faults"] = {"thread first is lost"};
  for (const char page : {'t', 'b'}) {
    TopChoices choices;
    EXPECT_TRUE(take_key(choices, page));
    const std::vector<std::string> lines = render_top(look, choices, 200, 0);
    EXPECT_TRUE(has(lines, "    bubble team "));
    EXPECT_TRUE(has(lines, "      thread first "));
    EXPECT_TRUE(has(lines, "ready  priority 4"));
    EXPECT_TRUE(has(lines, "wrong: thread first is lost"));
  }
}

}  // namespace
}  // namespace sterna::launch
