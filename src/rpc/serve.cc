// Services: finding them, running them in the poll or in a thread, their answers.
#include <cstddef>
#include <new>
#include <utility>

#include "memory/rank_slot.h"
#include "net/buffer.h"
#include "progress/progress.h"
#include "rpc/handlers.h"
#include "rpc/rpc.h"
#include "rpc/work.h"
#include "threads/control/cancel.h"
#include "threads/team.h"
#include "threads/thread.h"

namespace sterna::rpc {
namespace {

// Services call and wait: as much stack as a small program.
constexpr std::size_t kServiceStackBytes = 248 << 10;
constexpr std::uint32_t kStackKibMax = 2 << 20;
// What the poll reads by itself, in one go. Callers offer no more.
constexpr std::uint64_t kReadBytesMax = 256 << 10;

Error no_memory() {
  return {Errc::out_of_memory, "no memory there for what was asked"};
}

std::uint64_t bytes_of_parts(const Message& message) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < message.part_count; ++i) {
    bytes += part_of(message, i).bytes;
  }
  return bytes;
}

}  // namespace

Rpc::Rpc(const RpcOptions& options)
    : options_{options},
      node_{options.transport->job().node_index},
      node_count_{options.transport->job().node_count},
      log_{options.log == nullptr ? Logger{} : Logger{*options.log, "rpc"}},
      peers_{std::make_unique<PostPeer[]>(node_count_)} {
  options.transport->register_node_handler(kNodeHandler, on_node_message, this);
  options.transport->register_node_handler(kGatheredHandler, on_gathered, this);
  options.transport->register_rank_handler(kRankHandler, on_rank_note, this);
}

Rpc::~Rpc() = default;

void Rpc::add_service(std::string_view name, RunIn run_in, Service service, void* context) {
  add_service(
      {.name = std::string{name}, .run_in = run_in, .service = service, .context = context});
}

void Rpc::add_service(ServiceEntry entry, std::uint64_t space) {
  check(entry.run_in == RunIn::poll || options_.team != nullptr, "services in threads need a team");
  const std::uint64_t number = service_number(entry.name, space);
  const bool is_new = services_.add(number, std::move(entry));
  check(is_new, "a name is registered once, and no two names share a number");
}

void Rpc::on_request(const Message& message, std::uint32_t from_node) noexcept {
  try {
    find_and_serve(message, from_node);
  } catch (const std::bad_alloc&) {
    refuse(message, from_node, no_memory());
  }
}

void Rpc::refuse(const Message& message, std::uint32_t from_node, Error why) {
  for (std::uint32_t i = 0; i < message.part_count && !message.are_read; ++i) {
    drop_part(from_node, message.number, false);
  }
  refuse(message.reply_to, units_of_post(message.body.size(), bytes_of_parts(message)),
         std::move(why));
}

void Rpc::refuse(const ReplyTo& to, std::uint64_t units, Error why) {
  note_begun_in_poll(to, units);
  (void)answer(to, {.reply = std::move(why)});
}

/// A request has been served or refused: if nobody is answered, its sender may post as much again.
inline void Rpc::note_begun_in_poll(const ReplyTo& from, std::uint64_t units) noexcept {
  if (from.id == 0) {
    tell_begun(from.node, peers_[from.node].from.add_in_poll(units));
  }
}

/// The thread of a request runs, or never will; it has the long pieces of its arguments, if it does
/// not take them itself. Before its service waits for anything: see post_window.h.
void Rpc::note_begun(const Work& work) noexcept {
  if (work.reply_to.id == 0) {
    std::uint64_t part_bytes = 0;
    for (const Part& part : work.incoming.parts) {
      part_bytes += part.bytes;
    }
    const std::uint32_t node = work.incoming.from_node;
    tell_begun(node, peers_[node].from.add(units_of_post(work.arguments.size(), part_bytes)));
  }
}

