// Workloads of the simulator: those built in, and the language of files.
#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

#include "sched/simulator.h"

namespace sterna::sched {
namespace {

using Kind = Step::Kind;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint32_t kCountMax = 1 << 20;

}  // namespace

// Three times slower is what paper 003 says of another node of its machine. How much of the work
// waits for memory it does not say: a quarter makes opportunistic scheduling as slow as its fig. 7
// has it; a seven-point stencil measured on a present machine waits for 0.25 to 0.35, and four
// processors on the bus of one node of theirs could have waited for no more than 0.4. A step
// differs by a hundredth, as fig. 7's threads fixed by hand do. What holds for other values:
// docs/papers.md.
Workload conduction(std::uint32_t strips, std::uint32_t group_size, bool is_fixed) {
  Workload workload{.name = "conduction",
                    .groups = {},
                    .threads = {},
                    .rounds = 200,
                    .memory_part = 0.25,
                    .remote_factor = 3,
                    .cold_ns = 0,
                    .jitter = 0.0125};
  const std::uint32_t size = group_size == 0 ? strips : group_size;
  for (std::uint32_t i = 0; i < strips; ++i) {
    if (i % size == 0) {
      workload.groups.push_back({.barrier = 0, .has_bubble = group_size != 0});
    }
    workload.threads.push_back({.group = i / size,
                                .load = 1,
                                .processor = is_fixed ? i : kNoPlace,
                                .steps = {{Kind::compute, 10 * kMs}, {Kind::barrier, 0}}});
  }
  return workload;
}

// SuperLU_MT: pieces of a factorisation, between which the threads of a task wait for each other
// without leaving their processors; the data of a task fill the cache, which takes 160 us: 1 MB of
// an Opteron of that time over the 6.4 GB/s of its memory. 1.4 is the factor that paper 003 has
// measured. Jitter is ours; it decides what a task alone can have, 3.7 of 4.
Workload lu_tasks(std::uint32_t tasks, std::uint32_t threads_each) {
  Workload workload{.name = "lu-tasks",
                    .groups = {},
                    .threads = {},
                    .rounds = 2'000 / threads_each,
                    .memory_part = 0.3,
                    .remote_factor = 1.4,
                    .cold_ns = 160'000,
                    .jitter = 0.15};
  for (std::uint32_t task = 0; task < tasks; ++task) {
    workload.groups.push_back({.barrier = task, .has_bubble = true});
    for (std::uint32_t i = 0; i < threads_each; ++i) {
      workload.threads.push_back({.group = task,
                                  .load = 1,
                                  .processor = kNoPlace,
                                  .steps = {{Kind::compute, kMs / 2}, {Kind::spin, 0}}});
    }
  }
  return workload;
}

Workload gangs(const std::vector<std::uint32_t>& sizes, std::uint64_t ns) {
  Workload workload{.name = "gangs", .groups = {}, .threads = {}};
  for (std::uint32_t gang = 0; gang < sizes.size(); ++gang) {
    workload.groups.push_back({.barrier = gang, .has_bubble = true});
    for (std::uint32_t i = 0; i < sizes[gang]; ++i) {
      workload.threads.push_back(
          {.group = gang, .load = 1, .processor = kNoPlace, .steps = {{Kind::compute, ns}}});
    }
  }
  return workload;
}

// 400 iterations a thread of 20 us to nothing; a chunk costs a fifth of a microsecond, which is
// about what some processors that share a word or a lock make each other wait.
Workload parallel_loop(LoopScheme scheme, std::uint32_t threads) {
  Workload workload{.name = "loop", .groups = {}, .threads = {}};
  workload.groups.push_back({.loop = {.scheme = scheme,
                                      .count = std::uint64_t{400} * threads,
                                      .first_ns = 20'000,
                                      .last_ns = 0,
                                      .chunk_ns = 200}});
  workload.threads.assign(
      threads, {.group = 0,
                .load = 1,
                .processor = kNoPlace,
                .steps = {{.kind = Kind::loop, .ns = 0}, {.kind = Kind::barrier, .ns = 0}}});
  return workload;
}

namespace {

/// For people, whatever the file is: no bytes that a terminal obeys, and no more than a line.
std::string readable(std::string_view line) {
  constexpr std::size_t kMost = 60;
  std::string text{line.substr(0, kMost)};
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text + (line.size() > kMost ? "..." : "");
}

/// One file being read: what the next lines add to.
class Parser {
 public:
  explicit Parser(const std::string& name) { workload_.name = name; }

