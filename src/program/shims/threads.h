// Kernel threads that ranks create: what must exist before the first.
#pragma once

#include <pthread.h>

#include "base/result.h"

namespace sterna::program {

/// Once a process.
Result<> prepare_threads();

// What a rank gets as pthread_create, pthread_join, pthread_detach and pthread_exit, for shims that
// stand on these. Called by code of a rank.
int create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                  void* argument);
int join_thread(pthread_t thread, void** result);
int detach_thread(pthread_t thread);
[[noreturn]] void exit_thread(void* result);

}  // namespace sterna::program
