// The tunables of src/net.
#include "net/core.h"
#include "net/opening/poll_place.h"

namespace sterna::net {
namespace {

constexpr Tunable kEagerBytes{
    .name = "net_eager_bytes",
    .kind = TunableKind::bytes,
    .fallback = "0",
    .maximum = 1 << 20,
    .help = "messages up to this size are sent at once, larger ones announced; 0: by cost"};
constexpr Tunable kEagerWindow{
    .name = "net_eager_window",
    .kind = TunableKind::bytes,
    .fallback = "2M",
    .minimum = 4 << 10,
    .maximum = 1 << 30,
    .help =
        "memory that messages of one rank may take at another before that has received them: 640 "
        "bytes each, announced ones too, and five quarters of what comes with them; more waits at "
        "its sender"};
constexpr Tunable kEagerTotal{
    .name = "net_eager_total",
    .kind = TunableKind::bytes,
    .fallback = "64M",
    .minimum = 1 << 20,
    .help =
        "the same of messages of all others together: in a job of many ranks the window of a pair "
        "is its share of this"};
constexpr Tunable kLentBytes{
    .name = "net_lent_bytes",
    .kind = TunableKind::bytes,
    .fallback = "0",
    .maximum = 1 << 30,
    .help =
        "announced messages of so many bytes or more go from memory to memory without a copy where "
        "the network can do that; 0: from where on the cost model says that it is faster"};
constexpr Tunable kLocalEagerBytes{
    .name = "net_local_eager_bytes",
    .kind = TunableKind::bytes,
    .fallback = "16K",
    .maximum = 1 << 20,
    .help = "within a node, larger messages wait at their sender for the receive"};
constexpr Tunable kLocalWindow{
    .name = "net_local_window",
    .kind = TunableKind::bytes,
    .fallback = "16M",
    .minimum = 4 << 10,
    .help =
        "memory that messages of its own node may take at one rank, counted in the same way, "
        "beside "
        "the windows of net_eager_window, which hold what has no room in this one"};
constexpr Tunable kChunkBytes{.name = "net_chunk_bytes",
                              .kind = TunableKind::bytes,
                              .fallback = "1M",
                              .minimum = 4 << 10,
                              .maximum = 1 << 30,
                              .help = "how much of a large message is copied between two polls"};
constexpr Tunable kPollPackets{.name = "net_poll_packets",
                               .kind = TunableKind::integer,
                               .fallback = "64",
                               .minimum = 1,
                               .maximum = 1 << 16,
                               .help = "packets a poll takes from one driver at most"};
constexpr Tunable kStrategyName{
    .name = "net_strategy",
    .kind = TunableKind::text,
    .fallback = "auto",
    .help =
        "what a packet carries when several messages wait for one node, and by which rail it "
        "goes: auto, aggregate, direct, split, urgent, adaptive (sterna info --strategies), or the "
        "path of "
        "a library, with a '/'",
    .verify = verify_strategy};

constexpr Tunable kCostSampling{
    .name = "net_cost_sampling",
    .kind = TunableKind::choice,
    .fallback = "cached",
    .choices = "off start cached",
    .help =
        "where the cost model begins: off: at the profiles of the drivers; start: at what a job "
        "measures of its ways when it starts to use them; cached: the same, but what an earlier "
        "job has measured on this machine (a file in ~/.cache/sterna) counts until then, and is "
        "not "
        "measured again within a minute"};

constexpr Tunable kRails{
    .name = "net_rails",
    .kind = TunableKind::choice,
    .fallback = "same",
    .choices = "same any",
    .help =
        "rails to a node: those of the first driver that reaches it, as often as it was named "
        "(tcp@eth0,tcp@eth1); or any drivers that do"};
constexpr Tunable kLinks{
    .name = "net_links",
    .kind = TunableKind::choice,
    .fallback = "auto",
    .choices = "auto on",
    .help =
        "packets are numbered, kept until they have come, and sent again when a rail breaks; "
        "auto: where there are several rails or one may lose packets; on: on every rail but "
        "shared memory"};
constexpr Tunable kChecksums{
    .name = "net_checksums",
    .kind = TunableKind::flag,
    .fallback = "off",
    .help =
        "packets carry a sum, and what was changed on its way is sent again; makes each way a "
        "link, also one of shared memory, whose long messages then go in packets and are not "
        "copied "
        "directly"};
constexpr Tunable kReconnect{
    .name = "net_reconnect",
    .kind = TunableKind::time,
    .fallback = "10s",
    .maximum = 3'600'000'000'000,
    .help =
        "how long a link without a working rail tries to connect before its node counts as "
        "lost (a node whose process has ended is lost at once)"};
constexpr Tunable kSilence{
    .name = "net_silence",
    .kind = TunableKind::time,
    .fallback = "10s",
    .minimum = 100'000'000,
    .maximum = 3'600'000'000'000,
    .help =
        "a rail that may lose packets, and by which nothing has come for so long though it "
        "was asked, is down"};
constexpr Tunable kOffload{
    .name = "net_offload",
    .kind = TunableKind::choice,
    .fallback = "auto",
    .choices = "off auto on",
    .help =
        "short messages that their sender does not wait for are left to a worker of its process "
        "that is awake and has nothing to run; auto: where to send one has been measured to take "
        "longer than to hand it over; the same for pieces of a message that leaves by several "
        "rails, which are then sent by two workers at once"};

constexpr Tunable kTunables[] = {
    kEagerBytes, kEagerWindow, kEagerTotal, kLentBytes,    kLocalEagerBytes, kLocalWindow,
    kChunkBytes, kPollPackets, kPollAt,     kStrategyName, kCostSampling,    kRails,
    kLinks,      kChecksums,   kReconnect,  kSilence,      kOffload,         memory::kLargePages};

constexpr std::uint32_t kMessagesOfWindow = 4;  // Eager ones that it has room for, at least.
constexpr std::uint64_t kEagerBytesMax = 64 << 10;
constexpr std::uint64_t kEagerBytesMaxOfRails = 256 << 10;

/// One message must not take the whole window.
void bound_eager_bytes(CoreOptions& options) noexcept {
  const std::uint64_t most = options.eager_window_bytes / kMessagesOfWindow;
  options.cost.eager_bytes_max = std::min(kEagerBytesMax, most);
  options.cost.eager_bytes = std::min(options.cost.eager_bytes, most);
}

}  // namespace

std::span<const Tunable> transport_tunables() noexcept {
  return kTunables;
}

Result<CoreOptions> read_options(const Settings* settings) {
  const Settings defaults{kTunables};
  const Settings& values =
      settings != nullptr && settings->has(kEagerBytes.name) ? *settings : defaults;
  Result<const Strategy*> strategy = find_strategy(values.text(kStrategyName));
  if (!strategy) {
    return strategy.error();
  }
  const auto number = [&](const Tunable& tunable) {
    return static_cast<std::uint64_t>(values.number(tunable));
  };
  CoreOptions options{};
  options.eager_window_bytes = static_cast<std::uint32_t>(number(kEagerWindow));
  options.eager_total_bytes = number(kEagerTotal);
  options.cost.lent_bytes = number(kLentBytes);
  options.local_eager_bytes = static_cast<std::uint32_t>(number(kLocalEagerBytes));
  options.local_window_bytes = number(kLocalWindow);
  options.chunk_bytes = static_cast<std::uint32_t>(number(kChunkBytes));
  options.poll_packets_max = static_cast<std::uint32_t>(number(kPollPackets));
  options.poll_at = values.text(kPollAt);
  options.strategy = strategy.value();
  options.strategy_name = values.text(kStrategyName);
  const std::string_view sampling = values.text(kCostSampling);
  options.cost_sampling = sampling == "off"     ? CostSampling::off
                          : sampling == "start" ? CostSampling::start
                                                : CostSampling::cached;
  options.link_wishes = {.use = values.text(kLinks) == "on" ? LinkUse::always : LinkUse::automatic,
                         .are_all_rails = values.text(kRails) == "any",
                         .has_sums = values.flag(kChecksums)};
  options.may_hand_over = values.text(kOffload) != "off";
  options.cost.always_hands_over = values.text(kOffload) == "on";
  options.links = {.has_sums = options.link_wishes.has_sums,
                   .reconnect_ns = number(kReconnect),
                   .silence_ns = number(kSilence)};
  options.joins_pages = values.text(memory::kLargePages) != "off";
  options.cost.eager_bytes = number(kEagerBytes);
  options.cost.eager_bytes_min = 1 << 10;
  bound_eager_bytes(options);
  return options;
}

CoreOptions share_window(CoreOptions options, std::uint32_t rank_count) noexcept {
  const std::uint64_t share = options.eager_total_bytes / std::max(rank_count, 1U);
  options.eager_window_bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(options.eager_window_bytes, share));
  bound_eager_bytes(options);
  return options;
}

Result<LinkWishes> read_link_wishes(const Settings& settings) {
  Result<CoreOptions> options = read_options(&settings);
  if (!options) {
    return options.error();
  }
  return options.value().link_wishes;
}

CostModel::Options link_cost(const CoreOptions& options, std::size_t rail_count) noexcept {
  // What is cut once for several rails has no head, which hides the way of an announcement and its
  // answer elsewhere (head.cc): there it is the cost model alone that ends eager messages.
  CostModel::Options cost = options.cost;
  if (rail_count > 1) {
    const std::uint64_t share = options.eager_window_bytes / kMessagesOfWindow;
    cost.eager_bytes_max = std::max(cost.eager_bytes_max, std::min(share, kEagerBytesMaxOfRails));
  }
  return cost;
}

Result<CostModel> profile_model(const Capabilities& way, const Settings& settings,
                                std::size_t link_rails) {
  Result<CoreOptions> options = read_options(&settings);
  if (!options) {
    return options.error();
  }
  return link_rails != 0
             ? CostModel{way, false, link_cost(options.value(), link_rails)}
             : CostModel{way, way.direct_mb_per_s != 0, options.value().cost};
}

}  // namespace sterna::net
