// What ThreadSanitizer cannot see: order through another process. A thread sends a packet, a peer
// reads it and answers, another thread of ours reads the answer: all that the first thread did
// comes before, by pairs of release and acquire of which the middle ones are the peer's. Memory
// that processes share says so here; without ThreadSanitizer it is nothing.
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

namespace sterna {
inline char order_of_processes;  // An address, no more.
inline void note_sent() noexcept {
  __tsan_release(&order_of_processes);
}
inline void note_received() noexcept {
  __tsan_acquire(&order_of_processes);
}
}  // namespace sterna
#else
namespace sterna {
inline void note_sent() noexcept {}
inline void note_received() noexcept {}
}  // namespace sterna
#endif
