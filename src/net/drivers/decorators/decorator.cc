// Hands on what a decorator does not change.
#include "net/drivers/decorators/decorator.h"

namespace sterna::net::decorators {

SendState DecoratorChannel::try_send(std::span<const Piece> pieces) noexcept {
  const std::size_t bytes = bytes_of(pieces);
  check(bytes > 0 && bytes <= driver_.capabilities().packet_bytes_max,
        "a packet has between 1 and packet_bytes_max bytes");
  return driver_.is_closed() ? SendState::closed : send(pieces);
}

bool DecoratorChannel::can_write_remote() const noexcept {
  return driver_.capabilities().direct_mb_per_s != 0 && inner().can_write_remote();
}

Decorator::~Decorator() {
  for (std::atomic<DecoratorChannel*>& channel : channels_) {
    delete channel.load(std::memory_order_relaxed);
  }
}

Result<Channel*> Decorator::adopt(std::uint32_t node, Result<Channel*> inner) noexcept {
  if (!inner) {
    return inner;
  }
  if (DecoratorChannel* known = channel_to(node); known != nullptr) {
    known->inner_.store(inner.value(), std::memory_order_release);  // C.
    return static_cast<Channel*>(known);
  }
  std::unique_ptr<DecoratorChannel> made = make_channel(node);
  if (made == nullptr) {
    return Errc::out_of_memory;
  }
  made->inner_.store(inner.value(), std::memory_order_relaxed);
  DecoratorChannel* known = nullptr;
  if (!channels_[node].compare_exchange_strong(known, made.get(),
                                               std::memory_order_acq_rel)) {  // C.
    return static_cast<Channel*>(known);
  }
  return static_cast<Channel*>(made.release());
}

Result<Channel*> Decorator::connect(std::uint32_t node, Packet peer_address) noexcept {
  return adopt(node, inner_->connect(node, peer_address));
}

Result<Channel*> Decorator::revive(std::uint32_t node) noexcept {
  return adopt(node, inner_->revive(node));
}

std::uint32_t Decorator::poll(PacketSink& sink, std::uint32_t packets_max) noexcept {
  const bool is_flushed = flush();
  if (is_closed() && is_flushed && !is_inner_closed_) {
    is_inner_closed_ = true;
    inner_->close();
  }
  sink_ = &sink;
  begin_poll();
  return inner_->poll(*this, packets_max);
}

bool Decorator::prepare_sleep() noexcept {
  const bool is_behind = is_closed() && !is_inner_closed_ && flush();
  return !is_behind && inner_->prepare_sleep();
}

void Decorator::close() noexcept {
  is_closed_.store(true, std::memory_order_relaxed);
  if (!is_inner_closed_ && flush()) {
    is_inner_closed_ = true;
    inner_->close();
  }
}

std::string Decorator::figures() const {
  std::string text = own_figures();
  const std::string inside = inner_->figures();
  if (!text.empty()) {
    text = std::string{name_} + ": " + text;
  }
  return text + (text.empty() || inside.empty() ? "" : "; ") + inside;
}

}  // namespace sterna::net::decorators
