// Every predefined operation on every predefined type against long-hand arithmetic on single
// values, and the table of what is legal against the standard's (MPI-5.0 §6.9.2), written out here.
#include "mpi/op/op.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "mpi/op/numbers.h"

namespace sterna::mpi {
namespace {

const MPI_Op kArithmetic[] = {MPI_SUM, MPI_PROD};
const MPI_Op kOrder[] = {MPI_MIN, MPI_MAX};
const MPI_Op kBits[] = {MPI_BAND, MPI_BOR, MPI_BXOR};
const MPI_Op kTruths[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
const MPI_Op kPlaces[] = {MPI_MINLOC, MPI_MAXLOC};

struct Legal {
  bool arithmetic, order, bits, truths, places;
};

void expect_legal(const std::vector<MPI_Datatype>& types, const Legal& legal) {
  for (const MPI_Datatype type : types) {
    SCOPED_TRACE(find_datatype(type)->name);
    for (const MPI_Op op : kArithmetic) {
      EXPECT_EQ(check_reduction(op, type), legal.arithmetic ? MPI_SUCCESS : MPI_ERR_OP);
    }
    for (const MPI_Op op : kOrder) {
      EXPECT_EQ(check_reduction(op, type), legal.order ? MPI_SUCCESS : MPI_ERR_OP);
    }
    for (const MPI_Op op : kBits) {
      EXPECT_EQ(check_reduction(op, type), legal.bits ? MPI_SUCCESS : MPI_ERR_OP);
    }
    for (const MPI_Op op : kTruths) {
      EXPECT_EQ(check_reduction(op, type), legal.truths ? MPI_SUCCESS : MPI_ERR_OP);
    }
    for (const MPI_Op op : kPlaces) {
      EXPECT_EQ(check_reduction(op, type), legal.places ? MPI_SUCCESS : MPI_ERR_OP);
    }
  }
}

TEST(Op, IsLegalOnTheTypesOfTheStandard) {
  expect_legal(
      {MPI_INT, MPI_LONG, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
       MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_INT8_T,
       MPI_UINT64_T, MPI_INTEGER, MPI_INTEGER16, MPI_AINT, MPI_OFFSET, MPI_COUNT},
      {true, true, true, true, false});
  expect_legal({MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL2,
                MPI_REAL16},
               {true, true, false, false, false});
  expect_legal({MPI_LOGICAL, MPI_C_BOOL, MPI_CXX_BOOL, MPI_LOGICAL8, MPI_LOGICAL16},
               {false, false, false, true, false});
  expect_legal({MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_COMPLEX32,
                MPI_CXX_LONG_DOUBLE_COMPLEX, MPI_COMPLEX4},
               {true, false, false, false, false});
  expect_legal({MPI_BYTE}, {false, false, true, false, false});
  expect_legal({MPI_CHAR, MPI_WCHAR, MPI_CHARACTER, MPI_PACKED},
               {false, false, false, false, false});
  expect_legal({MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT,
                MPI_LONG_DOUBLE_INT, MPI_2REAL, MPI_2DOUBLE_PRECISION, MPI_2INTEGER},
               {false, false, false, false, true});
  EXPECT_EQ(check_reduction(MPI_OP_NULL, MPI_INT), MPI_ERR_OP);
  EXPECT_EQ(check_reduction(MPI_SUM, MPI_DATATYPE_NULL), MPI_ERR_TYPE);
  EXPECT_EQ(check_reduction(MPI_NO_OP, MPI_CHAR), MPI_SUCCESS);
}

template <typename T>
T reduced(MPI_Op op, MPI_Datatype type, T in, T inout) {
  std::vector<T> from(37, in);
  std::vector<T> into(37, inout);
  reduce(op, type, from.data(), into.data(), 37);
  for (const T& each : into) {
    EXPECT_EQ(std::memcmp(&each, &into[0], sizeof(T)), 0);
  }
  return into[0];
}

TEST(Op, ComputesIntegers) {
  EXPECT_EQ(reduced(MPI_SUM, MPI_INT, 5, -7), -2);
  EXPECT_EQ(reduced(MPI_SUM, MPI_INT, 0x7fff'ffff, 1), -0x7fff'ffff - 1);  // Wraps.
  EXPECT_EQ(reduced<std::uint16_t>(MPI_PROD, MPI_UNSIGNED_SHORT, 0xffff, 0xffff), 1);
  EXPECT_EQ(reduced<std::int8_t>(MPI_MIN, MPI_INT8_T, -3, 4), -3);
  EXPECT_EQ(reduced<std::uint64_t>(MPI_MAX, MPI_UINT64_T, ~0ULL, 4), ~0ULL);
  EXPECT_EQ(reduced(MPI_BAND, MPI_INT, 12, 10), 8);
  EXPECT_EQ(reduced(MPI_BOR, MPI_INT, 12, 10), 14);
  EXPECT_EQ(reduced(MPI_BXOR, MPI_INT, 12, 10), 6);
  EXPECT_EQ(reduced(MPI_LAND, MPI_INT, 12, 10), 1);
  EXPECT_EQ(reduced(MPI_LOR, MPI_INT, 0, 0), 0);
  EXPECT_EQ(reduced(MPI_LXOR, MPI_INT, 12, 10), 0);
  EXPECT_EQ(reduced(MPI_REPLACE, MPI_INT, 12, 10), 12);
  EXPECT_EQ(reduced(MPI_NO_OP, MPI_INT, 12, 10), 10);
}

TEST(Op, ComputesRealAndComplexNumbers) {
  EXPECT_EQ(reduced(MPI_SUM, MPI_DOUBLE, 0.5, 0.25), 0.75);
  EXPECT_EQ(reduced(MPI_MAX, MPI_FLOAT, 0.5F, -0.25F), 0.5F);
  const auto product = reduced<Complex<double>>(MPI_PROD, MPI_C_DOUBLE_COMPLEX, {1, 2}, {3, -1});
  EXPECT_EQ(product.real, 5);
  EXPECT_EQ(product.imaginary, 5);
  EXPECT_EQ(reduced(MPI_SUM, MPI_REAL2, Half::of(1.5F), Half::of(2.25F)).value(), 3.75F);
}

TEST(Op, FindsTheLowerIndexOfEqualValues) {
  using Place = Pair<double, int>;
  EXPECT_EQ(reduced<Place>(MPI_MINLOC, MPI_DOUBLE_INT, {1.0, 9}, {1.0, 4}).index, 4);
  EXPECT_EQ(reduced<Place>(MPI_MAXLOC, MPI_DOUBLE_INT, {1.0, 3}, {1.0, 4}).index, 3);
  EXPECT_EQ(reduced<Place>(MPI_MAXLOC, MPI_DOUBLE_INT, {2.0, 9}, {1.0, 4}).index, 9);
}

TEST(Op, HalvesConvertBothWays) {
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    EXPECT_EQ(Half::of(half.value()).bits, bits);
    EXPECT_EQ(Half::of(-half.value()).bits, bits | 0x8000U);
  }
  EXPECT_EQ(Half::of(65519.0F).bits, 0x7bff);
  EXPECT_EQ(Half::of(65520.0F).bits, 0x7c00);
  EXPECT_EQ(Half::of(1.0F + 0x1p-11F).bits, 0x3c00);  // Half way: to even.
  EXPECT_EQ(Half::of(1.0F + 3 * 0x1p-11F).bits, 0x3c02);
}

}  // namespace
}  // namespace sterna::mpi
