// Joins the loader to a node: what the code of ranks asks for, and what the node asks of the
// loader.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program/program.h"
#include "program/shims/host_calls.h"
#include "runtime/node.h"
#include "runtime/rank_runner.h"

namespace sterna::program {

class NodeHost final : public HostCalls, public runtime::RankRunner {
 public:
  /// `can_move`: what ranks have on their stacks is right in other processes, too.
  NodeHost(const runtime::Job& job, bool can_move) noexcept;

  // RankRunner.
  Result<> open() noexcept override;
  [[nodiscard]] bool creates_threads() const noexcept override;
  [[nodiscard]] std::size_t image_bytes() const noexcept override;
  Result<> create(memory::RankSlot& slot) noexcept override;
  [[nodiscard]] threads::Entry entry() const noexcept override { return Program::run; }
  [[nodiscard]] bool forget(memory::RankSlot& slot) noexcept override {
    return program_->forget(slot);
  }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept override;
  [[nodiscard]] std::string describe() const override;
  std::string describe_blockers(memory::RankSlot& slot) noexcept override;
  void for_each_image_extent(memory::RankSlot& slot,
                             FunctionRef<void(std::span<std::byte>)> visit) noexcept override;
  Result<> prepare(std::uint32_t rank) noexcept override;

  // HostCalls.
  [[noreturn]] void rank_exit(memory::RankSlot& slot, int status) noexcept override;
  [[noreturn]] void rank_abort(memory::RankSlot& slot, int signal) noexcept override;
  void write_output(memory::RankSlot& slot, OutputStream stream,
                    std::string_view lines) noexcept override;
  long read_input(memory::RankSlot& slot, std::span<char> bytes) noexcept override;
  void yield(memory::RankSlot& slot) noexcept override;
  void sleep_for(memory::RankSlot& slot, std::uint64_t duration_ns) noexcept override;

 private:
  const runtime::Job job_;  // Constant, as all here after open().
  const bool can_move_;
  std::unique_ptr<Program> program_;
};

}  // namespace sterna::program
