// A set of processors, by the numbers of the operating system.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace sterna::topology {

/// Of any size. A value.
class CpuSet {
 public:
  CpuSet() noexcept = default;
  CpuSet(std::initializer_list<std::uint32_t> cpus) {
    for (const std::uint32_t cpu : cpus) {
      add(cpu);
    }
  }

  void add(std::uint32_t cpu) {
    if (words_.size() <= cpu / 64) {
      words_.resize(cpu / 64 + 1);
    }
    words_[cpu / 64] |= std::uint64_t{1} << (cpu % 64);
  }
  void add(const CpuSet& other) {
    words_.resize(std::max(words_.size(), other.words_.size()));
    for (std::size_t i = 0; i < other.words_.size(); ++i) {
      words_[i] |= other.words_[i];
    }
  }
  [[nodiscard]] bool has(std::uint32_t cpu) const noexcept {
    return cpu / 64 < words_.size() && (words_[cpu / 64] >> (cpu % 64) & 1) != 0;
  }
  [[nodiscard]] bool includes(const CpuSet& other) const noexcept {
    for (std::size_t i = 0; i < other.words_.size(); ++i) {
      if ((other.words_[i] & ~(i < words_.size() ? words_[i] : 0)) != 0) {
        return false;
      }
    }
    return true;
  }
  [[nodiscard]] std::uint32_t count() const noexcept {
    std::uint32_t total = 0;
    for (const std::uint64_t word : words_) {
      total += static_cast<std::uint32_t>(std::popcount(word));
    }
    return total;
  }
  [[nodiscard]] bool empty() const noexcept { return count() == 0; }
  [[nodiscard]] std::vector<std::uint32_t> list() const;
  /// "0-3,8".
  [[nodiscard]] std::string text() const;
  /// The other way, as the system's files have it; what is no such list ends it.
  [[nodiscard]] static CpuSet read(std::string_view text);

  friend bool operator==(const CpuSet& a, const CpuSet& b) noexcept {
    return a.includes(b) && b.includes(a);
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace sterna::topology
