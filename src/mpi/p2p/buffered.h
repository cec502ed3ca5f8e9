// Buffered sends: the buffers a program attaches, and the messages that wait in them.
#pragma once

#include <atomic>
#include <cstdint>

#include <mpi.h>

#include "mpi/errors/error.h"
#include "mpi/rank_state.h"
#include "net/message.h"

namespace sterna::mpi {

/// A message on its way out of a buffer; its bytes follow. Lies in the attached buffer.
struct BufferedMessage {
  BufferedMessage* next;
  std::uint64_t bytes;   // Of the whole block.
  std::uint64_t number;  // Of the pool, from 1.
  net::SendRequest send;
  // Who sends it is inside Transport::send(), which may still read the bytes when another thread
  // has heard that all have come. Cleared (release) after that.
  std::atomic<bool> is_sending;
};

/// One attached buffer. Guard: RankState::lock, but not during the transport's work.
struct BufferPool {
  void* base = nullptr;  // As the program gave it; MPI_BUFFER_AUTOMATIC: the heap is the buffer.
  MPI_Count bytes = 0;
  BufferedMessage* first = nullptr;  // Ascending addresses: the gaps between them are free.
  std::uint64_t sent = 0;            // Messages so far.
  std::uint32_t references = 1;      // Of who has attached it, and of requests to flush it.
  bool is_automatic = false;
};

/// Attach a buffer to *slot, which is null. Results are error classes.
int attach_buffer(RankState& state, BufferPool** slot, void* base, MPI_Count bytes) noexcept;
/// Waits until all messages have left. Switches.
void flush_buffer(RankState& state, BufferPool& pool) noexcept;
/// Whether all have left.
[[nodiscard]] bool is_flushed(RankState& state, BufferPool& pool) noexcept;
/// Whether those up to this number have left.
[[nodiscard]] bool is_flushed(RankState& state, BufferPool& pool, std::uint64_t number) noexcept;
/// A request that ends when what is in the pool now has left. Null: no memory.
[[nodiscard]] Request* create_flush(RankState& state, Comm* comm, BufferPool& pool) noexcept;
/// Gives up a reference. Who has attached it has flushed it.
void release_buffers(RankState& state, BufferPool* pool) noexcept;

/// The pool that a buffered send on `comm` uses, or null.
[[nodiscard]] BufferPool* pool_of(RankState& state, Comm& comm) noexcept;
/// A block for a message of `bytes` bytes; null: the buffer is full.
[[nodiscard]] BufferedMessage* take_block(RankState& state, BufferPool& pool,
                                          std::uint64_t bytes) noexcept;

}  // namespace sterna::mpi
