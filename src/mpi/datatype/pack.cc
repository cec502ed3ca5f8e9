// Between typed buffers and streams of bytes: pack, unpack, the list of runs, copies.
#include <array>
#include <cstring>
#include <type_traits>

#include "mpi/datatype/datatype.h"
#include "mpi/datatype/walk.h"
#include "net/buffer.h"

namespace sterna::mpi {
namespace {

/// Of a length that nobody can predict: most have one way here, of four parts that overlap.
inline void copy_unlike(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
  using Part = std::array<std::byte, 16>;
  if (bytes < sizeof(Part) || bytes > 4 * sizeof(Part)) {
    net::copy_bytes(to, from, bytes);
    return;
  }
  const std::uint64_t last = bytes - sizeof(Part);
  const std::uint64_t second = std::min<std::uint64_t>(sizeof(Part), last);
  const std::uint64_t third = last - second;
  Part parts[4];
  std::memcpy(&parts[0], from, sizeof(Part));
  std::memcpy(&parts[1], from + second, sizeof(Part));
  std::memcpy(&parts[2], from + third, sizeof(Part));
  std::memcpy(&parts[3], from + last, sizeof(Part));
  std::memcpy(to, &parts[0], sizeof(Part));
  std::memcpy(to + second, &parts[1], sizeof(Part));
  std::memcpy(to + third, &parts[2], sizeof(Part));
  std::memcpy(to + last, &parts[3], sizeof(Part));
}

enum class Way : std::uint8_t { gather, scatter };

/// Between blocks in memory and a stream of bytes.
template <Way kWay>
class Mover {
 public:
  using Stream = std::conditional_t<kWay == Way::gather, std::byte*, const std::byte*>;

  explicit Mover(Stream stream) noexcept : stream_{stream} {}

  bool block(std::byte* address, std::uint64_t bytes, Basic /*basic*/) noexcept {
    move(stream_, address, bytes);
    stream_ += bytes;
    return true;
  }

  bool blocks(std::byte* at, const Loop& loop, std::uint64_t count) noexcept {
    move_all(at, loop.block_bytes, count, [stride = loop.stride](std::uint64_t i) {
      return static_cast<std::int64_t>(i) * stride;
    });
    return true;
  }

  void listed(std::byte* at, const Loop& loop, const std::int32_t* places,
              std::uint64_t count) noexcept {
    move_all(at, loop.block_bytes, count,
             [places](std::uint64_t i) { return std::int64_t{places[i]}; });
  }

  void unlike(std::byte* at, const std::int32_t* places, const std::uint32_t* starts,
              std::uint64_t count) noexcept {
    const Stream stream = stream_;
    const std::uint32_t first = *starts;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t bytes = starts[i + 1] - starts[i];
      if constexpr (kWay == Way::gather) {
        copy_unlike(stream + (starts[i] - first), at + places[i], bytes);
      } else {
        copy_unlike(at + places[i], stream + (starts[i] - first), bytes);
      }
    }
    stream_ += starts[count] - first;
  }

  void rows(std::byte* at, const Loop& loop, const std::int32_t* places, std::uint64_t count,
            const Loop& inner) noexcept {
    at += inner.displacement;
    if (places == nullptr) {
      move_rows(at, inner, count, [stride = loop.stride](std::uint64_t i) {
        return static_cast<std::int64_t>(i) * stride;
      });
    } else {
      move_rows(at, inner, count, [places](std::uint64_t i) { return std::int64_t{places[i]}; });
    }
  }

 private:
  static void move(Stream stream, std::byte* at, std::uint64_t bytes) noexcept {
    if constexpr (kWay == Way::gather) {
      net::copy_bytes(stream, at, bytes);
    } else {
      net::copy_bytes(at, stream, bytes);
    }
  }

  /// Calls visit(size) where `size` is the block's in a type if it is a common one, so that blocks
  /// are loads and stores, no calls.
  template <typename Visit>
  static void for_size(std::uint64_t bytes, Visit visit) noexcept {
    switch (bytes) {
      case 1:
        return visit(std::integral_constant<std::uint64_t, 1>{});
      case 2:
        return visit(std::integral_constant<std::uint64_t, 2>{});
      case 4:
        return visit(std::integral_constant<std::uint64_t, 4>{});
      case 8:
        return visit(std::integral_constant<std::uint64_t, 8>{});
      case 12:
        return visit(std::integral_constant<std::uint64_t, 12>{});
      case 16:
        return visit(std::integral_constant<std::uint64_t, 16>{});
      case 24:
        return visit(std::integral_constant<std::uint64_t, 24>{});
      case 32:
        return visit(std::integral_constant<std::uint64_t, 32>{});
      case 48:
        return visit(std::integral_constant<std::uint64_t, 48>{});
      case 64:
        return visit(std::integral_constant<std::uint64_t, 64>{});
      default:
        return visit(bytes);
    }
  }

