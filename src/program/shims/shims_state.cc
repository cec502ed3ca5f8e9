// Generators of random numbers, strtok(), hsearch() and signgam: libc's own functions on the rank's
// own state, so that they give what they give a process.
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <search.h>

#include "program/shims/calling.h"
#include "program/shims/shims.h"

namespace sterna::program {
namespace {

/// `use(generators)` under their lock.
template <typename Use>
auto with_generators(Use use) noexcept {
  Generators& generators = calling_data().libc.generators;
  const SpinGuard guard{generators.lock};
  return use(generators);
}

/// As libc's begins: seeded with 1.
random_data& begun(Generators& generators) noexcept {
  if (generators.random.state == nullptr) {
    ::initstate_r(1, reinterpret_cast<char*>(generators.first_state), sizeof generators.first_state,
                  &generators.random);
  }
  return generators.random;
}

long shim_random() {
  return with_generators([](Generators& generators) {
    std::int32_t number = 0;
    ::random_r(&begun(generators), &number);
    return long{number};
  });
}

int shim_rand() {
  return static_cast<int>(shim_random());
}

void shim_srandom(unsigned seed) {
  with_generators([&](Generators& generators) { return ::srandom_r(seed, &begun(generators)); });
}

/// The array that the caller gave: libc keeps a word before what it points to.
char* state_array(const random_data& random) noexcept {
  return reinterpret_cast<char*>(random.state - 1);
}

char* shim_initstate(unsigned seed, char* state, std::size_t bytes) {
  return with_generators([&](Generators& generators) {
    char* const before = state_array(begun(generators));
    return ::initstate_r(seed, state, bytes, &generators.random) == 0 ? before : nullptr;
  });
}

char* shim_setstate(char* state) {
  return with_generators([&](Generators& generators) {
    char* const before = state_array(begun(generators));
    return ::setstate_r(state, &generators.random) == 0 ? before : nullptr;
  });
}

double shim_drand48() {
  return with_generators([](Generators& generators) {
    double number = 0;
    ::drand48_r(&generators.uniform, &number);
    return number;
  });
}

double shim_erand48(unsigned short* state) {
  return with_generators([&](Generators& generators) {
    double number = 0;
    ::erand48_r(state, &generators.uniform, &number);
    return number;
  });
}

template <int (*next)(drand48_data*, long*)>
long shim_next() {
  return with_generators([](Generators& generators) {
    long number = 0;
    next(&generators.uniform, &number);
    return number;
  });
}

template <int (*next)(unsigned short*, drand48_data*, long*)>
long shim_next_of(unsigned short* state) {
  return with_generators([&](Generators& generators) {
    long number = 0;
    next(state, &generators.uniform, &number);
    return number;
  });
}

void shim_srand48(long seed) {
  with_generators([&](Generators& generators) { return ::srand48_r(seed, &generators.uniform); });
}

unsigned short* shim_seed48(unsigned short* seed) {
  return with_generators([&](Generators& generators) {
    ::seed48_r(seed, &generators.uniform);
    return generators.uniform.__old_x;
  });
}

void shim_lcong48(unsigned short* parameters) {
  with_generators(
      [&](Generators& generators) { return ::lcong48_r(parameters, &generators.uniform); });
}

char* shim_strtok(char* text, const char* separators) {
  return ::strtok_r(text, separators, &calling_data().libc.rest_of_tokens);
}

int shim_hcreate(std::size_t count) {
  return ::hcreate_r(count, &calling_data().libc.table);
}
void shim_hdestroy() {
  ::hdestroy_r(&calling_data().libc.table);
}
ENTRY* shim_hsearch(ENTRY item, ACTION action) {
  ENTRY* found = nullptr;
  ::hsearch_r(item, action, &found, &calling_data().libc.table);
  return found;
}

template <typename Number, Number (*function)(Number, int*)>
Number shim_gamma(Number x) {
  int sign = 0;
  const Number result = function(x, &sign);
  variable<int>(calling_data(), Variable::gamma_sign) = sign;
  return result;
}

}  // namespace

std::span<const Shim> state_shims() {
  static const Shim shims[] = {
      function_shim("rand", shim_rand),
      function_shim("srand", shim_srandom),
      function_shim("random", shim_random),
      function_shim("srandom", shim_srandom),
      function_shim("initstate", shim_initstate),
      function_shim("setstate", shim_setstate),
      function_shim("drand48", shim_drand48),
      function_shim("erand48", shim_erand48),
      function_shim("lrand48", shim_next<::lrand48_r>),
      function_shim("mrand48", shim_next<::mrand48_r>),
      function_shim("nrand48", shim_next_of<::nrand48_r>),
      function_shim("jrand48", shim_next_of<::jrand48_r>),
      function_shim("srand48", shim_srand48),
      function_shim("seed48", shim_seed48),
      function_shim("lcong48", shim_lcong48),
      function_shim("strtok", shim_strtok),
      function_shim("hcreate", shim_hcreate),
      function_shim("hdestroy", shim_hdestroy),
      function_shim("hsearch", shim_hsearch),
      variable_shim("signgam", offsetof(RankData, variables.gamma_sign)),
      variable_shim("__signgam", offsetof(RankData, variables.gamma_sign)),
      function_shim("lgamma", shim_gamma<double, ::lgamma_r>),
      function_shim("lgammaf64", shim_gamma<double, ::lgamma_r>),
      function_shim("lgammaf32x", shim_gamma<double, ::lgamma_r>),
      function_shim("gamma", shim_gamma<double, ::lgamma_r>),
      function_shim("lgammaf", shim_gamma<float, ::lgammaf_r>),
      function_shim("lgammaf32", shim_gamma<float, ::lgammaf_r>),
      function_shim("gammaf", shim_gamma<float, ::lgammaf_r>),
      function_shim("lgammal", shim_gamma<long double, ::lgammal_r>),
      function_shim("lgammaf64x", shim_gamma<long double, ::lgammal_r>),
      function_shim("gammal", shim_gamma<long double, ::lgammal_r>),
  };
  return shims;
}

}  // namespace sterna::program
