// Ends of the processes of this host: how they are noticed and reported, and what the dead leave in
// the inbox.
#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/epoll.h>

#include "net/drivers/shm/driver.h"

namespace sterna::net::shm {
namespace {

constexpr std::uint32_t kLookEvery = 1024;  // Polls between two looks for ended processes.

}  // namespace

void ShmDriver::watch_new_peers() noexcept {
  // Acquire: pairs with the release in channel_to.
  if (unwatched_count_.load(std::memory_order_acquire) == 0) {
    return;
  }
  unwatched_count_.store(0, std::memory_order_relaxed);
  for (std::uint32_t local = 0; local < channels_.size(); ++local) {
    ShmChannel* channel = channels_[local].load(std::memory_order_acquire);
    if (channel == nullptr || channel->is_watched() || channel->is_lost() ||
        local == self_.local_index) {
      continue;
    }
    if (channel->segment().ready.load(std::memory_order_acquire) == 0) {
      unwatched_count_.fetch_add(1, std::memory_order_relaxed);  // Not yet open: next time.
      continue;
    }
    const int process = channel->watch();
    epoll_event event{.events = EPOLLIN, .data = {.u32 = local}};
    if (process == -ESRCH) {
      note_end(local);
    } else if (process < 0 || ::epoll_ctl(waiting_.get(), EPOLL_CTL_ADD, process, &event) != 0) {
      logger_.warn("cannot watch the process of node {}: its end will be noticed late",
                   channel->peer().node);
    }
  }
}

void ShmDriver::look_for_ends() noexcept {
  polls_until_look_ = kLookEvery;
  watch_new_peers();
  std::array<epoll_event, 16> events;
  const int count = ::epoll_wait(waiting_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<std::size_t>(i)].data.u32 != kNotANode) {
      note_end(events[static_cast<std::size_t>(i)].data.u32);
    }
  }
  look_at_inbox();
}

/// Whether a process has written into the inbox what no sender of ours does: tickets beyond all
/// cells, or a cell that was overwritten, at which the inbox would stand still for ever. The hole
/// of a process that was killed is another matter (skip_abandoned): its claim stays until its end
/// is noticed.
bool ShmDriver::is_spoilt() noexcept {
  if (inbox_.is_overrun()) {
    return true;
  }
  std::uint32_t ticket = 0;
  std::uint32_t again = 0;
  const bool is_hole = inbox_.find_hole(ticket);
  const bool has_stayed = is_hole && is_suspect_ && ticket == suspect_ticket_;
  is_suspect_ = is_hole;
  suspect_ticket_ = ticket;
  // Filled after we have looked, then no longer claimed: so it is looked at once more.
  return has_stayed && ends_.empty() && !is_claimed(ticket) && inbox_.find_hole(again) &&
         again == ticket;
}

/// What was sent here can no longer be told from what was not, by whomever: nothing of this host
/// reaches this node any more, which is an error of its ranks, and not a wait without end.
void ShmDriver::look_at_inbox() noexcept {
  if (!inbox_.has_told_room()) {
    publish_room();
  }
  if (is_inbox_lost_ || !is_spoilt()) {
    return;
  }
  is_inbox_lost_ = true;
  logger_.error(
      "shared memory: the inbox of this node was overwritten by another process; its peers on this "
      "host count as lost");
  for (std::uint32_t local = 0; local < channels_.size(); ++local) {
    if (local != self_.local_index && channel_to(local)) {
      note_end(local);
    }
  }
}

void ShmDriver::lose_peer(std::uint32_t node) noexcept {
  const std::uint32_t local = local_of(node);
  // Also one that never came through: it may have ended with its first packet half sent.
  if (local != kNotANode && channel_to(local)) {
    note_end(local);
  }
}

void ShmDriver::note_end(std::uint32_t local) noexcept {
  ShmChannel* channel = channels_[local].load(std::memory_order_acquire);
  channel->unwatch();  // Closing it takes it out of the epoll set.
  if (channel->is_lost() || std::ranges::find(ends_, local, &End::local) != ends_.end()) {
    return;  // The launcher and the system both say it.
  }
  ends_.push_back({.local = local, .ticket = inbox_.bounded_tail()});
}

/// The cells that the dead have taken and will not fill.
void ShmDriver::skip_abandoned() noexcept {
  std::uint32_t ticket;
  std::uint32_t seen;
  // As many as there are cells: a ticket beyond them is nobody's (is_spoilt).
  for (std::uint32_t left = kCellCount;
       left != 0 && inbox_.find_hole(ticket) && !is_claimed(ticket) && inbox_.find_hole(seen);
       --left) {
    inbox_.pop();
    publish_room();
  }
}

/// Whether a living node may be about to fill the cell of this ticket.
bool ShmDriver::is_claimed(std::uint32_t ticket) noexcept {
  for (std::uint32_t local = 0; local < channels_.size(); ++local) {
    if (local == self_.local_index || std::ranges::find(ends_, local, &End::local) != ends_.end()) {
      continue;
    }
    Result<ShmChannel*> channel = channel_to(local);
    if (!channel) {
      return true;  // Its claims cannot be read: perhaps at the next poll.
    }
    // Acquire: pairs with C; whoever has taken its claim back has filled the cell.
    if (!channel.value()->is_lost() && channel.value()->segment().claims[self_.local_index].load(
                                           std::memory_order_acquire) == (kClaimed | ticket)) {
      return true;
    }
  }
  return false;
}

void ShmDriver::report_ends(PacketSink& sink) noexcept {
  skip_abandoned();
  for (std::size_t i = 0; i < ends_.size();) {
    if (!inbox_.has_passed(ends_[i].ticket)) {
      ++i;
      continue;
    }
    ShmChannel* channel = channels_[ends_[i].local].load(std::memory_order_acquire);
    ends_.erase(ends_.begin() + static_cast<std::ptrdiff_t>(i));
    channel->mark_lost(has_membarrier_);
    if (!channel->has_closed()) {
      sink.on_peer_lost(channel->peer().node, is_inbox_lost_
                                                  ? "the shared memory between us was overwritten"
                                                  : "its process has ended");
    }
  }
}

}  // namespace sterna::net::shm
