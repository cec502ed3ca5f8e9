// What ranks write, put together into whole lines, and written to our standard output and error.
//
// Never blocks: while the reader of our output is slow, is_full() tells the sources to stop reading
// from the ranks, which then block in their own writes, as at a terminal.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>

#include "launch/loop.h"
#include "runtime/control_protocol.h"

namespace sterna::launch {

using runtime::OutputStream;

class LineOutput final : public DescriptorHandler {
 public:
  struct Options {
    bool tag_lines = false;     // [rank] before each line.
    bool pass_through = false;  // One rank only: its bytes go on as they come.
    std::array<int, 2> fds = {1, 2};
  };

  LineOutput(Loop& loop, Options options) : loop_{&loop}, options_{options} {}

  void add(std::uint32_t rank, OutputStream stream, std::span<const std::byte> bytes);
  /// Of no rank: whole lines too, never a tag. `source` tells the writers apart.
  void add_plain(std::uint32_t source, OutputStream stream, std::span<const std::byte> bytes);
  /// Nothing more comes: unfinished lines go out, with an end.
  void finish();
  /// A message of our own, after what is there.
  void add_message(std::string_view line);

  [[nodiscard]] bool is_full() const noexcept;
  /// All that was given has been written, or has no reader any more.
  [[nodiscard]] bool is_drained() const noexcept;
  void on_ready(int fd, short events) override;
  /// Why output was lost, though nobody stopped reading it (a full disk): an error number; 0: none
  /// was.
  [[nodiscard]] int error_number() const noexcept { return error_number_; }

 private:
  struct Sink {
    std::deque<std::string> queue;
    std::size_t front_used = 0;
    std::size_t bytes = 0;
    bool is_watched = false;
    bool is_gone = false;  // Its reader has gone, or it takes no more: what comes is dropped.
  };

  [[nodiscard]] std::string tag_of(std::uint32_t rank) const;
  void gather(std::string& unfinished, const std::string& tag, std::size_t index,
              std::string_view text);
  void push(std::size_t index, std::string text);
  void write_some(std::size_t index);
  void watch(std::size_t index);

  Loop* loop_;
  Options options_;
  std::array<Sink, 2> sinks_;
  int error_number_ = 0;
  std::unordered_map<std::uint64_t, std::string> unfinished_;  // By key_of().
};

}  // namespace sterna::launch
