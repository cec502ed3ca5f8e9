// What a program hangs onto communicators: names, hints, buffers; and leaving them.
#include <cstring>

#include <mpi.h>

#include "mpi/call_scope.h"
#include "mpi/coll/enter.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/create.h"
#include "mpi/info/info.h"
#include "mpi/p2p/buffered.h"
#include "mpi/p2p/message.h"
#include "mpi/request/request.h"
#include "mpi/request/status.h"

namespace sterna::mpi {
namespace {

// The buffer of a communicator, or (null) of the program.
BufferPool** slot_of(RankState& state, Comm* comm) noexcept {
  return comm == nullptr ? &state.buffers : &comm->buffers;
}

int attach(const Call& call, void* buffer, MPI_Count size) noexcept {
  BufferPool** slot = slot_of(call.state, call.comm);
  if (*slot != nullptr) {
    return call.fail(MPI_ERR_BUFFER, "a buffer is attached already");
  }
  return call.pass(attach_buffer(call.state, slot, buffer, size));
}

// `size_of_size`: an int or an MPI_Count gets the size.
template <typename Size>
int detach(const Call& call, void* address, Size* size) noexcept {
  BufferPool** slot = slot_of(call.state, call.comm);
  BufferPool* pool = *slot;
  void* base = nullptr;
  Size bytes = 0;
  if (pool != nullptr) {
    flush_buffer(call.state, *pool);
    base = pool->base;
    bytes = static_cast<Size>(pool->bytes);
    *slot = nullptr;
    release_buffers(call.state, pool);
  }
  std::memcpy(address, &base, sizeof base);
  *size = bytes;
  return MPI_SUCCESS;
}

int flush(const Call& call, MPI_Request* request) noexcept {
  BufferPool* pool = *slot_of(call.state, call.comm);
  if (request == nullptr) {
    if (pool != nullptr) {
      flush_buffer(call.state, *pool);
    }
    return MPI_SUCCESS;
  }
  MPI_Status empty{};
  set_empty(empty);
  Request* made = pool != nullptr ? create_flush(call.state, call.comm, *pool)
                                  : create_finished(call.state, call.comm, empty);
  *request = made == nullptr ? MPI_REQUEST_NULL : handle_of(made);
  return made == nullptr ? call.fail_plain(MPI_ERR_NO_MEM) : MPI_SUCCESS;
}

template <typename Work>
int on_comm(const char* name, MPI_Comm comm, Work work) noexcept {
  const CallScope scope;
  Call call{state_of_caller(name), name};
  const int error = check_comm(call, comm);
  return error != MPI_SUCCESS ? error : work(call);
}

template <typename Work>
int on_program(const char* name, Work work) noexcept {
  const CallScope scope;
  return work(Call{state_of_caller(name), name});
}

}  // namespace

extern "C" {

int PMPI_Comm_set_name(MPI_Comm comm, const char* comm_name) {
  return on_comm("MPI_Comm_set_name", comm, [&](const Call& call) -> int {
    if (comm_name == nullptr) {
      return call.fail(MPI_ERR_ARG, "the name is null");
    }
    const std::size_t bytes = strnlen(comm_name, MPI_MAX_OBJECT_NAME - 1);
    std::memcpy(call.comm->name, comm_name, bytes);
    call.comm->name[bytes] = '\0';
    return MPI_SUCCESS;
  });
}

int PMPI_Comm_get_name(MPI_Comm comm, char* comm_name, int* resultlen) {
  if (comm == MPI_COMM_NULL) {  // Its name may be asked: MPI-5.0 §7.8.
    std::strcpy(comm_name, "MPI_COMM_NULL");
    *resultlen = static_cast<int>(std::strlen(comm_name));
    return MPI_SUCCESS;
  }
  return on_comm("MPI_Comm_get_name", comm, [&](const Call& call) -> int {
    std::strcpy(comm_name, call.comm->name);
    *resultlen = static_cast<int>(std::strlen(comm_name));
    return MPI_SUCCESS;
  });
}

int PMPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  return on_comm("MPI_Comm_set_info", comm, [&](const Call& call) -> int {
    return find_info(info) != nullptr ? MPI_SUCCESS
                                      : call.fail(MPI_ERR_INFO, "the info object is not one");
  });
}

int PMPI_Comm_get_info(MPI_Comm comm, MPI_Info* info_used) {
  return on_comm("MPI_Comm_get_info", comm, [&](const Call& call) -> int {
    // Those that are not ignored, and no others: MPI-5.0 §7.4.4. No hint changes what we do, and to
    // return one would say that the program has to keep what it asserts.
    Info* hints = create_info(call.state);
    if (hints == nullptr) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    *info_used = reinterpret_cast<MPI_Info>(hints);
    return MPI_SUCCESS;
  });
}

int PMPI_Comm_disconnect(MPI_Comm* comm) {
  return on_comm("MPI_Comm_disconnect", *comm, [&](const Call& call) -> int {
    if (call.comm->is_predefined) {
      return call.fail(MPI_ERR_COMM, "%s cannot be disconnected", call.comm->name);
    }
    if (const int error =
            run_collective(call, {call.function}, [](Builder& b) { build_barrier(b); })) {
      return error;
    }
    const int error = free_comm(call.state, call.comm);
    if (error == MPI_SUCCESS) {
      *comm = MPI_COMM_NULL;
    }
    return call.pass(error);
  });
}

int PMPI_Comm_attach_buffer_c(MPI_Comm comm, void* buffer, MPI_Count size) {
  return on_comm("MPI_Comm_attach_buffer", comm,
                 [&](const Call& call) { return attach(call, buffer, size); });
}

int PMPI_Comm_detach_buffer(MPI_Comm comm, void* buffer_addr, int* size) {
  return on_comm("MPI_Comm_detach_buffer", comm,
                 [&](const Call& call) { return detach(call, buffer_addr, size); });
}

int PMPI_Comm_detach_buffer_c(MPI_Comm comm, void* buffer_addr, MPI_Count* size) {
  return on_comm("MPI_Comm_detach_buffer_c", comm,
                 [&](const Call& call) { return detach(call, buffer_addr, size); });
}

int PMPI_Comm_flush_buffer(MPI_Comm comm) {
  return on_comm("MPI_Comm_flush_buffer", comm,
                 [](const Call& call) { return flush(call, nullptr); });
}

int PMPI_Comm_iflush_buffer(MPI_Comm comm, MPI_Request* request) {
  return on_comm("MPI_Comm_iflush_buffer", comm,
                 [&](const Call& call) { return flush(call, request); });
}

int PMPI_Buffer_attach_c(void* buffer, MPI_Count size) {
  return on_program("MPI_Buffer_attach",
                    [&](const Call& call) { return attach(call, buffer, size); });
}

int PMPI_Buffer_detach(void* buffer_addr, int* size) {
  return on_program("MPI_Buffer_detach",
                    [&](const Call& call) { return detach(call, buffer_addr, size); });
}

int PMPI_Buffer_detach_c(void* buffer_addr, MPI_Count* size) {
  return on_program("MPI_Buffer_detach_c",
                    [&](const Call& call) { return detach(call, buffer_addr, size); });
}

int PMPI_Buffer_flush(void) {
  return on_program("MPI_Buffer_flush", [](const Call& call) { return flush(call, nullptr); });
}

int PMPI_Buffer_iflush(MPI_Request* request) {
  return on_program("MPI_Buffer_iflush", [&](const Call& call) { return flush(call, request); });
}

}  // extern "C"
}  // namespace sterna::mpi
