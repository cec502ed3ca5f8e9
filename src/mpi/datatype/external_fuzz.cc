// Bytes from outside into datatypes: the input describes nested types, then is their external32
// data and the bytes of a message. Nothing may be read or written but the buffer of the type.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/datatype/datatype.h"
#include "mpi/datatype/external.h"
#include "mpi/datatype/recipe.h"

using namespace sterna;
using namespace sterna::mpi;

namespace {

struct Input {
  const std::uint8_t* data;
  std::size_t size;

  std::int64_t take(std::int64_t low, std::int64_t high) {
    if (size == 0) {
      return low;
    }
    const std::int64_t value = *data;
    ++data;
    --size;
    return low + value % (high - low + 1);
  }
};

MPI_Datatype wrap(Input& input, MPI_Datatype child) {
  const int combiners[] = {MPI_COMBINER_CONTIGUOUS, MPI_COMBINER_VECTOR,   MPI_COMBINER_HVECTOR,
                           MPI_COMBINER_HINDEXED,   MPI_COMBINER_SUBARRAY, MPI_COMBINER_DARRAY,
                           MPI_COMBINER_RESIZED};
  const int combiner = combiners[input.take(0, 6)];
  std::vector<std::int64_t> values;
  switch (combiner) {
    case MPI_COMBINER_CONTIGUOUS:
      values = {input.take(-1, 5)};
      break;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
      values = {input.take(-1, 4), input.take(-1, 4), input.take(-20, 40)};
      break;
    case MPI_COMBINER_HINDEXED:
      values = {2, input.take(-1, 3), input.take(-1, 3), input.take(-50, 50), input.take(-50, 50)};
      break;
    case MPI_COMBINER_SUBARRAY:
      values = {1, input.take(0, 6), input.take(0, 6), input.take(0, 6), MPI_ORDER_C};
      break;
    case MPI_COMBINER_DARRAY:
      values = {input.take(1, 3), input.take(0, 2),   1,
                input.take(0, 9), input.take(15, 19), input.take(1, 4),
                input.take(1, 3), MPI_ORDER_FORTRAN};
      break;
    default:
      values = {input.take(-20, 20), input.take(-20, 60)};
      break;
  }
  Datatype* made = nullptr;
  if (create_datatype(*memory::Heap::process(), {combiner, false, values, {&child, 1}}, made) !=
      MPI_SUCCESS) {
    return child;
  }
  release_datatype(*memory::Heap::process(), child);
  return reinterpret_cast<MPI_Datatype>(made);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input{data, size};
  MPI_Datatype handle =
      predefined_handle(static_cast<std::size_t>(input.take(1, kPredefinedCount - 1)));
  for (std::int64_t depth = input.take(0, 4); depth > 0; --depth) {
    handle = wrap(input, handle);
  }
  const Datatype& type = *find_datatype(handle);
  if (type.bytes > 0 && type.true_extent < 1 << 20) {
    std::vector<std::byte> memory(static_cast<std::size_t>(type.true_extent));
    // The heap's tools see every byte outside of the type's own range.
    const TypedBuffer buffer{
        reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(memory.data()) -
                                     static_cast<std::uintptr_t>(type.true_lb)),
        1, &type};
    std::vector<std::byte> stream(external_bytes(type));
    std::copy_n(reinterpret_cast<const std::byte*>(input.data), std::min(input.size, stream.size()),
                stream.begin());
    unpack_external(buffer, stream.data());
    pack_external(buffer, stream.data());
    unpack(buffer, static_cast<std::uint64_t>(input.take(0, 255)),
           {reinterpret_cast<const std::byte*>(input.data), input.size});
  }
  release_datatype(*memory::Heap::process(), handle);
  return 0;
}
