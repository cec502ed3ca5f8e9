// See local.h.
#include "mpi/coll/local.h"

#include <memory>
#include <new>
#include <vector>

#include "base/spin_lock.h"
#include "mpi/coll/cost.h"
#include "mpi/coll/host.h"
#include "mpi/op/op.h"
#include "mpi/p2p/message.h"
#include "mpi/request/wait.h"
#include "net/buffer.h"
#include "runtime/runtime.h"
#include "threads/sync/meeting.h"
#include "threads/this_thread.h"

namespace sterna::mpi {

namespace {

enum class Operation : std::uint8_t { barrier, allreduce, reduce, bcast };

/// What one member brings. Written by it before it arrives; then by the last one until it lets go.
struct alignas(kCacheLineBytes) Place {
  threads::Seat seat;
  Operation operation{};
  int root = 0;
  const void* from = nullptr;
  void* into = nullptr;
  std::uint64_t bytes = 0;
  int error = MPI_SUCCESS;
  progress::Completion done;  // Of a member that does not sleep in the meeting.
};

// More would be better shared out among the members.
constexpr std::uint64_t kTotalBytesMax = 64 << 10;
// Mobile ranks for each node: more than that are there to share processors.
constexpr std::uint32_t kCrowdedRanks = 8;

}  // namespace

/// Of one communicator. In the memory of the node, found by its context.
struct LocalMeeting {
  explicit LocalMeeting(const Comm& comm)
      : meeting{comm.size}, context{comm.context}, places(comm.size) {}

