// Memory of who asks a node for something and waits for the answer: the node reads it by itself, as
// it does announced messages (read.cc), but by the request alone. Nobody announces anything, or
// answers that it was read: the reply says so.
#include "net/core.h"
#include "net/transfer/job.h"
#include "net/transport.h"

namespace sterna::net {

bool Transport::are_better_read(std::uint32_t node, std::uint64_t bytes,
                                std::uint64_t shortest) noexcept {
  Gate& gate = core_->gates_[node];
  return gate.is_direct() && bytes <= kReadAtOnceBytesMax && shortest > gate.eager_bytes() &&
         shortest >= gate.direct_from_bytes() && !gate.lessons().is_call_next();
}

void Transport::will_be_read(const void* data, std::uint64_t bytes) noexcept {
  if (core_->large_pages_ != nullptr) {
    core_->large_pages_->are_copied(static_cast<const std::byte*>(data), bytes, true);
  }
}

Result<> Transport::read_from(std::uint32_t node, std::byte* into, RemotePiece from) noexcept {
  Gate& gate = core_->gates_[node];
  Channel* const channel = gate.is_direct() ? gate.channel() : nullptr;
  if (channel == nullptr) {
    return Errc::unsupported;
  }
  const bool is_measured = gate.lessons().is_read_next(from.bytes);
  const std::uint64_t start_ns = is_measured ? core_->clock_.now_ns() : 0;
  Result<> read = channel->read_remote(into, from);
  if (!read) {
    return read;
  }
  if (is_measured) {
    gate.measured_direct(from.bytes, core_->clock_.now_ns() - start_ns);
  }
  core_->counters_.direct_bytes.add(from.bytes);
  return read;
}

}  // namespace sterna::net
