// See poll_place.h.
#include "net/opening/poll_place.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "topology/device.h"
#include "topology/topology.h"

namespace sterna::net {
namespace {

/// "tcp@eth0=device", or a place alone, which is for all.
struct Part {
  std::string_view network;
  std::string_view place;
};

Part take_part(std::string_view& text) noexcept {
  const std::string_view part = text.substr(0, text.find(','));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  const std::size_t equals = part.rfind('=');
  return equals == std::string_view::npos
             ? Part{.network = {}, .place = part}
             : Part{.network = part.substr(0, equals), .place = part.substr(equals + 1)};
}

std::optional<PollAt> place_named(std::string_view name) noexcept {
  return name == "any"           ? std::optional{PollAt::any}
         : name == "application" ? std::optional{PollAt::application}
         : name == "device"      ? std::optional{PollAt::device}
                                 : std::nullopt;
}

/// How much a part says of a network: 0 nothing, more where it means fewer.
int weight_of(const Part& part, const DriverChoice& choice) noexcept {
  const std::string_view name = choice.text();
  // Several connections of one network are named alike in the setting.
  const bool is_this = part.network == name.substr(0, name.rfind('*'));
  return part.network.empty() ? 1 : is_this ? 3 : part.network == choice.entry->name ? 2 : 0;
}

PollPlace anywhere(std::string why) {
  return {.where = {}, .text = "anywhere" + (why.empty() ? std::string{} : ": " + why)};
}

PollPlace at_application(const PollMachine& machine) {
  if (machine.numa_nodes.size() < 2) {
    return anywhere("the processors that may be used are in one NUMA node");
  }
  return {.where = {.places = machine.numa_nodes, .follows_callers = true},
          .text = fmt::format("in that of {} NUMA nodes where a thread called last",
                              machine.numa_nodes.size())};
}

PollPlace at_device(const DriverChoice& choice, const DriverOptions& options,
                    const PollMachine& machine) {
  std::vector<std::string> devices;
  if (choice.entry->devices != nullptr) {
    devices = choice.entry->devices(options);
  }
  if (devices.empty()) {
    return anywhere(fmt::format("{} has no device", choice.text()));
  }
  topology::CpuSet near;
  std::string names;
  for (const std::string& device : devices) {
    const std::string name = device.substr(device.rfind('/') + 1);
    const topology::CpuSet cpus = topology::processors_near(device, machine.system);
    if (cpus.empty()) {
      return anywhere(fmt::format("the system does not say which processors {} is near", name));
    }
    near.add(cpus);
    names += (names.empty() ? "" : " and ") + name;
  }
  topology::CpuSet ours;
  for (const std::uint32_t cpu : near.list()) {
    if (machine.usable.has(cpu)) {
      ours.add(cpu);
    }
  }
  if (ours.empty()) {
    return anywhere(
        fmt::format("of the processors near {}, {}, none may be used", names, near.text()));
  }
  if (ours.includes(machine.usable)) {
    return anywhere(fmt::format("all processors that may be used are near {}", names));
  }
  return {.where = {.places = {ours}},
          .text = fmt::format("on processors {}, near {}", ours.text(), names)};
}

}  // namespace

Result<> verify_poll_at(std::string_view text) {
  if (text.ends_with(',')) {
    return Error{Errc::invalid_argument, "there is no place to poll at behind the last comma"};
  }
  do {
    const Part part = take_part(text);
    if (!place_named(part.place)) {
      return Error{Errc::invalid_argument,
                   fmt::format("'{}' is no place to poll at; there are: any, application, device; "
                               "of one network as in tcp@eth0=device",
                               part.place)};
    }
    if (!part.network.empty()) {
      if (auto known = choose_drivers(part.network); !known) {
        return known.error();
      }
    }
  } while (!text.empty());
  return Done{};
}

PollAt poll_at(std::string_view text, const DriverChoice& choice) noexcept {
  PollAt at = PollAt::any;
  int weight = 0;
  while (!text.empty()) {
    const Part part = take_part(text);
    if (const int its = weight_of(part, choice); its != 0 && its >= weight) {
      weight = its;
      at = place_named(part.place).value_or(PollAt::any);
    }
  }
  return at;
}

bool wants_numa_nodes(std::string_view text, std::span<const DriverChoice> choices) {
  return std::ranges::any_of(choices, [&](const DriverChoice& choice) {
    return poll_at(text, choice) == PollAt::application;
  });
}

PollMachine this_machine(bool wants_nodes) {
  PollMachine machine;
  if (auto usable = topology::current_thread_cpus(); usable) {
    machine.usable = std::move(usable.value());
  }
  if (!wants_nodes) {
    return machine;
  }
  if (auto topology = topology::Topology::detect(); topology) {
    const std::uint32_t count = topology.value()->count(topology::PlaceKind::numa);
    for (std::uint32_t i = 0; i < count; ++i) {
      machine.numa_nodes.push_back(topology.value()->find(topology::PlaceKind::numa, i)->cpus);
    }
  }
  return machine;
}

PollPlace find_poll_place(PollAt at, const DriverChoice& choice, const DriverOptions& options,
                          const PollMachine& machine) {
  switch (at) {
    case PollAt::any:
      break;
    case PollAt::application:
      return at_application(machine);
    case PollAt::device:
      return at_device(choice, options, machine);
  }
  return anywhere({});
}

}  // namespace sterna::net
