// Our standard input, carried to the process that takes it (the one of rank 0).
#pragma once

#include "launch/job.h"

namespace sterna::launch {

class InputRelay final : private DescriptorHandler {
 public:
  InputRelay(Loop& loop, Job& job);
  ~InputRelay();
  /// Reads on when what was read before has been taken; called now and then.
  void step();

 private:
  void on_ready(int fd, short events) override;
  void end();

  Loop& loop_;
  Job& job_;
  bool is_open_ = true;
};

/// Standard input is a terminal, which only we may read: ranks are no foreground process group.
[[nodiscard]] bool input_is_terminal() noexcept;

}  // namespace sterna::launch
