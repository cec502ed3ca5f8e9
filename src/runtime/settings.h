// Every setting of Sterna in one table, and the settings that belong to the runtime itself.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/tunable.h"
#include "migration/fault.h"
#include "net/drivers/choice.h"
#include "threads/team.h"

namespace sterna::runtime {

/// Why a text is no value of `balance`.
[[nodiscard]] Result<> verify_balancer(std::string_view text);
/// Why a text is no value of `log`.
[[nodiscard]] Result<> verify_log(std::string_view text);

inline constexpr Tunable kDrivers{
    .name = "drivers",
    .kind = TunableKind::text,
    .fallback = "",
    .help =
        "networks to use, the preferred one first (for example: shm,tcp); one of several networks "
        "of a driver as tcp@eth0, a network that loses packets as drop(tcp); empty: all but those "
        "on request (sterna info --drivers)",
    .verify = net::verify_drivers};
inline constexpr Tunable kLog{
    .name = "log",
    .kind = TunableKind::text,
    .fallback = "warn",
    .help =
        "what is logged: a level (error, warn, info, debug), or by subsystem: "
        "warn,net=debug",
    .verify = verify_log};
inline constexpr Tunable kStackSize{
    .name = "stack_size",
    .kind = TunableKind::bytes,
    .fallback = "8M",
    .minimum = 64 << 10,
    .help = "stack of a mobile rank; at most an eighth of its slot"};
inline constexpr Tunable kSpin{
    .name = "spin",
    .kind = TunableKind::time,
    .fallback = "20us",
    .maximum = 1'000'000'000,
    .help =
        "the longest that who waits for a message or for work polls before it sleeps, as long as a "
        "sleep and its end are taken to cost both sides; how long it does is learnt from recent "
        "waits, and a process that measures its sleeps to cost more polls for as long as that, at "
        "most five times this, and for the end of what it has sent, 512 KiB or more, for a "
        "millisecond at most; where processes outnumber processors it yields as many times at "
        "most as this has "
        "microseconds; 0: it sleeps at once"};
// A tick that polls costs two switches of kernel threads and a round of polling, 10 us or less: a
// quarter of a hundredth of the time, and only when nobody else polls.
inline constexpr Tunable kTick{
    .name = "tick",
    .kind = TunableKind::time,
    .fallback = "4ms",
    .maximum = 1'000'000'000,
    .help = "while all workers of a node compute and make no call, the network is polled at this "
            "interval; where the node gets part of a processor only, and nothing comes, up to 16 "
            "times that; 0: not then"};
inline constexpr Tunable kBackground{
    .name = "background",
    .kind = TunableKind::choice,
    .fallback = "on",
    .choices = "on off",
    .help =
        "on: large messages of a process go on while its program computes, on another processor, "
        "or, where processes outnumber processors, every few milliseconds; off: only while it "
        "calls"};
inline constexpr Tunable kOneCaller{
    .name = "one_caller",
    .kind = TunableKind::choice,
    .fallback = "on",
    .choices = "on off",
    .help =
        "on: a process at MPI_THREAD_MULTIPLE takes no locks before a second thread of it calls; "
        "off: it does from the begin"};
inline constexpr Tunable kPreemption{
    .name = "preemption",
    .kind = TunableKind::choice,
    .fallback = "none",
    .choices = "none slice communication",
    .help =
        "whether a thread or mobile rank that computes gives its worker to others: none; slice: "
        "after a slice; communication: only to those of a higher priority, then it goes on"};
inline constexpr Tunable kSlice{
    .name = "slice",
    .kind = TunableKind::time,
    .fallback = "10ms",
    .minimum = 100'000,
    .maximum = 1'000'000'000,
    .help = "with preemption=slice: how long a thread computes while others wait; where its node "
            "gets part of a processor only, up to 16 times that by the clock"};
inline constexpr Tunable kCarriers{
    .name = "carriers",
    .kind = TunableKind::integer,
    .fallback = "256",
    .minimum = 1,
    .maximum = 65536,
    .help =
        "most kernel threads of a node or program that carry its workers, threads that were "
        "preempted and threads that sleep in the kernel; with so many, no more are preempted"};
inline constexpr Tunable kTakeOver{
    .name = "take_over",
    .kind = TunableKind::choice,
    .fallback = "auto",
    .choices = "auto off on",
    .help =
        "a worker whose thread sleeps in a system call while others wait goes on without it, after "
        "two ticks; auto: in programs with threads of their own, and for mobile ranks that make "
        "kernel threads (pthreads, OpenMP); on in any case with preemption"};
inline constexpr Tunable kAutoBubbles{
    .name = "auto_bubbles",
    .kind = TunableKind::choice,
    .fallback = "off",
    .choices = "off filiation",
    .help =
        "bubbles of programs that make none: off, or filiation: the threads that a thread creates "
        "belong to a bubble of their own"};
inline constexpr Tunable kOwnLocals{
    .name = "own_locals",
    .kind = TunableKind::choice,
    .fallback = "off",
    .choices = "off on",
    .help =
        "threads that a program creates have thread-local variables of their own, as with "
        "has_own_locals: each costs a kernel thread that sleeps"};
inline constexpr Tunable kPolicy{
    .name = "policy",
    .kind = TunableKind::text,
    .fallback = "",
    .help =
        "who places the threads of a program's bubbles, whatever the program says; empty: what the "
        "program says"};
inline constexpr Tunable kFollowProcessors{
    .name = "follow_processors",
    .kind = TunableKind::time,
    .fallback = "0",
    .maximum = 3'600'000'000'000,
    .help =
        "how often a program looks which processors it may still use (taskset, cpusets, hot "
        "removal): workers leave those that it may not, and return; 0: never"};
#ifdef NDEBUG
inline constexpr std::string_view kAuditFallback = "0";
#else  // Builds for debugging look by themselves.
inline constexpr std::string_view kAuditFallback = "1s";
#endif
inline constexpr Tunable kAudit{
    .name = "audit",
    .kind = TunableKind::time,
    .fallback = kAuditFallback,
    .maximum = 3'600'000'000'000,
    .help =
        "how often an idle worker of a program says on standard error what is wrong with its "
        "threads and bubbles, as sterna doctor does when it is asked; 0: never"};
inline constexpr Tunable kVisible{
    .name = "visible",
    .kind = TunableKind::flag,
    .fallback = "off",
    .help =
        "a program with threads of its own that was started without sterna run lets sterna ps, top "
        "and doctor find it: a socket, and a kernel thread that sleeps until somebody looks"};
inline constexpr Tunable kQueueArity{
    .name = "queue_arity",
    .kind = TunableKind::integer,
    .fallback = "0",
    .maximum = 65'536,
    .help =
        "a level of the machine with more places than that in one of its places gets groups, each "
        "with a run queue for bubbles; 0 or 1: none"};
inline constexpr Tunable kWorkerFirst{.name = "worker_first",
                                      .kind = TunableKind::integer,
                                      .fallback = "0",
                                      .maximum = 65'535,
                                      .help =
                                          "the first processor that a node's workers get, counted "
                                          "from 0 and from left to right among "
                                          "those that the node has"};
inline constexpr Tunable kWorkerStride{.name = "worker_stride",
                                       .kind = TunableKind::integer,
                                       .fallback = "1",
                                       .minimum = 1,
                                       .maximum = 65'535,
                                       .help =
                                           "workers get every so-many-th of the node's processors, "
                                           "from worker_first on; a program that "
                                           "asks for more workers fills the gaps afterwards"};
inline constexpr Tunable kBalance{.name = "balance",
                                  .kind = TunableKind::text,
                                  .fallback = "none",
                                  .help =
                                      "who moves ranks between nodes, by their measured load: "
                                      "a balancer, as in refine or places(burst)",
                                  .verify = verify_balancer};
inline constexpr Tunable kBalanceInterval{.name = "balance_interval",
                                          .kind = TunableKind::time,
                                          .fallback = "500ms",
                                          .minimum = 1'000'000,
                                          .help = "time between two balancings"};
inline constexpr Tunable kFault{.name = "fault",
                                .kind = TunableKind::text,
                                .fallback = "",
                                .help =
                                    "for tests: dies at a step of a move, as in source:offered or "
                                    "destination:received@2 (node 2)",
                                .verify = migration::FaultPoint::verify};

inline constexpr Tunable kMoveTimeout{
    .name = "move_timeout",
    .kind = TunableKind::time,
    .fallback = "10s",
    .minimum = 1'000'000,
    .help =
        "a rank stays when the node where it should go does not answer, or takes no byte, for "
        "so long"};
inline constexpr Tunable kRankMemory{
    .name = "rank_memory",
    .kind = TunableKind::choice,
    .fallback = "shared",
    .choices = "shared private",
    .help =
        "how ranks have their memory: shared, so that they move within a host without a copy, or "
        "private"};
inline constexpr Tunable kShuffle{
    .name = "shuffle",
    .kind = TunableKind::integer,
    .fallback = "0",
    .maximum = 1'000'000,
    .help =
        "for tests: every rank moves to a random node at each n-th place where it can; 0: never"};
inline constexpr Tunable kShuffleSeed{.name = "shuffle_seed",
                                      .kind = TunableKind::integer,
                                      .fallback = "1",
                                      .maximum = 1'000'000'000,
                                      .help = "where the random numbers of shuffle begin"};

inline constexpr Tunable kDirectMessages{
    .name = "direct_messages",
    .kind = TunableKind::choice,
    .fallback = "on",
    .choices = "off on",
    .help =
        "short messages between mobile ranks of one worker stay on the rank's own thread pointer: "
        "a third of the latency"};

inline constexpr Tunable kPackChecks{
    .name = "pack_checks",
    .kind = TunableKind::flag,
    .fallback = "off",
    .help =
        "messages in pieces (pack.h) that this node packs carry the length and the modes of each "
        "piece, 8 bytes more: who unpacks another piece is refused, with a text that says both; "
        "nodes may differ"};

inline constexpr Tunable kTrace{
    .name = "trace",
    .kind = TunableKind::text,
    .fallback = "",
    .help =
        "file for a timeline of what happens, which Perfetto and sterna trace read (sterna run "
        "--trace); empty: none"};
inline constexpr Tunable kTraceBytes{.name = "trace_bytes",
                                     .kind = TunableKind::bytes,
                                     .fallback = "1G",
                                     .minimum = 1 << 20,
                                     .maximum = std::int64_t{1} << 40,
                                     .help = "most that a node records; then it goes on without"};

namespace detail {
[[nodiscard]] inline threads::PreemptMode preempt_mode(std::string_view name) noexcept {
  return name == "slice"           ? threads::PreemptMode::slice
         : name == "communication" ? threads::PreemptMode::communication
                                   : threads::PreemptMode::none;
}
}  // namespace detail

/// What the settings say of a team: ticks, preemption, take-over.
template <typename Settings>
void apply_settings(const Settings& settings, threads::TeamOptions& options) {
  options.tick_ns = static_cast<std::uint64_t>(settings.number(kTick));
  options.preempt = detail::preempt_mode(settings.text(kPreemption));
  options.slice_ns = static_cast<std::uint64_t>(settings.number(kSlice));
  if (const std::string_view take_over = settings.text(kTakeOver); take_over != "auto") {
    options.take_over = take_over == "on";
  }
  options.carriers_max = static_cast<std::uint32_t>(settings.number(kCarriers));
}

/// What is wrong with worker_first on a node with so many processors.
[[nodiscard]] Error first_worker_error(std::size_t first, std::size_t processors);

/// All tables of all layers, in the order of the floors. For `sterna info`, the launcher and nodes.
[[nodiscard]] std::span<const std::span<const Tunable>> all_tunables();

}  // namespace sterna::runtime
