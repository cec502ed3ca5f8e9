// The mapped file that records go to.
//
// Lanes: each kernel thread writes to one of kLaneCount lanes, chosen by its thread pointer; a
// lane's word is the place of its next record. Two kernel threads that share a lane lose nothing,
// they only meet: a place is taken by compare-and-swap. At the end of a chunk whoever comes takes a
// new one from the file; of two at once one wins, and the other's chunk stays empty.
// Orders: relaxed throughout, for a place orders nothing. The kind of a record is released, so that
// a reader of the file in another process that sees a kind sees the record (trace_format.h).
#include "base/trace.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "base/syscall.h"
#include "base/system_file.h"
#include "base/thread_pointer.h"

namespace sterna::trace {

namespace detail {
constinit std::atomic<bool> is_on{false};
}

namespace {

constexpr std::size_t kLaneCount = 64;
constexpr std::size_t kBlockBytes = 4096;
constexpr std::size_t kNameBytesMax = 120;
constexpr std::size_t kNameBytesPerRecord = 12;

struct alignas(kCacheLineBytes) Lane {
  std::atomic<std::uint64_t> next{0};  // Offset in the file; at the start of a chunk: none left.
};

// Written by start(), before is_on; the rest by anyone, as the head of this file says.
struct File {
  std::byte* memory = nullptr;
  int fd = -1;
  std::uint64_t bytes_max = 0;
  std::uint32_t node = 0;
  std::atomic<std::uint64_t> next_chunk{0};
  std::array<Lane, kLaneCount> lanes;
};
constinit File file;

FileHeader& header() noexcept {
  return *reinterpret_cast<FileHeader*>(file.memory);
}

/// Blocks of the disk for a part of the file: without them a write to mapped memory would be a
/// SIGBUS. False: the disk is full.
bool reserve(std::uint64_t offset, std::uint64_t bytes) noexcept {
  long result = raw_system_call(SYS_fallocate, file.fd, 0, static_cast<long>(offset),
                                static_cast<long>(bytes));
  if (result == -EOPNOTSUPP) {  // Then a byte a block does it.
    const std::byte zero{};
    result = 0;
    for (std::uint64_t at = offset; at < offset + bytes && result >= 0; at += kBlockBytes) {
      result = raw_system_call(SYS_pwrite64, file.fd, reinterpret_cast<long>(&zero), 1,
                               static_cast<long>(at));
    }
  }
  return result >= 0;
}

ClockPair read_clocks() noexcept {
  const ClockReading both = read_clocks_at_once();
  return {.ticks = both.cycles, .ns = both.ns};
}

/// Offset of a chunk that is the caller's, or 0.
std::uint64_t take_chunk(std::uint32_t lane) noexcept {
  const std::uint64_t offset = file.next_chunk.fetch_add(kChunkBytes, std::memory_order_relaxed);
  if (offset + kChunkBytes > file.bytes_max || !reserve(offset, kChunkBytes)) {
    if (detail::is_on.exchange(false, std::memory_order_relaxed)) {  // Else it has ended.
      std::atomic_ref<std::uint64_t>{header().refused_chunks}.fetch_add(1,
                                                                        std::memory_order_relaxed);
    }
    return 0;
  }
  auto* const chunk = reinterpret_cast<ChunkHeader*>(file.memory + offset);
  chunk->node = file.node;
  chunk->lane = lane;
  chunk->begin = read_clocks();
  std::atomic_ref<std::uint64_t>{chunk->magic}.store(kChunkMagic, std::memory_order_release);
  return offset;
}

/// Null: there is no room.
Record* take_record() noexcept {
  const auto index = static_cast<std::uint32_t>(mix64(thread_pointer()) % kLaneCount);
  std::atomic<std::uint64_t>& next = file.lanes[index].next;
  std::uint64_t place = next.load(std::memory_order_relaxed);
  for (;;) {
    if (place % kChunkBytes == kFileHeaderBytes % kChunkBytes) [[unlikely]] {
      const std::uint64_t chunk = take_chunk(index);
      if (chunk == 0) {
        return nullptr;
      }
      const std::uint64_t first = chunk + sizeof(ChunkHeader);
      if (next.compare_exchange_strong(place, first + sizeof(Record), std::memory_order_relaxed)) {
        return reinterpret_cast<Record*>(file.memory + first);
      }
    } else if (next.compare_exchange_weak(place, place + sizeof(Record),
                                          std::memory_order_relaxed)) {
      return reinterpret_cast<Record*>(file.memory + place);
    }
  }
}

void put(Record& record, Kind kind, std::uint64_t ticks, std::uint16_t worker,
         std::uint64_t subject, std::uint64_t value, std::uint32_t extra,
         std::uint8_t part) noexcept {
  record.ticks = ticks;
  record.subject = subject;
  record.value = value;
  record.extra = extra;
  record.worker = worker;
  record.part = part;
  std::atomic_ref<std::uint8_t>{record.kind}.store(static_cast<std::uint8_t>(kind),
                                                   std::memory_order_release);
}

/// A forked child has its parent's trace mapped, shared: it records nothing, in no lane.
void forget_in_child() noexcept {
  detail::is_on.store(false, std::memory_order_relaxed);
  file.next_chunk.store(file.bytes_max, std::memory_order_relaxed);
  for (Lane& lane : file.lanes) {
    lane.next.store(kFileHeaderBytes, std::memory_order_relaxed);
  }
}

void copy_text(char (&to)[kHostNameBytes], std::string_view text) noexcept {
  std::memcpy(to, text.data(), std::min(text.size(), kHostNameBytes - 1));
}

void fill_header(const Options& options) {
  FileHeader& its = header();
  its.version = kFormatVersion;
  its.node = options.node;
  its.node_count = options.node_count;
  its.rank_count = options.rank_count;
  its.pid = static_cast<std::uint32_t>(::getpid());
  its.ns_per_tick = calibrate_cycles().ns_per_cycle();
  its.begin = read_clocks();
  its.wired_up_ns = its.begin.ns;
  std::array<char, kHostNameBytes> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  copy_text(its.host, host.data());
  copy_text(its.boot_id, boot_id());
  std::atomic_ref<std::uint64_t>{its.magic}.store(kFileMagic, std::memory_order_release);
}

}  // namespace

void detail::write(Kind kind, std::uint16_t worker, std::uint64_t subject, std::uint64_t value,
                   std::uint32_t extra) noexcept {
  if (Record* const record = take_record(); record != nullptr) {
    put(*record, kind, cycles(), worker, subject, value, extra, 0);
  }
}

Result<> start(const Options& options) {
  check(!is_on(), "a process records into one trace at a time");
  const long fd = system_call(
      [&] { return ::open(options.path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); });
  if (fd < 0) {
    return system_error("trace: cannot write " + options.path, static_cast<int>(-fd));
  }
  FileDescriptor descriptor{static_cast<int>(fd)};
  // Beyond `ulimit -f` a write would be a signal.
  rlimit limit{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  static_cast<void>(::getrlimit(RLIMIT_FSIZE, &limit));
  const std::uint64_t wanted = std::min<std::uint64_t>(options.bytes_max, limit.rlim_cur);
  const std::uint64_t bytes_max = std::min<std::uint64_t>(
      wanted / kChunkBytes * kChunkBytes + kFileHeaderBytes, limit.rlim_cur);
  file.fd = descriptor.get();
  if (::ftruncate(descriptor.get(), static_cast<off_t>(bytes_max)) != 0 ||
      !reserve(0, kFileHeaderBytes)) {
    return system_error("trace: no room for " + options.path, last_error_number());
  }
  void* const memory =
      ::mmap(nullptr, bytes_max, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  if (memory == MAP_FAILED) {
    return system_error("trace: cannot map " + options.path, last_error_number());
  }
  file.memory = static_cast<std::byte*>(memory);
  file.fd = descriptor.release();
  file.bytes_max = bytes_max;
  file.node = options.node;
  file.next_chunk.store(kFileHeaderBytes, std::memory_order_relaxed);
  for (Lane& lane : file.lanes) {
    lane.next.store(kFileHeaderBytes, std::memory_order_relaxed);
  }
  fill_header(options);
  static constinit bool is_fork_watched = false;  // By the one thread that starts traces.
  if (!is_fork_watched) {
    is_fork_watched = ::pthread_atfork(nullptr, nullptr, forget_in_child) == 0;
  }
  detail::is_on.store(true, std::memory_order_release);
  return Done{};
}

void note_wire_up() noexcept {
  if (is_on()) {
    header().wired_up_ns = now_ns();
  }
}

void note_workers(std::uint32_t count) noexcept {
  if (is_on()) {
    header().worker_count = count;
  }
}

void stop() noexcept {
  if (!detail::is_on.exchange(false, std::memory_order_relaxed)) {
    return;
  }
  // What was never used; chunks that are in use stay. Nobody takes one from now on: who saw is_on
  // just before would write beyond the end of the file, which is a SIGBUS.
  const std::uint64_t end = file.next_chunk.exchange(file.bytes_max, std::memory_order_relaxed);
  static_cast<void>(::ftruncate(file.fd, static_cast<off_t>(std::min(end, file.bytes_max))));
}

void name(std::uint64_t key, std::string_view text) noexcept {
  const std::uint64_t ticks = cycles();
  text = text.substr(0, kNameBytesMax);
  for (std::uint8_t part = 0; !text.empty(); ++part) {
    Record* const record = take_record();
    if (record == nullptr) {
      return;
    }
    char bytes[kNameBytesPerRecord] = {};
    const std::size_t count = std::min(text.size(), sizeof bytes);
    std::memcpy(bytes, text.data(), count);
    text.remove_prefix(count);
    std::uint64_t value = 0;
    std::uint32_t extra = 0;
    std::memcpy(&value, bytes, sizeof value);
    std::memcpy(&extra, bytes + sizeof value, sizeof extra);
    put(*record, Kind::name, ticks, kNoWorker, key, value, extra, part);
  }
}

}  // namespace sterna::trace
