// What the programs share that test has_own_locals: variables, an object that counts its ends,
// threads that have them.
#pragma once

#include <vector>

#include <sterna/thread.h>

#include "expect.h"

namespace {

int made = 0;       // Atomic, as the next one.
int destroyed = 0;  // Of thread_local objects.

thread_local int count = 17;

// Made at the first use in each thread.
class Object {
 public:
  Object() : words_(10, 1) { __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED); }
  ~Object() {
    EXPECT(words_.size() >= 10);  // A destructor may use other variables of the thread.
    count = 0;
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  void add() { words_.push_back(1); }

 private:
  std::vector<int> words_;
};
thread_local Object object;

sterna_thread* start(sterna_thread_function function, void* argument,
                     sterna_thread_options options) {
  sterna_thread* thread = nullptr;
  EXPECT(sterna_thread_create(&options, function, argument, &thread) == STERNA_SUCCESS);
  return thread;
}

sterna_thread_options with_locals() {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.has_own_locals = 1;
  return options;
}

void join(sterna_thread* thread, sterna_status status = STERNA_SUCCESS) {
  EXPECT(sterna_thread_join(thread) == status);
}

}  // namespace
