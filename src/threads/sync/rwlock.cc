// The lock is handed over: who is taken off a list holds it already, so nobody passes it by.
#include "threads/sync/rwlock.h"

#include "threads/control/cancel.h"
#include "threads/this_thread.h"

namespace sterna::threads {
namespace {

bool has_it(Wake wake) noexcept {
  if (wake == Wake::cancelled) [[unlikely]] {
    end_cancelled(*self());
  }
  return wake != Wake::timed_out;
}

}  // namespace

bool RwLock::may_read() const noexcept {
  return !has_writer_ && (prefers(RwPreference::readers) || writers_.empty());
}

WaitNode* RwLock::hand_over(bool after_writer) noexcept {
  if (has_writer_ || reader_count_ != 0) {
    return nullptr;
  }
  const bool readers_first =
      prefers(RwPreference::readers) || (prefers(RwPreference::fair) && after_writer);
  if (!writers_.empty() && (readers_.empty() || !readers_first)) {
    has_writer_ = true;
    WaitNode* const writer = writers_.pop_front();
    writer->next = nullptr;
    return writer;
  }
  WaitNode* const readers = readers_.take_all();
  for (const WaitNode* node = readers; node != nullptr; node = node->next) {
    ++reader_count_;
  }
  return readers;
}

bool RwLock::lock_shared(std::uint64_t deadline_ns) noexcept {
  WaitNode node;
  return has_it(wait_in(
      readers_, lock_, node,
      [&]() noexcept {
        const bool may = may_read();
        reader_count_ += may ? 1 : 0;
        return !may;
      },
      deadline_ns, true));
}

bool RwLock::lock(std::uint64_t deadline_ns) noexcept {
  WaitNode node;
  const Wake wake = wait_in(
      writers_, lock_, node,
      [&]() noexcept {
        const bool may = !has_writer_ && reader_count_ == 0;
        has_writer_ = has_writer_ || may;
        return !may;
      },
      deadline_ns, true);
  if (wake == Wake::timed_out || wake == Wake::cancelled) {
    // Readers may have waited for us alone.
    WaitNode* chain = nullptr;
    {
      const SpinGuard guard{lock_};
      if (may_read() && !readers_.empty()) {
        chain = readers_.take_all();
        for (const WaitNode* one = chain; one != nullptr; one = one->next) {
          ++reader_count_;
        }
      }
    }
    signal_chain(chain);
  }
  return has_it(wake);
}

bool RwLock::try_lock_shared() noexcept {
  const SpinGuard guard{lock_};
  const bool may = may_read();
  reader_count_ += may ? 1 : 0;
  return may;
}

bool RwLock::try_lock() noexcept {
  const SpinGuard guard{lock_};
  const bool may = !has_writer_ && reader_count_ == 0;
  has_writer_ = has_writer_ || may;
  return may;
}

bool RwLock::unlock_shared() noexcept {
  WaitNode* chain = nullptr;
  {
    const SpinGuard guard{lock_};
    if (reader_count_ == 0) {
      return false;
    }
    --reader_count_;
    chain = hand_over(false);
  }
  signal_chain(chain);
  return true;
}

bool RwLock::unlock() noexcept {
  WaitNode* chain = nullptr;
  {
    const SpinGuard guard{lock_};
    if (!has_writer_) {
      return false;
    }
    has_writer_ = false;
    chain = hand_over(true);
  }
  signal_chain(chain);
  return true;
}

bool RwLock::is_used() noexcept {
  const SpinGuard guard{lock_};
  return has_writer_ || reader_count_ != 0 || !readers_.empty() || !writers_.empty();
}

}  // namespace sterna::threads
