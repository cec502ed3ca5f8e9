// `sterna agent`: starts and follows the processes of a job on this machine for a launcher on
// another one. Started by ssh, spoken to through its standard input and output; when these end, all
// that it has started ends.
#include <csignal>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wire.h"
#include "launch/agent_protocol.h"
#include "launch/command_line.h"
#include "launch/local_crew.h"
#include "launch/run.h"

namespace sterna::launch {
namespace {

constexpr std::size_t kWaitingBytesMax = std::size_t{1} << 20;

class Agent final : private CrewEvents, private SignalHandler, private DescriptorHandler {
 public:
  explicit Agent(Loop& loop) : loop_{loop} {
    set_non_blocking(0);
    set_non_blocking(1);
    loop_.on_signals(*this);
    loop_.watch(0, POLLIN, *this);
  }

  void run() {
    while (!is_done_) {
      if (crew_) {
        crew_->let_output_flow(sender_.bytes() < kWaitingBytesMax);
        tell_taken();
        if (!said_over_ && crew_->is_over()) {
          said_over_ = true;
          tell(encode_relay(RelayKind::over, 0, ""));
        }
      }
      loop_.run_once(kNever);
    }
    if (crew_) {
      crew_->signal(SIGKILL);
      crew_->close();
    }
  }

 private:
  void on_ready(int fd, short /*events*/) override {
    if (fd == 1) {
      write();
      return;
    }
    const FrameReader::State state = reader_.read_from(fd);
    FrameHeader header;
    std::span<const std::byte> body;
    while (reader_.next(header, body)) {
      Result<Relay> relay = decode_relay(body);
      if (header.kind != FrameKind::relay || !relay || !obey(relay.value())) {
        is_done_ = true;
        return;
      }
    }
    is_done_ = is_done_ || state == FrameReader::State::ended || !reader_.is_well_formed();
  }

  bool obey(const Relay& relay) {
    if (relay.kind == RelayKind::order) {
      return !crew_ && begin(relay.bytes);
    }
    if (!crew_) {
      return false;
    }
    wire::Reader reader{relay.bytes};
    switch (relay.kind) {
      case RelayKind::to_node:
        crew_->send(relay.node, Frame{relay.bytes.begin(), relay.bytes.end()});
        return true;
      case RelayKind::signal:
        crew_->signal(reader.i32());
        return reader.finished();
      case RelayKind::input:
        input_given_ += relay.bytes.size();
        crew_->give_input(relay.bytes);
        return true;
      default:
        return false;
    }
  }

  bool begin(std::span<const std::byte> bytes) {
    Result<CrewOrder> order = decode_order(bytes);
    if (!order) {
      tell(encode_relay(RelayKind::failed, 0, order.error().text));
      return true;
    }
    crew_.emplace(loop_, static_cast<CrewEvents&>(*this), std::move(order.value()),
                  LocalCrew::Options{});
    if (Result<> started = crew_->start(); !started) {
      tell(encode_relay(RelayKind::failed, 0, started.error().text));
    }
    return true;
  }

  /// The launcher gives on only so much: what rank 0 does not read waits there, not here.
  void tell_taken() {
    if (const std::uint64_t taken = input_given_ - crew_->input_bytes_waiting();
        taken != input_taken_) {
      input_taken_ = taken;
      tell(encode_relay(RelayKind::taken, 0, encode_taken(taken)));
    }
  }

  void tell(const Frame& frame) {
    sender_.push(frame);
    write();
  }

  void write() {
    is_done_ = is_done_ || !sender_.write_to(1);
    if (sender_.is_empty()) {
      loop_.unwatch(1);
    } else {
      loop_.watch(1, POLLOUT, *this);
    }
  }

  void on_frame(std::uint32_t node, FrameHeader header, std::span<const std::byte> body) override {
    Frame frame;
    wire::Writer writer{frame, runtime::kFrameHeaderBytes + runtime::kFrameBodyBytesMax};
    writer.u32(header.body_bytes);
    writer.u16(static_cast<std::uint16_t>(header.kind));
    writer.u16(0);
    writer.raw(body);
    tell(encode_relay(RelayKind::from_node, node, frame));
  }

  void on_output(std::uint32_t node, OutputStream stream,
                 std::span<const std::byte> bytes) override {
    std::vector<std::byte> message;
    wire::Writer writer{message, bytes.size() + 1};
    writer.u8(static_cast<std::uint8_t>(stream));
    writer.raw(bytes);
    tell(encode_relay(RelayKind::output, node, message));
  }

  void on_started(std::uint32_t node, std::uint32_t pid) override {
    tell(encode_relay(RelayKind::started, node, std::as_bytes(std::span{&pid, 1})));
  }

  void on_process_end(std::uint32_t node, const ProcessEnd& end) override {
    tell(encode_relay(RelayKind::ended, node, encode_end(end)));
  }

  void on_start_failed(std::uint32_t node, std::string_view text) override {
    tell(encode_relay(RelayKind::start_failed, node, text));
  }

  void on_crew_lost(std::string_view /*host*/, std::string_view text) override {
    tell(encode_relay(RelayKind::failed, 0, text));
  }

  void on_signal(int /*signal*/) override { is_done_ = true; }

  Loop& loop_;
  std::optional<LocalCrew> crew_;
  FrameReader reader_;
  ByteSender sender_;
  std::uint64_t input_given_ = 0;  // Bytes.
  std::uint64_t input_taken_ = 0;  // Of them: as the launcher was told.
  bool said_over_ = false;
  bool is_done_ = false;
};

}  // namespace

int agent_command(std::span<char* const> /*arguments*/) {
  if (::isatty(0) != 0) {
    print_error("sterna agent", "is started by sterna run --hosts, through ssh");
    return kUsageExitCode;
  }
  Result<Loop> loop = Loop::open();
  if (!loop) {
    print_error("sterna agent", loop.error().text);
    return 1;
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Agent{loop.value()}.run();
  return 0;
}

}  // namespace sterna::launch
