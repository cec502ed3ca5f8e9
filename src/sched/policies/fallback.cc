// Fall-back chain (paper 003 §3.4.4): the first policy places; a processor without work asks one
// after the other until one has something for it: "fallback(burst,steal)". All rule the same
// entities.
#include <algorithm>

#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/policies/combinator.h"

namespace sterna::sched {
namespace {

class Fallback final : public Combinator {
 public:
  explicit Fallback(Policies inner) noexcept : Combinator{std::move(inner)} {}

  // Those inside see what is ours: the view is passed on as it is.
  void submit(View& view, Entity& top) noexcept override { inner_.front()->submit(view, top); }
  void grow(View& view, Entity& top) noexcept override { inner_.front()->grow(view, top); }
  void shake(View& view) noexcept override { inner_.front()->shake(view); }
  bool meet(View& view, Entity& entity, const topology::Place& processor) noexcept override {
    return inner_.front()->meet(view, entity, processor);
  }
  void wake(View& view, Entity& thread) noexcept override { inner_.front()->wake(view, thread); }
  void tick(View& view, Bubble* expired) noexcept override { inner_.front()->tick(view, expired); }
  [[nodiscard]] std::uint64_t tick_ns() const noexcept override {
    return inner_.front()->tick_ns();
  }
  [[nodiscard]] bool offers(std::uint32_t key) const noexcept override {
    return inner_.front()->offers(key);
  }
  bool idle(View& view, const topology::Place& processor) noexcept override {
    return std::ranges::any_of(inner_, [&](const auto& one) { return one->idle(view, processor); });
  }
  void phase(View& view, std::uint32_t number) noexcept override {
    inner_.front()->phase(view, number);
  }
  void adjust(View& view, Entity& entity) noexcept override {
    inner_.front()->adjust(view, entity);
  }
  void leave(View& view, Entity& entity) noexcept override {
    for (const auto& one : inner_) {
      one->leave(view, entity);
    }
  }
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  auto inner = make_policies(arguments, 0);
  if (!inner) {
    return inner.error();
  }
  if (inner.value().empty()) {
    return unexpected_argument("fallback", "", kFallbackPolicy.arguments);
  }
  return try_make<Policy, Fallback>(std::move(inner.value()));
}

}  // namespace

constinit const PolicyEntry kFallbackPolicy{
    .name = "fallback",
    .arguments = "POLICY,...",
    .summary = "the first policy places; processors without work ask the next ones, too",
    .make = make,
};

}  // namespace sterna::sched
