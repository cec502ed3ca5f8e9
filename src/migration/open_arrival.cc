// Where a rank that comes, or may come, is received: its memory is opened and mapped, and it is
// made sure that only one move of it is under way here.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/syscall.h"
#include "migration/arrival.h"
#include "threads/this_thread.h"

namespace sterna::migration {
namespace {

/// The memory of a slot of another process of this host, if the system lets us open it.
FileDescriptor open_memory(const Offer& offer) {
  if (offer.memory_fd < 0 || offer.source_pid == 0) {
    return {};
  }
  // The quick way needs the right to trace, the slow one the right to look.
  FileDescriptor memory;
  const FileDescriptor process{static_cast<int>(raw_system_call(SYS_pidfd_open, offer.source_pid))};
  if (process.is_open()) {
    memory = FileDescriptor{
        static_cast<int>(raw_system_call(SYS_pidfd_getfd, process.get(), offer.memory_fd))};
  }
  if (!memory.is_open()) {
    const std::string path = fmt::format("/proc/{}/fd/{}", offer.source_pid, offer.memory_fd);
    memory = FileDescriptor{
        static_cast<int>(system_call([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); }))};
  }
  struct ::stat status {};
  // In another namespace of processes the same number is somebody else.
  if (!memory.is_open() || ::fstat(memory.get(), &status) != 0 ||
      status.st_ino != offer.memory_inode || status.st_dev != offer.memory_device) {
    return {};
  }
  return memory;
}

void expect_contents(std::span<const net::Extent> extents) {
  std::vector<memory::Extent> live;
  live.reserve(extents.size());
  for (const net::Extent& extent : extents) {
    live.push_back({reinterpret_cast<std::uintptr_t>(extent.address), extent.bytes});
  }
  memory::IsoSpace::expect_contents(live);
}

Error not_here(std::uint32_t rank, std::uint32_t node) {
  return {Errc::refused, fmt::format("rank {} cannot come to node {}: it is there", rank, node)};
}

}  // namespace

Result<> Migrator::map_anew(Arrival& arrival, const Offer& offer) {
  FileDescriptor memory = open_memory(offer);
  if (!memory.is_open() && offer.memory_fd >= 0) {
    return Error{Errc::unreachable,
                 fmt::format("rank {}: its memory cannot be opened here", arrival.rank)};
  }
  arrival.is_memory_shared = memory.is_open();
  Result<memory::RankSlot*> slot = options_.space->adopt_rank(offer.shape, std::move(memory));
  if (!slot) {
    return slot.error();
  }
  if (arrival.is_memory_shared) {
    if (Result<> prepared = options_.host->prepare(arrival.rank); !prepared) {
      options_.space->unmap_rank(arrival.rank);
      return prepared;
    }
  } else {
    expect_contents(offer.extents);
  }
  arrival.slot = slot.value();
  arrival.shape = offer.shape;
  arrival.memory_inode = offer.memory_inode;
  arrival.memory_device = offer.memory_device;
  return Done{};
}

// What was mapped ahead serves if it is of the same memory and only its heaps have grown.
Result<> Migrator::map_arrival(Arrival& arrival, const Offer& offer) {
  if (arrival.slot != nullptr) {
    if (arrival.memory_inode == offer.memory_inode &&
        arrival.memory_device == offer.memory_device && offer.memory_fd >= 0 &&
        options_.space->grow_adopted(arrival.shape, offer.shape)) {
      arrival.shape = offer.shape;
      return Done{};
    }
    options_.space->unmap_rank(arrival.rank);
    arrival.slot = nullptr;
  }
  return map_anew(arrival, offer);
}

// Null: it is prepared already. must_retry: somebody else has to finish first, or, if there is one,
// `stale` must be given up by the caller.
Result<Migrator::Arrival*> Migrator::try_open(const Offer& offer, std::uint32_t from_node,
                                              bool is_ahead, bool& must_retry, Arrival*& stale) {
  const std::uint32_t rank = offer.shape.rank;
  const std::uint32_t here = options_.transport->job().node_index;
  if (lost_[from_node]) {
    return Error{Errc::closed, fmt::format("node {} is gone", from_node)};
  }
  if (const auto departing = departing_.find(rank); departing != departing_.end()) {
    // It comes back so soon that its old memory here is still being unmapped.
    departing->second.is_wanted = true;
    must_retry = true;
    return nullptr;
  }
  // It waited for a stack, or for its turn, and the source for as long as it does.
  if (!is_ahead && withdrawn_.contains(from_node, rank, offer.number)) {
    return Error{Errc::closed,
                 fmt::format("rank {} was offered, but the offer was taken back", rank)};
  }
  const auto found = arrivals_.find(rank);
  if (found == arrivals_.end()) {
    if (options_.space->has_rank(rank)) {
      return not_here(rank, here);
    }
    auto opened = std::make_unique<Arrival>();
    opened->rank = rank;
    opened->from_node = from_node;
    opened->is_ahead = is_ahead;
    opened->offer_number = offer.number;
    return arrivals_.emplace(rank, std::move(opened)).first->second.get();
  }
  Arrival& other = *found->second;
  if (other.is_given_up) {
    other.is_wanted = true;
    must_retry = true;
    return nullptr;
  }
  if (!other.is_ahead || (is_ahead && other.phase == Arrival::Phase::mapping)) {
    return not_here(rank, here);
  }
  if (other.phase != Arrival::Phase::prepared) {
    other.is_wanted = true;
    other.is_cancelled = other.is_cancelled || other.from_node != from_node;
    must_retry = true;
    return nullptr;
  }
  if (other.from_node != from_node) {
    other.phase = Arrival::Phase::ending;  // The rank has left the node that announced it.
    stale = &other;
    must_retry = true;
    return nullptr;
  }
  if (is_ahead) {
    return nullptr;
  }
  other.phase = Arrival::Phase::mapping;
  other.is_ahead = other.is_kept = false;
  other.offer_number = offer.number;
  return &other;
}

Result<Migrator::Arrival*> Migrator::open_arrival(const Offer& offer, std::uint32_t from_node,
                                                  bool is_ahead) {
  const net::JobMap& job = options_.transport->job();
  if (offer.shape.rank >= job.rank_count) {
    return Error{Errc::refused, fmt::format("there is no rank {}", offer.shape.rank)};
  }
  if (offer.fingerprint != options_.fingerprint) {
    return Error{Errc::unsupported,
                 fmt::format("nodes {} and {} do not have the same binaries at the same addresses",
                             from_node, job.node_index)};
  }
  for (;;) {
    // One clock: only nodes of this host say when. Whoever asked does not wait any more; if it does
    // all the same, its clock is another one (a namespace of time), and an offer will do.
    if (offer.expires_ns != 0 && options_.team->now_ns() >= offer.expires_ns) {
      return Error{Errc::refused, fmt::format("node {} asked for rank {} too long ago", from_node,
                                              offer.shape.rank)};
    }
    bool must_retry = false;
    Arrival* stale = nullptr;
    {
      const SpinGuard guard{lock_};
      Result<Arrival*> opened = try_open(offer, from_node, is_ahead, must_retry, stale);
      if (!must_retry) {
        return opened;
      }
    }
    if (stale != nullptr) {
      give_up(*stale);
    } else {
      threads::yield();
    }
  }
}

}  // namespace sterna::migration
