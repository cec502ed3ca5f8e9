// Who waits to post, and who wakes them.
#include "rpc/post_window.h"

#include "progress/progress.h"

namespace sterna::rpc {
namespace {

constexpr std::uint64_t kTotalMask = (std::uint64_t{1} << kIdBits) - 1;

}  // namespace

bool PostWindow::wait(std::uint64_t place, progress::Progress& progress) noexcept {
  Waiting self{.place = place};
  {
    const SpinGuard guard{lock_};
    if (is_lost_) {
      return false;
    }
    // Here again: whoever opens the window does so under the lock, before this or after it.
    if (is_open(place)) {
      return true;
    }
    if (first_ == nullptr || last_->place <= place) [[likely]] {
      (first_ == nullptr ? first_ : last_->next) = &self;
      last_ = &self;
    } else {  // Others took their places later and were here sooner.
      Waiting** before = &first_;
      while ((*before)->place <= place) {
        before = &(*before)->next;
      }
      self.next = *before;
      *before = &self;
    }
  }
  self.done.wait(progress);
  return !self.is_lost;
}

/// So much more has begun: those who need not wait any more, no longer in the list.
PostWindow::Waiting* PostWindow::open(std::uint64_t units) noexcept {
  begun_.store(begun_.load(std::memory_order_relaxed) + units, std::memory_order_relaxed);
  Waiting* const woken = first_;
  Waiting* last = nullptr;
  while (first_ != nullptr && is_open(first_->place)) {
    last = first_;
    first_ = first_->next;
  }
  if (last == nullptr) {
    return nullptr;
  }
  last->next = nullptr;
  return woken;
}

/// Without the lock: whoever is woken takes its memory with it.
void PostWindow::wake(Waiting* first) noexcept {
  while (first != nullptr) {
    Waiting& waiting = *first;
    first = waiting.next;
    waiting.done.complete();
  }
}

void PostWindow::give_back(std::uint64_t units) noexcept {
  Waiting* woken = nullptr;
  {
    const SpinGuard guard{lock_};
    woken = open(units);  // As if it had begun: those behind it have their places already.
  }
  wake(woken);
}

bool PostWindow::acknowledge(std::uint64_t total) noexcept {
  Waiting* woken = nullptr;
  {
    const SpinGuard guard{lock_};
    const std::uint64_t more = (total - told_) & kTotalMask;
    if (more > kTotalMask / 2) {
      return true;  // A later one has come before it.
    }
    // The post was counted before it was sent, and this comes after it.
    if (more > posted_.load(std::memory_order_relaxed) - begun_.load(std::memory_order_relaxed)) {
      return false;
    }
    told_ += more;
    woken = open(more);
  }
  wake(woken);
  return true;
}

void PostWindow::lose() noexcept {
  Waiting* all = nullptr;
  {
    const SpinGuard guard{lock_};
    is_lost_ = true;
    all = std::exchange(first_, nullptr);
    for (Waiting* waiting = all; waiting != nullptr; waiting = waiting->next) {
      waiting->is_lost = true;
    }
  }
  wake(all);
}

}  // namespace sterna::rpc
