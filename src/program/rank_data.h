// What the loader keeps for a rank: at the start of its images region, so that it moves with the
// rank.
//
// Plain bytes; pointers are into the slot or to text. Used on the rank's thread pointer by the rank
// and by kernel threads that it has created: what those may touch is under `lock`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "base/annotate.h"
#include "base/spin_lock.h"
#include "memory/rank_slot.h"
#include "program/blockers.h"
#include "program/libc_state.h"
#include "program/shims/host_calls.h"

struct option;  // <getopt.h>

namespace sterna::program {

/// What the program sees as libc's variables. Initialised when the rank is created.
struct RankVariables {
  std::FILE* standard_output = nullptr;
  std::FILE* standard_error = nullptr;
  std::FILE* standard_input = nullptr;
  char** environment = nullptr;        // environ
  char* option_argument = nullptr;     // optarg
  int option_index = 1;                // optind
  int option_error = 1;                // opterr
  int option_unknown = '?';            // optopt
  char* program_name = nullptr;        // program_invocation_name
  char* program_short_name = nullptr;  // program_invocation_short_name
  int gamma_sign = 0;                  // signgam
  int has_daylight = 0;                // daylight
  long seconds_west = 0;               // timezone
  char first_zone_name[4] = "GMT";
  char* zone_names[2] = {first_zone_name, first_zone_name};  // tzname
  bool is_single_threaded = false;     // __libc_single_threaded: never, other ranks share libc.
};

/// A function that runs at the end of a rank: atexit, on_exit and destructors of objects.
struct ExitHandler {
  enum class Kind : std::uint8_t { plain, with_argument, with_status };
  void* function = nullptr;
  void* argument = nullptr;
  void* library = nullptr;  // __dso_handle of who registered it.
  Kind kind = Kind::plain;
};

struct ExitHandlers {
  ExitHandler* handlers = nullptr;  // In the user heap.
  std::uint32_t count = 0;
  std::uint32_t capacity = 0;
};

/// A line that is not complete yet.
struct HeldLine {
  char* bytes = nullptr;  // In the user heap.
  std::uint32_t used = 0;
  std::uint32_t capacity = 0;
};

inline constexpr std::uint32_t kBlockerCountMax = 64;
inline constexpr std::uint32_t kFirstBlockerKind = static_cast<std::uint32_t>(BlockerKind::file);
inline constexpr std::uint32_t kBlockerKindCount =
    static_cast<std::uint32_t>(BlockerKind::process) - kFirstBlockerKind + 1;
inline constexpr std::uint32_t kBlockerTextBytes = 88;

/// One thing that holds the rank here. The same descriptor may appear once only.
struct Blocker {
  BlockerKind kind = BlockerKind::file;
  bool is_used = false;
  std::uint64_t key = 0;  // Descriptor, or address of a FILE, a DIR, a mapping, a handle.
  char text[kBlockerTextBytes] = {};
};

/// Anonymous memory that mmap gave the rank from its heap.
struct HeapMapping {
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;
  std::uint64_t live_bytes = 0;  // What munmap has left of it.
  void* block = nullptr;         // Of the heap, in which its pages are.
  HeapMapping* next = nullptr;
};

/// A kernel thread that the rank has created, until it is joined, or has ended and is detached:
/// that long its number means something in this process, and in no other.
struct KernelThread {
  std::uint64_t serial = 0;  // Of the rank's threads.
  std::uintptr_t id = 0;     // pthread_t; 0: nobody knows it yet.
  bool has_ended = false;
  bool is_detached = false;
  KernelThread* next = nullptr;
};

/// Where getopt is between two calls.
struct GetoptState {
  char* next_character = nullptr;
  int first_operand = 1, last_operand = 1;  // Operands that have been stepped over.
  bool is_started = false;
  enum class Order : std::uint8_t { permute, require, in_order } order = Order::permute;
};

struct RankData {
  RankVariables variables;

  // Start: constant after creation. Strings and arrays lie in the user heap.
  memory::RankSlot* slot = nullptr;
  std::uintptr_t images = 0;  // Start of the images region: this.
  int argument_count = 0;
  char** arguments = nullptr;
  char** first_environment = nullptr;
  std::uint8_t random_bytes[16] = {};  // AT_RANDOM

  bool is_ending = false;  // exit() has been called.
  // The main thread has gone. Relaxed: who misses it calls once more.
  std::atomic<bool> has_ended{false};
  // True from the first pthread_create on: other kernel threads may be in the heap.
  bool has_threads = false;
  char** owned_environment = nullptr;  // The array that setenv has allocated last.

  SpinLock heap_lock;  // Of the user heap, once has_threads. A leaf.
  SpinLock lock;       // Of what follows. heap_lock may be taken inside.
  ExitHandlers exit_handlers;
  ExitHandlers thread_handlers;  // Destructors of the main thread's thread_local objects.
  ExitHandlers quick_handlers;   // at_quick_exit()
  HeldLine held_lines[2];        // Of standard output and error.
  // What dup2() and freopen() have made of descriptors 0, 1, 2; -1: as they were.
  int redirected[3] = {-1, -1, -1};
  // The FILEs of these that the rank began with, whatever stdin, stdout and stderr are now. They
  // stay when they are closed, as libc's do.
  std::FILE* streams[3] = {};
  std::int8_t orientations[3] = {};  // As fwide() has set them.
  Blocker blockers[kBlockerCountMax];
  std::uint32_t unnamed_blockers[kBlockerKindCount] = {};  // Of each kind, beyond the table.
  HeapMapping* heap_mappings = nullptr;
  KernelThread* kernel_threads = nullptr;  // The oldest first.
  std::uint64_t kernel_thread_count = 0;   // That were ever created.

  LibcState libc;
  GetoptState getopt;  // Main thread only, as getopt is not thread-safe.
};

/// Of a rank made by this layer.
[[nodiscard]] inline RankData& data_of(const memory::RankSlot& slot) noexcept {
  return *static_cast<RankData*>(slot.program);
}

/// Of the calling rank; code of a rank calls. Does not return to a kernel thread that its rank has
/// left behind.
[[nodiscard]] RankData& calling_data() noexcept;

}  // namespace sterna::program
