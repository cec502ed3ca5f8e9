#!/usr/bin/env python3
"""The traces of `sterna run --trace`, read with the schema that Perfetto itself publishes on PyPI, by
the rules of its importer: no field that it does not know, every event on a track that was described,
begins and ends that match, interned names that are there, flows that lead somewhere.

Usage: timeline.py BUILD
"""

import collections
import pathlib
import subprocess
import sys
import tempfile

import cache

READER = "--read"
OWN = {7017, 7018}  # What `sterna trace` reads again (src/trace/perfetto.h); others pass it over.


class Checker:
    """One trace, packet by packet, as the importer takes it."""

    def __init__(self, events):
        self.events = events  # The generated module: TracePacket, TrackEvent...
        self.tracks = {}                                 # uuid: descriptor
        self.open = collections.defaultdict(list)        # uuid: names of open slices
        self.names = collections.defaultdict(dict)       # sequence: {iid: name}
        self.flows = collections.Counter()
        self.ended_flows = collections.Counter()
        self.last = {}                                   # uuid: time of the last event
        self.counts = collections.Counter()
        self.clocks = {}                                 # sequence: default clock
        self.faults = []

    def fault(self, text):
        if len(self.faults) < 20:
            self.faults.append(text)

    def packet(self, number, packet):
        self.unknown(number, packet)
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED:
            self.names[sequence].clear()
        if packet.HasField("trace_packet_defaults"):
            self.clocks[sequence] = packet.trace_packet_defaults.timestamp_clock_id
        for name in packet.interned_data.event_names:
            self.names[sequence][name.iid] = name.name
        if packet.HasField("track_descriptor"):
            self.describe(number, packet.track_descriptor)
        if packet.HasField("track_event"):
            self.event(number, packet)

    def unknown(self, number, message):
        """Fields that the schema does not have were written for nobody."""
        from google.protobuf import unknown_fields
        found = {field.field_number for field in unknown_fields.UnknownFieldSet(message)}
        if found - (OWN if isinstance(message, self.events.TracePacket) else set()):
            self.fault(f"packet {number}: {type(message).__name__} has no fields {sorted(found)}")
        for field, value in message.ListFields():
            if field.message_type is not None:
                for part in [value] if hasattr(value, "ListFields") else value:
                    self.unknown(number, part)

    def describe(self, number, track):
        if track.uuid == 0:
            self.fault(f"packet {number}: a track without a uuid")
        if track.parent_uuid and track.parent_uuid not in self.tracks:
            self.fault(f"packet {number}: track {track.uuid:#x} has a parent that comes later or never")
        if not (track.name or track.process.process_name or track.thread.thread_name):
            self.fault(f"packet {number}: track {track.uuid:#x} has no name")
        self.tracks[track.uuid] = track
        self.counts["tracks"] += 1

    def event(self, number, packet):
        event, kinds = packet.track_event, self.events.TrackEvent
        track = self.tracks.get(event.track_uuid)
        self.counts[kinds.Type.Name(event.type)] += 1
        if track is None:
            self.fault(f"packet {number}: an event on a track that was not described")
            return
        if not packet.HasField("timestamp"):
            self.fault(f"packet {number}: an event without a time")
        if packet.timestamp < self.last.get(event.track_uuid, 0):
            self.fault(f"packet {number}: time goes back on track {track.name}")
        self.last[event.track_uuid] = packet.timestamp
        if (event.type == kinds.TYPE_COUNTER) != track.HasField("counter"):
            self.fault(f"packet {number}: {kinds.Type.Name(event.type)} on track {track.name}")
        if event.type == kinds.TYPE_SLICE_BEGIN:
            self.open[event.track_uuid].append(self.name_of(number, packet))
        elif event.type == kinds.TYPE_SLICE_END:
            if not self.open[event.track_uuid]:
                self.fault(f"packet {number}: an end without a begin on track {track.name}")
            else:
                self.open[event.track_uuid].pop()
        elif event.type == kinds.TYPE_INSTANT:
            self.name_of(number, packet)
        elif event.type == kinds.TYPE_COUNTER:
            if not (event.HasField("counter_value") or event.HasField("double_counter_value")):
                self.fault(f"packet {number}: a counter without a value")
        self.flows.update(event.flow_ids)
        self.ended_flows.update(event.terminating_flow_ids)

    def name_of(self, number, packet):
        event = packet.track_event
        if event.HasField("name_iid"):
            name = self.names[packet.trusted_packet_sequence_id].get(event.name_iid)
            if not packet.sequence_flags & packet.SEQ_NEEDS_INCREMENTAL_STATE:
                self.fault(f"packet {number}: interned data used without saying so")
        else:
            name = event.name
        if not name:
            self.fault(f"packet {number}: an event without a name")
        return name

    def finish(self):
        for uuid, names in self.open.items():
            if names:
                self.fault(f"track {self.tracks[uuid].name}: {names} never end")
        lonely = [flow for flow in self.flows | self.ended_flows
                  if self.flows[flow] + self.ended_flows[flow] < 2]
        if lonely:
            self.fault(f"{len(lonely)} flows with one end only")
        return self.faults


def read(path):
    """In the interpreter that has Perfetto's package: the faults, and what there was."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as events
    trace = events.Trace()
    trace.ParseFromString(pathlib.Path(path).read_bytes())
    checker = Checker(events)
    for number, packet in enumerate(trace.packet):
        checker.packet(number, packet)
    faults = checker.finish()
    print(", ".join(f"{count} {what}" for what, count in sorted(checker.counts.items())))
    for kind in ("tracks", "TYPE_SLICE_BEGIN", "TYPE_SLICE_END"):
        if checker.counts[kind] == 0:
            faults.append(f"no {kind} at all")
    if not checker.flows and not checker.counts["TYPE_COUNTER"]:
        faults.append("neither a message is drawn as a flow, nor a queue as a counter")
    print("\n".join(faults))
    return 1 if faults else 0


JOBS = {
    "mobile ranks that move": ["-n", 4, "--nodes", 2, "--set", "shuffle=40",
                               "tests/cluster/cluster_counting", 200],
    "over tcp, cut off by a crash": ["-n", 4, "--nodes", 2, "--drivers", "tcp",
                                     "tests/cluster/cluster_counting", 200, "segv", 1],
    "processes": ["-n", 3, "tests/cluster/cluster_counting", 50],
    "user threads and bubbles": ["-n", 1, "tests/capi/capi_test_threads"],
}


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    python = cache.python_with("perfetto", "protobuf") / "python"
    is_good = True
    for name, words in JOBS.items():
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "job.trace"
            words = [build / word if str(word).startswith("tests/") else word for word in words]
            _, text = cache.output_of([build / "bin" / "sterna", "run", "--timeout", "60s", "--trace",
                                       trace, *words])
            if not trace.exists():
                sys.exit(f"{name}: no trace was made\n{text[-2000:]}")
            done = subprocess.run([python, __file__, READER, trace], text=True, capture_output=True,
                                  check=False)
            print(f"{name}: {'good' if done.returncode == 0 else 'BAD'}: {done.stdout.strip()}"
                  f"{done.stderr[-3000:]}", flush=True)
            is_good = is_good and done.returncode == 0
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    if sys.argv[1] == READER:
        sys.exit(read(sys.argv[2]))
    main()