/// 0: not now.
inline void Rpc::tell_begun(std::uint32_t node, std::uint64_t total) noexcept {
  if (total == 0) [[likely]] {
    return;
  }
  if (node == node_) {
    on_begun(node, total);
  } else {  // A node that is gone posts no more.
    (void)options_.transport->node_message(node, kNodeHandler, PlainHead::of_begun(total).bytes());
  }
}

/// Whether the long pieces for a quick service are put together by the poll. Not where a service
/// takes them itself, and waits; nor where they are copied directly or are longer: there a thread
/// that waits for them keeps its processor awake, and is worth its price.
bool Rpc::is_gathered(const ServiceEntry& entry, const Message& message,
                      std::uint32_t from_node) const noexcept {
  return entry.run_in == RunIn::poll && !entry.takes_parts && from_node != node_ &&
         !message.are_read && bytes_of_parts(message) <= kGatheredBytesMax &&
         !options_.transport->may_copy_directly(from_node);
}

void Rpc::find_and_serve(const Message& message, std::uint32_t from_node) {
  const ServiceEntry* const found = services_.find(message.service);
  const bool is_read = found != nullptr && message.are_read && found->run_in == RunIn::poll &&
                       !found->takes_parts && bytes_of_parts(message) <= kReadBytesMax;
  if (found == nullptr || (message.part_count != 0 && options_.team == nullptr && !is_read &&
                           !is_gathered(*found, message, from_node))) {
    refuse(message, from_node,
           {Errc::unsupported, fmt::format("node {} has no such service", node_)});
    return;
  }
  const ServiceEntry& entry = *found;
  if (message.tail_bytes != 0) {
    serve_tail(entry, message, from_node);
  } else if (entry.run_in == RunIn::poll && message.part_count == 0) {
    serve_quick(entry, message.body, message.reply_to);
  } else if (is_read) {
    if (!read_in_poll(Work::make(*this, entry, message, from_node))) {
      refuse(message, from_node, no_memory());
    }
  } else if (is_gathered(entry, message, from_node)) {
    if (!gather_in_poll(Work::make(*this, entry, message, from_node))) {
      refuse(message, from_node, no_memory());
    }
  } else {
    spawn(entry, message, from_node);
  }
}

/// It goes with the head of a reply and nothing else.
inline bool Rpc::is_plain(Answer& given) const noexcept {
  return given.reply && given.status == 0 && given.text.empty() &&
         (!has_parts() || given.reply.value().size() <= kReplyInlineBytes);
}

/// `given` is as new.
inline void Rpc::serve(const ServiceEntry& entry, Request& request, ReplyTo& reply_to,
                       Answer& given) {
  request.reply_to = &reply_to;
  if (entry.answerer != nullptr) [[likely]] {
    entry.answerer(entry.context, request, given);
  } else {
    given.reply = entry.service(entry.context, request);
  }
  if (reply_to.id != 0) {
    // What is most often, in few steps.
    const bool is_sent =
        reply_to.rank == kNoRank && is_plain(given) &&
        options_.transport->try_node_message(reply_to.node, kNodeHandler,
                                             PlainHead::of_reply(reply_to.id).bytes(),
                                             given.reply.value());
    if (!is_sent) [[unlikely]] {
      (void)answer(reply_to, std::move(given));
    }
  } else if (!given.reply.has_value() || !given.text.empty()) {
    log_.warn("{} from node {}: {}", entry.name, request.from_node,
              given.reply.has_value() ? given.text : given.reply.error().text);
  }
}

/// In the poll. What is to be cleared is cleared once the reply is on its way.
inline void Rpc::serve_quick(const ServiceEntry& entry, std::span<const std::byte> arguments,
                             const ReplyTo& reply_to, std::uint64_t part_bytes,
                             Incoming* incoming) {
  if (!is_answer_new_) [[unlikely]] {
    renew_answer();
  }
  is_answer_new_ = false;
  Request request{.from_node = reply_to.node,
                  .arguments = arguments,
                  .incoming = incoming,
                  .is_in_poll = true};
  ReplyTo to = reply_to;
  serve(entry, request, to, quick_answer_);
  renew_answer();
  note_begun_in_poll(reply_to, units_of_post(arguments.size() - part_bytes, part_bytes));
}

