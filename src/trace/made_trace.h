// For tests: trace files made by hand.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/trace_format.h"
#include "trace/reader.h"

namespace sterna::trace {

/// A node's file as bytes.
class Made {
 public:
  explicit Made(std::uint32_t node, const char* boot_id, std::uint64_t clock_ns) {
    header_.magic = kFileMagic;
    header_.version = kFormatVersion;
    header_.node = node;
    header_.node_count = 2;
    header_.rank_count = 4;
    header_.ns_per_tick = 1;
    header_.begin = {.ticks = 1000, .ns = clock_ns};
    header_.wired_up_ns = clock_ns;
    std::strcpy(header_.boot_id, boot_id);
  }
  FileHeader& header() { return header_; }
  void add(std::uint64_t at_ns, Kind kind, std::uint64_t subject, std::uint64_t value = 0,
           std::uint16_t worker = 0) {
    records_.push_back(
        {1000 + at_ns, subject, value, 0, worker, 0, static_cast<std::uint8_t>(kind)});
  }
  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::vector<std::byte> result(kFileHeaderBytes + sizeof(ChunkHeader) +
                                  records_.size() * sizeof(Record));
    const ChunkHeader chunk{kChunkMagic, header_.node, 0, header_.begin};
    std::memcpy(result.data(), &header_, sizeof header_);
    std::memcpy(result.data() + kFileHeaderBytes, &chunk, sizeof chunk);
    if (!records_.empty()) {
      std::memcpy(result.data() + kFileHeaderBytes + sizeof chunk, records_.data(),
                  records_.size() * sizeof(Record));
    }
    return result;
  }

 private:
  FileHeader header_{};
  std::vector<Record> records_;
};

inline Timeline read(const std::vector<Made>& nodes) {
  Reader reader;
  for (const Made& node : nodes) {
    EXPECT_TRUE(reader.add(node.bytes(), "made").has_value());
  }
  Result<Timeline> timeline = reader.finish();
  EXPECT_TRUE(timeline.has_value());
  return std::move(timeline.value());
}

inline constexpr std::uint64_t kRank0 = key_of(KeyClass::rank, 0);

/// Rank 0 runs 100, waits 50, is ready 20, runs 30, moves 40 to node 1, is ready 5, runs 10.
inline Made states_of_node_0() {
  Made node{0, "host", 0};
  const std::uint64_t send = key_of(KeyClass::function, 1);
  node.add(0, Kind::runs, kRank0);
  node.add(60, Kind::calls, kRank0, send);
  node.add(90, Kind::returns, kRank0, send);
  node.add(100, Kind::runs, kNobody, kRank0);
  node.add(110, Kind::sleeps, kNobody);
  node.add(140, Kind::awakes, kNobody);
  node.add(150, Kind::wakes, kRank0);
  node.add(170, Kind::runs, kRank0);
  node.add(200, Kind::runs, kNobody, kRank0);
  node.add(200, Kind::leaves, kRank0, 1);
  return node;
}
inline Made states_of_node_1() {
  Made node{1, "host", 0};
  node.add(240, Kind::arrives, kRank0, 0);
  node.add(245, Kind::runs, kRank0);
  node.add(255, Kind::ended, kRank0);
  return node;
}

}  // namespace sterna::trace
