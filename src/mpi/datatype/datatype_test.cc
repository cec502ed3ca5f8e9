// Random nested datatypes, made by every constructor, against the naive list of their elements:
// bounds, packing and unpacking from any byte, runs, elements, external32. Then the corner cases by
// hand.
#include "mpi/datatype/datatype.h"

#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "mpi/datatype/datatype_checks.h"
#include "mpi/datatype/external.h"
#include "mpi/datatype/recipe.h"

namespace sterna::mpi {
namespace {

TEST(Datatype, RandomTypesBehaveAsTheirTypeMaps) {
  const char* given = std::getenv("STERNA_TEST_SEED");
  const auto first =
      given == nullptr ? 1U : static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
  for (std::uint32_t seed = first; seed < first + 1500; ++seed) {
    SCOPED_TRACE("STERNA_TEST_SEED=" + std::to_string(seed));
    Generator generator{seed};
    const Sample sample = generator.draw_type(static_cast<int>(generator.draw(1, 4)));
    if (sample.model.map.size() > 4000) {
      continue;
    }
    expect_all(sample, generator);
    if (testing::Test::HasFailure()) {
      return;
    }
  }
}

int error_of(int combiner, const Values& values, const std::vector<MPI_Datatype>& types) {
  Datatype* made = nullptr;
  const int error = create_datatype(heap(), {combiner, false, values, types}, made);
  if (error == MPI_SUCCESS) {
    release_datatype(heap(), handle_of(made));
  }
  return error;
}

TEST(Datatype, ConstructorsRefuseWhatCannotBe) {
  EXPECT_EQ(error_of(MPI_COMBINER_CONTIGUOUS, {-1}, {MPI_INT}), MPI_ERR_COUNT);
  EXPECT_EQ(error_of(MPI_COMBINER_VECTOR, {1, -1, 1}, {MPI_INT}), MPI_ERR_ARG);
  EXPECT_EQ(error_of(MPI_COMBINER_INDEXED, {1, -1, 0}, {MPI_INT}), MPI_ERR_ARG);
  EXPECT_EQ(error_of(MPI_COMBINER_CONTIGUOUS, {1}, {MPI_DATATYPE_NULL}), MPI_ERR_TYPE);
  EXPECT_EQ(error_of(MPI_COMBINER_CONTIGUOUS, {1}, {MPI_Datatype(MPI_COMM_WORLD)}), MPI_ERR_TYPE);
  EXPECT_EQ(error_of(MPI_COMBINER_SUBARRAY, {1, 4, 3, 2, MPI_ORDER_C}, {MPI_INT}), MPI_ERR_ARG);
  EXPECT_EQ(error_of(MPI_COMBINER_SUBARRAY, {1, 4, 3, 1, 0}, {MPI_INT}), MPI_ERR_ARG);
  EXPECT_EQ(error_of(MPI_COMBINER_DARRAY, {4, 0, 1, 8, MPI_DISTRIBUTE_BLOCK, 1, 4, MPI_ORDER_C},
                     {MPI_INT}),
            MPI_ERR_ARG);
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_EQ(error_of(MPI_COMBINER_CONTIGUOUS, {huge}, {MPI_INT}), MPI_ERR_VALUE_TOO_LARGE);
  EXPECT_EQ(error_of(MPI_COMBINER_VECTOR, {4, 1, huge}, {MPI_INT}), MPI_ERR_VALUE_TOO_LARGE);
}

TEST(Datatype, RegularShapesBecomeOneLoop) {
  std::vector<std::int64_t> values{100, 1};
  for (std::int64_t i = 0; i < 100; ++i) {
    values.push_back(3 * i);
  }
  const MPI_Datatype regular = make(MPI_COMBINER_INDEXED_BLOCK, values, {MPI_DOUBLE});
  EXPECT_EQ(find_datatype(regular)->copies.loop_count, 1U);
  const MPI_Datatype row = make(MPI_COMBINER_VECTOR, {4, 1, 2}, {MPI_INT});
  const MPI_Datatype spaced = make(MPI_COMBINER_RESIZED, {0, 32}, {row});
  const MPI_Datatype rows = make(MPI_COMBINER_CONTIGUOUS, {8}, {spaced});
  EXPECT_EQ(find_datatype(rows)->copies.loop_count, 1U);
  EXPECT_EQ(find_datatype(rows)->copies.loops[0].count, 32U);
  const MPI_Datatype parts =
      make(MPI_COMBINER_STRUCT, {3, 1, 1, 2, 0, 8, 12}, {MPI_DOUBLE, MPI_INT, MPI_SHORT});
  EXPECT_TRUE(find_datatype(parts)->is_dense);
  EXPECT_EQ(find_datatype(parts)->elements.loop_count, 3U);
  for (const MPI_Datatype type : {regular, row, spaced, rows, parts}) {
    release_datatype(heap(), type);
  }
}

TEST(Datatype, DeepNestsOfTypesStayShallowAndAreFreedWithoutRecursion) {
  MPI_Datatype type = make(MPI_COMBINER_CONTIGUOUS, {3}, {MPI_CHAR});
  for (int depth = 0; depth < 20000; ++depth) {
    const MPI_Datatype next = make(MPI_COMBINER_DUP, {}, {type});
    release_datatype(heap(), type);
    type = next;
  }
  EXPECT_EQ(find_datatype(type)->copies.loop_count, 1U);
  release_datatype(heap(), type);
}

TEST(Datatype, BigTypesOfManyReferencesShareTheirRows) {
  std::vector<std::int64_t> irregular{100};
  for (std::int64_t i = 0; i < 100; ++i) {
    irregular.push_back(1);
  }
  for (std::int64_t i = 0; i < 100; ++i) {
    irregular.push_back(i * i);
  }
  const MPI_Datatype inner = make(MPI_COMBINER_INDEXED, irregular, {MPI_INT});
  const MPI_Datatype outer = make(MPI_COMBINER_CONTIGUOUS, {1'000'000}, {inner});
  EXPECT_LE(find_datatype(outer)->copies.loop_count, 110U);
  release_datatype(heap(), inner);
  release_datatype(heap(), outer);
}

TEST(Datatype, External32IsBigEndianIeee) {
  const double number = 1.0;
  std::byte stream[16] = {};
  pack_external(TypedBuffer::of(&number, 1, *find_datatype(MPI_DOUBLE)), stream);
  EXPECT_EQ(stream[0], std::byte{0x3f});
  EXPECT_EQ(stream[1], std::byte{0xf0});
  const long double extended = -2.0L;
  pack_external(TypedBuffer::of(&extended, 1, *find_datatype(MPI_LONG_DOUBLE)), stream);
  EXPECT_EQ(stream[0], std::byte{0xc0});
  EXPECT_EQ(stream[1], std::byte{0x00});
  EXPECT_EQ(stream[15], std::byte{0x00});
  EXPECT_EQ(external_bytes(*find_datatype(MPI_WCHAR)), 2U);
  const long below = -3;
  long back = 0;
  EXPECT_EQ(pack_external(TypedBuffer::of(&below, 1, *find_datatype(MPI_LONG)), stream), 4U);
  EXPECT_EQ(stream[3], std::byte{0xfd});
  unpack_external(TypedBuffer::of(&back, 1, *find_datatype(MPI_LONG)), stream);
  EXPECT_EQ(back, below);
}

TEST(Datatype, BytesOfElementsReverseCountElements) {
  const MPI_Datatype type =
      make(MPI_COMBINER_STRUCT, {3, 2, 1, 3, 0, 16, 24}, {MPI_INT, MPI_DOUBLE, MPI_CHAR});
  for (std::uint64_t elements = 0; elements < 25; ++elements) {
    const std::uint64_t bytes = bytes_of_elements(*find_datatype(type), elements);
    EXPECT_EQ(count_elements(*find_datatype(type), bytes), elements);
  }
  release_datatype(heap(), type);
}

TEST(Datatype, EveryPredefinedHandleIsFoundOnce) {
  for (std::size_t i = 1; i < kPredefinedCount; ++i) {
    EXPECT_EQ(find_datatype(predefined_handle(i)), &kPredefinedTypes[i]);
  }
  EXPECT_EQ(find_datatype(MPI_DATATYPE_NULL), nullptr);
  EXPECT_EQ(find_datatype(nullptr), nullptr);
  EXPECT_EQ(find_datatype(MPI_Datatype(MPI_REQUEST_NULL)), nullptr);
  EXPECT_STREQ(find_datatype(MPI_DOUBLE_INT)->name, "MPI_DOUBLE_INT");
}

}  // namespace
}  // namespace sterna::mpi
