// Field numbers are those of protos/perfetto/trace: trace_packet.proto, track_event/*.proto.
#include "trace/track_writer.h"

#include <ostream>

#include "trace/perfetto.h"

namespace sterna::trace {
namespace {

// Fields of TracePacket, TrackEvent, TrackDescriptor and what is in them.
constexpr std::uint32_t kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kTrackDescriptor = 60;
constexpr std::uint32_t kAnnotation = 4, kEventType = 9, kEventTrack = 11, kEventCategory = 22,
                        kEventName = 23, kCounterValue = 30, kFlow = 47, kFlowEnd = 48;
constexpr std::uint32_t kUuid = 1, kTrackName = 2, kProcess = 3, kThread = 4, kParent = 5,
                        kCounter = 8;
constexpr std::uint32_t kPid = 1, kTid = 2, kThreadName = 5, kProcessName = 6;
constexpr std::uint32_t kAnnotationName = 10, kAnnotationNumber = 4;
constexpr std::uint64_t kBegin = 1, kEnd = 2, kInstant = 3, kCount = 4;
constexpr std::uint64_t kOurSequence = 1;

}  // namespace

void TrackWriter::packet(const ProtoWriter& content) {
  ProtoWriter outer;
  outer.message(kTracePacketField, content);
  to_.write(outer.text().data(), static_cast<std::streamsize>(outer.text().size()));
}

void TrackWriter::put(std::uint64_t ns, const ProtoWriter& event) {
  ProtoWriter content;
  content.number(kTimestamp, ns);
  content.number(kSequence, kOurSequence);
  content.message(kTrackEvent, event);
  packet(content);
}

void TrackWriter::describe_process(std::uint64_t uuid, std::uint64_t pid, const std::string& name) {
  ProtoWriter process;
  process.number(kPid, pid);
  process.bytes(kProcessName, name);
  ProtoWriter track;
  track.number(kUuid, uuid);
  track.message(kProcess, process);
  ProtoWriter content;
  content.number(kSequence, kOurSequence);
  content.message(kTrackDescriptor, track);
  packet(content);
}

void TrackWriter::describe_track(std::uint64_t uuid, std::uint64_t parent, std::uint64_t pid,
                                 std::uint64_t tid, const std::string& name) {
  ProtoWriter thread;
  thread.number(kPid, pid);
  thread.number(kTid, tid);
  thread.bytes(kThreadName, name);
  ProtoWriter track;
  track.number(kUuid, uuid);
  track.number(kParent, parent);
  track.message(kThread, thread);
  ProtoWriter content;
  content.number(kSequence, kOurSequence);
  content.message(kTrackDescriptor, track);
  packet(content);
}

void TrackWriter::describe_counter(std::uint64_t uuid, std::uint64_t parent,
                                   const std::string& name) {
  ProtoWriter track;
  track.number(kUuid, uuid);
  track.number(kParent, parent);
  track.bytes(kTrackName, name);
  track.message(kCounter, ProtoWriter{});
  ProtoWriter content;
  content.number(kSequence, kOurSequence);
  content.message(kTrackDescriptor, track);
  packet(content);
}

ProtoWriter TrackWriter::slice(std::uint64_t type, std::uint64_t track) {
  ProtoWriter event;
  event.number(kEventType, type);
  event.number(kEventTrack, track);
  return event;
}

void TrackWriter::begin(std::uint64_t ns, std::uint64_t track, const std::string& name,
                        const char* category) {
  ProtoWriter event = slice(kBegin, track);
  event.bytes(kEventCategory, category);
  event.bytes(kEventName, name);
  put(ns, event);
  ++open_[track];
}

void TrackWriter::end(std::uint64_t ns, std::uint64_t track) {
  std::uint32_t& count = open_[track];
  if (count != 0) {
    --count;
    put(ns, slice(kEnd, track));
  }
}

void TrackWriter::point(std::uint64_t ns, std::uint64_t track, const std::string& name,
                        const std::vector<std::pair<const char*, std::int64_t>>& numbers,
                        std::uint64_t flow, bool is_flow_end) {
  ProtoWriter content = slice(kInstant, track);
  content.bytes(kEventName, name);
  for (const auto& [what, number] : numbers) {
    ProtoWriter annotation;
    annotation.bytes(kAnnotationName, what);
    annotation.number(kAnnotationNumber, static_cast<std::uint64_t>(number));
    content.message(kAnnotation, annotation);
  }
  if (flow != 0) {
    content.fixed(is_flow_end ? kFlowEnd : kFlow, flow);
  }
  put(ns, content);
}

void TrackWriter::end_all(std::uint64_t ns, std::uint64_t track) {
  while (open_[track] != 0) {
    end(ns, track);
  }
}

void TrackWriter::count(std::uint64_t ns, std::uint64_t track, std::int64_t value) {
  ProtoWriter content = slice(kCount, track);
  content.number(kCounterValue, static_cast<std::uint64_t>(value));
  put(ns, content);
}

void TrackWriter::finish(std::uint64_t ns) {
  for (const auto& [track, count] : std::map{open_}) {
    end_all(ns, track);
  }
}

}  // namespace sterna::trace
