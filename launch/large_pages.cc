// The tunables of glibc that give malloc large pages.
#include "launch/large_pages.h"

#include <string_view>

namespace sterna::launch {
namespace {

constexpr std::string_view kVariable = "GLIBC_TUNABLES=";
// The last two are what glibc comes to by itself at most (mallopt(3), M_MMAP_THRESHOLD).
constexpr std::string_view kWishes =
    "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:"
    "glibc.malloc.trim_threshold=67108864";

}  // namespace

void ask_for_large_pages(std::vector<std::string>& environment) {
  constexpr std::string_view kOwnWishes[] = {"MALLOC_", "LD_PRELOAD="};
  std::string* tunables = nullptr;
  for (std::string& variable : environment) {
    for (const std::string_view own : kOwnWishes) {
      if (variable.starts_with(own)) {
        return;  // A user who tunes malloc, or brings one of his own.
      }
    }
    tunables = variable.starts_with(kVariable) ? &variable : tunables;
  }
  if (tunables == nullptr) {
    environment.push_back(std::string{kVariable}.append(kWishes));
  } else if (tunables->find("glibc.malloc.") == std::string::npos) {
    const bool is_empty = tunables->size() == kVariable.size();
    tunables->append(is_empty ? "" : ":").append(kWishes);
  }
}

}  // namespace sterna::launch
