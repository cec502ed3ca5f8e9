// The arguments of a call on their way: short pieces in one block, long ones each where it lies.
#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "net/buffer.h"
#include "progress/progress.h"
#include "runtime/capi/calls/rpc.h"
#include "threads/direct.h"

namespace sterna::runtime::capi {

/// Frees a box when the last of its parts is sent: listens to one after the other.
struct OutBox::Waiting : threads::Listener {
  // Of the process. Released after the last access to the endpoint.
  static constinit inline std::atomic<std::uint32_t> count{0};

  Waiting() noexcept { count.fetch_add(1, std::memory_order_relaxed); }
  ~Waiting() { count.fetch_sub(1, std::memory_order_release); }
  std::unique_ptr<OutBox> box;

  /// True: all are sent, else it will be called when the next one is.
  bool is_over() noexcept {
    for (rpc::OutPart& part : box->parts()) {
      if (!part.send.done.done() && part.send.done.listen(*this)) {
        return false;
      }
    }
    return true;
  }
};

std::uint32_t OutBox::waiting_count() noexcept {
  return Waiting::count.load(std::memory_order_acquire);
}

void OutBox::set(std::span<const std::byte> bytes, bool is_copied) {
  if (bytes.size() <= kRpcShortBytes && !is_copied) {
    outer_ = bytes;
  } else {
    add(bytes.data(), bytes.size(), is_copied);
  }
}

/// The block is longer than what has a place here.
void OutBox::use_many_bytes(std::size_t bytes_more) {
  if (many_bytes_.empty()) {
    many_bytes_.reserve(block_bytes_ + bytes_more);
    rpc::assign(many_bytes_, {block_, block_bytes_});
  }
}

/// Behind what there is: `data`, or if it is null what fill() will write.
void OutBox::add_to_block(const std::byte* data, std::size_t bytes) {
  if (block_bytes_ + bytes > few_bytes_.size()) [[unlikely]] {
    use_many_bytes(bytes);
    if (data == nullptr) {
      many_bytes_.resize(block_bytes_ + bytes);
    } else {
      rpc::append(many_bytes_, {data, bytes});
    }
    block_ = many_bytes_.data();
  } else if (data != nullptr) {
    net::copy_bytes(block_ + block_bytes_, data, bytes);
  }
  block_bytes_ += bytes;
}

void OutBox::add(const void* data, std::size_t bytes, bool is_copied) {
  if (bytes <= kRpcShortBytes) {
    if (bytes != 0) {
      add_to_block(static_cast<const std::byte*>(data), bytes);
    }
    return;
  }
  if (part_count_ == part_capacity_) [[unlikely]] {
    const std::uint32_t capacity = 4 * part_capacity_;
    auto parts = std::make_unique<rpc::OutPart[]>(capacity);
    for (std::uint32_t i = 0; i < part_count_; ++i) {  // None is under way yet.
      parts[i].part = parts_[i].part;
      parts[i].data = parts_[i].data;
    }
    many_parts_ = std::move(parts);
    parts_ = many_parts_.get();
    part_capacity_ = capacity;
  }
  if (is_copied) {
    copies_.push_back(memory::KeptBlocks::of_process().make_or_throw(bytes));
    net::copy_long(copies_.back().get(), static_cast<const std::byte*>(data), bytes);
  }
  rpc::OutPart& part = parts_[part_count_];
  part.part = {.offset = static_cast<std::uint32_t>(block_bytes_), .bytes = bytes};
  part.data = is_copied ? copies_.back().get() : data;
  ++part_count_;
}

void OutBox::add_later(const void* data, std::size_t bytes) {
  if (bytes > kRpcShortBytes) {
    add(data, bytes, false);
    return;
  }
  const std::size_t offset = block_bytes_;
  later_.reserve(later_.size() + 1);  // What throws comes first: then there is no such piece.
  add_to_block(nullptr, bytes);
  later_.push_back({data, bytes, offset});
}

void OutBox::fill() noexcept {
  for (const LaterPiece& piece : later_) {
    if (piece.bytes != 0) {
      const auto* const data = static_cast<const std::byte*>(piece.data);
      net::copy_bytes(block_ + piece.offset, data, piece.bytes);
    }
  }
  later_.clear();
}

bool OutBox::has_room(std::size_t bytes) const noexcept {
  return bytes > kRpcShortBytes ? part_count_ < rpc::kPartsMax
                                : block_bytes_ + bytes <= kRpcBlockBytesMax;
}

std::uint64_t OutBox::part_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < part_count_; ++i) {
    bytes += parts_[i].part.bytes;
  }
  return bytes;
}

void OutBox::will_be_awaited() noexcept {
  const bool is_alone = threads::is_caller_alone();
  for (rpc::OutPart& part : parts()) {
    part.send.is_awaited = is_alone;
  }
}

bool OutBox::is_sent() const noexcept {
  return std::ranges::all_of(std::span<const rpc::OutPart>{parts_, part_count_},
                             [](const rpc::OutPart& part) { return part.send.done.done(); });
}

void OutBox::await_sent(progress::Progress& progress) noexcept {
  for (rpc::OutPart& part : parts()) {
    part.send.done.wait(progress);
  }
}

void OutBox::release(std::unique_ptr<OutBox> box) noexcept {
  if (box->is_sent()) {
    return;
  }
  auto* const waiting = new (std::nothrow) Waiting;
  if (waiting == nullptr) {
    (void)box.release();  // Lost: its bytes are being read.
    return;
  }
  waiting->box = std::move(box);
  waiting->ended = [](threads::Listener& self) noexcept {
    auto& it = static_cast<Waiting&>(self);
    if (it.is_over()) {
      delete &it;
    }
  };
  waiting->ended(*waiting);
}

}  // namespace sterna::runtime::capi
