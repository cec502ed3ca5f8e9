// Leases of address ranges, by a remote call to node 0.
#include "runtime/leases.h"

#include "base/wire.h"

namespace sterna::runtime {
namespace {

constexpr std::string_view kLeaseService = "memory.lease";

rpc::Bytes encode_number(std::uint32_t number) {
  rpc::Bytes bytes;
  wire::Writer writer{bytes, 4};
  writer.u32(number);
  return bytes;
}

Result<std::uint32_t> decode_number(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  const std::uint32_t number = reader.u32();
  if (!reader.finished()) {
    return Error{Errc::malformed, "a lease of addresses that cannot be read"};
  }
  return number;
}

}  // namespace

Leases::Leases(std::uint32_t node_index, std::uint32_t node_count) noexcept
    : node_index_{node_index} {
  for (std::atomic<std::uint32_t>& next : next_) {
    next.store(node_count, std::memory_order_relaxed);
  }
}

void Leases::connect(rpc::Rpc& rpc) {
  rpc_ = &rpc;
  rpc.add_service(kLeaseService, rpc::RunIn::poll, on_lease, this);
}

Result<std::uint32_t> Leases::next(std::uint32_t stack_class) noexcept {
  if (stack_class >= next_.size()) {
    return Error{Errc::invalid_argument, "no such class of stacks"};
  }
  // Relaxed: the number itself is all that is handed out.
  return next_[stack_class].fetch_add(1, std::memory_order_relaxed);
}

Result<std::uint32_t> Leases::lease(std::uint32_t stack_class) noexcept {
  if (node_index_ == 0 || rpc_ == nullptr) {
    return next(stack_class);
  }
  Result<rpc::Bytes> answer = rpc_->call(0, kLeaseService, encode_number(stack_class));
  if (!answer) {
    return answer.error();
  }
  return decode_number(answer.value());
}

Result<rpc::Bytes> Leases::on_lease(void* self, const rpc::Request& request) {
  Result<std::uint32_t> stack_class = decode_number(request.arguments);
  if (!stack_class) {
    return stack_class.error();
  }
  Result<std::uint32_t> range = static_cast<Leases*>(self)->next(stack_class.value());
  if (!range) {
    return range.error();
  }
  return encode_number(range.value());
}

}  // namespace sterna::runtime
