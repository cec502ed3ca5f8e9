// The numbers of the processor's ELF supplement: which files run here, and what their relocations
// and thread-local blocks look like.
#pragma once

#include <cstddef>
#include <cstdint>

#include <elf.h>
#include <sys/auxv.h>

namespace sterna::elf_machine {

#if defined(__x86_64__)

inline constexpr std::uint16_t kMachine = EM_X86_64;
inline constexpr const char* kName = "x86-64";
inline constexpr const char* kLibraryTriplet = "x86_64-linux-gnu";

enum Relocation : std::uint32_t {
  relocation_none = R_X86_64_NONE,
  relocation_relative = R_X86_64_RELATIVE,
  relocation_absolute = R_X86_64_64,
  relocation_data = R_X86_64_GLOB_DAT,
  relocation_call = R_X86_64_JUMP_SLOT,
  relocation_copy = R_X86_64_COPY,
  relocation_chosen = R_X86_64_IRELATIVE,
  relocation_tls_module = R_X86_64_DTPMOD64,
  relocation_tls_in_module = R_X86_64_DTPOFF64,
  relocation_tls_offset = R_X86_64_TPOFF64,
  relocation_tls_descriptor = R_X86_64_TLSDESC,
};
/// GLOB_DAT and JUMP_SLOT hold an addend.
inline constexpr bool kBindingHasAddend = false;
/// Variant II: thread-local variables lie below the thread pointer, struct pthread at it.
inline constexpr bool kTlsIsBelow = true;
inline constexpr std::size_t kTlsReservedAtPointer = 0;
/// The guards of stacks and of jump buffers lie in struct pthread.
inline constexpr bool kGuardsAreOfProcess = false;

/// What the resolver of an indirect function chooses for this processor.
inline std::uint64_t chosen_function(std::uintptr_t resolver) noexcept {
  return reinterpret_cast<std::uint64_t (*)()>(resolver)();
}

#elif defined(__aarch64__)

inline constexpr std::uint16_t kMachine = EM_AARCH64;
inline constexpr const char* kName = "aarch64";
inline constexpr const char* kLibraryTriplet = "aarch64-linux-gnu";

enum Relocation : std::uint32_t {
  relocation_none = R_AARCH64_NONE,
  relocation_relative = R_AARCH64_RELATIVE,
  relocation_absolute = R_AARCH64_ABS64,
  relocation_data = R_AARCH64_GLOB_DAT,
  relocation_call = R_AARCH64_JUMP_SLOT,
  relocation_copy = R_AARCH64_COPY,
  relocation_chosen = R_AARCH64_IRELATIVE,
  relocation_tls_module = R_AARCH64_TLS_DTPMOD,
  relocation_tls_in_module = R_AARCH64_TLS_DTPREL,
  relocation_tls_offset = R_AARCH64_TLS_TPREL,
  relocation_tls_descriptor = R_AARCH64_TLSDESC,
};
inline constexpr bool kBindingHasAddend = true;
/// Variant I: above the thread pointer, after two words; struct pthread lies below it.
inline constexpr bool kTlsIsBelow = false;
inline constexpr std::size_t kTlsReservedAtPointer = 16;
/// They are variables of the dynamic loader.
inline constexpr bool kGuardsAreOfProcess = true;

/// As glibc calls it: with what the processor has, and the same in a structure that may grow.
inline std::uint64_t chosen_function(std::uintptr_t resolver) noexcept {
  constexpr std::uint64_t kHasStructure = std::uint64_t{1} << 62;  // _IFUNC_ARG_HWCAP
  const struct {
    std::uint64_t bytes = 3 * sizeof(std::uint64_t);
    std::uint64_t hwcap = ::getauxval(AT_HWCAP);
    std::uint64_t hwcap2 = ::getauxval(AT_HWCAP2);
  } features;
  using Resolver = std::uint64_t (*)(std::uint64_t, const void*);
  return reinterpret_cast<Resolver>(resolver)(features.hwcap | kHasStructure, &features);
}

#endif

}  // namespace sterna::elf_machine
