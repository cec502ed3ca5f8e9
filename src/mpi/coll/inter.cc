// Collectives of intercommunicators: ranks of one group talk to those of the other; what a group
// does among itself goes over its local communicator.
#include "mpi/coll/collectives.h"

namespace sterna::mpi {
namespace {

// Rank 0 of each group tells the other one's.
void exchange_signals(Builder& b) noexcept {
  if (b.rank() == 0) {
    b.await_signal(0);
    b.signal(0);
    b.fence();
  }
}

int remote_size(Builder& b) noexcept {
  return static_cast<int>(b.comm().remote->size);
}

/// The next steps are among the local group.
class Locally {
 public:
  explicit Locally(Builder& b) noexcept : b_{b}, inter_{b.comm()} { b_.use(*inter_.local); }
  ~Locally() { b_.use(inter_); }
  Locally(const Locally&) = delete;
  Locally& operator=(const Locally&) = delete;

 private:
  Builder& b_;
  Comm& inter_;
};

}  // namespace

void build_inter_barrier(Builder& b) noexcept {
  {
    Locally local{b};
    build_barrier(b);
  }
  exchange_signals(b);
  Locally local{b};
  // A barrier again: nobody leaves before rank 0, which has heard of the other group, has come.
  build_barrier(b);
}

void build_inter_bcast(Builder& b, const Data& data, int root) noexcept {
  if (root == MPI_PROC_NULL) {
    return;
  }
  if (root == MPI_ROOT) {
    b.send(data.buffer, data.count, data.type, 0);
    return;
  }
  if (b.rank() == 0) {
    b.receive(data.buffer, data.count, data.type, root);
    b.fence();
  }
  Locally local{b};
  build_bcast(b, data, 0);
}

void build_inter_gatherv(Builder& b, const Data& from, const Parts& into, int root) noexcept {
  if (root == MPI_ROOT) {
    for (int i = 0; i < remote_size(b); ++i) {
      b.receive(into.place(i), into.count(i), into.type_of(i), i);
    }
  } else if (root != MPI_PROC_NULL) {
    b.send(from.buffer, from.count, from.type, root);
  }
}

void build_inter_scatterv(Builder& b, const Parts& from, const Data& into, int root) noexcept {
  if (root == MPI_ROOT) {
    for (int i = 0; i < remote_size(b); ++i) {
      b.send(from.place(i), from.count(i), from.type_of(i), i);
    }
  } else if (root != MPI_PROC_NULL) {
    b.receive(into.buffer, into.count, into.type, root);
  }
}

void build_inter_allgather(Builder& b, const Data& from, const Parts& into) noexcept {
  for (int i = 0; i < remote_size(b); ++i) {
    b.receive(into.place(i), into.count(i), into.type_of(i), i);
  }
  for (int i = 0; i < remote_size(b); ++i) {
    b.send(from.buffer, from.count, from.type, i);
  }
}

void build_inter_alltoall(Builder& b, const Parts& from, const Parts& into) noexcept {
  for (int i = 0; i < remote_size(b); ++i) {
    b.receive(into.place(i), into.count(i), into.type_of(i), i);
  }
  for (int i = 0; i < remote_size(b); ++i) {
    b.send(from.place(i), from.count(i), from.type_of(i), i);
  }
}

void build_inter_reduce(Builder& b, const Reduction& r, int root) noexcept {
  if (root == MPI_ROOT) {
    b.receive(r.into, r.count, r.type, 0);
    return;
  }
  if (root == MPI_PROC_NULL) {
    return;
  }
  std::byte* value = b.rank() == 0 ? b.temporary_of(r.count, r.type) : nullptr;
  {
    Locally local{b};
    build_reduce_tree(b, {r.from, value, r.count, r.type, r.op}, 0);
  }
  b.fence();
  if (b.rank() == 0) {
    b.send(value, r.count, r.type, root);
  }
}

void build_inter_allreduce(Builder& b, const Reduction& r) noexcept {
  std::byte* value = b.rank() == 0 ? b.temporary_of(r.count, r.type) : nullptr;
  {
    Locally local{b};
    build_reduce_tree(b, {r.from, value, r.count, r.type, r.op}, 0);
  }
  b.fence();
  if (b.rank() == 0) {
    b.receive(r.into, r.count, r.type, 0);
    b.send(value, r.count, r.type, 0);
    b.fence();
  }
  Locally local{b};
  build_bcast(b, {r.into, r.count, r.type}, 0);
}

// The vector of the other group is reduced there, and its parts go to the ranks of this one.
void build_inter_reduce_scatter(Builder& b, const Reduction& r, const Parts& counts) noexcept {
  const bool is_first = b.rank() == 0;
  std::byte* value = is_first ? b.temporary_of(r.count, r.type) : nullptr;
  std::byte* result = is_first ? b.temporary_of(r.count, r.type) : nullptr;
  {
    Locally local{b};
    build_reduce_tree(b, {r.from, value, r.count, r.type, r.op}, 0);
  }
  b.fence();
  if (is_first) {
    b.receive(result, r.count, r.type, 0);
    b.send(value, r.count, r.type, 0);
    b.fence();
  }
  Locally local{b};
  if (!is_first) {
    b.receive(r.into, counts.count(b.rank()), r.type, 0);
    return;
  }
  MPI_Count place = 0;
  for (int i = 0; i < b.size(); ++i) {
    const MPI_Count count = counts.count(i);
    const std::byte* part = at(result, place, extent_of(r.type));
    if (i == 0) {
      b.copy(part, count, r.type, r.into, count, r.type);
    } else {
      b.send(part, count, r.type, i);
    }
    place += count;
  }
}

}  // namespace sterna::mpi
