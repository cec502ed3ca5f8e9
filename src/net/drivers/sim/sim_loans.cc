// Packets that are lent over the simulated network: an offer, what it is answered with, and between
// them a read that takes the time of its bytes. Half of them are written at once, so that who looks
// too early sees it.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "net/drivers/sim/sim.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kLoansMax = 8;  // Under way from one node to another one.

}  // namespace

SendState SimNetwork::lend(std::uint32_t from, std::uint32_t to, Packet head, Piece bytes,
                           Lent& lent) {
  check(head.size() == kPacketHeadBytes && !bytes.empty() &&
            bytes.size() <= options_.lent_bytes_max,
        "what is lent has a head, and as many bytes as may be");
  const SpinGuard guard{lock_};
  if (!has_way(from, to)) {
    return SendState::closed;
  }
  const auto is_theirs = [&](const auto& loan) {
    return loan.second.from == from && loan.second.to == to;
  };
  if (std::ranges::count_if(loans_, is_theirs) >= kLoansMax) {
    return SendState::full;
  }
  lent.id = next_loan_++;
  lent.state.store(Lent::State::under_way, std::memory_order_relaxed);
  loans_.emplace(lent.id, Loan{.from = from, .to = to, .bytes = bytes, .lent = &lent});
  arrive(to,
         {.from = from,
          .kind = InFlight::Kind::offer,
          .bytes = {head.begin(), head.end()},
          .loan = lent.id,
          .loan_bytes = bytes.size()},
         head.size());
  return SendState::accepted;
}

void SimNetwork::take_back(Lent& lent) {
  const SpinGuard guard{lock_};
  loans_.erase(lent.id);
  lent.state.store(Lent::State::none, std::memory_order_relaxed);
}

void SimNetwork::begin_read(std::uint32_t node, InFlight offer, std::span<std::byte> place) {
  check(place.size() == offer.loan_bytes, "a place is as long as its bytes");
  const SpinGuard guard{lock_};
  if (const auto loan = loans_.find(offer.loan); loan != loans_.end()) {
    std::memcpy(place.data(), loan->second.bytes.data(), place.size() / 2);
  }
  const std::uint64_t bytes = offer.loan_bytes;
  offer.kind = InFlight::Kind::read;
  offer.place = place;
  const bool is_cut = nodes_[node].is_severed[offer.from];
  offer.read = is_cut ? InFlight::Read::failed : InFlight::Read::open;
  if (is_cut) {  // The news of it is on its way, and comes after this.
    ++nodes_[node].in_flight[offer.from];
    nodes_[node].arriving.emplace(options_.clock->now_ns(), std::move(offer));
    return;
  }
  arrive(node, std::move(offer), bytes);
}

bool SimNetwork::end_read(const InFlight& read) {
  const SpinGuard guard{lock_};
  const auto loan = loans_.find(read.loan);
  if (read.read == InFlight::Read::open && loan != loans_.end()) {
    std::ranges::copy(loan->second.bytes, read.place.begin());
    ++lent_count_;
    return true;
  }
  return read.read == InFlight::Read::done;
}

void SimNetwork::answer(std::uint32_t node, const InFlight& about, InFlight::Kind what) {
  const SpinGuard guard{lock_};
  if (has_way(node, about.from)) {
    arrive(about.from, {.from = node, .kind = what, .loan = about.loan}, 0);
  }
}

void SimNetwork::end_loan(std::uint64_t loan, Lent::State state) {
  const SpinGuard guard{lock_};
  if (const auto found = loans_.find(loan); found != loans_.end()) {
    found->second.lent->state.store(state, std::memory_order_release);
    loans_.erase(found);
  }
}

void SimNetwork::return_loans(std::uint32_t from, std::uint32_t to) {
  std::erase_if(loans_, [&](const auto& entry) {
    const Loan& loan = entry.second;
    const bool is_theirs = loan.from == from && loan.to == to;
    if (is_theirs) {
      loan.lent->state.store(Lent::State::returned, std::memory_order_release);
    }
    return is_theirs;
  });
}

bool SimNetwork::has_news_of_read(std::uint32_t& one, std::uint32_t& other) {
  const SpinGuard guard{lock_};
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    for (const auto& [time, what] : nodes_[node].arriving) {
      if (what.kind == InFlight::Kind::taken) {
        one = std::min(node, what.from);
        other = std::max(node, what.from);
        return true;
      }
    }
  }
  return false;
}

/// The wire is cut: of the reads that are under way some have all bytes, and only the news of it is
/// still to be heard.
void SimNetwork::break_reads(std::uint32_t from, std::uint32_t to) {
  Node& node = nodes_[to];
  for (auto& [time, what] : node.arriving) {
    if (what.from != from || what.kind != InFlight::Kind::read) {
      continue;
    }
    ++node.in_flight[from];
    const auto loan = loans_.find(what.loan);
    const bool is_done = what.read == InFlight::Read::open && loan != loans_.end() &&
                         random_.chance(0.5);
    if (is_done) {
      std::ranges::copy(loan->second.bytes, what.place.begin());
      ++lent_count_;
    }
    if (what.read == InFlight::Read::open) {
      what.read = is_done ? InFlight::Read::done : InFlight::Read::failed;
    }
  }
}

}  // namespace sterna::net
