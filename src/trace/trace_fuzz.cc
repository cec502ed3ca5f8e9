// Strangers' bytes as a trace file. What could be read is summed up and exported, and the export
// reads back without an error.
#include <cstdint>
#include <span>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "trace/perfetto.h"
#include "trace/reader.h"
#include "trace/summary.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sterna::trace;
  const std::vector<std::byte> input(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + bytes);
  Reader reader;
  if (!reader.add(input, "fuzz")) {
    return 0;
  }
  sterna::Result<Timeline> timeline = reader.finish();
  sterna::check(timeline.has_value(), "a file that was taken becomes a timeline");
  const Summary summary = summarise(timeline.value());
  sterna::check(summary.messages_paired <= summary.messages, "a pair has a message");
  std::ostringstream output;
  write_tracks(timeline.value(), output);
  Reader again;
  const std::string text = output.str();
  sterna::check(!again.add(std::as_bytes(std::span{text}), "again").has_value(),
                "tracks alone are no trace of ours");
  return 0;
}
