// The command line of mpiexec and mpirun: the options users of other MPIs know, with one dash or
// two.
#include <cstdlib>

#include <fmt/format.h>

#include "launch/command_line.h"
#include "launch/run.h"

namespace sterna::launch {
namespace {

enum class Meaning : std::uint8_t {
  count,
  environment,
  environment_pair,
  environment_list,
  ignored,
  ignored_value,
  ignored_pair,
  directory,
  hosts,
  host_file,
  per_host,
  tag,
  timeout,
  verbose,
  nodes,
  balance,
  drivers,
  setting,
  launcher,
  report,
  report_file,
  help,
  version,
};

struct Option {
  const char* name;  // Without dashes.
  Meaning meaning;
  const char* value = nullptr;  // Null: takes none.
  const char* help = nullptr;   // Null: not listed.
};

constexpr Option kOptions[] = {
    {"n", Meaning::count, "COUNT", "number of ranks"},
    {"np", Meaning::count, "COUNT", "the same"},
    {"c", Meaning::count, "COUNT"},
    {"env", Meaning::environment_pair, "NAME VALUE", "a variable for the ranks"},
    {"genv", Meaning::environment_pair, "NAME VALUE", "the same"},
    {"x", Meaning::environment, "NAME[=VALUE]", "the same, in one word"},
    {"envlist", Meaning::environment_list, "A,B,C"},
    {"genvlist", Meaning::environment_list, "A,B,C"},
    {"genvall", Meaning::ignored},
    {"envall", Meaning::ignored},
    {"wdir", Meaning::directory, "FOLDER", "folder to run in"},
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

const Option* find_option(std::string_view word) {
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  for (const Option& option : kOptions) {
    if (word == option.name) {
      return &option;
    }
  }
  return nullptr;
}

bool is_ignored(const Option& option) {
  return option.meaning == Meaning::ignored || option.meaning == Meaning::ignored_value ||
         option.meaning == Meaning::ignored_pair;
}

constexpr std::size_t kWidth = 80;

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

/// Reads the words one after the other. Options before the first program hold for all of them.
class Parser {
 public:
  Parser(const char* name, std::span<char* const> words) : words_{words} {
    options_.command_name = name;
    if (const char* const ssh = std::getenv("STERNA_SSH"); ssh != nullptr && *ssh != '\0') {
      options_.ssh = ssh;
    }
  }

  Result<> parse();
  [[nodiscard]] bool wants_help() const { return wants_help_; }
  [[nodiscard]] bool wants_version() const { return wants_version_; }
  RunOptions& options() { return options_; }

 private:
  Result<std::string> value(const std::string& option);
  Result<> take(const Option& option, const std::string& word);
  Result<> take_value(const Option& option, const std::string& word, const std::string& text);
  void take_flag(const Option& option);
  Result<> take_number(const Option& option, const std::string& word, const std::string& text);
  Result<> take_hosts(const Option& option, const std::string& word, const std::string& text);
  Result<> take_environment(const Option& option, const std::string& word, const std::string& text);
  Result<> finish_application();

  std::span<char* const> words_;
  std::size_t next_ = 0;
  RunOptions options_;
  Application application_;
  bool wants_help_ = false;
  bool wants_version_ = false;
};

Result<std::string> Parser::value(const std::string& option) {
  if (next_ == words_.size()) {
    return Error{Errc::invalid_argument, option + " needs a value"};
  }
  return std::string{words_[next_++]};
}

Result<> Parser::parse() {
  while (next_ < words_.size()) {
    const std::string word = words_[next_];
    if (word == ":") {
      ++next_;
      if (Result<> finished = finish_application(); !finished) {
        return finished;
      }
    } else if (word.starts_with('-') && word != "-" && word != "--") {
      ++next_;
      const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
      const Option* const option = find_option(word.substr(0, equals));
      if (option == nullptr) {
        return Error{Errc::invalid_argument,
                     "unknown option " + word + "; see " + options_.command_name + " --help"};
      }
      if (Result<> taken = take(*option, word); !taken) {
        return taken;
      }
      if (wants_help_ || wants_version_) {
        return Done{};
      }
    } else {
      next_ += word == "--" ? 1 : 0;
      while (next_ < words_.size() && std::string_view{words_[next_]} != ":") {
        application_.arguments.emplace_back(words_[next_++]);
      }
    }
  }
  if (Result<> finished = finish_application(); !finished) {
    return finished;
  }
  return take_node_count(options_);
}

Result<> Parser::finish_application() {
  if (application_.arguments.empty()) {
    return Error{Errc::invalid_argument,
                 "no program is given; see " + options_.command_name + " --help"};
  }
  options_.applications.push_back(application_);
  application_.arguments.clear();
  application_.rank_count = 1;
  return Done{};
}

Result<> Parser::take_number(const Option& option, const std::string& word,
                             const std::string& text) {
  Result<std::uint32_t> count = parse_count(word, text);
  if (!count) {
    return count.error();
  }
  std::uint32_t& target = option.meaning == Meaning::count   ? application_.rank_count
                          : option.meaning == Meaning::nodes ? options_.node_count
                                                             : options_.processes_per_host;
  target = count.value();
  return Done{};
}

Result<> Parser::take_hosts(const Option& option, const std::string& word,
                            const std::string& text) {
  auto hosts = option.meaning == Meaning::host_file ? read_host_file(text) : read_host_list(text);
  if (!hosts) {
    return Error{hosts.error().code, word + ": " + hosts.error().text};
  }
  options_.hosts = std::move(hosts.value());
  return Done{};
}

Result<> Parser::take_environment(const Option& option, const std::string& word,
                                  const std::string& text) {
  if (option.meaning == Meaning::environment_pair) {
    if (text.find('=') != std::string::npos) {
      return add_environment(application_, word, text);
    }
    Result<std::string> second = value(word + " " + text);
    if (!second) {
      return second.error();
    }
    return add_environment(application_, word, text + "=" + second.value());
  }
  if (option.meaning == Meaning::environment) {
    return add_environment(application_, word, text);
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (Result<> added = add_environment(application_, word, text.substr(begin, end - begin));
        !added) {
      return added;
    }
    begin = end + 1;
  }
  return Done{};
}

Result<> Parser::take(const Option& option, const std::string& word) {
  if (option.value != nullptr) {
    const std::size_t equals = word.find('=');
    Result<std::string> given =
        equals != std::string::npos ? Result{word.substr(equals + 1)} : value(word);
    if (!given) {
      return given.error();
    }
    return take_value(option, word, given.value());
  }
  if (word.find('=') != std::string::npos) {
    return Error{Errc::invalid_argument, word + ": this option takes no value"};
  }
  take_flag(option);
  return Done{};
}

Result<> Parser::take_value(const Option& option, const std::string& word,
                            const std::string& text) {
  switch (option.meaning) {
    case Meaning::count:
    case Meaning::per_host:
    case Meaning::nodes:
      return take_number(option, word, text);
    case Meaning::environment:
    case Meaning::environment_pair:
    case Meaning::environment_list:
      return take_environment(option, word, text);
    case Meaning::hosts:
    case Meaning::host_file:
      return take_hosts(option, word, text);
    case Meaning::balance:
    case Meaning::drivers:
      return add_setting(options_, option.name, text, word);
    case Meaning::setting:
      return add_setting(options_, text, word);
    case Meaning::timeout: {
      Result<std::uint64_t> time = parse_seconds(word, text);
      if (!time) {
        return time.error();
      }
      options_.timeout_ns = time.value();
      return Done{};
    }
    case Meaning::ignored_pair: {
      Result<std::string> second = value(word + " " + text);
      return second ? Result<>{Done{}} : second.error();
    }
    case Meaning::directory:
      application_.directory = text;
      break;
    case Meaning::launcher:
      options_.ssh = text;
      break;
    case Meaning::report_file:
      options_.report_file = text;
      break;
    default:
      break;  // What others' users say and we need not know.
  }
  return Done{};
}

void Parser::take_flag(const Option& option) {
  switch (option.meaning) {
    case Meaning::tag:
      options_.tag_output = true;
      break;
    case Meaning::verbose:
      options_.verbose = true;
      break;
    case Meaning::report:
      options_.report = true;
      break;
    case Meaning::help:
      wants_help_ = true;
      break;
    case Meaning::version:
      wants_version_ = true;
      break;
    default:
      break;  // As above.
  }
}

}  // namespace

int mpiexec_command(const char* name, std::span<char* const> arguments) {
  Parser parser{name, arguments};
  if (Result<> parsed = parser.parse(); !parsed) {
    print_error(name, parsed.error().text);
    return kUsageExitCode;
  }
  if (parser.wants_help()) {
    print_help(name);
    return 0;
  }
  if (parser.wants_version()) {
    fmt::print("{} (Sterna) {}\n", name, STERNA_VERSION);
    return 0;
  }
  return run_job(std::move(parser.options()));
}

}  // namespace sterna::launch
