// Packing by the program itself: MPI_Pack and its family. Packed data is the plain stream of bytes,
// for all nodes of a job are of one kind.
#include <climits>
#include <cstring>
#include <type_traits>

#include <mpi.h>

#include "mpi/api/entry.h"
#include "mpi/comm/comm.h"
#include "mpi/datatype/external.h"

namespace {

using namespace sterna::mpi;

/// Checks what all of the family are given. MPI_SUCCESS, or what was reported.
int check_typed(const Call& call, MPI_Count count, MPI_Datatype handle) noexcept {
  if (count < 0) {
    return call.fail(MPI_ERR_COUNT, "the count is negative");
  }
  const Datatype* type = find_datatype(handle);
  if (type == nullptr) {
    return call.fail_plain(MPI_ERR_TYPE);
  }
  if (!type->is_committed) {
    return call.fail(MPI_ERR_TYPE, "the datatype is not committed");
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count, type->bytes, &bytes)) {
    return call.fail(MPI_ERR_COUNT, "so many elements are more bytes than there are numbers");
  }
  return MPI_SUCCESS;
}

/// A packed buffer: its size, and the position to go on from.
struct Packed {
  MPI_Count bytes;
  MPI_Count position;
};

int check_room(const Call& call, const Packed& packed, std::uint64_t needed) noexcept {
  if (packed.bytes < 0 || packed.position < 0 || packed.position > packed.bytes) {
    return call.fail(MPI_ERR_ARG, "the position lies outside of the packed buffer");
  }
  if (needed > static_cast<std::uint64_t>(packed.bytes - packed.position)) {
    return call.fail(MPI_ERR_TRUNCATE, "%llu bytes do not fit behind position %lld of %lld bytes",
                     static_cast<unsigned long long>(needed),
                     static_cast<long long>(packed.position), static_cast<long long>(packed.bytes));
  }
  return MPI_SUCCESS;
}

template <typename Body>
int enter_comm(const char* function, MPI_Comm handle, Body body) noexcept {
  return enter(function, [&](const Call& call) {
    Comm* comm = find_comm(call.state, handle);
    return comm == nullptr ? call.fail_plain(MPI_ERR_COMM)
                           : body(Call{call.state, call.function, comm});
  });
}

template <typename Count>
int pack_native(const void* inbuf, Count incount, MPI_Datatype datatype, void* outbuf,
                Count outsize, Count* position, MPI_Comm comm) noexcept {
  return enter_comm("MPI_Pack", comm, [&](const Call& call) {
    if (const int error = check_typed(call, incount, datatype); error != MPI_SUCCESS) {
      return error;
    }
    const TypedBuffer from = TypedBuffer::of(inbuf, incount, *find_datatype(datatype));
    const Packed packed{outsize, *position};
    if (const int error = check_room(call, packed, from.bytes()); error != MPI_SUCCESS) {
      return error;
    }
    pack(from, 0, {static_cast<std::byte*>(outbuf) + *position, from.bytes()});
    *position += static_cast<Count>(from.bytes());
    return int{MPI_SUCCESS};
  });
}

template <typename Count>
int unpack_native(const void* inbuf, Count insize, Count* position, void* outbuf, Count outcount,
                  MPI_Datatype datatype, MPI_Comm comm) noexcept {
  return enter_comm("MPI_Unpack", comm, [&](const Call& call) {
    if (const int error = check_typed(call, outcount, datatype); error != MPI_SUCCESS) {
      return error;
    }
    const TypedBuffer into = TypedBuffer::of(outbuf, outcount, *find_datatype(datatype));
    const Packed packed{insize, *position};
    if (const int error = check_room(call, packed, into.bytes()); error != MPI_SUCCESS) {
      return error;
    }
    unpack(into, 0, {static_cast<const std::byte*>(inbuf) + *position, into.bytes()});
    *position += static_cast<Count>(into.bytes());
    return int{MPI_SUCCESS};
  });
}

template <typename Count>
int pack_size(Count incount, MPI_Datatype datatype, MPI_Comm comm, Count* size) noexcept {
  return enter_comm("MPI_Pack_size", comm, [&](const Call& call) {
    if (const int error = check_typed(call, incount, datatype); error != MPI_SUCCESS) {
      return error;
    }
    const MPI_Count bytes = MPI_Count{incount} * find_datatype(datatype)->bytes;
    *size = std::is_same_v<Count, int> && bytes > INT_MAX ? static_cast<Count>(MPI_UNDEFINED)
                                                          : static_cast<Count>(bytes);
    return int{MPI_SUCCESS};
  });
}

/// The representation must be "external32", and the data must not be more than can be counted.
int check_external(const Call& call, const char* datarep, MPI_Count count, MPI_Datatype datatype,
                   std::uint64_t& bytes) noexcept {
  if (datarep == nullptr || std::strcmp(datarep, "external32") != 0) {
    return call.fail(MPI_ERR_ARG, "the only representation is \"external32\"");
  }
  if (const int error = check_typed(call, count, datatype); error != MPI_SUCCESS) {
    return error;
  }
  // Never more than the bytes in memory, which check_typed has counted.
  bytes = static_cast<std::uint64_t>(count) * external_bytes(*find_datatype(datatype));
  return MPI_SUCCESS;
}

