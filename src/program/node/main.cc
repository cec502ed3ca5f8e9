// sterna-node: one process of a job whose ranks are mobile threads. Started by `sterna run
// --nodes`.
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "base/large_stack.h"
#include "program/fixed_addresses.h"
#include "program/node/host.h"
#include "runtime/control.h"
#include "runtime/node.h"

namespace {

[[noreturn]] void fail(const sterna::Error& error) {
  std::fprintf(stderr, "sterna: %s\n", error.text.c_str());
  std::exit(1);
}

int run(sterna::program::AddressLayout layout) {
  using namespace sterna;
  if (std::getenv(runtime::kControlVariable) == nullptr) {
    std::fprintf(stderr, "sterna-node: started by `sterna run --nodes N PROGRAM`, not by hand\n");
    return 2;
  }
  Result<std::unique_ptr<runtime::ControlClient>> control = runtime::ControlClient::open();
  if (!control) {
    fail(control.error());
  }
  program::NodeHost host{control.value()->description(), layout == program::AddressLayout::fixed};
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
  // First: it may start this process anew.
  const auto layout = sterna::program::ensure_fixed_addresses(arguments, environ);
  return sterna::on_large_stack([&] { return run(layout); });
}
