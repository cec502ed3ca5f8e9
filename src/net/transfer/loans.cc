// Announced messages that are lent in parts to a driver which moves their bytes from where they are
// to where they belong (Channel::try_lend), both ranks pinned. One part is registered while others
// fly. What comes back, because the receiver has no place for it in one piece or the network could
// not, goes in data frames: their receive counts bytes, whatever way they came. Where one of
// several rails was lost, they may have come already: their frames say so, and the receiver counts
// them once (rails/lent_parts.h).
#include <algorithm>
#include <span>

#include "net/core.h"
#include "net/transfer/lending.h"

namespace sterna::net {

/// Whether it is lent; asked until that is known.
bool TransportCore::begin_loans(TransferJob& job) noexcept {
  const std::uint64_t left = job.total_bytes - job.offset;
  const bool is_plain = job.send != nullptr && job.local.extents == nullptr;
  if (job.is_lending_judged || !is_plain || (job.is_invited && !job.gate->is_empty())) {
    return false;
  }
  Channel* const channel = job.gate->channel();
  if (channel == nullptr) {
    return false;
  }
  job.is_lending_judged = true;
  const std::uint64_t most = channel->lent_bytes_max();
  const CostModel cost = job.gate->cost();
  if (!is_lent_to(cost, most) || left < lent_from_bytes(cost)) {
    return false;
  }
  const std::uint64_t end = lent_part_bytes_min(cost);
  std::uint64_t part = std::min(cost.lent_part_bytes(), most - end);
  if (job.gate->has_several_rails()) {  // Each gets its share of one message.
    part = std::clamp(left / (2 * std::uint64_t{job.gate->rail_count()}), std::min(2 * end, part),
                      part);
  }
  job.loans = std::make_unique<Loans>(*channel, static_cast<std::uint32_t>(part),
                                      static_cast<std::uint32_t>(end),
                                      job.gate->has_several_rails());
  return true;
}

void TransportCore::lend_parts(TransferJob& job) noexcept {
  Loans& loans = *job.loans;
  for (Loans::Part& part : std::span{loans.parts}.first(loans.part_count)) {
    if (job.offset == job.total_bytes || loans.is_over) {
      return;
    }
    if (part.lent.state.load(std::memory_order_relaxed) != Lent::State::none) {
      continue;
    }
    const std::uint64_t left = job.total_bytes - job.offset;
    part.offset = job.offset;
    part.bytes = left < loans.part_bytes + loans.end_bytes ? left : loans.part_bytes;
    FrameHeader header = job.header;
    header.total_bytes = part.offset;
    header.payload_bytes = static_cast<std::uint32_t>(part.bytes);
    static_assert(sizeof header == kPacketHeadBytes);
    const SendState state =
        loans.channel.try_lend(std::as_bytes(std::span{&header, 1}),
                               {job.local.address + part.offset, part.bytes}, part.lent);
    if (state == SendState::full) {
      return;
    }
    loans.is_over = state == SendState::closed;
    if (state == SendState::accepted) {
      ++loans.under_way;
      job.offset += part.bytes;
    }
  }
}

/// In frames, as far as there is room; closed: the peer is gone.
SendState TransportCore::send_returned(TransferJob& job) noexcept {
  Loans& loans = *job.loans;
  const std::uint64_t most = loans.returned.empty() ? 0 : cut_of(job).payload_max;
  SendState sent = SendState::accepted;
  job.header.flags |= kFrameAgain;
  while (!loans.returned.empty() && sent == SendState::accepted) {
    auto& [from, to] = loans.returned.back();
    sent = send_frames(job, from, to, most);
    if (sent == SendState::accepted) {
      loans.returned.pop_back();
    }
  }
  job.header.flags &= static_cast<std::uint8_t>(~kFrameAgain);
  return sent;
}

/// True: it has ended.
bool TransportCore::step_loans(TransferJob& job) noexcept {
  Loans& loans = *job.loans;
  for (Loans::Part& part : loans.parts) {
    // Acquire: pairs with the driver, which has closed its registration.
    Lent::State state = part.lent.state.load(std::memory_order_acquire);
    if (state == Lent::State::under_way && loans.channel.is_stuck(part.lent)) {
      loans.channel.take_back(part.lent);
      state = Lent::State::returned;
    }
    if (state != Lent::State::taken && state != Lent::State::returned) {
      continue;
    }
    --loans.under_way;
    loans.channel.note_end(part.lent, state == Lent::State::taken);
    part.lent.state.store(Lent::State::none, std::memory_order_relaxed);
    if (state == Lent::State::taken) {
      counters_.direct_bytes.add(part.bytes);
    } else {
      loans.is_over = true;
      loans.returned.emplace_back(part.offset, part.offset + part.bytes);
    }
  }
  lend_parts(job);
  if (!loans.is_over) {
    return loans.under_way == 0 && job.offset == job.total_bytes;
  }
  if (const SendState sent = send_returned(job); sent != SendState::accepted) {
    return sent == SendState::closed;
  }
  const bool is_all_sent = job.offset == job.total_bytes || step_frames(job);
  return is_all_sent && (loans.under_way == 0 || job.gate->is_lost());
}

}  // namespace sterna::net
