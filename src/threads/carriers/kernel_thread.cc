// How kernel threads of the runtime are made.
#include "threads/carriers/kernel_thread.h"

#include <cerrno>
#include <csignal>
#include <initializer_list>

#include <sched.h>

namespace sterna::threads {

namespace {

int create(pthread_t& made, const KernelThread& thread, const ProcessorMask* processors) noexcept {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, thread.stack_bytes);
  if (processors != nullptr) {
    (void)pthread_attr_setaffinity_np(&attributes, sizeof *processors,
                                      reinterpret_cast<const cpu_set_t*>(processors->data()));
  }
  const int error = pthread_create(&made, &attributes, thread.main, thread.argument);
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

int start_kernel_thread(pthread_t& made, const KernelThread& thread) noexcept {
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
  int error = create(made, thread, thread.processors ? &*thread.processors : nullptr);
  if (thread.processors && (error == EINVAL || error == EPERM)) {
    error = create(made, thread, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace sterna::threads
