// main of the loader's tests: at fixed addresses, as sterna-node.
#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>

#include "program/fixed_addresses.h"
#include "program/testhost/move.h"

int main(int count, char** arguments) {
  (void)sterna::program::ensure_fixed_addresses(arguments, environ);
  if (count == 5 && std::string_view{arguments[1]} == "--receive") {
    return sterna::program::receive_and_run(std::atoi(arguments[2]), arguments[3],
                                            static_cast<std::uint32_t>(std::atoi(arguments[4])));
  }
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
