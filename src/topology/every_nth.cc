// Which of a node's processors its workers get.
#include "base/check.h"
#include "topology/topology.h"

namespace sterna::topology {

std::vector<const Place*> every_nth(std::span<const Place* const> places, std::size_t first,
                                    std::size_t stride, std::size_t count) {
  check(first < places.size() && stride != 0, "workers are placed on processors that there are");
  std::vector<const Place*> ordered;
  for (std::size_t offset = 0; offset < stride && (offset == 0 || count > ordered.size());
       ++offset) {
    for (std::size_t i = first + offset; i < places.size(); i += stride) {
      ordered.push_back(places[i]);
    }
  }
  std::vector<const Place*> chosen;
  for (std::size_t i = 0; i < (count == 0 ? ordered.size() : count); ++i) {
    chosen.push_back(ordered[i % ordered.size()]);
  }
  return chosen;
}

}  // namespace sterna::topology