int pack_portable(const char* datarep, const TypedBuffer& from, MPI_Datatype datatype, void* outbuf,
                  MPI_Count outsize, MPI_Count* position) noexcept {
  return enter("MPI_Pack_external", [&](const Call& call) {
    std::uint64_t bytes = 0;
    if (const int error =
            check_external(call, datarep, static_cast<MPI_Count>(from.count), datatype, bytes);
        error != MPI_SUCCESS) {
      return error;
    }
    if (const int error = check_room(call, {outsize, *position}, bytes); error != MPI_SUCCESS) {
      return error;
    }
    pack_external({from.address, from.count, find_datatype(datatype)},
                  static_cast<std::byte*>(outbuf) + *position);
    *position += static_cast<MPI_Count>(bytes);
    return int{MPI_SUCCESS};
  });
}

int unpack_portable(const char* datarep, const void* inbuf, MPI_Count insize, MPI_Count* position,
                    const TypedBuffer& into, MPI_Datatype datatype) noexcept {
  return enter("MPI_Unpack_external", [&](const Call& call) {
    std::uint64_t bytes = 0;
    if (const int error =
            check_external(call, datarep, static_cast<MPI_Count>(into.count), datatype, bytes);
        error != MPI_SUCCESS) {
      return error;
    }
    if (const int error = check_room(call, {insize, *position}, bytes); error != MPI_SUCCESS) {
      return error;
    }
    unpack_external({into.address, into.count, find_datatype(datatype)},
                    static_cast<const std::byte*>(inbuf) + *position);
    *position += static_cast<MPI_Count>(bytes);
    return int{MPI_SUCCESS};
  });
}

/// A buffer whose type is looked up after the checks.
TypedBuffer untyped(const void* address, MPI_Count count) noexcept {
  return {static_cast<std::byte*>(const_cast<void*>(address)), static_cast<std::uint64_t>(count),
          nullptr};
}

int portable_size(const char* datarep, MPI_Count incount, MPI_Datatype datatype,
                  MPI_Count* size) noexcept {
  return enter("MPI_Pack_external_size", [&](const Call& call) {
    std::uint64_t bytes = 0;
    const int error = check_external(call, datarep, incount, datatype, bytes);
    if (error == MPI_SUCCESS) {
      *size = static_cast<MPI_Count>(bytes);
    }
    return error;
  });
}

static_assert(std::is_same_v<MPI_Aint, MPI_Count>, "one function serves both forms");

}  // namespace

int PMPI_Pack(const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize,
              int* position, MPI_Comm comm) {
  return pack_native(inbuf, incount, datatype, outbuf, outsize, position, comm);
}
int PMPI_Pack_c(const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf,
                MPI_Count outsize, MPI_Count* position, MPI_Comm comm) {
  return pack_native(inbuf, incount, datatype, outbuf, outsize, position, comm);
}

int PMPI_Unpack(const void* inbuf, int insize, int* position, void* outbuf, int outcount,
                MPI_Datatype datatype, MPI_Comm comm) {
  return unpack_native(inbuf, insize, position, outbuf, outcount, datatype, comm);
}
int PMPI_Unpack_c(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
                  MPI_Count outcount, MPI_Datatype datatype, MPI_Comm comm) {
  return unpack_native(inbuf, insize, position, outbuf, outcount, datatype, comm);
}

int PMPI_Pack_size(int incount, MPI_Datatype datatype, MPI_Comm comm, int* size) {
  return pack_size(incount, datatype, comm, size);
}
int PMPI_Pack_size_c(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count* size) {
  return pack_size(incount, datatype, comm, size);
}

int PMPI_Pack_external(const char* datarep, const void* inbuf, int incount, MPI_Datatype datatype,
                       void* outbuf, MPI_Aint outsize, MPI_Aint* position) {
  return pack_portable(datarep, untyped(inbuf, incount), datatype, outbuf, outsize, position);
}
int PMPI_Pack_external_c(const char* datarep, const void* inbuf, MPI_Count incount,
                         MPI_Datatype datatype, void* outbuf, MPI_Count outsize,
                         MPI_Count* position) {
  return pack_portable(datarep, untyped(inbuf, incount), datatype, outbuf, outsize, position);
}

int PMPI_Unpack_external(const char datarep[], const void* inbuf, MPI_Aint insize,
                         MPI_Aint* position, void* outbuf, int outcount, MPI_Datatype datatype) {
  return unpack_portable(datarep, inbuf, insize, position, untyped(outbuf, outcount), datatype);
}
int PMPI_Unpack_external_c(const char datarep[], const void* inbuf, MPI_Count insize,
                           MPI_Count* position, void* outbuf, MPI_Count outcount,
                           MPI_Datatype datatype) {
  return unpack_portable(datarep, inbuf, insize, position, untyped(outbuf, outcount), datatype);
}

int PMPI_Pack_external_size(const char* datarep, int incount, MPI_Datatype datatype,
                            MPI_Aint* size) {
  return portable_size(datarep, incount, datatype, size);
}
int PMPI_Pack_external_size_c(const char* datarep, MPI_Count incount, MPI_Datatype datatype,
                              MPI_Count* size) {
  return portable_size(datarep, incount, datatype, size);
}
