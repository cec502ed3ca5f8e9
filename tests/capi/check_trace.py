"""A trace of a program with bubbles, by the rules of Perfetto's format: what is in it, and that its
tracks are there before what happens on them, slices nest and end, times ascend, queues empty.

Arguments: the launcher, the program (auto_bubbles.c).
"""

import os
import subprocess
import sys
import tempfile

SECONDS = 200
DESCRIPTOR, EVENT, TIMESTAMP = 60, 11, 8  # Of TracePacket.
UUID, NAME, PROCESS, THREAD, PARENT = 1, 2, 3, 4, 5  # Of TrackDescriptor.
TYPE, TRACK, EVENT_NAME, COUNTER = 9, 11, 23, 30  # Of TrackEvent.
BEGIN, END, INSTANT, COUNT = 1, 2, 3, 4


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of a message; values are integers or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            expect(len(value) == size, "a field ends within its message")
        else:
            value, at = int.from_bytes(data[at:at + 4], "little"), at + 4
            expect(kind == 5, "a field has a known type")
        yield key >> 3, value


def expect(condition, what):
    if not condition:
        sys.exit(f"not true: {what}")


def read(data):
    """Names of tracks by their numbers, names of what happens, last values of counters."""
    tracks, happens, counters, still_open, last = {}, [], {}, {}, {}
    for number, packet in fields(data):
        expect(number == 1, "a trace holds packets and nothing else")
        parts = dict(fields(packet))
        if DESCRIPTOR in parts:
            track = dict(fields(parts[DESCRIPTOR]))
            expect(track[UUID] not in tracks, "a track is described once")
            expect(PARENT not in track or track[PARENT] in tracks, "a parent comes before its child")
            name = track.get(NAME)
            for inner, wanted in ((PROCESS, 6), (THREAD, 5)):
                name = dict(fields(track[inner])).get(wanted, name) if inner in track else name
            tracks[track[UUID]] = name.decode()
        if EVENT in parts:
            event = dict(fields(parts[EVENT]))
            track = event[TRACK]
            expect(track in tracks, "a track is described before it is used")
            expect(parts[TIMESTAMP] >= last.get(track, 0), "times of a track ascend")
            last[track] = parts[TIMESTAMP]
            if event[TYPE] in (BEGIN, INSTANT):
                happens.append((tracks[track], event[EVENT_NAME].decode()))
            still_open[track] = still_open.get(track, 0) + {BEGIN: 1, END: -1}.get(event[TYPE], 0)
            expect(still_open[track] >= 0, "a slice that ends has begun")
            if event[TYPE] == COUNT:
                counters[tracks[track]] = event[COUNTER]
    expect(not any(still_open.values()), "all slices end")
    return tracks, happens, counters


def main():
    launcher, program = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")
        done = subprocess.run(
            [launcher, "run", "-n", "1", "--trace", path, "--set", "auto_bubbles=filiation", program,
             "setting"], capture_output=True, text=True, timeout=SECONDS)
        expect(done.returncode == 0, done.stdout + done.stderr)
        with open(path, "rb") as file:
            tracks, happens, counters = read(file.read())
    names = set(tracks.values())
    expect("bubbles of node 0" in names and "threads of node 0" in names, "bubbles and threads")
    bubbles = {name for name in names if name.startswith("children of")}
    expect(bubbles, "bubbles have the names of their creators")
    queues = {name: value for name, value in counters.items() if name.startswith("run queue of")}
    expect("run queue of machine 0" in queues, "the queues of places")
    expect(not any(queues.values()), f"queues are empty at the end: {queues}")
    running = {name: value for name, value in counters.items() if name.startswith("running in")}
    expect(running and not any(running.values()), f"no thread of a bubble runs at the end: {running}")
    expect(any(track in bubbles and name.startswith("at ") for track, name in happens),
           "a bubble is at a place")
    expect(any(name == "joins " + bubble for bubble in bubbles for _, name in happens),
           "threads join their bubbles")
    expect(any(name.startswith("ready in the queue of") for _, name in happens),
           "threads wait in queues")
    print("No Errors")


main()
