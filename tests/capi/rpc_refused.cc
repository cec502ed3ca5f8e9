// Services that do not compile, one at a time: what cannot be sent is said in a sentence.
#include <fstream>

#include "sterna/rpc.hpp"

#if defined(POINTER)
int service(const char* text);
#elif defined(REFERENCE)
void service(std::vector<int>& numbers);
#elif defined(STREAM)
int service(std::vector<std::ifstream> files);
#elif defined(VIEW)
std::string_view service(int number);
#endif

sterna::typed::Service<service> typed{"service"};

auto call() {
  return typed(0, {});
}
