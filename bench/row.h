// What a row of the benchmark is: a figure of ours beside its reference, measured in the same run.
//
// To add a row: a file in rows/, a line in rows.cc, a line in README.md.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sterna::bench {

class Bench;

/// One line of the output.
struct Figure {
  std::string_view id;
  std::string params = {};
  std::string_view unit = {};
  std::optional<double> value = {};  // Empty: could not be measured; `note` says why.
  std::string reference = {};        // What is compared with.
  std::optional<double> reference_value = {};
  bool more_is_better = false;        // Rates and bandwidths.
  std::optional<double> target = {};  // Of the ratio; empty: for information, not judged.
  std::string note = {};
};

/// Cost-like: ours over the reference, smaller is better; the inverse if more is better. Empty
/// unless both were measured.
[[nodiscard]] std::optional<double> ratio(const Figure& figure) noexcept;

/// Whether the target is met; empty without a target or without a reference. A figure of ours that
/// could not be measured is a failure.
[[nodiscard]] std::optional<bool> passes(const Figure& figure) noexcept;

struct Row {
  std::string_view id;
  std::string_view summary;  // For --list: ours against what.
  double target;
  void (*run)(const Row& row, Bench& bench);
};

[[nodiscard]] std::span<const Row> rows();

void run_yield(const Row& row, Bench& bench);
void run_create(const Row& row, Bench& bench);
void run_yield_fiber(const Row& row, Bench& bench);
void run_create_fiber(const Row& row, Bench& bench);
void run_barrier_fiber(const Row& row, Bench& bench);
void run_mutex_fiber(const Row& row, Bench& bench);
void run_semaphore_fiber(const Row& row, Bench& bench);
void run_condition_fiber(const Row& row, Bench& bench);
void run_reuse(const Row& row, Bench& bench);
void run_spawn_tbb(const Row& row, Bench& bench);
void run_handover(const Row& row, Bench& bench);
void run_million(const Row& row, Bench& bench);
void run_latency_node(const Row& row, Bench& bench);
void run_latency_mobile(const Row& row, Bench& bench);
void run_latency_shm(const Row& row, Bench& bench);
void run_latency_tcp(const Row& row, Bench& bench);
void run_bandwidth_shm(const Row& row, Bench& bench);
void run_copy_shm(const Row& row, Bench& bench);
void run_exchange_shm(const Row& row, Bench& bench);
void run_exchange_tcp(const Row& row, Bench& bench);
void run_unmatched_shm(const Row& row, Bench& bench);
void run_datatypes(const Row& row, Bench& bench);
void run_rate_shm(const Row& row, Bench& bench);
void run_bandwidth_tcp(const Row& row, Bench& bench);
void run_threads_16(const Row& row, Bench& bench);
void run_threads_rate(const Row& row, Bench& bench);
void run_multiple(const Row& row, Bench& bench);
void run_overlap_sender(const Row& row, Bench& bench);
void run_overlap_receiver(const Row& row, Bench& bench);
void run_bsp(const Row& row, Bench& bench);
void run_oversubscribed(const Row& row, Bench& bench);
void run_start(const Row& row, Bench& bench);
void run_rpc_latency(const Row& row, Bench& bench);
void run_rpc_bandwidth(const Row& row, Bench& bench);
void run_paper_000_t6(const Row& row, Bench& bench);
void run_paper_000_f5(const Row& row, Bench& bench);
void run_paper_000_t7(const Row& row, Bench& bench);
void run_paper_002_f2(const Row& row, Bench& bench);
void run_paper_002_f3(const Row& row, Bench& bench);
void run_multirail(const Row& row, Bench& bench);
void run_layers(const Row& row, Bench& bench);
void run_migrate(const Row& row, Bench& bench);
void run_gang_fairness(const Row& row, Bench& bench);
void run_conduction(const Row& row, Bench& bench);
void run_lu_tasks(const Row& row, Bench& bench);
void run_bubble_overhead(const Row& row, Bench& bench);
void run_bubble_spawn(const Row& row, Bench& bench);
void run_balance(const Row& row, Bench& bench);
void run_loop_uneven(const Row& row, Bench& bench);
void run_paper_000_t1(const Row& row, Bench& bench);
void run_paper_000_t2(const Row& row, Bench& bench);
void run_paper_000_f1(const Row& row, Bench& bench);
void run_paper_000_t3(const Row& row, Bench& bench);
void run_paper_000_f21(const Row& row, Bench& bench);
void run_paper_000_f22(const Row& row, Bench& bench);
void run_paper_000_f3(const Row& row, Bench& bench);
void run_paper_000_f4(const Row& row, Bench& bench);
void run_paper_000_t4(const Row& row, Bench& bench);
void run_paper_000_t5(const Row& row, Bench& bench);
void run_paper_002_x1(const Row& row, Bench& bench);
void run_paper_002_f5(const Row& row, Bench& bench);
void run_paper_002_f6(const Row& row, Bench& bench);
void run_paper_002_f7(const Row& row, Bench& bench);
void run_paper_003_t1(const Row& row, Bench& bench);
void run_paper_004_f4(const Row& row, Bench& bench);
void run_paper_004_f5(const Row& row, Bench& bench);
void run_paper_004_f6(const Row& row, Bench& bench);
void run_paper_004_x1(const Row& row, Bench& bench);
void run_paper_004_x2(const Row& row, Bench& bench);
void run_paper_004_f7(const Row& row, Bench& bench);
void run_paper_004_f8(const Row& row, Bench& bench);
void run_paper_004_f9(const Row& row, Bench& bench);
void run_paper_004_f10(const Row& row, Bench& bench);

}  // namespace sterna::bench
