// The processor time of threads, for as long as somebody looks at them: who is not accounted pays
// nothing for its switches before the first look, and nothing again some seconds after the last.
//
// A look leaves an order in the thread (Hold::measured). Whoever takes the thread from a run queue
// next makes it an accounted one (ThreadFlag::measured says that it was not born so), and a switch
// to it makes it a usual one again when nobody has looked for a while. Until its order is carried
// out a thread that runs has not been in a queue since: it has had its processor all the time.
// tests: measure_test.cc, measure_model_test.cc.
#pragma once

#include <cstdint>

#include "threads/thread.h"

namespace sterna::threads {

inline constexpr std::uint64_t kMeasuredForNs = 10'000'000'000;

/// Processor time of `thread` since somebody looked first; of an accounted one, since it began. It
/// begins anew when nobody has looked for kMeasuredForNs. From anywhere, one caller at a time, with
/// a lock that keeps the slot of the thread: if it has ended meanwhile, the answer means nothing.
[[nodiscard]] std::uint64_t measure(Thread& thread) noexcept;

// Internal to threads/: by who has the thread to himself.
/// Carries out the order.
void begin_measuring(Thread& thread) noexcept;
/// It is about to run; `now` in cycles. If nobody looks any more, its switches are usual ones
/// again.
void end_measuring_if_over(Thread& thread, std::uint64_t now) noexcept;

}  // namespace sterna::threads
