// Opening the drivers of a node, and the ways to the others.
#include <algorithm>

#include <fmt/format.h>

#include "base/wire.h"
#include "net/core.h"
#include "net/opening/poll_place.h"

namespace sterna::net {
namespace {

constexpr std::size_t kAddressBytesMax = 4096;  // Of one driver of one node.
constexpr std::size_t kDriversMax = 16;

/// Whether there may be several rails to a node that the first driver reaches.
bool opens_more(std::span<const DriverChoice> drivers, bool are_all_rails) {
  std::vector<std::string> names;
  for (const DriverChoice& choice : drivers) {
    names.emplace_back(choice.text());
  }
  const std::vector<bool> reach(names.size(), true);
  return choose_rails(names, reach, are_all_rails).size() > 1;
}

}  // namespace

Result<> TransportCore::open_drivers(const TransportOptions& options) {
  frame_payload_max_ = kPacketBytesMin - kHeaderBytes;
  if (limits_.node_count == 1) {
    return Done{};
  }
  bool reach_all = true;  // Each driver all nodes, without their addresses.
  auto repeated = repeat_by_connections(options.drivers, options.settings);
  if (!repeated) {
    return repeated.error();
  }
  choices_ = std::move(repeated.value());
  const DriverOptions driver_options{.bootstrap = options.bootstrap,
                                     .clock = options.clock,
                                     .log = options.log,
                                     .settings = options.settings,
                                     .kept = &kept_};
  for (const DriverChoice& choice : choices_) {
    Result<std::unique_ptr<Driver>> driver = open_driver(choice, driver_options);
    if (!driver) {
      return driver.error();
    }
    rails_.push_back(std::make_unique<Rail>(*this, static_cast<std::uint16_t>(rails_.size()),
                                            std::move(driver.value())));
    driver_names_.emplace_back(choice.text());
    // All nodes see the same answer: either all exchange addresses, or none does.
    for (std::uint32_t node = 0; node < limits_.node_count; ++node) {
      reach_all = reach_all && (node == node_ || rails_.back()->driver().reaches(node, {}));
    }
    if (rails_.size() == 1 && reach_all &&
        !opens_more(choices_, options_.link_wishes.are_all_rails)) {
      break;
    }
  }
  bind_rails(driver_options, options.system);
  addresses_.assign(rails_.size(), std::vector<std::vector<std::byte>>(limits_.node_count));
  if (!reach_all) {
    if (Result<> exchanged = exchange_addresses(*options.bootstrap); !exchanged) {
      return exchanged;
    }
  }
  return open_gates();
}

/// Where each is polled, once the job has said that it is not all the same.
void TransportCore::bind_rails(const DriverOptions& given, const std::string& system) {
  const std::string_view wanted = options_.poll_at;
  if (wanted == kPollAt.fallback) {
    return;
  }
  PollMachine machine = this_machine(wants_numa_nodes(wanted, choices_));
  machine.system = system;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    DriverOptions its = given;
    its.instance = choices_[i].instance;
    PollPlace place = find_poll_place(poll_at(wanted, choices_[i]), choices_[i], its, machine);
    log_.info("{} is polled {}", driver_names_[i], place.text);
    rails_[i]->bind(std::move(place.where));
  }
}

Result<> TransportCore::exchange_addresses(Bootstrap& bootstrap) {
  std::vector<std::byte> mine;
  wire::Writer writer{mine, kAddressBytesMax * kDriversMax};
  writer.u32(static_cast<std::uint32_t>(rails_.size()));
  for (const auto& rail : rails_) {
    writer.blob(rail->driver().address());
  }
  check(writer.ok(), "the addresses of the drivers fit the bound");
  auto blobs = bootstrap.exchange(mine);
  if (!blobs) {
    return blobs.error();
  }
  for (std::uint32_t node = 0; node < limits_.node_count; ++node) {
    wire::Reader reader{blobs.value()[node]};
    const bool is_same_count = reader.u32() == rails_.size();
    for (std::size_t i = 0; i < rails_.size(); ++i) {
      const std::span<const std::byte> address = reader.blob(kAddressBytesMax);
      addresses_[i][node].assign(address.begin(), address.end());
    }
    if (!is_same_count || !reader.finished()) {
      return Error{Errc::malformed,
                   fmt::format("node {} opened other network drivers than node {}: start all with "
                               "the same --drivers",
                               node, node_)};
    }
  }
  return Done{};
}

