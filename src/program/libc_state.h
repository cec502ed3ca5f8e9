// What libc keeps once a process and a rank must have for itself: states of generators, of
// strtok() and hsearch(), of the time zone, of thread-specific keys. Plain bytes in the rank's
// data, pointers into its slot: it moves with the rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <search.h>
#include <sys/types.h>

#include "base/annotate.h"
#include "base/spin_lock.h"

namespace sterna::program {

/// Of rand() and drand48(). The lock is a leaf.
struct Generators {
  SpinLock lock;
  random_data random = {};  // No state yet: made at the first call.
  std::int32_t first_state[32] = {};
  drand48_data uniform = {};
};

/// An abbreviation of a time zone; stays, as those of libc do, since a `struct tm` points to it.
struct ZoneName {
  ZoneName* next = nullptr;
  char text[1] = {};  // More follow.
};

struct TimeState {
  std::tm fields = {};            // What localtime() and gmtime() return.
  char text[128] = {};            // And asctime() and ctime().
  ZoneName* zone_names = nullptr;  // Under RankData::lock.
};

inline constexpr std::uint32_t kThreadKeysPerBlock = 32;
inline constexpr std::uint32_t kThreadKeyCountMax = 1024;  // PTHREAD_KEYS_MAX
inline constexpr std::uint32_t kThreadKeyBlockCount = kThreadKeyCountMax / kThreadKeysPerBlock;

/// A key of pthread_key_create(). Odd generations are in use.
struct ThreadKey {
  std::atomic<std::uint32_t> generation{0};  // Relaxed: who has the key was given it.
  void (*destructor)(void*) = nullptr;
};

struct ThreadKeys {
  ThreadKey* blocks[kThreadKeyBlockCount] = {};  // In the user heap.
};

/// Of one thread. A value counts if its generation is that of the key.
struct ThreadValue {
  void* value = nullptr;
  std::uint32_t generation = 0;
};

struct ThreadValues {
  ThreadValue* blocks[kThreadKeyBlockCount] = {};  // In the user heap.
};

/// A command that popen() has started.
struct ChildStream {
  std::FILE* file = nullptr;
  pid_t process = 0;
  ChildStream* next = nullptr;
};

inline constexpr std::size_t kLibraryErrorBytes = 512;

struct LibcState {
  Generators generators;
  char* rest_of_tokens = nullptr;  // strtok()
  hsearch_data table = {};         // hcreate()
  TimeState time;
  ThreadKeys keys;           // Under RankData::lock.
  ThreadValues main_values;  // The main thread's only.
  ChildStream* child_streams = nullptr;  // Under RankData::lock.
  // What dlopen() or dlclose() has to say, until dlerror() has said it.
  bool has_library_error = false;
  char library_error[kLibraryErrorBytes] = {};
};

}  // namespace sterna::program
