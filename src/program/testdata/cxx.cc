// A C++ program: static objects, iostream, exceptions with a switch inside a handler, thread_local
// objects with destructors, RTTI.
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include "test_calls.h"

struct Base {
  virtual ~Base() {}
  virtual int value() const { return 1; }
};
struct Derived : Base {
  int number;
  explicit Derived(int n) : number(n) {}
  int value() const override { return number; }
};
struct Failure : std::runtime_error {
  int code;
  std::vector<int> payload;
  explicit Failure(int c) : std::runtime_error("E" + std::to_string(c)), code(c), payload(100, c) {}
};
struct Announcer {
  const char* what;
  ~Announcer() {
    std::cout << what << " of " << sterna_test_rank() << " is destroyed" << std::endl;
  }
};

static std::map<std::string, int> table{{"a", 1}, {"b", 2}};
static std::unique_ptr<Base> object = std::make_unique<Derived>(5);
static std::string text(200, 'x');
thread_local std::vector<int> local_list{1, 2, 3};
thread_local Announcer local_announcer{"thread_local"};
static Announcer announcer{"static"};

static int depth(int n, int me) {
  std::string pad(50, static_cast<char>('a' + me % 26));
  if (n == 0) {
    sterna_test_yield();
    throw Failure(me);
  }
  return depth(n - 1, me) + static_cast<int>(pad.size());
}

static int& counted() {
  static int once = [] { return 99; }();
  return once;
}

static int run(int me) {
  int bad = 0;
  table["me"] = me;
  static_cast<Derived*>(object.get())->number = me;
  text[3] = static_cast<char>('A' + me % 26);
  local_list.push_back(me);
  (void)&local_announcer;
  counted() += me;
  std::vector<std::shared_ptr<Base>> list;
  for (int i = 0; i < 1000; i++) {
    list.push_back(i % 2 ? std::make_shared<Derived>(i) : std::make_shared<Base>());
  }
  for (int turn = 0; turn < 4; turn++) {
    try {
      depth(10, me);
      bad |= 1;
    } catch (const std::exception& caught) {
      const auto* failure = dynamic_cast<const Failure*>(&caught);
      if (!failure || failure->code != me || failure->payload[50] != me) {
        bad |= 2;
      }
      try {
        // Switches while an exception is handled, then throws it again.
        sterna_test_pause();
        if (std::uncaught_exceptions()) {
          bad |= 4;
        }
        throw;
      } catch (Failure& again) {
        if (again.what() != "E" + std::to_string(me)) {
          bad |= 8;
        }
      }
      sterna_test_yield();
      if (!std::current_exception()) {
        bad |= 2048;
      }
    }
  }
  if (std::current_exception()) {
    bad |= 1024;
  }
  if (table["me"] != me || table["b"] != 2 || object->value() != me || text[3] != 'A' + me % 26 ||
      local_list.size() != 4 || local_list[3] != me || counted() != 99 + me) {
    bad |= 16;
  }
  std::function<int(int)> add = [me](int x) { return x + me; };
  std::ostringstream hexadecimal;
  hexadecimal << std::hex << 255;
  if (add(1) != me + 1 || hexadecimal.str() != "ff" || list[501]->value() != 501 ||
      typeid(*list[501]) != typeid(Derived) || typeid(*list[0]) == typeid(Derived)) {
    bad |= 32;
  }
  try {
    (void)table.at("nothing");
    bad |= 128;
  } catch (std::out_of_range&) {
  }
  try {
    (void)std::stoi("zz");
    bad |= 256;
  } catch (std::invalid_argument&) {
  }
  std::stringstream both("3.25 7");
  double d;
  int k;
  both >> d >> k;
  if (d != 3.25 || k != 7) {
    bad |= 512;
  }
  return bad;
}

int main() {
  const int me = sterna_test_rank();
  const int bad = run(me);
  std::cout << "rank " << me << " bad " << bad << std::endl;
  std::printf("%s %d\n", "and by printf", me);
  std::cerr << "error line " << me << "\n";
  return bad ? 1 : 0;
}
