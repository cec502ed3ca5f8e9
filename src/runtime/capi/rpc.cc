// rpc.h: services of the program, and calls of them. A reply on the wire: the service's status (u32
// little-endian), then its bytes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include <sterna/rpc.h>

#include "runtime/capi/program.h"
#include "runtime/scope.h"

struct sterna_rpc_request {
  const sterna::rpc::Request* request;
  std::span<const std::byte> arguments;  // Aligned for any type.
  sterna::rpc::Bytes reply;
};

struct sterna_rpc_call {
  sterna::rpc::PendingCall call;
};

namespace sterna::runtime::capi {
namespace {

constexpr std::size_t kStatusBytes = 4;
constexpr std::size_t kBytesMax = 15 << 20;
constexpr char kPrefix[] = "program.";  // Names of the program are not those of the runtime.

struct Registered {
  std::string name;
  sterna_rpc_kind kind;
  sterna_rpc_service service;
  void* context;
};

/// Written before sterna_start by the initial thread, constant from then on.
struct Services {
  std::vector<std::unique_ptr<Registered>> list;
  bool is_locked = false;
};

Services& services() {
  // Never destroyed: services may run until the process ends.
  static Services* const all = new Services;
  return *all;
}

/// What came in a packet lies at any address; a service may read it as what it is.
std::span<const std::byte> aligned(std::span<const std::byte> bytes, std::span<std::byte> room,
                                   rpc::Bytes& long_room) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::max_align_t) == 0) {
    return bytes;
  }
  if (bytes.size() > room.size()) {
    long_room.assign(bytes.begin(), bytes.end());
    return long_room;
  }
  std::ranges::copy(bytes, room.begin());
  return room.first(bytes.size());
}

Result<rpc::Bytes> serve(void* registered, const rpc::Request& request) {
  const auto& self = *static_cast<const Registered*>(registered);
  alignas(std::max_align_t) std::array<std::byte, 256> room;
  rpc::Bytes long_room;
  sterna_rpc_request given{.request = &request,
                           .arguments = aligned(request.arguments, room, long_room),
                           .reply = rpc::Bytes(kStatusBytes)};
  const auto status = static_cast<std::uint32_t>(self.service(self.context, &given));
  for (std::size_t i = 0; i < kStatusBytes; ++i) {
    given.reply[i] = static_cast<std::byte>(status >> (8 * i) & 0xff);
  }
  return std::move(given.reply);
}

/// What a call returns for what came back.
sterna_status store_reply(Result<rpc::Bytes>& result, void* reply, std::size_t bytes_max,
                          std::size_t* bytes) noexcept {
  if (!result) {
    return result.error().code == Errc::unsupported ? STERNA_NOT_FOUND
                                                    : to_status(result.error().code);
  }
  const rpc::Bytes& all = result.value();
  if (all.size() < kStatusBytes) {
    return STERNA_SYSTEM;
  }
  std::uint32_t status = 0;
  for (std::size_t i = 0; i < kStatusBytes; ++i) {
    status |= std::to_integer<std::uint32_t>(all[i]) << (8 * i);
  }
  const std::size_t length = all.size() - kStatusBytes;
  if (const std::size_t stored = std::min(length, bytes_max); stored != 0) {
    std::memcpy(reply, all.data() + kStatusBytes, stored);
  }
  if (bytes != nullptr) {
    *bytes = length;
  }
  if (status != STERNA_SUCCESS) {
    return static_cast<sterna_status>(status);
  }
  return length > bytes_max ? STERNA_TRUNCATED : STERNA_SUCCESS;
}

sterna_status check_call(std::uint32_t node, const char* name, const void* arguments,
                         std::size_t bytes) noexcept {
  const Program* const self = program();
  if (self == nullptr) {
    return why_no_program();
  }
  const bool is_valid = node < self->rank->transport->job().node_count && name != nullptr &&
                        (arguments != nullptr || bytes == 0) && bytes <= kBytesMax;
  return is_valid ? STERNA_SUCCESS : STERNA_INVALID_ARGUMENT;
}

std::span<const std::byte> bytes_of(const void* data, std::size_t bytes) noexcept {
  return {static_cast<const std::byte*>(data), bytes};
}

}  // namespace

void add_services(rpc::Rpc& rpc) {
  for (const auto& service : services().list) {
    rpc.add_service(kPrefix + service->name,
                    service->kind == STERNA_RPC_QUICK ? rpc::RunIn::poll : rpc::RunIn::thread,
                    serve, service.get());
  }
}