  template <typename Size>
  static void move_one(Stream stream, std::byte* at, Size bytes) noexcept {
    if constexpr (std::is_same_v<Size, std::uint64_t>) {
      move(stream, at, bytes);
    } else if constexpr (kWay == Way::gather) {
      std::memcpy(stream, at, Size::value);
    } else {
      std::memcpy(at, stream, Size::value);
    }
  }

  template <typename PlaceOf>
  void move_all(std::byte* at, std::uint64_t bytes, std::uint64_t count,
                PlaceOf place_of) noexcept {
    const Stream stream = stream_;
    stream_ += count * bytes;
    for_size(bytes, [stream, at, count, place_of](auto size) {
      Stream next = stream;
      for (std::uint64_t i = 0; i < count; ++i, next += size) {
        move_one(next, at + place_of(i), size);
      }
    });
  }

  template <typename PlaceOf>
  void move_rows(std::byte* at, const Loop& inner, std::uint64_t count,
                 PlaceOf place_of) noexcept {
    const Stream stream = stream_;
    stream_ += count * inner.bytes();
    for_size(inner.block_bytes,
             [stream, at, count, place_of, length = inner.count, stride = inner.stride](auto size) {
               Stream next = stream;
               for (std::uint64_t i = 0; i < count; ++i) {
                 std::byte* block = at + place_of(i);
                 for (std::uint64_t n = 0; n < length; ++n, block += stride, next += size) {
                   move_one(next, block, size);
                 }
               }
             });
  }

  Stream stream_;
};

class RunCollector {
 public:
  explicit RunCollector(std::span<Run> runs) noexcept : runs_{runs} {}

  // Adjacent blocks are one run: loops of neighbours may touch.
  bool block(std::byte* address, std::uint64_t bytes, Basic /*basic*/) noexcept {
    if (count_ != 0 && runs_[count_ - 1].address + runs_[count_ - 1].bytes == address) {
      runs_[count_ - 1].bytes += bytes;
    } else if (count_ == runs_.size()) {
      return false;
    } else {
      runs_[count_] = {address, bytes};
      ++count_;
    }
    bytes_ += bytes;
    return true;
  }

  bool blocks(std::byte* at, const Loop& loop, std::uint64_t count) noexcept {
    for (; count != 0; --count, at += loop.stride) {
      if (!block(at, loop.block_bytes, loop.basic)) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::span<Run> runs_;
  std::uint32_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

constexpr std::size_t kStagingBytes = 4096;  // On the stack of the rank, which may be small.

}  // namespace

std::uint64_t pack(const TypedBuffer& from, std::uint64_t offset,
                   std::span<std::byte> stream) noexcept {
  Mover<Way::gather> packer{stream.data()};
  return walk(from, from.type->copies, offset, stream.size(), packer);
}

std::uint64_t unpack(const TypedBuffer& into, std::uint64_t offset,
                     std::span<const std::byte> stream) noexcept {
  Mover<Way::scatter> unpacker{stream.data()};
  return walk(into, into.type->copies, offset, stream.size(), unpacker);
}

std::uint32_t collect_runs(const TypedBuffer& buffer, std::uint64_t& offset,
                           std::span<Run> runs) noexcept {
  RunCollector collector{runs};
  walk(buffer, buffer.type->copies, offset, ~std::uint64_t{0}, collector);
  offset += collector.bytes();
  return collector.count();
}

std::uint64_t copy_typed(const TypedBuffer& from, const TypedBuffer& into) noexcept {
  const std::uint64_t bytes = std::min(from.bytes(), into.bytes());
  if (bytes == 0) {
    return 0;
  }
  if (from.is_one_run()) {
    return unpack(into, 0, {from.first_byte(), bytes});
  }
  if (into.is_one_run()) {
    return pack(from, 0, {into.first_byte(), bytes});
  }
  std::byte staging[kStagingBytes];
  for (std::uint64_t offset = 0; offset < bytes;) {
    const std::uint64_t part = std::min<std::uint64_t>(kStagingBytes, bytes - offset);
    pack(from, offset, {staging, part});
    unpack(into, offset, {staging, part});
    offset += part;
  }
  return bytes;
}

}  // namespace sterna::mpi
