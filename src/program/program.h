// An executable that runs as ranks: parsed, bound and measured once a node; each rank is then a
// copy of its data in the rank's slot.
//
// The executable and its language runtimes (libstdc++ and every other library that is not of the
// system) are private: each rank has its own data, the text is mapped from the file and so shared.
// libc, libm, libgcc_s, the dynamic linker and Sterna's own libraries are the host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/function_ref.h"
#include "base/result.h"
#include "memory/rank_slot.h"
#include "program/shims/host_calls.h"
#include "program/shims/shims.h"

namespace sterna::program {

struct ProgramOptions {
  std::string path;           // A file; found along PATH by who calls, if at all.
  HostCalls* host = nullptr;  // Outlives the program.
  // More functions of the host that programs may call, beyond those of its libraries.
  std::span<const Shim> functions = {};
};

struct RankArguments {
  std::span<char* const> arguments;    // argv without its null; the first is the program's name.
  std::span<char* const> environment;  // envp without its null.
};

/// One a process while it is open: the code of ranks calls without an object (exit, write).
/// Constant after open(), so all calls may come from several workers at once, each for another
/// rank.
class Program {
 public:
  /// Reads the executable and everything it needs, binds all symbols, and keeps the plan. Errors
  /// say which file, what is wrong with it and what to do (rebuild with -fPIE -pie, a missing
  /// library and where it was looked for, a script, another machine's file, an undefined symbol).
  static Result<std::unique_ptr<Program>> open(ProgramOptions options);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Fills a slot that IsoSpace::map_rank has mapped and IsoSpace::map_images(rank, image_bytes())
  /// has given its images: data, thread-local block, standard streams, and arguments (copied into
  /// the slot). On the worker's thread pointer.
  Result<> create_rank(memory::RankSlot& slot, const RankArguments& arguments) noexcept;

  /// The entry of a rank's user thread (threads::Team::adopt): `slot` is its RankSlot*. Runs the
  /// program from its _start; ends in HostCalls::rank_exit or rank_abort.
  static void run(void* slot) noexcept;

  /// For a slot that is mapped for a rank of another node: maps the text over its images. Reads and
  /// writes no byte of the slot, so the rank may still run where it is; bytes that are copied in
  /// must be there before.
  Result<> prepare(std::uint32_t rank) noexcept;

  /// Before the rank's slot is unmapped: takes what it left open out of libc's lists and closes it.
  /// Once for each rank that ended here; not for one that moved away. False: kernel threads of the
  /// rank are left, so the slot must stay until the process ends, and nothing was done.
  [[nodiscard]] bool forget(memory::RankSlot& slot) noexcept;

  /// Equal on two nodes exactly if a rank can move between them: same files at same addresses, same
  /// libraries of the host, same thread-local layout, same choice of processor-specific code.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept;
  /// What fingerprint() covers, a line an item, to explain a difference.
  [[nodiscard]] std::string describe() const;

  /// Whether it, or a library that it needs, makes kernel threads (of pthreads, OpenMP, C++).
  [[nodiscard]] bool creates_threads() const noexcept;

  /// What of the slot's images must be copied when the rank moves: all that is not text.
  void for_each_image_extent(const memory::RankSlot& slot,
                             FunctionRef<void(std::span<std::byte>)> visit) const noexcept;

  /// Bytes of the slot's image region that a rank uses.
  [[nodiscard]] std::size_t image_bytes() const noexcept;

  class Parts;  // program/elf/parts.h: for the files of this layer.
  [[nodiscard]] const Parts& parts() const noexcept { return *parts_; }

 private:
  explicit Program(std::unique_ptr<Parts> parts) noexcept;

  std::unique_ptr<Parts> parts_;
};

}  // namespace sterna::program
