// Bounded writing and reading of bytes.
#include "base/wire.h"

namespace sterna::wire {

namespace {
constexpr std::size_t kLengthMax = 0xffff'ffff;  // Lengths have 32 bits.
}  // namespace

void Writer::raw(std::span<const std::byte> bytes) noexcept {
  if (!ok_) {
    return;
  }
  if (buffer_ != nullptr) {
    ok_ = buffer_->size() <= bytes_max_ && bytes.size() <= bytes_max_ - buffer_->size();
    if (ok_) {
      buffer_->insert(buffer_->end(), bytes.begin(), bytes.end());
    }
  } else {
    ok_ = bytes.size() <= memory_.size() - bytes_;
    if (ok_ && !bytes.empty()) {
      std::memcpy(memory_.data() + bytes_, bytes.data(), bytes.size());
    }
  }
  bytes_ += ok_ ? bytes.size() : 0;
}

void Writer::blob(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() > kLengthMax) {
    ok_ = false;
    return;
  }
  u32(static_cast<std::uint32_t>(bytes.size()));
  raw(bytes);
}

void Writer::text(std::string_view text) noexcept {
  blob(std::as_bytes(std::span{text}));
}

void Reader::refuse() noexcept {
  ok_ = false;
  rest_ = {};
}

bool Reader::boolean() noexcept {
  const std::uint8_t value = u8();
  if (value > 1) {
    refuse();
    return false;
  }
  return value == 1;
}

std::span<const std::byte> Reader::raw(std::size_t bytes) noexcept {
  if (bytes > rest_.size()) {
    refuse();
    return {};
  }
  const std::span<const std::byte> result = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return result;
}

std::span<const std::byte> Reader::blob(std::size_t bytes_max) noexcept {
  const std::uint32_t bytes = u32();
  if (bytes > bytes_max) {
    refuse();
    return {};
  }
  return raw(bytes);
}

std::string_view Reader::text(std::size_t bytes_max) noexcept {
  const std::span<const std::byte> bytes = blob(bytes_max);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint32_t Reader::count(std::size_t element_bytes_min) noexcept {
  const std::uint32_t value = u32();
  if (element_bytes_min != 0 && value > rest_.size() / element_bytes_min) {
    refuse();
    return 0;
  }
  return value;
}

}  // namespace sterna::wire
