// The lent packets of the driver fabric: see loans.h.
#include "net/drivers/fabric/loans.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "net/drivers/fabric/driver.h"

namespace sterna::net::fabric {
namespace {

using State = FabricChannel::State;
using Step = Borrowed::Step;

// The provider is to end the reads of a peer that is gone; beyond that it never will.
constexpr std::uint64_t kReadPatienceNs = 5'000'000'000;

}  // namespace

std::uint32_t FabricChannel::lent_bytes_max() const noexcept {
  // Relaxed: a hint, lend() looks again under the lock.
  return does_peer_read.load(std::memory_order_relaxed) ? driver.loan_bytes_max() : 0;
}

SendState FabricChannel::try_lend(Packet head, Piece bytes, Lent& loan) noexcept {
  check(
      head.size() == kPacketHeadBytes && !bytes.empty() && bytes.size() <= driver.loan_bytes_max(),
      "a lent packet has a head, and between 1 and lent_bytes_max() bytes");
  return driver.lend(*this, head, bytes, loan);
}

void FabricChannel::take_back(Lent& loan) noexcept {
  driver.take_back(*this, loan);
}

std::uint32_t FabricDriver::loan_bytes_max() const noexcept {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(endpoint_->read_bytes_max(), kLoanBytesMax));
}

SendState FabricDriver::lend(FabricChannel& channel, Packet head, Piece bytes,
                             Lent& lent) noexcept {
  bool is_asleep;
  {
    const KernelGuard guard{lock_};
    if (channel.state >= State::ending || is_closed_.load(std::memory_order_relaxed)) {
      return SendState::closed;
    }
    if (channel.state == State::joining || channel.under_way() >= options_.window ||
        channel.free.empty() || channel.lent.size() >= kLoansMax) {
      return SendState::full;
    }
    auto region = endpoint_->expose(bytes);
    if (!region) {
      ++unregistered_;
      lent.state.store(Lent::State::returned, std::memory_order_relaxed);
      return SendState::accepted;
    }
    Loan loan{.id = ++channel.last_loan,
              .address = region.value().address,
              .key = region.value().key,
              .bytes = static_cast<std::uint32_t>(bytes.size()),
              .unused = 0,
              .head = {}};
    std::memcpy(loan.head.data(), head.data(), head.size());
    Buffer* const buffer = queue_frame(channel, FrameKind::lend);
    std::memcpy(buffer->memory + kFrameBytes, &loan, kLoanBytes);
    buffer->bytes = kFrameBytes + kLoanBytes;
    lent.id = loan.id;
    lent.state.store(Lent::State::under_way, std::memory_order_relaxed);
    channel.lent.push_back({&lent, loan.id, region.value()});
    ++lent_;
    push(channel);
    naps_.shorten();
    is_asleep = is_asleep_;
  }
  if (is_asleep) {
    ring();
  }
  return SendState::accepted;
}

void FabricDriver::take_back(FabricChannel& channel, Lent& lent) noexcept {
  const KernelGuard guard{lock_};
  const auto found = std::ranges::find(channel.lent, &lent, &LentOut::lent);
  if (found != channel.lent.end()) {
    endpoint_->close(found->region);
    channel.lent.erase(found);
  }
  lent.state.store(Lent::State::none, std::memory_order_relaxed);
}

/// The peer has read what we have lent it, or could not.
void FabricDriver::on_returned(FabricChannel& channel, Packet packet) noexcept {
  LoanEnd end;
  std::memcpy(&end, packet.data(), kLoanEndBytes);
  const auto found = std::ranges::find(channel.lent, end.id, &LentOut::id);
  if (found == channel.lent.end()) {
    return;  // Taken back meanwhile.
  }
  endpoint_->close(found->region);
  returned_ += end.is_whole == 1 ? 0 : 1;
  found->lent->state.store(end.is_whole == 1 ? Lent::State::taken : Lent::State::returned,
                           std::memory_order_release);
  channel.lent.erase(found);
}

/// The peer is gone: nobody reads what it was lent.
void FabricDriver::return_loans(FabricChannel& channel) noexcept {
  for (LentOut& out : channel.lent) {
    endpoint_->close(out.region);
    out.lent->state.store(Lent::State::returned, std::memory_order_release);
  }
  channel.lent.clear();
}

