// The memory of a request on its way to a thread.
#include "rpc/work.h"

#include <cstddef>
#include <new>
#include <utility>

#include "net/buffer.h"

namespace sterna::rpc {
namespace {

// What malloc() has at once, from what the thread has given back.
constexpr std::size_t kQuickBytes = 1032;

}  // namespace

std::unique_ptr<Rpc::Work> Rpc::Work::make(Rpc& rpc, const ServiceEntry& entry,
                                           const Message& message, std::uint32_t from_node) {
  const bool has_tail = message.tail_bytes != 0 && entry.takes_parts;
  const std::uint32_t part_count = has_tail ? 1 : message.part_count;
  const std::size_t parts_end = sizeof(Work) + part_count * sizeof(Part);
  const std::size_t body_begin =
      (parts_end + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
  const bool is_together = body_begin + message.body.size() <= kQuickBytes;
  memory::KeptBlocks::Block own_arguments;
  if (!is_together) {
    own_arguments = memory::KeptBlocks::of_process().make(message.body.size());
    if (own_arguments == nullptr) {
      return nullptr;
    }
  }
  auto* const memory = static_cast<std::byte*>(
      ::operator new(is_together ? body_begin + message.body.size() : body_begin));
  std::byte* const arguments = is_together ? memory + body_begin : own_arguments.get();
  static_assert(sizeof(Work) % alignof(Part) == 0);
  auto* const parts = reinterpret_cast<Part*>(memory + sizeof(Work));
  for (std::uint32_t i = 0; i < message.part_count; ++i) {
    new (&parts[i]) Part{part_of(message, i)};
  }
  const std::size_t short_bytes = message.body.size() - (has_tail ? message.tail_bytes : 0);
  if (has_tail) {
    new (parts) Part{.offset = static_cast<std::uint32_t>(short_bytes),
                     .bytes = message.tail_bytes,
                     .address = reinterpret_cast<std::uint64_t>(arguments + short_bytes)};
  }
  net::copy_bytes(arguments, message.body.data(), message.body.size());
  auto* const work =
      new (memory) Work{.rpc = &rpc,
                        .entry = &entry,
                        .wish = message.wish,
                        .reply_to = message.reply_to,
                        .incoming = {.from_node = from_node,
                                     .number = message.number,
                                     .parts = {parts, part_count},
                                     .reader_id = has_tail           ? Incoming::kHere
                                                  : message.are_read ? message.reply_to.id
                                                                     : 0},
                        .arguments = {arguments, short_bytes},
                        .body = {run_work, nullptr},
                        .own_arguments = std::move(own_arguments)};
  work->body.argument = work;
  return std::unique_ptr<Work>{work};
}

}  // namespace sterna::rpc
