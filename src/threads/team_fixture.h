// For tests: a team with its own iso space.
#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "memory/iso_space.h"
#include "threads/sanitizer.h"
#include "threads/team.h"
#include "threads/this_thread.h"

namespace sterna::threads {

inline constexpr bool kSanitizedTests = kSanitized;  // They run 10 times slower.

/// All calls check their success: a test that cannot set up its team cannot go on.
class TestTeam {
 public:
  explicit TestTeam(std::uint32_t worker_count, TeamOptions options = {}) {
    auto opened = memory::IsoSpace::open({});
    check(opened.has_value(), "the iso space opens");
    space_ = std::move(opened.value());
    options.worker_count = worker_count;
    options.iso_space = space_.get();
    auto team = Team::open(options);
    check(team.has_value(), "the team opens");
    team_ = std::move(team.value());
  }

  Team* operator->() const noexcept { return team_.get(); }
  Team& operator*() const noexcept { return *team_; }
  memory::IsoSpace& space() const noexcept { return *space_; }

  /// Starts a thread that runs a callable, which outlives it.
  template <typename Function>
  Thread* go(Function& function, const ThreadOptions& options = {}) const {
    auto thread = team_->spawn(
        options, [](void* callable) { (*static_cast<Function*>(callable))(); }, &function);
    check(thread.has_value(), "the thread starts");
    return thread.value();
  }

  /// Runs a callable on a user thread and waits for its end.
  template <typename Function>
  void run(Function&& function) const {
    join(*go(function));
  }

 private:
  std::unique_ptr<memory::IsoSpace> space_;
  std::unique_ptr<Team> team_;
};

}  // namespace sterna::threads
