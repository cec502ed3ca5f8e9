// Any bytes: decoding what balancing says stays inside them, and what decodes encodes the same.
#include <algorithm>

#include "balance/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sterna;
  const std::span<const std::byte> input{reinterpret_cast<const std::byte*>(data), bytes};
  Result<balance::Report> report = balance::decode_report(input, 0, 1000);
  if (report) {
    check(std::ranges::equal(balance::encode(report.value()), input), "one way to encode");
  }
  Result<balance::Plan> plan = balance::decode_plan(input);
  if (plan) {
    check(std::ranges::equal(balance::encode(plan.value()), input), "one way to encode");
  }
  Result<balance::Arrived> arrived = balance::decode_arrived(input, 1000);
  if (arrived) {
    check(std::ranges::equal(balance::encode(arrived.value()), input), "one way to encode");
  }
  Result<std::uint64_t> number = balance::decode_release(input);
  if (number) {
    check(std::ranges::equal(balance::encode_release(number.value()), input), "one way to encode");
  }
  return 0;
}
