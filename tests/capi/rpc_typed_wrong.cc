// Typed services whose bytes are not what they say, and classes that throw while they are taken out
// of them: nothing is made that the bytes have no room for, and nothing ends while it is written.
#include <atomic>

#include "expect.h"
#include "sterna/rpc.hpp"
#include "sterna/sterna.h"

using sterna::typed::RpcError;
using sterna::typed::Service;

namespace {

constexpr std::size_t kLong = 1 << 18;
constexpr std::uint64_t kFarTooMany = std::uint64_t{1} << 38;

std::atomic<int> early_ends{0};

/// Sees whether it ends before its numbers have come.
struct Watched {
  std::vector<double> numbers = {};
  ~Watched() {
    if (!numbers.empty() && numbers.back() != 1.5) {
      ++early_ends;
    }
  }
  template <typename Fields>
  void sterna_fields(Fields& fields) {
    fields(numbers);
  }
};

struct Throws {
  bool is_sent = false;
  int number = 0;
  template <typename Fields>
  void sterna_fields(Fields& fields) {
    fields(number);
    if (!is_sent) {
      throw std::out_of_range{"such a number cannot be"};
    }
  }
};

int noted = 0;

void take_both(const Watched& /*watched*/, const Throws& /*throws*/) {
  EXPECT(!"it is called with what could not be taken");
}
int count_early_ends() {
  return early_ends;
}
std::vector<double> same(std::vector<double> numbers) {
  return numbers;
}
void note_all(const std::vector<std::string>& words) {
  __atomic_fetch_add(&noted, static_cast<int>(words.size()), __ATOMIC_RELAXED);
}
Throws make_what_throws() {
  return {.is_sent = true};
}

Service<take_both> take_both_service{"take both"};
Service<count_early_ends> count_service{"count early ends"};
Service<same> same_service{"same"};
Service<note_all> note_service{"note all"};
Service<make_what_throws> make_service{"make what throws"};

std::uint32_t next_node() {
  return (sterna_node_index() + 1) % sterna_node_count();
}

template <typename Call>
void expect_refused(const char* words, Call call) {
  try {
    call();
    EXPECT(!"it throws");
  } catch (const RpcError& error) {
    EXPECT(error.status() == STERNA_REFUSED);
    EXPECT(std::string_view{error.what()}.find(words) != std::string_view::npos);
  }
}

/// What is still on its way when something throws is waited for.
void test_ends() {
  for (int i = 0; i < 10; ++i) {
    expect_refused("such a number cannot be", [] {
      take_both_service(next_node(), {std::vector<double>(kLong, 1.5)}, {.is_sent = true});
    });
  }
  EXPECT(count_service(next_node()) == 0);
  // At the caller, too: the other calls of a multicast have ended when one's result throws.
  const std::vector<std::uint32_t> nodes(3, next_node());
  try {
    (void)make_service.multicast(nodes);
    EXPECT(!"it throws");
  } catch (const std::out_of_range&) {
  }
}

/// A call of a service of this signature, with these numbers as its arguments.
template <typename Signature>
sterna_status call_with(const char* name, std::initializer_list<std::uint64_t> numbers) {
  sterna_rpc_packing packing;
  const std::uint64_t signature = sterna::typed::detail::number_of_signature<Signature>();
  EXPECT(sterna_rpc_begin(&packing, name, nullptr) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, &signature, sizeof signature, STERNA_PACK_SAFER) ==
         STERNA_SUCCESS);
  for (const std::uint64_t number : numbers) {
    EXPECT(sterna_rpc_pack(&packing, &number, sizeof number, STERNA_PACK_SAFER) == STERNA_SUCCESS);
  }
  return sterna_rpc_call_packed(&packing, next_node(), nullptr, 0, nullptr);
}

void expect_malformed(sterna_status status) {
  char text[256];
  EXPECT(status == STERNA_REFUSED);
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  EXPECT(std::string_view{text}.find("not those of the types") != std::string_view::npos);
}

/// Sizes are believed as far as there are bytes.
void test_sizes() {
  using Same = std::vector<double>(std::vector<double>);
  using Note = void(std::vector<std::string>);
  EXPECT(call_with<Same>("same", {1, 7}) == STERNA_TRUNCATED);  // It is that service.
  expect_malformed(call_with<Same>("same", {2, 7}));
  expect_malformed(call_with<Same>("same", {kFarTooMany, 7}));
  expect_malformed(call_with<Same>("same", {~std::uint64_t{0}, 7}));
  EXPECT(call_with<Note>("note all", {2, 0, 0}) == STERNA_SUCCESS);
  expect_malformed(call_with<Note>("note all", {kFarTooMany, 0, 0}));
  expect_malformed(call_with<Note>("note all", {1, kFarTooMany}));
  // And in a result.
  const std::uint64_t result[] = {kFarTooMany, 7};
  expect_refused("not those of the types", [&] {
    (void)sterna::typed::detail::read_result<std::vector<double>>(std::as_bytes(std::span{result}));
  });
}

}  // namespace

int main() {
  EXPECT(sterna_start(nullptr) == STERNA_SUCCESS);
  test_ends();
  test_sizes();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  EXPECT(noted == 2);
  std::puts("No Errors");
  return 0;
}
