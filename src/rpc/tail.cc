// A long piece at the end of the arguments of a call that goes in the same message, as short ones
// do: over networks that take packets, for quick services. No part has to be received, and no
// thread be made for that: the service runs in the poll that brought it.
#include <array>

#include "net/buffer.h"
#include "rpc/handlers.h"
#include "rpc/rpc.h"
#include "rpc/work.h"

namespace sterna::rpc {
namespace {

constexpr std::size_t kBeforeBytesMax = 192;  // What is copied to lie in front of it.

}  // namespace

/// The services of this node stand for those of the other, which serves others as well.
bool Rpc::may_be_tail(std::uint32_t node, std::uint64_t service, std::size_t bytes,
                      const CallOptions& options) const noexcept {
  if (options.parts.size() != 1 || !options.wish.is_none() || bytes > kBeforeBytesMax ||
      node == node_) {
    return false;
  }
  const Part& part = options.parts.front().part;
  const ServiceEntry* const entry = services_.find(service);
  return part.offset == bytes && part.bytes <= kGatheredBytesMax && entry != nullptr &&
         entry->run_in == RunIn::poll && !options_.transport->may_copy_directly(node);
}

Result<> Rpc::send_tail(std::uint32_t node, std::uint64_t service,
                        std::span<const std::byte> arguments, std::uint64_t id, OutPart& part) {
  Message message{.kind = MessageKind::request, .service = service, .reply_to = {.id = id}};
  message.tail_bytes = static_cast<std::uint32_t>(part.part.bytes);
  const MessageHead head{message};
  std::array<std::byte, 64 + kBeforeBytesMax> before;
  const std::size_t head_bytes = head.bytes().size();
  net::copy_bytes(before.data(), head.bytes().data(), head_bytes);
  net::copy_bytes(before.data() + head_bytes, arguments.data(), arguments.size());
  part.send.done.reset();
  part.send.fault = net::Fault::none;
  part.send.done.complete_alone();
  return options_.transport->node_message(
      node, kNodeHandler, std::span{before}.first(head_bytes + arguments.size()),
      {static_cast<const std::byte*>(part.data), part.part.bytes});
}

}  // namespace sterna::rpc
