// policy.h: policies of C programs.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/capi/bubbles/policy_view.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"

namespace sched = sterna::sched;
namespace capi = sterna::runtime::capi;
using capi::to_c;
using sterna::runtime::UserScope;

namespace {

// What a policy had at least, ever.
constexpr std::size_t kSizeMin = offsetof(sterna_policy, arguments);

/// A policy whose events are functions of a program: one instance.
class ForeignPolicy final : public sched::Policy {
 public:
  ForeignPolicy(const sterna_policy& calls, std::string arguments) noexcept
      : calls_{calls}, arguments_{std::move(arguments)}, data_{calls.data} {}
  ~ForeignPolicy() override {
    if (is_instance_ && calls_.destroy != nullptr) {
      const UserScope user;
      calls_.destroy(data_);
    }
  }
  ForeignPolicy(const ForeignPolicy&) = delete;
  ForeignPolicy& operator=(const ForeignPolicy&) = delete;

  // Not when it is made: texts are also made into policies to see whether they are written well.
  [[nodiscard]] sterna::Result<> prepare(const sterna::topology::Topology&) override {
    if (calls_.instantiate == nullptr || is_instance_) {
      return sterna::Done{};
    }
    const sterna_status status = instantiate();
    if (status != STERNA_SUCCESS) {
      return sterna::Error{status == STERNA_OUT_OF_MEMORY ? sterna::Errc::out_of_memory
                                                          : sterna::Errc::invalid_argument,
                           "sched: policy " + std::string{calls_.name} +
                               " refuses to rule with \"" + arguments_ + "\" in its brackets (" +
                               sterna_status_text(status) + "); it takes " +
                               (calls_.arguments != nullptr ? calls_.arguments : "nothing")};
    }
    is_instance_ = true;
    return sterna::Done{};
  }

  void submit(sched::View& view, sched::Entity& top) noexcept override {
    calls_.submit(to_c(view), to_c(&top), data_);
  }
  void grow(sched::View& view, sched::Entity& top) noexcept override {
    if (calls_.grow != nullptr) {
      calls_.grow(to_c(view), to_c(&top), data_);
    }
  }
  void shake(sched::View& view) noexcept override {
    if (calls_.shake != nullptr) {
      calls_.shake(to_c(view), data_);
    } else {
      Policy::shake(view);
    }
  }
  [[nodiscard]] bool wants_meet() const noexcept override { return calls_.meet != nullptr; }
  bool meet(sched::View& view, sched::Entity& entity,
            const sterna::topology::Place& processor) noexcept override {
    return calls_.meet != nullptr &&
           calls_.meet(to_c(view), to_c(&entity), entity.target_place(), processor.id, data_) != 0;
  }
  [[nodiscard]] bool wants_wake() const noexcept override { return calls_.wake != nullptr; }
  void wake(sched::View& view, sched::Entity& thread) noexcept override {
    if (calls_.wake != nullptr) {
      calls_.wake(to_c(view), to_c(&thread), data_);
    }
  }
  bool idle(sched::View& view, const sterna::topology::Place& processor) noexcept override {
    return calls_.idle != nullptr && calls_.idle(to_c(view), processor.id, data_) != 0;
  }
  void tick(sched::View& view, sched::Bubble* expired) noexcept override {
    if (calls_.tick != nullptr) {
      calls_.tick(to_c(view), to_c(expired), data_);
    }
  }
  [[nodiscard]] std::uint64_t tick_ns() const noexcept override {
    return calls_.tick != nullptr ? calls_.tick_ns : 0;
  }
  void phase(sched::View& view, std::uint32_t number) noexcept override {
    if (calls_.phase != nullptr) {
      calls_.phase(to_c(view), number, data_);
    }
  }
  void leave(sched::View& view, sched::Entity& entity) noexcept override {
    if (calls_.leave != nullptr) {
      calls_.leave(to_c(view), to_c(&entity), data_);
    }
  }
  [[nodiscard]] bool wants_leave() const noexcept override { return calls_.leave != nullptr; }

 private:
  [[nodiscard]] sterna_status instantiate() noexcept {
    const UserScope user;
    return calls_.instantiate(calls_.data, arguments_.c_str(), &data_);
  }

  const sterna_policy& calls_;
  const std::string arguments_;
  void* data_;  // Constant after prepare().
  bool is_instance_ = false;
};

struct Registered {
  sterna_policy calls{};
  sched::PolicyEntry entry;
};

sterna::Result<std::unique_ptr<sched::Policy>> make_foreign(const void* calls,
                                                            std::string_view arguments) {
  return sterna::try_make<sched::Policy, ForeignPolicy>(*static_cast<const sterna_policy*>(calls),
                                                        std::string{arguments});
}

/// What is wrong with it; null: nothing.
const char* complaint_about(const sterna_policy& calls) noexcept {
  if (calls.name == nullptr || calls.submit == nullptr) {
    return "a policy has a name and submit";
  }
  const bool takes_arguments = calls.arguments != nullptr && calls.arguments[0] != '\0';
  return calls.instantiate == nullptr && (calls.destroy != nullptr || takes_arguments)
             ? "a policy with destroy or arguments has instantiate: it makes what destroy ends, "
               "and "
               "reads the arguments"
             : nullptr;
}

}  // namespace

sterna_status sterna_policy_register(const sterna_policy* policy) noexcept {
  if (policy == nullptr || policy->size_bytes < kSizeMin || policy->size_bytes > sizeof *policy) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "a policy has size_bytes: sizeof(sterna_policy), at most {} here",
                        sizeof *policy);
  }
  return capi::guarded([&] {
    auto registered = std::make_unique<Registered>();
    std::memcpy(&registered->calls, policy, policy->size_bytes);
    const sterna_policy& calls = registered->calls;
    if (const char* const complaint = complaint_about(calls); complaint != nullptr) {
      return capi::refuse(STERNA_INVALID_ARGUMENT, "{}", complaint);
    }
    registered->entry.name = calls.name;
    registered->entry.summary = calls.summary != nullptr ? calls.summary : "";
    registered->entry.arguments = calls.arguments != nullptr ? calls.arguments : "";
    registered->entry.foreign = &registered->calls;
    registered->entry.make_foreign = make_foreign;
    if (sterna::Result<> added = sched::register_policy(registered->entry); !added) {
      return capi::refuse(
          added.error().code == sterna::Errc::refused ? STERNA_BUSY : STERNA_INVALID_ARGUMENT, "{}",
          added.error().text);
    }
    // Policies are never taken away: sterna_start may come at any time.
    [[maybe_unused]] const Registered* const kept = registered.release();
    return STERNA_SUCCESS;
  });
}
