// The predefined reductions as loops that the compiler can vectorise, and which of them exist.
#include "mpi/op/kernels.h"

#include <array>
#include <cstdint>

#include "mpi/op/numbers.h"

namespace sterna::mpi {
namespace {

template <typename T>
using Wide = typename Wrapping<T>::Type;

struct Sum {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
  }
};
struct Product {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
  }
};
struct Minimum {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return a < b ? a : b;
  }
};
struct Maximum {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return b < a ? a : b;
  }
};
struct BitAnd {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return static_cast<T>(a ^ b);
  }
};
struct LogicalAnd {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return static_cast<T>((a != 0) & (b != 0));
  }
};
struct LogicalOr {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return static_cast<T>((a != 0) | (b != 0));
  }
};
struct LogicalXor {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return static_cast<T>((a != 0) != (b != 0));
  }
};
// Of equal values, the lower index.
struct MinimumPlace {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return a.value < b.value || (a.value == b.value && a.index < b.index) ? a : b;
  }
};
struct MaximumPlace {
  template <typename T>
  static T apply(T a, T b) noexcept {
    return b.value < a.value || (a.value == b.value && a.index < b.index) ? a : b;
  }
};

template <typename Operation, typename T>
void run(const void* in, void* inout, std::uint64_t count) noexcept {
  const auto* const a = static_cast<const T*>(in);
  auto* const b = static_cast<T*>(inout);
  for (std::uint64_t i = 0; i < count; ++i) {
    b[i] = Operation::template apply<T>(a[i], b[i]);
  }
}

/// By the value of the handle, from MPI_SUM on.
constexpr std::uint32_t kFirstOp = 0x21;
constexpr std::uint32_t kOpCount = 0x3d - kFirstOp + 1;
using Row = std::array<Kernel, kOpCount>;

constexpr void set(Row& row, std::uint32_t op, Kernel kernel) noexcept {
  row[op - kFirstOp] = kernel;
}

template <typename T>
constexpr void set_sums(Row& row) noexcept {
  set(row, 0x21, run<Sum, T>);
  set(row, 0x24, run<Product, T>);
}
template <typename T>
constexpr void set_order(Row& row) noexcept {
  set(row, 0x22, run<Minimum, T>);
  set(row, 0x23, run<Maximum, T>);
}
template <typename T>
constexpr void set_bits(Row& row) noexcept {
  set(row, 0x28, run<BitAnd, T>);
  set(row, 0x29, run<BitOr, T>);
  set(row, 0x2a, run<BitXor, T>);
}
template <typename T>
constexpr void set_truths(Row& row) noexcept {
  set(row, 0x30, run<LogicalAnd, T>);
  set(row, 0x31, run<LogicalOr, T>);
  set(row, 0x32, run<LogicalXor, T>);
}

template <typename T>
constexpr Row integers() noexcept {
  Row row{};
  set_sums<T>(row);
  set_order<T>(row);
  set_bits<T>(row);
  set_truths<T>(row);
  return row;
}
template <typename T>
constexpr Row reals() noexcept {
  Row row{};
  set_sums<T>(row);
  set_order<T>(row);
  return row;
}
template <typename T>
constexpr Row complexes() noexcept {
  Row row{};
  set_sums<Complex<T>>(row);
  return row;
}
template <typename T>
constexpr Row truths() noexcept {
  Row row{};
  set_truths<T>(row);
  return row;
}
template <typename T>
constexpr Row bits() noexcept {
  Row row{};
  set_bits<T>(row);
  return row;
}
template <typename Value, typename Index>
constexpr Row pairs() noexcept {
  Row row{};
  set(row, 0x38, run<MinimumPlace, Pair<Value, Index>>);
  set(row, 0x39, run<MaximumPlace, Pair<Value, Index>>);
  return row;
}

constexpr Row row_of(Basic basic) noexcept {
  switch (basic) {
    case Basic::none:
    case Basic::packed:
    case Basic::character:
    case Basic::wide_character:
      return {};
    case Basic::byte:
      return bits<std::uint8_t>();
    case Basic::int8:
      return integers<std::int8_t>();
    case Basic::int16:
      return integers<std::int16_t>();
    case Basic::int32:
      return integers<std::int32_t>();
    case Basic::int64:
    case Basic::signed_long:
    case Basic::address:
    case Basic::offset:
    case Basic::count:
      return integers<std::int64_t>();
    case Basic::int128:
      return integers<Int128>();
    case Basic::uint8:
      return integers<std::uint8_t>();
    case Basic::uint16:
      return integers<std::uint16_t>();
    case Basic::uint32:
      return integers<std::uint32_t>();
    case Basic::uint64:
    case Basic::unsigned_long:
      return integers<std::uint64_t>();
    case Basic::float16:
      return reals<Half>();
    case Basic::float32:
      return reals<float>();
    case Basic::float64:
      return reals<double>();
    case Basic::float_extended:
      return reals<long double>();
    case Basic::float128:
      return reals<Quad>();
    case Basic::complex16:
      return complexes<Half>();
    case Basic::complex32:
      return complexes<float>();
    case Basic::complex64:
      return complexes<double>();
    case Basic::complex_extended:
      return complexes<long double>();
    case Basic::complex128:
      return complexes<Quad>();
    case Basic::bool8:
    case Basic::logical8:
      return truths<std::uint8_t>();
    case Basic::logical16:
      return truths<std::uint16_t>();
    case Basic::logical32:
      return truths<std::uint32_t>();
    case Basic::logical64:
      return truths<std::uint64_t>();
    case Basic::logical128:
      return truths<Int128>();
    case Basic::pair_float_int:
      return pairs<float, int>();
    case Basic::pair_double_int:
      return pairs<double, int>();
    case Basic::pair_long_int:
      return pairs<long, int>();
    case Basic::pair_int_int:
      return pairs<int, int>();
    case Basic::pair_short_int:
      return pairs<short, int>();
    case Basic::pair_extended_int:
      return pairs<long double, int>();
    case Basic::pair_float_float:
      return pairs<float, float>();
    case Basic::pair_double_double:
      return pairs<double, double>();
  }
  return {};
}

constexpr std::array<Row, kBasicCount> all_rows() noexcept {
  std::array<Row, kBasicCount> rows{};
  for (std::uint32_t basic = 0; basic < kBasicCount; ++basic) {
    rows[basic] = row_of(static_cast<Basic>(basic));
  }
  return rows;
}

constexpr std::array<Row, kBasicCount> kKernels = all_rows();

}  // namespace

Kernel find_kernel(MPI_Op op, Basic basic) noexcept {
  const auto index = reinterpret_cast<std::uintptr_t>(op) - kFirstOp;
  return index < kOpCount ? kKernels[static_cast<std::uint32_t>(basic)][index] : nullptr;
}

}  // namespace sterna::mpi
