// The messages of the driver fabric: sending and receiving.
#include "net/drivers/fabric/driver.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "net/buffer.h"

namespace sterna::net::fabric {
namespace {

constexpr std::uint32_t kControlEvery = 64;  // Polls between two looks at the connections.

}  // namespace

SendState FabricChannel::try_send(std::span<const Piece> pieces) noexcept {
  const std::size_t bytes = bytes_of(pieces);
  check(bytes > 0 && bytes <= driver.capabilities().packet_bytes_max,
        "a packet has between 1 and packet_bytes_max bytes");
  check(pieces.size() <= kPacketPiecesMax, "a packet has at most kPacketPiecesMax pieces");
  return driver.send(*this, pieces, bytes);
}

FabricDriver::FabricDriver(const DriverOptions& given, Options options) noexcept
    : options_{std::move(options)},
      self_{given.bootstrap->job().node_index},
      node_count_{given.bootstrap->job().node_count},
      capabilities_{capabilities_of(options_.endpoint, false)},
      channels_(node_count_) {}

FabricDriver::~FabricDriver() {
  if (endpoint_ != nullptr) {
    endpoint_->shut();  // What is being read is still here.
  }
  // A peer that was killed when nobody looked any more leaves its file, too.
  for (const auto& channel : channels_) {
    if (channel != nullptr && endpoint_ != nullptr) {
      endpoint_->clean_after(channel->name);
    }
  }
}

Result<> FabricDriver::open(const DriverOptions& given) {
  auto endpoint = Endpoint::open(options_.endpoint);
  if (!endpoint) {
    return endpoint.error();
  }
  endpoint_ = std::move(endpoint.value());
  capabilities_ = capabilities_of(options_.endpoint, endpoint_->can_read());
  weighed_bytes_ = std::max<std::size_t>(endpoint_->bytes_under_way_max() / options_.window, 1);
  auto control = tcp::open_sockets({.bootstrap = given.bootstrap,
                                    .clock = given.clock,
                                    .log = given.log,
                                    .settings = given.settings},
                                   false);
  if (!control) {
    return control.error();
  }
  control_ = std::move(control.value());
  const Packet own = control_->address();
  address_ = encode(Address{endpoint_->provider(), {own.begin(), own.end()}});
  return open_bell();
}

SendState FabricDriver::send(FabricChannel& channel, std::span<const Piece> pieces,
                             std::size_t bytes) noexcept {
  bool is_asleep;
  {
    const KernelGuard guard{lock_};
    if (channel.state >= FabricChannel::State::ending ||
        is_closed_.load(std::memory_order_relaxed)) {
      return SendState::closed;
    }
    const std::uint32_t weight = weight_of(FrameKind::data, bytes);
    const bool has_room = channel.under_way() + weight <= options_.window;
    Buffer* const buffer = has_room ? queue_frame(channel, FrameKind::data, bytes) : nullptr;
    if (buffer == nullptr) {
      channel.refused_weight = weight;
      return SendState::full;
    }
    std::byte* to = buffer->memory + kFrameBytes;
    for (const Piece& piece : pieces) {
      copy_long(to, piece.data(), piece.size());
      to += piece.size();
    }
    buffer->bytes = static_cast<std::uint32_t>(kFrameBytes + bytes);
    push(channel);
    naps_.shorten();
    is_asleep = is_asleep_;
  }
  if (is_asleep) {
    ring();  // What the provider has not finished wants a poll.
  }
  return SendState::accepted;
}

/// A buffer of the channel, for a packet of `bytes`, at the end of what waits. Null: none is free.
Buffer* FabricDriver::queue_frame(FabricChannel& channel, FrameKind kind,
                                  std::size_t bytes) noexcept {
  if (channel.free.empty()) {
    return nullptr;
  }
  Buffer* const buffer = channel.free.back();
  channel.free.pop_back();
  buffer->bytes = kFrameBytes;
  write_frame({.kind = kind, .from_node = self_, .token = 0, .order = channel.accepted, .taken = 0},
              buffer->memory);
  channel.accepted += weight_of(kind, bytes);
  channel.waiting.push_back(buffer);
  return buffer;
}

/// Gives the provider what waits, as far as it takes it.
void FabricDriver::push(FabricChannel& channel) noexcept {
  while (!channel.waiting.empty() && channel.state == FabricChannel::State::standing) {
    Buffer& buffer = *channel.waiting.front();
    Frame frame;
    std::memcpy(&frame, buffer.memory, kFrameBytes);
    frame.token = channel.token_there;
    frame.taken = channel.taken_here;
    write_frame(frame, buffer.memory);
    bool was_injected = false;
    switch (endpoint_->send(buffer, channel.address, was_injected)) {
      case Endpoint::Posted::done:
        break;
      case Endpoint::Posted::again:
        ++deferred_;
        needs_care_.store(true, std::memory_order_relaxed);
        return;
      case Endpoint::Posted::failed:
        channel.broken = "libfabric cannot send to it: " + endpoint_->failure();
        needs_care_.store(true, std::memory_order_relaxed);
        return;
    }
    channel.told = frame.taken;
    channel.owes_taken = false;
    channel.waiting.pop_front();
    ++sent_;
    if (was_injected) {
      ++injected_;
      channel.free.push_back(&buffer);
    }
  }
}

void FabricDriver::say_taken(FabricChannel& channel) noexcept {
  if (channel.state == FabricChannel::State::joining) {
    return;  // Its messages may be faster than its hello: with that it will be told.
  }
  if (channel.state != FabricChannel::State::standing) {
    channel.owes_taken = false;
    return;
  }
  if (channel.waiting.empty() && queue_frame(channel, FrameKind::taken) == nullptr) {
    needs_care_.store(true, std::memory_order_relaxed);
    return;
  }
  push(channel);  // What waits says it, too.
}

void FabricDriver::on_sent(Buffer& buffer, int error) noexcept {
  FabricChannel& channel = *channels_[buffer.owner];
  channel.free.push_back(&buffer);
  if (error != 0 && channel.state == FabricChannel::State::standing) {
    channel.broken = "libfabric could not send to it: " + endpoint_->error_text(error);
    needs_care_.store(true, std::memory_order_relaxed);
  }
}

FabricDriver::Arrival FabricDriver::on_arrival(Buffer& buffer) noexcept {
  Arrival arrival{.packet = {}, .buffer = &buffer};
  Frame frame;
  Packet packet;
  if (!read_frame({buffer.memory, buffer.bytes}, frame, packet) ||
      frame.from_node >= channels_.size() || channels_[frame.from_node] == nullptr) {
    ++strange_;
    return arrival;
  }
  FabricChannel& channel = *channels_[frame.from_node];
  if (frame.token != channel.token_here || channel.token_here == 0 ||
      channel.state == FabricChannel::State::ended) {
    ++strange_;  // Of nobody, or of a connection before this one.
    return arrival;
  }
  const bool is_counted = frame.kind != FrameKind::taken;
  if ((is_counted && frame.order != channel.taken_here) ||
      frame.taken - channel.taken_there > channel.under_way()) {
    if (channel.broken.empty()) {
      channel.broken = "its messages do not follow one another";
      needs_care_.store(true, std::memory_order_relaxed);
    }
    return arrival;
  }
  channel.taken_there = frame.taken;
  channel.taken_here += weight_of(frame.kind, packet.size());
  channel.heard_look = looks_;
  arrival.channel = &channel;
  arrival.kind = frame.kind;
  arrival.packet = packet;
  if (frame.kind == FrameKind::returned) {
    on_returned(channel, packet);
  } else if (frame.kind == FrameKind::lend) {
    arrival.borrowed = borrow(channel, packet);
  }
  return arrival;
}

/// After the packet was handed over.
void FabricDriver::take(const Arrival& arrival) noexcept {
  unposted_.push_back(arrival.buffer);
  if (arrival.channel == nullptr) {
    return;
  }
  FabricChannel& channel = *arrival.channel;
  if (arrival.borrowed != nullptr) {
    begin_read(*arrival.borrowed);
  }
  if (arrival.kind == FrameKind::end) {
    channel.owes_taken = true;  // It waits for that.
    channel.is_closed = true;
    needs_care_.store(true, std::memory_order_relaxed);
  } else if (channel.taken_here - channel.told >= options_.window / 2) {
    channel.owes_taken = true;
  }
  if (channel.owes_taken) {
    say_taken(channel);
  }
}

/// What the provider does not take now it takes when others have come.
void FabricDriver::post_receives() noexcept {
  while (!unposted_.empty() && endpoint_->receive(*unposted_.back()) == Endpoint::Posted::done) {
    unposted_.pop_back();
  }
}

void FabricDriver::count_look(std::uint32_t read, std::size_t asked) noexcept {
  unended_ += read;
  if (read < asked) {
    ++looks_;
    unended_ = 0;
  } else if (unended_ >= options_.endpoint.completions_max) {
    looks_ += kQuietLooks;
    unended_ = 0;
  }
}

std::uint32_t FabricDriver::poll_endpoint(PacketSink& sink, std::uint32_t packets_max) noexcept {
  std::array<Endpoint::Completion, 16> completions;
  std::array<Arrival, 16> arrivals;
  std::uint32_t arrival_count = 0;
  {
    const KernelGuard guard{lock_};
    const std::size_t asked = std::min<std::size_t>(completions.size(), packets_max);
    const std::uint32_t count = endpoint_->poll(std::span{completions}.first(asked));
    count_look(count, asked);
    if (count != 0) {
      naps_.shorten();
    }
    for (const Endpoint::Completion& done : std::span{completions}.first(count)) {
      if (done.read != nullptr) {
        end_read(static_cast<Borrowed&>(*done.read), done.error == 0);
      } else if (done.buffer->is_send) {
        on_sent(*done.buffer, done.error);
      } else if (done.error != 0) {
        unposted_.push_back(done.buffer);
      } else {
        arrivals[arrival_count++] = on_arrival(*done.buffer);
      }
    }
    if (arrival_count == 0) {
      if (count > 0 && !unposted_.empty()) {
        post_receives();
      }
      return 0;
    }
  }
  std::uint32_t packet_count = 0;
  for (const Arrival& arrival : std::span{arrivals}.first(arrival_count)) {
    if (arrival.channel != nullptr && arrival.kind == FrameKind::data) {
      sink.on_packet(arrival.channel->node, arrival.packet);
      ++packet_count;
    } else if (arrival.borrowed != nullptr) {
      ask_place(sink, *arrival.borrowed);
    }
  }
  const KernelGuard guard{lock_};
  for (const Arrival& arrival : std::span{arrivals}.first(arrival_count)) {
    take(arrival);
  }
  post_receives();
  return packet_count;
}

std::uint32_t FabricDriver::poll(PacketSink& sink, std::uint32_t packets_max) noexcept {
  if (is_control_closed_ && !is_shut_ && control_->is_drained()) {
    const KernelGuard guard{lock_};
    endpoint_->shut();
    is_shut_ = true;
  }
  if (is_shut_) {
    return 0;
  }
  if (--polls_until_control_ == 0 || needs_care_.load(std::memory_order_relaxed) ||
      is_closed_.load(std::memory_order_relaxed)) {
    polls_until_control_ = kControlEvery;
    control_->poll(*this, packets_max);
    find_closed();
  }
  const std::uint32_t count = poll_endpoint(sink, packets_max);
  if (has_ended_reads_) {
    tell_ended_reads(sink);
  }
  if (needs_care_.load(std::memory_order_relaxed) || is_closed_.load(std::memory_order_relaxed)) {
    care(sink);
  }
  return count;
}

}  // namespace sterna::net::fabric
