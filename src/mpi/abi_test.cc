// The facts of the standard ABI that programs compiled elsewhere rely on: layouts, values of
// handles and of constants. Written from the standard, not from the header. Exported symbols:
// generate.py.
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <gtest/gtest.h>
#include <mpi.h>

#include "mpi/api/implemented.h"

namespace sterna::mpi {
namespace {

static_assert(sizeof(MPI_Status) == 32 && alignof(MPI_Status) == 4);
static_assert(offsetof(MPI_Status, MPI_SOURCE) == 0 && offsetof(MPI_Status, MPI_TAG) == 4);
static_assert(offsetof(MPI_Status, MPI_ERROR) == 8 && offsetof(MPI_Status, MPI_internal) == 12);
static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Offset) == 8 && sizeof(MPI_Count) == 8);
static_assert(std::is_pointer_v<MPI_Comm> && sizeof(MPI_Datatype) == sizeof(void*));
static_assert(MPI_VERSION == 5 && MPI_SUBVERSION == 0 && MPI_ABI_VERSION == 1);
static_assert(MPI_ANY_SOURCE == -1 && MPI_ANY_TAG == -2 && MPI_PROC_NULL == -3);
static_assert(MPI_ROOT == -4 && MPI_UNDEFINED == -32766);
static_assert(MPI_SUCCESS == 0 && MPI_ERR_TRUNCATE == 15 && MPI_ERR_IN_STATUS == 19);
static_assert(MPI_ERR_UNSUPPORTED_OPERATION == 55 && MPI_ERR_ABI == 62);
static_assert(MPI_ERR_LASTCODE == 0x3fff && MPI_T_ERR_NOT_SUPPORTED == 1004);
static_assert(MPI_THREAD_SINGLE == 0 && MPI_THREAD_FUNNELED == 1024);
static_assert(MPI_THREAD_SERIALIZED == 2048 && MPI_THREAD_MULTIPLE == 4096);
static_assert(MPI_MAX_ERROR_STRING == 512 && MPI_MAX_LIBRARY_VERSION_STRING == 8192);
static_assert(MPI_MAX_OBJECT_NAME == 128 && MPI_MAX_INFO_KEY == 256 && MPI_MAX_INFO_VAL == 1024);
static_assert(MPI_BSEND_OVERHEAD == 512 && MPI_TAG_UB == 501 && MPI_WIN_BASE == 601);
static_assert(MPI_COMBINER_NAMED == 101 && MPI_COMBINER_VALUE_INDEX == 117);
static_assert(MPI_IDENT == 201 && MPI_UNEQUAL == 204 && MPI_CART == 211);
static_assert(MPI_COMM_TYPE_SHARED == 221 && MPI_ORDER_C == 12 && MPI_ORDER_FORTRAN == 15);

std::uintptr_t value(const void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

TEST(Abi, HandlesHaveTheValuesOfTheStandard) {
  EXPECT_EQ(value(MPI_OP_NULL), 0x20U);
  EXPECT_EQ(value(MPI_SUM), 0x21U);
  EXPECT_EQ(value(MPI_NO_OP), 0x3dU);
  EXPECT_EQ(value(MPI_COMM_NULL), 0x100U);
  EXPECT_EQ(value(MPI_COMM_WORLD), 0x101U);
  EXPECT_EQ(value(MPI_COMM_SELF), 0x102U);
  EXPECT_EQ(value(MPI_GROUP_EMPTY), 0x109U);
  EXPECT_EQ(value(MPI_INFO_ENV), 0x131U);
  EXPECT_EQ(value(MPI_ERRORS_RETURN), 0x143U);
  EXPECT_EQ(value(MPI_REQUEST_NULL), 0x180U);
  EXPECT_EQ(value(MPI_DATATYPE_NULL), 0x200U);
  EXPECT_EQ(value(MPI_INT), 0x209U);
  EXPECT_EQ(value(MPI_DOUBLE), 0x214U);
  EXPECT_EQ(value(MPI_BYTE), 0x247U);
  EXPECT_EQ(value(MPI_COMPLEX32), 0x2ebU);
  EXPECT_EQ(value(MPI_IN_PLACE), 1U);
  EXPECT_EQ(value(MPI_UNWEIGHTED), 10U);
}

TEST(Abi, TheTableHasEveryFunctionAndSaysWhatWorks) {
  EXPECT_EQ(functions().size(), 662U);
  bool has_size = false;
  for (const FunctionEntry& entry : functions()) {
    has_size |= std::string_view{entry.name} == "MPI_Type_size_c" && entry.is_implemented;
    if (std::string_view{entry.name} == "MPI_Win_create_dynamic") {
      EXPECT_FALSE(entry.is_implemented);
    }
  }
  EXPECT_TRUE(has_size);
}

}  // namespace
}  // namespace sterna::mpi
