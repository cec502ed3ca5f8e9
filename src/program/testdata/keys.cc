// Thread-specific keys: as many as libc has in each rank, with values that move, and destructors.
#include <pthread.h>
#include <threads.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "test_calls.h"

static std::atomic<int> destroyed{0}, rounds{0};
static pthread_key_t again, counted;
static void count(void* value) {
  destroyed += static_cast<int>(reinterpret_cast<std::intptr_t>(value));
}
static void come_again(void* value) {
  ++rounds;
  pthread_setspecific(again, value);
}

int main(int argc, char**) {
  int bad = 0;
  std::vector<pthread_key_t> keys;
  pthread_key_t key;
  while (pthread_key_create(&key, nullptr) == 0) {
    keys.push_back(key);
  }
  bad |= keys.size() == 1024 ? 0 : 1;
  for (const pthread_key_t each : keys) {
    bad |= pthread_getspecific(each) == nullptr ? 0 : 2;
    bad |= pthread_setspecific(each, &bad + each) == 0 ? 0 : 2;
  }
  if (argc > 1) {
    sterna_test_pause();
  } else {
    sterna_test_yield();
  }
  for (const pthread_key_t each : keys) {
    bad |= pthread_getspecific(each) == &bad + each ? 0 : 4;
    bad |= pthread_key_delete(each) == 0 ? 0 : 8;
  }
  bad |= pthread_key_delete(keys[5]) == EINVAL ? 0 : 16;
  bad |= pthread_setspecific(keys[5], &bad) == EINVAL ? 0 : 16;
  bad |= pthread_key_create(&counted, count) == 0 ? 0 : 32;
  bad |= pthread_key_create(&again, come_again) == 0 ? 0 : 32;
  bad |= pthread_getspecific(counted) == nullptr ? 0 : 64;  // Of an old key with this number.
  pthread_setspecific(counted, &bad);
  std::vector<std::thread> threads;
  for (std::intptr_t i = 1; i <= 4; ++i) {
    threads.emplace_back([i] {
      if (pthread_getspecific(counted) == nullptr) {
        pthread_setspecific(counted, reinterpret_cast<void*>(i));
        pthread_setspecific(again, &again);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  tss_t named;
  bad |= tss_create(&named, nullptr) == thrd_success && tss_set(named, &key) == thrd_success &&
                 tss_get(named) == &key
             ? 0
             : 128;
  tss_delete(named);
  bad |= pthread_getspecific(counted) == &bad ? 0 : 256;
  if (argc > 1) {
    sterna_test_pause();
  }
  std::printf("bad %d, destroyed %d, rounds %d\n", bad, destroyed.load(), rounds.load());
  return 0;
}
