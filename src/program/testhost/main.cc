// main of the loader's tests: at fixed addresses, as sterna-node.
#include <gtest/gtest.h>

#include "program/fixed_addresses.h"

int main(int count, char** arguments) {
  (void)sterna::program::ensure_fixed_addresses(arguments, environ);
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
