// See host.h.
#include "mpi/coll/host.h"

#include <array>
#include <atomic>
#include <new>

#include <sys/syscall.h>

#include "base/processors.h"
#include "base/syscall.h"
#include "mpi/coll/gathering.h"
#include "mpi/coll/local.h"
#include "mpi/op/op.h"
#include "mpi/request/wait.h"
#include "net/nodes/host_board.h"
#include "net/transfer/absence.h"
#include "net/transport.h"
#include "runtime/runtime.h"
#include "threads/this_thread.h"

namespace sterna::mpi {
namespace {

enum class Operation : std::uint32_t { barrier = 1, allreduce };

constexpr std::size_t kGatherings = 4;  // Communicators that meet; others send messages.
static_assert(kGatherings * sizeof(Gathering) <= net::kHostBoardBytes);

using Board = std::array<Gathering, kGatherings>;

/// Of the process, which has one job: mapped by the first that asks, and kept.
constinit std::atomic<Board*> board{nullptr};

Board* find_board(const net::HostShare& host) noexcept {
  Board* known = board.load(std::memory_order_relaxed);  // Its memory is not ours to publish.
  if (known == nullptr) {
    if (std::byte* const bytes = net::map_host_board(host); bytes != nullptr) {
      auto* const mapped = std::launder(reinterpret_cast<Board*>(bytes));
      // Of two threads one is late, and leaves its mapping to the end of the process.
      known =
          board.compare_exchange_strong(known, mapped, std::memory_order_relaxed) ? mapped : known;
    }
  }
  return known;
}

void ring(int bell_fd) noexcept {
  const std::uint64_t one = 1;
  raw_system_call(SYS_write, bell_fd, reinterpret_cast<long>(&one), sizeof one);
}

/// Polls and yields for as long as that has helped lately, then sleeps for the network: who lets go
/// rings. False: a process is lost, and as all are members the meeting will not end; or the memory
/// was spoilt.
bool await_end(RankState& state, Gathering& gathering, std::uint32_t number, std::uint32_t member,
               std::uint32_t count) noexcept {
  progress::Progress& progress = *state.context->progress;
  SpinBudget& budget = progress.yields();
  const std::uint64_t limit = budget.begin();
  std::uint64_t yields = 0;
  std::uint32_t round = 0;
  bool has_slept = false;
  while (!gathering.has_ended(number)) {
    poll_once(state);
    if (state.context->transport->has_lost_nodes() || gathering.is_spoilt(count)) {
      return gathering.has_ended(number);
    }
    if (threads::self() != nullptr) {
      wait_a_little(state, round++);  // Its worker has other threads to run.
      continue;
    }
    if (yields++ < limit) {
      raw_system_call(SYS_sched_yield);
      continue;
    }
    has_slept = true;
    gathering.say_asleep(number, member);
    if (!progress.sleep(kNever, gathering.word(), number)) {
      wait_a_little(state, ~0U);  // Another kernel thread sleeps there.
    }
  }
  if (threads::self() == nullptr) {
    budget.end_if_all_is_known(has_slept ? budget.price() : yields, limit);
  }
  return true;
}

/// `make(gathering, number, into)` is done by the last one.
template <typename Make>
int meet(const Call& call, Operation operation, std::span<const std::byte> from,
         std::span<std::byte> into, Make&& make) noexcept {
  RankState& state = call.state;
  net::Transport& transport = *state.context->transport;
  // Who left the last meeting because of it is counted there, and would be taken for the dead one.
  if (transport.has_lost_nodes()) {
    return call.fail_plain(MPI_ERR_PROC_ABORTED);
  }
  // All nodes of the job, so that the number of a node is its place in there.
  const net::HostShare& host = state.context->runtime->control().host();
  Gathering* const found = Gathering::find(*find_board(host), call.comm->context);
  if (found == nullptr) {
    return call.fail_plain(MPI_ERR_PROC_ABORTED);  // It was there: somebody has written over it.
  }
  Gathering& gathering = *found;
  const auto member = static_cast<std::uint32_t>(call.comm->rank);
  const std::uint32_t count = call.comm->size;
  const std::uint32_t what =
      static_cast<std::uint32_t>(operation) << 16 | static_cast<std::uint32_t>(from.size());
  const auto [number, is_last] = gathering.arrive(member, count, what, from);
  if (is_last) {
    bool is_one = true;
    for (std::uint32_t i = 0; i < count; ++i) {
      is_one = is_one && gathering.what_of(number, i) == what;
    }
    if (is_one) {
      make(gathering, number);
    } else {
      gathering.set_result(number, MPI_ERR_OTHER, {});
    }
    gathering.let_go(number, count, [&](std::uint32_t other) {
      ring(host.bell_fds[transport.node_of(call.comm->group->world_of(other))]);
    });
  } else if (!await_end(state, gathering, number, member, count)) {
    return call.fail_plain(MPI_ERR_PROC_ABORTED);
  }
  if (gathering.take(number, into) != 0) {
    return call.fail(MPI_ERR_OTHER,
                     "the ranks of the communicator call different collectives, or with different "
                     "sizes");
  }
  return MPI_SUCCESS;
}

}  // namespace

bool is_crowded_host(const RankState& state) noexcept {
  runtime::Runtime& runtime = *state.context->runtime;
  const std::uint32_t node_count = runtime.job().node_count;
  return state.context->slot == nullptr && online_processors() != 0 &&
         node_count > online_processors() && runtime.control().host().nodes.size() == node_count;
}

bool meets_on_host(const RankState& state, const Comm& comm) noexcept {
  if (!is_crowded_host(state) || comm.is_inter()) {
    return false;
  }
  runtime::Runtime& runtime = *state.context->runtime;
  // All processes are members: if one is lost, it is one of them. Without the shm driver nobody
  // listens to bells.
  return comm.size == runtime.job().node_count && comm.size <= Gathering::kMembersMax &&
         runtime.transport().absence().flag() != nullptr &&
         find_board(runtime.control().host()) != nullptr &&
         Gathering::find(*find_board(runtime.control().host()), comm.context) != nullptr;
}

bool fits_on_host(const Reduction& r) noexcept {
  return bytes_of(r.count, r.type) <= Gathering::kBytesMax;
}

int meet_on_host_for_barrier(const Call& call) noexcept {
  return meet(call, Operation::barrier, {}, {},
              [](Gathering& gathering, std::uint32_t number) noexcept {
                gathering.set_result(number, 0, {});
              });
}

int meet_on_host_for_allreduce(const Call& call, const Reduction& r) noexcept {
  const std::uint64_t bytes = bytes_of(r.count, r.type);
  return meet(call, Operation::allreduce, {static_cast<const std::byte*>(r.source()), bytes},
              {static_cast<std::byte*>(r.into), bytes},
              [&](Gathering& gathering, std::uint32_t number) noexcept {
                std::array<std::byte, Gathering::kMembersMax * Gathering::kBytesMax> values;
                for (std::uint32_t i = 0; i < call.comm->size; ++i) {
                  gathering.copy_bytes_of(number, i, {values.data() + i * bytes, bytes});
                }
                const std::size_t result =
                    reduce_doubling(r, values.data(), bytes, call.comm->size);
                gathering.set_result(number, 0, {values.data() + result * bytes, bytes});
              });
}

}  // namespace sterna::mpi
