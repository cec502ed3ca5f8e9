// What launcher and agent say to each other over the standard input and output of ssh. Frames of
// kind `relay` (runtime/control_protocol.h); the body is a kind, a node and what belongs to it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "launch/crew.h"

namespace sterna::launch {

enum class RelayKind : std::uint8_t {
  order = 1,     // Launcher: the CrewOrder. The first message.
  to_node,       // Launcher: a frame for a node.
  signal,        // Launcher: i32, to all processes.
  input,         // Launcher: standard input; empty: its end.
  from_node,     // Agent: a frame of a node.
  output,        // Agent: u8 stream, bytes.
  started,       // Agent: u32 pid.
  start_failed,  // Agent: a sentence.
  ended,         // Agent: i32 exit code, i32 signal, u64 cpu_ns.
  over,          // Agent: all processes have ended, all has been told.
  failed,        // Agent: it cannot do its work; a sentence. Of this number in all versions.
  taken,         // Agent: u64, bytes of the input so far that wait with it no more.
};

struct Relay {
  RelayKind kind = RelayKind::over;
  std::uint32_t node = 0;
  std::span<const std::byte> bytes;  // Of what was read.
};

[[nodiscard]] Frame encode_relay(RelayKind kind, std::uint32_t node,
                                 std::span<const std::byte> bytes);
[[nodiscard]] Frame encode_relay(RelayKind kind, std::uint32_t node, std::string_view text);
[[nodiscard]] Result<Relay> decode_relay(std::span<const std::byte> body);

/// The bodies that have parts.
[[nodiscard]] std::vector<std::byte> encode_order(const CrewOrder& order);
[[nodiscard]] Result<CrewOrder> decode_order(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<std::byte> encode_end(const ProcessEnd& end);
[[nodiscard]] Result<ProcessEnd> decode_end(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<std::byte> encode_taken(std::uint64_t input_bytes);
[[nodiscard]] Result<std::uint64_t> decode_taken(std::span<const std::byte> bytes);

}  // namespace sterna::launch
