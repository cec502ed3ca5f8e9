// Which offers of ranks were taken back before they were looked at here. Private to migration/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace sterna::migration {

/// CANCELs run in the poll, in the order sent; offers are looked at by threads, in any order, also
/// a later one before an earlier one. So nothing is forgotten but for a later number of the same
/// source and rank: numbers ascend at their source, and who takes one back has taken back, or seen
/// the answer of, all before it. At most one entry a source and rank. No lock of its own.
class WithdrawnOffers {
 public:
  void add(std::uint32_t source, std::uint32_t rank, std::uint64_t number) {
    std::uint64_t& last = last_[{source, rank}];
    last = std::max(last, number);
  }
  [[nodiscard]] bool contains(std::uint32_t source, std::uint32_t rank,
                              std::uint64_t number) const {
    const auto found = last_.find({source, rank});
    return found != last_.end() && number <= found->second;
  }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> last_;
};

}  // namespace sterna::migration