  Result<Workload> run(const std::string& text) {
    std::istringstream lines{text};
    std::string line;
    for (std::uint32_t number = 1; std::getline(lines, line); ++number) {
      std::istringstream words{line.substr(0, line.find('#'))};
      std::string word;
      std::string more;
      if (words >> word && (!take(word, words) || words >> more)) {
        return wrong(number, "\"" + readable(line) + "\" is not understood" + advice_for(word));
      }
    }
    for (const WorkloadThread& thread : workload_.threads) {
      if (thread.steps.empty()) {
        return wrong(0, "a thread has no steps; write compute, barrier or spin after it");
      }
    }
    return workload_.threads.empty() ? Result<Workload>{wrong(0, "there is no thread")}
                                     : Result<Workload>{std::move(workload_)};
  }

 private:
  /// What would have been understood there.
  std::string advice_for(const std::string& word) const {
    if (word == "threads" && workload_.groups.empty()) {
      return ": a line \"bubble\" or \"group\" before it begins the group of the threads";
    }
    if ((word == "compute_us" || word == "barrier" || word == "spin") &&
        first_of_last_ == workload_.threads.size()) {
      return ": a line \"threads N\" before it says whose step that is";
    }
    return "; docs/guide/policies.md lists the lines and the numbers that they take";
  }

  Error wrong(std::uint32_t line, const std::string& what) const {
    return Error{Errc::malformed, "workload " + workload_.name +
                                      (line != 0 ? ", line " + std::to_string(line) : "") + ": " +
                                      what};
  }

  bool take(const std::string& word, std::istringstream& words) {
    if (word == "rounds") {
      return number(words, workload_.rounds, 1'000'000) && workload_.rounds != 0;
    }
    if (word == "memory_part") {
      return real(words, workload_.memory_part, 0, 1);
    }
    if (word == "remote_factor") {
      return real(words, workload_.remote_factor, 1, 1000);
    }
    if (word == "jitter") {
      return real(words, workload_.jitter, 0, 0.9);
    }
    if (word == "cold_us") {
      return microseconds(words, workload_.cold_ns);
    }
    if (word == "network_us") {
      return microseconds(words, workload_.network_ns);
    }
    if (word == "bubble" || word == "group") {
      const auto index = static_cast<std::uint32_t>(workload_.groups.size());
      workload_.groups.push_back({.barrier = index, .has_bubble = word == "bubble"});
      std::string key;
      return !(words >> key) ||
             (key == "barrier" && number(words, workload_.groups.back().barrier, kCountMax));
    }
    if (word == "threads") {
      return add_threads(words);
    }
    return add_step(word, words);
  }

  /// "threads 4 load 2": what follows are their steps.
  bool add_threads(std::istringstream& words) {
    std::uint32_t count = 0;
    WorkloadThread thread;
    if (workload_.groups.empty() || !number(words, count, kCountMax) ||
        workload_.threads.size() + count > kCountMax) {
      return false;
    }
    for (std::string key; words >> key;) {
      std::uint32_t value = 0;
      if (!number(words, value, kCountMax)) {
        return false;
      }
      if (key == "load") {
        thread.load = value;
      } else if (key == "processor") {
        thread.processor = value;
      } else {
        return false;
      }
    }
    thread.group = static_cast<std::uint32_t>(workload_.groups.size() - 1);
    first_of_last_ = workload_.threads.size();
    workload_.threads.insert(workload_.threads.end(), count, thread);
    return true;
  }

  bool add_step(const std::string& word, std::istringstream& words) {
    Step step;
    if (word == "barrier") {
      step.kind = Kind::barrier;
    } else if (word == "spin") {
      step.kind = Kind::spin;
    } else if (word != "compute_us" || !microseconds(words, step.ns)) {
      return false;
    }
    for (std::size_t i = first_of_last_; i < workload_.threads.size(); ++i) {
      workload_.threads[i].steps.push_back(step);
    }
    return first_of_last_ < workload_.threads.size();
  }

  static bool number(std::istringstream& words, std::uint32_t& value, std::uint32_t most) {
    std::string word;
    words >> word;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc{} && end == word.data() + word.size() && value <= most;
  }
  static bool real(std::istringstream& words, double& value, double least, double most) {
    return (words >> value) && value >= least && value <= most;
  }
  static bool microseconds(std::istringstream& words, std::uint64_t& ns) {
    double value = 0;
    if (!real(words, value, 0, 1e9)) {
      return false;
    }
    ns = static_cast<std::uint64_t>(value * 1000);
    return true;
  }

  Workload workload_;
  std::size_t first_of_last_ = 0;
};

}  // namespace

Result<Workload> parse_workload(const std::string& text, const std::string& name) {
  return Parser{name}.run(text);
}

}  // namespace sterna::sched
