// Packets of Perfetto's format: tracks, and what happens on them.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trace/proto.h"

namespace sterna::trace {

/// Tracks are described before they are used. Times in nanoseconds; those of one track ascend.
class TrackWriter {
 public:
  explicit TrackWriter(std::ostream& to) noexcept : to_{to} {}

  void describe_process(std::uint64_t uuid, std::uint64_t pid, const std::string& name);
  void describe_track(std::uint64_t uuid, std::uint64_t parent, std::uint64_t pid,
                      std::uint64_t tid, const std::string& name);
  void describe_counter(std::uint64_t uuid, std::uint64_t parent, const std::string& name);

  void begin(std::uint64_t ns, std::uint64_t track, const std::string& name, const char* category);
  /// Nothing, if nothing is open on the track.
  void end(std::uint64_t ns, std::uint64_t track);
  void end_all(std::uint64_t ns, std::uint64_t track);
  /// A moment. `flow`: not 0; begins or ends at it.
  void point(std::uint64_t ns, std::uint64_t track, const std::string& name,
             const std::vector<std::pair<const char*, std::int64_t>>& numbers, std::uint64_t flow,
             bool is_flow_end);
  void count(std::uint64_t ns, std::uint64_t track, std::int64_t value);
  /// Ends whatever is open.
  void finish(std::uint64_t ns);

 private:
  void packet(const ProtoWriter& content);
  void put(std::uint64_t ns, const ProtoWriter& event);
  [[nodiscard]] static ProtoWriter slice(std::uint64_t type, std::uint64_t track);

  std::ostream& to_;
  std::map<std::uint64_t, std::uint32_t> open_;  // By track: slices that have not ended.
};

}  // namespace sterna::trace
