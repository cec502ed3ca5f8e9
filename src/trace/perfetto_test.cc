// Tracks for Perfetto: read back by its rules.
#include "trace/perfetto.h"

#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "base/trace_lane.h"
#include "trace/made_trace.h"
#include "trace/proto.h"
#include "trace/summary.h"

namespace sterna::trace {
namespace {

struct Slices {
  std::map<std::uint64_t, int> open;
  std::map<std::uint64_t, std::uint64_t> last_ns;  // By track.
  std::map<std::uint64_t, std::int64_t> counters;  // The last value of each.
  std::size_t begins = 0, flows = 0, flow_ends = 0, tracks = 0;
  std::string names;
};

/// Reads the packets as Perfetto does: every slice that ends has begun, on a track that is there,
/// below one that is there, once; times of a track ascend.
Slices read_tracks(const std::string& text) {
  Slices slices;
  std::map<std::uint64_t, bool> is_described;
  ProtoReader packets{std::as_bytes(std::span{text})};
  for (ProtoField packet; packets.next(packet);) {
    ProtoReader fields{packet.bytes};
    std::uint64_t ns = 0;
    for (ProtoField field; fields.next(field);) {
      ns = field.number == 8 ? field.value : ns;
      ProtoReader inner{field.bytes};
      std::uint64_t type = 0, track = 0;
      for (ProtoField part; field.type == ProtoType::bytes && inner.next(part);) {
        if (field.number == 60 && part.number == 1) {
          EXPECT_FALSE(is_described[part.value]) << part.value;
          is_described[part.value] = true;
          ++slices.tracks;
        }
        if (field.number == 60 && part.number == 5) {
          EXPECT_TRUE(is_described[part.value]) << "the parent " << part.value;
        }
        if (field.number == 11 && part.number == 30) {
          slices.counters[track] = static_cast<std::int64_t>(part.value);
        }
        type = part.number == 9 ? part.value : type;
        track = part.number == 11 ? part.value : track;
        slices.flows += part.number == 47 ? 1 : 0;
        slices.flow_ends += part.number == 48 ? 1 : 0;
        if (part.number == 23) {
          slices.names.append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
          slices.names.push_back(';');
        }
      }
      if (field.number == 11) {
        EXPECT_TRUE(is_described[track]) << track;
        slices.begins += type == 1 ? 1 : 0;
        slices.open[track] += type == 1 ? 1 : type == 2 ? -1 : 0;
        EXPECT_GE(slices.open[track], 0);
        EXPECT_GE(ns, slices.last_ns[track]);
        slices.last_ns[track] = ns;
      }
    }
    EXPECT_FALSE(fields.is_broken());
  }
  EXPECT_FALSE(packets.is_broken());
  return slices;
}

TEST(Perfetto, SlicesEndOnTracksThatAreThereAndMessagesAreFlows) {
  Made a = states_of_node_0();
  a.add(70, Kind::sends, message_subject(0, 2), message_value(8, 1));
  a.add(80, Kind::receives, message_subject(0, 2), message_value(8, 1));
  a.add(95, Kind::queued, kRank0, key_of(KeyClass::place, 1));
  std::ostringstream output;
  write_tracks(read({a, states_of_node_1()}), output);
  const Slices slices = read_tracks(output.str());
  EXPECT_EQ(slices.flows, 1u);
  EXPECT_EQ(slices.flow_ends, 1u);
  EXPECT_GT(slices.begins, 6u);
  for (const auto& [track, open] : slices.open) {
    EXPECT_EQ(open, 0) << track;
  }
  for (const char* name : {"runs on node 1 worker 0", "moves to node 1", "waits", "asleep"}) {
    EXPECT_NE(slices.names.find(name), std::string::npos) << name;
  }
}

TEST(Perfetto, CallsOfALaneHaveATrack) {
  constexpr std::uint64_t kSends = lane_key(0);
  constexpr std::uint64_t kPolls = lane_key(1);
  constexpr std::uint64_t kSend = key_of(KeyClass::function, 1 << 16);
  constexpr std::uint64_t kSleep = key_of(KeyClass::function, (1 << 16) + 1);
  Made node{0, "host", 0};
  node.add(0, Kind::calls, kPolls, kSleep);
  node.add(1, Kind::calls, kSends, kSend);
  node.add(2, Kind::returns, kSends, kSend);
  node.add(3, Kind::returns, kPolls, kSleep);
  node.add(4, Kind::returns, kSends, kSend);                     // Its begin was not recorded.
  node.add(5, Kind::calls, key_of(KeyClass::thread, 3), kSend);  // No lane.
  const Timeline timeline = read({node});
  std::ostringstream output;
  write_tracks(timeline, output);
  const Slices slices = read_tracks(output.str());
  EXPECT_EQ(slices.begins, 2u);
  for (const auto& [track, open] : slices.open) {
    EXPECT_EQ(open, 0) << track;
  }
  EXPECT_TRUE(summarise(timeline).calls.empty());
}

TEST(Perfetto, BubblesHavePlacesAndThreadsThatRun) {
  constexpr std::uint64_t kTeam = key_of(KeyClass::bubble, 7);
  constexpr std::uint64_t kPart = key_of(KeyClass::bubble, 8);
  constexpr std::uint64_t kThread = key_of(KeyClass::thread, 3);
  constexpr std::uint64_t kPlace = key_of(KeyClass::place, 1);
  Made node{0, "host", 0};
  node.add(0, Kind::joins, kTeam, kNobody);
  node.add(1, Kind::joins, kPart, kTeam);
  node.add(2, Kind::placed, kTeam, kPlace);
  node.add(2, Kind::placed, kPart, kPlace);
  node.add(3, Kind::born, kThread);
  node.add(4, Kind::joins, kThread, kPart);
  node.add(5, Kind::queued, kThread, kPlace);
  node.add(6, Kind::placed, kPart, key_of(KeyClass::place, 2));
  node.add(6, Kind::taken, kThread, kPlace);
  node.add(7, Kind::runs, kThread);
  node.add(9, Kind::runs, kNobody, kThread);
  node.add(9, Kind::ended, kThread);
  node.add(10, Kind::ended, kPart);
  node.add(11, Kind::ended, kTeam);
  std::ostringstream output;
  write_tracks(read({node}), output);
  const Slices slices = read_tracks(output.str());
  for (const auto& [track, open] : slices.open) {
    EXPECT_EQ(open, 0) << track;
  }
  EXPECT_EQ(slices.counters.size(), 2U) << "the queue, and what runs in the inner bubble";
  for (const auto& [track, value] : slices.counters) {
    EXPECT_EQ(value, 0) << track;
  }
  for (const char* name : {"outermost", "joins bubble 7", "joins bubble 8", "at place 1",
                           "at place 2", "ready in the queue of place 1"}) {
    EXPECT_NE(slices.names.find(name), std::string::npos) << name << " in " << slices.names;
  }
}

TEST(Perfetto, AWholeFileReadsBackAsItsParts) {
  const std::vector<std::byte> a = states_of_node_0().bytes();
  const std::vector<std::byte> b = states_of_node_1().bytes();
  std::ostringstream output;
  write_records(a, output);
  write_records(b, output);
  write_tracks(read({states_of_node_0(), states_of_node_1()}), output);
  const std::string text = output.str();
  // And once more: the whole file is a part of another.
  std::ostringstream again;
  write_records(std::as_bytes(std::span{text}), again);
  for (const std::string& whole : {text, again.str()}) {
    Reader reader;
    ASSERT_TRUE(reader.add(std::as_bytes(std::span{whole}), "whole").has_value());
    Result<Timeline> timeline = reader.finish();
    ASSERT_TRUE(timeline.has_value());
    EXPECT_EQ(timeline.value().events.size(), 13u);
    EXPECT_EQ(summarise(timeline.value()).threads.at(0).running_ns, 140u);
  }
}

}  // namespace
}  // namespace sterna::trace
