// Progress while the program of a process computes: a kernel thread that moves large messages on
// between two calls of the program. It sleeps unless some are open, and runs where the program does
// not: paper 004, 4.1, for programs without workers of ours.
//
// Mostly the runtime of a process has one caller at a time (Runtime::serve_one_caller),
// and its locks exclude nobody. So the program hands the runtime over and takes it back, as whole:
//
//   program:    leaves a call with a large message open:  owner = nobody   (release, A)
//   background: nobody -> background (acquire, A); polls; background -> nobody (release, B)
//   program:    enters the next call:  nobody -> program  (acquire, B); waits while it is polled
//
// Who has changed the owner to itself has the runtime alone. Who leaves nothing open pays for two
// increments a call. Where several threads call the locks work, and nothing is handed over; a
// process may come to that at any time (share(), progress/one_caller.h).
//
// Who wakes it: a peer that waits for us and finds the flag of its driver (Channel::ring_absent),
// so that a program that computes pays nothing for being away; where a driver has no such flag, the
// kernel, when something arrives (away_bell.h).
//
// Where processes outnumber processors nobody wakes it but the program, once, and then it looks by
// the clock (ticks.cc): a look at once would take a processor from who computes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <pthread.h>

#include "base/cpu.h"
#include "net/endpoint.h"
#include "net/transfer/absence.h"
#include "net/transport.h"
#include "progress/progress.h"
#include "runtime/background/away_bell.h"

namespace sterna::runtime {

class Background {
 public:
  struct Options {
    progress::Progress* progress;  // These three live longer.
    net::Transport* transport;
    net::Endpoint* endpoint;
    bool is_shared;  // Several threads call: enter() and leave() are not called.
    // Not 0: it looks as often, for as long as something is open.
    std::uint64_t tick_ns = 0;
  };

  explicit Background(const Options& options) noexcept;
  /// By the program; ends the thread.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // By the one caller, at the outermost entry and end of each of its calls.
  void enter() noexcept {
    if (depth_++ == 0 && is_away_) [[unlikely]] {
      come_back();
    }
  }
  void leave() noexcept {
    if (--depth_ == 0 && (is_wanted_.load(std::memory_order_relaxed) || kept_.is_any()))
        [[unlikely]] {
      leave_open();
    }
  }
  /// Where several threads call: one of them has sent something, and a network may keep some of it.
  void has_sent() noexcept {
    if (is_shared_.load(std::memory_order_relaxed) && kept_.is_any()) [[unlikely]] {
      want();
    }
  }
  /// Whether the next call must come through enter(). By the one caller.
  [[nodiscard]] bool is_away() const noexcept { return is_away_; }
  /// Whoever makes it within a call says so.
  void begin_inside() noexcept { depth_ = 1; }

  /// For who excludes the program from its calls: it does not poll when this returns, until share()
  /// or the end of a call.
  void exclude() noexcept;
  /// From now on several threads call, for ever. After exclude().
  void share() noexcept;

  /// A message of so many bytes is about to be sent to `rank`: if all of it will be left to the
  /// thread, the answer wakes it, on the processor of who answers. The program need not then, for
  /// which it would be several microseconds later away. Within a call.
  void expect_answer(std::uint32_t rank, std::uint64_t bytes) noexcept;
  /// A large message was started that is not done. Within a call.
  void want() noexcept;
  /// One was received at once: that had better been left to others if the program computes now.
  /// Some of them are followed by a look at when it comes back.
  void watch() noexcept {
    if (++watchable_ % kWatchedOne == 0 && !is_shared_.load(std::memory_order_relaxed) &&
        !looks_by_clock()) {
      is_watched_ = true;
      is_wanted_.store(true, std::memory_order_relaxed);
    }
  }

  /// One was sent at once. Within a call.
  void watch_sent() noexcept;

  /// What goes on between messages, as operations of several rounds: called in the place of the
  /// program after each poll that moved something, never by two at a time, and never while the
  /// program is in a call unless several threads call.
  struct Work {
    void (*advance)(void* argument) noexcept = nullptr;
    void* argument = nullptr;
  };
  /// Within a call. An empty one: the last is not called any more when this returns.
  void serve_also(Work work) noexcept;

