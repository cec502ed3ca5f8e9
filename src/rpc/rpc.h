// Calling a function on another node: services by name, calls that wait for the reply or do not.
//
// PM2's LRPC and Madeleine's remote service requests (paper 000 §4.3, 002 §1.3). A service runs
// either at once, inside the poll that brought the request (it must not switch), or in a user
// thread of its own. A reply to a node finds the caller by an id; a reply to a rank goes to the
// rank, wherever it has moved meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/annotate.h"
#include "base/log.h"
#include "base/result.h"
#include "base/spin_lock.h"
#include "net/transport.h"
#include "progress/completion.h"
#include "rpc/message.h"

namespace sterna::threads {
class Team;
}
namespace sterna::memory {
struct RankSlot;
}

namespace sterna::rpc {

class RankCall;  // rank_call.h

using Bytes = std::vector<std::byte>;

struct Request {
  std::uint32_t from_node;
  std::span<const std::byte> arguments;  // Valid until the service returns.
};

/// The reply, or an error, which the caller gets with its text. For a call without reply it is
/// dropped, an error is logged.
using Service = Result<Bytes> (*)(void* context, const Request& request);

enum class RunIn : std::uint8_t {
  poll,    // Quick: inside the poll; must not switch, block or wait.
  thread,  // In a new user thread; may switch, call and wait.
};

/// A call whose reply is awaited later. Memory of the caller, until done; node callers only.
struct PendingCall {
  progress::Completion done;
  Result<Bytes> reply = Bytes{};  // Valid when done.
  std::uint64_t id = 0;           // Rpc's.
  std::uint32_t to_node = 0;      // Rpc's.
};

struct RpcOptions {
  net::Transport* transport = nullptr;  // All outlive the Rpc.
  progress::Progress* progress = nullptr;
  threads::Team* team = nullptr;  // Null: services that need a thread are refused.
  const Log* log = nullptr;
};

/// One a node. Calls from any thread of the node.
class Rpc {
 public:
  explicit Rpc(const RpcOptions& options);
  ~Rpc();
  Rpc(const Rpc&) = delete;
  Rpc& operator=(const Rpc&) = delete;

  /// Before the first poll of the transport. The same names on all nodes; a name that a node does
  /// not know is an error of the caller. Two names with one number (a hash) are a broken rule.
  void add_service(std::string_view name, RunIn run_in, Service service, void* context);

  /// Asks and waits. Switches. Fails with the service's error, closed (the node is lost), or
  /// timed_out at `deadline_ns` of the monotonic clock.
  [[nodiscard]] Result<Bytes> call(std::uint32_t node, std::string_view name,
                                   std::span<const std::byte> arguments,
                                   std::uint64_t deadline_ns = kNever);

  /// Asks; `call.done` tells. Completed also when the node is lost.
  void start(std::uint32_t node, std::string_view name, std::span<const std::byte> arguments,
             PendingCall& call);

  /// The same for the rank that runs here and calls. Fails with closed; then there is nothing to
  /// take.
  [[nodiscard]] Result<> start(std::uint32_t node, std::string_view name,
                               std::span<const std::byte> arguments, RankCall& call);
  /// Waits for it; this Rpc is that of the node where the rank is now. True: take() has the
  /// outcome, which may be that the node is lost. False: the deadline, or somebody has unparked the
  /// rank. Switches.
  [[nodiscard]] bool wait(RankCall& call, const threads::WaitOptions& options = {}) noexcept;
  /// Ends the call, wherever it stands: the reply or the service's error, closed, or timed_out when
  /// nothing has come.
  [[nodiscard]] Result<Bytes> take(RankCall& call);

  /// Asks for no reply. Fails with closed.
  Result<> post(std::uint32_t node, std::string_view name, std::span<const std::byte> arguments);

  /// There is room for threads again: starts the requests that had none. By the poller.
  void start_waiting() noexcept;

  /// Calls to `node` that are under way end with closed. By the poller.
  void lose_peer(std::uint32_t node) noexcept;

 private:
  struct Entry {
    std::string name;
    RunIn run_in = RunIn::poll;
    Service service = nullptr;
    void* context = nullptr;
  };
  struct Work;  // A request on its way to a thread.

  static void on_node_message(void* self, std::uint32_t from_node,
                              std::span<const std::byte> bytes) noexcept;
  static void on_rank_note(void* self, std::uint32_t rank, std::uint32_t from_node,
                           std::span<const std::byte> bytes) noexcept;
  static void run_work(void* work);

  static bool may_hold_call(memory::RankSlot& slot, std::uintptr_t address) noexcept;

  void on_request(const Message& message, std::uint32_t from_node);

  Result<> send_request(std::uint32_t node, std::string_view name,
                        std::span<const std::byte> arguments, const ReplyTo& reply_to);
  void serve(const Entry& entry, const Request& request, const ReplyTo& reply_to);
  void spawn(const Entry& entry, const Request& request, const ReplyTo& reply_to);
  void start_work(std::unique_ptr<Work> work);
  void reply(const ReplyTo& to, const Result<Bytes>& result);
  void reply_to_rank(const ReplyTo& to, const Result<Bytes>& result);
  void finish(std::uint64_t id, Result<Bytes> reply) noexcept;
  [[nodiscard]] Result<Bytes> call_from_rank(std::uint32_t node, std::string_view name,
                                             std::span<const std::byte> arguments,
                                             std::uint64_t deadline_ns);

  const RpcOptions options_;
  const Logger log_;
  std::unordered_map<std::uint64_t, Entry> services_;  // Constant after the first poll.
  SpinLock lock_;
  std::unordered_map<std::uint64_t, PendingCall*> pending_ STERNA_GUARDED_BY(lock_);
  std::uint64_t next_id_ STERNA_GUARDED_BY(lock_) = 1;
  std::vector<bool> lost_ STERNA_GUARDED_BY(lock_);  // By node.
  // Requests for which no stack could be had without waiting: the poll cannot wait. By the poller.
  std::vector<std::unique_ptr<Work>> waiting_;
  // While a note is stored in a call on a rank's stack, and while a rank withdraws its call.
  SpinLock notes_lock_;
};

}  // namespace sterna::rpc
