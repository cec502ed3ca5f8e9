// When pages are joined, and how the system is asked for it.
#include "memory/large_pages.h"

#include <algorithm>
#include <new>
#include <string>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "base/system_file.h"

namespace sterna::memory {
namespace {

constexpr int kAdviseCollapse = 25;  // MADV_COLLAPSE, Linux 6.1.
constexpr std::size_t kPages = LargePages::kFrameBytes / LargePages::kPageBytes;
// What is not there yet would have to be made: an eighth of the memory at most.
constexpr std::size_t kPagesMissingMax = kPages / 8;
// One frame at a time, so that no message waits for long, and one more for so many bytes.
constexpr std::uint64_t kBytesOfJoin = 32 << 20;
// Faster than that no pages are copied: they were joined already.
constexpr std::uint64_t kJoinNsMin = 50'000;
constexpr std::uint32_t kFailuresMax = 10;

bool join_pages(std::uintptr_t frame) noexcept {
  return raw_system_call(SYS_madvise, static_cast<long>(frame),
                         static_cast<long>(LargePages::kFrameBytes), kAdviseCollapse) == 0;
}

std::size_t count_pages_in(std::uintptr_t frame) noexcept {
  std::array<unsigned char, kPages> pages{};
  if (raw_system_call(SYS_mincore, static_cast<long>(frame),
                      static_cast<long>(LargePages::kFrameBytes),
                      reinterpret_cast<long>(pages.data())) != 0) {
    return 0;  // Some of it is not mapped.
  }
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

bool are_there() noexcept {
  try {
    const auto size = first_line_of("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    const auto use = first_line_of("/sys/kernel/mm/transparent_hugepage/enabled");
    return ::sysconf(_SC_PAGESIZE) == static_cast<long>(LargePages::kPageBytes) &&
           size == "2097152" && use.has_value() && use->find("[never]") == std::string::npos;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

const LargePages::System LargePages::kSystem{are_there, join_pages, count_pages_in,
                                             sterna::now_ns};

void LargePages::are_copied(const void* begin, std::uint64_t bytes, bool is_quiet) noexcept {
  if (!are_there_.load(std::memory_order_relaxed) ||
      is_taken_.test_and_set(std::memory_order_acquire)) {
    return;
  }
  std::uint32_t may_join = is_quiet ? static_cast<std::uint32_t>(1 + bytes / kBytesOfJoin) : 0;
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t end = first + bytes;
  for (std::uintptr_t at = first; at < end;) {
    const std::uintptr_t next = std::min(end, (at / kFrameBytes + 1) * kFrameBytes);
    count(at / kFrameBytes, (next - at + kPageBytes - 1) / kPageBytes, may_join);
    at = next;
  }
  is_taken_.clear(std::memory_order_release);
}

void LargePages::count(std::uintptr_t number, std::uint64_t pages,
                       std::uint32_t& may_join) noexcept {
  Frame& frame = frames_[number % kFrames];
  if (frame.number != number) {
    if (frame.pages > pages) {
      frame.pages -= pages;  // Of two that meet here the one that is copied more stays.
      return;
    }
    frame = {.number = number};
  }
  frame.pages += pages;
  if (may_join != 0 && frame.pages * kPageNs >= price_ns_ << frame.failures) {
    --may_join;
    look_after(frame);
  }
}

void LargePages::look_after(Frame& frame) noexcept {
  const std::uintptr_t address = frame.number * kFrameBytes;
  if (!has_asked_) {
    has_asked_ = true;
    are_there_.store(system_.has_them(), std::memory_order_relaxed);
  }
  if (!are_there_.load(std::memory_order_relaxed)) {
    return;
  }
  const std::uint64_t start_ns = system_.now_ns();
  frame.pages = 0;
  const bool is_joined = system_.pages_in(address) >= kPages - kPagesMissingMax &&
                         system_.join(address);
  const std::uint64_t took_ns = system_.now_ns() - start_ns;
  // What is large already takes no time but that of others, for whom the system waits now and then.
  if (!is_joined || frame.is_joined || took_ns < kJoinNsMin) {
    frame.failures = std::min(frame.failures + 1, kFailuresMax);
    return;
  }
  frame.is_joined = true;
  frame.failures = 0;
  joined_.fetch_add(1, std::memory_order_relaxed);
  // A quarter of what is new: one that was kept waiting must not decide alone.
  price_ns_ = price_ns_ - price_ns_ / 4 + took_ns / 4;
}

}  // namespace sterna::memory
