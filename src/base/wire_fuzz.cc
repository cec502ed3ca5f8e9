// Feeds the reader with strangers' bytes, which also choose what is read: it must neither read
// beyond them nor say ok() after having refused, and what it read must write back to the same.
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/wire.h"

namespace {

using sterna::check;
using sterna::wire::Reader;
using sterna::wire::Writer;

// Reads one item of a kind and writes it again.
void copy_item(std::uint8_t kind, Reader& reader, Writer& writer) {
  switch (kind % 8) {
    case 0:
      return writer.u8(reader.u8());
    case 1:
      return writer.u16(reader.u16());
    case 2:
      return writer.u32(reader.u32());
    case 3:
      return writer.u64(reader.u64());
    case 4:
      return writer.blob(reader.blob(64));
    case 5:
      return writer.text(reader.text(16));
    case 6:
      return writer.u32(reader.count(4));
    default:
      return writer.boolean(reader.boolean());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) {
    return 0;
  }
  // The first byte says how many choices follow, the rest is the input, in memory of its own
  // so that a sanitizer sees each byte beyond.
  const std::size_t choices = data[0] % bytes;
  const std::vector<std::byte> input(reinterpret_cast<const std::byte*>(data) + 1 + choices,
                                     reinterpret_cast<const std::byte*>(data) + bytes);
  Reader reader{input};
  std::vector<std::byte> output;
  Writer writer{output, input.size()};
  for (std::size_t i = 0; i < choices && reader.ok(); ++i) {
    const std::size_t left = reader.bytes_left();
    copy_item(data[1 + i], reader, writer);
    check(reader.bytes_left() <= left, "a reader never gives bytes back");
    check(!reader.ok() || writer.ok(), "what was read fits where it came from");
    check(!reader.ok() || writer.bytes() == input.size() - reader.bytes_left(),
          "what is written is as long as what was read");
    check(!reader.ok() || std::memcmp(output.data(), input.data(), output.size()) == 0,
          "what is written is what was read");
  }
  check(reader.ok() || (reader.bytes_left() == 0 && reader.u64() == 0 && reader.text(9).empty()),
        "a reader that refused stays so");
  return 0;
}