void Rpc::serve_tail(const ServiceEntry& entry, const Message& message, std::uint32_t from_node) {
  if (!entry.takes_parts && entry.run_in == RunIn::poll) {
    serve_quick(entry, message.body, message.reply_to);
    return;
  }
  if (entry.run_in == RunIn::thread) {
    spawn(entry, message, from_node);
    return;
  }
  const std::size_t short_bytes = message.body.size() - message.tail_bytes;
  const Part tail{
      .offset = static_cast<std::uint32_t>(short_bytes),
      .bytes = message.tail_bytes,
      .address = reinterpret_cast<std::uint64_t>(message.body.data() + short_bytes)};
  Incoming incoming{
      .from_node = from_node, .number = 0, .parts = {&tail, 1}, .reader_id = Incoming::kHere};
  serve_quick(entry, message.body.first(short_bytes), message.reply_to, 0, &incoming);
}

/// A request with nothing but bytes, for a service that is quick.
void Rpc::on_plain_request(const ServiceEntry& entry, std::span<const std::byte> arguments,
                           const ReplyTo& reply_to) noexcept {
  try {
    serve_quick(entry, arguments, reply_to);
  } catch (const std::bad_alloc&) {
    refuse(reply_to, units_of_post(arguments.size()), no_memory());
  }
}

/// The same where `part_bytes` of them came alone.
void Rpc::on_gathered_request(const ServiceEntry& entry, std::span<const std::byte> arguments,
                              const ReplyTo& reply_to, std::uint64_t part_bytes) noexcept {
  try {
    serve_quick(entry, arguments, reply_to, part_bytes);
  } catch (const std::bad_alloc&) {
    refuse(reply_to, units_of_post(arguments.size() - part_bytes, part_bytes), no_memory());
  }
}

inline void Rpc::renew_answer() noexcept {
  if (quick_answer_.reply.has_value() &&
      quick_answer_.reply.value().capacity() <= 2 * kReplyInlineBytes) [[likely]] {
    quick_answer_.reply.value().clear();
  } else {
    quick_answer_.reply = Bytes{};
  }
  quick_answer_.status = 0;
  quick_answer_.text.clear();
  is_answer_new_ = true;
}

void Rpc::spawn(const ServiceEntry& entry, const Message& message, std::uint32_t from_node) {
  std::unique_ptr<Work> work = Work::make(*this, entry, message, from_node);
  if (work == nullptr) {
    refuse(message, from_node, no_memory());
    return;
  }
  start_work(std::move(work));
}

void Rpc::start_work(std::unique_ptr<Work> work) {
  const ThreadWish& wish = work->wish;
  // Now: once its thread is made, that may have run already, and have freed it.
  const bool has_long_pieces = !work->incoming.parts.empty();
  Result<> started = Done{};
  if (wish.stack_kib > kStackKibMax ||
      (wish.priority != kAsRegistered && wish.priority >= kPriorityCount)) {
    started = Error{Errc::invalid_argument, "no thread has such a priority or stack"};
  } else if (work->entry->spawn != nullptr) {
    started = work->entry->spawn(work->entry->context, wish, work->body);
  } else {
    threads::ThreadOptions thread;
    thread.name = work->entry->name.c_str();
    thread.stack_bytes =
        wish.stack_kib == 0 ? kServiceStackBytes : std::size_t{wish.stack_kib} << 10;
    thread.priority = wish.priority == kAsRegistered ? kPriorityNormal : wish.priority;
    thread.detached = true;
    thread.may_wait = false;
    if (Result<threads::Thread*> made = options_.team->spawn(thread, run_work, work.get()); !made) {
      started = made.error();
    }
  }
  if (started) {
    if (has_long_pieces) {
      options_.transport->end_polls();  // What it awaits before it comes is copied once.
    }
    if (options_.progress != nullptr) {
      options_.progress->gave_work();
    }
    (void)work.release();  // The thread's now.
  } else if (started.error().code == Errc::timed_out) {
    const SpinGuard guard{waiting_lock_};
    waiting_.push_back(std::move(work));  // start_waiting() comes with the addresses.
  } else {
    note_begun(*work);
    drop_rest(work->incoming);
    (void)answer(work->reply_to, {.reply = started.error()});
  }
}

