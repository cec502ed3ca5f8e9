// rpc.h: one call of several nodes at the same time.
#include <memory>
#include <vector>

#include "progress/progress.h"
#include "runtime/capi/calls/rpc.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"

struct sterna_rpc_group {
  struct One {
    std::uint32_t node;
    sterna::rpc::PendingCall call;
    std::unique_ptr<sterna::runtime::capi::OutBox> box;  // Of long arguments.
  };
  std::uint32_t count = 0;
  std::unique_ptr<One[]> calls;
  bool is_copied = false;  // The arguments: the boxes have them.
};

namespace sterna::runtime::capi {
namespace {

using One = sterna_rpc_group::One;

sterna_status check_many(const std::uint32_t* nodes, std::uint32_t count, const char* name,
                         const void* arguments, std::size_t bytes, const char* call,
                         bool may_wait) noexcept {
  sterna_status status = check_call(0, name, arguments, bytes, call, may_wait);
  for (std::uint32_t i = 0; i < count && status == STERNA_SUCCESS; ++i) {
    status = check_call(nodes == nullptr ? i : nodes[i], name, arguments, bytes, call, may_wait);
  }
  return status;
}

/// `is_copied`: the arguments may be changed at once.
std::unique_ptr<sterna_rpc_group> start(const std::uint32_t* nodes, std::uint32_t count,
                                        const char* name, std::span<const std::byte> arguments,
                                        bool is_copied) {
  auto group = std::make_unique<sterna_rpc_group>();
  group->count = count;
  group->calls = std::make_unique<One[]>(count);
  group->is_copied = is_copied;
  const bool is_long = arguments.size() > kRpcShortBytes;
  for (std::uint32_t i = 0; i < count && is_long; ++i) {
    group->calls[i].box = std::make_unique<OutBox>();
    group->calls[i].box->set(arguments, is_copied);
  }
  const std::uint64_t service = number_of_service(name);
  for (std::uint32_t i = 0; i < count; ++i) {
    One& one = group->calls[i];
    one.node = nodes == nullptr ? i : nodes[i];
    if (is_long) {
      program()->rpc->start(one.node, service, one.box->block(), one.call,
                            {.parts = one.box->parts()});
    } else {
      program()->rpc->start(one.node, service, arguments, one.call);
    }
  }
  return group;
}

sterna_status wait(sterna_rpc_group& group, void* replies, std::size_t bytes_each,
                   sterna_rpc_result* results, std::uint64_t timeout_ns,
                   const char* call) noexcept {
  rpc::Rpc& rpc = *program()->rpc;
  const std::uint64_t deadline_ns = deadline_of(timeout_ns);
  for (std::uint32_t i = 0; i < group.count; ++i) {
    One& one = group.calls[i];
    if (!rpc.wait(one.call, deadline_ns)) {
      rpc.withdraw(one.call,
                   {Errc::timed_out, fmt::format("node {} has not answered in time", one.node)});
    }
  }
  sterna_status first = STERNA_SUCCESS;
  std::string first_text;
  for (std::uint32_t i = 0; i < group.count; ++i) {
    One& one = group.calls[i];
    if (one.box != nullptr && group.is_copied) {
      OutBox::release(std::move(one.box));
    } else if (one.box != nullptr) {
      one.box->await_sent(*program()->rank->progress);
    }
    std::size_t bytes = 0;
    auto* const place =
        bytes_each == 0 ? nullptr : static_cast<std::byte*>(replies) + i * bytes_each;
    const sterna_status status = finish_call(rpc, one.call, place, bytes_each, &bytes, call);
    if (results != nullptr) {
      results[i] = {.status = status, .node = one.node, .bytes = bytes};
    }
    if (status != STERNA_SUCCESS && first == STERNA_SUCCESS) {
      first = status;
      char text[512];
      (void)sterna_error_detail(text, sizeof text);
      first_text = text;
    }
  }
  return first == STERNA_SUCCESS ? first : refuse(first, "{}", first_text);
}

}  // namespace
}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using sterna::runtime::RuntimeScope;

sterna_status sterna_rpc_multicast(const uint32_t* nodes, uint32_t count, const char* name,
                                   const void* arguments, size_t argument_bytes, void* replies,
                                   size_t bytes_each, sterna_rpc_result* results,
                                   uint64_t timeout_ns) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad =
          capi::check_many(nodes, count, name, arguments, argument_bytes, __func__, true);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  if (replies == nullptr && bytes_each != 0) {
    return capi::refuse_argument(__func__);
  }
  return capi::guarded([&] {
    const auto group =
        capi::start(nodes, count, name, {static_cast<const std::byte*>(arguments), argument_bytes},
                    timeout_ns != STERNA_FOREVER);
    return capi::wait(*group, replies, bytes_each, results, timeout_ns, "sterna_rpc_multicast");
  });
}

sterna_status sterna_rpc_multicast_start(const uint32_t* nodes, uint32_t count, const char* name,
                                         const void* arguments, size_t argument_bytes,
                                         sterna_rpc_group** group) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad =
          capi::check_many(nodes, count, name, arguments, argument_bytes, __func__, false);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  if (group == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return capi::guarded([&] {
    *group = capi::start(nodes, count, name,
                         {static_cast<const std::byte*>(arguments), argument_bytes}, true)
                 .release();
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_rpc_multicast_wait(sterna_rpc_group* group, void* replies, size_t bytes_each,
                                        sterna_rpc_result* results, uint64_t timeout_ns) noexcept {
  const RuntimeScope scope;
  if (group == nullptr || (replies == nullptr && bytes_each != 0)) {
    return capi::refuse_argument(__func__);
  }
  if (const sterna_status bad = capi::check_caller(__func__, true); bad != STERNA_SUCCESS) {
    return bad;
  }
  const std::unique_ptr<sterna_rpc_group> own{group};
  return capi::wait(*group, replies, bytes_each, results, timeout_ns, __func__);
}

sterna_status sterna_rpc_multicast_post(const uint32_t* nodes, uint32_t count, const char* name,
                                        const void* arguments, size_t argument_bytes) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad =
          capi::check_many(nodes, count, name, arguments, argument_bytes, __func__, false);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  sterna_status first = STERNA_SUCCESS;
  for (uint32_t i = 0; i < count; ++i) {
    const sterna_status status =
        sterna_rpc_post(nodes == nullptr ? i : nodes[i], name, arguments, argument_bytes);
    first = first == STERNA_SUCCESS ? status : first;
  }
  return first;
}
