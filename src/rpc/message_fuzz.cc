// Any bytes: decoding must not read beyond them, and what decodes must encode to the same bytes.
#include <algorithm>

#include "rpc/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sterna;
  const std::span<const std::byte> input{reinterpret_cast<const std::byte*>(data), bytes};
  const Error error = rpc::decode_error(input);
  check(error.text.size() <= rpc::kErrorTextBytesMax, "texts are bounded");
  Result<rpc::Message> message = rpc::decode(input);
  if (message) {
    const std::vector<std::byte> again = rpc::encode(message.value());
    check(std::ranges::equal(again, input), "a message is encoded in one way");
  }
  return 0;
}
