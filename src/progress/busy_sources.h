// Where events come from: the next one is likely to come from where the last one came from, or,
// where the parts of messages come by several ways, from where the one before that did.
#pragma once

#include <cstdint>

#include "progress/source.h"

namespace sterna::progress {

/// Guard: the poller.
class BusySources {
 public:
  /// The source had something.
  void had(Source& source) noexcept {
    if (last_ == &source) {
      in_row_ += in_row_ < kInRowMax ? 1 : 0;
      return;
    }
    other_ = last_;
    last_ = &source;
    in_row_ = 0;
  }
  void forget(const Source& source) noexcept {
    other_ = other_ == &source ? nullptr : other_;
    if (last_ == &source) {
      last_ = other_;
      other_ = nullptr;
    }
  }

  /// The last that had something, or null.
  [[nodiscard]] Source* last() const noexcept { return last_; }
  /// Which to ask next of those that are asked one by one: in turn, while two have something in
  /// turn. Null: none is known.
  [[nodiscard]] Source* of_round(std::uint32_t round) const noexcept {
    return round % 2 == 0 && other_ != nullptr && in_row_ < kInRowMax ? other_ : last_;
  }

 private:
  static constexpr std::uint32_t kInRowMax = 8;

  Source* last_ = nullptr;
  Source* other_ = nullptr;  // The one before it.
  std::uint32_t in_row_ = 0;  // What it had since the other one had something.
};

}  // namespace sterna::progress
