// Fuzzes the decoder of link packets: what it accepts lies inside the packet and the windows.
#include "base/check.h"
#include "net/rails/format.h"
#include "net/rails/window.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sterna;
  const net::Packet packet{reinterpret_cast<const std::byte*>(data), bytes};
  net::LinkPacket read;
  if (net::decode_link(packet, false, {}, read) == net::LinkDecode::good) {
    check(read.payload.empty() ||
              read.payload.data() + read.payload.size() == packet.data() + packet.size(),
          "the payload ends with the packet");
    check(read.arrived_words <= net::kArrivedWords, "a map fits the window");
    net::ReceiveWindow window;
    (void)window.take(read.header.sequence);
    (void)window.take(read.header.expected);
  }
  return 0;
}
