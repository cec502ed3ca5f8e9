// Buffered sends: space in attached buffers.
#include "mpi/p2p/buffered.h"

#include <new>

#include "mpi/comm/comm.h"
#include "mpi/p2p/message.h"
#include "mpi/request/request.h"
#include "mpi/request/status.h"
#include "mpi/request/wait.h"
#include "net/transport.h"

namespace sterna::mpi {
namespace {

constexpr std::uint64_t kAlignment = 16;
static_assert(sizeof(BufferedMessage) + 2 * kAlignment <= MPI_BSEND_OVERHEAD);

std::uint64_t round_up(std::uint64_t value) noexcept {
  return (value + kAlignment - 1) & ~(kAlignment - 1);
}

// Takes out the messages that have left; with the state's lock held.
void sweep(RankState& state, BufferPool& pool) noexcept {
  BufferedMessage** link = &pool.first;
  while (*link != nullptr) {
    BufferedMessage* message = *link;
    // Acquires what the sender has read: only then others write there.
    if (message->is_sending.load(std::memory_order_acquire) || !message->send.done.done()) {
      link = &message->next;
      continue;
    }
    *link = message->next;
    if (pool.is_automatic) {
      state.deallocate(message);
    }
  }
}

BufferedMessage* insert(BufferPool& pool, BufferedMessage** link, void* place,
                        std::uint64_t bytes) noexcept {
  auto* message = ::new (place) BufferedMessage{*link, bytes, ++pool.sent, {}, true};
  *link = message;
  return message;
}

}  // namespace

int attach_buffer(RankState& state, BufferPool** slot, void* base, MPI_Count bytes) noexcept {
  if (bytes < 0) {
    return MPI_ERR_ARG;
  }
  BufferPool* pool = state.create<BufferPool>();
  if (pool == nullptr) {
    return MPI_ERR_NO_MEM;
  }
  pool->base = base;
  pool->bytes = bytes;
  pool->is_automatic = base == MPI_BUFFER_AUTOMATIC;
  StateGuard guard{state};
  *slot = pool;
  return MPI_SUCCESS;
}

bool is_flushed(RankState& state, BufferPool& pool) noexcept {
  StateGuard guard{state};
  sweep(state, pool);
  return pool.first == nullptr;
}

bool is_flushed(RankState& state, BufferPool& pool, std::uint64_t number) noexcept {
  StateGuard guard{state};
  sweep(state, pool);
  for (const BufferedMessage* m = pool.first; m != nullptr; m = m->next) {
    if (m->number <= number) {
      return false;
    }
  }
  return true;
}

Request* create_flush(RankState& state, Comm* comm, BufferPool& pool) noexcept {
  Request* const request = create_request(state, RequestType::flush, comm);
  if (request != nullptr) {
    set_empty(request->status);
    StateGuard guard{state};
    ++pool.references;
    request->flushed = &pool;
    request->flushed_number = pool.sent;
  }
  return request;
}

void flush_buffer(RankState& state, BufferPool& pool) noexcept {
  for (std::uint32_t round = 0; !is_flushed(state, pool); ++round) {
    wait_a_little(state, round);
  }
}

void release_buffers(RankState& state, BufferPool* pool) noexcept {
  if (pool == nullptr) {
    return;
  }
  bool is_last = false;
  {
    StateGuard guard{state};
    is_last = --pool->references == 0;
  }
  if (is_last) {
    state.destroy(pool);
  }
}

BufferPool* pool_of(RankState& state, Comm& comm) noexcept {
  return comm.buffers != nullptr ? comm.buffers : state.buffers;
}

BufferedMessage* take_block(RankState& state, BufferPool& pool, std::uint64_t bytes) noexcept {
  const std::uint64_t needed = round_up(sizeof(BufferedMessage) + bytes);
  StateGuard guard{state};
  sweep(state, pool);
  if (pool.is_automatic) {
    void* place = state.allocate(needed);
    return place == nullptr ? nullptr : insert(pool, &pool.first, place, needed);
  }
  // First fit between the messages that wait.
  const auto base = reinterpret_cast<std::uintptr_t>(pool.base);
  const std::uintptr_t end = base + static_cast<std::uint64_t>(pool.bytes);
  std::uintptr_t place = round_up(base);
  BufferedMessage** link = &pool.first;
  while (*link != nullptr && reinterpret_cast<std::uintptr_t>(*link) < place + needed) {
    place = reinterpret_cast<std::uintptr_t>(*link) + (*link)->bytes;
    link = &(*link)->next;
  }
  if (place + needed > end) {
    return nullptr;
  }
  return insert(pool, link, reinterpret_cast<void*>(place), needed);
}

int send_buffered(const Call& call, const Side& side) noexcept {
  RankState& state = call.state;
  BufferPool* pool = pool_of(state, *call.comm);
  const TypedBuffer typed = TypedBuffer::of(side.buffer, side.count, *find_datatype(side.datatype));
  if (pool == nullptr) {
    return call.fail(MPI_ERR_BUFFER, "no buffer is attached (MPI_Buffer_attach)");
  }
  const std::uint64_t bytes = typed.bytes();
  BufferedMessage* message = take_block(state, *pool, bytes);
  if (message == nullptr) {
    poll_once(state);  // What has left makes room.
    message = take_block(state, *pool, bytes);
  }
  if (message == nullptr) {
    return call.fail(MPI_ERR_BUFFER,
                     "the attached buffer of %lld bytes has no room for %llu bytes + "
                     "MPI_BSEND_OVERHEAD",
                     static_cast<long long>(pool->bytes), static_cast<unsigned long long>(bytes));
  }
  auto* data = reinterpret_cast<std::byte*>(message + 1);
  (void)pack(typed, 0, {data, bytes});
  runtime::RankContext& context = *state.context;
  message->send.may_be_left = true;
  context.transport->send(*context.endpoint, message->send,
                          target_of(*call.comm, side.peer, side.tag), net::Buffer::of(data, bytes));
  message->is_sending.store(false, std::memory_order_release);  // From here on it may be gone.
  return MPI_SUCCESS;
}

}  // namespace sterna::mpi
