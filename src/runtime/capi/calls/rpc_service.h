// rpc.h of the program: what is known of a service.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <sterna/rpc.h>

#include "base/annotate.h"
#include "base/spin_lock.h"
#include "rpc/rpc.h"
#include "runtime/capi/threads/handle.h"
#include "threads/thread.h"

namespace sterna::runtime::capi {

/// How threads of a service are made, with memory of its own for the names.
struct ThreadPlan {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  std::array<char, threads::kNameBytes> name{};
  std::array<char, 64> place{};

  /// False: the place has no such name.
  bool keep(const sterna_thread_options& from) noexcept {
    options = from;
    const std::string_view wanted = from.name == nullptr ? "" : from.name;
    name = {};
    std::ranges::copy(wanted.substr(0, name.size() - 1), name.begin());
    place = {};
    const std::string_view where = from.place == nullptr ? "" : from.place;
    if (where.size() >= place.size()) {
      return false;
    }
    std::ranges::copy(where, place.begin());
    return true;
  }
};

/// The plan of a service whose threads have its name, once it has been checked.
struct ReadyPlan {
  threads::ThreadOptions options;
  ThreadExtras extras;
};

/// Constant once the program has started, but for the plan.
struct Registered {
  std::string name;
  sterna_rpc_service service = nullptr;
  void* context = nullptr;
  sterna_rpc_kind kind = STERNA_RPC_QUICK;
  bool unpacks = false;
  SpinLock lock;
  ThreadPlan plan STERNA_GUARDED_BY(lock);
  std::uint32_t plan_version STERNA_GUARDED_BY(lock) = 0;
  std::uint32_t bubble_users STERNA_GUARDED_BY(lock) = 0;  // Who uses the bubble of a plan now.
  // What the plan has come to, as long as the program runs and the plan is the same: mostly.
  std::optional<ReadyPlan> ready STERNA_GUARDED_BY(lock);
};

/// As rpc::Answerer; `registered` is one.
void serve(void* registered, const rpc::Request& request, rpc::Answer& answer);

}  // namespace sterna::runtime::capi
