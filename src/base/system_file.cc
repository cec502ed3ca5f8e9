// See system_file.h.
#include "base/system_file.h"

#include <array>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "base/syscall.h"

namespace sterna {

std::optional<std::string> first_line_of(const char* path) {
  const FileDescriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  std::array<char, 4096> bytes;
  const long count = system_call([&] { return ::read(file.get(), bytes.data(), bytes.size()); });
  if (count <= 0) {
    return std::nullopt;
  }
  const std::string_view text{bytes.data(), static_cast<std::size_t>(count)};
  return std::string{text.substr(0, text.find('\n'))};
}

std::string boot_id() {
  return first_line_of("/proc/sys/kernel/random/boot_id").value_or("");
}

}  // namespace sterna
