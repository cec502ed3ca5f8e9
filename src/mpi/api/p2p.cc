// Blocking point-to-point messages, and the non-blocking and persistent starts.
#include <mpi.h>

#include "mpi/p2p/direct.h"
#include "mpi/p2p/enter.h"
#include "mpi/p2p/short.h"

namespace sterna::mpi {
namespace {

// Of both sizes of counts. The usual way has a Side of its own, which has an address: so that of
// the direct way stays in registers.
[[gnu::always_inline]] inline int send(const char* function, const void* buffer, MPI_Count count,
                                       MPI_Datatype datatype, int peer, int tag,
                                       MPI_Comm comm) noexcept {
  void* const address = const_cast<void*>(buffer);
  if (try_send_direct({address, count, datatype, peer, tag}, comm)) [[likely]] {
    return MPI_SUCCESS;
  }
  return enter_send(function, MessageMode::standard, {address, count, datatype, peer, tag}, comm);
}

[[gnu::always_inline]] inline int receive(const char* function, void* buffer, MPI_Count count,
                                          MPI_Datatype datatype, int peer, int tag, MPI_Comm comm,
                                          MPI_Status* status, std::uintptr_t& place) noexcept {
  const int result =
      try_receive_direct(function, {buffer, count, datatype, peer, tag}, comm, status, place);
  if (result != kNotDirect) [[likely]] {
    return result;
  }
  return enter_receive(function, {buffer, count, datatype, peer, tag}, comm, status);
}

// Apart from the entry point, which is quicker without its registers where there is no rank.
[[gnu::noinline]] int send_of_rank(const void* buffer, int count, MPI_Datatype datatype, int peer,
                                   int tag, MPI_Comm comm) noexcept {
  return send("MPI_Send", buffer, count, datatype, peer, tag, comm);
}

}  // namespace

extern "C" {

int PMPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  if (memory::thread_slot == nullptr) {
    return send_in_process(const_cast<void*>(buf), count, datatype, dest, tag, comm);
  }
  return send_of_rank(buf, count, datatype, dest, tag, comm);
}

int PMPI_Send_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                MPI_Comm comm) {
  return send("MPI_Send_c", buf, count, datatype, dest, tag, comm);
}

int PMPI_Isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return isend_in_process(const_cast<void*>(buf), count, datatype, dest, tag, comm, request);
}

int PMPI_Isend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm, MPI_Request* request) {
  return isend_c_in_process(const_cast<void*>(buf), count, datatype, dest, tag, comm, request);
}

