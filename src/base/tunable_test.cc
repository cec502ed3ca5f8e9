// Settings: order of the sources, units, ranges and the texts of errors.
#include "base/tunable.h"

#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace sterna {
namespace {

constexpr Tunable kWorkers{.name = "workers",
                           .fallback = "2",
                           .minimum = 1,
                           .maximum = 64,
                           .help = "kernel threads of a node"};
constexpr Tunable kEager{.name = "net_eager_bytes",
                         .kind = TunableKind::bytes,
                         .fallback = "16K",
                         .maximum = 1 << 20,
                         .help = "largest eager message"};
constexpr Tunable kTick{
    .name = "tick", .kind = TunableKind::time, .fallback = "10ms", .help = "period"};
constexpr Tunable kTag{
    .name = "tag_output", .kind = TunableKind::flag, .fallback = "off", .help = "prefix lines"};
constexpr Tunable kBalance{.name = "balance",
                           .kind = TunableKind::choice,
                           .fallback = "none",
                           .choices = "none greedy refine",
                           .help = "who moves ranks"};
constexpr Tunable kTable[] = {kWorkers, kEager, kTick, kTag, kBalance};

class File {
 public:
  explicit File(const char* text)
      : path_{testing::TempDir() + "sterna_config_" + std::to_string(getpid()) + ".toml"} {
    std::ofstream{path_} << text;
  }
  ~File() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Settings, DefaultsAreRead) {
  const Settings settings{std::span{kTable}};
  EXPECT_EQ(settings.number(kWorkers), 2);
  EXPECT_EQ(settings.number(kEager), 16384);
  EXPECT_EQ(settings.number(kTick), 10'000'000);
  EXPECT_FALSE(settings.flag(kTag));
  EXPECT_EQ(settings.text(kBalance), "none");
  EXPECT_EQ(settings.source(kBalance), SettingSource::fallback);
}

TEST(Settings, LaterSourcesWinWhateverTheOrderOfLoading) {
  Settings settings{std::span{kTable}};
  ASSERT_TRUE(settings.set("workers", "5", SettingSource::command_line, "--workers"));
  const File file{"workers = 3\n[net]\neager_bytes = \"64K\"\n"};
  const char* environment[] = {"STERNA_WORKERS=4", "STERNA_TICK=2s", "STERNA_OTHER=x", nullptr};
  ASSERT_TRUE(settings.load_environment(environment));
  ASSERT_TRUE(settings.load_file(file.path()));
  EXPECT_EQ(settings.number(kWorkers), 5);
  EXPECT_EQ(settings.number(kTick), 2'000'000'000);
  EXPECT_EQ(settings.number(kEager), 65536);
  std::string places;
  settings.for_each([&](const SettingRow& row) { places += std::string{row.place} + " "; });
  EXPECT_EQ(places, "--workers " + file.path() + ":3 STERNA_TICK built in built in ");
}

TEST(Settings, TheFileIsFoundThroughTheEnvironment) {
  const File file{"tag_output = true\n"};
  const std::string variable = "STERNA_CONFIG=" + file.path();
  const char* environment[] = {variable.c_str(), nullptr};
  Settings settings{std::span{kTable}};
  ASSERT_TRUE(settings.load(environment));
  EXPECT_TRUE(settings.flag(kTag));
  const char* missing[] = {"STERNA_CONFIG=/nowhere/sterna.toml", nullptr};
  EXPECT_FALSE(settings.load(missing));
  const char* optional[] = {"HOME=/nowhere", nullptr};
  EXPECT_TRUE(settings.load(optional));
}

TEST(Settings, ErrorsSayWhereWhatAndWhatIsAllowed) {
  Settings settings{std::span{kTable}};
  const char* environment[] = {"STERNA_WORKERS=many", nullptr};
  EXPECT_EQ(settings.load_environment(environment).error().text,
            "STERNA_WORKERS: \"many\" is not a value of workers; allowed is a whole number, from "
            "1 to 64");
  EXPECT_EQ(settings.set("balance", "all", SettingSource::command_line, "--balance").error().text,
            "--balance: \"all\" is not a value of balance; allowed is one of: none greedy refine");
  EXPECT_EQ(settings.set("bogus", "1", SettingSource::command_line, "--bogus").error().text,
            "--bogus: there is no setting bogus; `sterna info` lists them");
  const File file{"workers = 2\ntick = 1.5\n"};
  const std::string text = settings.load_file(file.path()).error().text;
  EXPECT_NE(text.find(":2: tick must be"), std::string::npos) << text;
  const File broken{"workers = \n"};
  const std::string syntax = settings.load_file(broken.path()).error().text;
  EXPECT_NE(syntax.find(broken.path() + ":1: "), std::string::npos) << syntax;
}

TEST(Settings, UnitsAndRangesAreChecked) {
  const auto parse = [](const Tunable& tunable, const char* text) {
    Result<std::int64_t> value = parse_tunable(tunable, text);
    return value ? value.value() : -1;
  };
  EXPECT_EQ(parse(kEager, "1M"), 1 << 20);
  EXPECT_EQ(parse(kEager, "1025K"), -1);
  EXPECT_EQ(parse(kEager, "12X"), -1);
  EXPECT_EQ(parse(kEager, "99999999999T"), -1);
  EXPECT_EQ(parse(kEager, "-1"), -1);
  EXPECT_EQ(parse(kTick, "250us"), 250'000);
  EXPECT_EQ(parse(kTick, "1min"), 60'000'000'000);
  EXPECT_EQ(parse(kTick, "10"), -1);  // Ten what?
  EXPECT_EQ(parse(kTick, "0"), 0);
  EXPECT_EQ(parse(kWorkers, ""), -1);
  EXPECT_EQ(parse(kWorkers, "3 "), -1);
  EXPECT_EQ(parse(kBalance, "none greedy"), -1);
  EXPECT_EQ(parse(kBalance, ""), -1);
  EXPECT_EQ(parse(kTag, "yes"), 1);
}

TEST(Settings, ListsTakeKnownWordsOnceEach) {
  constexpr Tunable kList{.name = "nets", .kind = TunableKind::list, .choices = "shm tcp sim"};
  for (const char* good : {"", "shm", "tcp,shm", "shm,tcp,sim"}) {
    EXPECT_TRUE(parse_tunable(kList, good).has_value()) << good;
  }
  for (const char* bad : {"nosuch", "shm,", ",", "shm,,tcp", "shm,tcp,shm", "shm tcp", "sh"}) {
    EXPECT_FALSE(parse_tunable(kList, bad).has_value()) << bad;
  }
  EXPECT_NE(parse_tunable(kList, "nosuch").error().text.find("shm tcp sim"), std::string::npos);
}

TEST(Settings, ATableMayKnowTheWordsAndATextMayBeVerified) {
  constexpr Tunable kChoice{
      .name = "who", .kind = TunableKind::choice, .fallback = "me", .names = [] {
        return std::string{"me you"};
      }};
  EXPECT_TRUE(parse_tunable(kChoice, "you").has_value());
  EXPECT_EQ(parse_tunable(kChoice, "them").error().text,
            "\"them\" is not a value of who; allowed is one of: me you");
  constexpr Tunable kText{
      .name = "word", .kind = TunableKind::text, .verify = [](std::string_view text) {
        return text == "bad" ? Result<>{Error{Errc::invalid_argument, "too bad"}}
                             : Result<>{Done{}};
      }};
  EXPECT_TRUE(parse_tunable(kText, "good").has_value());
  EXPECT_EQ(parse_tunable(kText, "bad").error().text, "\"bad\" is not a value of word: too bad");
}

}  // namespace
}  // namespace sterna
