// The life of an Endpoint, and the words for faults.
#include "net/endpoint.h"

#include "memory/heap.h"
#include "memory/kept_blocks.h"
#include "net/matching/matching.h"
#include "net/peer.h"

namespace sterna::net {

Endpoint* create_endpoint(memory::Heap& heap, std::uint32_t rank) noexcept {
  auto* endpoint = static_cast<Endpoint*>(heap.allocate_zeroed(sizeof(Endpoint)));
  if (endpoint != nullptr) {
    endpoint->rank = rank;
    endpoint->heap = &heap;
    endpoint->blocks =
        &heap == memory::Heap::process() ? &memory::KeptBlocks::of_process() : nullptr;
  }
  return endpoint;
}

void destroy_endpoint(Endpoint* endpoint) noexcept {
  if (endpoint == nullptr) {
    return;
  }
  destroy_endpoint(endpoint->kept);
  clear_peers(*endpoint);
  clear_matching(*endpoint);
  endpoint->heap->deallocate(endpoint->lost_ranks);
  endpoint->heap->deallocate(endpoint);
}

const char* to_string(Fault fault) noexcept {
  switch (fault) {
    case Fault::none:
      return "it went well";
    case Fault::truncated:
      return "the message was longer than the receive buffer";
    case Fault::peer_lost:
      return "the node of the other rank is gone";
    case Fault::cancelled:
      return "the receive was cancelled";
    case Fault::no_memory:
      return "the rank's system heap is full";
  }
  return "unknown";
}

}  // namespace sterna::net
