// What the entry points of point-to-point messages do, in both sizes of counts.
#pragma once

#include <mpi.h>

#include "mpi/p2p/message.h"

namespace sterna::mpi {

int enter_send(const char* function, MessageMode mode, const Side& side, MPI_Comm comm) noexcept;
int enter_isend(const char* function, MessageMode mode, const Side& side, MPI_Comm comm,
                MPI_Request* request) noexcept;
int enter_send_init(const char* function, MessageMode mode, const Side& side, MPI_Comm comm,
                    MPI_Request* request) noexcept;
int enter_receive(const char* function, const Side& side, MPI_Comm comm,
                  MPI_Status* status) noexcept;
int enter_ireceive(const char* function, const Side& side, MPI_Comm comm,
                   MPI_Request* request) noexcept;
int enter_receive_init(const char* function, const Side& side, MPI_Comm comm,
                       MPI_Request* request) noexcept;
int enter_mreceive(const char* function, const Side& side, MPI_Message* message,
                   MPI_Status* status) noexcept;
int enter_imreceive(const char* function, const Side& side, MPI_Message* message,
                    MPI_Request* request) noexcept;
/// enter_send() and enter_receive() for who has tried the short way.
int enter_send_slowly(const char* function, MessageMode mode, const Side& side,
                      MPI_Comm comm) noexcept;
int enter_receive_slowly(const char* function, const Side& side, MPI_Comm comm,
                         MPI_Status* status) noexcept;
int enter_exchange(const char* function, const Side& send, const Side& receive, MPI_Comm comm,
                   MPI_Status* status) noexcept;
int enter_iexchange(const char* function, const Side& send, const Side& receive, MPI_Comm comm,
                    MPI_Request* request) noexcept;
int enter_exchange_replace(const char* function, const Side& send, int source, int tag,
                           MPI_Comm comm, MPI_Status* status) noexcept;
int enter_iexchange_replace(const char* function, const Side& send, int source, int tag,
                            MPI_Comm comm, MPI_Request* request) noexcept;

/// Ends a receive that is done: status, error, bytes into the program's memory.
int conclude(const Call& call, const net::Envelope& envelope, net::Fault fault, Bytes& bytes,
             MPI_Status* status) noexcept;

}  // namespace sterna::mpi
