// Driver `replay`: a node without its peers. What came to it in a recording comes again, each
// packet once the node has sent what it had sent before that one: so a run does not depend on time.
// What the node sends goes nowhere; how much of it differs from the recording is counted. Where the
// node does not go on as recorded, or the recording ends before its node did (that was killed), its
// peers count as lost after a while.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "net/drivers/builtin.h"
#include "net/drivers/record/recording.h"
#include "net/drivers/settings_of.h"
#include "net/opening/bootstrap.h"

namespace sterna::net {
namespace record {
namespace {

/// Wakes the poller where the node itself sends.
class ReplayBell {
 public:
  /// False: the system has no descriptor left.
  bool open() noexcept {
    fd_ = FileDescriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return fd_.get() >= 0;
  }
  int fd() const noexcept { return fd_.get(); }
  /// By the poller, before it looks for the last time. The fence pairs with the one of ring():
  /// either that sees the poller asleep, or the poller sees what was sent.
  void arm() noexcept {
    is_armed_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void disarm() noexcept {
    is_armed_.store(false, std::memory_order_relaxed);
    std::uint64_t rings = 0;
    [[maybe_unused]] const ssize_t count = ::read(fd_.get(), &rings, sizeof rings);
  }
  /// Anybody, after what was sent is counted.
  void ring() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (is_armed_.load(std::memory_order_relaxed)) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t count = ::write(fd_.get(), &one, sizeof one);
    }
  }

 private:
  FileDescriptor fd_;
  std::atomic<bool> is_armed_{false};  // Guard: the fences.
};

class ReplayChannel final : public Channel {
 public:
  SendState try_send(std::span<const Piece> pieces) noexcept override {
    const std::size_t bytes = bytes_of(pieces);
    check(bytes > 0 && bytes <= packet_bytes_max,
          "a packet has between 1 and packet_bytes_max bytes");
    if (is_closed.load(std::memory_order_relaxed)) {
      return SendState::closed;
    }
    const std::size_t index = sent.load(std::memory_order_relaxed);
    if (index >= expected.size() || !is_same(pieces, expected[index])) {
      differing.fetch_add(1, std::memory_order_relaxed);
    }
    sent.store(index + 1, std::memory_order_release);  // R: pairs with waits().
    bell->ring();
    return SendState::accepted;
  }

  std::uint32_t packet_bytes_max = 0;       // Constant after open, as the next.
  ReplayBell* bell = nullptr;
  std::vector<Packet> expected;             // What the recording has for this peer.
  std::atomic<std::size_t> sent{0};         // By the sender.
  std::atomic<std::uint64_t> differing{0};  // A figure.
  std::atomic<bool> is_closed{false};       // Relaxed: a late close is a little late.
  std::size_t passed = 0;                   // The poller's: of `sent`, events taken.
  std::atomic<bool> is_connected{false};    // Relaxed: a hint.

 private:
  static bool is_same(std::span<const Piece> pieces, Packet wanted) noexcept {
    for (const Piece& piece : pieces) {
      if (piece.size() > wanted.size() || !std::equal(piece.begin(), piece.end(), wanted.begin())) {
        return false;
      }
      wanted = wanted.subspan(piece.size());
    }
    return wanted.empty();
  }
};

class ReplayDriver final : public Driver {
 public:
  /// `after_last_ns`: what the node still does with the last packet, as to crash, it does before
  /// its peers are lost; 0: they never are, nor those that were.
  ReplayDriver(std::vector<std::byte> bytes, std::uint64_t after_last_ns) noexcept
      : bytes_{std::move(bytes)}, after_last_ns_{after_last_ns} {}