  /// For tests: rounds that moved something.
  [[nodiscard]] std::uint64_t moves() const noexcept {
    return moves_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kWatchedOne = 4;  // Of so many.
  static constexpr std::uint64_t kShortAbsenceNs = progress::kMomentOfAbsenceNs;
  static constexpr std::uint32_t kShortAbsences =
      2;  // One after the other: more are likely to come.

  enum class Owner : std::uint32_t { program, nobody, background };
  enum class Looked : std::uint8_t { nothing, something, program_is_here };
  /// What the thread does: it sleeps until it is rung for, or for a moment, or it looks by itself.
  enum class Duty : std::uint8_t { sleeps, naps, looks };

  static void* thread_main(void* background) noexcept;
  void start() noexcept;
  void leave_open() noexcept;
  void go_away() noexcept;
  [[nodiscard]] bool looks_by_clock() const noexcept { return options_.tick_ns != 0; }
  void leave_to_ticks() noexcept;
  void want_ticks() noexcept;
  void run_by_clock() noexcept;
  void sleep_and_hear(std::uint64_t ns) noexcept;
  void sleep_until_wanted() noexcept;
  void set_away() noexcept;
  void has_nothing_open() noexcept;
  [[nodiscard]] bool poll_until_quiet() noexcept;
  [[nodiscard]] bool poll_before_leaving() noexcept;
  [[nodiscard]] bool is_told() const noexcept;
  void come_back() noexcept;
  void learn_habit(std::uint64_t back_ns) noexcept;
  void tell_habit(std::uint64_t back_ns) noexcept;
  void keep_off_the_program() noexcept;
  /// What the flag says then.
  [[nodiscard]] std::uint32_t away(bool is_for_moment) const noexcept;
  void run() noexcept;
  void leave_to_program() noexcept;
  Looked serve() noexcept;
  [[nodiscard]] Looked look(bool is_last = false) noexcept;
  [[nodiscard]] bool is_away_for_moments() const noexcept;
  [[nodiscard]] bool stays_away() noexcept;
  [[nodiscard]] bool is_left_to(Duty duty) const noexcept;
  [[nodiscard]] bool keeps_work_to_itself() noexcept;
  [[nodiscard]] bool is_work_kept() noexcept;
  [[nodiscard]] bool sleep_until_rung() noexcept;
  void nap() noexcept;
  [[nodiscard]] bool sleep_for_network(std::uint64_t ns) noexcept;
  [[nodiscard]] bool has_open() const noexcept;
  void advance_work() noexcept;

  const Options options_;
  // In shared memory if a driver has it there; else own_flag_. A hint: what peers write there
  // decides when it is polled, never who polls.
  std::atomic<std::uint32_t>* const flag_;
  const net::KeptCount& kept_;    // Of what was sent: the peer may wait for that.
  const bool has_network_;        // Some way rings nobody.
  const bool needs_descriptors_;  // And the kernel is to ring.
  AwayBell bell_;
  // Set once, while the owner is the program: whoever looks afterwards finds one of the two.
  std::atomic<bool> is_shared_;

  std::uint32_t depth_ = 0;  // The program's, as the next ones.
  bool is_away_ = false;
  bool is_watched_ = false;  // The end of this call, or of the absence after it.
  std::uint32_t watchable_ = 0;
  bool computes_ = true;          // After its calls, by its habit.
  std::uint64_t told_at_poll_ = 0;  // The bell was armed in this call, after so many polls; or 0.
  std::uint64_t rung_at_ns_ = 0;  // In time of its processor, as it went away; 0: it did not ring.
  std::uint64_t left_ns_ = 0;     // As it went away, and had rung.
  bool has_thread_ = false;
  bool has_failed_ = false;
  int avoided_processor_ = -1;
  std::uint32_t visits_ = 0;
  pthread_t thread_{};
  std::atomic<bool> is_wanted_{false};
  std::atomic<std::uint32_t> own_flag_{0};
  std::atomic<std::int32_t> thread_id_{0};
  std::atomic<std::uint64_t> moves_{0};
  // By exchange (acquire), cleared by release: guards work_, and is held while it is called. Who
  // finds it taken leaves the work to who has it.
  std::atomic<bool> is_work_taken_{false};
  Work work_;
  alignas(kCacheLineBytes) std::atomic<Owner> owner_{Owner::program};
  std::atomic<bool> is_program_waiting_{false};
  // Relaxed: hints. Written by the program: since when it is away, how often shortly of late.
  std::atomic<std::uint64_t> away_since_ns_{0};
  std::atomic<std::uint32_t> short_absences_{0};
  std::atomic<Duty> duty_{Duty::sleeps};
  // Sequentially consistent: see C in keeps_work_to_itself(). Set by the program, cleared by the
  // thread: something was left to do of which that was not told. And the thread's: it sleeps for
  // some milliseconds only, or for a tick.
  std::atomic<bool> has_kept_work_{false};
  std::atomic<bool> is_napping_{false};
  // Its thread's: something was left to do at its last look, of which nobody tells, and how long it
  // rests then.
  bool has_work_ = false;
  bool has_open_ = false;  // At its last look, if the program was away.
  std::uint32_t parts_ = 0;  // Looks in a row with something of which no event came.
  std::uint64_t awaited_absence_ns_ = 0;  // Of which it has seen that it lasts.
  std::uint64_t rest_ns_ = 0;
  std::atomic<bool> is_stopped_{false};
};

/// That of a process whose runtime has one caller, for RuntimeScope; else null. Written within a
/// call of that caller. Not inline: libmpi_abi.so must see that of libsterna.so.
extern std::atomic<Background*> process_background;

}  // namespace sterna::runtime
