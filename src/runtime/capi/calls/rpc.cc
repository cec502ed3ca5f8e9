// rpc.h: the services of the program, and their threads.
#include "runtime/capi/calls/rpc.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <sterna/bubble.h>

#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/calls/rpc_service.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/this_thread.h"

namespace sterna::runtime::capi {
namespace {

constexpr std::size_t kServiceStackBytes = 248 << 10;
constexpr std::uint64_t kLookNs = 50'000;

/// The list is written before sterna_start by the initial thread, constant from then on.
struct Services {
  std::vector<std::unique_ptr<Registered>> list;
  bool is_locked = false;
};

Services& services() {
  // Never destroyed: services may run until the process ends.
  static Services* const all = new Services;
  return *all;
}

Registered* find_service(std::string_view name) noexcept {
  const auto found =
      std::ranges::find_if(services().list, [&](const auto& one) { return one->name == name; });
  return found == services().list.end() ? nullptr : found->get();
}

/// What a new thread of a service does first: it is the program's code to the scheduler.
void begin(void* body) {
  const RuntimeScope scope;
  const rpc::ThreadBody what = *static_cast<const rpc::ThreadBody*>(body);
  what.entry(what.argument);
}

Error refusal(const Registered& self, sterna_status status) {
  char text[256];
  (void)sterna_error_detail(text, sizeof text);
  return {status == STERNA_OUT_OF_MEMORY ? Errc::out_of_memory : Errc::invalid_argument,
          fmt::format("service {} gets no thread: {}{}{}", self.name, sterna_status_text(status),
                      text[0] == '\0' ? "" : ": ", text)};
}

Result<> spawn_ready(const ReadyPlan& plan, rpc::ThreadBody& body) noexcept {
  auto made = spawn(*program(), plan.options, plan.extras, begin, &body);
  return made ? Result<>{Done{}} : made.error();
}

/// By the plan, which is checked now: as all of them once, and those with a bubble or a name of
/// their own each time.
Result<> spawn_planned(Registered& self, const rpc::ThreadWish& wish, rpc::ThreadBody& body) {
  ThreadPlan plan;
  std::uint32_t version = 0;
  {
    const SpinGuard guard{self.lock};
    plan = self.plan;
    version = self.plan_version;
    self.bubble_users += plan.options.bubble != nullptr ? 1 : 0;
  }
  sterna_thread_options& options = plan.options;
  const bool has_own_name = plan.name[0] != '\0';
  options.name = has_own_name ? plan.name.data() : self.name.c_str();
  options.place = plan.place[0] != '\0' ? plan.place.data() : nullptr;
  if (options.stack_bytes == 0) {
    options.stack_bytes = kServiceStackBytes;
  }
  const sterna_thread_options as_registered = options;
  if (wish.stack_kib != 0) {
    options.stack_bytes = std::size_t{wish.stack_kib} << 10;
  }
  if (wish.priority != rpc::kAsRegistered) {
    options.priority = wish.priority;
  }
  if (options.bubble != nullptr) {
    options.is_detached = 1;  // Else it would be kept until the bubble is joined.
    const sterna_status status = sterna_bubble_add_thread(options.bubble, &options, begin, &body);
    {
      const SpinGuard guard{self.lock};
      --self.bubble_users;
    }
    return status == STERNA_SUCCESS ? Result<>{Done{}} : refusal(self, status);
  }
  ReadyPlan ready{.options = {}, .extras = extras_of(options)};
  if (const sterna_status status = convert(options, *program()->team, ready.options);
      status != STERNA_SUCCESS) {
    return refusal(self, status);
  }
  ready.options.detached = true;
  ready.options.is_user_code = true;
  ready.options.may_wait = false;
  if (!has_own_name) {
    ReadyPlan kept = ready;
    kept.options.stack_bytes = as_registered.stack_bytes;
    kept.options.priority = static_cast<std::uint8_t>(as_registered.priority);
    const SpinGuard guard{self.lock};
    if (version == self.plan_version) {
      self.ready = kept;
    }
  }
  return spawn_ready(ready, body);
}

Result<> spawn_service(void* registered, const rpc::ThreadWish& wish, rpc::ThreadBody& body) {
  auto& self = *static_cast<Registered*>(registered);
  std::optional<ReadyPlan> ready;
  {
    const SpinGuard guard{self.lock};
    ready = self.ready;
  }
  if (!ready) [[unlikely]] {
    return spawn_planned(self, wish, body);
  }
  // As rpc/ has checked them.
  if (wish.stack_kib != 0) {
    ready->options.stack_bytes = std::size_t{wish.stack_kib} << 10;
  }
  if (wish.priority != rpc::kAsRegistered) {
    ready->options.priority = wish.priority;
  }
  return spawn_ready(*ready, body);
}

sterna_status check_thread(const sterna_thread_options& options) noexcept {
  const bool is_sensible = options.size_bytes == sizeof options && options.stack == nullptr &&
                           options.priority <= STERNA_PRIORITY_MAX &&
                           options.stack_bytes <= kStackBytesMax;
  return is_sensible ? STERNA_SUCCESS
                     : refuse(STERNA_INVALID_ARGUMENT,
                              "options of a service's thread: made by "
                              "STERNA_THREAD_OPTIONS_DEFAULT, no stack of its own, priority and "
                              "stack_bytes as thread.h says");
}

}  // namespace

void add_services(rpc::Rpc& rpc) {
  for (const auto& one : services().list) {
    {
      const SpinGuard guard{one->lock};
      one->ready.reset();  // Of the program before, which had other workers.
    }
    rpc::ServiceEntry entry;
    entry.name = one->name;
    entry.run_in = one->kind == STERNA_RPC_QUICK ? rpc::RunIn::poll : rpc::RunIn::thread;
    entry.answerer = serve;
    entry.context = one.get();
    entry.takes_parts = one->unpacks;
    entry.spawn = spawn_service;
    rpc.add_service(std::move(entry), kServiceSpace);
  }
}

void forget_bubble(const sterna_bubble& bubble) noexcept {
  for (const auto& one : services().list) {
    bool is_used = false;
    do {
      {
        const SpinGuard guard{one->lock};
        if (one->plan.options.bubble == &bubble) {
          one->plan.options.bubble = nullptr;
          ++one->plan_version;
        }
        is_used = one->bubble_users != 0;  // Of this one perhaps: until it is refused there.
      }
      if (is_used) {
        threads::sleep_for(kLookNs);
      }
    } while (is_used);
  }
}

void lock_services() noexcept {
  services().is_locked = true;
}

}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using sterna::runtime::RuntimeScope;