/// Null: what it says cannot be, and the connection ends.
Borrowed* FabricDriver::borrow(FabricChannel& channel, Packet packet) noexcept {
  auto borrowed = std::make_unique<Borrowed>();
  std::memcpy(&borrowed->loan, packet.data(), kLoanBytes);
  const std::uint32_t bytes = borrowed->loan.bytes;
  if (!endpoint_->can_read() || bytes == 0 || bytes > loan_bytes_max() ||
      channel.borrowed == kLoansMax) {
    channel.broken = "it lends what cannot be read, or more at once than it may";
    needs_care_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  borrowed->channel = &channel;
  ++channel.borrowed;
  borrowed_.push_back(std::move(borrowed));
  return borrowed_.back().get();
}

/// Asks the sink where it goes. By the poller, without the lock: nobody else has it at this step.
void FabricDriver::ask_place(PacketSink& sink, Borrowed& borrowed) noexcept {
  const Loan& loan = borrowed.loan;
  const auto packet_bytes = static_cast<std::uint32_t>(kPacketHeadBytes + loan.bytes);
  borrowed.into = sink.hold_place(borrowed.channel->node, loan.head, packet_bytes);
  check(borrowed.into.empty() || borrowed.into.size() == loan.bytes,
        "the place of a lent packet is as long as its bytes");
}

/// The sink has said where it goes.
void FabricDriver::begin_read(Borrowed& borrowed) noexcept {
  if (borrowed.into.empty()) {
    end_read(borrowed, false);
    return;
  }
  borrowed.step = Step::waiting;
  start_read(borrowed);
}

void FabricDriver::start_read(Borrowed& borrowed) noexcept {
  FabricChannel& channel = *borrowed.channel;
  if (channel.state >= State::ending) {
    end_read(borrowed, false);
    return;
  }
  if (channel.state == State::joining) {
    return;  // Its hello says where to read from.
  }
  switch (endpoint_->start_read(borrowed, channel.address,
                                {borrowed.loan.address, borrowed.loan.key})) {
    case Endpoint::Posted::done:
      borrowed.step = Step::reading;
      return;
    case Endpoint::Posted::again:
      ++deferred_;
      needs_care_.store(true, std::memory_order_relaxed);
      return;
    case Endpoint::Posted::failed:
      end_read(borrowed, false);
      return;
  }
}

/// Its bytes are here, or never will be, and nobody writes them any more.
void FabricDriver::end_read(Borrowed& borrowed, bool is_whole) noexcept {
  endpoint_->close(borrowed.local);
  borrowed.step = Step::ended;
  borrowed.is_whole = is_whole;
  has_ended_reads_ = true;
  needs_care_.store(true, std::memory_order_relaxed);  // The next poll tells.
  read_ += is_whole ? 1 : 0;
}

/// What waits to be read, of peers that are there.
void FabricDriver::start_reads() noexcept {
  for (const auto& borrowed : borrowed_) {
    if (borrowed->step == Step::waiting) {
      start_read(*borrowed);
    }
  }
}

/// Tells the sink, then the peer. By the poller.
void FabricDriver::tell_ended_reads(PacketSink& sink) noexcept {
  std::vector<std::unique_ptr<Borrowed>> ended;
  {
    const KernelGuard guard{lock_};
    has_ended_reads_ = false;
    const auto is_under_way = [](const auto& one) { return one->step != Step::ended; };
    const auto first = std::stable_partition(borrowed_.begin(), borrowed_.end(), is_under_way);
    ended.assign(std::make_move_iterator(first), std::make_move_iterator(borrowed_.end()));
    borrowed_.erase(first, borrowed_.end());
  }
  for (const auto& borrowed : ended) {
    if (!borrowed->into.empty()) {
      sink.on_lent_end(borrowed->channel->node, borrowed->loan.head,
                       static_cast<std::uint32_t>(kPacketHeadBytes + borrowed->loan.bytes),
                       borrowed->is_whole);
    }
  }
  const KernelGuard guard{lock_};
  for (const auto& borrowed : ended) {
    FabricChannel& channel = *borrowed->channel;
    --channel.borrowed;
    channel.owed_ends.push_back(
        {.id = borrowed->loan.id, .is_whole = borrowed->is_whole ? 1U : 0U, .unused = 0});
    say_ends(channel);
  }
}

/// Gives back what was lent to us, as far as the window goes.
void FabricDriver::say_ends(FabricChannel& channel) noexcept {
  if (channel.state >= State::ending) {
    channel.owed_ends.clear();
    return;
  }
  while (!channel.owed_ends.empty() && channel.under_way() < options_.window) {
    Buffer* const buffer = queue_frame(channel, FrameKind::returned);
    if (buffer == nullptr) {
      break;
    }
    std::memcpy(buffer->memory + kFrameBytes, &channel.owed_ends.front(), kLoanEndBytes);
    buffer->bytes = kFrameBytes + kLoanEndBytes;
    channel.owed_ends.pop_front();
  }
  push(channel);
  if (!channel.owed_ends.empty()) {
    needs_care_.store(true, std::memory_order_relaxed);
  }
}

/// Of a peer that is gone: whether nothing of it is written here any more.
bool FabricDriver::are_reads_over(FabricChannel& channel) noexcept {
  if (channel.borrowed == 0) {
    return true;
  }
  if (now_ns() - channel.ending_since_ns >= kReadPatienceNs) {
    shut_endpoint();
  }
  return false;  // The sink has not been told.
}

/// The provider does not end its reads: without the endpoint it must. No peer is reached by it any
/// more.
void FabricDriver::shut_endpoint() noexcept {
  endpoint_->shut();
  for (const auto& borrowed : borrowed_) {
    if (borrowed->step == Step::reading || borrowed->step == Step::waiting) {
      end_read(*borrowed, false);
    }
  }
  for (const auto& channel : channels_) {
    if (channel != nullptr && channel->state < State::ending && channel->broken.empty()) {
      channel->broken = "libfabric did not end what it read of another node that is lost";
    }
  }
  needs_care_.store(true, std::memory_order_relaxed);
}

}  // namespace sterna::net::fabric
