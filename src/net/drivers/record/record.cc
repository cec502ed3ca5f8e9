// Decorator `record`: writes all that goes through a driver into a file of its node.
#include <array>
#include <cstdio>

#include <fmt/format.h>

#include "base/annotate.h"
#include "base/kernel_lock.h"
#include "base/syscall.h"
#include "net/drivers/builtin.h"
#include "net/drivers/decorators/decorator.h"
#include "net/drivers/record/recording.h"

namespace sterna::net {
namespace record {
namespace {

using decorators::Decorator;
using decorators::DecoratorChannel;

/// The file, for the senders and the poller: events have one order. A sender holds it around its
/// send, so no answer can be written before what it answers.
class Tape {
 public:
  ~Tape() {
    if (file_ != nullptr) {
      {
        const KernelGuard guard{lock};
        put({EventKind::ended, node_, now_ns(), {}});
      }
      std::fclose(file_);
    }
  }
  Result<> open(const std::string& path, const Header& header) {
    file_ = std::fopen(path.c_str(), "wbe");
    if (file_ == nullptr) {
      return system_error("cannot write the recording " + path + " (record_file)",
                          last_error_number());
    }
    node_ = header.node;
    append(buffer_, header);
    return write() ? Result<>{Done{}} : system_error("cannot write " + path, last_error_number());
  }
  /// At once: the last packets of a node that is killed are what its recording is read for.
  void put(const Event& event) noexcept STERNA_REQUIRES(lock) {
    append(buffer_, event);
    is_whole_ = write() && std::fflush(file_) == 0 && is_whole_;
  }
  [[nodiscard]] bool is_whole() noexcept {
    const KernelGuard guard{lock};
    return is_whole_;
  }
  KernelLock lock;

 private:
  bool write() noexcept {
    const bool is_written = std::fwrite(buffer_.data(), 1, buffer_.size(), file_) == buffer_.size();
    buffer_.clear();
    return is_written;
  }
  std::FILE* file_ = nullptr;  // Constant after open(), as the next.
  std::uint32_t node_ = 0;
  std::vector<std::byte> buffer_;
  bool is_whole_ STERNA_GUARDED_BY(lock) = true;
};

class RecordChannel final : public DecoratorChannel {
 public:
  RecordChannel(Decorator& driver, std::uint32_t node, Tape& tape) noexcept
      : DecoratorChannel{driver, node}, tape_{tape} {}

 private:
  SendState send(std::span<const Piece> pieces) noexcept override {
    const KernelGuard guard{tape_.lock};
    const SendState state = inner().try_send(pieces);
    if (state == SendState::accepted) {
      whole_.clear();
      for (const Piece& piece : pieces) {
        whole_.insert(whole_.end(), piece.begin(), piece.end());
      }
      tape_.put({EventKind::sent, node(), now_ns(), whole_});
    }
    return state;
  }
  Tape& tape_;
  std::vector<std::byte> whole_;  // The sender's.
};

class RecordDriver final : public Decorator {
 public:
  RecordDriver(std::unique_ptr<Driver> inner, const DecoratorOptions& options) noexcept
      : Decorator{std::move(inner), options} {}
  Result<> open(const std::string& path, std::uint32_t node_count) {
    return tape_.open(path, {.node = self_,
                             .node_count = node_count,
                             .packet_bytes_max = capabilities_.packet_bytes_max,
                             .is_ordered = capabilities_.is_ordered,
                             .is_reliable = capabilities_.is_reliable});
  }

 private:
  std::unique_ptr<DecoratorChannel> make_channel(std::uint32_t node) override {
    return std::make_unique<RecordChannel>(*this, node, tape_);
  }
  void on_packet(std::uint32_t from_node, Packet packet) noexcept override {
    {
      const KernelGuard guard{tape_.lock};
      tape_.put({EventKind::came, from_node, now_ns(), packet});
    }
    Decorator::on_packet(from_node, packet);
  }
  void on_peer_lost(std::uint32_t node, std::string_view reason) noexcept override {
    {
      const KernelGuard guard{tape_.lock};
      const auto text = std::as_bytes(std::span{reason});
      tape_.put({EventKind::lost, node, now_ns(), text.first(std::min(text.size(), kReasonMax))});
    }
    Decorator::on_peer_lost(node, reason);
  }
  std::string own_figures() const override {
    return tape_.is_whole() ? std::string{} : "the disk was full: the recording is not whole";
  }

  static constexpr std::size_t kReasonMax = kPacketBytesMin;
  mutable Tape tape_;
};

constexpr Tunable kFile{.name = "record_file",
                        .kind = TunableKind::text,
                        .fallback = "sterna-record",
                        .help = "where packets are recorded: this name, a dot and the node"};
constexpr std::array kTunables{kFile};

void change(Capabilities& capabilities, const DecoratorOptions& /*options*/) noexcept {
  // Bytes that are copied directly are in no packet.
  capabilities.direct_latency_ns = capabilities.direct_mb_per_s = 0;
}

Result<std::unique_ptr<Driver>> wrap(std::unique_ptr<Driver> inner,
                                     const DecoratorOptions& options) noexcept {
  const JobMap& job = options.driver.bootstrap->job();
  const std::string path =
      fmt::format("{}.{}", decorators::text_of(options, kFile), job.node_index);
  std::unique_ptr<RecordDriver> driver{new (std::nothrow) RecordDriver(std::move(inner), options)};
  if (driver == nullptr) {
    return Errc::out_of_memory;
  }
  if (Result<> opened = driver->open(path, job.node_count); !opened) {
    return opened.error();
  }
  return std::unique_ptr<Driver>{std::move(driver)};
}

}  // namespace
}  // namespace record

constinit const DecoratorEntry kRecordDecorator{
    .name = "record",
    .summary = "writes all packets into a file of each node, for driver replay",
    .tunables = record::kTunables,
    .wrap = record::wrap,
    .change = record::change};

}  // namespace sterna::net
