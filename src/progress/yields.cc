// Those who wait let others have their processor, and learn from that who is there.
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "progress/home.h"
#include "progress/impl.h"
#include "progress/progress.h"

namespace sterna::progress {

const bool& Progress::has_company() const noexcept {
  return impl_->company.is_here();
}

/// Lets others have the processor; where they always want it, the one caller goes home.
void Progress::yield() noexcept {
  if (options_.is_oversubscribed) {
    raw_system_call(SYS_sched_yield);
    return;
  }
  Impl& impl = *impl_;
  if (!impl.is_serial) {
    impl.yield_and_part(impl.beside);
    return;
  }
  const std::uint64_t begin_ns = now_ns();
  raw_system_call(SYS_sched_yield);
  const std::uint64_t end_ns = now_ns();
  impl.company.has_yielded(end_ns - begin_ns);
  if (impl.home.has_yielded(begin_ns, end_ns)) [[unlikely]] {
    go_home(options_.host_index);
  }
}

/// The same of one of several, or of a worker: where others always want its processor, it goes
/// elsewhere.
void Progress::Impl::yield_and_part(HomeWatch& watch) noexcept {
  const std::uint64_t begin_ns = now_ns();
  raw_system_call(SYS_sched_yield);
  const std::uint64_t end_ns = now_ns();
  bool goes = false;
  {
    const SpinGuard guard{beside_lock};
    goes = watch.has_yielded(begin_ns, end_ns);
  }
  if (goes) [[unlikely]] {
    go_elsewhere();
  }
}

void Progress::yield_worker() noexcept {
  impl_->yield_and_part(impl_->workers);
}

}  // namespace sterna::progress
