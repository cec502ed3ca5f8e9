// Frames of the control channel over a non-blocking pair of descriptors (a socket, or two pipes).
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "base/syscall.h"
#include "launch/loop.h"
#include "runtime/control_protocol.h"

namespace sterna::launch {

using runtime::Frame;
using runtime::FrameHeader;
using runtime::FrameKind;

/// Non-blocking from now on: only for descriptors that nobody else uses.
void set_non_blocking(int fd) noexcept;

/// Takes whole frames out of a stream of bytes that comes in pieces.
class FrameReader {
 public:
  enum class State : std::uint8_t { open, ended, malformed };

  /// Reads once, as much as fits. `ended` after the last byte; check has_frame() all the same.
  State read_from(int fd);
  /// The next whole frame; valid until the next read_from.
  [[nodiscard]] bool next(FrameHeader& header, std::span<const std::byte>& body);
  /// False after bytes that are no frame: nothing more comes.
  [[nodiscard]] bool is_well_formed() const noexcept { return is_well_formed_; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t used_ = 0;
  bool is_well_formed_ = true;
};

/// Sends bytes in order, as the reader takes them.
class ByteSender {
 public:
  void push(std::vector<std::byte> bytes);
  /// Writes what fits. False: the reader has gone, and everything was dropped.
  bool write_to(int fd);
  [[nodiscard]] bool is_empty() const noexcept { return queue_.empty(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::deque<std::vector<std::byte>> queue_;
  std::size_t front_used_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace sterna::launch
