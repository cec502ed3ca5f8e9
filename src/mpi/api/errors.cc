// Error codes, texts and handlers. Codes and texts at any time, from any thread.
#include <cstring>

#include <mpi.h>

#include "mpi/any_time.h"
#include "mpi/call_scope.h"
#include "mpi/comm/comm.h"
#include "mpi/errors/error.h"
#include "mpi/errors/table.h"
#include "mpi/p2p/message.h"

namespace sterna::mpi {
namespace {

/// `call`: a Call, or an AnyCall, whose handlers live as long as the program wants.
template <typename AnyKind>
int create_handler(const AnyKind& call, HeapUser& heap, HandlerOwner owner, void* function,
                   MPI_Errhandler* handle) noexcept {
  if (function == nullptr) {
    return call.fail(MPI_ERR_ARG, "the function is null");
  }
  ErrorHandler* made = heap.create<ErrorHandler>();
  if (made == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  made->owner = owner;
  made->function = reinterpret_cast<void (*)(void*, int*, ...)>(function);
  *handle = reinterpret_cast<MPI_Errhandler>(made);
  return MPI_SUCCESS;
}

template <typename Function>
int create_handler(const char* name, HandlerOwner owner, Function* function,
                   MPI_Errhandler* handle) noexcept {
  const CallScope scope{runtime::Callers::any};
  const Call call{state_of_caller(name), name};
  return create_handler(call, call.state, owner, reinterpret_cast<void*>(function), handle);
}

int check_handler(const Call& call, MPI_Errhandler handle, HandlerOwner owner) noexcept {
  if (!is_handler(handle)) {
    return call.fail(MPI_ERR_ERRHANDLER, handle == MPI_ERRHANDLER_NULL
                                             ? "the error handler is MPI_ERRHANDLER_NULL"
                                             : "the error handler is not one (or was freed)");
  }
  if (is_object(handle, ObjectKind::error_handler) &&
      reinterpret_cast<ErrorHandler*>(handle)->owner != owner) {
    return call.fail(MPI_ERR_ERRHANDLER, "the error handler is for another kind of object");
  }
  return MPI_SUCCESS;
}

}  // namespace

extern "C" {

int PMPI_Error_class(int errorcode, int* errorclass) {
  const CallScope scope{runtime::Callers::any};
  const int found = class_of_code(errorcode);
  if (found < 0) {
    return AnyCall{"MPI_Error_class"}.fail(MPI_ERR_ARG, "%d is no error code", errorcode);
  }
  *errorclass = found;
  return MPI_SUCCESS;
}

int PMPI_Error_string(int errorcode, char* string, int* resultlen) {
  const CallScope scope{runtime::Callers::any};
  char text[MPI_MAX_ERROR_STRING];
  if (!text_of_code(errorcode, text)) {
    return AnyCall{"MPI_Error_string"}.fail(MPI_ERR_ARG, "%d is no error code", errorcode);
  }
  const char* name = errorcode == MPI_SUCCESS ? nullptr : name_of_class(errorcode);
  string[0] = '\0';
  if (name != nullptr) {
    std::strcpy(string, name);
    std::strcat(string, ": ");
  }
  std::strncat(string, text, MPI_MAX_ERROR_STRING - 1 - std::strlen(string));
  *resultlen = static_cast<int>(std::strlen(string));
  return MPI_SUCCESS;
}

int PMPI_Add_error_class(int* errorclass) {
  const CallScope scope{runtime::Callers::any};
  const AnyCall call{"MPI_Add_error_class"};
  const int code = add_error(call.its, -1);
  if (code == 0) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  *errorclass = code;
  return MPI_SUCCESS;
}

int PMPI_Add_error_code(int errorclass, int* errorcode) {
  const CallScope scope{runtime::Callers::any};
  const AnyCall call{"MPI_Add_error_code"};
  if (class_of_code(errorclass) != errorclass) {
    return call.fail(MPI_ERR_ARG, "%d is no error class", errorclass);
  }
  const int code = add_error(call.its, errorclass);
  if (code == 0) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  *errorcode = code;
  return MPI_SUCCESS;
}

int PMPI_Add_error_string(int errorcode, const char* string) {
  const CallScope scope{runtime::Callers::any};
  const AnyCall call{"MPI_Add_error_string"};
  return call.pass(set_error_text(call.its, errorcode, string));
}

int PMPI_Remove_error_class(int errorclass) {
  const CallScope scope{runtime::Callers::any};
  const AnyCall call{"MPI_Remove_error_class"};
  return call.pass(remove_error(call.its, errorclass, true));
}

int PMPI_Remove_error_code(int errorcode) {
  const CallScope scope{runtime::Callers::any};
  const AnyCall call{"MPI_Remove_error_code"};
  return call.pass(remove_error(call.its, errorcode, false));
}

int PMPI_Remove_error_string(int errorcode) {
  const CallScope scope{runtime::Callers::any};
  const AnyCall call{"MPI_Remove_error_string"};
  return call.pass(set_error_text(call.its, errorcode, nullptr));
}

int PMPI_Comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn,
                                MPI_Errhandler* errhandler) {
  return create_handler("MPI_Comm_create_errhandler", HandlerOwner::communicator,
                        comm_errhandler_fn, errhandler);
}

int PMPI_File_create_errhandler(MPI_File_errhandler_function* file_errhandler_fn,
                                MPI_Errhandler* errhandler) {
  return create_handler("MPI_File_create_errhandler", HandlerOwner::file, file_errhandler_fn,
                        errhandler);
}

int PMPI_Win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn,
                               MPI_Errhandler* errhandler) {
  return create_handler("MPI_Win_create_errhandler", HandlerOwner::window, win_errhandler_fn,
                        errhandler);
}

int PMPI_Session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn,
                                   MPI_Errhandler* errhandler) {
  // A session begins before MPI_Init, or without it.
  const CallScope scope{runtime::Callers::any};
  const AnyCall call{"MPI_Session_create_errhandler"};
  return create_handler(call, call.its, HandlerOwner::session,
                        reinterpret_cast<void*>(session_errhandler_fn), errhandler);
}

