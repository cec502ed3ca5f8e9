// The calls of ranks, and running them to their end.
#include "program/testhost/test_host.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <unistd.h>

#include "base/syscall.h"
#include "program/fixed_addresses.h"
#include "program/shims/calling.h"
#include "runtime/scope.h"
#include "threads/this_thread.h"

namespace sterna::program {
namespace {

// What test programs call, like MPI functions (testdata/test_calls.h).

int test_rank() {
  return static_cast<int>(calling_data().slot->rank);
}

void test_yield() {
  on_worker(calling_data(), [] { threads::yield(); });
}

void test_pause() {
  RankData& data = calling_data();
  on_worker(data, [&] { TestHost::current->pause(*data.slot); });
}

bool is_of(const memory::RankSlot* slot) {
  void* volatile block = std::malloc(64);  // Volatile: or the compiler leaves it out.
  const bool is_its = memory::rank_slot_of(block) == slot;
  std::free(block);
  return is_its;
}

int test_memory() {
  const memory::RankSlot* const slot = calling_data().slot;
  const bool is_ranks = is_of(slot);
  const bool is_nodes_on_worker = on_worker(calling_data(), [] { return is_of(nullptr); });
  const runtime::RuntimeScope scope;
  const runtime::RuntimeScope again;
  const bool is_nodes = is_of(nullptr);
  const runtime::UserScope callback;
  return is_ranks && is_nodes_on_worker && is_nodes && is_of(slot) ? 1 : 0;
}

}  // namespace

TestHost* TestHost::current = nullptr;

TestHost::TestHost(const HostOptions& options) : options_{options} {
  auto space = memory::IsoSpace::open({.rank_count = options.rank_count});
  check(space.has_value(), "the iso space opens");
  space_ = std::move(space.value());
  auto team =
      threads::Team::open({.worker_count = options.worker_count, .iso_space = space_.get()});
  check(team.has_value(), "the team opens");
  team_ = std::move(team.value());
  outcomes_.resize(options.rank_count);
  current = this;
}

TestHost::~TestHost() {
  team_.reset();
  for (const std::uint32_t rank : mapped_) {
    // The space unmaps all at its end: who leaves threads behind in a test sees to their end.
    if (program_->forget(slot(rank))) {
      space_->unmap_rank(rank);
    }
  }
  current = nullptr;
}

Result<> TestHost::open(const std::string& path) {
  static const Shim functions[] = {function_shim("sterna_test_rank", test_rank),
                                   function_shim("sterna_test_yield", test_yield),
                                   function_shim("sterna_test_pause", test_pause),
                                   function_shim("sterna_test_memory", test_memory)};
  auto program = Program::open({.path = path, .host = this, .functions = functions});
  if (!program) {
    return program.error();
  }
  program_ = std::move(program.value());
  return Done{};
}

Result<> TestHost::create(std::uint32_t rank, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment) {
  auto mapped = space_->map_rank(rank, {.stack_bytes = options_.stack_bytes});
  if (!mapped) {
    return mapped.error();
  }
  mapped_.push_back(rank);
  if (auto images = space_->map_images(rank, program_->image_bytes()); !images) {
    return images.error();
  }
  std::vector<char*> words, names;
  for (const std::string& text : arguments) {
    words.push_back(const_cast<char*>(text.c_str()));
  }
  for (const std::string& text : environment) {
    names.push_back(const_cast<char*>(text.c_str()));
  }
  if (auto made = program_->create_rank(*mapped.value(), {words, names}); !made) {
    return made;
  }
  created_.push_back(rank);
  return Done{};
}

void TestHost::run() {
  running_ += static_cast<std::uint32_t>(created_.size());
  for (const std::uint32_t rank : created_) {
    memory::RankSlot& at = slot(rank);
    const std::uintptr_t descriptor = memory::descriptor_address(at.stack.base);
    const std::string name = "rank " + std::to_string(rank);
    at.thread =
        team_->adopt({reinterpret_cast<std::byte*>(at.stack.base), descriptor - at.stack.base,
                      reinterpret_cast<threads::Thread*>(descriptor)},
                     {.name = name.c_str()}, Program::run, &at);
    team_->start(*at.thread);
  }
  created_.clear();
  for (std::uint32_t left = running_; left != 0; left = running_) {
    running_.wait(left);
  }
}

std::vector<RankOutcome>& TestHost::run(const std::string& name, std::vector<std::string> arguments,
                                        const std::vector<std::string>& environment) {
  arguments.insert(arguments.begin(), name);
  auto opened = open(kTestPrograms + name);
  check(opened.has_value(), opened.has_value() ? "" : opened.error().text.c_str());
  for (std::uint32_t rank = 0; rank < options_.rank_count; ++rank) {
    auto created = create(rank, arguments, environment);
    check(created.has_value(), created.has_value() ? "" : created.error().text.c_str());
  }
  run();
  return outcomes_;
}

void TestHost::pause(memory::RankSlot& at) {
  threads::freeze(
      [](threads::Thread&, void* argument) {
        TestHost& host = *current;
        {
          const std::lock_guard guard{host.lock_};
          host.paused_.push_back(static_cast<memory::RankSlot*>(argument)->rank);
        }
        --host.running_;
        host.running_.notify_all();
      },
      &at);
}

void TestHost::resume_paused() {
  const std::vector<std::uint32_t> ranks = std::exchange(paused_, {});
  running_ += static_cast<std::uint32_t>(ranks.size());
  for (const std::uint32_t rank : ranks) {
    team_->start(*slot(rank).thread);
  }
}

void TestHost::take_in(memory::RankSlot& at) {
  mapped_.push_back(at.rank);
  auto arrived = program_->prepare(at.rank);
  check(arrived.has_value(), "a rank arrives");
  ++running_;
  at.thread = team_->reinstall(at.thread);
}

void TestHost::let_go(std::uint32_t rank) {
  team_->forget(*slot(rank).thread);
  std::erase(paused_, rank);
  std::erase(mapped_, rank);
  space_->unmap_rank(rank);
}

void TestHost::leave(memory::RankSlot& at) noexcept {
  threads::freeze(
      [](threads::Thread& thread, void*) {
        current->team_->forget(thread);
        --current->running_;
        current->running_.notify_all();
      },
      &at);
  __builtin_unreachable();
}

void TestHost::rank_exit(memory::RankSlot& at, int status) noexcept {
  {
    const std::lock_guard guard{lock_};
    outcomes_[at.rank].has_ended = true;
    outcomes_[at.rank].status = status;
  }
  leave(at);
}

void TestHost::rank_abort(memory::RankSlot& at, int signal) noexcept {
  {
    const std::lock_guard guard{lock_};
    outcomes_[at.rank].has_ended = true;
    outcomes_[at.rank].signal = signal;
  }
  leave(at);
}

void TestHost::write_output(memory::RankSlot& at, OutputStream stream,
                            std::string_view lines) noexcept {
  const std::lock_guard guard{lock_};
  RankOutcome& outcome = outcomes_[at.rank];
  (stream == OutputStream::out ? outcome.out : outcome.err).append(lines);
  outcome.pieces.emplace_back(lines);
}

long TestHost::read_input(memory::RankSlot& at, std::span<char> bytes) noexcept {
  if (at.rank != 0) {
    return 0;
  }
  const std::size_t count = std::min(bytes.size(), input.size());
  std::memcpy(bytes.data(), input.data(), count);
  input.erase(0, count);
  return static_cast<long>(count);
}

void TestHost::yield(memory::RankSlot&) noexcept {
  ++yields;
  threads::yield();
}

void TestHost::sleep_for(memory::RankSlot&, std::uint64_t duration_ns) noexcept {
  ++sleeps;
  threads::sleep_for(duration_ns);
}

}  // namespace sterna::program
