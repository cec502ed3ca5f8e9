// Long pieces of arguments that a service reads from the memory of its caller, where the caller
// waits for the reply and the transport can: the request says where they lie, so that nothing is
// announced or received, and nothing tells that they have come. Who cannot read them after all, or
// not as long as they stay, asks for them: then they are sent as others (parts.cc).
#include <algorithm>
#include <utility>

#include "net/buffer.h"
#include "rpc/handlers.h"
#include "rpc/part_list.h"
#include "rpc/rpc.h"

namespace sterna::rpc {

bool Rpc::may_be_read(std::uint32_t node, std::span<OutPart> parts) const noexcept {
  std::uint64_t bytes = 0;
  std::uint64_t shortest = kPartBytesMax;
  for (const OutPart& part : parts) {
    bytes += part.part.bytes;
    shortest = std::min(shortest, part.part.bytes);
  }
  return bytes != 0 && options_.transport->are_better_read(node, bytes, shortest);
}

/// Throws bad_alloc.
Result<> Rpc::send_readable(std::uint32_t node, std::uint64_t service,
                            std::span<const std::byte> arguments, PendingCall& call,
                            const CallOptions& options) {
  PartList parts{options.parts};
  for (std::size_t i = 0; i < options.parts.size(); ++i) {
    OutPart& part = options.parts[i];
    parts.all()[i].address = reinterpret_cast<std::uint64_t>(part.data);
    options_.transport->will_be_read(part.data, part.part.bytes);
    part.send.done.reset();
    part.send.fault = net::Fault::none;
    part.send.done.complete_alone();
  }
  Message message{.kind = MessageKind::request,
                  .service = service,
                  .reply_to = {.node = node_, .id = call.id},
                  .wish = options.wish};
  message.number = call.number = next_number();
  message.are_read = true;
  message.parts = parts.all();
  message.body = arguments;
  call.read_parts = options.parts;  // First: they may be wanted before this returns.
  const MessageHead head{message};
  return options_.transport->node_message(node, kNodeHandler, head.bytes(), arguments);
}

/// By the poller, which is the only one to end the call.
void Rpc::on_wanted(const Message& message, std::uint32_t from_node) noexcept {
  PendingCall* const call = calls_.find(message.reply_to.id);
  if (call == nullptr) {
    return;  // The node was lost.
  }
  if (call->to_node != from_node || message.number >= call->read_parts.size()) {
    log_.warn("node {} wants arguments that it was not asked with", from_node);
    return;
  }
  send_parts(from_node, options_.part_context, call->number,
             std::exchange(call->read_parts, {}).subspan(message.number));
}

/// Of a node that is gone nothing will come, and whoever waits for it hears that.
void Rpc::want(std::uint32_t node, std::uint64_t id, std::size_t first) noexcept {
  Message message{.kind = MessageKind::wanted, .reply_to = {.id = id}};
  message.number = static_cast<std::uint32_t>(first);
  const MessageHead head{message};
  (void)options_.transport->node_message(node, kNodeHandler, head.bytes());
}

/// Those that have not been taken yet.
void Rpc::want_rest(Incoming& incoming) noexcept {
  if (incoming.reader_id == Incoming::kHere) {
    return;
  }
  const std::uint64_t id = std::exchange(incoming.reader_id, 0);
  if (id != 0 && incoming.taken != incoming.parts.size()) {
    want(incoming.from_node, id, incoming.taken);
  }
}

/// The next one. False: it is sent, or shall be from now on.
bool Rpc::read_part(Incoming& incoming, const net::Buffer& buffer) noexcept {
  if (incoming.reader_id == 0) {
    return false;
  }
  const Part& part = incoming.parts[incoming.taken];
  if (incoming.reader_id == Incoming::kHere) {
    net::copy_bytes(buffer.address, reinterpret_cast<const std::byte*>(part.address), part.bytes);
    ++incoming.taken;
    return true;
  }
  const Result<> read = options_.transport->read_from(incoming.from_node, buffer.address,
                                                      {part.address, part.bytes});
  if (!read) {
    log_.debug("arguments of node {} cannot be read, it shall send them: {}", incoming.from_node,
               read.error().text);
    return false;
  }
  ++incoming.taken;
  return true;
}

}  // namespace sterna::rpc
