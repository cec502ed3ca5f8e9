// Neighbourhood collectives: straight messages with the neighbours of the topology.
//
// In a Cartesian dimension of size 1 or 2 two neighbours are one rank: the message to the one
// before belongs to the receiver's place for the one after. Both are sent and received in such an
// order that the first message from a rank goes to its right place.
#include "mpi/coll/collectives.h"
#include "mpi/topo/topology.h"

namespace sterna::mpi {
namespace {

bool is_cartesian(const Comm& comm) noexcept {
  return comm.topology->kind == TopologyKind::cartesian;
}

// Receives are posted in the order in which a peer that is several neighbours at once sends: in
// Cartesian topologies what is sent "before" (even) is received as "after" (odd).
int receive_order(const Comm& comm, int i) noexcept {
  return is_cartesian(comm) ? i ^ 1 : i;
}

}  // namespace

void build_neighbor_allgather(Builder& b, const Data& from, const Parts& into) noexcept {
  const Comm& comm = b.comm();
  for (int i = 0; i < source_count(comm); ++i) {
    const int place = receive_order(comm, i);
    const int peer = source_at(comm, place);
    if (peer != MPI_PROC_NULL) {
      b.receive(into.place(place), into.count(place), into.type_of(place), peer);
    }
  }
  for (int i = 0; i < target_count(comm); ++i) {
    const int peer = target_at(comm, i);
    if (peer != MPI_PROC_NULL) {
      b.send(from.buffer, from.count, from.type, peer);
    }
  }
}

void build_neighbor_alltoall(Builder& b, const Parts& from, const Parts& into) noexcept {
  const Comm& comm = b.comm();
  for (int i = 0; i < source_count(comm); ++i) {
    const int place = receive_order(comm, i);
    const int peer = source_at(comm, place);
    if (peer != MPI_PROC_NULL) {
      b.receive(into.place(place), into.count(place), into.type_of(place), peer);
    }
  }
  for (int i = 0; i < target_count(comm); ++i) {
    const int peer = target_at(comm, i);
    if (peer != MPI_PROC_NULL) {
      b.send(from.place(i), from.count(i), from.type_of(i), peer);
    }
  }
}

}  // namespace sterna::mpi
