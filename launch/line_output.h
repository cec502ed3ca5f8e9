// What ranks write, put together into whole lines, and written to our standard output and error.
//
// Never blocks: while the reader of our output is slow, is_full() tells the sources to stop reading
// from the ranks, which then block in their own writes, as at a terminal.
//
// A line goes out when it is whole. Begun only, it goes out when it has become long, or when nobody
// has written for a moment (a prompt): then its sink has an open line, of which what comes is
// passed on as it comes. Only a line of somebody else cuts it, by an end that its writer did not
// write.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "launch/loop.h"
#include "runtime/control_protocol.h"

namespace sterna::launch {

using runtime::OutputStream;

class LineOutput final : public DescriptorHandler {
 public:
  static constexpr std::size_t kHeldBytesMax = std::size_t{64} << 10;  // Of a line that is begun.
  static constexpr std::uint64_t kQuietNs = 100'000'000;
  // How long a job may go on printing, and how much, when its reader has gone: what ends soon ends
  // as if it were read to the end.
  static constexpr std::uint64_t kUnreadNs = 10'000'000'000;
  static constexpr std::uint64_t kUnreadBytes = std::uint64_t{64} << 20;

  struct Options {
    bool tag_lines = false;     // [rank] before each line.
    bool pass_through = false;  // One rank only: its bytes go on as they come.
    std::array<int, 2> fds = {1, 2};
  };

  LineOutput(Loop& loop, Options options);

  void add(std::uint32_t rank, OutputStream stream, std::span<const std::byte> bytes);
  /// Of no rank: whole lines too, never a tag. `source` tells the writers apart.
  void add_plain(std::uint32_t source, OutputStream stream, std::span<const std::byte> bytes);
  /// Nothing more comes: unfinished lines go out. With an end, but for the only one of its sink:
  /// that is as its writer wrote it.
  void finish();
  /// A message of our own, after what is there.
  void add_message(std::string_view line);

  /// After each turn of the loop: what is due by now.
  void step(std::uint64_t now_ns);
  /// When step() has something to do at the latest, if nothing happens before.
  [[nodiscard]] std::uint64_t deadline_ns() const noexcept;

  [[nodiscard]] bool is_full() const noexcept;
  /// All that was given has been written, or has no reader any more.
  [[nodiscard]] bool is_drained() const noexcept;
  /// The reader has gone, and the ranks go on printing: a job without an end would never know.
  [[nodiscard]] bool is_unread() const noexcept { return is_unread_; }
  void on_ready(int fd, short events) override;
  /// Why output was lost, though nobody stopped reading it (a full disk): an error number; 0: none
  /// was.
  [[nodiscard]] int error_number() const noexcept { return error_number_; }

 private:
  using Key = std::uint64_t;  // Of a writer and a stream of it: key_of().

  struct Line {
    std::string held;      // Begun, and not given on; nothing of the open line of its sink.
    bool was_cut = false;  // Its end is there already.
  };
  struct Sink {
    std::deque<std::string> queue;
    std::size_t front_used = 0;
    std::size_t bytes = 0;
    std::map<Key, Line> lines;  // In the order of ranks; none of those that are whole.
    std::optional<Key> open_line;
    bool is_watched = false;
    bool is_gone = false;          // It takes no more: what comes is dropped.
    bool has_lost_reader = false;  // And that is why.
  };

  [[nodiscard]] std::string tag_of(Key key) const;
  [[nodiscard]] Sink& sink_of(Key key) { return sinks_[sink_of_stream_[(key >> 1) & 1]]; }
  [[nodiscard]] bool takes(const Sink& sink, std::size_t bytes);
  void gather(Key key, std::string_view text);
  void put(Key key, std::string text);
  void end_open_line(Sink& sink);
  void push(Sink& sink, std::string text);
  void write_some(std::size_t index);
  void watch(std::size_t index);
  [[nodiscard]] static const std::pair<const Key, Line>* next_to_show(const Sink& sink);

  Loop* loop_;
  Options options_;
  std::array<Sink, 2> sinks_;
  std::array<std::size_t, 2> sink_of_stream_ = {0, 1};  // One for both, where they are one file.
  int error_number_ = 0;
  std::uint64_t quiet_since_ns_ = 0;
  std::uint64_t unread_since_ns_ = 0;  // 0: not yet.
  std::uint64_t unread_bytes_ = 0;     // Of ranks, after the reader has left.
  bool has_new_ = false;               // Something was written since the last step().
  bool has_new_unread_ = false;
  bool is_unread_ = false;
};

}  // namespace sterna::launch
