// Thread-specific data of a rank: its own table of keys, which moves with it and leaves libc's 1024
// to the process. The values of the main thread are in the rank's data, those of a kernel thread
// that it has created are found by what that thread remembers.
#include <cerrno>
#include <utility>

#include <pthread.h>
#include <threads.h>

#include "program/rank_heap.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"
#include "program/shims/thread_keys.h"

namespace sterna::program {
namespace {

/// Null: the key was never made.
ThreadKey* find_key(RankData& data, pthread_key_t key) noexcept {
  ThreadKey* const block =
      key < kThreadKeyCountMax ? data.libc.keys.blocks[key / kThreadKeysPerBlock] : nullptr;
  return block != nullptr ? &block[key % kThreadKeysPerBlock] : nullptr;
}

bool is_used(std::uint32_t generation) noexcept {
  return generation % 2 != 0;
}

ThreadValues* values_of_caller(RankData& data) noexcept {
  return is_main_of(data) ? &data.libc.main_values : foreign_values();
}

ThreadValue* find_value(RankData& data, pthread_key_t key) noexcept {
  ThreadValues* const values = key < kThreadKeyCountMax ? values_of_caller(data) : nullptr;
  ThreadValue* const block =
      values != nullptr ? values->blocks[key / kThreadKeysPerBlock] : nullptr;
  return block != nullptr ? &block[key % kThreadKeysPerBlock] : nullptr;
}

template <typename T>
T* allocate_zeroed(RankData& data, std::size_t count) noexcept {
  return static_cast<T*>(rank_allocate_zeroed(*data.slot, count * sizeof(T)));
}

/// Makes room for it. Null: no memory.
ThreadValue* make_value(RankData& data, pthread_key_t key) noexcept {
  ThreadValues* values = values_of_caller(data);
  if (values == nullptr) {
    values = allocate_zeroed<ThreadValues>(data, 1);
    set_foreign_values(values);
  }
  if (values == nullptr) {
    return nullptr;
  }
  ThreadValue*& block = values->blocks[key / kThreadKeysPerBlock];
  if (block == nullptr) {
    block = allocate_zeroed<ThreadValue>(data, kThreadKeysPerBlock);
  }
  return block != nullptr ? &block[key % kThreadKeysPerBlock] : nullptr;
}

int shim_key_create(pthread_key_t* key, void (*destructor)(void*)) {
  RankData& data = calling_data();
  const SpinGuard guard{data.lock};
  for (std::uint32_t index = 0; index < kThreadKeyCountMax; ++index) {
    ThreadKey*& block = data.libc.keys.blocks[index / kThreadKeysPerBlock];
    if (block == nullptr) {
      block = allocate_zeroed<ThreadKey>(data, kThreadKeysPerBlock);
      if (block == nullptr) {
        return ENOMEM;
      }
    }
    ThreadKey& free = block[index % kThreadKeysPerBlock];
    const std::uint32_t generation = free.generation.load(std::memory_order_relaxed);
    if (!is_used(generation)) {
      free.destructor = destructor;
      free.generation.store(generation + 1, std::memory_order_relaxed);
      *key = index;
      return 0;
    }
  }
  return EAGAIN;
}

int shim_key_delete(pthread_key_t key) {
  RankData& data = calling_data();
  const SpinGuard guard{data.lock};
  ThreadKey* const made = find_key(data, key);
  const std::uint32_t generation =
      made != nullptr ? made->generation.load(std::memory_order_relaxed) : 0;
  if (!is_used(generation)) {
    return EINVAL;
  }
  made->generation.store(generation + 1, std::memory_order_relaxed);
  return 0;
}

void* shim_get(pthread_key_t key) {
  RankData* const data = find_calling_data();
  const ThreadValue* const value = data != nullptr ? find_value(*data, key) : nullptr;
  if (value == nullptr || value->value == nullptr ||
      value->generation != find_key(*data, key)->generation.load(std::memory_order_relaxed)) {
    return nullptr;
  }
  return value->value;
}

int shim_set(pthread_key_t key, const void* pointer) {
  RankData& data = calling_data();
  const ThreadKey* const made = find_key(data, key);
  const std::uint32_t generation =
      made != nullptr ? made->generation.load(std::memory_order_relaxed) : 0;
  if (!is_used(generation)) {
    return EINVAL;
  }
  ThreadValue* value = find_value(data, key);
  if (value == nullptr && pointer != nullptr) {
    value = make_value(data, key);
    if (value == nullptr) {
      return ENOMEM;
    }
  }
  if (value != nullptr) {
    *value = {const_cast<void*>(pointer), generation};
  }
  return 0;
}

/// Of <threads.h>.
int as_thread_error(int number) noexcept {
  return number == 0 ? thrd_success : number == ENOMEM ? thrd_nomem : thrd_error;
}
int shim_tss_create(tss_t* key, tss_dtor_t destructor) {
  return as_thread_error(shim_key_create(key, destructor));
}
void shim_tss_delete(tss_t key) {
  (void)shim_key_delete(key);
}
int shim_tss_set(tss_t key, void* value) {
  return as_thread_error(shim_set(key, value));
}

/// One round over the values of the calling thread. False: there was none.
bool run_round(RankData& data) noexcept {
  bool has_some = false;
  for (pthread_key_t key = 0; key < kThreadKeyCountMax; ++key) {
    ThreadValue* const value = find_value(data, key);
    void* const pointer = value != nullptr ? std::exchange(value->value, nullptr) : nullptr;
    if (pointer == nullptr) {
      continue;
    }
    const ThreadKey& made = *find_key(data, key);
    if (made.generation.load(std::memory_order_relaxed) == value->generation &&
        made.destructor != nullptr) {
      has_some = true;
      made.destructor(pointer);
    }
  }
  return has_some;
}

}  // namespace

void run_key_destructors(RankData& data) noexcept {
  for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS && run_round(data); ++round) {
  }
}

void forget_foreign_values(RankData& data) noexcept {
  ThreadValues* const values = foreign_values();
  if (values == nullptr) {
    return;
  }
  set_foreign_values(nullptr);
  for (ThreadValue* block : values->blocks) {
    rank_free(*data.slot, block);
  }
  rank_free(*data.slot, values);
}

std::span<const Shim> key_shims() {
  static const Shim shims[] = {
      function_shim("pthread_key_create", shim_key_create),
      function_shim("__pthread_key_create", shim_key_create),
      function_shim("pthread_key_delete", shim_key_delete),
      function_shim("pthread_getspecific", shim_get),
      function_shim("__pthread_getspecific", shim_get),
      function_shim("pthread_setspecific", shim_set),
      function_shim("__pthread_setspecific", shim_set),
      function_shim("tss_create", shim_tss_create),
      function_shim("tss_delete", shim_tss_delete),
      function_shim("tss_get", shim_get),
      function_shim("tss_set", shim_tss_set),
  };
  return shims;
}

}  // namespace sterna::program