int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler) {
  const CallScope scope{runtime::Callers::any};
  Call call{state_of_caller("MPI_Comm_set_errhandler"), "MPI_Comm_set_errhandler"};
  if (const int error = check_comm(call, comm)) {
    return error;
  }
  if (const int error = check_handler(call, errhandler, HandlerOwner::communicator)) {
    return error;
  }
  retain_handler(errhandler);
  release_handler(call.state, call.comm->errhandler);
  call.comm->errhandler = errhandler;
  return MPI_SUCCESS;
}

int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* errhandler) {
  const CallScope scope{runtime::Callers::any};
  Call call{state_of_caller("MPI_Comm_get_errhandler"), "MPI_Comm_get_errhandler"};
  if (const int error = check_comm(call, comm)) {
    return error;
  }
  retain_handler(call.comm->errhandler);
  *errhandler = call.comm->errhandler;
  return MPI_SUCCESS;
}

int PMPI_Comm_call_errhandler(MPI_Comm comm, int errorcode) {
  const CallScope scope{runtime::Callers::any};
  Call call{state_of_caller("MPI_Comm_call_errhandler"), "MPI_Comm_call_errhandler"};
  if (const int error = check_comm(call, comm)) {
    return error;
  }
  char text[MPI_MAX_ERROR_STRING];
  (void)call_handler(call.state, call.comm, errorcode, call.function,
                     text_of_code(errorcode, text) ? text : "called by the program");
  return MPI_SUCCESS;
}

int PMPI_Errhandler_free(MPI_Errhandler* errhandler) {
  const CallScope scope{runtime::Callers::any};
  const AnyCall call{"MPI_Errhandler_free"};
  if (!is_handler(*errhandler)) {
    return call.fail(MPI_ERR_ERRHANDLER, "the error handler is not one (or was freed)");
  }
  release_handler(call.its, *errhandler);
  *errhandler = MPI_ERRHANDLER_NULL;
  return MPI_SUCCESS;
}

}  // extern "C"
}  // namespace sterna::mpi
