// What the cost model says of a choice: its figures, and the reason where they would not choose it.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "net/costs/cost.h"

namespace sterna::net {
namespace {

/// The figure behind `word` in the sentence.
double told_ns(const std::string& sentence, std::string_view word) {
  const std::size_t at = sentence.find(word);
  return at != std::string::npos ? std::stod(sentence.substr(at + word.size())) : -1;
}

bool has(const std::string& sentence, std::string_view part) {
  return sentence.find(part) != std::string::npos;
}

/// How many of the choices are contradicted by their figures. Each of them has its reason.
std::size_t see_reasons(const CostModel& model, bool is_set, const std::string& which) {
  std::size_t contradicted = 0;
  for (std::uint64_t bytes = 1; bytes <= 64 << 20; bytes = bytes * 5 / 4 + 1) {
    const std::string told = model.explain(bytes);
    const double eager_ns = told_ns(told, "(eager ");
    const double rendezvous_ns = told_ns(told, "; rendezvous ");
    EXPECT_GT(eager_ns, 0) << told;
    EXPECT_GT(rendezvous_ns, 0) << told;
    const bool is_eager = has(told, " bytes: eager (");
    EXPECT_EQ(is_eager, bytes <= model.eager_bytes()) << told;
    if (is_eager ? eager_ns <= rendezvous_ns + 1 : eager_ns + 1 >= rendezvous_ns) {  // Rounded.
      continue;
    }
    ++contradicted;
    const std::string bound = "; eager up to " + std::to_string(model.eager_bytes()) + " bytes";
    const bool has_reason =
        is_set          ? has(told, bound + " (set by net_eager_bytes)")
        : !is_eager     ? has(told, bound + ", the most, since") ||
                              has(told, bound + ", from where on a rendezvous pays, but for")
        : bytes <= 1024 ? has(told, bound + ", as is all of up to 1024 bytes")
                        : has(told, bound + ", as is what fits a packet") ||
                              has(told, bound + ", by what a direct copy takes, ");
    EXPECT_TRUE(has_reason) << which << ": " << told;
  }
  return contradicted;
}

TEST(CostModelExplains, WhyItsFiguresDoNotDecideWhereTheyWouldChooseOtherwise) {
  std::size_t contradicted = 0;
  for (const std::uint32_t latency : {120U, 4000U, 54'000U, 1'004'000U}) {
    for (const std::uint32_t rate : {40U, 1000U, 2400U, 24'000U}) {
      for (const std::uint32_t direct_rate : {0U, 1000U, 12'000U, 60'000U}) {
        for (const bool is_set : {false, true}) {
          CostModel model{{.packet_bytes_max = 16 << 10,
                           .latency_ns = latency,
                           .bandwidth_mb_per_s = rate,
                           .packet_ns = 400,
                           .direct_latency_ns = 1000,
                           .direct_mb_per_s = direct_rate},
                          direct_rate != 0,
                          {.eager_bytes = is_set ? 5000U : 0U, .eager_bytes_min = 1024}};
          const std::string which = std::to_string(latency) + " ns, " + std::to_string(rate) +
                                    " and " + std::to_string(direct_rate) + " MB/s";
          contradicted += see_reasons(model, is_set, which);
          for (int i = 0; i < 100; ++i) {
            model.measured_reading(64 << 10, (64 << 10) * 60 / 1000, true);
          }
          contradicted += see_reasons(model, is_set, which + ", reading measured");
          model.set_both_ways(1);
          contradicted += see_reasons(model, is_set, which + ", both ways");
        }
      }
    }
  }
  EXPECT_GT(contradicted, 100U) << "there are such choices";
}

TEST(CostModelExplains, WhatTheHeadOfAnAnnouncedMessageSaves) {
  constexpr std::uint64_t kLong = 2 << 20;
  constexpr std::string_view kSaves = "what a rendezvous costs is ";
  Capabilities slow{.packet_bytes_max = 4 << 20, .latency_ns = 1'004'000,
                    .bandwidth_mb_per_s = 2400};
  const std::string whole = CostModel{slow, false, {}}.explain(kLong);
  EXPECT_TRUE(has(whole, "2097152 bytes: rendezvous (eager ")) << whole;
  EXPECT_TRUE(has(whole, "eager up to 65536 bytes, the most, since it takes memory of a receiver "
                         "that is not ready; what a rendezvous costs is 2008000 ns less where its "
                         "first 2097152 bytes go with the announcement"))
      << whole;
  // Then it costs no more than what goes at once.
  EXPECT_LE(told_ns(whole, "; rendezvous ") - told_ns(whole, kSaves), told_ns(whole, "(eager "));
  slow.packet_bytes_max = 64 << 10;
  const std::string part = CostModel{slow, false, {}}.explain(kLong);
  EXPECT_TRUE(has(part, "first 65536 bytes go with the announcement")) << part;
  EXPECT_LT(told_ns(part, kSaves), told_ns(whole, kSaves)) << part;
  const std::string agreeing = CostModel{slow, false, {.eager_bytes = 1}}.explain(kLong);
  EXPECT_FALSE(has(agreeing, "announcement")) << agreeing;
}

}  // namespace
}  // namespace sterna::net