sterna_status sterna_rpc_register(const char* name, sterna_rpc_kind kind,
                                  sterna_rpc_service service, void* context) noexcept {
  sterna_rpc_service_options options = STERNA_RPC_SERVICE_OPTIONS_DEFAULT;
  options.kind = kind;
  return sterna_rpc_register_with(name, &options, service, context);
}

sterna_status sterna_rpc_register_with(const char* name, const sterna_rpc_service_options* options,
                                       sterna_rpc_service service, void* context) noexcept {
  const RuntimeScope scope;
  if (capi::is_mobile()) {
    return STERNA_UNSUPPORTED;
  }
  capi::Services& all = capi::services();
  if (all.is_locked) {
    return capi::refuse(STERNA_BUSY, "services are registered before sterna_start");
  }
  if (name == nullptr || service == nullptr || options == nullptr ||
      options->size_bytes != sizeof *options || options->unpacks > 1 ||
      (options->kind != STERNA_RPC_QUICK && options->kind != STERNA_RPC_THREAD) ||
      capi::find_service(name) != nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "a service has a name of its own, a function, and options made by "
                        "STERNA_RPC_SERVICE_OPTIONS_DEFAULT");
  }
  return capi::guarded([&] {
    auto made = std::make_unique<capi::Registered>();
    made->name = name;
    made->service = service;
    made->context = context;
    made->kind = options->kind;
    made->unpacks = options->unpacks != 0;
    all.list.push_back(std::move(made));
    const sterna_status status = sterna_rpc_set_thread(name, &options->thread);
    if (status != STERNA_SUCCESS) {
      all.list.pop_back();
    }
    return status;
  });
}

sterna_status sterna_rpc_set_thread(const char* name,
                                    const sterna_thread_options* options) noexcept {
  const RuntimeScope scope;
  if (name == nullptr || options == nullptr) {
    return capi::refuse_argument(__func__);
  }
  capi::Registered* const service = capi::find_service(name);
  if (service == nullptr) {
    return capi::refuse(STERNA_NOT_FOUND, "no service {} is registered here", name);
  }
  if (const sterna_status bad = capi::check_thread(*options); bad != STERNA_SUCCESS) {
    return bad;
  }
  capi::ThreadPlan plan;
  if (!plan.keep(*options)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "{}: no place has such a name", __func__);
  }
  const sterna::SpinGuard guard{service->lock};
  service->plan = plan;
  ++service->plan_version;
  service->ready.reset();
  return STERNA_SUCCESS;
}
