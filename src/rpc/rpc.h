// Calling a function on another node: services by name, calls that wait for the reply or do not,
// and completions that are signalled from anywhere.
//
// PM2's LRPC and Madeleine's remote service requests (paper 000 §4.3, 002 §1.3). A service runs
// either at once, inside the poll that brought the request (it must not switch), or in a user
// thread of its own. A reply to a node finds the caller by an id; a reply to a rank goes to the
// rank, wherever it has moved meanwhile. Long pieces of arguments and long replies are messages of
// their own, between the ranks that the nodes are: they go from where they lie to where they shall
// be (parts.cc). Pieces whose caller waits may be read instead (read_parts.cc).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/annotate.h"
#include "base/log.h"
#include "base/result.h"
#include "base/spin_lock.h"
#include "net/transport.h"
#include "progress/completion.h"
#include "rpc/call.h"
#include "rpc/message.h"
#include "rpc/post_window.h"
#include "rpc/service_table.h"
#include "threads/thread.h"

namespace sterna::threads {
class Team;
}
namespace sterna::memory {
struct RankSlot;
}

namespace sterna::rpc {

class RankCall;  // rank_call.h

/// The long pieces of a request, which a service that takes them receives in their order.
struct Incoming {
  std::uint32_t from_node = 0;
  std::uint32_t number = 0;
  std::span<const Part> parts;
  std::size_t taken = 0;
  // 0: the parts are sent. kHere: they lie at their addresses. Else: at those of the caller's
  // process, whose call has this id.
  std::uint64_t reader_id = 0;
  static constexpr std::uint64_t kHere = ~std::uint64_t{0};
};

struct Request {
  std::uint32_t from_node;
  std::span<const std::byte> arguments;  // Valid until the service returns.
  Incoming* incoming = nullptr;          // Of a service that takes its long pieces itself: if any.
  bool is_in_poll = false;               // Else on a thread of its own.
  ReplyTo* reply_to = nullptr;           // For Rpc::reply_now().
};

/// The reply, or an error, which the caller gets with its text. For a call without reply it is
/// dropped, an error is logged.
using Service = Result<Bytes> (*)(void* context, const Request& request);

/// A reply in full.
struct Answer {
  Result<Bytes> reply = Bytes{};
  std::uint32_t status = 0;  // Not 0: the service's own word on how it was, and why.
  std::string text = {};
};
using Answerer = void (*)(void* context, const Request& request, Answer& answer);

enum class RunIn : std::uint8_t {
  poll,    // Quick: inside the poll; must not switch, block or wait. Where its long pieces are not
           // gathered by the poll (gather.cc) it has a thread.
  thread,  // In a new user thread; may switch, call and wait.
};

/// What a node has asked of others. Another value: it has asked something since.
struct SentRequests {
  std::uint64_t posted_units = 0;  // As post_window.h counts.
  std::uint64_t calls = 0;
  std::uint64_t call_at_once = 0;
  std::uint64_t replies = 0;  // Long ones that were taken, or for which a service waited.
  bool operator==(const SentRequests&) const = default;
};

/// The long ones of Rpc::reply_now(). Another value: one has come or gone since.
struct AwaitedReplies {
  std::uint32_t waiting = 0;  // Until somebody takes them; not those that are being withdrawn.
  std::uint32_t given = 0;    // Since ever.
  bool operator==(const AwaitedReplies&) const = default;
};

/// What the thread of a service does. It stays where it is until it is called.
struct ThreadBody {
  threads::Entry entry;
  void* argument;
};

/// Makes that thread, detached; does not wait: fails with timed_out where it would have to. By the
/// poller, or a local caller.
using Spawn = Result<> (*)(void* context, const ThreadWish& wish, ThreadBody& body);

/// A service in full. Constant after the first poll.
struct ServiceEntry {
  std::string name;
  RunIn run_in = RunIn::poll;
  Service service = nullptr;  // One of the two.
  Answerer answerer = nullptr;
  void* context = nullptr;
  /// It receives the long pieces itself (Request::incoming). Else they are there, in their places
  /// among the arguments, when it begins.
  bool takes_parts = false;
  Spawn spawn = nullptr;  // Null: as the runtime's own services.
};

struct RpcOptions {
  net::Transport* transport = nullptr;  // All outlive the Rpc.
  progress::Progress* progress = nullptr;  // Null: no call waits.
  threads::Team* team = nullptr;  // Null: services that need a thread are refused.
  const Log* log = nullptr;
  /// Where every node is the rank of its number and stays it: that rank's. There may be long pieces
  /// then, in the two contexts that begin with `part_context`.
  net::Endpoint* endpoint = nullptr;
  std::uint32_t part_context = 0;
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
  /// Names of different spaces are different.
  void add_service(ServiceEntry entry, std::uint64_t space = 0);