/// The links of the ways that have one: see plan_way().
void TransportCore::open_bond() {
  LinkShared shared{.pool = &pool_,
                    .strategy = options_.strategy,
                    .clock = &clock_,
                    .log = &log_,
                    .key = make_sum_key(std::as_bytes(std::span{job_.secret})),
                    .options = options_.links,
                    .wake = [](void* core) noexcept { static_cast<TransportCore*>(core)->wake(); },
                    .core = this};
  for (std::uint32_t node = 0; node < limits_.node_count; ++node) {
    std::vector<WayDriver> drivers;
    for (std::size_t i = 0; i < rails_.size(); ++i) {
      const Driver& driver = rails_[i]->driver();
      drivers.push_back({.name = driver_names_[i],
                         .capabilities = driver.capabilities(),
                         .reaches = node != node_ && driver.reaches(node, addresses_[i][node])});
    }
    const WayPlan plan = plan_way(drivers, options_.link_wishes);
    if (!plan.is_link) {
      continue;
    }
    std::vector<Link::RailOpening> openings;
    for (const std::uint16_t i : plan.rails) {
      openings.push_back({&rails_[i]->driver(), addresses_[i][node], i, driver_names_[i]});
    }
    if (bond_ == nullptr) {
      Bond::Owner& owner = *this;
      bond_ = std::make_unique<Bond>(limits_.node_count, shared, owner);
    }
    bond_->add(node, openings);
  }
}

/// Over its link, else by the first driver that reaches it. False: none does.
bool TransportCore::open_gate(std::uint32_t node, const GateShared& shared) {
  if (bond_ != nullptr && bond_->has(node)) {
    const CostModel::Options cost = link_cost(options_, bond_->rail_count(node));
    gates_[node].open(node, *bond_, {}, CostModel{bond_->capabilities(), false, cost}, shared,
                      bond_->rail_count(node));
    gates_[node].take_cut(bond_->cut(node));
    return true;
  }
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    Driver& driver = rails_[i]->driver();
    if (driver.reaches(node, addresses_[i][node])) {
      const bool is_direct = driver.capabilities().direct_mb_per_s != 0;
      gates_[node].open(node, driver, addresses_[i][node],
                        CostModel{driver.capabilities(), is_direct, options_.cost}, shared);
      if (invitations_.own() == nullptr) {
        invitations_.open(driver.invitations());
      }
      if (looked_at_ == nullptr && driver.capabilities().has_short_way) {
        looked_at_ = &driver;
      }
      return true;
    }
  }
  return false;
}

Result<> TransportCore::open_gates() {
  std::uint32_t packet_bytes_max = ~std::uint32_t{0};
  for (const auto& rail : rails_) {
    const Capabilities& capabilities = rail->driver().capabilities();
    check(capabilities.packet_bytes_max >= kPacketBytesMin, "packets are of a useful size");
    packet_bytes_max = std::min(packet_bytes_max, capabilities.packet_bytes_max);
  }
  open_bond();
  // A frame may be forwarded over any rail, here or from another node: it fits the smallest, and
  // if any way may be a link, a link's.
  const LinkWishes& wishes = options_.link_wishes;
  const bool may_link =
      bond_ != nullptr || rails_.size() > 1 || wishes.has_sums || wishes.use == LinkUse::always;
  frame_payload_max_ =
      packet_bytes_max - kHeaderBytes - (may_link ? std::uint32_t{kLinkHeaderBytes} : 0);
  const GateShared shared{
      &pool_, options_.strategy, &waiting_gates_, &is_serial_,  on_stale, on_bad_choice,
      this,   &clock_,           &hand_over_,     wake_sleeper, &kept_,   &side_work_};
  for (std::uint32_t node = 0; node < limits_.node_count; ++node) {
    if (node != node_ && !open_gate(node, shared)) {
      return Error{Errc::unreachable,
                   fmt::format("no network driver of node {} reaches node {} on {}; add one that "
                               "does with --drivers",
                               node_, node, job_.host_of_node[node])};
    }
  }
  std::vector<Driver*> drivers;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    drivers.push_back(&rails_[i]->driver());
    names.emplace_back(choices_[i].full_text());
  }
  if (bond_ != nullptr) {
    drivers.push_back(bond_.get());
    names.push_back(fmt::format("link({})", fmt::join(names, "+")));
  }
  sampler_.open(std::move(drivers), std::move(names), bond_.get());
  return Done{};
}

}  // namespace sterna::net
