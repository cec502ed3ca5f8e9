// A node's end of the socket to its launcher: learns the job, exchanges addresses, reports what its
// ranks do, hears of lost nodes and orders.
//
// Without a launcher (the program was started alone) the object stands for a job of one rank: the
// exchange gives back the own blob, and reports go nowhere. Reports may be made by any kernel
// thread on its own thread pointer, do not switch, and block only while the launcher does not read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/annotate.h"
#include "base/kernel_lock.h"
#include "base/result.h"
#include "base/syscall.h"
#include "net/opening/bootstrap.h"
#include "runtime/control_protocol.h"

namespace sterna::runtime {

/// What the launcher tells a running node. Called inside ControlClient::poll, by its caller.
class ControlEvents {
 public:
  virtual void on_peer_lost(std::uint32_t node) noexcept = 0;
  /// Answer with report_status.
  virtual void on_status_wanted() noexcept = 0;
  /// Answer with report_way.
  virtual void on_way_wanted(const WayQuestion&) noexcept {}
  /// Where a rank is, as far as the launcher knows; comes before on_peer_lost of where it was.
  virtual void on_rank_moved(const RankMove&) noexcept {}
  virtual void on_move_ordered(std::uint32_t rank, std::uint32_t node) noexcept = 0;
  /// All ranks have left this node: hand over what is left of them, then report_flushed(number).
  virtual void on_flush_ordered(std::uint32_t /*number*/) noexcept {}
  /// No rank of the job runs any more, or the launcher has gone: send the final status, leave the
  /// process soon.
  virtual void on_stop() noexcept = 0;

 protected:
  ~ControlEvents() = default;
};

class ControlClient final : public net::Bootstrap {
 public:
  /// Reads STERNA_CONTROL_FD, takes the variable out of the environment, sets close-on-exec on all
  /// inherited descriptors, says hello and waits for the job. Without the variable: a job of one
  /// rank alone, with a random secret.
  [[nodiscard]] static Result<std::unique_ptr<ControlClient>> open() noexcept;
  /// The same over a given connected socket (tests).
  [[nodiscard]] static Result<std::unique_ptr<ControlClient>> open(FileDescriptor socket) noexcept;
  ~ControlClient() override;

  /// True: there is no launcher; MPI_Abort and the like just end the process.
  [[nodiscard]] bool is_alone() const noexcept { return !socket_.is_open(); }
  [[nodiscard]] const Job& description() const noexcept { return job_; }
  [[nodiscard]] const net::JobMap& job() const noexcept override { return job_.map; }
  [[nodiscard]] const net::HostShare& host() const noexcept override { return host_; }
  Result<std::vector<std::vector<std::byte>>> exchange(
      std::span<const std::byte> blob) noexcept override;

  void report_initialized(std::uint32_t rank) noexcept {
    send(encode_index(FrameKind::initialized, rank));
  }
  /// After this the end of the rank's process (or of the rank) with code 0 is an orderly end.
  void report_finalized(std::uint32_t rank) noexcept {
    send(encode_index(FrameKind::finalized, rank));
  }
  /// Node mode only; in process mode the launcher sees it.
  void report_flushed(std::uint32_t number) noexcept {
    send(encode_index(FrameKind::flushed, number));
  }
  void report_ended(RankEnd end) noexcept;
  /// A rank changes its node; sent by the old one, before the new one may let it run: who reads
  /// this and then sees a node end knows whether the rank was lost with it.
  void report_moved(const RankMove& move) noexcept;
  /// The launcher ends the job with `code`; the caller waits to be killed, or leaves.
  void report_abort(const RankAbort& abort) noexcept;
  /// Safe in a signal handler: allocates nothing, waits at most 100 ms for other reporters.
  void report_crash(const RankCrash& crash) noexcept;
  /// Any number of bytes; alone: they are written to descriptor 1 or 2. The launcher puts lines
  /// together.
  void write_output(std::uint32_t rank, OutputStream stream,
                    std::span<const std::byte> bytes) noexcept;
  void report_status(const NodeStatus& status) noexcept;
  void report_way(const WayAnswer& answer) noexcept;

  /// Readable when poll() has something to do; -1 when alone.
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  /// Handles what has come, without blocking. One thread at a time, not during exchange(). Returns
  /// the number of events.
  std::uint32_t poll(ControlEvents& events) noexcept;

 private:
  ControlClient() noexcept = default;

  enum class Read : std::uint8_t { frame, nothing, gone, malformed };

  void stand_alone() noexcept;
  [[nodiscard]] Result<> greet();
  /// Reads what is there of the next frame, not a byte more; `frame`: it is in header_ and input_.
  [[nodiscard]] Read read_frame() noexcept;
  /// As read_frame, but sleeps until there is one, the launcher has gone or the time is over.
  [[nodiscard]] Result<> wait_frame(std::uint64_t deadline_ns);
  [[nodiscard]] std::span<const std::byte> body() const noexcept;
  [[nodiscard]] bool handle_frame(ControlEvents& events);
  void send(std::span<const std::byte> frame) noexcept;
  void send_locked(std::span<const std::byte> frame) noexcept STERNA_REQUIRES(send_lock_);

  FileDescriptor socket_;  // Constant after open; alone: not open.
  Job job_;                // Constant after open.
  net::HostShare host_;    // Constant after open.
  KernelLock send_lock_;   // One frame at a time onto the socket.
  // The frame that is being read. Guard: the caller of poll or exchange.
  std::vector<std::byte> input_;
  std::size_t input_bytes_ = 0;  // Of input_: read so far.
  FrameHeader header_;
  bool has_header_ = false;
  bool stopped_ = false;  // on_stop was called.
};

}  // namespace sterna::runtime
