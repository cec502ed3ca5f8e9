// Entry of the collectives that reduce.
#include "mpi/coll/check.h"
#include "mpi/coll/enter.h"
#include "mpi/coll/host.h"
#include "mpi/coll/local.h"
#include "runtime/scope.h"

namespace sterna::mpi {

int check_op(const Call& call, const Reduction& r) noexcept {
  if (!is_op(r.op)) {
    return r.op == MPI_OP_NULL
               ? call.fail(MPI_ERR_OP, "the operation is MPI_OP_NULL")
               : call.fail(MPI_ERR_OP, "%p is not an operation", static_cast<void*>(r.op));
  }
  if (r.op == MPI_REPLACE || r.op == MPI_NO_OP) {
    return call.fail(MPI_ERR_OP, "MPI_REPLACE and MPI_NO_OP are for one-sided communication");
  }
  const int error = check_reduction(r.op, r.type);
  return error == MPI_ERR_OP ? call.fail(error, "the operation is not defined for this datatype")
                             : call.pass(error);
}

namespace {

/// `result_count`: how many elements this rank gets. Of none the receive buffer does not count,
/// unless it is where the values are.
int check_sum(const Call& call, const Reduction& r, MPI_Count result_count) noexcept {
  const MPI_Count into_count = r.is_in_place() ? r.count : result_count;
  if (const int error = check_data(call, r.into, into_count, r.type)) {
    return error;
  }
  if (!r.is_in_place() || call.comm->is_inter()) {
    if (const int error = check_data(call, r.from, r.count, r.type)) {
      return error;
    }
  }
  return check_op(call, r);
}

void hold(Builder& b, const Entry& entry, const Reduction& r) noexcept {
  if (entry.form != Form::blocking) {
    b.hold(r.type);
    b.hold_op(r.op);
  }
}

/// How ranks do it without messages; null: not.
struct Meetings {
  int (*here)(const Call&, const Reduction&) noexcept = nullptr;     // In one process.
  int (*on_host)(const Call&, const Reduction&) noexcept = nullptr;  // Processes.
};

template <typename Build>
int enter_sum(const Entry& entry, const Reduction& r, MPI_Comm comm, bool may_be_inter, Build build,
              const Meetings& meetings = {}, bool has_first_result = true) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    if (call.comm->is_inter() && !may_be_inter) {
      return call.fail(MPI_ERR_COMM, "not defined on an intercommunicator");
    }
    const bool has_result = has_first_result || call.comm->rank != 0;
    if (const int error = check_sum(call, r, has_result ? r.count : 0)) {
      return error;
    }
    if (meetings.here != nullptr && entry.form == Form::blocking && is_short(*call.comm, r)) {
      if (meets_here(call.state, *call.comm)) {
        return meetings.here(call, r);
      }
      if (fits_on_host(r) && meets_on_host(call.state, *call.comm)) {
        return meetings.on_host(call, r);
      }
    }
    return run_collective(call, entry, [&](Builder& b) {
      hold(b, entry, r);
      build(b, r);
    });
  });
}

}  // namespace

int enter_reduce(const Entry& entry, const Reduction& r, int root, MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    if (const int error = check_root(call, root)) {
      return error;
    }
    if (root == MPI_PROC_NULL) {
      // Nothing to do, but one tag passes, and other forms have a request.
      return run_collective(call, entry, [](Builder& /*builder*/) {});
    }
    // The receive buffer counts at the root only, the send buffer of MPI_ROOT not at all.
    if (is_root(call, root)) {
      if (const int error = check_data(call, r.into, r.count, r.type)) {
        return error;
      }
    }
    const bool is_taken = is_root(call, root) && (call.comm->is_inter() || r.is_in_place());
    if (!is_taken) {
      if (const int error = check_data(call, r.from, r.count, r.type)) {
        return error;
      }
    }
    if (const int error = check_op(call, r)) {
      return error;
    }
    if (entry.form == Form::blocking && meets_here(call.state, *call.comm) &&
        is_short(*call.comm, r)) {
      return meet_for_reduce(call, r, root);
    }
    return run_collective(call, entry, [&](Builder& b) {
      hold(b, entry, r);
      build_reduce(b, r, root);
    });
  });
}

int enter_allreduce(const Entry& entry, const Reduction& r, MPI_Comm comm) noexcept {
  return enter_sum(entry, r, comm, true, build_allreduce,
                   {.here = meet_for_allreduce, .on_host = meet_on_host_for_allreduce});
}

int enter_scan(const Entry& entry, const Reduction& r, MPI_Comm comm) noexcept {
  return enter_sum(entry, r, comm, false, build_scan);
}

int enter_exscan(const Entry& entry, const Reduction& r, MPI_Comm comm) noexcept {
  return enter_sum(entry, r, comm, false, build_exscan, {}, false);
}

int enter_reduce_scatter(const Entry& entry, const Reduction& r, const Counts& counts,
                         MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    Reduction whole = r;
    whole.count = 0;
    for (std::uint32_t i = 0; i < call.comm->size; ++i) {
      const MPI_Count count = counts[static_cast<int>(i)];
      if (count < 0) {
        return call.fail(MPI_ERR_COUNT, "the count of rank %u is %lld", i,
                         static_cast<long long>(count));
      }
      whole.count += count;
    }
    if (const int error = check_sum(call, whole, counts[call.comm->rank])) {
      return error;
    }
    const Parts parts{r.into, counts, counts, r.type};
    return run_collective(call, entry, [&](Builder& b) {
      hold(b, entry, whole);
      build_reduce_scatter(b, whole, parts);
    });
  });
}

int enter_reduce_scatter_block(const Entry& entry, const Reduction& r, MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    if (const int error = check_sum(call, r, r.count)) {
      return error;
    }
    Reduction whole = r;
    whole.count = r.count * call.comm->size;
    return run_collective(call, entry, [&](Builder& b) {
      hold(b, entry, whole);
      build_reduce_scatter(b, whole, Parts::equal({r.into, r.count, r.type}));
    });
  });
}

}  // namespace sterna::mpi
