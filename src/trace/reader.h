// Reading trace files: those of nodes (base/trace_format.h) and whole ones (trace/perfetto.h).
//
// Bytes from outside: every offset, count, kind and number is checked, nothing is believed. What a
// killed process left half written is skipped and counted.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/timeline.h"

namespace sterna::trace {

inline constexpr std::uint32_t kNodeCountMax = 4096;
inline constexpr std::uint32_t kWorkerCountMax = 4096;
inline constexpr std::uint32_t kRankCountMax = 1u << 20;

class Reader {
 public:
  /// Adds a file: of a node, or a whole one. `name` is for messages.
  [[nodiscard]] Result<> add(std::span<const std::byte> file, const std::string& name);
  /// Everything that was added, on one clock. Ends this reader.
  [[nodiscard]] Result<Timeline> finish();

 private:
  struct Node {
    FileHeader header{};
    std::vector<ClockPair> clocks;
    std::vector<Record> records;
    std::uint64_t broken_records = 0;
  };

  Result<> add_node(std::span<const std::byte> file, const std::string& name);
  Result<> add_whole(std::span<const std::byte> file, const std::string& name);
  Result<std::uint32_t> take_header(std::span<const std::byte> bytes, const std::string& name);
  bool take_chunk(std::span<const std::byte> bytes);
  void take_names(const Node& node, Timeline& timeline) const;

  std::map<std::uint32_t, Node> nodes_;
};

/// Whether a file is one that a node has written; else it can only be a whole one.
[[nodiscard]] bool is_node_file(std::span<const std::byte> file) noexcept;

/// The bytes of the file at `path`, for Reader::add.
[[nodiscard]] Result<std::vector<char>> load_file(const std::string& path);

/// Offsets that bring the clocks of all nodes onto that of the first: 0 where the host is the same;
/// else from messages in both directions, else from when the nodes met. Changes events and nodes.
void align_clocks(Timeline& timeline, const std::map<std::uint32_t, std::uint64_t>& wired_up_ns);

}  // namespace sterna::trace
