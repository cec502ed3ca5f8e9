// The socket at which sterna ps, top and doctor find a program that has no launcher: the setting
// `visible`.
//
// It is called program-<process> in status_folder(), and served by a kernel thread that sleeps
// until somebody asks. A client sends "status\n" and gets the frame of a NodeStatus
// (control_protocol.h); whatever else it sends is answered by a closed connection. One client at a
// time, for a second at most.
#pragma once

#include <memory>
#include <string>

#include <pthread.h>

#include "base/syscall.h"
#include "runtime/runtime.h"

namespace sterna::runtime {

class LoneStatus {
 public:
  /// `filler` as in Runtime::fill_status_by, called by the kernel thread until the end of this.
  static Result<std::unique_ptr<LoneStatus>> open(Runtime::StatusFiller filler, void* argument);
  /// By the process that opened it.
  ~LoneStatus();
  LoneStatus(const LoneStatus&) = delete;
  LoneStatus& operator=(const LoneStatus&) = delete;

 private:
  LoneStatus(Runtime::StatusFiller filler, void* argument, FileDescriptor listener,
             std::string path) noexcept
      : filler_{filler},
        argument_{argument},
        listener_{std::move(listener)},
        path_{std::move(path)} {}
  static void* main(void* status) noexcept;
  void serve() noexcept;
  void answer(int client) noexcept;

  // Constant after open, all of it.
  const Runtime::StatusFiller filler_;
  void* const argument_;
  const FileDescriptor listener_;
  const std::string path_;
  pthread_t kernel_thread_{};
};

}  // namespace sterna::runtime
