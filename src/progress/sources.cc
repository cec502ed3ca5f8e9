// Sources that come and go while others poll.
#include <algorithm>

#include <sys/epoll.h>

#include "base/check.h"
#include "progress/impl.h"
#include "progress/progress.h"
#include "progress/source.h"

namespace sterna::progress {

Result<> Progress::add(Source& source) noexcept {
  if (const int fd = source.fd(); fd >= 0) {
    epoll_event wanted{.events = EPOLLIN, .data = {.fd = fd}};
    const long added =
        system_call([&] { return ::epoll_ctl(impl_->epoll.get(), EPOLL_CTL_ADD, fd, &wanted); });
    if (added < 0) {
      return system_error("progress: cannot watch the descriptor of a source",
                          static_cast<int>(-added));
    }
  }
  {
    const SpinGuard guard{impl_->added_lock};
    impl_->added.push_back(&source);
    impl_->has_added.store(true, std::memory_order_relaxed);
  }
  wake();  // Who sleeps now did not prepare this source.
  return Done{};
}

void Progress::remove(Source& source) noexcept {
  impl_->take();
  impl_->take_added();
  const auto place = std::find(impl_->sources.begin(), impl_->sources.end(), &source);
  check(place != impl_->sources.end(), "a source is removed once, after it was added");
  impl_->sources.erase(place);
  impl_->busy.forget(source);
  if (std::erase(impl_->prepared, &source) != 0) {
    source.end_sleep();
  }
  const int fd = source.fd();
  impl_->give_back();
  if (fd >= 0) {
    // It may be closed already, which removes it too.
    (void)system_call([&] { return ::epoll_ctl(impl_->epoll.get(), EPOLL_CTL_DEL, fd, nullptr); });
  }
}

}  // namespace sterna::progress
