// Services with types (C++20): what a call carries is derived from the signature of the service.
//
//     double dot(std::vector<double> a, std::span<const double> b);
//     inline sterna::typed::Service<dot> dot_service{"dot"};     // Before sterna_start, on all
//     nodes.
//
//     double d = dot_service(node, a, b);             // Waits; throws RpcError.
//     auto later = dot_service.start(node, a, b);     // Deferred: later.get().
//     dot_service.post(node, a, b);                   // One way.
//     auto all = dot_service.multicast(nodes, a, b);  // One Outcome<double> a node.
//
// Arguments and results are trivially copyable types (not pointers), std::string, std::vector,
// std::array, std::pair, std::tuple, std::optional, of these again; std::span<const T> and
// std::string_view as arguments; and every class with a member
//     template <typename Fields> void sterna_fields(Fields& fields) { fields(first, second); }
// Anything else is an error of the compiler that names the type. Long strings, vectors and spans of
// trivially copyable types go directly from where they lie into the vector that the service gets:
// what sterna_fields names is a member, no local variable. Elements of a vector have something to
// send. As in rpc.h, one call has at most 256 pieces above 8 KiB (a string, a vector or span of
// trivially copyable elements, a member of another type each), and 15 MiB of shorter ones together
// (else INVALID_ARGUMENT): many long strings go better in one. A parameter or a result by value of
// many KiB lies on the stack of the service (sterna_thread_options.stack_bytes): large ones are
// taken by const reference. An exception of the service is an RpcError of the caller, with its text. See rpc.h for the
// rest.
#ifndef STERNA_RPC_HPP
#define STERNA_RPC_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sterna/rpc.h"
#include "sterna/rpc_fields.hpp"

namespace sterna::typed {

/// A deferred result. Its call is waited for when it ends, if get() has not done that.
template <typename Result>
class Later {
 public:
  explicit Later(sterna_rpc_call* call) noexcept : call_{call} {}
  /// get() will not wait for the service. Before it.
  [[nodiscard]] bool is_done() const noexcept { return sterna_rpc_is_done(call_.get()) != 0; }
  /// Once. Throws RpcError; inside the poll nothing is taken.
  Result get() {
    expect_success(sterna_rpc_may_wait());
    return detail::take<Result>(std::move(call_));
  }

 private:
  detail::OwnedCall call_;
};

/// One of the results of a multicast.
template <typename Result>
struct Outcome {
  using Value = std::conditional_t<std::is_void_v<Result>, std::monostate, Result>;
  std::uint32_t node = 0;
  sterna_status status = STERNA_SUCCESS;
  std::string text = {};            // If it failed.
  std::optional<Value> value = {};  // Else.
};

/// A service, and the way to call it. `Function` is a function, not a member.
template <auto Function, typename Signature = std::remove_pointer_t<decltype(Function)>>
class Service;

template <auto Function, typename Result, typename... Parameters>
class Service<Function, Result(Parameters...)> {
  static_assert(
      (detail::is_sendable_parameter<Parameters> && ...),
      "Sterna: a parameter by reference would not come back: take it by value or by const "
      "reference, and return what has changed");
  static_assert(!std::is_reference_v<Result> && !detail::is_span<Result> &&
                    !std::is_same_v<Result, std::string_view>,
                "Sterna: a result is a value: return std::vector or std::string instead of a view");

 public:
  /// Before sterna_start, on all nodes alike; `name` stays. `kind`: as rpc.h says.
  explicit Service(const char* name, sterna_rpc_kind kind = STERNA_RPC_THREAD,
                   const sterna_thread_options* thread = nullptr)
      : name_{name} {
    sterna_rpc_service_options options = STERNA_RPC_SERVICE_OPTIONS_DEFAULT;
    options.kind = kind;
    options.unpacks = 1;
    if (thread != nullptr) {
      options.thread = *thread;
    }
    expect_success(sterna_rpc_register_with(name, &options, serve, nullptr));
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] const char* name() const noexcept { return name_; }