  /// Asks and waits. Switches. Fails with the service's error, closed (the node is lost), or
  /// timed_out at `deadline_ns` of the monotonic clock.
  [[nodiscard]] Result<Bytes> call(std::uint32_t node, std::string_view name,
                                   std::span<const std::byte> arguments,
                                   std::uint64_t deadline_ns = kNever);

  /// Asks; `call.done` tells. Completed also when the node is lost, or there is no memory. Its
  /// parts end for themselves, whatever becomes of the call.
  void start(std::uint32_t node, std::string_view name, std::span<const std::byte> arguments,
             PendingCall& call) noexcept {
    start(node, service_number(name), arguments, call);
  }
  void start(std::uint32_t node, std::uint64_t service, std::span<const std::byte> arguments,
             PendingCall& call, const CallOptions& options = {}) noexcept;

  /// As start(), and waits for some microseconds, which is as long as most quick services take:
  /// then nothing of the call has to be noted. False: nothing has happened, start() is to be used.
  /// `call.room` is set. For who waits next, and has nothing else to do.
  [[nodiscard]] bool start_at_once(std::uint32_t node, std::uint64_t service,
                                   std::span<const std::byte> arguments,
                                   PendingCall& call) noexcept;

  /// Before wait() of a call without a deadline, whose only waiter the caller is: polls for as long
  /// as `part_bytes` may take on their way. Does not switch.
  void poll_for(const PendingCall& call, std::uint64_t part_bytes) noexcept;
  /// Waits for it until `deadline_ns`. False: the call goes on. Switches.
  [[nodiscard]] bool wait(PendingCall& call, std::uint64_t deadline_ns = kNever) noexcept;
  /// It ends with `error` unless it has ended: done when this returns. Switches.
  void withdraw(PendingCall& call, Error error) noexcept;
  /// The long reply of a call that has ended goes where the caller wants it, as much as fits. Once.
  void receive_reply(PendingCall& call, std::span<std::byte> room,
                     net::RecvRequest& request) noexcept;
  /// Nobody wants it.
  void drop_reply(PendingCall& call) noexcept;

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

  /// Asks for no reply. Fails with closed. Goes at once, however much was posted before, but for
  /// `options.may_wait`.
  Result<> post(std::uint32_t node, std::string_view name, std::span<const std::byte> arguments) {
    return post(node, service_number(name), arguments);
  }
  Result<> post(std::uint32_t node, std::uint64_t service, std::span<const std::byte> arguments,
                const CallOptions& options = {});

  /// The same of what needs no parts, if it can go at once. False: nothing has happened.
  [[nodiscard]] bool try_post(std::uint32_t node, std::uint64_t service,
                              std::span<const std::byte> arguments) noexcept;

  /// What was posted to `node` and has not begun there, as far as it has said: in units of
  /// post_window.h.
  [[nodiscard]] std::uint64_t outstanding_posts(std::uint32_t node) const noexcept {
    return peers_[node].to.outstanding();
  }

  [[nodiscard]] SentRequests sent_requests() const noexcept;
  /// A request has come whose service has neither run, nor a thread.
  [[nodiscard]] bool has_unbegun() noexcept;

  // A completion is a call that nobody is asked for: whoever has its ReplyTo, on any node, ends it.

  /// `call` waits for a signal() of what it returns; it ends with closed if `node` is lost. Its id
  /// is 0: it has ended already, also with out_of_memory.
  [[nodiscard]] ReplyTo expect(PendingCall& call, std::uint32_t node = kAnyNode) noexcept;
  /// Of a rank, as start().
  [[nodiscard]] ReplyTo expect(RankCall& call, std::uint32_t node = kAnyNode);
  /// Ends what waits for it, wherever it is now; one that has ended hears nothing. Any node. Fails
  /// with closed.
  Result<> signal(const ReplyTo& to, Answer answer);

  /// The reply, now, from where the bytes lie: they are the caller's again when `reply.done`. What
  /// the service returns later is dropped. On a thread. Throws bad_alloc: nothing was replied.
  void reply_now(const Request& request, std::span<const std::byte> bytes, AwaitedReply& reply);
  /// Waits for that. Cancelled: who takes the reply after all gets an empty one. Once. Switches.
  [[nodiscard]] net::Fault await(AwaitedReply& reply) noexcept;
  [[nodiscard]] AwaitedReplies awaited_replies() const noexcept;

