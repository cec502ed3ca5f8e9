// Any bytes as a recording: read or refused; what was read is written and read the same.
#include "base/check.h"
#include "net/drivers/record/recording.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sterna::net::record;
  auto first = read_recording(std::as_bytes(std::span{data, size}));
  if (first) {
    std::vector<std::byte> again;
    append(again, first.value().header);
    for (const Event& event : first.value().events) {
      append(again, event);
    }
    auto second = read_recording(again);
    sterna::check(second && second.value().events.size() == first.value().events.size(),
                  "what was read of a recording is written and read again");
  }
  return 0;
}
