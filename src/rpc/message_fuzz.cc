// Any bytes: decoding must not read beyond them, and what decodes must encode to the same bytes.
#include <algorithm>

#include "rpc/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sterna;
  const std::span<const std::byte> input{reinterpret_cast<const std::byte*>(data), bytes};
  const Error error = rpc::decode_error(input);
  check(error.text.size() <= rpc::kErrorTextBytesMax, "texts are bounded");
  rpc::Message message;
  if (rpc::decode(input, message)) {
    std::vector<rpc::Part> parts;
    for (std::uint32_t i = 0; i < message.part_count; ++i) {
      parts.push_back(rpc::part_of(message, i));
      check(parts.back().offset <= message.body.size(), "parts lie in the body");
    }
    message.parts = parts;
    const rpc::MessageHead head{message};
    check(std::ranges::equal(head.bytes(), input.first(bytes - message.body.size())),
          "a message is encoded in one way");
  }
  // The same, its head and its body apart.
  for (const std::size_t cut : {8U, 16U}) {
    rpc::Message apart;
    if (cut <= bytes && rpc::decode(input.first(cut), input.subspan(cut), apart)) {
      const rpc::MessageHead head{apart};
      check(std::ranges::equal(head.bytes(), input.first(cut)) && apart.body.size() == bytes - cut,
            "a head that came apart is whole");
    }
  }
  return 0;
}
