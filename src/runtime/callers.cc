// Who calls the runtime of a process, one thread or several, and who progresses in its place.
#include "base/processors.h"
#include "runtime/runtime.h"
#include "runtime/settings.h"
#include "threads/queues/biased_lock.h"

namespace sterna::runtime {

void Runtime::serve_one_caller() noexcept {
  if (!may_have_threads_) {
    transport_->serve_one_caller(true);
    progress_->serve_one_caller(true);
  }
}

bool Runtime::serve_one_caller_until_shared(progress::OneCaller::Share shared,
                                            void* argument) noexcept {
  if (may_have_threads_ || settings_.text(kOneCaller) != "on" ||
      !threads::register_process_barrier()) {
    return false;
  }
  serve_one_caller();
  shared_ = shared;
  shared_argument_ = argument;
  one_caller_ = std::make_unique<progress::OneCaller>(share, this);
  progress_->give_way_for(*one_caller_);
  progress::process_caller.store(one_caller_.get(), std::memory_order_release);
  return true;
}

void Runtime::share(void* runtime) noexcept {
  Runtime& self = *static_cast<Runtime*>(runtime);
  Background* const beside = self.background_.get();
  if (beside != nullptr) {
    beside->exclude();
  }
  self.transport_->serve_one_caller(false);
  self.progress_->serve_one_caller(false);
  self.shared_(self.shared_argument_);
  if (beside != nullptr) {
    process_background.store(nullptr, std::memory_order_relaxed);
    beside->share();
  }
  // Last: who finds none calls with locks.
  progress::process_caller.store(nullptr, std::memory_order_release);
}

void Runtime::progress_in_background(bool is_shared) noexcept {
  const bool is_off = settings_.text(kBackground) != "on" || job().node_count < 2;
  if (is_off || may_have_threads_ || background_ != nullptr) {
    return;
  }
  background_ = std::make_unique<Background>(
      Background::Options{progress_.get(), transport_.get(), process_context_->endpoint, is_shared,
                          background_tick_ns()});
  if (!is_shared) {
    background_->begin_inside();
    process_background.store(background_.get(), std::memory_order_relaxed);
  }
}

/// 0 where the thread has a processor of its own. Else the more processes share one, the rarer: all
/// of them together look once a while.
std::uint64_t Runtime::background_tick_ns() const noexcept {
  constexpr std::uint64_t kTickNs = 4'000'000;
  const std::uint64_t nodes = control_->host().nodes.size();
  const std::uint64_t processors = usable_processors();
  return nodes > processors || processors < 2 ? kTickNs * ((nodes + processors - 1) / processors)
                                              : 0;
}

void Runtime::end_background() noexcept {
  process_background.store(nullptr, std::memory_order_relaxed);
  background_.reset();
}

void Runtime::serve_any_caller() noexcept {
  if (one_caller_ != nullptr) {
    one_caller_->share();
  }
  end_background();  // Workers poll, and the ticker while they compute.
  may_have_threads_ = true;
  if (progress_->serves_one_caller()) {
    transport_->serve_one_caller(false);
    progress_->serve_one_caller(false);
  }
}

}  // namespace sterna::runtime
