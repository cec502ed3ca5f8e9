// What MPI_Mprobe gives: a message that only MPI_Mrecv gets.
#pragma once

#include <mpi.h>

#include "mpi/comm/comm.h"
#include "mpi/object.h"
#include "net/message.h"

namespace sterna::net {
struct Message;
}

namespace sterna::mpi {

/// Owned by the program until it is received.
struct MatchedMessage final : Object {
  MatchedMessage() noexcept : Object{ObjectKind::message} {}

  net::Message* message = nullptr;
  Comm* comm = nullptr;  // One reference.
};

}  // namespace sterna::mpi
