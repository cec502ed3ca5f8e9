// How long copies are done.
#include "net/buffer.h"

#include "base/cpu.h"

namespace sterna::net {

// From 2 or more KB on, as the processor may be, memcpy of glibc is `rep movsb`. On AMD's Zen 4 it
// takes two to three times as long to fill lines that another core has read; not each time, but
// then for thousands of messages. Short copies are loops of vectors, which do not.
void copy_in_pieces(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  std::size_t piece_bytes = 2048 - kCacheLineBytes;
  asm("" : "+r"(piece_bytes));  // If the compiler knows how many, it is `rep movsq`.
  for (; bytes > piece_bytes; bytes -= piece_bytes) {
    std::memcpy(to, from, piece_bytes);
    to += piece_bytes;
    from += piece_bytes;
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace sterna::net
