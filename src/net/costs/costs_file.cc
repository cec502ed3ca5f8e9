// The file of measured costs: a few lines of words.
#include "net/costs/costs_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/syscall.h"
#include "base/system_file.h"

namespace sterna::net {
namespace {

constexpr std::string_view kFirstLine = "sterna-costs 2";
constexpr std::string_view kThisHost = "-";
constexpr std::size_t kWordBytesMax = 256;

/// Splits off what is before the first `mark`; all, if there is none.
std::string_view take_until(std::string_view& text, char mark) noexcept {
  const std::size_t at = text.find(mark);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

template <typename Number>
bool read_number(std::string_view word, Number& value) noexcept {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return !word.empty() && error == std::errc{} && end == word.data() + word.size();
}

bool is_word(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kWordBytesMax &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

std::array<std::uint32_t*, 6> figures_of(WayCosts& costs) noexcept {
  return {&costs.latency_ns,       &costs.packet_ns,         &costs.packet_ps_per_byte,
          &costs.copy_ps_per_byte, &costs.direct_latency_ns, &costs.direct_ps_per_byte};
}

bool read_way(std::string_view line, CostsEntry& entry) {
  const std::string_view driver = take_until(line, ' ');
  const std::string_view host = take_until(line, ' ');
  if (!is_word(driver) || !is_word(host) ||
      !read_number(take_until(line, ' '), entry.packet_bytes_max) ||
      !read_number(take_until(line, ' '), entry.at_s)) {
    return false;
  }
  for (std::uint32_t* const figure : figures_of(entry.costs)) {
    if (!read_number(take_until(line, ' '), *figure)) {
      return false;
    }
  }
  entry.driver = driver;
  entry.host = host == kThisHost ? "" : host;
  return line.empty() && are_plausible(entry.costs);
}

Error malformed(std::string_view line) {
  return {Errc::malformed,
          fmt::format("no line of a file of costs: \"{}\"", line.substr(0, kWordBytesMax))};
}

}  // namespace

std::string costs_machine() {
  return fmt::format("{} {} {}", boot_id(), ::sysconf(_SC_NPROCESSORS_ONLN), STERNA_COSTS_BUILD);
}

std::string costs_path() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::array<char, 65> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) {
    return {};
  }
  std::ranges::replace(name, '/', '_');
  if (cache != nullptr && *cache == '/') {
    return fmt::format("{}/sterna/costs-{}", cache, name.data());
  }
  return home != nullptr && *home == '/'
             ? fmt::format("{}/.cache/sterna/costs-{}", home, name.data())
             : std::string{};
}

Result<std::vector<CostsEntry>> decode_costs_file(std::string_view text, std::string_view machine,
                                                  std::uint64_t now_s) {
  if (text.size() > kCostsFileBytesMax || !text.ends_with('\n')) {
    return malformed("(its length)");
  }
  if (const std::string_view line = take_until(text, '\n'); line != kFirstLine) {
    return malformed(line);
  }
  std::string_view line = take_until(text, '\n');
  if (take_until(line, ' ') != "machine") {
    return malformed(line);
  }
  if (line != machine) {
    return Error{Errc::refused, fmt::format("costs of another machine, boot or build: {}",
                                            line.substr(0, kWordBytesMax))};
  }
  std::vector<CostsEntry> entries;
  std::size_t count = 0;
  for (;;) {
    line = take_until(text, '\n');
    const std::string_view whole = line;
    const std::string_view kind = take_until(line, ' ');
    if (kind == "end") {
      std::size_t told = 0;
      if (!read_number(line, told) || told != count || !text.empty()) {
        return malformed(whole);
      }
      return entries;
    }
    CostsEntry entry;
    if (kind != "way" || ++count > kCostsEntriesMax || !read_way(line, entry)) {
      return malformed(whole);
    }
    if (entry.at_s <= now_s && now_s - entry.at_s < kCostsFreshSeconds) {
      entries.push_back(std::move(entry));
    }
  }
}

std::string encode_costs_file(std::span<const CostsEntry> entries, std::string_view machine) {
  std::string text = fmt::format("{}\nmachine {}\n", kFirstLine, machine);
  std::size_t count = 0;
  for (const CostsEntry& entry : entries) {
    const std::string_view host = entry.host.empty() ? kThisHost : std::string_view{entry.host};
    if (!is_word(entry.driver) || !is_word(host) || entry.host == kThisHost ||
        !are_plausible(entry.costs) || count == kCostsEntriesMax) {
      continue;
    }
    std::string line =
        fmt::format("way {} {} {} {}", entry.driver, host, entry.packet_bytes_max, entry.at_s);
    WayCosts costs = entry.costs;
    for (const std::uint32_t* const figure : figures_of(costs)) {
      line += fmt::format(" {}", *figure);
    }
    if (text.size() + line.size() + 16 > kCostsFileBytesMax) {
      break;
    }
    text += line + "\n";
    ++count;
  }
  return text + fmt::format("end {}\n", count);
}

Result<std::vector<CostsEntry>> read_costs(const std::string& path, std::string_view machine,
                                           std::uint64_t now_s) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (!file.is_open()) {
    return system_error(path, last_error_number());
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid()) {
    return Error{Errc::refused, path + " is no file of this user"};
  }
  std::string text(kCostsFileBytesMax + 1, '\0');
  const long count = system_call([&] { return ::read(file.get(), text.data(), text.size()); });
  if (count < 0) {
    return system_error(path, static_cast<int>(-count));
  }
  return decode_costs_file(std::string_view{text}.substr(0, static_cast<std::size_t>(count)),
                           machine, now_s);
}

Result<> add_costs(const std::string& path, std::string_view machine,
                   std::span<const CostsEntry> entries, std::uint64_t now_s) {
  std::vector<CostsEntry> all{entries.begin(), entries.end()};
  if (Result<std::vector<CostsEntry>> old = read_costs(path, machine, now_s)) {
    std::ranges::copy_if(old.value(), std::back_inserter(all), [&](const CostsEntry& entry) {
      return std::ranges::none_of(
          entries, [&](const CostsEntry& newer) { return newer.is_same_way(entry); });
    });
  }
  const std::string folder = path.substr(0, path.rfind('/'));
  // What is there already stays as it is; what cannot be made, the file says.
  (void)::mkdir(folder.substr(0, folder.rfind('/')).c_str(), 0700);
  (void)::mkdir(folder.c_str(), 0700);
  const std::string beside = fmt::format("{}.{}", path, ::getpid());
  const FileDescriptor file{
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file.is_open()) {
    return system_error("cannot write " + beside, last_error_number());
  }
  const std::string text = encode_costs_file(all, machine);
  const long written = system_call([&] { return ::write(file.get(), text.data(), text.size()); });
  if (written != static_cast<long>(text.size()) || ::rename(beside.c_str(), path.c_str()) != 0) {
    const int error = written < 0 ? static_cast<int>(-written) : last_error_number();
    (void)::unlink(beside.c_str());
    return system_error("cannot write " + path, error);
  }
  return Done{};
}

}  // namespace sterna::net
