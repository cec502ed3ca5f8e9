// The load of a node: what it answers, and how it is read.
#include "runtime/node_load.h"

#include <ctime>

#include "base/wire.h"
#include "threads/team.h"

namespace sterna::runtime {

namespace {

constexpr std::size_t kNodeLoadBytes = 16;

std::uint64_t processor_ns_of_process() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

rpc::Bytes encode(const NodeLoad& load) {
  rpc::Bytes bytes;
  wire::Writer writer{bytes, kNodeLoadBytes};
  writer.u32(load.ranks);
  writer.u32(load.workers);
  writer.u64(load.processor_ns);
  return bytes;
}

Result<NodeLoad> decode_node_load(std::span<const std::byte> bytes) noexcept {
  wire::Reader reader{bytes};
  NodeLoad load;
  load.ranks = reader.u32();
  load.workers = reader.u32();
  load.processor_ns = reader.u64();
  if (!reader.finished()) {
    return Error{Errc::malformed, "the load of a node has other bytes"};
  }
  return load;
}

Result<rpc::Bytes> NodeLoadSource::serve(void* self, const rpc::Request& request) {
  if (!request.arguments.empty()) {
    return Error{Errc::malformed, "the load of a node takes no arguments"};
  }
  const NodeLoadSource& source = *static_cast<const NodeLoadSource*>(self);
  const std::size_t ranks = source.residents_ == nullptr ? 1 : source.residents_->count();
  return encode({.ranks = static_cast<std::uint32_t>(ranks),
                 .workers = source.team_.worker_count(),
                 .processor_ns = processor_ns_of_process()});
}

}  // namespace sterna::runtime
