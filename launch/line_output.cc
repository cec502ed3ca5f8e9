// Lines of ranks: gathering, tags, and writes that do not block.
#include "launch/line_output.h"

#include <algorithm>
#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace sterna::launch {
namespace {

constexpr std::size_t kQueueBytesMax = std::size_t{1} << 20;
constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;  // A longer line is cut here.
// poll(2) promises that a pipe which is ready takes this much (PIPE_BUF). Our descriptors are
// shared with others (a terminal, a script), so they must not be made non-blocking.
constexpr std::size_t kWriteBytes = 4096;

std::size_t index_of(OutputStream stream) {
  return stream == OutputStream::error ? 1 : 0;
}

std::uint64_t key_of(std::uint32_t source, std::size_t index, bool is_rank = true) {
  return (std::uint64_t{source} << 2) | (index << 1) | (is_rank ? 1 : 0);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string LineOutput::tag_of(std::uint32_t rank) const {
  return options_.tag_lines ? "[" + std::to_string(rank) + "] " : "";
}

void LineOutput::add(std::uint32_t rank, OutputStream stream, std::span<const std::byte> bytes) {
  const std::size_t index = index_of(stream);
  if (options_.pass_through && !options_.tag_lines) {
    push(index, std::string{text_of(bytes)});
  } else {
    gather(unfinished_[key_of(rank, index)], tag_of(rank), index, text_of(bytes));
  }
}

void LineOutput::add_plain(std::uint32_t source, OutputStream stream,
                           std::span<const std::byte> bytes) {
  const std::size_t index = index_of(stream);
  gather(unfinished_[key_of(source, index, false)], {}, index, text_of(bytes));
}

void LineOutput::gather(std::string& unfinished, const std::string& tag, std::size_t index,
                        std::string_view text) {
  std::string whole;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) {
      break;
    }
    whole.append(tag).append(unfinished).append(text.substr(begin, end + 1 - begin));
    unfinished.clear();
    begin = end + 1;
  }
  unfinished.append(text.substr(begin));
  if (unfinished.size() >= kLineBytesMax) {
    whole.append(tag).append(unfinished).append("\n");
    unfinished.clear();
  }
  push(index, std::move(whole));
}

void LineOutput::finish() {
  for (auto& [key, rest] : unfinished_) {
    if (!rest.empty()) {
      const bool is_rank = (key & 1) != 0;
      push((key >> 1) & 1,
           (is_rank ? tag_of(static_cast<std::uint32_t>(key >> 2)) : "") + rest + "\n");
    }
  }
  unfinished_.clear();
}

void LineOutput::add_message(std::string_view line) {
  push(1, std::string{line} + "\n");
}

void LineOutput::push(std::size_t index, std::string text) {
  Sink& sink = sinks_[index];
  if (sink.is_gone || text.empty()) {
    return;
  }
  sink.bytes += text.size();
  sink.queue.push_back(std::move(text));
  watch(index);
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
    sink = Sink{.queue = {}, .front_used = 0, .bytes = 0, .is_watched = true, .is_gone = true};
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
