// Reads the command line of `sterna bench` and runs rows.
#include "bench/bench_command.h"

#include <cstdlib>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/bench.h"
#include "launch/json_text.h"
#include "launch/parse.h"
#include "launch/run.h"

namespace sterna::bench {
namespace {

constexpr const char* kDescription =
    "Measures Sterna beside other implementations, each figure beside its reference in the same "
    "run.\n\nThe ratio is a cost, ours over the reference: smaller is better. Other MPIs are used "
    "where\n`./dev peers` has put them.";

std::string default_peers() {
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::string{cache} + "/sterna/peers";
  }
  const char* const home = std::getenv("HOME");
  return std::string{home != nullptr ? home : ""} + "/.cache/sterna/peers";
}

void print_list(bool json) {
  for (const Row& row : rows()) {
    if (json) {
      const nlohmann::ordered_json object = {
          {"id", row.id}, {"target", row.target}, {"summary", row.summary}};
      fmt::print("{}\n", launch::json_text(object));
    } else {
      fmt::print("{:<20} target {:<6.4g} {}\n", row.id, row.target, row.summary);
    }
  }
}

/// The rows whose id is `name` or begins with "name.". Empty: none.
std::vector<const Row*> rows_named(std::string_view name) {
  std::vector<const Row*> found;
  for (const Row& row : rows()) {
    if (row.id == name || (row.id.starts_with(name) && row.id[name.size()] == '.')) {
      found.push_back(&row);
    }
  }
  return found;
}

/// A folder that goes with everything in it.
class WorkFolder {
 public:
  WorkFolder() {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "sterna-bench-XXXXXX");
    path_ = ::mkdtemp(name.data()) != nullptr ? name : "";
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) {
      std::filesystem::remove_all(path_, ignored);
    }
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

int run_rows(const BenchOptions& options, const std::vector<const Row*>& chosen) {
  const WorkFolder folder;
  if (folder.path().empty()) {
    launch::print_error("sterna bench", "cannot make a temporary folder");
    return launch::kUsageExitCode;
  }
  Bench bench{options, folder.path()};
  for (const Row* const row : chosen) {
    bench.say(fmt::format("{}: {}", row->id, row->summary));
    row->run(*row, bench);
  }
  return bench.all_pass() ? 0 : 1;
}

}  // namespace

int bench_command(std::span<char* const> arguments) {
  BenchOptions options;
  bool is_list = false;
  std::vector<std::string> names;
  CLI::App app{kDescription, "sterna bench"};
  app.footer("\nExit code: 0 if all figures meet their targets, 1 if one does not.");
  app.add_option("ID", names, "Rows to run, or their first part (mpi, thread); default: all");
  app.add_flag("--list", is_list, "List the rows");
  app.add_flag("--json", options.json, "One JSON object a line");
  app.add_option("--peers", options.peers, "Folder of other MPIs (" + default_peers() + ")")
      ->type_name("DIR");
  app.add_flag("--quick", options.quick, "Few iterations: shows that it works, measures nothing");
  app.add_flag("--absolute", options.absolute,
               "Judge aims too, times that are meant for one machine (bench/README.md)");
  app.add_flag("-v,--verbose", options.verbose, "Say what is run, and each candidate's figures");
  if (const std::optional<int> exit_code = launch::parse(app, arguments)) {
    return *exit_code;
  }
  if (is_list) {
    print_list(options.json);
    return 0;
  }
  if (options.peers.empty()) {
    options.peers = default_peers();
  }
  std::vector<const Row*> chosen;
  for (const std::string& name : names) {
    const std::vector<const Row*> found = rows_named(name);
    if (found.empty()) {
      launch::print_error("sterna bench",
                          fmt::format("there is no row '{}'; see sterna bench --list", name));
      return launch::kUsageExitCode;
    }
    chosen.insert(chosen.end(), found.begin(), found.end());
  }
  if (names.empty()) {
    for (const Row& row : rows()) {
      chosen.push_back(&row);
    }
  }
  return run_rows(options, chosen);
}

}  // namespace sterna::bench
