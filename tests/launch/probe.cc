// A rank for tests of the launcher: does what its arguments say, one after the other, without MPI.
//
//   init finalize exit:CODE abort:CODE crash kill:SIGNAL sleep:MS lines:COUNT text:WORDS
//   (unfinished) error:WORDS leak hang deaf read      R=WORD: on rank R only
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <unistd.h>

#include "runtime/control.h"

namespace {

using sterna::runtime::ControlClient;

std::unique_ptr<ControlClient> control;
std::uint32_t rank_number = 0;

void init() {
  auto opened = ControlClient::open();
  if (!opened) {
    std::fprintf(stderr, "probe: %s\n", opened.error().text.c_str());
    std::exit(90);
  }
  control = std::move(opened.value());
  rank_number = control->job().node_index;
  const std::string blob = "blob of " + std::to_string(rank_number);
  auto blobs = control->exchange(std::as_bytes(std::span{blob}));
  if (!blobs) {
    std::fprintf(stderr, "probe: %s\n", blobs.error().text.c_str());
    std::exit(91);
  }
  for (std::size_t node = 0; node < blobs.value().size(); ++node) {
    const std::string wanted = "blob of " + std::to_string(node);
    const auto& got = blobs.value()[node];
    if (wanted != std::string{reinterpret_cast<const char*>(got.data()), got.size()}) {
      std::fprintf(stderr, "probe: the blob of node %zu is wrong\n", node);
      std::exit(92);
    }
  }
  control->report_initialized(rank_number);
}

void crash() {
  control->report_crash({.rank = rank_number,
                         .signal = SIGSEGV,
                         .address = 0x1234,
                         .instruction = 0x5678,
                         .thread = "main",
                         .text = ""});
  static_cast<void>(std::signal(SIGSEGV, SIG_DFL));
  std::raise(SIGSEGV);
}

void print_lines(int count) {
  for (int i = 0; i < count; ++i) {
    // In small pieces: the launcher, not libc, must keep the line whole.
    std::printf("rank %u line", rank_number);
    std::fflush(stdout);
    std::printf(" %d of %d\n", i, count);
    std::fflush(stdout);
  }
}

void leak() {
  if (::fork() == 0) {
    ::sleep(600);
    std::_Exit(0);
  }
}

void do_word(const std::string& word) {
  const std::string verb = word.substr(0, word.find(':'));
  const std::string rest = verb.size() < word.size() ? word.substr(verb.size() + 1) : "";
  const int number = std::atoi(rest.c_str());
  if (verb == "init") {
    init();
  } else if (verb == "finalize") {
    control->report_finalized(rank_number);
  } else if (verb == "exit") {
    std::exit(number);
  } else if (verb == "abort") {
    control->report_abort({.rank = rank_number, .code = number, .text = "the test wants it"});
    ::pause();
  } else if (verb == "crash") {
    crash();
  } else if (verb == "kill") {
    std::raise(number);
  } else if (verb == "sleep") {
    ::usleep(static_cast<useconds_t>(number) * 1000);
  } else if (verb == "lines") {
    print_lines(number);
  } else if (verb == "text") {
    std::printf("%s", rest.c_str());
  } else if (verb == "error") {
    std::fprintf(stderr, "%s\n", rest.c_str());
  } else if (verb == "leak") {
    leak();
  } else if (verb == "hang") {
    for (;;) {
      ::pause();
    }
  } else if (verb == "deaf") {
    static_cast<void>(std::signal(SIGTERM, SIG_IGN));
  } else if (verb == "read") {
    for (int c = std::getchar(); c != EOF; c = std::getchar()) {
      std::putchar(c);
    }
  } else {
    std::fprintf(stderr, "probe: what is '%s'?\n", word.c_str());
    std::exit(93);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      if (std::atoi(word.c_str()) != static_cast<int>(rank_number)) {
        continue;
      }
      word.erase(0, equals + 1);
    }
    do_word(word);
    std::fflush(stdout);
  }
}