  /// Receives the next part of a request, in the order in which they were packed.
  void receive_part(Incoming& incoming, const net::Buffer& buffer,
                    net::RecvRequest& request) noexcept;

  /// There is room for threads again: starts the requests that had none. By the poller.
  void start_waiting() noexcept;

  /// Calls to `node` that are under way end with closed. By the poller.
  void lose_peer(std::uint32_t node) noexcept;
  [[nodiscard]] bool is_lost(std::uint32_t node) const noexcept { return calls_.is_lost(node); }

  [[nodiscard]] std::uint32_t node() const noexcept { return node_; }
  [[nodiscard]] std::uint32_t node_count() const noexcept { return node_count_; }
  [[nodiscard]] bool has_parts() const noexcept { return options_.endpoint != nullptr; }
  /// Long replies that are being sent, and parts that are received for nobody: the endpoint is
  /// needed while there are any.
  [[nodiscard]] std::uint32_t loose_part_count() const noexcept {
    return loose_parts_.load(std::memory_order_acquire);
  }
  /// Those that are received for nobody.
  [[nodiscard]] bool has_unwanted() const noexcept {
    return unwanted_.load(std::memory_order_acquire) != 0;
  }
  /// Nobody will take a long reply any more: those that are announced only are taken back.
  void withdraw_replies() noexcept { withdraw_owned(nullptr); }
  /// Nobody will take those that services waited for then.
  void withdraw_awaited(const AwaitedReplies& then) noexcept { withdraw_owned(&then); }

 private:
  struct Work;       // A request on its way to its service: work.h.
  struct Serving;    // One inside it.
  struct Gathering;  // One whose long pieces come first: gather.cc.
  struct Owned;      // A long reply: parts.cc.
  struct Unwanted;

  static void on_node_message(void* self, std::uint32_t from_node, std::span<const std::byte> head,
                              std::span<const std::byte> body) noexcept;
  static void on_rank_note(void* self, std::uint32_t rank, std::uint32_t from_node,
                           std::span<const std::byte> bytes) noexcept;
  static void on_gathered(void* self, std::uint32_t from_node, std::span<const std::byte> head,
                          std::span<const std::byte> body) noexcept;
  static void run_work(void* work);
  static void end_unserved(void* serving) noexcept;

  static bool may_hold_call(memory::RankSlot& slot, std::uintptr_t address) noexcept;

  void on_request(const Message& message, std::uint32_t from_node) noexcept;
  bool is_gathered(const ServiceEntry& entry, const Message& message,
                   std::uint32_t from_node) const noexcept;
  void find_and_serve(const Message& message, std::uint32_t from_node);
  void on_reply(const Message& message, std::uint32_t from_node) noexcept;
  void on_plain_reply(std::uint64_t id, std::span<const std::byte> body,
                      std::uint32_t from_node) noexcept;
  void on_plain_request(const ServiceEntry& entry, std::span<const std::byte> arguments,
                        const ReplyTo& reply_to) noexcept;
  void on_gathered_request(const ServiceEntry& entry, std::span<const std::byte> arguments,
                           const ReplyTo& reply_to, std::uint64_t part_bytes) noexcept;
  void on_any(std::span<const std::byte> head, std::span<const std::byte> body,
              std::uint32_t from_node) noexcept;

