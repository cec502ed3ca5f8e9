// Links: packets that are lent (Channel::try_lend). They go by the rails whose networks move bytes
// from memory to memory, each by the one that is expected to be done with it first. They have no
// numbers: a rail says of each whether the peer has it. Only where a rail is lost nobody knows, and
// who lent it sends it again as one that may have come (lent_parts.h).
#include <algorithm>
#include <array>

#include "net/rails/link.h"

namespace sterna::net {
namespace {

// One that takes so long, and so many times as long as it should, is stuck.
constexpr std::uint64_t kStuckTimes = 16;
// Until loans have ended rates are those sampled, or of the profile, of long packets: what packets
// between messages have taken says of a rail that has few of them only how few they were.
constexpr std::uint64_t kRateBytes = 256 << 10;

}  // namespace

/// A rail that is up, for what is asked of its channel without our locks.
struct Link::Lender {
  Channel* channel;
  std::uint32_t at;
  std::uint64_t profile_ps_per_byte;
  std::uint64_t ps_per_byte;  // Of loans, as far as they are known.
  std::uint64_t end_ns;       // Of what it is lent already, and the way of more.
  std::uint64_t most;         // That it takes; 0: it lends nothing.
};

std::size_t Link::find_lenders(std::span<Lender, kViewedRails> lenders) const noexcept {
  std::size_t count = 0;
  {
    const SpinGuard guard{state_lock_};
    const std::uint64_t now_ns = shared_.clock->now_ns();
    for (std::uint32_t i = 0; i < rails_.size() && i < lenders.size(); ++i) {
      const LinkRail& rail = rails_[i];
      if (!is_over() && rail.state == RailState::up && rail.channel != nullptr) {
        const std::uint64_t profile = rail.rate.profile_ps_per_byte(kRateBytes);
        const std::uint64_t ps_per_byte = rail.lent.ps_per_byte(profile);
        const std::uint64_t busy_ns = rail.lent.bytes_under_way() * ps_per_byte / 1000;
        lenders[count++] = {.channel = rail.channel,
                            .at = i,
                            .profile_ps_per_byte = profile,
                            .ps_per_byte = ps_per_byte,
                            .end_ns = now_ns + busy_ns + rail.rate.latency_ns(),
                            .most = 0};
      }
    }
  }
  for (Lender& lender : lenders.first(count)) {
    lender.most = lender.channel->lent_bytes_max();
  }
  return count;
}

/// What is lent has no sum. And where other rails carry more than those that lend, all of them with
/// packets are faster.
std::uint32_t Link::lent_bytes_max() const noexcept {
  if (shared_.options.has_sums) {
    return 0;
  }
  std::array<Lender, kViewedRails> lenders;
  const std::size_t count = find_lenders(lenders);
  std::uint64_t most = 0;
  double lending = 0;
  double others = 0;
  for (const Lender& lender : std::span{lenders}.first(count)) {
    const double rate =
        1 / static_cast<double>(std::max<std::uint64_t>(lender.profile_ps_per_byte, 1));
    (lender.most != 0 ? lending : others) += rate;
    most = std::max(most, lender.most);
  }
  return lending >= others ? static_cast<std::uint32_t>(most) : 0;
}

SendState Link::try_lend(Packet head, Piece bytes, Lent& lent) noexcept {
  std::array<Lender, kViewedRails> all;
  const std::span<Lender> lenders = std::span{all}.first(find_lenders(all));
  const auto takes_ns = [&](const Lender& lender) {
    return bytes.size() * lender.ps_per_byte / 1000;
  };
  std::ranges::sort(lenders, {}, [&](const Lender& lender) {
    return lender.end_ns + takes_ns(lender);
  });
  SendState result = SendState::closed;
  for (const Lender& lender : lenders) {
    if (lender.most < bytes.size()) {
      continue;
    }
    const std::uint64_t end_ns = lender.end_ns + takes_ns(lender);
    const std::uint64_t now_ns = shared_.clock->now_ns();
    lent.rail = lender.at;
    lent.stuck_ns =
        now_ns + std::max(kStuckNs, kStuckTimes * (end_ns - std::min(end_ns, now_ns)));
    const SendState state = lender.channel->try_lend(head, bytes, lent);
    if (state == SendState::accepted) {
      const SpinGuard guard{state_lock_};
      for (const Lender& other : lenders) {
        if (other.at != lender.at) {
          rails_[other.at].lent.pass_over();
        }
      }
      LinkRail& rail = rails_[lender.at];
      lent.stamp = rail.lent.begin(bytes.size(), now_ns);
      rail.bytes += bytes.size();
      lent_look_ns_ = std::max(lent_look_ns_, lent.stuck_ns);
      note_due(now_ns + kStuckNs);
      return state;
    }
    result = state == SendState::full ? state : result;
  }
  return result;
}

void Link::note_end(const Lent& lent, bool is_whole) noexcept {
  const SpinGuard guard{state_lock_};
  LinkRail& rail = rails_[lent.rail];
  rail.lent.end(lent.stamp, is_whole, rail.rate.round_trip_ns(), shared_.clock->now_ns());
}

void Link::take_back(Lent& lent) noexcept {
  Channel* channel = nullptr;
  {
    const SpinGuard guard{state_lock_};
    channel = rails_[lent.rail].channel;
  }
  channel->take_back(lent);
}

bool Link::is_stuck(const Lent& lent) noexcept {
  const SpinGuard guard{state_lock_};
  const LinkRail& rail = rails_[lent.rail];
  const bool has_other = std::ranges::any_of(rails_, [&](const LinkRail& other) {
    return &other != &rail && other.state == RailState::up;
  });
  return has_other &&
         (rail.state != RailState::up || shared_.clock->now_ns() >= lent.stuck_ns);
}

}  // namespace sterna::net
