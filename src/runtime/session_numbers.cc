// Names of sessions and their numbers.
#include "runtime/session_numbers.h"

#include "base/wire.h"

namespace sterna::runtime {

Result<std::uint32_t> decode_session_number(std::span<const std::byte> reply) noexcept {
  wire::Reader reader{reply};
  const std::uint32_t number = reader.u32();
  if (!reader.finished() || number >= kSessionsMax) {
    return Error{Errc::malformed, "the number of a session has other bytes"};
  }
  return number;
}

Result<rpc::Bytes> SessionNumbers::serve(void* self, const rpc::Request& request) {
  auto& numbers = static_cast<SessionNumbers*>(self)->numbers_;
  const std::string_view name{reinterpret_cast<const char*>(request.arguments.data()),
                              request.arguments.size()};
  if (name.empty() || name.size() > kSessionNameBytesMax) {
    return Error{Errc::malformed, "the name of a session has 1 to 47 bytes"};
  }
  auto known = numbers.find(name);
  if (known == numbers.end()) {
    if (numbers.size() == kSessionsMax) {
      return Error{Errc::out_of_memory, "a job has no more than 2^20 sessions"};
    }
    const auto number = static_cast<std::uint32_t>(numbers.size());
    known = numbers.emplace(std::string{name}, number).first;
  }
  rpc::Bytes reply;
  wire::Writer writer{reply, sizeof(std::uint32_t)};
  writer.u32(known->second);
  return reply;
}

}  // namespace sterna::runtime
