// A callable that is borrowed for the duration of a call: two words, no allocation.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace sterna {

template <typename Signature>
class FunctionRef;

/// Must not outlive the callable: use it for parameters only, or state who keeps the callable.
template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
    requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> &&
             std::is_invocable_r_v<R, F&, Args...> &&
             !std::is_function_v<std::remove_reference_t<F>>)
  // Implicit, so that a lambda is written where it is passed.
  FunctionRef(F&& callable) noexcept  // NOLINT(google-explicit-constructor)
      : object_{const_cast<void*>(static_cast<const void*>(std::addressof(callable)))},
        call_{[](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }} {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace sterna