  Result<> open(const JobMap& job) {
    auto read = read_recording(bytes_);
    if (!read) {
      return read.error();
    }
    if (!bell_.open()) {
      return Error{Errc::system, "no descriptor is left to sleep on"};
    }
    recording_ = std::move(read.value());
    const Header& header = recording_.header;
    if (header.node != job.node_index || header.node_count != job.node_count) {
      return Error{Errc::invalid_argument,
                   fmt::format("it is of node {} of {}, this is node {} of {}", header.node,
                               header.node_count, job.node_index, job.node_count)};
    }
    capabilities_.packet_bytes_max = header.packet_bytes_max;
    capabilities_.is_ordered = header.is_ordered;
    capabilities_.is_reliable = header.is_reliable;
    channels_ = std::vector<ReplayChannel>(header.node_count);
    for (ReplayChannel& channel : channels_) {
      channel.packet_bytes_max = header.packet_bytes_max;
      channel.bell = &bell_;
    }
    for (const Event& event : recording_.events) {
      has_end_ = has_end_ || event.kind == EventKind::ended;
      if (event.kind == EventKind::sent) {
        channels_[event.peer].expected.push_back(event.packet);
      }
    }
    return Done{};
  }

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  Packet address() const noexcept override { return {}; }
  bool reaches(std::uint32_t node, Packet /*peer_address*/) const noexcept override {
    return node < channels_.size() && node != recording_.header.node;
  }
  Result<Channel*> connect(std::uint32_t node, Packet /*peer_address*/) noexcept override {
    channels_[node].is_connected.store(true, std::memory_order_relaxed);
    return static_cast<Channel*>(&channels_[node]);
  }
  Result<Channel*> revive(std::uint32_t node) noexcept override {
    if (is_over_) {
      return Errc::closed;
    }
    channels_[node].is_closed.store(false, std::memory_order_relaxed);
    return static_cast<Channel*>(&channels_[node]);
  }

  std::uint32_t poll(PacketSink& sink, std::uint32_t packets_max) noexcept override {
    if (is_over_) {
      return 0;
    }
    const std::size_t begin = next_;
    std::uint32_t count = 0;
    for (; count < packets_max && !waits(); ++next_) {
      const Event& event = recording_.events[next_];
      ReplayChannel& channel = channels_[event.peer];
      if (event.kind == EventKind::sent) {
        ++channel.passed;
      } else if (event.kind == EventKind::came) {
        sink.on_packet(event.peer, event.packet);
        ++count;
      } else if (event.kind == EventKind::lost && after_last_ns_ != 0) {
        lose(sink, event.peer,
             {reinterpret_cast<const char*>(event.packet.data()), event.packet.size()});
      }
    }
    if (next_ == begin) {
      wait_on(sink);
    } else {
      looked_ns_ = 0;
    }
    return count;
  }

  int fd() const noexcept override { return bell_.fd(); }
  bool prepare_sleep() noexcept override {
    bell_.arm();
    if (is_over_ || waits()) {
      return true;
    }
    bell_.disarm();
    return false;
  }
  std::uint64_t next_deadline_ns() noexcept override {
    if (is_over_ || after_last_ns_ == 0) {
      return kNever;
    }
    const std::uint64_t limit_ns = wait_limit_ns();
    const std::uint64_t left_ns = waited_ns_ < limit_ns ? limit_ns - waited_ns_ : 0;
    return (looked_ns_ == 0 ? now_ns() : looked_ns_) + std::min(left_ns, kLookNs);
  }
  void end_sleep() noexcept override { bell_.disarm(); }
  void close() noexcept override {
    for (ReplayChannel& channel : channels_) {
      channel.is_closed.store(true, std::memory_order_relaxed);
    }
  }
  bool is_drained() const noexcept override { return true; }
  std::string figures() const override {
    std::uint64_t differing = 0;
    for (const ReplayChannel& channel : channels_) {
      differing += channel.differing.load(std::memory_order_relaxed);
    }
    return fmt::format("replayed {} of {} events, {} packets were sent that differ", next_,
                       recording_.events.size(), differing);
  }

 private:
  static constexpr std::uint64_t kLookNs = 1'000'000'000;

