// Groups.
#include "mpi/group/group.h"

#include <mpi.h>

#include "mpi/call_scope.h"
#include "mpi/errors/error.h"
#include "mpi/group/select.h"

namespace sterna::mpi {
namespace {

/// Finds groups, and keeps the first error.
struct GroupCall : Call {
  explicit GroupCall(const char* name) noexcept : Call{state_of_caller(name), name} {}

  int error = MPI_SUCCESS;
  Group* find(MPI_Group handle) noexcept {
    Group* group = find_group(state, handle);
    if (group == nullptr && error == MPI_SUCCESS) {
      error = handle == MPI_GROUP_NULL
                  ? fail(MPI_ERR_GROUP, "the group is MPI_GROUP_NULL")
                  : fail(MPI_ERR_GROUP, "%p is not a group", static_cast<void*>(handle));
    }
    return group;
  }
  int give(Group* made, MPI_Group* handle) noexcept {
    if (made == nullptr) {
      return fail_plain(MPI_ERR_NO_MEM);
    }
    if (made->size == 0) {
      release_group(state, made);
      *handle = MPI_GROUP_EMPTY;
      return MPI_SUCCESS;
    }
    *handle = handle_of(state, made);
    return MPI_SUCCESS;
  }
};

using Combine = Group* (*)(RankState&, const Group&, const Group&) noexcept;

int combine(const char* function, MPI_Group a, MPI_Group b, MPI_Group* made, Combine how) noexcept {
  const CallScope scope;
  GroupCall call{function};
  const Group* first = call.find(a);
  const Group* second = first == nullptr ? nullptr : call.find(b);
  if (second == nullptr) {
    return call.error;
  }
  return call.give(how(call.state, *first, *second), made);
}

int select(const char* function, MPI_Group handle, int count, const int* ranks, bool is_kept,
           MPI_Group* made) noexcept {
  const CallScope scope;
  GroupCall call{function};
  const Group* group = call.find(handle);
  if (group == nullptr) {
    return call.error;
  }
  if (count < 0) {
    return call.fail(MPI_ERR_ARG, "the number of ranks is %d", count);
  }
  Selection selection{call.state, *group};
  for (int i = 0; i < count; ++i) {
    if (!selection.add(ranks[i])) {
      return call.fail(MPI_ERR_RANK, "rank %d is not in the group of %u, or is named twice",
                       ranks[i], group->size);
    }
  }
  return call.give(is_kept ? selection.chosen() : selection.others(), made);
}

int select_ranges(const char* function, MPI_Group handle, int count, int ranges[][3], bool is_kept,
                  MPI_Group* made) noexcept {
  const CallScope scope;
  GroupCall call{function};
  const Group* group = call.find(handle);
  if (group == nullptr) {
    return call.error;
  }
  if (count < 0) {
    return call.fail(MPI_ERR_ARG, "the number of ranges is %d", count);
  }
  Selection selection{call.state, *group};
  for (int i = 0; i < count; ++i) {
    const auto [first, last, stride] = ranges[i];
    if (stride == 0) {
      return call.fail(MPI_ERR_ARG, "the stride of range %d is 0", i);
    }
    // The first one after the range need not be an int.
    for (std::int64_t next = first; stride > 0 ? next <= last : next >= last; next += stride) {
      const int rank = static_cast<int>(next);
      if (!selection.add(rank)) {
        return call.fail(MPI_ERR_RANK, "rank %d of range %d is not in the group of %u, or twice",
                         rank, i, group->size);
      }
    }
  }
  return call.give(is_kept ? selection.chosen() : selection.others(), made);
}

}  // namespace

extern "C" {

int PMPI_Group_size(MPI_Group group, int* size) {
  const CallScope scope;
  GroupCall call{"MPI_Group_size"};
  const Group* found = call.find(group);
  if (found != nullptr) {
    *size = static_cast<int>(found->size);
  }
  return call.error;
}

int PMPI_Group_rank(MPI_Group group, int* rank) {
  const CallScope scope;
  GroupCall call{"MPI_Group_rank"};
  const Group* found = call.find(group);
  if (found != nullptr) {
    *rank = found->rank;
  }
  return call.error;
}

int PMPI_Group_compare(MPI_Group group1, MPI_Group group2, int* result) {
  const CallScope scope;
  GroupCall call{"MPI_Group_compare"};
  const Group* a = call.find(group1);
  const Group* b = a == nullptr ? nullptr : call.find(group2);
  if (b != nullptr) {
    *result = compare_groups(*a, *b);
  }
  return call.error;
}

int PMPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2,
                               int ranks2[]) {
  const CallScope scope;
  GroupCall call{"MPI_Group_translate_ranks"};
  const Group* a = call.find(group1);
  const Group* b = a == nullptr ? nullptr : call.find(group2);
  if (b == nullptr) {
    return call.error;
  }
  if (n < 0) {
    return call.fail(MPI_ERR_ARG, "the number of ranks is %d", n);
  }
  for (int i = 0; i < n; ++i) {
    const int rank = ranks1[i];
    if (rank != MPI_PROC_NULL && static_cast<std::uint32_t>(rank) >= a->size) {
      return call.fail(MPI_ERR_RANK, "rank %d is not in the first group of %u", rank, a->size);
    }
    ranks2[i] = rank == MPI_PROC_NULL ? MPI_PROC_NULL
                                      : b->index_of(a->world_of(static_cast<std::uint32_t>(rank)));
  }
  return MPI_SUCCESS;
}

int PMPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return combine("MPI_Group_union", group1, group2, newgroup, unite_groups);
}

int PMPI_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return combine("MPI_Group_intersection", group1, group2, newgroup, intersect_groups);
}

int PMPI_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return combine("MPI_Group_difference", group1, group2, newgroup, subtract_groups);
}

int PMPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
  return select("MPI_Group_incl", group, n, ranks, true, newgroup);
}

int PMPI_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
  return select("MPI_Group_excl", group, n, ranks, false, newgroup);
}

int PMPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
  return select_ranges("MPI_Group_range_incl", group, n, ranges, true, newgroup);
}

int PMPI_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
  return select_ranges("MPI_Group_range_excl", group, n, ranges, false, newgroup);
}

int PMPI_Group_free(MPI_Group* group) {
  const CallScope scope;
  GroupCall call{"MPI_Group_free"};
  Group* found = call.find(*group);
  if (found == nullptr) {
    return call.error;
  }
  if (found != call.state.empty_group) {
    release_group(call.state, found);
  }
  *group = MPI_GROUP_NULL;
  return MPI_SUCCESS;
}

}  // extern "C"
}  // namespace sterna::mpi
