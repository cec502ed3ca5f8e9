// The long pieces of a call as its head names them. Internal to rpc/.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "rpc/call.h"

namespace sterna::rpc {

/// On the stack where they are few, as of most calls.
class PartList {
 public:
  /// Throws bad_alloc.
  explicit PartList(std::span<const OutPart> parts) : count_{parts.size()} {
    if (count_ > few_.size()) [[unlikely]] {
      many_.resize(count_);
    }
    std::ranges::transform(parts, all().begin(), &OutPart::part);
  }
  [[nodiscard]] std::span<Part> all() noexcept {
    return many_.empty() ? std::span{few_}.first(count_) : std::span{many_};
  }

 private:
  std::array<Part, 4> few_;
  std::vector<Part> many_;
  const std::size_t count_;
};

}  // namespace sterna::rpc