  Result<> send_request(std::uint32_t node, std::uint64_t service,
                        std::span<const std::byte> arguments, const ReplyTo& reply_to,
                        const CallOptions& options = {});
  bool reserve_at_once() noexcept;
  void serve_quick(const ServiceEntry& entry, std::span<const std::byte> arguments,
                   const ReplyTo& reply_to, std::uint64_t part_bytes = 0,
                   Incoming* incoming = nullptr);
  void serve(const ServiceEntry& entry, Request& request, ReplyTo& reply_to, Answer& given);
  bool is_plain(Answer& given) const noexcept;
  void renew_answer() noexcept;
  void spawn(const ServiceEntry& entry, const Message& message, std::uint32_t from_node);
  void start_work(std::unique_ptr<Work> work);
  bool gather_in_poll(std::unique_ptr<Work> work);
  bool read_in_poll(std::unique_ptr<Work> work);
  void refuse(const Message& message, std::uint32_t from_node, Error why);
  void refuse(const ReplyTo& to, std::uint64_t units, Error why);
  void on_begun(std::uint32_t from_node, std::uint64_t total) noexcept;
  void note_begun_in_poll(const ReplyTo& from, std::uint64_t units) noexcept;
  void note_begun(const Work& work) noexcept;
  void tell_begun(std::uint32_t node, std::uint64_t total) noexcept;
  Result<> answer(const ReplyTo& to, Answer&& answer);
  Result<> send_answer(const ReplyTo& to, Answer& answer);
  void reply_to_rank(const ReplyTo& to, const Result<Bytes>& result);
  void finish(std::uint64_t id, Result<Bytes> reply) noexcept;
  [[nodiscard]] Result<Bytes> call_from_rank(std::uint32_t node, std::string_view name,
                                             std::span<const std::byte> arguments,
                                             std::uint64_t deadline_ns);
  // tail.cc
  bool may_be_tail(std::uint32_t node, std::uint64_t service, std::size_t bytes,
                   const CallOptions& options) const noexcept;
  Result<> send_tail(std::uint32_t node, std::uint64_t service,
                     std::span<const std::byte> arguments, std::uint64_t id, OutPart& part);
  void serve_tail(const ServiceEntry& entry, const Message& message, std::uint32_t from_node);
  // read_parts.cc
  bool may_be_read(std::uint32_t node, std::span<OutPart> parts) const noexcept;
  Result<> send_readable(std::uint32_t node, std::uint64_t service,
                         std::span<const std::byte> arguments, PendingCall& call,
                         const CallOptions& options);
  void on_wanted(const Message& message, std::uint32_t from_node) noexcept;
  void want_rest(Incoming& incoming) noexcept;
  void want(std::uint32_t node, std::uint64_t id, std::size_t first) noexcept;
  bool read_part(Incoming& incoming, const net::Buffer& buffer) noexcept;
  // parts.cc
  void send_parts(std::uint32_t node, std::uint32_t context, std::uint32_t number,
                  std::span<OutPart> parts) noexcept;
  Result<> send_long(std::uint32_t node, Message& message, Bytes bytes);
  Result<> send_long(std::uint32_t node, Message& message, std::unique_ptr<Owned> owned,
                     std::span<const std::byte> bytes);
  void send_owned(std::uint32_t node, std::uint32_t number, std::unique_ptr<Owned> owned,
                  std::span<const std::byte> bytes) noexcept;
  void withdraw_owned(const AwaitedReplies* only) noexcept;
  void drop_part(std::uint32_t from_node, std::uint32_t number, bool is_reply) noexcept;
  void drop_rest(Incoming& incoming) noexcept;
  [[nodiscard]] std::uint32_t next_number() noexcept;

  const RpcOptions options_;
  const std::uint32_t node_;  // This one.
  const std::uint32_t node_count_;
  const Logger log_;
  ServiceTable<ServiceEntry> services_;  // Constant after the first poll.
  CallTable calls_;
  const std::unique_ptr<PostPeer[]> peers_;  // By node.
  // The poller's, as the next two: of the quick service that runs; its memory is used again.
  Answer quick_answer_;
  bool is_answer_new_ = true;     // Else a service has ended by an exception.
  // Reserved for start_at_once(); 0: none. Others only see that it changes.
  std::atomic<std::uint64_t> at_once_id_{0};
  std::atomic<std::uint32_t> next_number_{0};  // Relaxed: only differs.
  // Released by who ends a part, after its last access to the endpoint.
  std::atomic<std::uint32_t> loose_parts_{0};
  std::atomic<std::uint32_t> unwanted_{0};       // The same, of those.
  std::atomic<std::uint64_t> replies_taken_{0};  // Relaxed: only differs.
  // AwaitedReplies, `given` above. Released by who begins to wait, after all that it did before,
  // and by who ends one, before its service can go on.
  std::atomic<std::uint64_t> awaited_{0};
  std::atomic<std::uint32_t> gatherings_{0};  // Released by who ends one.
  SpinLock owned_lock_;
  Owned* first_owned_ STERNA_GUARDED_BY(owned_lock_) = nullptr;
  SpinLock waiting_lock_;
  // Requests for which no stack could be had without waiting: the poll cannot wait.
  std::vector<std::unique_ptr<Work>> waiting_ STERNA_GUARDED_BY(waiting_lock_);
  // While a note is stored in a call on a rank's stack, and while a rank withdraws its call.
  SpinLock notes_lock_;
};

}  // namespace sterna::rpc
