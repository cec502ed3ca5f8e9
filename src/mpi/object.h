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
