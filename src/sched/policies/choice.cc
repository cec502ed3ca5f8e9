// Choice: the program says, for each outermost entity that it submits, which policy is to rule it:
// "choice(burst,gang(numa),flat)". All of them have the whole machine; who is not asked for
// anything is ruled by the first. (bubble_submit_to_sched of PM2.)
#include <algorithm>

#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/policies/combinator.h"

namespace sterna::sched {
namespace {

class Choice final : public Combinator {
 public:
  explicit Choice(Policies inner) noexcept : Combinator{std::move(inner)} {}

  [[nodiscard]] bool offers(std::uint32_t key) const noexcept override {
    return std::ranges::any_of(inner_, [&](const auto& one) { return is_meant(*one, key); }) ||
           Combinator::offers(key);
  }

  void submit(View& view, Entity& top) noexcept override { give(view, top, wanted_by(top)); }

  void shake(View& view) noexcept override {
    for (Entity* top = view.first_top(); top != nullptr; top = view.next_top(*top)) {
      if (view.is_ruled_by(*top, *this)) {
        submit(view, *top);
      }
    }
  }

  bool idle(View& view, const topology::Place& processor) noexcept override {
    for (std::size_t i = 0; i < inner_.size(); ++i) {
      if (View its = view_of(view, i); inner_[i]->idle(its, processor)) {
        return true;
      }
    }
    return false;
  }

 private:
  /// By its whole text or by its name alone.
  static bool is_meant(const Policy& policy, std::uint32_t key) noexcept {
    const std::string_view text = policy.text();
    return key == policy_key(text) || key == policy_key(text.substr(0, text.find('(')));
  }

  [[nodiscard]] std::size_t wanted_by(const Entity& top) const noexcept {
    std::size_t index = 0;
    while (index < inner_.size() && !is_meant(*inner_[index], top.wanted_policy) &&
           !inner_[index]->offers(top.wanted_policy)) {
      ++index;
    }
    return index % inner_.size();
  }
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  auto inner = make_policies(arguments, 0);
  if (!inner) {
    return inner.error();
  }
  if (inner.value().empty()) {
    return unexpected_argument("choice", "", kChoicePolicy.arguments);
  }
  return try_make<Policy, Choice>(std::move(inner.value()));
}

}  // namespace

std::uint32_t policy_key(std::string_view text) noexcept {
  std::uint32_t key = 2'166'136'261U;  // FNV-1a, without the spaces.
  for (const char c : text) {
    key = c == ' ' ? key : (key ^ static_cast<std::uint8_t>(c)) * 16'777'619U;
  }
  return key != 0 ? key : 1;
}

constinit const PolicyEntry kChoicePolicy{
    .name = "choice",
    .arguments = "POLICY,...",
    .summary = "the program says which policy a bubble is submitted to",
    .make = make,
};

}  // namespace sterna::sched
