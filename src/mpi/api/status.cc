// What a status says: counts of received elements, and its fields by function.
#include "mpi/request/status.h"

#include <climits>

#include <mpi.h>

#include "mpi/api/entry.h"
#include "mpi/datatype/datatype.h"

namespace {

using namespace sterna::mpi;

/// What cannot be said in whole numbers, or not in this type of number, is MPI_UNDEFINED.
void put(std::uint64_t value, int* out) noexcept {
  *out = value > INT_MAX ? int{MPI_UNDEFINED} : static_cast<int>(value);
}
void put(std::uint64_t value, std::int64_t* out) noexcept {
  *out = value > INT64_MAX ? std::int64_t{MPI_UNDEFINED} : static_cast<std::int64_t>(value);
}

template <typename Body>
int enter_status(const char* function, MPI_Datatype datatype, Body body) noexcept {
  return enter(function, [&](const Call& call) {
    const Datatype* type = find_datatype(datatype);
    if (type == nullptr) {
      return call.fail_plain(MPI_ERR_TYPE);
    }
    body(*type);
    return int{MPI_SUCCESS};
  });
}

template <typename Number>
int get_count(const MPI_Status* status, MPI_Datatype datatype, Number* count) noexcept {
  return enter_status("MPI_Get_count", datatype, [&](const Datatype& type) {
    const std::uint64_t bytes = bytes_of_status(*status);
    const auto unit = static_cast<std::uint64_t>(type.bytes);
    if (unit == 0) {
      put(bytes == 0 ? 0 : kNotWhole, count);
    } else {
      put(bytes % unit == 0 ? bytes / unit : kNotWhole, count);
    }
  });
}

template <typename Number>
int get_elements(const MPI_Status* status, MPI_Datatype datatype, Number* count) noexcept {
  return enter_status("MPI_Get_elements", datatype, [&](const Datatype& type) {
    put(count_elements(type, bytes_of_status(*status)), count);
  });
}

/// Sets the count so that MPI_Get_elements gives it back: the bytes of that many basic elements.
int set_elements(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) noexcept {
  return enter("MPI_Status_set_elements", [&](const Call& call) {
    const Datatype* type = find_datatype(datatype);
    if (type == nullptr) {
      return call.fail_plain(MPI_ERR_TYPE);
    }
    if (count < 0) {
      return call.fail(MPI_ERR_COUNT, "the count is negative");
    }
    set_status_bytes(*status, bytes_of_elements(*type, static_cast<std::uint64_t>(count)));
    return int{MPI_SUCCESS};
  });
}

}  // namespace

int PMPI_Get_count(const MPI_Status* status, MPI_Datatype datatype, int* count) {
  return get_count(status, datatype, count);
}
int PMPI_Get_count_c(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) {
  return get_count(status, datatype, count);
}

int PMPI_Get_elements(const MPI_Status* status, MPI_Datatype datatype, int* count) {
  return get_elements(status, datatype, count);
}
int PMPI_Get_elements_c(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) {
  return get_elements(status, datatype, count);
}
int PMPI_Get_elements_x(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) {
  return get_elements(status, datatype, count);
}

int PMPI_Status_set_elements(MPI_Status* status, MPI_Datatype datatype, int count) {
  return set_elements(status, datatype, count);
}
int PMPI_Status_set_elements_c(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  return set_elements(status, datatype, count);
}
int PMPI_Status_set_elements_x(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  return set_elements(status, datatype, count);
}

// The fields: no rank is needed, nor any check.

int PMPI_Status_set_cancelled(MPI_Status* status, int flag) {
  set_status_cancelled(*status, flag != 0);
  return MPI_SUCCESS;
}
int PMPI_Test_cancelled(const MPI_Status* status, int* flag) {
  *flag = is_status_cancelled(*status) ? 1 : 0;
  return MPI_SUCCESS;
}
int PMPI_Status_get_source(const MPI_Status* status, int* source) {
  *source = status->MPI_SOURCE;
  return MPI_SUCCESS;
}
int PMPI_Status_get_tag(const MPI_Status* status, int* tag) {
  *tag = status->MPI_TAG;
  return MPI_SUCCESS;
}
int PMPI_Status_get_error(const MPI_Status* status, int* error) {
  *error = status->MPI_ERROR;
  return MPI_SUCCESS;
}
int PMPI_Status_set_source(MPI_Status* status, int source) {
  status->MPI_SOURCE = source;
  return MPI_SUCCESS;
}
int PMPI_Status_set_tag(MPI_Status* status, int tag) {
  status->MPI_TAG = tag;
  return MPI_SUCCESS;
}
int PMPI_Status_set_error(MPI_Status* status, int error) {
  status->MPI_ERROR = error;
  return MPI_SUCCESS;
}
