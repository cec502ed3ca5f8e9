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
                                   {"threads", 3},
                                   {"running", 1},
                                   {"priority", kPriorityNormal}},
                                  {{"depth", 1},
                                   {"kind", "thread"},
                                   {"name", "first"},
                                   {"place", "pu 3"},
                                   {"state", "ready"},
                                   {"last_place", "pu 2"},
                                   {"load", 7},
                                   {"memory_bytes", 5'000'000},
                                   {"priority", 4}}};
  look["nodes"][0]["faults"] = {"thread first is lost"};
  for (const char page : {'t', 'b'}) {
    TopChoices choices;
    EXPECT_TRUE(take_key(choices, page));
    const std::vector<std::string> lines = render_top(look, choices, 200, 0);
    EXPECT_TRUE(has(lines, "    bubble team "));
    EXPECT_TRUE(has(lines, "      thread first "));
    EXPECT_TRUE(has(lines, "1/3 run"));
    EXPECT_TRUE(has(lines, "ready     pu 2      pu 3          7  4882K priority 4"));
    EXPECT_TRUE(has(lines, "wrong: thread first is lost"));
  }
}

json thread_of(const char* name, unsigned depth, int id, double cpu, int load, int memory,
               const char* place) {
  return {{"depth", depth}, {"kind", "thread"},       {"id", id},
          {"name", name},   {"cpu_seconds", cpu},     {"state", cpu > 1 ? "running" : "waiting"},
          {"load", load},   {"memory_bytes", memory}, {"last_place", place}};
}

json bubble_of(const char* name, unsigned depth, int id) {
  return {{"depth", depth}, {"kind", "bubble"}, {"id", id}, {"name", name}};
}

/// Two bubbles, one with a bubble inside; as the threads have `cpu`, doubled for each next one.
json job_with_bubbles(double seconds, double cpu) {
  json look = job(seconds, 4, 2, 100, 3);
  look["nodes"][0]["entities"] = {bubble_of("idle", 0, 1),
                                  thread_of("none", 1, 1, 0, 1, 9, "pu 3"),
                                  bubble_of("busy", 0, 2),
                                  thread_of("little", 1, 2, cpu, 2, 8, "pu 10"),
                                  bubble_of("inner", 1, 3),
                                  thread_of("much", 2, 3, 2 * cpu, 3, 7, "pu 9"),
                                  thread_of("most", 2, 4, 4 * cpu, 4, 6, "pu 1"),
                                  thread_of("alone", 0, 5, cpu, 1, 5, "pu 0")};
  return look;
}

TEST(TopView, TheUseOfABubbleIsThatOfItsThreads) {
  const json look = with_rates(job_with_bubbles(12, 0.6), job_with_bubbles(10, 0.1));
  const json& entities = look["nodes"][0]["entities"];
  EXPECT_DOUBLE_EQ(entities[3]["use"].get<double>(), 0.25);  // 0.5 s of two.
  EXPECT_DOUBLE_EQ(entities[5]["use"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(entities[4]["use"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(entities[2]["use"].get<double>(), 1.75);
  EXPECT_DOUBLE_EQ(entities[0]["use"].get<double>(), 0);
  EXPECT_TRUE(has(render_top(look, {}, 200, 0), "175 %"));
}

TEST(TopView, AThreadThatWasNotThereHasWhatItHasHadSince) {
  json before = job_with_bubbles(10, 0.1);
  before["nodes"][0]["entities"].erase(3);
  json look = with_rates(job_with_bubbles(12, 0.6), before);
  EXPECT_DOUBLE_EQ(look["nodes"][0]["entities"][3]["use"].get<double>(), 0.3);
  // Measured anew: what was counted before does not matter.
  look = with_rates(job_with_bubbles(12, 0.2), job_with_bubbles(10, 5));
  EXPECT_DOUBLE_EQ(look["nodes"][0]["entities"][3]["use"].get<double>(), 0.1);
  // Without a look before nothing is known.
  EXPECT_FALSE(with_rates(job_with_bubbles(10, 5), {})["nodes"][0]["entities"][3].contains("use"));
}

TEST(TopView, KeysOrderWhatIsInABubbleAndLeaveTheTree) {
  const json look = with_rates(job_with_bubbles(12, 0.6), job_with_bubbles(10, 0.1));
  const auto names = [&](char key) {
    TopChoices choices;
    EXPECT_TRUE(take_key(choices, 'e'));
    EXPECT_TRUE(take_key(choices, key));
    std::string found;
    for (const std::string& line : render_top(look, choices, 200, 0)) {
      for (const char* name :
           {"idle", "none", "busy", "little", "inner", "much", "most", "alone"}) {
        if (line.find(" " + std::string{name} + " ") != std::string::npos) {
          found += std::string{name} + " ";
        }
      }
    }
    return found;
  };
  EXPECT_EQ(names('r'), "idle none busy little inner much most alone ");
  EXPECT_EQ(names('c'), "busy inner most much little alone idle none ");
  EXPECT_EQ(names('l'), "alone idle none busy little inner most much ");
  EXPECT_EQ(names('y'), "alone idle none busy little inner much most ");
  EXPECT_EQ(names('w'), "idle none busy inner most much little alone ");
  EXPECT_EQ(names('s'), "idle none busy inner much most little alone ");
}

TEST(TopView, AWindowNamesTheKeys) {
  TopChoices choices;
  const json look = with_rates(job(10, 4, 2, 100, 3), json{});
  EXPECT_TRUE(has(render_top(look, choices, 100, 20), "keys: q leave"));
  EXPECT_FALSE(has(render_top(look, choices, 100, 0), "keys: q leave"));
}

}  // namespace
}  // namespace sterna::launch
