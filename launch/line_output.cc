// Lines of ranks: gathering, tags, and writes that do not block.
#include "launch/line_output.h"

#include <algorithm>
#include <cerrno>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

namespace sterna::launch {
namespace {

constexpr std::size_t kQueueBytesMax = std::size_t{1} << 20;
// poll(2) promises that a pipe which is ready takes this much (PIPE_BUF). Our descriptors are
// shared with others (a terminal, a script), so they must not be made non-blocking.
constexpr std::size_t kWriteBytes = 4096;

std::uint64_t key_of(std::uint32_t source, OutputStream stream, bool is_rank) {
  return (std::uint64_t{source} << 2) | (stream == OutputStream::error ? 2 : 0) | (is_rank ? 1 : 0);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// As a terminal is, or a pipe with `2>&1`.
bool are_one_file(const std::array<int, 2>& fds) {
  struct stat first {};
  struct stat second {};
  return ::fstat(fds[0], &first) == 0 && ::fstat(fds[1], &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace

LineOutput::LineOutput(Loop& loop, Options options) : loop_{&loop}, options_{options} {
  // Two writers would write into each other's lines.
  sink_of_stream_[1] = are_one_file(options_.fds) ? 0 : 1;
}

std::string LineOutput::tag_of(Key key) const {
  return options_.tag_lines && (key & 1) != 0 ? "[" + std::to_string(key >> 2) + "] " : "";
}

void LineOutput::add(std::uint32_t rank, OutputStream stream, std::span<const std::byte> bytes) {
  const Key key = key_of(rank, stream, true);
  if (options_.pass_through && !options_.tag_lines) {
    if (Sink& sink = sink_of(key); takes(sink, bytes.size())) {
      push(sink, std::string{text_of(bytes)});
    }
  } else {
    gather(key, text_of(bytes));
  }
}

void LineOutput::add_plain(std::uint32_t source, OutputStream stream,
                           std::span<const std::byte> bytes) {
  gather(key_of(source, stream, false), text_of(bytes));
}

/// Else what ranks write is lost.
bool LineOutput::takes(const Sink& sink, std::size_t bytes) {
  if (sink.has_lost_reader) {
    unread_bytes_ += bytes;
    has_new_unread_ = true;
  }
  return !sink.is_gone;
}

void LineOutput::gather(Key key, std::string_view text) {
  Sink& sink = sink_of(key);
  if (!takes(sink, text.size())) {
    return;
  }
  has_new_ = true;
  Line line;
  if (const auto found = sink.lines.find(key); found != sink.lines.end()) {
    line = std::move(found->second);
    sink.lines.erase(found);
  }
  if (line.was_cut && text.starts_with('\n')) {
    text.remove_prefix(1);
  }
  bool is_open = sink.open_line == key;
  std::string ready;
  const auto begin_line = [&] {
    if (!is_open) {
      ready.append(tag_of(key)).append(line.held);
      line.held.clear();
    }
  };
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    begin_line();
    ready.append(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
    is_open = false;
  }
  if (is_open || line.held.size() + text.size() >= kHeldBytesMax) {
    begin_line();
    ready.append(text);
  } else if (line.held.append(text); !line.held.empty()) {
    sink.lines[key].held = std::move(line.held);
  }
  put(key, std::move(ready));
}

/// What goes out of the line of `key`, or of several.
void LineOutput::put(Key key, std::string text) {
  if (text.empty()) {
    return;
  }
  Sink& sink = sink_of(key);
  if (sink.open_line != key) {
    end_open_line(sink);
  }
  sink.open_line = text.ends_with('\n') ? std::nullopt : std::optional{key};
  push(sink, std::move(text));
}

void LineOutput::end_open_line(Sink& sink) {
  if (sink.open_line) {
    sink.lines[*sink.open_line].was_cut = true;
    sink.open_line.reset();
    push(sink, "\n");
  }
}

void LineOutput::finish() {
  for (Sink& sink : sinks_) {
    const auto count = std::ranges::count_if(
        sink.lines, [](const auto& entry) { return !entry.second.held.empty(); });
    const bool is_alone = !options_.tag_lines && count + (sink.open_line ? 1 : 0) == 1;
    const std::map<Key, Line> lines = std::exchange(sink.lines, {});
    for (const auto& [key, line] : lines) {
      if (!line.held.empty()) {
        put(key, tag_of(key) + line.held + (is_alone ? "" : "\n"));
      }
    }
    if (!is_alone) {
      end_open_line(sink);
    }
  }
}

void LineOutput::add_message(std::string_view line) {
  Sink& sink = sinks_[sink_of_stream_[1]];
  if (!sink.is_gone) {
    end_open_line(sink);
    push(sink, std::string{line} + "\n");
  }
}

/// The line that was begun and is held, of the first rank: it is the one that asks for input.
const std::pair<const LineOutput::Key, LineOutput::Line>* LineOutput::next_to_show(
    const Sink& sink) {
  if (!sink.open_line) {
    for (const auto& entry : sink.lines) {
      if (!entry.second.held.empty()) {
        return &entry;
      }
    }
  }
  return nullptr;
}

void LineOutput::step(std::uint64_t now_ns) {
  if (std::exchange(has_new_, false)) {
    quiet_since_ns_ = now_ns;
  } else if (now_ns >= quiet_since_ns_ + kQuietNs) {
    for (Sink& sink : sinks_) {
      if (const auto* const shown = next_to_show(sink); shown != nullptr) {
        const auto [key, line] = *shown;
        sink.lines.erase(key);
        put(key, tag_of(key) + line.held);
      }
    }
  }
  if (std::exchange(has_new_unread_, false)) {
    unread_since_ns_ = unread_since_ns_ != 0 ? unread_since_ns_ : now_ns;
    is_unread_ = is_unread_ || unread_bytes_ > kUnreadBytes ||
                 now_ns >= unread_since_ns_ + kUnreadNs;
  }
}

std::uint64_t LineOutput::deadline_ns() const noexcept {
  const bool waits = std::ranges::any_of(
      sinks_, [](const Sink& sink) { return next_to_show(sink) != nullptr; });
  return waits ? quiet_since_ns_ + kQuietNs : kNever;
}

void LineOutput::push(Sink& sink, std::string text) {
  sink.bytes += text.size();
  sink.queue.push_back(std::move(text));
  watch(static_cast<std::size_t>(&sink - sinks_.data()));
}

void LineOutput::watch(std::size_t index) {
  Sink& sink = sinks_[index];
  const bool wanted = !sink.queue.empty();
  if (wanted != sink.is_watched) {
    sink.is_watched = wanted;
    if (wanted) {
      loop_->watch(options_.fds[index], POLLOUT, *this);
    } else {
      loop_->unwatch(options_.fds[index]);
    }
  }
}

bool LineOutput::is_full() const noexcept {
  return std::any_of(sinks_.begin(), sinks_.end(),
                     [](const Sink& sink) { return sink.bytes > kQueueBytesMax; });
}

bool LineOutput::is_drained() const noexcept {
  return std::all_of(sinks_.begin(), sinks_.end(),
                     [](const Sink& sink) { return sink.queue.empty(); });
}

void LineOutput::on_ready(int fd, short /*events*/) {
  for (std::size_t index = 0; index < sinks_.size(); ++index) {
    if (options_.fds[index] == fd) {
      write_some(index);
      watch(index);
    }
  }
}

void LineOutput::write_some(std::size_t index) {
  Sink& sink = sinks_[index];
  if (sink.queue.empty()) {
    return;
  }
  const std::string& front = sink.queue.front();
  const std::size_t bytes = std::min(front.size() - sink.front_used, kWriteBytes);
  const long count = system_call(
      [&] { return ::write(options_.fds[index], front.data() + sink.front_used, bytes); });
  if (count == -EAGAIN) {
    return;  // Somebody else made it non-blocking.
  }
  if (count <= 0) {
    if (count != -EPIPE && count != 0 && error_number_ == 0) {
      error_number_ = static_cast<int>(-count);
    }
    sink = Sink{};
    sink.is_watched = true;  // watch() ends that.
    sink.is_gone = true;
    sink.has_lost_reader = count == -EPIPE;
    return;
  }
  sink.front_used += static_cast<std::size_t>(count);
  sink.bytes -= static_cast<std::size_t>(count);
  if (sink.front_used == front.size()) {
    sink.queue.pop_front();
    sink.front_used = 0;
  }
}

}  // namespace sterna::launch
