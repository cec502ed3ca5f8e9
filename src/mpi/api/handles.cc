// Handles as small integers, for languages whose handles those are: of a constant its value, of an
// object a number that its address keeps. And the arithmetic of addresses.
#include <mpi.h>

#include "mpi/call_scope.h"
#include "mpi/datatype/handle_numbers.h"

namespace {

using namespace sterna;

int number_of(void* handle) noexcept {
  const mpi::CallScope scope{runtime::Callers::any};
  return mpi::number_of_handle(handle);
}

template <typename Handle>
Handle handle_of(int number) noexcept {
  const mpi::CallScope scope{runtime::Callers::any};
  return reinterpret_cast<Handle>(mpi::handle_of_number(number));
}

}  // namespace

int PMPI_Comm_toint(MPI_Comm comm) {
  return number_of(comm);
}
MPI_Comm PMPI_Comm_fromint(int comm) {
  return handle_of<MPI_Comm>(comm);
}

int PMPI_Errhandler_toint(MPI_Errhandler errhandler) {
  return number_of(errhandler);
}
MPI_Errhandler PMPI_Errhandler_fromint(int errhandler) {
  return handle_of<MPI_Errhandler>(errhandler);
}

int PMPI_File_toint(MPI_File file) {
  return number_of(file);
}
MPI_File PMPI_File_fromint(int file) {
  return handle_of<MPI_File>(file);
}

int PMPI_Group_toint(MPI_Group group) {
  return number_of(group);
}
MPI_Group PMPI_Group_fromint(int group) {
  return handle_of<MPI_Group>(group);
}

int PMPI_Info_toint(MPI_Info info) {
  return number_of(info);
}
MPI_Info PMPI_Info_fromint(int info) {
  return handle_of<MPI_Info>(info);
}

int PMPI_Message_toint(MPI_Message message) {
  return number_of(message);
}
MPI_Message PMPI_Message_fromint(int message) {
  return handle_of<MPI_Message>(message);
}

int PMPI_Op_toint(MPI_Op op) {
  return number_of(op);
}
MPI_Op PMPI_Op_fromint(int op) {
  return handle_of<MPI_Op>(op);
}

int PMPI_Request_toint(MPI_Request request) {
  return number_of(request);
}
MPI_Request PMPI_Request_fromint(int request) {
  return handle_of<MPI_Request>(request);
}

int PMPI_Session_toint(MPI_Session session) {
  return number_of(session);
}
MPI_Session PMPI_Session_fromint(int session) {
  return handle_of<MPI_Session>(session);
}

int PMPI_Win_toint(MPI_Win win) {
  return number_of(win);
}
MPI_Win PMPI_Win_fromint(int win) {
  return handle_of<MPI_Win>(win);
}

int PMPI_Type_toint(MPI_Datatype datatype) {
  return number_of(datatype);
}
MPI_Datatype PMPI_Type_fromint(int datatype) {
  return handle_of<MPI_Datatype>(datatype);
}

int PMPI_Get_address(const void* location, MPI_Aint* address) {
  *address = reinterpret_cast<MPI_Aint>(location);
  return MPI_SUCCESS;
}

// Addresses wrap as the machine's do; as signed numbers they would not be allowed to.
MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(base) +
                               static_cast<std::uintptr_t>(disp));
}
MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(addr1) -
                               static_cast<std::uintptr_t>(addr2));
}

int PMPI_Abi_get_version(int* abi_major, int* abi_minor) {
  *abi_major = MPI_ABI_VERSION;
  *abi_minor = MPI_ABI_SUBVERSION;
  return MPI_SUCCESS;
}
