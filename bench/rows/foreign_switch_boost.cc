// Boost.Context's jump, the fastest there is for any processor.
#include <boost/context/detail/fcontext.hpp>

#include "base/clock.h"
#include "bench/rows/foreign_switch.h"

namespace sterna::bench {
namespace {

namespace context = boost::context::detail;

void bounce(context::transfer_t from) {
  for (;;) {
    from = context::jump_fcontext(from.fctx, nullptr);
  }
}

}  // namespace

double foreign_switch_ns(std::span<std::byte> stack, int count) {
  context::transfer_t other{
      context::make_fcontext(stack.data() + stack.size(), stack.size(), bounce), nullptr};
  const std::uint64_t begin = now_ns();
  for (int i = 0; i < count; ++i) {
    other = context::jump_fcontext(other.fctx, nullptr);
  }
  return static_cast<double>(now_ns() - begin) / (2.0 * count);
}

}  // namespace sterna::bench
