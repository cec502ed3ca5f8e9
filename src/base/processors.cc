// See processors.h.
#include "base/processors.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <system_error>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "base/syscall.h"

namespace sterna {

std::uint32_t usable_processors() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) {
    return 1;
  }
  return static_cast<std::uint32_t>(std::max(CPU_COUNT(&set), 1));
}

std::uint32_t count_of_list(std::string_view list) noexcept {
  const auto number_at = [&](std::uint32_t& number) {
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), number);
    list.remove_prefix(static_cast<std::size_t>(end - list.data()));
    return error == std::errc{};
  };
  std::uint32_t count = 0;
  do {
    std::uint32_t first = 0;
    if (!number_at(first)) {
      return 0;
    }
    std::uint32_t last = first;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      if (!number_at(last) || last < first) {
        return 0;
      }
    }
    count += last - first + 1;
    if (!list.starts_with(',')) {
      break;
    }
    list.remove_prefix(1);
  } while (true);
  return list.empty() || list == "\n" ? count : 0;
}

std::uint32_t online_processors() noexcept {
  // Relaxed: who reads at the same time reads the same.
  constexpr std::uint32_t kUnread = ~0U;
  static constinit std::atomic<std::uint32_t> known{kUnread};
  std::uint32_t count = known.load(std::memory_order_relaxed);
  if (count == kUnread) {
    char text[1024];
    const FileDescriptor file{::open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC)};
    const long bytes =
        file.is_open() ? system_call([&] { return ::read(file.get(), text, sizeof text); }) : 0;
    count = bytes > 0 ? count_of_list({text, static_cast<std::size_t>(bytes)}) : 0;
    known.store(count, std::memory_order_relaxed);
  }
  return count;
}

}  // namespace sterna