void lock_services() noexcept {
  services().is_locked = true;
}

}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using sterna::runtime::RuntimeScope;

sterna_status sterna_rpc_register(const char* name, sterna_rpc_kind kind,
                                  sterna_rpc_service service, void* context) noexcept {
  const RuntimeScope scope;
  if (capi::is_mobile()) {
    return STERNA_UNSUPPORTED;
  }
  capi::Services& all = capi::services();
  if (all.is_locked) {
    return STERNA_BUSY;
  }
  if (name == nullptr || service == nullptr ||
      (kind != STERNA_RPC_QUICK && kind != STERNA_RPC_THREAD) ||
      std::ranges::any_of(all.list, [&](const auto& known) { return known->name == name; })) {
    return STERNA_INVALID_ARGUMENT;
  }
  return capi::guarded([&] {
    all.list.push_back(
        std::make_unique<capi::Registered>(capi::Registered{name, kind, service, context}));
    return STERNA_SUCCESS;
  });
}

uint32_t sterna_rpc_from(const sterna_rpc_request* request) noexcept {
  return request->request->from_node;
}

const void* sterna_rpc_arguments(const sterna_rpc_request* request, size_t* bytes) noexcept {
  if (bytes != nullptr) {
    *bytes = request->arguments.size();
  }
  return request->arguments.data();
}

sterna_status sterna_rpc_reply(sterna_rpc_request* request, const void* data,
                               size_t bytes) noexcept {
  const RuntimeScope scope;
  if (request == nullptr || (data == nullptr && bytes != 0) || bytes > capi::kBytesMax) {
    return STERNA_INVALID_ARGUMENT;
  }
  const auto given = capi::bytes_of(data, bytes);
  return capi::guarded([&] {
    request->reply.reserve(capi::kStatusBytes + bytes);
    request->reply.resize(capi::kStatusBytes);
    request->reply.insert(request->reply.end(), given.begin(), given.end());
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_rpc_call_for(uint32_t node, const char* name, const void* arguments,
                                  size_t argument_bytes, void* reply, size_t bytes_max,
                                  size_t* bytes, uint64_t timeout_ns) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad = capi::check_call(node, name, arguments, argument_bytes);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  if (reply == nullptr && bytes_max != 0) {
    return STERNA_INVALID_ARGUMENT;
  }
  return capi::guarded([&] {
    auto result = capi::program()->rpc->call(node, std::string{capi::kPrefix} + name,
                                             capi::bytes_of(arguments, argument_bytes),
                                             capi::deadline_of(timeout_ns));
    return capi::store_reply(result, reply, bytes_max, bytes);
  });
}

sterna_status sterna_rpc_post(uint32_t node, const char* name, const void* arguments,
                              size_t argument_bytes) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad = capi::check_call(node, name, arguments, argument_bytes);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  return capi::guarded([&] {
    const auto sent = capi::program()->rpc->post(node, std::string{capi::kPrefix} + name,
                                                 capi::bytes_of(arguments, argument_bytes));
    return sent ? STERNA_SUCCESS : capi::to_status(sent.error().code);
  });
}

sterna_status sterna_rpc_start(uint32_t node, const char* name, const void* arguments,
                               size_t argument_bytes, sterna_rpc_call** call) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad = capi::check_call(node, name, arguments, argument_bytes);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  if (call == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  auto* const made = new (std::nothrow) sterna_rpc_call;
  if (made == nullptr) {
    return STERNA_OUT_OF_MEMORY;
  }
  capi::program()->rpc->start(node, std::string{capi::kPrefix} + name,
                              capi::bytes_of(arguments, argument_bytes), made->call);
  *call = made;
  return STERNA_SUCCESS;
}

int sterna_rpc_is_done(const sterna_rpc_call* call) noexcept {
  return call->call.done.done() ? 1 : 0;
}

sterna_status sterna_rpc_wait(sterna_rpc_call* call, void* reply, size_t bytes_max,
                              size_t* bytes) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (call == nullptr || (reply == nullptr && bytes_max != 0)) {
    return STERNA_INVALID_ARGUMENT;
  }
  call->call.done.wait(*program->rank->progress);
  const sterna_status status = capi::store_reply(call->call.reply, reply, bytes_max, bytes);
  delete call;
  return status;
}