  threads::Meeting meeting;
  const std::uint32_t context;
  std::uint32_t member_count = 0;  // That have come at least once, and have not left. Guard: lock.
  LocalMeeting* next = nullptr;    // Guard: lock of the list.
  std::vector<Place> places;       // By rank.
  std::vector<std::byte> values;   // Of the last one.
};

namespace {

/// All meetings of this process. It belongs to no rank, as they do not.
struct Meetings {
  SpinLock lock;
  LocalMeeting* first = nullptr;  // Guard: lock.
};
constinit Meetings meetings;

LocalMeeting* find(std::uint32_t context) noexcept {
  LocalMeeting* meeting = meetings.first;
  while (meeting != nullptr && meeting->context != context) {
    meeting = meeting->next;
  }
  return meeting;
}

/// The meeting of the communicator: found or made; null: no memory.
[[gnu::noinline]] LocalMeeting* join_meeting(Comm& comm) noexcept {
  std::unique_ptr<LocalMeeting> made;
  for (;;) {
    {
      const SpinGuard guard{meetings.lock};
      LocalMeeting* meeting = find(comm.context);
      if (meeting == nullptr && made != nullptr) {
        meeting = made.release();
        meeting->next = meetings.first;
        meetings.first = meeting;
      }
      if (meeting != nullptr) {
        ++meeting->member_count;
        comm.meeting = meeting;
        return meeting;
      }
    }
    // Outside of the lock: it may take long.
    made = std::make_unique<LocalMeeting>(comm);
  }
}

LocalMeeting& meeting_of(Comm& comm) noexcept {
  return comm.meeting != nullptr ? *comm.meeting : *join_meeting(comm);
}

/// Arrives; `work(meeting)` is done by the last, and returns an error class for all. Returns that
/// of this rank.
template <typename Work>
int meet(const Call& call, const Place& mine, Work&& work) noexcept {
  RankState& state = call.state;
  LocalMeeting& meeting = meeting_of(*call.comm);
  Place& place = meeting.places[static_cast<std::size_t>(call.comm->rank)];
  place.operation = mine.operation;
  place.root = mine.root;
  place.from = mine.from;
  place.into = mine.into;
  place.bytes = mine.bytes;
  place.done.reset();
  // A wait must advance what else the rank has under way, or another of its threads may start
  // meanwhile, and a kernel thread cannot sleep there.
  const bool sleeps = state.active_schedules == nullptr &&
                      state.thread_level != MPI_THREAD_MULTIPLE && threads::self() != nullptr;
  threads::Seat* const others =
      sleeps ? meeting.meeting.arrive(place.seat) : meeting.meeting.arrive_awake(place.seat);
  if (others == nullptr) {
    if (!sleeps) {
      wait_done(state, place.done);
    }
    return call.pass(place.error);
  }
  bool is_one = true;
  for (const Place& other : meeting.places) {
    is_one = is_one && other.operation == mine.operation && other.root == mine.root &&
             other.bytes == mine.bytes;
  }
  const int error = is_one ? work(meeting) : MPI_ERR_OTHER;
  for (Place& other : meeting.places) {
    other.error = error;
  }
  // The seat is the first member of its place.
  threads::Meeting::let_go(
      others, [](threads::Seat& seat) noexcept { reinterpret_cast<Place&>(seat).done.complete(); });
  return is_one ? call.pass(error)
                : call.fail(MPI_ERR_OTHER,
                            "the ranks of the communicator call different collectives, or with "
                            "different roots or sizes");
}

// The tree of reduce.cc: the result is the first value.
void reduce_tree(const Reduction& r, std::byte* values, std::uint64_t bytes,
                 std::size_t size) noexcept {
  for (std::size_t distance = 1; distance < size; distance *= 2) {
    for (std::size_t i = 0; i + distance < size; i += 2 * distance) {
      std::byte* const lower = values + i * bytes;
      std::byte* const upper = values + (i + distance) * bytes;
      reduce(r.op, r.type, lower, upper, r.count);
      net::copy_bytes(lower, upper, bytes);
    }
  }
}

/// What all members bring, by rank.
std::byte* gather_values(LocalMeeting& meeting, std::uint64_t bytes) noexcept {
  const std::size_t size = meeting.places.size();
  meeting.values.resize(bytes * size);
  for (std::size_t i = 0; i < size; ++i) {
    net::copy_bytes(meeting.values.data() + i * bytes,
                    static_cast<const std::byte*>(meeting.places[i].from), bytes);
  }
  return meeting.values.data();
}

}  // namespace

std::size_t reduce_doubling(const Reduction& r, std::byte* values, std::uint64_t bytes,
                            std::size_t size) noexcept {
  const auto value = [&](std::size_t i) { return values + i * bytes; };
  std::size_t power = 1;
  while (power * 2 <= size) {
    power *= 2;
  }
  const std::size_t extra = size - power;
  const auto rank_of = [&](std::size_t number) {
    return number < extra ? 2 * number + 1 : number + extra;
  };
  for (std::size_t i = 0; i < extra; ++i) {
    reduce(r.op, r.type, value(2 * i), value(2 * i + 1), r.count);
  }
  // The value of a group is that of its last member.
  for (std::size_t mask = 1; mask < power; mask *= 2) {
    for (std::size_t i = 0; i < power; i += 2 * mask) {
      reduce(r.op, r.type, value(rank_of(i + mask - 1)), value(rank_of(i + 2 * mask - 1)), r.count);
    }
  }
  return rank_of(power - 1);
}

bool meets_here(const RankState& state, const Comm& comm) noexcept {
  return state.context->slot != nullptr && !comm.is_inter() && comm.size > 1 &&
         comm.size <= threads::Meeting::kCountMax && state.context->runtime->job().node_count == 1;
}

bool is_crowded(Builder& b) noexcept {
  const RankState& state = b.state();
  if (state.context->slot == nullptr) {
    return static_cast<std::uint32_t>(b.size()) >= kCrowdedRanks && is_crowded_host(state);
  }
  const net::JobMap& job = state.context->runtime->job();
  return static_cast<std::uint32_t>(b.size()) >= kCrowdedRanks &&
         job.rank_count >= kCrowdedRanks * job.node_count;
}

bool is_short(const Comm& comm, const Reduction& r) noexcept {
  const Datatype& type = *find_datatype(r.type);
  const std::uint64_t bytes = bytes_of(r.count, r.type);
  return is_predefined(r.op) && type.is_predefined && type.is_dense && bytes != 0 &&
         bytes * comm.size <= kTotalBytesMax && uses_doubling(static_cast<int>(comm.size), r);
}

bool is_short(const Comm& comm, const Data& data) noexcept {
  const std::uint64_t bytes = bytes_of(data.count, data.type);
  // Types may differ between members, sizes do not.
  return bytes != 0 && bytes * comm.size <= kTotalBytesMax;
}

int meet_for_barrier(const Call& call) noexcept {
  Place mine;
  mine.operation = Operation::barrier;
  return meet(call, mine, [](LocalMeeting&) { return MPI_SUCCESS; });
}

int meet_for_allreduce(const Call& call, const Reduction& r) noexcept {
  Place mine;
  mine.operation = Operation::allreduce;
  mine.from = r.source();
  mine.into = r.into;
  mine.bytes = bytes_of(r.count, r.type);
  return meet(call, mine, [&](LocalMeeting& meeting) {
    std::byte* const values = gather_values(meeting, mine.bytes);
    const std::size_t result = reduce_doubling(r, values, mine.bytes, meeting.places.size());
    for (const Place& place : meeting.places) {
      net::copy_bytes(static_cast<std::byte*>(place.into), values + result * mine.bytes,
                      mine.bytes);
    }
    return MPI_SUCCESS;
  });
}

int meet_for_reduce(const Call& call, const Reduction& r, int root) noexcept {
  Place mine;
  mine.operation = Operation::reduce;
  mine.root = root;
  const bool is_root = call.comm->rank == root;
  mine.from = is_root ? r.source() : r.from;
  mine.into = is_root ? r.into : nullptr;
  mine.bytes = bytes_of(r.count, r.type);
  return meet(call, mine, [&](LocalMeeting& meeting) {
    std::byte* const values = gather_values(meeting, mine.bytes);
    reduce_tree(r, values, mine.bytes, meeting.places.size());
    net::copy_bytes(static_cast<std::byte*>(meeting.places[static_cast<std::size_t>(root)].into),
                    values, mine.bytes);
    return MPI_SUCCESS;
  });
}

int meet_for_bcast(const Call& call, const Data& data, int root) noexcept {
  Bytes bytes{call.state};
  const Side side{data.buffer, data.count, data.type, 0, 0};
  const bool is_root = call.comm->rank == root;
  Place mine;
  mine.operation = Operation::bcast;
  mine.root = root;
  mine.bytes = bytes_of(data.count, data.type);
  if (is_root ? bytes.for_send(side) : bytes.for_receive(side)) {
    mine.into = bytes.buffer().address;
  }
  const int error = meet(call, mine, [&](LocalMeeting& meeting) {
    for (const Place& place : meeting.places) {
      if (place.into == nullptr) {
        return MPI_ERR_NO_MEM;
      }
    }
    const Place& source = meeting.places[static_cast<std::size_t>(root)];
    for (const Place& place : meeting.places) {
      if (&place != &source) {
        net::copy_bytes(static_cast<std::byte*>(place.into),
                        static_cast<const std::byte*>(source.into), mine.bytes);
      }
    }
    return MPI_SUCCESS;
  });
  if (error == MPI_SUCCESS && !is_root) {
    bytes.deliver(mine.bytes);
  }
  return error;
}

void leave_meeting(Comm& comm) noexcept {
  if (comm.meeting == nullptr) {
    return;
  }
  std::unique_ptr<LocalMeeting> unused;
  const SpinGuard guard{meetings.lock};
  if (--comm.meeting->member_count == 0) {
    LocalMeeting** link = &meetings.first;
    while (*link != comm.meeting) {
      link = &(*link)->next;
    }
    *link = comm.meeting->next;
    unused.reset(comm.meeting);
  }
  comm.meeting = nullptr;
}

}  // namespace sterna::mpi