  /// Calls it on `node` and waits. Throws RpcError.
  Result operator()(std::uint32_t node, const std::remove_cvref_t<Parameters>&... arguments) const {
    sterna_rpc_packing packing;
    pack(packing, false, arguments...);
    if constexpr (std::is_void_v<Result>) {
      expect_success(sterna_rpc_call_packed(&packing, node, nullptr, 0, nullptr));
    } else if constexpr (detail::is_plain<Result> && std::is_default_constructible_v<Result>) {
      Result result{};
      expect_success(sterna_rpc_call_packed(&packing, node, &result, sizeof result, nullptr));
      return result;
    } else {
      if (const sterna_status bad = sterna_rpc_may_wait(); bad != STERNA_SUCCESS) {
        (void)sterna_rpc_cancel(&packing);  // Its arguments would be read when they are gone.
        expect_success(bad);
      }
      sterna_rpc_call* call = nullptr;
      expect_success(sterna_rpc_start_packed(&packing, node, &call));
      return detail::take<Result>(detail::OwnedCall{call});
    }
  }
  /// Calls it; the arguments are copied.
  [[nodiscard]] Later<Result> start(std::uint32_t node,
                                    const std::remove_cvref_t<Parameters>&... arguments) const {
    sterna_rpc_packing packing;
    pack(packing, true, arguments...);
    sterna_rpc_call* call = nullptr;
    expect_success(sterna_rpc_start_packed(&packing, node, &call));
    return Later<Result>{call};
  }
  /// Wants no result, and hears of no failure of the service.
  void post(std::uint32_t node, const std::remove_cvref_t<Parameters>&... arguments) const {
    sterna_rpc_packing packing;
    pack(packing, false, arguments...);
    expect_success(sterna_rpc_post_packed(&packing, node));
  }
  /// Calls it on all `nodes` at the same time, and waits for all. What fails is in the outcomes;
  /// what a sterna_fields of the program throws goes on, when all calls have ended.
  [[nodiscard]] std::vector<Outcome<Result>> multicast(
      std::span<const std::uint32_t> nodes,
      const std::remove_cvref_t<Parameters>&... arguments) const {
    expect_success(sterna_rpc_may_wait());
    std::vector<Outcome<Result>> outcomes(nodes.size());
    std::vector<detail::OwnedCall> calls(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      outcomes[i].node = nodes[i];
      sterna_rpc_packing packing;
      keep_error(outcomes[i], [&] {
        pack(packing, false, arguments...);
        sterna_rpc_call* call = nullptr;
        expect_success(sterna_rpc_start_packed(&packing, nodes[i], &call));
        calls[i].reset(call);
      });
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (calls[i] == nullptr) {
        continue;
      }
      keep_error(outcomes[i], [&] {
        if constexpr (std::is_void_v<Result>) {
          detail::take<Result>(std::move(calls[i]));
          outcomes[i].value.emplace();
        } else {
          outcomes[i].value.emplace(detail::take<Result>(std::move(calls[i])));
        }
      });
    }
    return outcomes;
  }

 private:
  using Held = std::tuple<detail::HeldFor<Parameters>...>;
  static constexpr std::size_t kHeldOnStackMax = 16 << 10;
  static constexpr std::uint64_t kNumber =
      detail::number_of_signature<Result(std::remove_cvref_t<Parameters>...)>();

  static void keep_error(Outcome<Result>& outcome, auto action) {
    try {
      action();
    } catch (const RpcError& error) {
      outcome.status = error.status();
      outcome.text = error.what();
    }
  }

  void pack(sterna_rpc_packing& packing, bool is_copied, const auto&... arguments) const {
    expect_success(sterna_rpc_begin(&packing, name_, nullptr));
    try {
      detail::Packer packer{packing, is_copied};
      packer.number(kNumber);
      (detail::each(packer, arguments), ...);
    } catch (...) {
      (void)sterna_rpc_cancel(&packing);
      throw;
    }
  }

  static Result apply(Held& held) {
    return std::apply(
        [](auto&... values) -> Result {
          return Function(
              static_cast<std::conditional_t<
                  std::is_same_v<detail::HeldFor<Parameters>, std::remove_cvref_t<Parameters>>,
                  detail::HeldFor<Parameters>&&, Parameters>>(values)...);
        },
        held);
  }

  static sterna_status serve(void*, sterna_rpc_request* request) {
    // Before the unpacker, whose end waits: it is being written until finish(). What would not fit
    // the stack of most services has memory of its own.
    constexpr bool is_large = sizeof(Held) > kHeldOnStackMax;
    std::conditional_t<is_large, std::unique_ptr<Held>, Held> kept{};
    if constexpr (is_large) {
      kept = std::make_unique<Held>();
    }
    Held& held = [&]() -> Held& {
      if constexpr (is_large) {
        return *kept;
      } else {
        return kept;
      }
    }();
    detail::Unpacker unpacker{request};
    if (unpacker.number() != kNumber) {
      return sterna_rpc_fail(request, STERNA_INVALID_ARGUMENT,
                             "the caller means a service with another signature");
    }
    std::apply([&](auto&... values) { (detail::each(unpacker, values), ...); }, held);
    unpacker.finish();
    if constexpr (std::is_void_v<Result>) {
      apply(held);
      return STERNA_SUCCESS;
    } else if constexpr (detail::is_plain<Result>) {
      const Result result = apply(held);
      return sterna_rpc_reply(request, &result, sizeof result);
    } else {
      Result result = apply(held);
      detail::Writer writer;
      detail::each(writer, result);
      return sterna_rpc_reply(request, writer.all.data(), writer.all.size());
    }
  }

  const char* name_;
};

template <auto Function, typename Result, typename... Parameters>
class Service<Function, Result(Parameters...) noexcept>
    : public Service<Function, Result(Parameters...)> {
  using Service<Function, Result(Parameters...)>::Service;
};

}  // namespace sterna::typed

#endif  // STERNA_RPC_HPP