void Rpc::start_waiting() noexcept {
  std::vector<std::unique_ptr<Work>> waiting;
  {
    const SpinGuard guard{waiting_lock_};
    waiting.swap(waiting_);
  }
  for (std::unique_ptr<Work>& work : waiting) {
    start_work(std::move(work));  // In their order; those that must wait on are queued again.
  }
}

/// The thread has ended inside its service, whose frames are not unwound: its caller hears of it.
void Rpc::end_unserved(void* serving) noexcept {
  auto& [work, given] = *static_cast<Serving*>(serving);
  Rpc& rpc = *work->rpc;
  rpc.drop_rest(work->incoming);
  try {
    (void)rpc.answer(work->reply_to,
                     {.reply = Error{Errc::refused,
                                     fmt::format("the thread of {} on node {} has ended inside it",
                                                 work->entry->name, rpc.node_)}});
  } catch (const std::bad_alloc&) {
    rpc.log_.warn("no memory to say that the thread of {} has ended", work->entry->name);
  }
  work.reset();
  given = {};
}

void Rpc::run_work(void* argument) {
  Serving serving{.work = std::unique_ptr<Work>{static_cast<Work*>(argument)}, .given = {}};
  const std::unique_ptr<Work>& work = serving.work;
  Rpc& rpc = *work->rpc;
  Request request{.from_node = work->incoming.from_node, .arguments = work->arguments};
  const bool gathers = !work->entry->takes_parts && !work->incoming.parts.empty();
  const Result<> gathered = gathers ? work->gather() : Done{};
  rpc.note_begun(*work);
  if (work->entry->takes_parts) {
    request.incoming = &work->incoming;
  } else if (gathers) {
    if (!gathered) {
      rpc.drop_rest(work->incoming);
      (void)rpc.answer(work->reply_to, {.reply = gathered.error()});
      return;
    }
    request.arguments = {work->gathered.get(), work->gathered_bytes};
  }
  threads::Cleanup cleanup{.function = end_unserved, .argument = &serving};
  threads::push_cleanup(cleanup);
  rpc.serve(*work->entry, request, work->reply_to, serving.given);
  threads::drop_cleanup(cleanup);
  rpc.drop_rest(work->incoming);
}

Result<> Rpc::signal(const ReplyTo& to, Answer given) {
  return answer(to, std::move(given));
}

Result<> Rpc::answer(const ReplyTo& to, Answer&& given) {
  if (to.id == 0) {
    return Done{};
  }
  if (to.rank != kNoRank) {
    reply_to_rank(to, given.status == 0 ? std::move(given.reply)
                                        : Error{Errc::refused, std::move(given.text)});
    return Done{};
  }
  Result<> sent = send_answer(to, given);
  if (!sent) {
    log_.debug("no reply to node {}: it is gone", to.node);  // Which needs none.
  }
  return sent;
}

Result<> Rpc::send_answer(const ReplyTo& to, Answer& given) {
  if (is_plain(given)) [[likely]] {
    const PlainHead head = PlainHead::of_reply(to.id);
    return options_.transport->node_message(to.node, kNodeHandler, head.bytes(),
                                            given.reply.value());
  }
  Message message{.kind = MessageKind::reply, .reply_to = {.id = to.id}};
  message.status = given.status;
  message.text = given.text;
  Bytes error;
  if (!given.reply) {
    message.kind = MessageKind::error;
    message.status = 0;
    message.body = error = encode_error(given.reply.error());
  } else if (Bytes& bytes = given.reply.value(); has_parts() && bytes.size() > kReplyInlineBytes) {
    return send_long(to.node, message, std::move(bytes));
  } else {
    message.body = bytes;
  }
  const MessageHead head{message};
  return options_.transport->node_message(to.node, kNodeHandler, head.bytes(), message.body);
}

}  // namespace sterna::rpc
