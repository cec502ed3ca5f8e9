// Between typed buffers and streams of bytes: pack, unpack, the list of runs, copies.
#include <cstring>

#include "mpi/datatype/datatype.h"
#include "mpi/datatype/walk.h"
#include "net/buffer.h"

namespace sterna::mpi {
namespace {

// Gathering or scattering blocks whose size the compiler knows: loads and stores, no calls.
template <std::size_t kBytes>
void gather(std::byte* stream, const std::byte* at, std::int64_t stride,
            std::uint64_t count) noexcept {
  for (; count != 0; --count, at += stride, stream += kBytes) {
    std::memcpy(stream, at, kBytes);
  }
}

template <std::size_t kBytes>
void scatter(const std::byte* stream, std::byte* at, std::int64_t stride,
             std::uint64_t count) noexcept {
  for (; count != 0; --count, at += stride, stream += kBytes) {
    std::memcpy(at, stream, kBytes);
  }
}

class Packer {
 public:
  explicit Packer(std::byte* stream) noexcept : stream_{stream} {}

  bool block(const std::byte* address, std::uint64_t bytes, Basic /*basic*/) noexcept {
    net::copy_bytes(stream_, address, bytes);
    stream_ += bytes;
    return true;
  }

  bool blocks(const std::byte* at, const Loop& loop, std::uint64_t count) noexcept {
    const std::uint64_t bytes = loop.block_bytes;
    std::byte* const stream = stream_;
    stream_ += count * bytes;
    switch (bytes) {
      case 1:
        gather<1>(stream, at, loop.stride, count);
        return true;
      case 2:
        gather<2>(stream, at, loop.stride, count);
        return true;
      case 4:
        gather<4>(stream, at, loop.stride, count);
        return true;
      case 8:
        gather<8>(stream, at, loop.stride, count);
        return true;
      case 12:
        gather<12>(stream, at, loop.stride, count);
        return true;
      case 16:
        gather<16>(stream, at, loop.stride, count);
        return true;
      case 24:
        gather<24>(stream, at, loop.stride, count);
        return true;
      case 32:
        gather<32>(stream, at, loop.stride, count);
        return true;
      default:
        break;
    }
    std::byte* to = stream;
    for (; count != 0; --count, at += loop.stride, to += bytes) {
      net::copy_bytes(to, at, bytes);
    }
    return true;
  }

 private:
  std::byte* stream_;
};

class Unpacker {
 public:
  explicit Unpacker(const std::byte* stream) noexcept : stream_{stream} {}

  bool block(std::byte* address, std::uint64_t bytes, Basic /*basic*/) noexcept {
    net::copy_bytes(address, stream_, bytes);
    stream_ += bytes;
    return true;
  }

  bool blocks(std::byte* at, const Loop& loop, std::uint64_t count) noexcept {
    const std::uint64_t bytes = loop.block_bytes;
    const std::byte* const stream = stream_;
    stream_ += count * bytes;
    switch (bytes) {
      case 1:
        scatter<1>(stream, at, loop.stride, count);
        return true;
      case 2:
        scatter<2>(stream, at, loop.stride, count);
        return true;
      case 4:
        scatter<4>(stream, at, loop.stride, count);
        return true;
      case 8:
        scatter<8>(stream, at, loop.stride, count);
        return true;
      case 12:
        scatter<12>(stream, at, loop.stride, count);
        return true;
      case 16:
        scatter<16>(stream, at, loop.stride, count);
        return true;
      case 24:
        scatter<24>(stream, at, loop.stride, count);
        return true;
      case 32:
        scatter<32>(stream, at, loop.stride, count);
        return true;
      default:
        break;
    }
    const std::byte* from = stream;
    for (; count != 0; --count, at += loop.stride, from += bytes) {
      net::copy_bytes(at, from, bytes);
    }
    return true;
  }

 private:
  const std::byte* stream_;
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
  Packer packer{stream.data()};
  return walk(from, from.type->copies, offset, stream.size(), packer);
}

std::uint64_t unpack(const TypedBuffer& into, std::uint64_t offset,
                     std::span<const std::byte> stream) noexcept {
  Unpacker unpacker{stream.data()};
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
