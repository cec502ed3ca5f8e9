// The messages between the launcher (launch/) and a node: what they hold and how they are written.
//
// One stream socket a node, inherited at its start; nobody else can speak on it. A frame is a
// header of kFrameHeaderBytes (u32 bytes of the body, u16 kind, u16 zero) and a body. Both sides
// must be of one version, told in `hello`. Decoders refuse what they do not understand; bodies are
// bounded.
//
//   node -> launcher: hello, then any of exchange, initialized, finalized, ended, abort, crash,
//                     output, status, moved, flushed, explained
//   launcher -> node: host, job (answers to hello), then blobs (one for each exchange), moved,
//                     peer_lost, ask_status, explain, move, flush, stop
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/priority.h"
#include "base/result.h"
#include "net/explanation.h"
#include "net/opening/bootstrap.h"

namespace sterna::runtime {

inline constexpr std::uint32_t kControlVersion = 11;
inline constexpr char kControlVariable[] = "STERNA_CONTROL_FD";  // Its value: the number of the fd.
inline constexpr std::size_t kFrameHeaderBytes = 8;
inline constexpr std::size_t kFrameBodyBytesMax = std::size_t{64} << 20;
inline constexpr std::size_t kExchangeBlobBytesMax = std::size_t{64} << 10;
inline constexpr std::size_t kOutputBytesMax = std::size_t{64} << 10;
inline constexpr std::size_t kControlTextBytesMax = std::size_t{64} << 10;
inline constexpr std::uint32_t kNodeCountMax = 4096;
inline constexpr std::uint32_t kRankCountMax = 1u << 20;

enum class FrameKind : std::uint16_t {
  hello = 1,    // Node: here I am (Hello).
  host,         // Launcher: what the node inherited (net::HostShare).
  job,          // Launcher: the whole job (Job).
  exchange,     // Node: its blob.
  blobs,        // Launcher: the blobs of all nodes.
  initialized,  // Node: a rank entered MPI_Init (u32 rank).
  finalized,    // Node: a rank has finalized; its end is an orderly one now (u32 rank).
  ended,        // Node mode: a rank has returned or exited (RankEnd).
  abort,        // Node: a rank ends the job (RankAbort).
  crash,        // Node: a signal is about to end the node (RankCrash).
  output,       // Node mode: bytes of standard output or error of a rank (RankOutput).
  status,       // Node: the answer to ask_status, and once at its end (NodeStatus).
  peer_lost,    // Launcher: a node has died (u32 node).
  ask_status,   // Launcher: somebody looks (sterna ps).
  move,         // Launcher: rank should go to node (MoveOrder).
  stop,         // Launcher: no rank runs any more; leave the process.
  moved,        // Node: it gives a rank away. Launcher: where it is, before peer_lost (RankMove).
  flush,        // Launcher: all ranks have left the node; hand over what is left (u32 number).
  flushed,      // Node: that is done (u32 number).
  explain,      // Launcher: how would a message go, and why? (WayQuestion)
  explained,    // Node: the answer (WayAnswer).
  relay,        // Between launcher and agents only (launch/agent_protocol.h).
};

enum class JobMode : std::uint8_t {
  process,  // One process a rank: the program itself, which calls MPI_Init.
  node,     // sterna-node processes, each runs some of the ranks.
};

struct Hello {
  std::uint32_t version = kControlVersion;
  std::uint32_t pid = 0;
};

/// The job as the launcher knows it; equal for all nodes but for map.node_index.
struct Job {
  JobMode mode = JobMode::process;
  net::JobMap map;
  std::string program;                 // Node mode: path of the executable, absolute.
  std::vector<std::string> arguments;  // argv, with argv[0]. Node mode.
  std::vector<std::pair<std::string, std::string>> settings;  // Options of the command line.
};

struct RankEnd {
  std::uint32_t rank = 0;
  std::int32_t exit_code = 0;
  // How far it came in MPI: what a node that it has left said of that may come later.
  bool is_initialized = false;
  bool is_finalized = false;
};

struct RankAbort {
  std::uint32_t rank = 0;
  std::int32_t code = 1;
  std::string text;  // For the user: who called, and why. May be empty.
};

inline constexpr std::uint32_t kNoRank = ~std::uint32_t{0};

struct RankCrash {
  std::uint32_t rank = kNoRank;  // kNoRank: the runtime's own code, or not known.
  std::int32_t signal = 0;
  std::uint64_t address = 0;  // What was touched (si_addr).
  std::uint64_t instruction = 0;
  std::string_view thread;  // Name, for the message; at most 64 bytes are sent.
  std::string_view text;    // One more sentence, for example of a stack that overflowed.
};

enum class OutputStream : std::uint8_t { output = 1, error = 2 };

struct RankOutput {
  std::uint32_t rank = 0;
  OutputStream stream = OutputStream::output;
  std::span<const std::byte> bytes;
};

struct RankStatus {
  std::uint32_t rank = 0;
  std::string state;         // One word: running, waiting, moving, ended.
  std::uint64_t cpu_ns = 0;  // Processor time since the start of the rank.
  double load = 0;           // Of one processor, lately: 0 to 1.
  std::uint64_t messages = 0;
  std::uint32_t moves = 0;
  std::string activity;      // One word: running, ready, waiting. Empty: not told.
  std::uint32_t worker = 0;  // Where it runs, or ran last.
  std::string refusal;       // Why it could not move, last time; empty: nothing.
};

/// A user thread, or a bubble: what is inside follows it, one deeper.
struct EntityStatus {
  std::uint32_t depth = 0;
  bool is_bubble = false;
  std::string name;   // May be empty.
  std::string state;  // Of a thread, one word: running, ready, waiting, held.
  std::string place;  // "numa 0": the run queue from which it goes on; "worker 2".
  std::uint8_t priority = kPriorityNormal;
  std::uint64_t key = 0;     // Among those of its kind: the same at each look.
  std::uint64_t holder = 0;  // Key of the bubble around it; 0: none.
  std::uint64_t cpu_ns = 0;  // Of a thread, since somebody looks: two looks make a rate.
  std::uint64_t load = 0;    // As the next ones: of it and of all that it holds.
  std::uint64_t memory = 0;  // Bytes that the program has said are its own.
  std::string last_place;    // "pu 3": where it runs or ran last; of a bubble, around all of it.
  std::uint32_t threads = 0;
  std::uint32_t running = 0;
  std::uint32_t ready = 0;
};

struct NodeStatus {
  std::uint32_t node = 0;
  std::uint32_t workers = 0;
  bool is_final = false;  // Sent at the end of the node: what the report is made of.
  std::uint64_t cpu_ns = 0;
  std::uint64_t arrived = 0;  // Ranks that moved here.
  std::uint64_t left = 0;
  std::uint32_t threads = 0;           // Of users and of the runtime, on its workers.
  std::vector<std::uint64_t> busy_ns;  // Of each worker: how long it has run threads.
  std::vector<RankStatus> ranks;       // Those that are here (final: those that ended here).
  std::vector<std::pair<std::string, std::uint64_t>> refusals;  // Reason, how often.
  std::vector<EntityStatus> entities;  // Of a program with user threads; the first ones.
  std::vector<std::string> faults;     // What its scheduler finds wrong, a sentence each.
};

struct MoveOrder {
  std::uint32_t rank = 0;
  std::uint32_t node = 0;
};

/// Who has the rank from now on. `move` counts its moves: what is told by different nodes arrives
/// in any order, and the greatest count is the news.
struct RankMove {
  std::uint32_t rank = 0;
  std::uint32_t node = 0;
  std::uint64_t move = 0;
};

/// How a message of so many bytes to a node would go from this one (sterna info --why --job).
struct WayQuestion {
  std::uint32_t number = 0;  // The answer has it again.
  std::uint32_t node = 0;
  std::uint64_t bytes = 0;  // net::kExplainedBytesMax at most.
};

struct WayAnswer {
  std::uint32_t number = 0;
  net::WayExplanation way;
};

struct FrameHeader {
  std::uint32_t body_bytes = 0;
  FrameKind kind = FrameKind::hello;
};

/// From the first kFrameHeaderBytes bytes; malformed if the kind is unknown or the body too long.
[[nodiscard]] Result<FrameHeader> decode_header(std::span<const std::byte> bytes) noexcept;

/// Whole frames, header first. That the bounds above are kept is the caller's business.
using Frame = std::vector<std::byte>;
[[nodiscard]] Frame encode(const Hello& hello);
[[nodiscard]] Frame encode(const net::HostShare& host);
[[nodiscard]] Frame encode(const Job& job);
[[nodiscard]] Frame encode(const RankEnd& end);
[[nodiscard]] Frame encode(const RankAbort& abort);
[[nodiscard]] Frame encode(const RankOutput& output);
[[nodiscard]] Frame encode(const NodeStatus& status);
[[nodiscard]] Frame encode(const MoveOrder& order);
[[nodiscard]] Frame encode(const RankMove& move);
[[nodiscard]] Frame encode(const WayQuestion& question);
[[nodiscard]] Frame encode(const WayAnswer& answer);
[[nodiscard]] Frame encode_exchange(std::span<const std::byte> blob);
[[nodiscard]] Frame encode_blobs(std::span<const std::vector<std::byte>> blobs);
/// initialized, finalized, peer_lost, flush, flushed.
[[nodiscard]] Frame encode_index(FrameKind kind, std::uint32_t index);
/// ask_status, stop.
[[nodiscard]] Frame encode_empty(FrameKind kind);
/// Writes into `memory`, allocates nothing: for a signal handler. Returns the bytes used.
inline constexpr std::size_t kCrashFrameBytesMax = 512;
[[nodiscard]] std::size_t encode_crash(const RankCrash& crash,
                                       std::span<std::byte, kCrashFrameBytesMax> memory) noexcept;

/// Of bodies. Views in the results point into `body`.
[[nodiscard]] Result<Hello> decode_hello(std::span<const std::byte> body);
[[nodiscard]] Result<net::HostShare> decode_host(std::span<const std::byte> body);
[[nodiscard]] Result<Job> decode_job(std::span<const std::byte> body);
[[nodiscard]] Result<RankEnd> decode_ended(std::span<const std::byte> body);
[[nodiscard]] Result<RankAbort> decode_abort(std::span<const std::byte> body);
[[nodiscard]] Result<RankCrash> decode_crash(std::span<const std::byte> body);
[[nodiscard]] Result<RankOutput> decode_output(std::span<const std::byte> body);
[[nodiscard]] Result<NodeStatus> decode_status(std::span<const std::byte> body);
[[nodiscard]] Result<MoveOrder> decode_move(std::span<const std::byte> body);
[[nodiscard]] Result<RankMove> decode_moved(std::span<const std::byte> body);
[[nodiscard]] Result<WayQuestion> decode_explain(std::span<const std::byte> body);
[[nodiscard]] Result<WayAnswer> decode_explained(std::span<const std::byte> body);
[[nodiscard]] Result<std::vector<std::vector<std::byte>>> decode_blobs(
    std::span<const std::byte> body);
[[nodiscard]] Result<std::uint32_t> decode_index(std::span<const std::byte> body);

}  // namespace sterna::runtime
