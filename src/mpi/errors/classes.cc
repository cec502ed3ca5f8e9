// The predefined error classes: names and texts.
#include <algorithm>
#include <iterator>

#include "mpi/errors/error.h"
#include "mpi/errors/table.h"

namespace sterna::mpi {
namespace {

struct ClassText {
  int number;
  const char* name;
  const char* text;
};

// Ascending by number.
constexpr ClassText kClasses[] = {
    {MPI_SUCCESS, "MPI_SUCCESS", "no error"},
    {MPI_ERR_BUFFER, "MPI_ERR_BUFFER", "the buffer is not valid"},
    {MPI_ERR_COUNT, "MPI_ERR_COUNT", "the count is not valid"},
    {MPI_ERR_TYPE, "MPI_ERR_TYPE", "the datatype is not valid"},
    {MPI_ERR_TAG, "MPI_ERR_TAG", "the tag is not valid"},
    {MPI_ERR_COMM, "MPI_ERR_COMM", "the communicator is not valid"},
    {MPI_ERR_RANK, "MPI_ERR_RANK", "the rank is not valid"},
    {MPI_ERR_REQUEST, "MPI_ERR_REQUEST", "the request is not valid"},
    {MPI_ERR_ROOT, "MPI_ERR_ROOT", "the root is not valid"},
    {MPI_ERR_GROUP, "MPI_ERR_GROUP", "the group is not valid"},
    {MPI_ERR_OP, "MPI_ERR_OP", "the reduction operation is not valid"},
    {MPI_ERR_TOPOLOGY, "MPI_ERR_TOPOLOGY", "the communicator has no such topology"},
    {MPI_ERR_DIMS, "MPI_ERR_DIMS", "the dimensions are not valid"},
    {MPI_ERR_ARG, "MPI_ERR_ARG", "an argument is not valid"},
    {MPI_ERR_UNKNOWN, "MPI_ERR_UNKNOWN", "unknown error"},
    {MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE", "the message is longer than the receive buffer"},
    {MPI_ERR_OTHER, "MPI_ERR_OTHER", "another known error"},
    {MPI_ERR_INTERN, "MPI_ERR_INTERN", "an error inside the MPI library"},
    {MPI_ERR_PENDING, "MPI_ERR_PENDING", "the request is still under way"},
    {MPI_ERR_IN_STATUS, "MPI_ERR_IN_STATUS", "the error is in the status of a request"},
    {MPI_ERR_ACCESS, "MPI_ERR_ACCESS", "permission denied"},
    {MPI_ERR_AMODE, "MPI_ERR_AMODE", "the access mode of the file is not valid"},
    {MPI_ERR_ASSERT, "MPI_ERR_ASSERT", "the assertion is not valid"},
    {MPI_ERR_BAD_FILE, "MPI_ERR_BAD_FILE", "the name of the file is not valid"},
    {MPI_ERR_BASE, "MPI_ERR_BASE", "the base address is not valid"},
    {MPI_ERR_CONVERSION, "MPI_ERR_CONVERSION", "a data conversion function failed"},
    {MPI_ERR_DISP, "MPI_ERR_DISP", "the displacement is not valid"},
    {MPI_ERR_DUP_DATAREP, "MPI_ERR_DUP_DATAREP", "the data representation exists already"},
    {MPI_ERR_FILE_EXISTS, "MPI_ERR_FILE_EXISTS", "the file exists"},
    {MPI_ERR_FILE_IN_USE, "MPI_ERR_FILE_IN_USE", "the file is in use"},
    {MPI_ERR_FILE, "MPI_ERR_FILE", "the file handle is not valid"},
    {MPI_ERR_INFO_KEY, "MPI_ERR_INFO_KEY", "the info key is not valid"},
    {MPI_ERR_INFO_NOKEY, "MPI_ERR_INFO_NOKEY", "the info object has no such key"},
    {MPI_ERR_INFO_VALUE, "MPI_ERR_INFO_VALUE", "the info value is not valid"},
    {MPI_ERR_INFO, "MPI_ERR_INFO", "the info object is not valid"},
    {MPI_ERR_IO, "MPI_ERR_IO", "an input or output error"},
    {MPI_ERR_KEYVAL, "MPI_ERR_KEYVAL", "the attribute key is not valid"},
    {MPI_ERR_LOCKTYPE, "MPI_ERR_LOCKTYPE", "the type of the lock is not valid"},
    {MPI_ERR_NAME, "MPI_ERR_NAME", "the service name is not published"},
    {MPI_ERR_NO_MEM, "MPI_ERR_NO_MEM", "out of memory"},
    {MPI_ERR_NOT_SAME, "MPI_ERR_NOT_SAME", "an argument is not the same in all ranks"},
    {MPI_ERR_NO_SPACE, "MPI_ERR_NO_SPACE", "not enough space in the file system"},
    {MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE", "the file does not exist"},
    {MPI_ERR_PORT, "MPI_ERR_PORT", "the port name is not valid"},
    {MPI_ERR_QUOTA, "MPI_ERR_QUOTA", "the quota is used up"},
    {MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY", "the file or file system is read-only"},
    {MPI_ERR_RMA_ATTACH, "MPI_ERR_RMA_ATTACH", "the memory cannot be attached"},
    {MPI_ERR_RMA_CONFLICT, "MPI_ERR_RMA_CONFLICT", "conflicting accesses to a window"},
    {MPI_ERR_RMA_RANGE, "MPI_ERR_RMA_RANGE", "the memory is not part of the window"},
    {MPI_ERR_RMA_SHARED, "MPI_ERR_RMA_SHARED", "the memory cannot be shared"},
    {MPI_ERR_RMA_SYNC, "MPI_ERR_RMA_SYNC", "wrong synchronisation of a window"},
    {MPI_ERR_SERVICE, "MPI_ERR_SERVICE", "the service name is not valid"},
    {MPI_ERR_SIZE, "MPI_ERR_SIZE", "the size is not valid"},
    {MPI_ERR_SPAWN, "MPI_ERR_SPAWN", "processes cannot be spawned"},
    {MPI_ERR_UNSUPPORTED_DATAREP, "MPI_ERR_UNSUPPORTED_DATAREP",
     "the data representation is not supported"},
    {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_ERR_UNSUPPORTED_OPERATION",
     "the operation is not supported"},
    {MPI_ERR_WIN, "MPI_ERR_WIN", "the window is not valid"},
    {MPI_ERR_RMA_FLAVOR, "MPI_ERR_RMA_FLAVOR", "the window has the wrong flavor"},
    {MPI_ERR_PROC_ABORTED, "MPI_ERR_PROC_ABORTED", "a peer process has ended"},
    {MPI_ERR_VALUE_TOO_LARGE, "MPI_ERR_VALUE_TOO_LARGE", "the value does not fit its type"},
    {MPI_ERR_SESSION, "MPI_ERR_SESSION", "the session is not valid"},
    {MPI_ERR_ERRHANDLER, "MPI_ERR_ERRHANDLER", "the error handler is not valid"},
    {MPI_ERR_ABI, "MPI_ERR_ABI", "an error of the binary interface"},
    {MPI_ERR_LASTCODE, "MPI_ERR_LASTCODE", "the last predefined code"},
};

const ClassText* find_class(int number) noexcept {
  const ClassText* end = std::end(kClasses);
  const ClassText* found =
      std::lower_bound(std::begin(kClasses), end, number,
                       [](const ClassText& entry, int value) { return entry.number < value; });
  return found != end && found->number == number ? found : nullptr;
}

}  // namespace

const char* name_of_class(int error_class) noexcept {
  const ClassText* found = find_class(error_class);
  return found == nullptr ? nullptr : found->name;
}

const char* text_of_class(int error_class) noexcept {
  const ClassText* found = find_class(error_class);
  return found == nullptr ? nullptr : found->text;
}

}  // namespace sterna::mpi
