// Files to records, records to events.
#include "trace/reader.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "trace/perfetto.h"
#include "trace/proto.h"

namespace sterna::trace {
namespace {

constexpr std::size_t kNamePartsMax = 10;
constexpr double kNsPerTickMin = 0.01;  // 100 GHz; a generic timer of 1 MHz.
constexpr double kNsPerTickMax = 1000;
constexpr std::uint64_t kRateTicksMin = 1'000'000;  // Between two clock readings, to trust them.

template <std::size_t n>
std::string text_of(const char (&field)[n]) {
  std::string text{field, ::strnlen(field, n)};
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

/// Ticks of one node to nanoseconds of its clock.
class TickClock {
 public:
  TickClock(const FileHeader& header, const std::vector<ClockPair>& pairs)
      : begin_{header.begin}, ns_per_tick_{header.ns_per_tick} {
    const auto by_ticks = [](const ClockPair& a, const ClockPair& b) { return a.ticks < b.ticks; };
    if (pairs.empty()) {
      return;
    }
    const ClockPair last = *std::ranges::max_element(pairs, by_ticks);
    if (last.ticks > begin_.ticks + kRateTicksMin && last.ns > begin_.ns) {
      const double rate =
          static_cast<double>(last.ns - begin_.ns) / static_cast<double>(last.ticks - begin_.ticks);
      // The long way measures better than the calibration; but not if it says something else.
      if (rate > ns_per_tick_ * 0.9 && rate < ns_per_tick_ * 1.1) {
        ns_per_tick_ = rate;
      }
    }
  }
  [[nodiscard]] std::uint64_t ns(std::uint64_t ticks) const noexcept {
    const double since =
        static_cast<double>(static_cast<std::int64_t>(ticks - begin_.ticks)) * ns_per_tick_;
    const double ns = static_cast<double>(begin_.ns) + since;
    return ns <= 0      ? 0
           : ns >= 9e18 ? std::uint64_t{9'000'000'000'000'000'000}
                        : static_cast<std::uint64_t>(ns);
  }

 private:
  ClockPair begin_;
  double ns_per_tick_;
};

bool is_good(const FileHeader& header) {
  return header.magic == kFileMagic && header.version == kFormatVersion && header.node_count >= 1 &&
         header.node_count <= kNodeCountMax && header.node < header.node_count &&
         header.rank_count <= kRankCountMax && header.worker_count <= kWorkerCountMax &&
         header.ns_per_tick >= kNsPerTickMin && header.ns_per_tick <= kNsPerTickMax;
}

bool is_good(const Record& record) {
  return record.kind > 0 && record.kind <= kKindLast &&
         (record.worker < kWorkerCountMax || record.worker == kNoWorker) &&
         record.part < kNamePartsMax;
}

Event event_of(const Record& record, std::uint32_t node, const TickClock& clock) {
  return {.ns = clock.ns(record.ticks),
          .subject = record.subject,
          .value = record.value,
          .extra = record.extra,
          .node = node,
          .worker = record.worker,
          .kind = static_cast<Kind>(record.kind)};
}

bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}

}  // namespace

std::string Timeline::name_of(std::uint32_t node, std::uint64_t key) const {
  const std::uint64_t number = number_of(key);
  const auto told = names.find(name_key(node, key));
  switch (class_of(key)) {
    case KeyClass::rank:
      return fmt::format("rank {}", number);
    case KeyClass::thread:
      return told != names.end() ? fmt::format("{} ({})", told->second, number)
                                 : fmt::format("thread {}", number);
    case KeyClass::function:
      return told != names.end() ? told->second : fmt::format("function {}", number);
    case KeyClass::place:
      return told != names.end() ? told->second : fmt::format("place {}", number);
    case KeyClass::bubble:
      return told != names.end() ? told->second : fmt::format("bubble {:x}", number);
  }
  return key == kNobody ? "nobody" : fmt::format("{:#x}", key);
}

bool is_node_file(std::span<const std::byte> file) noexcept {
  std::uint64_t magic = 0;
  if (file.size() >= sizeof magic) {
    std::memcpy(&magic, file.data(), sizeof magic);
  }
  return magic == kFileMagic;
}

Result<> Reader::add(std::span<const std::byte> file, const std::string& name) {
  return is_node_file(file) ? add_node(file, name) : add_whole(file, name);
}

Result<std::uint32_t> Reader::take_header(std::span<const std::byte> bytes,
                                          const std::string& name) {
  FileHeader header;
  if (bytes.size() < sizeof header) {
    return Error{Errc::malformed, name + ": too short for a trace"};
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (!is_good(header)) {
    return Error{Errc::malformed,
                 name + ": no trace of this version of Sterna (sterna run --trace makes one)"};
  }
  if (!nodes_.empty() && nodes_.begin()->second.header.node_count != header.node_count) {
    return Error{Errc::malformed, name + ": of another job than the files before it"};
  }
  if (nodes_.contains(header.node)) {
    return Error{Errc::malformed, fmt::format("{}: node {} is there twice", name, header.node)};
  }
  nodes_[header.node].header = header;
  return header.node;
}

bool Reader::take_chunk(std::span<const std::byte> bytes) {
  ChunkHeader header;
  if (bytes.size() < sizeof header) {
    return false;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto found = nodes_.find(header.node);
  if (header.magic != kChunkMagic || found == nodes_.end()) {
    return false;
  }
  Node& node = found->second;
  node.clocks.push_back(header.begin);
  for (std::size_t at = sizeof header; at + sizeof(Record) <= bytes.size(); at += sizeof(Record)) {
    Record record;
    std::memcpy(&record, bytes.data() + at, sizeof record);
    if (is_good(record)) {
      node.records.push_back(record);
    } else if (record.kind != 0 || record.ticks != 0 || record.subject != 0) {
      ++node.broken_records;
    }
  }
  return true;
}

Result<> Reader::add_node(std::span<const std::byte> file, const std::string& name) {
  Result<std::uint32_t> node = take_header(file, name);
  if (!node) {
    return node.error();
  }
  for (std::size_t at = kFileHeaderBytes; at < file.size(); at += kChunkBytes) {
    // One that was taken and not begun when the process was killed is all zeros: others follow.
    (void)take_chunk(file.subspan(at, std::min(kChunkBytes, file.size() - at)));
  }
  return Done{};
}

Result<> Reader::add_whole(std::span<const std::byte> file, const std::string& name) {
  ProtoReader packets{file};
  bool has_any = false;
  for (ProtoField packet; packets.next(packet);) {
    if (packet.number != kTracePacketField || packet.type != ProtoType::bytes) {
      continue;
    }
    ProtoReader fields{packet.bytes};
    for (ProtoField field; fields.next(field);) {
      if (field.type != ProtoType::bytes) {
        continue;
      }
      if (field.number == kRawHeaderField) {
        has_any = true;
        if (Result<std::uint32_t> node = take_header(field.bytes, name); !node) {
          return node.error();
        }
      } else if (field.number == kRawChunkField && !take_chunk(field.bytes)) {
        return Error{Errc::malformed, name + ": a chunk of records is broken"};
      }
    }
  }
  if (!has_any) {
    return Error{Errc::malformed, name + ": no trace of Sterna (sterna run --trace makes one)"};
  }
  return Done{};
}

void Reader::take_names(const Node& node, Timeline& timeline) const {
  // Records of one name have one time; parts come in order.
  std::vector<Record> parts;
  std::ranges::copy_if(node.records, std::back_inserter(parts), [](const Record& record) {
    return record.kind == static_cast<std::uint8_t>(Kind::name);
  });
  std::ranges::stable_sort(parts, [](const Record& a, const Record& b) {
    return std::tie(a.subject, a.ticks, a.part) < std::tie(b.subject, b.ticks, b.part);
  });
  const Record* last = nullptr;
  for (const Record& part : parts) {
    std::string& name = timeline.names[name_key(node.header.node, part.subject)];
    if (last == nullptr || last->subject != part.subject || last->ticks != part.ticks) {
      name.clear();  // A key that is used again: the last name counts.
    }
    char bytes[12];
    std::memcpy(bytes, &part.value, 8);
    std::memcpy(bytes + 8, &part.extra, 4);
    for (const char c : bytes) {
      if (c != '\0') {
        name.push_back(is_printable(c) ? c : '?');
      }
    }
    last = &part;
  }
}

Result<Timeline> Reader::finish() {
  if (nodes_.empty()) {
    return Error{Errc::malformed, "no trace was given"};
  }
  Timeline timeline;
  std::map<std::uint32_t, std::uint64_t> wired_up_ns;
  for (const auto& [number, node] : nodes_) {
    const FileHeader& header = node.header;
    timeline.nodes.push_back({.node = number,
                              .pid = header.pid,
                              .worker_count = header.worker_count,
                              .host = text_of(header.host),
                              .boot_id = text_of(header.boot_id),
                              .broken_records = node.broken_records,
                              .is_cut_short = header.refused_chunks != 0});
    timeline.rank_count = std::max(timeline.rank_count, header.rank_count);
    wired_up_ns[number] = header.wired_up_ns;
    take_names(node, timeline);
    const TickClock clock{header, node.clocks};
    for (const Record& record : node.records) {
      if (record.kind != static_cast<std::uint8_t>(Kind::name)) {
        timeline.events.push_back(event_of(record, number, clock));
        ++timeline.nodes.back().events;
      }
    }
  }
  nodes_.clear();
  align_clocks(timeline, wired_up_ns);
  std::ranges::stable_sort(timeline.events, {}, &Event::ns);
  if (!timeline.events.empty()) {
    timeline.begin_ns = timeline.events.front().ns;
    for (Event& event : timeline.events) {
      event.ns -= timeline.begin_ns;
    }
  }
  return timeline;
}

namespace {

/// The file without the chunks that were never begun: after a kill those are most of it, and holes.
std::vector<char> read_node_file(std::ifstream& file) {
  std::vector<char> bytes(kFileHeaderBytes);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  for (std::uint64_t at = kFileHeaderBytes; file; at += kChunkBytes) {
    ChunkHeader header{};
    file.seekg(static_cast<std::streamoff>(at));
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    if (!file || header.magic != kChunkMagic) {
      continue;
    }
    const std::size_t end = bytes.size();
    bytes.resize(end + kChunkBytes);
    std::memcpy(bytes.data() + end, &header, sizeof header);
    file.read(bytes.data() + end + sizeof header, kChunkBytes - sizeof header);
  }
  return bytes;
}

std::vector<char> read_all(std::ifstream& file) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  std::vector<char> bytes;
  while (file) {
    const std::size_t end = bytes.size();
    bytes.resize(end + kPieceBytes);
    file.read(bytes.data() + end, kPieceBytes);
    bytes.resize(end + static_cast<std::size_t>(file.gcount()));
  }
  return bytes;
}

}  // namespace

Result<std::vector<char>> load_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) {
    return Error{Errc::system, path + ": cannot be read"};
  }
  std::uint64_t magic = 0;
  file.read(reinterpret_cast<char*>(&magic), sizeof magic);
  file.clear();
  file.seekg(0);
  std::vector<char> bytes = magic == kFileMagic ? read_node_file(file) : read_all(file);
  if (file.bad()) {  // A folder, as an example.
    return Error{Errc::system, path + ": cannot be read"};
  }
  return bytes;
}

}  // namespace sterna::trace
