// sterna-node: one process of a job whose ranks are mobile threads. Started by `sterna run
// --nodes`.
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "base/large_stack.h"
#include "base/return_signing.h"
#include "program/fixed_addresses.h"
#include "program/node/host.h"
#include "program/process_guards.h"
#include "runtime/control.h"
#include "runtime/node.h"

namespace {

[[noreturn]] void fail(const sterna::Error& error) {
  std::fprintf(stderr, "sterna: %s\n", error.text.c_str());
  ::_exit(1);  // See share_guards().
}

int run(bool can_move) {
  using namespace sterna;
  if (std::getenv(runtime::kControlVariable) == nullptr) {
    std::fprintf(stderr, "sterna-node: started by `sterna run --nodes N PROGRAM`, not by hand\n");
    return 2;
  }
  Result<std::unique_ptr<runtime::ControlClient>> control = runtime::ControlClient::open();
  if (!control) {
    fail(control.error());
  }
  // Libraries that ranks load write there. Not to a buffer that a rank's memory has been taken for.
  static constinit char output_buffer[BUFSIZ];
  std::setvbuf(stdout, output_buffer, _IOLBF, sizeof output_buffer);
  const runtime::Job& job = control.value()->description();
  if (Result<> shared = program::share_guards(job.map.secret); !shared) {
    fail(shared.error());
  }
  program::NodeHost host{job, can_move};
  Result<std::unique_ptr<runtime::Node>> node =
      runtime::Node::open(std::move(control.value()), host);
  if (!node) {
    fail(node.error());
  }
  if (Result<> created = node.value()->create_ranks(); !created) {
    fail(created.error());
  }
  node.value()->run();
  // The job is over and reported: what is left goes with the process.
  ::_exit(0);
}

}  // namespace

int main(int, char** arguments) {
  // First, and here: this file is built without signing (CMakeLists.txt), and main does not return.
  const bool is_unsigned = sterna::stop_signing_returns();
  // It may start this process anew.
  const auto layout = sterna::program::ensure_fixed_addresses(arguments, environ);
  const bool can_move = is_unsigned && layout == sterna::program::AddressLayout::fixed;
  ::_exit(sterna::on_large_stack([&] { return run(can_move); }));
}
