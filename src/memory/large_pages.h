// Large pages for memory that other processes copy from or to by themselves (process_vm_readv and
// process_vm_writev). For each page the kernel finds, holds and lets go there is a price beside the
// copy, which in a virtual machine is as much as the copy itself; 512 pages that are joined to a
// large one are found at once. Copies of 64 KB took 3.2 us out of small pages and 2.4 out of large
// ones, of 1 MB 66 and 44, of 4 MB 440 and 350 (a virtual Sapphire Rapids, Linux 6.18). The pages
// of who calls the kernel are no matter.
//
// To join them is a copy, too, and takes a millisecond (MADV_COLLAPSE, Linux 6.1). So it is done
// when as much has been lost by the small pages of a frame as joining them costs: whatever comes
// afterwards, no more than that is lost twice. Memory keeps its bytes and its place: nobody sees it
// but by the clock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/tunable.h"

namespace sterna::memory {

inline constexpr Tunable kLargePages{
    .name = "large_pages",
    .kind = TunableKind::choice,
    .fallback = "auto",
    .choices = "off auto",
    .help =
        "where ranks are processes their memory has large pages, out of which others of this host "
        "read messages faster; auto: what malloc gives (glibc 2.35), unless the environment has "
        "wishes of its own for that (GLIBC_TUNABLES, MALLOC_*, LD_PRELOAD), and each frame of 2 "
        "MiB of which so much was read that joining its pages makes up for it (Linux 6.1); not "
        "where transparent_hugepage is never"};

/// Counts what is copied out of frames of kFrameBytes, and joins their pages. Any thread.
class LargePages {
 public:
  static constexpr std::size_t kFrameBytes = 2 << 20;
  static constexpr std::size_t kPageBytes = 4 << 10;
  // What a page of a copy costs more than its bytes; measured: 47 to 90.
  static constexpr std::uint64_t kPageNs = 50;
  static constexpr std::uint64_t kFirstPriceNs = 1'000'000;

  /// What the system is asked for; tests have one of their own.
  struct System {
    /// False: it has no such pages, its administrator wants none, or pages have another size.
    bool (*has_them)() noexcept;
    /// Joins the pages of the frame at that address. False: it was not done.
    bool (*join)(std::uintptr_t frame) noexcept;
    /// How many of its pages are there.
    std::size_t (*pages_in)(std::uintptr_t frame) noexcept;
    std::uint64_t (*now_ns)() noexcept;
  };
  /// That of this process.
  static const System kSystem;

  explicit LargePages(const System& system = kSystem) noexcept : system_{system} {}

  /// Another process is about to copy these bytes, or would if that were faster. `is_quiet`: nobody
  /// copies from here as yet, so that the pages are free to move; then some may be joined.
  void are_copied(const void* begin, std::uint64_t bytes, bool is_quiet) noexcept;

  /// Frames that were joined.
  [[nodiscard]] std::uint64_t joined() const noexcept {
    return joined_.load(std::memory_order_relaxed);
  }

 private:
  struct Frame {
    std::uintptr_t number = 0;   // Address by size; 0: none.
    std::uint64_t pages = 0;     // Copied since it was last looked after.
    std::uint32_t failures = 0;  // In a row: it is asked half as often after each.
    bool is_joined = false;      // Once: whether it still is shows when it is asked again.
  };

  void count(std::uintptr_t number, std::uint64_t pages, std::uint32_t& may_join) noexcept;
  void look_after(Frame& frame) noexcept;

  static constexpr std::size_t kFrames = 512;

  const System system_;
  // Guards what follows, but for the atomic ones. Who finds it taken leaves: what is counted need
  // not be exact, and nobody waits for who joins pages.
  std::atomic_flag is_taken_ = ATOMIC_FLAG_INIT;
  bool has_asked_ = false;  // Whether they are there, which is not asked before it matters.
  std::atomic<bool> are_there_{true};  // Relaxed: a hint to who does not hold the rest.
  std::uint64_t price_ns_ = kFirstPriceNs;  // Of joining, a moving mean.
  std::array<Frame, kFrames> frames_ = {};  // By number; two of one place displace each other.
  std::atomic<std::uint64_t> joined_{0};    // Relaxed: a figure.
};

}  // namespace sterna::memory
