// Numbers for the names of sessions, the same in the whole job: node 0 gives them, in the order in
// which it is asked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "rpc/rpc.h"

namespace sterna::runtime {

inline constexpr std::string_view kSessionNumberService = "session.number";
inline constexpr std::size_t kSessionNameBytesMax = 47;
inline constexpr std::uint32_t kSessionsMax = 1 << 20;

/// The number in a reply; malformed if it is none.
[[nodiscard]] Result<std::uint32_t> decode_session_number(
    std::span<const std::byte> reply) noexcept;

/// The service; on all nodes, asked on node 0 only. Lives as long as the Rpc it is added to.
class SessionNumbers {
 public:
  /// As Rpc::add_service.
  void add_to(rpc::Rpc& rpc) {
    rpc.add_service(kSessionNumberService, rpc::RunIn::poll, serve, this);
  }

 private:
  static Result<rpc::Bytes> serve(void* self, const rpc::Request& request);

  std::map<std::string, std::uint32_t, std::less<>> numbers_;  // The poller's.
};

}  // namespace sterna::runtime
