// Reading frames from, and writing bytes to, descriptors that do not block.
#include "launch/frame_stream.h"

#include <array>

#include <fcntl.h>
#include <unistd.h>

namespace sterna::launch {
namespace {

constexpr std::size_t kReadBytes = std::size_t{128} << 10;

}  // namespace

void set_non_blocking(int fd) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

FrameReader::State FrameReader::read_from(int fd) {
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(used_));
  used_ = 0;
  std::array<std::byte, kReadBytes> came;  // Not in bytes_: few of many peers send so much at once.
  const long count = system_call([&] { return ::read(fd, came.data(), came.size()); });
  if (count > 0) {
    bytes_.insert(bytes_.end(), came.begin(), came.begin() + count);
  }
  if (count == -EAGAIN) {
    return State::open;
  }
  return count > 0 ? State::open : State::ended;
}

bool FrameReader::next(FrameHeader& header, std::span<const std::byte>& body) {
  const std::span<const std::byte> rest = std::span{bytes_}.subspan(used_);
  if (!is_well_formed_ || rest.size() < runtime::kFrameHeaderBytes) {
    return false;
  }
  Result<FrameHeader> decoded = runtime::decode_header(rest.first(runtime::kFrameHeaderBytes));
  if (!decoded) {
    is_well_formed_ = false;
    return false;
  }
  header = decoded.value();
  if (rest.size() - runtime::kFrameHeaderBytes < header.body_bytes) {
    return false;
  }
  body = rest.subspan(runtime::kFrameHeaderBytes, header.body_bytes);
  used_ += runtime::kFrameHeaderBytes + header.body_bytes;
  return true;
}

void ByteSender::push(std::vector<std::byte> bytes) {
  if (!bytes.empty()) {
    bytes_ += bytes.size();
    queue_.push_back(std::move(bytes));
  }
}

bool ByteSender::write_to(int fd) {
  while (!queue_.empty()) {
    const std::vector<std::byte>& front = queue_.front();
    const long count = system_call(
        [&] { return ::write(fd, front.data() + front_used_, front.size() - front_used_); });
    if (count == -EAGAIN) {
      return true;
    }
    if (count <= 0) {
      queue_.clear();
      bytes_ = 0;
      front_used_ = 0;
      return false;
    }
    bytes_ -= static_cast<std::size_t>(count);
    front_used_ += static_cast<std::size_t>(count);
    if (front_used_ == front.size()) {
      queue_.pop_front();
      front_used_ = 0;
    }
  }
  return true;
}

}  // namespace sterna::launch
