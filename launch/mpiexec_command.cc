// The command line of mpiexec and mpirun: the options users of other MPIs know, with one dash or
// two.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "launch/command_line.h"
#include "launch/mpiexec_options.h"
#include "launch/run.h"

namespace sterna::launch {
namespace {

using mpiexec::Meaning;
using mpiexec::Option;

/// Of what says by itself what it expects, and of what we need not know, anything may be empty.
bool has_no_empty_value(const Option& option) {
  switch (option.meaning) {
    case Meaning::directory:
    case Meaning::hosts:
    case Meaning::host_file:
    case Meaning::balance:
    case Meaning::drivers:
    case Meaning::launcher:
    case Meaning::report_file:
      return true;
    default:
      return false;
  }
}

/// Reads the words one after the other. Of the options before a program those of its count, its
/// variables (but for -genv) and its folder are its own; the others are the job's.
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
  Variables global_;
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
      const Option* const option = mpiexec::find_option(word.substr(0, equals));
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
  for (Application& application : options_.applications) {
    Variables own = std::exchange(application.environment, global_);
    for (auto& [name, value] : own) {  // Its own one wins, as with MPICH.
      set_variable(application.environment, name, std::move(value));
    }
  }
  return take_node_count(options_);
}

Result<> Parser::finish_application() {
  if (application_.arguments.empty()) {
    return Error{Errc::invalid_argument,
                 "no program is given; see " + options_.command_name + " --help"};
  }
  options_.applications.push_back(std::exchange(application_, {}));
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
  const bool is_global =
      option.meaning == Meaning::global_pair || option.meaning == Meaning::global_list;
  Variables& variables = is_global ? global_ : application_.environment;
  if (option.meaning == Meaning::environment_list || option.meaning == Meaning::global_list) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      if (Result<> added = add_environment(variables, word, text.substr(begin, end - begin));
          !added) {
        return added;
      }
      begin = end + 1;
    }
    return Done{};
  }
  if (option.meaning == Meaning::environment || text.find('=') != std::string::npos) {
    return add_environment(variables, word, text);
  }
  Result<std::string> second = value(word + " " + text);
  return second ? add_environment(variables, word, text + "=" + second.value()) : second.error();
}

Result<> Parser::take(const Option& option, const std::string& word) {
  if (option.value != nullptr) {
    const std::size_t equals = word.find('=');
    Result<std::string> given =
        equals != std::string::npos ? Result{word.substr(equals + 1)} : value(word);
    if (!given) {
      return given.error();
    }
    if (given.value().empty() && has_no_empty_value(option)) {
      return Error{Errc::invalid_argument, word + ": its value is empty"};
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
    case Meaning::global_pair:
    case Meaning::global_list:
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
    mpiexec::print_help(name);
    return 0;
  }
  if (parser.wants_version()) {
    fmt::print("{} (Sterna) {}\n", name, STERNA_VERSION);
    return 0;
  }
  return run_job(std::move(parser.options()));
}

}  // namespace sterna::launch
