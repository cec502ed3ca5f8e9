// The seam between the loader and the node, both ways.
#include "program/node/host.h"

#include <cstdio>

#include <unistd.h>

#include "base/syscall.h"
#include "program/blocker_table.h"
#include "program/blockers.h"
#include "program/shims/calling.h"
#include "runtime/capi/io/rank_descriptors.h"
#include "runtime/node_of_process.h"
#include "runtime/process_rank.h"
#include "threads/carriers/blocking.h"
#include "threads/this_thread.h"

namespace sterna::program {
namespace {

runtime::Node& node() noexcept {
  return *runtime::node_of_process();
}

int real_descriptor(memory::RankSlot& slot, int fd) noexcept {
  const int redirected = data_of(slot).redirected[fd];
  return redirected >= 0 ? redirected : fd;
}

void note_descriptor(memory::RankSlot& slot, int fd, const char* what, const char* name) noexcept {
  add_blocker(data_of(slot), BlockerKind::file, static_cast<std::uint64_t>(fd), "%s %s is open",
              what, name);
}

constexpr runtime::capi::RankDescriptors kDescriptors{real_descriptor, note_descriptor};

std::vector<char*> pointers_of(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) {
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  return pointers;
}

}  // namespace

NodeHost::NodeHost(const runtime::Job& job, bool can_move) noexcept
    : job_{job}, can_move_{can_move} {}

Result<> NodeHost::open() noexcept {
  Result<std::unique_ptr<Program>> program = Program::open({.path = job_.program, .host = this});
  if (!program) {
    return program.error();
  }
  program_ = std::move(program.value());
  runtime::set_foreign_lookup(foreign_slot);
  runtime::capi::rank_descriptors.store(&kDescriptors, std::memory_order_release);
  return Done{};
}

bool NodeHost::creates_threads() const noexcept {
  return program_->creates_threads();
}

std::size_t NodeHost::image_bytes() const noexcept {
  return program_->image_bytes();
}

Result<> NodeHost::create(memory::RankSlot& slot) noexcept {
  const std::vector<char*> arguments = pointers_of(job_.arguments);
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    environment.push_back(*entry);
  }
  return program_->create_rank(slot, {.arguments = arguments, .environment = environment});
}

std::uint64_t NodeHost::fingerprint() const noexcept {
  return can_move_ ? program_->fingerprint() : 0;
}

std::string NodeHost::describe() const {
  return can_move_
             ? program_->describe()
             : "this system does not let a process turn off the randomisation of addresses or "
               "the signing of return addresses";
}

std::string NodeHost::describe_blockers(memory::RankSlot& slot) noexcept {
  return program::describe_blockers(slot);
}

void NodeHost::for_each_image_extent(memory::RankSlot& slot,
                                     FunctionRef<void(std::span<std::byte>)> visit) noexcept {
  program_->for_each_image_extent(slot, visit);
}

Result<> NodeHost::prepare(std::uint32_t rank) noexcept {
  return program_->prepare(rank);
}

void NodeHost::rank_exit(memory::RankSlot& slot, int status) noexcept {
  std::fflush(stdout);  // What libraries have written that the rank has loaded.
  node().end_rank(slot, status);
}

void NodeHost::rank_abort(memory::RankSlot& slot, int signal) noexcept {
  node().kill_rank(slot, signal);
}

void NodeHost::write_output(memory::RankSlot& slot, OutputStream stream,
                            std::string_view lines) noexcept {
  const auto to =
      stream == OutputStream::err ? runtime::OutputStream::error : runtime::OutputStream::output;
  node().runtime().control().write_output(slot.rank, to, std::as_bytes(std::span{lines}));
}

long NodeHost::read_input(memory::RankSlot& slot, std::span<char> bytes) noexcept {
  if (slot.rank != 0) {
    return 0;
  }
  return threads::blocking([&] {
    return system_call([&] { return ::read(STDIN_FILENO, bytes.data(), bytes.size()); });
  });
}

void NodeHost::yield(memory::RankSlot&) noexcept {
  threads::yield();
}

void NodeHost::sleep_for(memory::RankSlot&, std::uint64_t duration_ns) noexcept {
  threads::sleep_for(duration_ns);
}

}  // namespace sterna::program
