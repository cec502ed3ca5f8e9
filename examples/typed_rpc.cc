// A service with types: what a call carries is derived from its signature. Every node asks all
// others for a part of a sum, at the same time, then makes one of them fail.
#include <cstdio>
#include <numeric>

#include <sterna/rpc.hpp>
#include <sterna/sterna.h>

using sterna::typed::RpcError;
using sterna::typed::Service;

namespace {

/// Of a sorted list the sum of what lies in the range of the node that is asked.
double sum_part(std::span<const double> numbers, std::uint32_t part, std::uint32_t parts) {
  if (part >= parts) {
    throw std::out_of_range{"there is no such part"};
  }
  const std::size_t first = numbers.size() * part / parts;
  const std::size_t end = numbers.size() * (part + 1) / parts;
  return std::accumulate(numbers.begin() + static_cast<std::ptrdiff_t>(first),
                         numbers.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
}

// Made before main, and so before sterna_start, on all nodes.
const Service<sum_part> part_service{"sum part"};

}  // namespace

int main() {
  if (sterna_start(nullptr) != STERNA_SUCCESS) {
    return 1;
  }
  const std::uint32_t nodes = sterna_node_count();
  std::vector<double> numbers(100'000);
  std::iota(numbers.begin(), numbers.end(), 1.0);
  bool is_right = false;
  try {
    std::vector<sterna::typed::Later<double>> parts;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      parts.push_back(part_service.start(node, numbers, node, nodes));
    }
    double sum = 0;
    for (auto& part : parts) {
      sum += part.get();
    }
    is_right = sum == 100'000.0 * 100'001.0 / 2;
    std::printf("node %u: the sum is %.0f\n", sterna_node_index(), sum);
    part_service(0, {}, 7, 3);
  } catch (const RpcError& error) {
    std::printf("node %u: %s\n", sterna_node_index(), error.what());
  }
  sterna_stop();
  return is_right ? 0 : 1;
}
