// One node of a job, whole: builds the layers in order and ends them in reverse.
//
// Process mode: the process is one rank, its kernel threads call; there is no team. Node mode: a
// team of workers runs mobile ranks; rpc, migration and balance stand on it (runtime/node.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "base/spin_lock.h"
#include "base/tunable.h"
#include "net/transport.h"
#include "progress/one_caller.h"
#include "progress/progress.h"
#include "runtime/background/background.h"
#include "runtime/control.h"
#include "runtime/control_source.h"
#include "runtime/rank_context.h"

namespace sterna::runtime {

struct RuntimeOptions {
  std::unique_ptr<ControlClient> control;
  ControlEvents* events = nullptr;  // Beyond what Runtime does itself; outlives it; may be null.
};

/// What both modes have. Made and closed by one kernel thread.
class Runtime final : private ControlEvents {
 public:
  /// Reads the settings, opens the network, tells nobody yet that ranks are here. Nothing is
  /// polled.
  [[nodiscard]] static Result<std::unique_ptr<Runtime>> open(RuntimeOptions options);

  /// Network and launcher are polled from now on: all handlers of what may come are registered, and
  /// RuntimeOptions::events can take its calls.
  [[nodiscard]] Result<> start_polling();

  /// Process mode in one call: connects to the launcher (or stands alone), opens, and makes the
  /// context of the process's rank, which find_current_rank() returns from then on.
  [[nodiscard]] static Result<std::unique_ptr<Runtime>> open_process();

  /// Drains the network within a bounded time, then ends the layers. The process rank's context is
  /// gone afterwards.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] ControlClient& control() noexcept { return *control_; }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  /// The setting pack_checks.
  [[nodiscard]] bool checks_packs() const noexcept { return checks_packs_; }
  [[nodiscard]] const Log& log() const noexcept { return *log_; }
  [[nodiscard]] progress::Progress& progress() noexcept { return *progress_; }
  [[nodiscard]] net::Transport& transport() noexcept { return *transport_; }
  [[nodiscard]] const net::JobMap& job() const noexcept { return control_->job(); }

  /// One kernel thread at a time calls from now on, as MPI promises below MPI_THREAD_MULTIPLE: what
  /// only serves several costs less. No effect once serve_any_caller() was called.
  void serve_one_caller() noexcept;
  /// The same until a second thread calls (progress/one_caller.h): then, while no other thread is
  /// inside, `shared(argument)` is called, and all is as without. By the first thread, within a
  /// call of MPI; the runtime was opened in that call. False: several threads are served.
  [[nodiscard]] bool serve_one_caller_until_shared(progress::OneCaller::Share shared,
                                                   void* argument) noexcept;
  /// Messages of this process go on while its program computes, from now on: by MPI_Init_thread,
  /// last. `is_shared`: several threads call. No effect with the setting
  /// background=off. Where processes outnumber processors they go on by the clock.
  void progress_in_background(bool is_shared) noexcept;
  /// Of a process that has it; else null.
  [[nodiscard]] Background* background() noexcept { return background_.get(); }
  /// Several kernel threads may call from now on, for ever. By a thread that takes turns with all
  /// others, unless there is one caller until it is shared.
  void serve_any_caller() noexcept;

  /// Fills a context for a rank on this node and installs its endpoint. `heap` is the rank's system
  /// heap, `slot` null in process mode.
  [[nodiscard]] Result<> start_rank(RankContext& context, std::uint32_t rank, memory::Heap& heap,
                                    memory::RankSlot* slot);
  /// Process mode: what the program adds to its status when somebody looks (sterna ps, top,
  /// doctor). Called inside a poll, from any kernel thread; null: nothing any more, when this
  /// returns.
  using StatusFiller = void (*)(void* argument, NodeStatus& status);
  void fill_status_by(StatusFiller filler, void* argument) noexcept;

  /// Takes leave of the other nodes and waits, within a bounded time, until the network has taken
  /// the last packets. Nothing is sent afterwards.
  void end_network() noexcept;

  /// The rank takes no more messages.
  void end_rank(RankContext& context) noexcept;

  /// The rank ends the whole job: tells the launcher, says why on standard error if there is none.
  /// Does not return.
  [[noreturn]] void abort_job(std::uint32_t rank, int code, const std::string& text) noexcept;

 private:
  [[nodiscard]] std::uint64_t background_tick_ns() const noexcept;
  void end_background() noexcept;
  static void share(void* runtime) noexcept;
  void keep_costs() noexcept;
  explicit Runtime(RuntimeOptions options);
  [[nodiscard]] Result<> load_settings();
  void start_trace();
  [[nodiscard]] Result<> open_network();
  [[nodiscard]] progress::ProgressOptions progress_options() const;

  void on_peer_lost(std::uint32_t node) noexcept override;
  void on_status_wanted() noexcept override;
  void on_way_wanted(const WayQuestion& question) noexcept override;
  void on_rank_moved(const RankMove& move) noexcept override;
  void on_move_ordered(std::uint32_t rank, std::uint32_t node) noexcept override;
  void on_flush_ordered(std::uint32_t number) noexcept override;
  void on_stop() noexcept override;

  std::unique_ptr<ControlClient> control_;
  ControlEvents* const events_;
  Settings settings_;  // Constant after open, as all that follows.
  bool checks_packs_ = false;
  std::unique_ptr<Log> log_;
  std::unique_ptr<progress::OneCaller> one_caller_;
  progress::OneCaller::Share shared_ = nullptr;  // What the user of one_caller_ adds to share().
  void* shared_argument_ = nullptr;
  std::unique_ptr<progress::Progress> progress_;
  std::unique_ptr<net::Transport> transport_;
  bool is_polled_ = false;
  std::string costs_path_;  // Where measured costs are kept; empty: nowhere.
  std::unique_ptr<Background> background_;
  bool may_have_threads_ = false;  // Written by the one caller there is.
  SpinLock filler_lock_;
  StatusFiller filler_ = nullptr;  // Guard: filler_lock_, as of the next one.
  void* filler_argument_ = nullptr;
  std::unique_ptr<ControlSource> control_source_;
  std::unique_ptr<RankContext> process_context_;  // Process mode.
};

}  // namespace sterna::runtime
