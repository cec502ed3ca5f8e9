// main of the loader's tests: prepared for ranks that come and go, as sterna-node.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/return_signing.h"
#include "program/fixed_addresses.h"
#include "program/process_guards.h"
#include "program/testhost/move.h"

namespace {

int run(int count, char** arguments) {
  constexpr std::byte kSecret[] = {std::byte{17}};  // The same in all processes of a test.
  const auto shared = sterna::program::share_guards(kSecret);
  sterna::check(shared.has_value(), shared.has_value() ? "" : shared.error().text.c_str());
  if (count == 5 && std::string_view{arguments[1]} == "--receive") {
    return sterna::program::receive_and_run(std::atoi(arguments[2]), arguments[3],
                                            static_cast<std::uint32_t>(std::atoi(arguments[4])));
  }
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}

}  // namespace

int main(int count, char** arguments) {
  (void)sterna::stop_signing_returns();
  (void)sterna::program::ensure_fixed_addresses(arguments, environ);
  const int status = run(count, arguments);
  std::fflush(nullptr);
  ::_exit(status);  // See share_guards().
}
