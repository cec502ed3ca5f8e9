// Packets that are lent: their bytes go from memory to memory, read by the receiver's node.
//
//   sender    try_lend: its memory is registered, and a Loan says where it lies and by which key
//   receiver  the sink says where the bytes go; they are read there; the sink hears of the end
//   both      a LoanEnd gives the memory back, and its registration is closed
//
// All of it is under FabricDriver::lock_, but the sink's upcalls and what only the poller has. A
// read ends by its completion: till then neither the receiver's memory nor the connection's end is
// told. Where a provider leaves the reads of a peer that is gone without one, the endpoint is shut:
// nothing else makes it let go of memory.
#pragma once

#include <cstdint>

#include "net/drivers/fabric/blobs.h"
#include "net/drivers/fabric/endpoint.h"

namespace sterna::net::fabric {

class FabricChannel;

inline constexpr std::uint32_t kLoansMax = 8;  // Under way from one node to another one.
inline constexpr std::uint32_t kLoanBytesMax = 64 << 20;

/// A packet that a peer has lent to us.
struct Borrowed : Read {
  FabricChannel* channel = nullptr;
  Loan loan{};
  enum class Step : std::uint8_t {
    asking,   // The sink will say where it goes.
    waiting,  // To be read: the provider has no room, or the peer's hello has not come.
    reading,
    ended,  // The sink is to hear of it.
  } step = Step::asking;
  bool is_whole = false;
};

/// A packet of ours that a peer has been lent.
struct LentOut {
  Lent* lent = nullptr;
  std::uint64_t id = 0;
  Region region;
};

}  // namespace sterna::net::fabric
