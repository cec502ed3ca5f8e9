// Typed services: all that can be sent goes there and comes back, in every kind of call; exceptions
// and wrong types reach the caller. Alone and in jobs of processes.
#include <memory>
#include <numeric>

#include "expect.h"
#include "sterna/rpc.hpp"
#include "sterna/sterna.h"

using sterna::typed::RpcError;
using sterna::typed::Service;

namespace {

struct Plain {
  int a;
  double b;
  bool operator==(const Plain&) const = default;
};

struct Fielded {
  std::string name;
  std::vector<std::string> words;
  Plain plain;
  template <typename Fields>
  void sterna_fields(Fields& fields) {
    fields(name, words, plain);
  }
  bool operator==(const Fielded&) const = default;
};

using Everything =
    std::tuple<int, std::string, std::vector<double>, std::vector<std::string>, std::array<int, 3>,
               std::pair<char, std::string>, std::optional<std::string>, std::optional<int>,
               std::vector<bool>, std::vector<std::vector<int>>, Fielded>;

Everything same(Everything all) {
  return all;
}

double sum(std::span<const double> numbers, std::string_view name, const std::vector<int>& more) {
  if (name == "throw") {
    throw std::out_of_range{"no such numbers: " + std::string{name}};
  }
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) +
         std::accumulate(more.begin(), more.end(), 0.0);
}

std::vector<double> doubled(std::vector<double> numbers) {
  for (double& number : numbers) {
    number *= 2;
  }
  return numbers;
}

int noted = 0;
void note(int by) noexcept {
  __atomic_fetch_add(&noted, by, __ATOMIC_RELAXED);
}

std::uint32_t where() {
  if (sterna_node_index() == 1) {
    throw std::runtime_error{"not from node 1"};
  }
  return sterna_node_index();
}

/// Elements that are arrays go as those that are structures: directly, as many as there are.
double last_of(const std::vector<std::array<double, 3>>& points) {
  return points.empty() ? 0 : points.back()[2];
}

struct Large {
  double numbers[40'000];  // More than the stack of a service.
};
double last_number(const Large& large) {
  return large.numbers[std::size(large.numbers) - 1];
}

Service<same> same_service{"same"};
Service<last_of> last_of_service{"last of"};
Service<last_number> last_number_service{"last number"};
Service<sum> sum_service{"sum"};
Service<sum> quick_sum{"quick sum", STERNA_RPC_QUICK};
Service<doubled> doubled_service{"doubled"};
/// Must not wait, and leaves nothing behind that reads what goes here.
int ask_too_early() {
  const std::vector<double> numbers(20'000, 1.0);
  try {
    (void)doubled_service((sterna_node_index() + 1) % sterna_node_count(), numbers);
  } catch (const RpcError& error) {
    return error.status();
  }
  return STERNA_SUCCESS;
}
Service<ask_too_early> ask_too_early_service{"ask too early", STERNA_RPC_QUICK};

Service<note> note_service{"note", STERNA_RPC_QUICK};
Service<where> where_service{"where", STERNA_RPC_QUICK};

std::uint32_t next_node() {
  return (sterna_node_index() + 1) % sterna_node_count();
}

void test_types() {
  Everything all{7,
                 "text",
                 std::vector<double>(40'000, 1.5),
                 {"one", "", std::string(20'000, 'x')},
                 {1, 2, 3},
                 {'c', "second"},
                 "there",
                 std::nullopt,
                 {true, false, true},
                 {{1}, {}, {2, 3}},
                 Fielded{"name", {"a", "b"}, {1, 2.5}}};
  EXPECT(same_service(next_node(), all) == all);
  EXPECT(same_service(sterna_node_index(), all) == all);
  auto later = same_service.start(next_node(), all);
  const Everything kept = all;
  std::get<2>(all).assign(40'000, 0);  // The arguments were copied.
  EXPECT(later.get() == kept);
  EXPECT(same_service(next_node(), Everything{}) == Everything{});
}

void test_views() {
  for (const std::size_t count : {0, 3, 1000, 100'000}) {
    const std::vector<double> numbers(count, 2.0);
    EXPECT(sum_service(next_node(), numbers, "plain", {1, 2}) == 2.0 * double(count) + 3);
    EXPECT(quick_sum(next_node(), numbers, "plain", {1, 2}) == 2.0 * double(count) + 3);
    EXPECT(doubled_service(next_node(), numbers) == std::vector<double>(count, 4.0));
  }
}

void test_large() {
  const std::vector<std::array<double, 3>> points(700'000, {1, 2, 3});  // More than a block has.
  EXPECT(last_of_service(next_node(), points) == 3);
  const auto large = std::make_unique<Large>();
  large->numbers[std::size(large->numbers) - 1] = 5;
  EXPECT(last_number_service(next_node(), *large) == 5);
  EXPECT(ask_too_early_service(next_node()) == STERNA_DEADLOCK);
}

template <typename Call>
void expect_error(sterna_status status, const char* words, Call call) {
  try {
    call();
    EXPECT(!"it throws");
  } catch (const RpcError& error) {
    EXPECT(error.status() == status);
    EXPECT(std::string_view{error.what()}.find(words) != std::string_view::npos);
  }
}

void test_errors() {
  expect_error(STERNA_REFUSED, "no such numbers: throw",
               [] { sum_service(next_node(), {}, "throw", {}); });
  expect_error(STERNA_REFUSED, "no such numbers: throw",
               [] { quick_sum(next_node(), {}, "throw", {}); });
  expect_error(STERNA_INVALID_ARGUMENT, "", [] { note_service.post(sterna_node_count(), 1); });
  // Bytes of another program.
  const std::uint64_t nonsense[4] = {1, 2, 3, 4};
  EXPECT(sterna_rpc_call_for(next_node(), "sum", nonsense, sizeof nonsense, nullptr, 0, nullptr,
                             STERNA_FOREVER) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_rpc_call_for(next_node(), "sum", nonsense, 3, nullptr, 0, nullptr,
                             STERNA_FOREVER) == STERNA_REFUSED);
  auto forgotten = doubled_service.start(next_node(), {1.0});  // Its end waits for it.
}

void test_multicast() {
  std::vector<std::uint32_t> nodes(sterna_node_count());
  std::iota(nodes.begin(), nodes.end(), 0U);
  const auto outcomes = where_service.multicast(nodes);
  for (const auto& outcome : outcomes) {
    if (outcome.node == 1) {
      EXPECT(outcome.status == STERNA_REFUSED && !outcome.value);
      EXPECT(outcome.text.find("not from node 1") != std::string::npos);
    } else {
      EXPECT(outcome.status == STERNA_SUCCESS && outcome.value == outcome.node);
    }
  }
  for (const auto& outcome : note_service.multicast(nodes, 10)) {
    EXPECT(outcome.status == STERNA_SUCCESS && outcome.value);
  }
  note_service(next_node(), 1);
  note_service.post(next_node(), 1);
}

}  // namespace

int main() {
  EXPECT(sterna_start(nullptr) == STERNA_SUCCESS);
  test_types();
  test_views();
  test_large();
  test_errors();
  test_multicast();
  const int count = static_cast<int>(sterna_node_count());
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  EXPECT(noted == 10 * count + 2);
  std::puts("No Errors");
  return 0;
}