  /// Nothing can come before the node has sent what it had sent first, or ever.
  bool waits() const noexcept {
    if (next_ == recording_.events.size()) {
      return true;
    }
    const Event& event = recording_.events[next_];
    const ReplayChannel& channel = channels_[event.peer];
    return event.kind == EventKind::sent &&
           channel.sent.load(std::memory_order_acquire) == channel.passed;  // Pairs with R.
  }
  /// How long the node may take until it does what it did next, which took it a while then, too.
  std::uint64_t wait_limit_ns() const noexcept {
    const std::vector<Event>& events = recording_.events;
    const std::size_t last = std::min(next_, events.size() - 1);
    const bool has_gap = last > 0 && (next_ < events.size() || has_end_) &&
                         events[last].at_ns > events[last - 1].at_ns;
    const std::uint64_t gap_ns = has_gap ? events[last].at_ns - events[last - 1].at_ns : 0;
    return after_last_ns_ + 4 * std::min(gap_ns, kNever / 8);
  }
  /// Counts how long the node has not gone on, but not how long it was stopped, as by a debugger.
  void wait_on(PacketSink& sink) noexcept {
    if (after_last_ns_ == 0) {
      return;
    }
    const std::uint64_t now = now_ns();
    waited_ns_ = looked_ns_ == 0 ? 0 : waited_ns_ + std::min(now - looked_ns_, 2 * kLookNs);
    looked_ns_ = now;
    if (waited_ns_ >= wait_limit_ns()) {
      end_early(sink);
    }
  }
  void end_early(PacketSink& sink) noexcept {
    is_over_ = true;
    std::string reason = "the recording ends here";
    if (next_ < recording_.events.size()) {
      const Event& event = recording_.events[next_];
      reason = fmt::format("node {} does not send the {} B to node {} that the recording has next",
                           recording_.header.node, event.packet.size(), event.peer);
    }
    for (std::uint32_t node = 0; node < channels_.size(); ++node) {
      if (channels_[node].is_connected.load(std::memory_order_relaxed)) {
        lose(sink, node, reason);
      }
    }
  }
  void lose(PacketSink& sink, std::uint32_t node, std::string_view reason) noexcept {
    if (!channels_[node].is_closed.exchange(true, std::memory_order_relaxed)) {
      sink.on_peer_lost(node, reason);
    }
  }

  const std::vector<std::byte> bytes_;  // Events point into it.
  const std::uint64_t after_last_ns_;
  Recording recording_;                 // Constant after open.
  Capabilities capabilities_;
  std::vector<ReplayChannel> channels_;  // By node.
  ReplayBell bell_;
  bool has_end_ = false;                 // Constant after open.
  std::size_t next_ = 0;                 // The poller's, as the next.
  std::uint64_t looked_ns_ = 0;          // When the node was last found not to have gone on; or 0.
  std::uint64_t waited_ns_ = 0;          // Until then.
  bool is_over_ = false;                 // Nothing comes any more.
};

constexpr Tunable kFile{.name = "replay_file",
                        .kind = TunableKind::text,
                        .fallback = "sterna-record",
                        .help = "what driver replay replays: this name, a dot and the node"};
constexpr Tunable kPatience{
    .name = "replay_patience",
    .kind = TunableKind::time,
    .fallback = "10s",
    .help =
        "where a node does not go on as in its recording, or that ends, as the node was killed, "
        "the peers count as lost after so long, and four times what it had taken then; 0: never, "
        "nor where they were, so that no node ends the job while another one is in a debugger"};
constexpr std::array kTunables{kFile, kPatience};

/// False: it cannot be read, or not to its end.
bool read_file(const std::string& path, std::vector<std::byte>& bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) {
    return false;
  }
  std::array<std::byte, 1 << 16> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), file)) {
    bytes.insert(bytes.end(), part.begin(), part.begin() + count);
  }
  const bool is_whole = std::ferror(file) == 0;
  std::fclose(file);
  return is_whole;
}

Result<std::unique_ptr<Driver>> open_replay(const DriverOptions& options) noexcept {
  const JobMap& job = options.bootstrap->job();
  const std::string path = fmt::format("{}.{}", text_of(options, kFile), job.node_index);
  std::vector<std::byte> bytes;
  if (!read_file(path, bytes)) {
    return Error{Errc::system, "the recording " + path + " cannot be read (replay_file)"};
  }
  auto driver = std::make_unique<ReplayDriver>(
      std::move(bytes), static_cast<std::uint64_t>(number_of(options, kPatience)));
  if (Result<> opened = driver->open(job); !opened) {
    return Error{opened.error().code, "the recording " + path + ": " + opened.error().text};
  }
  return std::unique_ptr<Driver>{std::move(driver)};
}

}  // namespace
}  // namespace record

constinit const DriverEntry kReplayDriver{
    .name = "replay",
    .summary = "a node without its peers: what it received in a recording comes again",
    .tunables = record::kTunables,
    .open = record::open_replay,
    .is_on_request = true,
};

}  // namespace sterna::net
