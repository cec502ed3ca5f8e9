// Calls on arrays of requests: how they check them, and how they tell what failed.
#pragma once

#include <mpi.h>

#include "mpi/errors/error.h"
#include "mpi/request/request.h"
#include "runtime/safe_point.h"

namespace sterna::mpi {

/// A call on an array of requests; checks it.
struct ArrayCall : Call {
  ArrayCall(const char* name, int number, const MPI_Request* list) noexcept
      : Call{state_of_caller(name), name}, count{number}, handles{list} {
    runtime::safe_point(*state.context);
    if (count < 0) {
      error = fail(MPI_ERR_ARG, "the number of requests is %d", count);
      return;
    }
    for (int i = 0; i < count; ++i) {
      if (handles[i] != MPI_REQUEST_NULL && find_request(handles[i]) == nullptr) {
        error = fail(MPI_ERR_REQUEST, "entry %d of the array is not a request (or was freed)", i);
        return;
      }
    }
  }

  /// Null: MPI_REQUEST_NULL or inactive.
  [[nodiscard]] Request* active(int index) const noexcept {
    if (handles[index] == MPI_REQUEST_NULL) {
      return nullptr;
    }
    Request* request = find_request(handles[index]);
    return request->is_active ? request : nullptr;
  }
  [[nodiscard]] bool has_active() const noexcept {
    for (int i = 0; i < count; ++i) {
      if (active(i) != nullptr) {
        return true;
      }
    }
    return false;
  }
  /// Index of an active one that is done; -1: none.
  [[nodiscard]] int find_done() const noexcept {
    for (int i = 0; i < count; ++i) {
      Request* request = active(i);
      if (request != nullptr && is_done(state, *request)) {
        return i;
      }
    }
    return -1;
  }
  [[nodiscard]] bool all_done() const noexcept {
    for (int i = 0; i < count; ++i) {
      Request* request = active(i);
      if (request != nullptr && !is_done(state, *request)) {
        return false;
      }
    }
    return true;
  }

  int count;
  const MPI_Request* handles;
  int error = MPI_SUCCESS;
};

/// How the operations ended of which one call tells. The handler of the first one that failed is
/// called, with its code: MPI-5.0 §9.3.1.
class Outcomes {
 public:
  explicit Outcomes(MPI_Status* statuses) noexcept : statuses_{statuses} {}

  /// Where the status of the operation goes of which is told in this place.
  [[nodiscard]] MPI_Status* status(int place) const noexcept {
    return statuses_ == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses_[place];
  }
  /// After `failure` has noted it, for each place in turn.
  void add(int place, int error) noexcept {
    if (failure.error != MPI_SUCCESS) [[unlikely]] {
      write(place, error);
    }
  }
  /// What the call returns.
  [[nodiscard]] int end(const Call& call) noexcept {
    if (failure.error == MPI_SUCCESS) [[likely]] {
      return MPI_SUCCESS;
    }
    (void)failure.report(call);
    return MPI_ERR_IN_STATUS;
  }

  Failure failure;

 private:
  /// MPI_ERROR is written where the call returns MPI_ERR_IN_STATUS, and nowhere else: MPI-5.0
  /// §3.2.5. So the first failure writes those before it as well.
  [[gnu::cold]] void write(int place, int error) noexcept {
    for (; statuses_ != MPI_STATUSES_IGNORE && written_ <= place; ++written_) {
      statuses_[written_].MPI_ERROR = written_ == place ? error : MPI_SUCCESS;
    }
  }

  MPI_Status* const statuses_;
  int written_ = 0;
};

}  // namespace sterna::mpi