int PMPI_Send_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Request* request) {
  return enter_send_init("MPI_Send_init", MessageMode::standard,
                         {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Send_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request) {
  return enter_send_init("MPI_Send_init_c", MessageMode::standard,
                         {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Ssend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
               MPI_Comm comm) {
  return enter_send("MPI_Ssend", MessageMode::synchronous,
                    {const_cast<void*>(buf), count, datatype, dest, tag}, comm);
}

int PMPI_Ssend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm) {
  return enter_send("MPI_Ssend_c", MessageMode::synchronous,
                    {const_cast<void*>(buf), count, datatype, dest, tag}, comm);
}

int PMPI_Issend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request* request) {
  return enter_isend("MPI_Issend", MessageMode::synchronous,
                     {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Issend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                  MPI_Comm comm, MPI_Request* request) {
  return enter_isend("MPI_Issend_c", MessageMode::synchronous,
                     {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Ssend_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                    MPI_Comm comm, MPI_Request* request) {
  return enter_send_init("MPI_Ssend_init", MessageMode::synchronous,
                         {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Ssend_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                      MPI_Comm comm, MPI_Request* request) {
  return enter_send_init("MPI_Ssend_init_c", MessageMode::synchronous,
                         {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Rsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
               MPI_Comm comm) {
  return enter_send("MPI_Rsend", MessageMode::ready,
                    {const_cast<void*>(buf), count, datatype, dest, tag}, comm);
}

int PMPI_Rsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm) {
  return enter_send("MPI_Rsend_c", MessageMode::ready,
                    {const_cast<void*>(buf), count, datatype, dest, tag}, comm);
}

int PMPI_Irsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request* request) {
  return enter_isend("MPI_Irsend", MessageMode::ready,
                     {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Irsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                  MPI_Comm comm, MPI_Request* request) {
  return enter_isend("MPI_Irsend_c", MessageMode::ready,
                     {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Rsend_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                    MPI_Comm comm, MPI_Request* request) {
  return enter_send_init("MPI_Rsend_init", MessageMode::ready,
                         {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Rsend_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                      MPI_Comm comm, MPI_Request* request) {
  return enter_send_init("MPI_Rsend_init_c", MessageMode::ready,
                         {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Bsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
               MPI_Comm comm) {
  return enter_send("MPI_Bsend", MessageMode::buffered,
                    {const_cast<void*>(buf), count, datatype, dest, tag}, comm);
}

int PMPI_Bsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm) {
  return enter_send("MPI_Bsend_c", MessageMode::buffered,
                    {const_cast<void*>(buf), count, datatype, dest, tag}, comm);
}

int PMPI_Ibsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request* request) {
  return enter_isend("MPI_Ibsend", MessageMode::buffered,
                     {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Ibsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                  MPI_Comm comm, MPI_Request* request) {
  return enter_isend("MPI_Ibsend_c", MessageMode::buffered,
                     {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Bsend_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                    MPI_Comm comm, MPI_Request* request) {
  return enter_send_init("MPI_Bsend_init", MessageMode::buffered,
                         {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

int PMPI_Bsend_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                      MPI_Comm comm, MPI_Request* request) {
  return enter_send_init("MPI_Bsend_init_c", MessageMode::buffered,
                         {const_cast<void*>(buf), count, datatype, dest, tag}, comm, request);
}

#if defined(__x86_64__)

struct Received {
  long result;
  std::uintptr_t place;  // Where the call was that the processor takes this one for.
};

// `place`: where MPI_Recv was called.
[[gnu::visibility("hidden"), gnu::used]] Received sterna_mpi_receive(
    void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
    MPI_Status* status, std::uintptr_t place) noexcept {
  const int result = receive("MPI_Recv", buf, count, datatype, source, tag, comm, status, place);
  return {result, place};
}

// A processor predicts a return by the last call that has not returned: here, after a switch, that
// of the rank that has left. If its call was at the same place as ours (all ranks run the same
// loop), the return is right. Else it would cost as much as a sixth of the message; so it is a
// jump, which is predicted by what happened before.
[[gnu::naked]] int PMPI_Recv([[maybe_unused]] void* buf, [[maybe_unused]] int count,
                             [[maybe_unused]] MPI_Datatype datatype, [[maybe_unused]] int source,
                             [[maybe_unused]] int tag, [[maybe_unused]] MPI_Comm comm,
                             [[maybe_unused]] MPI_Status* status) {
  asm("movq _ZN6sterna6memory11thread_slotE@gottpoff(%rip), %rax\n\t"
      "cmpq $0, %fs:(%rax)\n\t"
      "je sterna_mpi_receive_in_process\n\t"
      "subq $8, %rsp\n\t"  // So that the stack is aligned at the call.
      ".cfi_adjust_cfa_offset 8\n\t"
      "pushq 8(%rsp)\n\t"  // Our return address.
      ".cfi_adjust_cfa_offset 8\n\t"
      "pushq 24(%rsp)\n\t"  // The status.
      ".cfi_adjust_cfa_offset 8\n\t"
      "call sterna_mpi_receive\n\t"
      "addq $24, %rsp\n\t"
      ".cfi_adjust_cfa_offset -24\n\t"
      "cmpq %rdx, (%rsp)\n\t"
      "jne 1f\n\t"
      "ret\n"
      "1:\n\t"
      "popq %rcx\n\t"
      ".cfi_adjust_cfa_offset -8\n\t"
      "jmp *%rcx");
}

#else

int PMPI_Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Status* status) {
  std::uintptr_t place = 0;
  return receive("MPI_Recv", buf, count, datatype, source, tag, comm, status, place);
}

#endif

int PMPI_Recv_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                MPI_Comm comm, MPI_Status* status) {
  std::uintptr_t place = 0;
  return receive("MPI_Recv_c", buf, count, datatype, source, tag, comm, status, place);
}

int PMPI_Irecv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return ireceive_in_process(buf, count, datatype, source, tag, comm, request);
}

int PMPI_Irecv_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                 MPI_Comm comm, MPI_Request* request) {
  return ireceive_c_in_process(buf, count, datatype, source, tag, comm, request);
}

int PMPI_Recv_init(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  return enter_receive_init("MPI_Recv_init", {buf, count, datatype, source, tag}, comm, request);
}

int PMPI_Recv_init_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                     MPI_Comm comm, MPI_Request* request) {
  return enter_receive_init("MPI_Recv_init_c", {buf, count, datatype, source, tag}, comm, request);
}

int PMPI_Mrecv(void* buf, int count, MPI_Datatype datatype, MPI_Message* message,
               MPI_Status* status) {
  return enter_mreceive("MPI_Mrecv", {buf, count, datatype, 0, 0}, message, status);
}

int PMPI_Mrecv_c(void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Message* message,
                 MPI_Status* status) {
  return enter_mreceive("MPI_Mrecv_c", {buf, count, datatype, 0, 0}, message, status);
}

int PMPI_Imrecv(void* buf, int count, MPI_Datatype datatype, MPI_Message* message,
                MPI_Request* request) {
  return enter_imreceive("MPI_Imrecv", {buf, count, datatype, 0, 0}, message, request);
}

int PMPI_Imrecv_c(void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Message* message,
                  MPI_Request* request) {
  return enter_imreceive("MPI_Imrecv_c", {buf, count, datatype, 0, 0}, message, request);
}

int PMPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                  void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                  MPI_Comm comm, MPI_Status* status) {
  return enter_exchange("MPI_Sendrecv",
                        {const_cast<void*>(sendbuf), sendcount, sendtype, dest, sendtag},
                        {recvbuf, recvcount, recvtype, source, recvtag}, comm, status);
}

int PMPI_Sendrecv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                    int sendtag, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                    int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  return enter_exchange("MPI_Sendrecv_c",
                        {const_cast<void*>(sendbuf), sendcount, sendtype, dest, sendtag},
                        {recvbuf, recvcount, recvtype, source, recvtag}, comm, status);
}

int PMPI_Isendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                   void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                   MPI_Comm comm, MPI_Request* request) {
  return enter_iexchange("MPI_Isendrecv",
                         {const_cast<void*>(sendbuf), sendcount, sendtype, dest, sendtag},
                         {recvbuf, recvcount, recvtype, source, recvtag}, comm, request);
}

int PMPI_Isendrecv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                     int sendtag, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                     int source, int recvtag, MPI_Comm comm, MPI_Request* request) {
  return enter_iexchange("MPI_Isendrecv_c",
                         {const_cast<void*>(sendbuf), sendcount, sendtype, dest, sendtag},
                         {recvbuf, recvcount, recvtype, source, recvtag}, comm, request);
}

int PMPI_Sendrecv_replace(void* buf, int count, MPI_Datatype datatype, int dest, int sendtag,
                          int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  return enter_exchange_replace("MPI_Sendrecv_replace", {buf, count, datatype, dest, sendtag},
                                source, recvtag, comm, status);
}

int PMPI_Sendrecv_replace_c(void* buf, MPI_Count count, MPI_Datatype datatype, int dest,
                            int sendtag, int source, int recvtag, MPI_Comm comm,
                            MPI_Status* status) {
  return enter_exchange_replace("MPI_Sendrecv_replace_c", {buf, count, datatype, dest, sendtag},
                                source, recvtag, comm, status);
}

int PMPI_Isendrecv_replace(void* buf, int count, MPI_Datatype datatype, int dest, int sendtag,
                           int source, int recvtag, MPI_Comm comm, MPI_Request* request) {
  return enter_iexchange_replace("MPI_Isendrecv_replace", {buf, count, datatype, dest, sendtag},
                                 source, recvtag, comm, request);
}

int PMPI_Isendrecv_replace_c(void* buf, MPI_Count count, MPI_Datatype datatype, int dest,
                             int sendtag, int source, int recvtag, MPI_Comm comm,
                             MPI_Request* request) {
  return enter_iexchange_replace("MPI_Isendrecv_replace_c", {buf, count, datatype, dest, sendtag},
                                 source, recvtag, comm, request);
}

}  // extern "C"
}  // namespace sterna::mpi
