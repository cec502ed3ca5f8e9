// Handing over what is left in a node that all ranks have left.
#include "migration/flush.h"

#include <memory>
#include <vector>

#include "base/wire.h"
#include "threads/this_thread.h"

namespace sterna::migration {
namespace {

constexpr std::string_view kFlushService = "migration.flush";
constexpr std::size_t kStackBytes = 248 << 10;
constexpr std::size_t kPlacesMax = 1 << 16;  // In one message.
constexpr std::size_t kPlaceBytes = 12;
constexpr std::uint64_t kLookNs = 1'000'000;

rpc::Bytes encode_places(std::uint8_t step, std::span<const net::RankPlace> places) {
  rpc::Bytes bytes;
  wire::Writer writer{bytes, 5 + kPlaceBytes * places.size()};
  writer.u8(step);
  writer.u32(static_cast<std::uint32_t>(places.size()));
  for (const net::RankPlace& place : places) {
    writer.u32(place.rank);
    writer.u32(place.node);
    writer.u32(place.move);
  }
  check(writer.ok(), "places of ranks fit their message");
  return bytes;
}

}  // namespace

Flush::Flush(const MigratorOptions& options, Migrator& migrator)
    : options_{options},
      migrator_{migrator},
      log_{options_.log == nullptr ? Logger{} : Logger{*options_.log, "migration"}},
      fault_{options_.fault_step, options_.transport->job().node_index} {
  // In the poll: its place among the frames that come is what the answer is about.
  options_.rpc->add_service(kFlushService, rpc::RunIn::poll, on_message, this);
}

void Flush::order(std::uint32_t number) noexcept {
  {
    const SpinGuard guard{lock_};
    number_ = number;
    if (is_running_) {
      return;
    }
    is_running_ = true;
  }
  Result<threads::Thread*> thread = options_.team->spawn(
      {.name = "flush", .stack_bytes = kStackBytes, .detached = true, .may_wait = false}, run,
      this);
  if (!thread) {
    // Not told: the launcher takes the node for one that still holds messages, and asks again.
    log_.debug("no flush now: {}", thread.error().text);
    const SpinGuard guard{lock_};
    is_running_ = false;
  }
}

void Flush::run(void* self) {
  static_cast<Flush*>(self)->carry_out();
}

void Flush::carry_out() noexcept {
  for (;;) {
    std::uint32_t number = 0;
    {
      const SpinGuard guard{lock_};
      number = number_;
    }
    fault_.reached("source:flushing");
    bool is_done = options_.transport->keeps_order() && wait_until_empty() && ask_all(Step::retire);
    for (std::uint64_t before = ~std::uint64_t{0};
         is_done && before != options_.transport->rerouted_count(false);) {
      // A frame that changed its gate meanwhile may be behind the question there: once more.
      before = options_.transport->rerouted_count(false);
      is_done = ask_all(Step::passed);
      while (is_done && options_.transport->rerouted_count(true) != 0) {
        threads::sleep_for(kLookNs);
      }
    }
    if (is_done) {
      options_.host->flushed(number);
      fault_.reached("source:flushed");
    }
    log_.debug("flush {}: {}", number,
               is_done ? "done" : "not done, a rank came or a node refused");
    const SpinGuard guard{lock_};
    if (number == number_) {
      is_running_ = false;
      return;
    }
  }
}

/// The launcher hears of a departure before it is complete here. False: a rank is here again.
bool Flush::wait_until_empty() noexcept {
  while (migrator_.is_departing()) {
    threads::sleep_for(kLookNs);
  }
  return options_.residents->count() == 0;
}

bool Flush::ask_all(Step step) noexcept {
  std::vector<net::RankPlace> places;
  if (step == Step::retire) {
    options_.transport->for_each_moved(
        [&](const net::RankPlace& place) { places.push_back(place); });
  }
  const net::JobMap& job = options_.transport->job();
  bool is_answered = true;
  for (std::size_t first = 0; first == 0 || first < places.size(); first += kPlacesMax) {
    const rpc::Bytes bytes = encode_places(
        static_cast<std::uint8_t>(step),
        std::span{places}.subspan(first, std::min(kPlacesMax, places.size() - first)));
    std::vector<rpc::PendingCall> calls(job.node_count);
    for (std::uint32_t node = 0; node < job.node_count; ++node) {
      if (node != job.node_index) {
        options_.rpc->start(node, kFlushService, bytes, calls[node]);
      }
    }
    for (std::uint32_t node = 0; node < job.node_count; ++node) {
      if (node != job.node_index) {
        calls[node].done.wait(*options_.progress);
        is_answered = is_answered && (calls[node].reply.has_value() ||
                                      calls[node].reply.error().code == Errc::closed);
      }
    }
  }
  return is_answered;
}

Result<rpc::Bytes> Flush::on_message(void* self, const rpc::Request& request) {
  net::Transport& transport = *static_cast<Flush*>(self)->options_.transport;
  const net::JobMap& job = transport.job();
  wire::Reader reader{request.arguments};
  const std::uint8_t step = reader.u8();
  const std::uint32_t count = reader.count(kPlaceBytes);
  std::vector<net::RankPlace> places;
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const std::uint32_t rank = reader.u32();
    const std::uint32_t node = reader.u32();
    places.push_back({.rank = rank, .node = node, .move = reader.u32()});
    if (rank >= job.rank_count || node >= job.node_count) {
      reader.refuse();
    }
  }
  if (!reader.finished() || step > static_cast<std::uint8_t>(Step::passed) ||
      request.from_node == job.node_index) {
    return Error{Errc::malformed, "a step of a flush that cannot be read"};
  }
  if (step == static_cast<std::uint8_t>(Step::retire)) {
    transport.retire(request.from_node, places);
  }
  return rpc::Bytes{};
}

}  // namespace sterna::migration
