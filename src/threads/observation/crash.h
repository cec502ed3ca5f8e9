// Signal stacks of workers, so that a stack overflow can be reported. Internal to threads/.
#pragma once

namespace sterna::threads {

/// Gives the calling kernel thread an alternate signal stack; returns its memory (null: none).
void* use_signal_stack() noexcept;
void drop_signal_stack(void* stack) noexcept;

}  // namespace sterna::threads
