// Arguments of which long pieces come alone, put together before their service begins: by the
// thread that is to run it or, for a quick service, by nobody: the last piece that comes has it run
// by the poller. No thread has to be made, woken and given a processor for it.
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "net/buffer.h"
#include "progress/progress.h"
#include "rpc/handlers.h"
#include "rpc/rpc.h"
#include "rpc/work.h"
#include "threads/waiter.h"

namespace sterna::rpc {

/// A request for a quick service whose pieces are on their way. The endpoint is needed meanwhile,
/// as for parts that nobody wants.
struct Rpc::Gathering {
  struct Piece : threads::Listener {
    net::RecvRequest receive;
    Gathering* whole = nullptr;
  };

  explicit Gathering(std::unique_ptr<Work> its) : work{std::move(its)} {
    pieces = std::vector<Piece>(work->incoming.parts.size());
    work->rpc->loose_parts_.fetch_add(1, std::memory_order_relaxed);
    work->rpc->gatherings_.fetch_add(1, std::memory_order_relaxed);
  }
  ~Gathering() {
    work->rpc->gatherings_.fetch_sub(1, std::memory_order_release);
    work->rpc->loose_parts_.fetch_sub(1, std::memory_order_release);
  }

  /// One of `missing` less. Perhaps under the lock of a rank: the poller does the rest.
  void has_come() noexcept {
    // Both: who finds the last one sees what all have received.
    if (missing.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Gathering* self = this;
      (void)work->rpc->options_.transport->node_message(work->rpc->node_, kGatheredHandler, {},
                                                        std::as_bytes(std::span{&self, 1}));
    }
  }

  std::unique_ptr<Work> work;
  std::vector<Piece> pieces;
  std::atomic<std::size_t> missing{1};  // Pieces, and the one who asks for them.
};

std::byte* Rpc::Work::make_room() noexcept {
  gathered_bytes = arguments.size();
  for (const Part& part : incoming.parts) {
    gathered_bytes += part.bytes;
  }
  gathered = memory::KeptBlocks::of_process().make(gathered_bytes);
  return gathered.get();
}

template <typename Receive>
void Rpc::Work::place(Receive&& receive) {
  std::byte* to = gathered.get();
  std::size_t copied = 0;
  const auto copy_until = [&](std::size_t end) {
    if (end != copied) {
      net::copy_bytes(to, arguments.data() + copied, end - copied);
    }
    to += end - copied;
    copied = end;
  };
  for (std::size_t i = 0; i < incoming.parts.size(); ++i) {
    const Part& part = incoming.parts[i];
    copy_until(part.offset);
    receive(i, net::Buffer::of(to, part.bytes));
    to += part.bytes;
  }
  copy_until(arguments.size());
}

Result<> Rpc::Work::check_part(std::size_t index, const net::RecvRequest& receive) const {
  if (receive.fault == net::Fault::none && receive.envelope.bytes == incoming.parts[index].bytes) {
    return Done{};
  }
  return Error{Errc::closed, fmt::format("a part of the arguments from node {}: {}",
                                         incoming.from_node, to_string(receive.fault))};
}

Error Rpc::Work::no_room() const {
  return {Errc::out_of_memory, fmt::format("no memory for arguments of {} bytes", gathered_bytes)};
}

Result<> Rpc::Work::gather() {
  if (make_room() == nullptr) {
    return no_room();
  }
  std::vector<net::RecvRequest> receives(incoming.parts.size());
  place([&](std::size_t i, const net::Buffer& buffer) {
    rpc->receive_part(incoming, buffer, receives[i]);
  });
  Result<> result = Done{};
  for (std::size_t i = 0; i < receives.size(); ++i) {
    receives[i].done.wait(*rpc->options_.progress);
    if (Result<> came = check_part(i, receives[i]); !came) {
      result = std::move(came);
    }
  }
  return result;
}

/// By the poller. False, or bad_alloc: there is no memory, and nothing was received. `its` may be
/// null for that.
bool Rpc::gather_in_poll(std::unique_ptr<Work> its) {
  if (its == nullptr) {
    return false;
  }
  auto gathering = std::make_unique<Gathering>(std::move(its));
  Work& work = *gathering->work;
  if (work.make_room() == nullptr) {
    return false;
  }
  Gathering* const self = gathering.release();  // The handler's, below.
  self->missing.store(self->pieces.size() + 1, std::memory_order_relaxed);
  work.place([&](std::size_t i, const net::Buffer& buffer) {
    Gathering::Piece& piece = self->pieces[i];
    piece.whole = self;
    piece.ended = [](threads::Listener& ended) noexcept {
      static_cast<Gathering::Piece&>(ended).whole->has_come();
    };
    receive_part(work.incoming, buffer, piece.receive);
    if (!piece.receive.done.listen(piece)) {
      self->has_come();
    }
  });
  self->has_come();
  return true;
}

/// As gather_in_poll(). What cannot be read is sent, and put together as it comes.
bool Rpc::read_in_poll(std::unique_ptr<Work> its) {
  if (its == nullptr || its->make_room() == nullptr) {
    return false;
  }
  Work& work = *its;
  Incoming& incoming = work.incoming;
  bool is_read = true;
  work.place([&](std::size_t, const net::Buffer& buffer) {
    is_read = is_read && read_part(incoming, buffer);
  });
  if (is_read) {
    on_gathered_request(*work.entry, {work.gathered.get(), work.gathered_bytes}, work.reply_to,
                        work.gathered_bytes - work.arguments.size());
    return true;
  }
  incoming.taken = 0;
  const std::uint64_t id = std::exchange(incoming.reader_id, 0);
  const std::uint32_t node = incoming.from_node;
  const bool is_gathered = gather_in_poll(std::move(its));
  if (is_gathered) {
    want(node, id, 0);  // Before that nothing comes, and the handler has its work still.
  }
  return is_gathered;
}

bool Rpc::has_unbegun() noexcept {
  const SpinGuard guard{waiting_lock_};
  return !waiting_.empty() || gatherings_.load(std::memory_order_acquire) != 0;
}

void Rpc::on_gathered(void* self, std::uint32_t from_node, std::span<const std::byte>,
                      std::span<const std::byte> body) noexcept {
  Rpc& rpc = *static_cast<Rpc*>(self);
  Gathering* found = nullptr;
  if (from_node != rpc.node_ || body.size() != sizeof found) {
    rpc.log_.warn("node {} sent what only this one sends itself", from_node);
    return;
  }
  std::memcpy(&found, body.data(), sizeof found);
  const std::unique_ptr<Gathering> gathering{found};
  const Work& work = *gathering->work;
  const std::span<const std::byte> all{work.gathered.get(), work.gathered_bytes};
  const std::size_t part_bytes = all.size() - work.arguments.size();
  for (std::size_t i = 0; i < gathering->pieces.size(); ++i) {
    if (Result<> came = work.check_part(i, gathering->pieces[i].receive); !came) {
      rpc.refuse(work.reply_to, units_of_post(work.arguments.size(), part_bytes), came.error());
      return;
    }
  }
  rpc.on_gathered_request(*work.entry, all, work.reply_to, part_bytes);
}

}  // namespace sterna::rpc
