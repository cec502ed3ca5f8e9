// The executable `sterna`, which is also mpiexec and mpirun by its name.
#include <cstdio>
#include <exception>
#include <string_view>

#include <fmt/format.h>

#include "base/large_stack.h"
#include "base/syscall.h"
#include "launch/command_line.h"
#include "launch/run.h"
#include "tools/cli/command.h"

namespace {

void print_help(std::FILE* to) {
  fmt::print(to,
             "Usage: sterna COMMAND [OPTIONS]\n\n"
             "Runs parallel programs whose threads can move between processes.\n\n"
             "Commands:\n");
  for (const sterna::cli::Command& command : sterna::cli::commands()) {
    if (!command.summary.empty()) {
      fmt::print(to, "  {:<10} {}\n", command.name, command.summary);
    }
  }
  fmt::print(to, "\nsterna COMMAND --help says more; sterna --version says which one this is.\n");
}

int run(int argc, char** argv) {
  const std::string_view path = argc > 0 ? argv[0] : "sterna";
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::span<char* const> words{argv, static_cast<std::size_t>(argc)};
  if (name.starts_with("mpi")) {
    return sterna::launch::mpiexec_command(name.data(), words.subspan(1));
  }
  if (argc < 2) {
    print_help(stderr);
    return 2;
  }
  const std::string_view command_name = argv[1];
  if (command_name == "--help" || command_name == "-h" || command_name == "help") {
    print_help(stdout);
    return 0;
  }
  if (command_name == "--version") {
    fmt::print("sterna {}\n", STERNA_VERSION);
    return 0;
  }
  for (const sterna::cli::Command& command : sterna::cli::commands()) {
    if (command.name == command_name) {
      return command.run(words.subspan(2));
    }
  }
  fmt::print(stderr, "sterna: unknown command '{}'; sterna --help lists them\n", command_name);
  return 2;
}

/// What is not written when the command has ended is lost: then it was no success.
int end_output(int exit_code) {
  if (std::fflush(stdout) == 0) {
    return exit_code;
  }
  const int number = sterna::last_error_number();
  sterna::launch::print_error(
      "sterna", "standard output cannot be written: " + sterna::error_number_text(number));
  return exit_code != 0 ? exit_code : 1;
}

/// Libraries throw (fmt::print, when the disk is full): that is an error like others.
int run_to_its_end(int argc, char** argv) {
  try {
    return end_output(run(argc, argv));
  } catch (const std::exception& error) {
    sterna::launch::print_error("sterna", error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return sterna::on_large_stack([&] { return run_to_its_end(argc, argv); });
}
