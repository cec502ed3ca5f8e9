// Leases of address ranges, by a remote call to node 0.
#include "runtime/leases.h"

#include "base/wire.h"

namespace sterna::runtime {
namespace {

constexpr std::string_view kLeaseService = "memory.lease";
constexpr std::string_view kLeaseAheadService = "memory.lease_ahead";
constexpr std::string_view kLeasedService = "memory.leased";

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

rpc::Bytes encode_range(std::uint32_t stack_class, std::uint32_t range) {
  rpc::Bytes bytes;
  wire::Writer writer{bytes, 8};
  writer.u32(stack_class);
  writer.u32(range);
  return bytes;
}

}  // namespace

Leases::Leases(std::uint32_t node_index, std::uint32_t node_count) noexcept
    : node_index_{node_index} {
  for (std::atomic<std::uint32_t>& next : next_) {
    next.store(node_count, std::memory_order_relaxed);
  }
}

void Leases::connect(rpc::Rpc& rpc, memory::IsoSpace& space) {
  rpc_ = &rpc;
  space_ = &space;
  rpc.add_service(kLeaseAheadService, rpc::RunIn::poll, on_lease_ahead, this);
  rpc.add_service(kLeasedService, rpc::RunIn::poll, on_leased, this);
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

bool Leases::lease_ahead(std::uint32_t stack_class) noexcept {
  return rpc_ != nullptr && !is_lost_.load(std::memory_order_relaxed) &&
         rpc_->post(0, kLeaseAheadService, encode_number(stack_class));
}

// The answer is a message of its own, which the poll of the other node takes: nobody waits for it.
Result<rpc::Bytes> Leases::on_lease_ahead(void* self, const rpc::Request& request) {
  Leases& leases = *static_cast<Leases*>(self);
  Result<std::uint32_t> stack_class = decode_number(request.arguments);
  if (!stack_class) {
    return stack_class.error();
  }
  Result<std::uint32_t> range = leases.next(stack_class.value());
  if (!range) {
    return range.error();
  }
  // Who has ended needs no addresses.
  static_cast<void>(leases.rpc_->post(request.from_node, kLeasedService,
                                      encode_range(stack_class.value(), range.value())));
  return rpc::Bytes{};
}

Result<rpc::Bytes> Leases::on_leased(void* self, const rpc::Request& request) {
  Leases& leases = *static_cast<Leases*>(self);
  wire::Reader reader{request.arguments};
  const std::uint32_t stack_class = reader.u32();
  const std::uint32_t range = reader.u32();
  if (!reader.finished() || stack_class >= memory::kStackClassCount) {
    return Error{Errc::malformed, "a lease of addresses that cannot be read"};
  }
  leases.space_->add_range(stack_class, range);
  leases.rpc_->start_waiting();
  return rpc::Bytes{};
}

void Leases::lose_peer(std::uint32_t node) noexcept {
  if (node == 0) {
    is_lost_.store(true, std::memory_order_relaxed);
    space_->forget_asked_ranges();
  }
}

}  // namespace sterna::runtime
