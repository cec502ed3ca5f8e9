// Cartesian topologies, and what kind a communicator has.
#include <cstdint>

#include <mpi.h>

#include "mpi/call_scope.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/create.h"
#include "mpi/p2p/message.h"
#include "mpi/topo/dimensions.h"
#include "mpi/topo/topology.h"

namespace sterna::mpi {
namespace {

/// A call on a communicator with a Cartesian topology.
struct CartesianCall : Call {
  CartesianCall(const char* name, MPI_Comm handle) noexcept : Call{state_of_caller(name), name} {
    error = check_comm(*this, handle);
    if (error == MPI_SUCCESS) {
      topology = comm->topology;
      if (topology == nullptr || topology->kind != TopologyKind::cartesian) {
        error = fail(MPI_ERR_TOPOLOGY, "the communicator has no Cartesian topology");
      }
    }
  }
  const Topology* topology = nullptr;
  int error;
};

int check_grid(const Call& call, int ndims, const int* dims, int* size) noexcept {
  if (ndims < 0) {
    return call.fail(MPI_ERR_DIMS, "the number of dimensions is %d", ndims);
  }
  long long product = 1;
  for (int i = 0; i < ndims; ++i) {
    if (dims[i] <= 0) {
      return call.fail(MPI_ERR_DIMS, "dimension %d has size %d", i, dims[i]);
    }
    product *= dims[i];
    if (product > static_cast<long long>(call.comm->size)) {
      return call.fail(MPI_ERR_DIMS, "the grid has more places than the communicator ranks (%u)",
                       call.comm->size);
    }
  }
  *size = static_cast<int>(product);
  return MPI_SUCCESS;
}

/// The rank so far away in a direction, which may be more than an int; `place` is overwritten.
int rank_beside(const Topology& t, int direction, std::int64_t displacement, int* place) noexcept {
  const int size = t.dimensions[direction];
  const std::int64_t there = t.coordinates[direction] + displacement;
  if (t.periods[direction] == 0 && (there < 0 || there >= size)) {
    return MPI_PROC_NULL;
  }
  place[direction] = static_cast<int>((there % size + size) % size);
  return rank_of(t, place);
}

}  // namespace

extern "C" {

int PMPI_Cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int,
                     MPI_Comm* comm_cart) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Cart_create"), "MPI_Cart_create"};
  if (const int error = check_comm(call, comm_old)) {
    return error;
  }
  if (call.comm->is_inter()) {
    return call.fail(MPI_ERR_COMM, "not for an intercommunicator");
  }
  int size = 0;
  if (const int error = check_grid(call, ndims, dims, &size)) {
    return error;
  }
  // Ranks move to where they communicate least: their numbers need no reordering.
  const bool is_member = call.comm->rank < size;
  Comm* made = nullptr;
  if (const int error = split_comm(call, is_member ? 0 : MPI_UNDEFINED, call.comm->rank, &made)) {
    return error;
  }
  *comm_cart = MPI_COMM_NULL;
  if (made == nullptr) {
    return MPI_SUCCESS;
  }
  made->topology = create_cartesian(call.state, ndims, dims, periods, made->rank);
  if (made->topology == nullptr) {
    release_comm(call.state, made);
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  *comm_cart = handle_of(call.state, made);
  return MPI_SUCCESS;
}

int PMPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm) {
  const CallScope scope;
  CartesianCall call{"MPI_Cart_sub", comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  const Topology& t = *call.topology;
  int color = 0;
  int key = 0;
  int count = 0;
  int* kept = copy_numbers(call.state, t.dimensions, t.dimension_count);
  int* periods = copy_numbers(call.state, t.periods, t.dimension_count);
  if (kept == nullptr || periods == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  for (int i = 0; i < t.dimension_count; ++i) {
    int& number = remain_dims[i] != 0 ? key : color;
    number = number * t.dimensions[i] + t.coordinates[i];
    if (remain_dims[i] != 0) {
      kept[count] = t.dimensions[i];
      periods[count++] = t.periods[i];
    }
  }
  Comm* made = nullptr;
  const int error = split_comm(call, color, key, &made);
  if (error == MPI_SUCCESS) {
    made->topology = create_cartesian(call.state, count, kept, periods, made->rank);
    *newcomm = handle_of(call.state, made);
  }
  call.state.deallocate(kept);
  call.state.deallocate(periods);
  return error;
}

int PMPI_Cartdim_get(MPI_Comm comm, int* ndims) {
  const CallScope scope;
  CartesianCall call{"MPI_Cartdim_get", comm};
  if (call.error == MPI_SUCCESS) {
    *ndims = call.topology->dimension_count;
  }
  return call.error;
}

int PMPI_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]) {
  const CallScope scope;
  CartesianCall call{"MPI_Cart_get", comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  const Topology& t = *call.topology;
  for (int i = 0; i < t.dimension_count && i < maxdims; ++i) {
    dims[i] = t.dimensions[i];
    periods[i] = t.periods[i];
    coords[i] = t.coordinates[i];
  }
  return MPI_SUCCESS;
}

int PMPI_Cart_rank(MPI_Comm comm, const int coords[], int* rank) {
  const CallScope scope;
  CartesianCall call{"MPI_Cart_rank", comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  const int found = rank_of(*call.topology, coords);
  if (found == MPI_PROC_NULL) {
    return call.fail(MPI_ERR_RANK, "coordinates outside of a dimension that is not periodic");
  }
  *rank = found;
  return MPI_SUCCESS;
}

int PMPI_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[]) {
  const CallScope scope;
  CartesianCall call{"MPI_Cart_coords", comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  const Topology& t = *call.topology;
  if (static_cast<std::uint32_t>(rank) >= call.comm->size) {
    return call.fail(MPI_ERR_RANK, "the rank is %d of %u", rank, call.comm->size);
  }
  if (maxdims < t.dimension_count) {
    return call.fail(MPI_ERR_ARG, "room for %d coordinates, there are %d", maxdims,
                     t.dimension_count);
  }
  coordinates_of(t, rank, coords);
  return MPI_SUCCESS;
}

int PMPI_Cart_shift(MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest) {
  const CallScope scope;
  CartesianCall call{"MPI_Cart_shift", comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  const Topology& t = *call.topology;
  if (direction < 0 || direction >= t.dimension_count) {
    return call.fail(MPI_ERR_ARG, "the direction is %d of %d", direction, t.dimension_count);
  }
  int* place = copy_numbers(call.state, t.coordinates, t.dimension_count);
  if (place == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  *rank_dest = rank_beside(t, direction, disp, place);
  *rank_source = rank_beside(t, direction, -std::int64_t{disp}, place);
  call.state.deallocate(place);
  return MPI_SUCCESS;
}

int PMPI_Cart_map(MPI_Comm comm, int ndims, const int dims[], const int[], int* newrank) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Cart_map"), "MPI_Cart_map"};
  if (const int error = check_comm(call, comm)) {
    return error;
  }
  int size = 0;
  if (const int error = check_grid(call, ndims, dims, &size)) {
    return error;
  }
  *newrank = call.comm->rank < size ? call.comm->rank : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

int PMPI_Topo_test(MPI_Comm comm, int* status) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Topo_test"), "MPI_Topo_test"};
  if (const int error = check_comm(call, comm)) {
    return error;
  }
  const Topology* t = call.comm->topology;
  *status = MPI_UNDEFINED;
  if (t != nullptr) {
    constexpr int kNames[] = {MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH};  // By TopologyKind.
    *status = kNames[static_cast<int>(t->kind)];
  }
  return MPI_SUCCESS;
}

int PMPI_Dims_create(int nnodes, int ndims, int dims[]) {
  const CallScope scope;
  const Call call{state_of_caller("MPI_Dims_create"), "MPI_Dims_create"};
  if (nnodes <= 0 || ndims < 0) {
    return call.fail(MPI_ERR_ARG, "%d ranks in %d dimensions", nnodes, ndims);
  }
  return choose_dimensions(nnodes, {dims, static_cast<std::size_t>(ndims)})
             ? MPI_SUCCESS
             : call.fail(MPI_ERR_DIMS, "%d ranks do not fit the dimensions that are given", nnodes);
}

}  // extern "C"
}  // namespace sterna::mpi
