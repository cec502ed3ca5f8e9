// The table of options of mpiexec, and its help.
#include "launch/mpiexec_options.h"

#include <fmt/format.h>

namespace sterna::launch::mpiexec {
namespace {

constexpr Option kOptions[] = {
    {"n", Meaning::count, "COUNT", "number of ranks"},
    {"np", Meaning::count, "COUNT", "the same"},
    {"c", Meaning::count, "COUNT"},
    {"env", Meaning::environment_pair, "NAME VALUE", "a variable for the ranks of this program"},
    {"x", Meaning::environment, "NAME[=VALUE]", "the same, in one word"},
    {"genv", Meaning::global_pair, "NAME VALUE", "a variable for the ranks of all programs"},
    {"envlist", Meaning::environment_list, "A,B,C"},
    {"genvlist", Meaning::global_list, "A,B,C"},
    {"genvall", Meaning::ignored},
    {"envall", Meaning::ignored},
    {"wdir", Meaning::directory, "FOLDER", "folder to run this program in"},
    {"wd", Meaning::directory, "FOLDER"},
    {"host", Meaning::hosts, "A,B:4", "machines to run on, with the processes they take"},
    {"hosts", Meaning::hosts, "A,B:4", "the same"},
    {"H", Meaning::hosts, "A,B:4"},
    {"f", Meaning::host_file, "FILE", "the same from a file"},
    {"hostfile", Meaning::host_file, "FILE"},
    {"machinefile", Meaning::host_file, "FILE"},
    {"ppn", Meaning::per_host, "COUNT", "processes on each host"},
    {"perhost", Meaning::per_host, "COUNT"},
    {"npernode", Meaning::per_host, "COUNT"},
    {"N", Meaning::per_host, "COUNT"},
    {"tag-output", Meaning::tag, nullptr, "begin each line of output with [rank]"},
    {"l", Meaning::tag, nullptr, "the same"},
    {"prepend-rank", Meaning::tag, nullptr, "the same"},
    {"timeout", Meaning::timeout, "TIME", "end the job after this time (seconds, or 2min)"},
    {"v", Meaning::verbose, nullptr, "say what is done"},
    {"verbose", Meaning::verbose},
    {"nodes", Meaning::nodes, "COUNT", "mobile ranks in this many processes (sterna run --help)"},
    {"balance", Meaning::balance, "POLICY", "who moves mobile ranks: refine, places(burst) ..."},
    {"drivers", Meaning::drivers, "LIST", "networks to use, as in shm,tcp"},
    {"set", Meaning::setting, "NAME=VALUE", "any setting that sterna info lists"},
    {"launcher-exec", Meaning::launcher, "COMMAND", "command that reaches other hosts (ssh)"},
    {"report", Meaning::report, nullptr, "print where ranks were, load and moves"},
    {"json", Meaning::report_file, "FILE", "write that report as JSON"},
    // What scripts for other launchers say, and we need not know.
    {"mca", Meaning::ignored_pair, "NAME"},
    {"prtemca", Meaning::ignored_pair, "NAME"},
    {"launcher", Meaning::ignored_value, "NAME"},
    {"bootstrap", Meaning::ignored_value, "NAME"},
    {"rmk", Meaning::ignored_value, "NAME"},
    {"iface", Meaning::ignored_value, "NAME"},
    {"bind-to", Meaning::ignored_value, "WHERE"},
    {"map-by", Meaning::ignored_value, "HOW"},
    {"rank-by", Meaning::ignored_value, "HOW"},
    {"oversubscribe", Meaning::ignored},
    {"nooversubscribe", Meaning::ignored},
    {"use-hwthread-cpus", Meaning::ignored},
    {"bind-to-core", Meaning::ignored},
    {"bind-to-none", Meaning::ignored},
    {"report-bindings", Meaning::ignored},
    {"display-map", Meaning::ignored},
    {"print-all-exitcodes", Meaning::ignored},
    {"allow-run-as-root", Meaning::ignored},
    {"q", Meaning::ignored},
    {"help", Meaning::help, nullptr, "print this"},
    {"h", Meaning::help},
    {"version", Meaning::version, nullptr, "print the version"},
    {"V", Meaning::version},
};

constexpr std::size_t kWidth = 80;

bool is_ignored(const Option& option) {
  return option.meaning == Meaning::ignored || option.meaning == Meaning::ignored_value ||
         option.meaning == Meaning::ignored_pair;
}

}  // namespace

const Option* find_option(std::string_view word) {
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  for (const Option& option : kOptions) {
    if (word == option.name) {
      return &option;
    }
  }
  return nullptr;
}

void print_help(const std::string& name) {
  fmt::print(
      "Usage: {0} [OPTIONS] PROGRAM [ARGUMENTS...] [: [OPTIONS] PROGRAM [ARGUMENTS...]]...\n\n"
      "Runs an MPI program, one process a rank. Options may have one dash or two:\n\n",
      name);
  for (const Option& option : kOptions) {
    if (option.help != nullptr) {
      fmt::print("  {:<28} {}\n",
                 fmt::format("-{} {}", option.name, option.value != nullptr ? option.value : ""),
                 option.help);
    }
  }
  fmt::print("\nAccepted for scripts that are written for other launchers, without an effect:");
  std::size_t column = kWidth;
  for (const Option& option : kOptions) {
    if (is_ignored(option)) {
      const std::size_t length = std::string_view{option.name}.size() + 2;
      column = column + length > kWidth ? 1 + length : column + length;
      fmt::print("{} -{}", column == 1 + length ? "\n " : "", option.name);
    }
  }
  fmt::print(
      "\n\nExamples:\n  {0} -n 4 ./hello\n  {0} -n 1 ./master : -n 3 ./worker\n"
      "  {0} -n 8 -host a,b ./app\nsterna run --help says more.\n",
      name);
}

}  // namespace sterna::launch::mpiexec
