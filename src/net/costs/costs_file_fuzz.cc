// Fuzzes the file of measured costs: what is accepted is within its bounds, and means the same when
// it is written again.
#include <string_view>

#include "base/check.h"
#include "net/costs/costs_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sterna;
  constexpr std::string_view kMachine = "boot 2 build";
  constexpr std::uint64_t kNow = 1'000'000;
  const std::string_view text{reinterpret_cast<const char*>(data), bytes};
  Result<std::vector<net::CostsEntry>> decoded = net::decode_costs_file(text, kMachine, kNow);
  if (!decoded) {
    check(!decoded.error().text.empty(), "what is refused has a reason");
    return 0;
  }
  const std::vector<net::CostsEntry>& entries = decoded.value();
  check(entries.size() <= net::kCostsEntriesMax, "as many ways as the format holds");
  for (const net::CostsEntry& entry : entries) {
    check(net::are_plausible(entry.costs) && entry.at_s <= kNow && !entry.driver.empty(),
          "a way that is accepted can be meant");
  }
  const std::string again = net::encode_costs_file(entries, kMachine);
  Result<std::vector<net::CostsEntry>> twice = net::decode_costs_file(again, kMachine, kNow);
  check(twice.has_value() && twice.value().size() == entries.size(), "what is written is read");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    check(twice.value()[i].is_same_way(entries[i]) && twice.value()[i].costs == entries[i].costs,
          "and means the same");
  }
  return 0;
}
