// The signal that preempts. Internal to threads/.
#pragma once

namespace sterna::threads {

class Carrier;

/// To the kernel thread of `carrier`, if it has begun. From anywhere.
void send_preempt_signal(const Carrier& carrier) noexcept;

}  // namespace sterna::threads
