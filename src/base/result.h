// A value or the reason why there is none. A subset of std::expected (C++23), with its names.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace sterna {

/// Why an operation failed. These are for the operator; broken rules are for check().
enum class Errc : std::uint8_t {
  invalid_argument,  // What the user wrote cannot be meant.
  out_of_memory,
  unreachable,  // No such peer, or no way to it.
  unsupported,  // This system or build cannot do it.
  refused,      // The other side said no, and why.
  closed,       // The peer, the link or the job is gone.
  timed_out,
  malformed,  // Bytes from outside that break their format.
  system,     // The operating system said no; the text has its words.
};

/// `text` says who, what, where, and what to do: it is printed as it is.
struct Error {
  Errc code;
  std::string text;
};

/// The value of a success that has nothing to say.
struct Done {};

template <typename T = Done>
class [[nodiscard]] Result {
 public:
  // Implicit, so that a function returns either a value or an error.
  // NOLINTBEGIN(google-explicit-constructor)
  Result(T value) noexcept : state_{std::in_place_index<0>, std::move(value)} {}
  Result(Errc code) noexcept : state_{std::in_place_index<1>, Error{code, {}}} {}
  Result(Error error) noexcept : state_{std::in_place_index<1>, std::move(error)} {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] T& value() noexcept {
    check(has_value(), "value() is called on a success only");
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] const Error& error() const noexcept {
    check(!has_value(), "error() is called on a failure only");
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// A new Object behind its Interface, or out_of_memory.
template <typename Interface, typename Object, typename... Args>
Result<std::unique_ptr<Interface>> try_make(Args&&... args) noexcept {
  std::unique_ptr<Interface> object{new (std::nothrow) Object(std::forward<Args>(args)...)};
  if (object == nullptr) {
    return Errc::out_of_memory;
  }
  return object;
}

}  // namespace sterna
