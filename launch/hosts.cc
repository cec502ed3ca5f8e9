// Reads lists and files of hosts, and shares the nodes of a job out among them.
#include "launch/hosts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include <unistd.h>

namespace sterna::launch {
namespace {

Error wrong(std::string text) {
  return {Errc::invalid_argument, std::move(text)};
}

/// "name", "name:4", "name slots=4", "name slots=4 max_slots=8", "name 4", all as "name:4"; "name:"
/// is a name. Nothing is left of an empty line.
std::string joined_line(const std::string& line) {
  std::istringstream words{line};
  std::string joined;
  bool has_slots = false;
  for (std::string word; words >> word;) {
    const bool is_limit = word.starts_with("max_slots=") || word.starts_with("max-slots=");
    if (joined.empty()) {
      joined = word;
    } else if (!is_limit || !has_slots) {  // What a host takes at most says nothing beside that.
      has_slots = true;
      joined += ':' + word.substr(word.find('=') + 1);
    }
  }
  while (!joined.empty() && joined.back() == ':') {
    joined.pop_back();
  }
  return joined;
}

Result<HostEntry> parse_host(const std::string& line) {
  HostEntry host{.name = line.substr(0, line.find(':')), .slot_count = 0};
  if (const std::size_t colon = line.find(':'); colon != std::string::npos) {
    const char* const end = line.data() + line.size();
    const auto [stop, bad] = std::from_chars(line.data() + colon + 1, end, host.slot_count);
    if (bad != std::errc{} || stop != end || host.slot_count == 0) {
      return wrong("'" + line + "': after the host's name, a count of slots from 1 is expected");
    }
  }
  if (host.name.empty() || host.name.front() == '-') {
    return wrong("'" + line + "' is no name of a host");
  }
  return host;
}

/// The slots of two lines of one host; never more than a job can use, so that sums stay small.
std::uint32_t joined_slots(std::uint32_t one, std::uint32_t other) {
  const std::uint64_t sum = std::max<std::uint64_t>(one, 1) + std::max<std::uint64_t>(other, 1);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, runtime::kNodeCountMax));
}

}  // namespace

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

bool is_this_host(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == this_host();
}

Result<std::vector<HostEntry>> parse_hosts(std::string_view text) {
  std::vector<HostEntry> hosts;
  std::string plain;
  bool is_comment = false;
  for (const char c : text) {
    is_comment = c == '#' || (is_comment && c != '\n');
    plain += is_comment ? ' ' : (c == ',' ? '\n' : c);
  }
  while (!plain.empty()) {
    const std::string raw = plain.substr(0, plain.find('\n'));
    plain.erase(0, raw.size() + 1);
    const std::string line = joined_line(raw);
    if (line.empty()) {
      continue;
    }
    Result<HostEntry> host = parse_host(line);
    if (!host) {
      return host.error();
    }
    const auto known = std::find_if(hosts.begin(), hosts.end(), [&](const HostEntry& entry) {
      return entry.name == host.value().name;
    });
    if (known == hosts.end()) {
      hosts.push_back(std::move(host.value()));
    } else {
      known->slot_count = joined_slots(known->slot_count, host.value().slot_count);
    }
  }
  return hosts;
}

Result<std::vector<std::size_t>> hosts_of_nodes(const RunOptions& options,
                                                const std::vector<HostEntry>& hosts,
                                                std::size_t node_count) {
  std::vector<std::size_t> result;
  const bool has_slots = std::any_of(hosts.begin(), hosts.end(),
                                     [](const HostEntry& host) { return host.slot_count != 0; });
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    // Without slots: shares that differ by one at most, the larger ones first.
    std::size_t share = node_count / hosts.size() + (h < node_count % hosts.size() ? 1 : 0);
    if (options.processes_per_host != 0) {
      share = options.processes_per_host;
    } else if (has_slots) {
      share = std::max<std::size_t>(hosts[h].slot_count, 1);
    }
    for (std::size_t i = 0; i < share && result.size() < node_count; ++i) {
      result.push_back(h);
    }
  }
  if (result.size() < node_count) {
    return wrong(std::to_string(node_count) + " processes do not fit on the hosts, which take " +
                 std::to_string(result.size()) + ": raise their slots (host:N) or -ppn");
  }
  return result;
}

}  // namespace sterna::launch
