// What every MPI object that a handle may point to starts with: a magic word that says what it is,
// and who counts on it. Objects lie in the system heap of their rank and move with it as bytes.
#pragma once

#include <atomic>
#include <cstdint>

namespace sterna::mpi {

/// The magic word of each kind: what a handle that is no predefined constant must point to.
enum class ObjectKind : std::uint32_t {
  freed = 0x0,
  communicator = 0x5354'4f01,
  group = 0x5354'4f02,
  request = 0x5354'4f03,
  message = 0x5354'4f04,
  info = 0x5354'4f05,
  error_handler = 0x5354'4f06,
  datatype = 0x5354'4f07,
  op = 0x5354'4f08,
  keyval = 0x5354'4f09,
  session = 0x5354'4f0a,
};

struct Object {
  constexpr explicit Object(ObjectKind what) noexcept : kind{what} {}

  ObjectKind kind;  // Constant until the object is freed.
  // Handles and objects that refer to this one. Relaxed to add; the last release orders the end.
  std::atomic<std::uint32_t> reference_count{1};

  void retain() noexcept { reference_count.fetch_add(1, std::memory_order_relaxed); }
  /// As retain(), where those who count take turns: without a locked instruction.
  void retain_in_turn() noexcept {
    reference_count.store(reference_count.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
  }
  /// As release(), in the same way, of a reference that is not the last. False: it is the last, and
  /// nothing happened.
  [[nodiscard]] bool release_in_turn() noexcept {
    const std::uint32_t count = reference_count.load(std::memory_order_relaxed);
    if (count == 1) [[unlikely]] {
      return false;
    }
    reference_count.store(count - 1, std::memory_order_relaxed);
    return true;
  }
  /// True: that was the last one; the caller destroys the object.
  [[nodiscard]] bool release() noexcept {
    return reference_count.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
};

inline constexpr std::uintptr_t kPredefinedHandleMax = 0xfff;  // The ABI's constants are below.

/// Whether the handle points to an object of this kind. `handle` is a constant of the ABI, an
/// object, or garbage; misaligned garbage is refused without a look, other garbage may fault.
template <typename Handle>
[[nodiscard]] bool is_object(Handle handle, ObjectKind kind) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(handle);
  return address > kPredefinedHandleMax && (address & 15) == 0 &&
         reinterpret_cast<const Object*>(address)->kind == kind;
}

}  // namespace sterna::mpi
