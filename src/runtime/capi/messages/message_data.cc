// Pieces of messages: walks over them, in either direction.
#include "runtime/capi/messages/message_data.h"

#include <algorithm>
#include <optional>

#include "net/buffer.h"
#include "runtime/scope.h"

namespace sterna::runtime::capi {
namespace {

static_assert(sizeof(sterna_piece) == sizeof(net::Extent) &&
                  offsetof(sterna_piece, bytes) == offsetof(net::Extent, bytes),
              "pieces of the program are extents of the transport");

// More are copied: the transport looks for a place among them from the first one on, and a packet
// takes 64.
constexpr std::uint64_t kPiecesMax = 16;

/// Calls visit(address, bytes) for each piece while it returns true.
template <typename Visit>
void visit_pieces(const MessageData& data, Visit&& visit) noexcept {
  using enum MessageData::Kind;
  if (data.kind == range) {
    (void)visit(static_cast<std::byte*>(data.address), data.bytes);
  } else if (data.kind == pieces) {
    for (std::uint64_t i = 0; i < data.count; ++i) {
      if (!visit(static_cast<std::byte*>(data.pieces[i].address), data.pieces[i].bytes)) {
        return;
      }
    }
  } else if (data.kind == strided) {
    auto* block = static_cast<std::byte*>(data.address);
    for (std::uint64_t i = 0; i < data.count && visit(block, data.bytes); ++i) {
      block += data.stride;
    }
  } else {
    // A rank's code wants the rank's thread pointer. In a process the caller may be the poller, who
    // must not be interrupted by other threads there.
    std::optional<UserScope> scope;
    if (memory::rank_slot_of(__builtin_frame_address(0)) != nullptr) {
      scope.emplace();
    }
    sterna_piece piece{nullptr, 0};
    for (std::uint64_t i = 0; data.next(data.layout, i, &piece) != 0; ++i) {
      if (!visit(static_cast<std::byte*>(piece.address), piece.bytes)) {
        return;
      }
    }
  }
}

/// What the pieces come to, adjacent ones taken as one.
struct Sum {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  bool is_bad = false;
};

/// Calls visit(address, bytes) for each run of adjacent pieces while it returns true.
template <typename Visit>
Sum visit_runs(const MessageData& data, Visit&& visit) noexcept {
  Sum sum;
  net::Extent run{nullptr, 0};
  bool goes_on = true;
  visit_pieces(data, [&](std::byte* address, std::uint64_t bytes) {
    sum.is_bad |= (address == nullptr && bytes != 0) ||
                  __builtin_add_overflow(sum.bytes, bytes, &sum.bytes) ||
                  sum.bytes > kMessageBytesMax;
    if (bytes == 0 || sum.is_bad) {
      return !sum.is_bad;
    }
    if (run.bytes != 0 && run.address + run.bytes == address) {
      run.bytes += bytes;
      return true;
    }
    if (run.bytes != 0) {
      ++sum.count;
      goes_on = visit(run.address, run.bytes);
    }
    run = {address, bytes};
    return goes_on;
  });
  if (run.bytes != 0 && goes_on && !sum.is_bad) {
    ++sum.count;
    (void)visit(run.address, run.bytes);
  }
  return sum;
}

// A layout that answers otherwise the second time must not lead beyond what its first answers asked
// room for: false then.

bool copy_pieces(const MessageData& data, const Sum& sum, std::byte* to) noexcept {
  std::uint64_t left = sum.bytes;
  const Sum again = visit_runs(data, [&](const std::byte* address, std::uint64_t run) {
    const std::uint64_t part = std::min(run, left);
    net::copy_bytes(to, address, part);
    to += part;
    left -= part;
    return part == run;
  });
  return left == 0 && again.bytes == sum.bytes;
}

bool list_pieces(const MessageData& data, const Sum& sum, net::Extent* extents) noexcept {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  visit_runs(data, [&](std::byte* address, std::uint64_t run) {
    if (count++ < sum.count) {
      *extents++ = {address, run};
      bytes += run;
    }
    return count <= sum.count;
  });
  return count == sum.count && bytes == sum.bytes;
}

}  // namespace

sterna_status open_bytes(const MessageData& data, bool is_send, memory::Heap& heap,
                         MessageBytes& bytes) noexcept {
  bytes = {};
  if (data.kind == MessageData::Kind::range) {
    bytes.buffer = net::Buffer::of(data.address, data.bytes);
    return STERNA_SUCCESS;
  }
  net::Extent first{nullptr, 0};
  const Sum sum = visit_runs(data, [&](std::byte* address, std::uint64_t run) {
    first = first.bytes == 0 ? net::Extent{address, run} : first;
    return true;
  });
  if (sum.is_bad) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (sum.count <= 1) {
    bytes.buffer = net::Buffer::of(first.address, first.bytes);
    return STERNA_SUCCESS;
  }
  bytes.is_copied = sum.count > kPiecesMax;
  bytes.held = heap.allocate(bytes.is_copied ? sum.bytes : sum.count * sizeof(net::Extent));
  if (bytes.held == nullptr) {
    bytes = {};
    return STERNA_OUT_OF_MEMORY;
  }
  bool is_same = true;
  if (bytes.is_copied) {
    bytes.buffer = net::Buffer::of(bytes.held, sum.bytes);
    is_same = !is_send || copy_pieces(data, sum, static_cast<std::byte*>(bytes.held));
  } else {
    auto* const extents = static_cast<net::Extent*>(bytes.held);
    bytes.buffer = {nullptr, sum.bytes, extents, static_cast<std::uint32_t>(sum.count)};
    is_same = list_pieces(data, sum, extents);
  }
  if (!is_same) {
    heap.deallocate(bytes.held);
    bytes = {};
    return STERNA_REFUSED;
  }
  return STERNA_SUCCESS;
}

void close_bytes(const MessageData& data, std::uint64_t stored, memory::Heap& heap,
                 MessageBytes& bytes) noexcept {
  if (bytes.is_copied) {
    const auto* from = static_cast<const std::byte*>(bytes.held);
    visit_runs(data, [&](std::byte* address, std::uint64_t run) {
      const std::uint64_t part = std::min(run, stored);
      net::copy_bytes(address, from, part);
      from += part;
      stored -= part;
      return stored != 0;
    });
  }
  if (bytes.held != nullptr) {
    heap.deallocate(bytes.held);
  }
  bytes = {};
}

}  // namespace sterna::runtime::capi
