// How kernel threads of the runtime are made.
#include "threads/carriers/kernel_thread.h"

#include <csignal>
#include <initializer_list>

namespace sterna::threads {

int start_kernel_thread(pthread_t& made, const KernelThread& thread) noexcept {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, thread.stack_bytes);
  // A new thread has the mask of its maker.
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  if (thread.signals == Signals::faults) {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
      sigdelset(&blocked, fault);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  }
  const int error = pthread_create(&made, &attributes, thread.main, thread.argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace sterna::threads
