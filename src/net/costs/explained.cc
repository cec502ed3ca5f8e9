// How the cost model explains what it chooses, and what it knows.
#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "net/costs/cost.h"

namespace sterna::net {
namespace {

/// What the head of an announced message saves, which its figure leaves out.
std::string tell_head(std::uint64_t bytes, double ns) {
  return bytes == 0 ? std::string{}
                    : fmt::format("; what a rendezvous costs is {:.0f} ns less where its "
                                  "first {} bytes go with the announcement, as they do over one "
                                  "rail",
                                  ns, bytes);
}

}  // namespace

const char* to_string(CostOrigin origin) noexcept {
  switch (origin) {
    case CostOrigin::profile:
      return "profile";
    case CostOrigin::cached:
      return "cached";
    case CostOrigin::sampled:
      return "sampled";
  }
  return "?";
}

std::string CostModel::explain_lending(bool is_lent, std::uint64_t from_bytes) const {
  const std::uint64_t from = std::max(from_bytes, eager_bytes_ + 1);
  return is_lent ? fmt::format(
                       "; lent, which is zero copy: the network moves the bytes from memory to "
                       "memory, from {} bytes on (but what goes with the announcement), where two "
                       "copies of each would cost more than two more turns do",
                       from)
                 : fmt::format("; lent (zero copy) from {} bytes on", from);
}

std::string CostModel::explain(std::uint64_t bytes, std::uint64_t lent_from_bytes) const {
  const bool is_eager = bytes <= eager_bytes_;
  const bool is_lent = !is_eager && bytes >= lent_from_bytes;
  const bool goes_direct = bytes >= direct_from_bytes_;
  const double sent_ns = eager_ns(bytes);
  const double announced_ns = goes_direct ? rendezvous_ns(bytes) : packets_ns(bytes);
  // Where these figures would choose otherwise: why they do not.
  std::string bound;
  if (options_.eager_bytes != 0) {
    bound = " (set by net_eager_bytes)";
  } else if (is_eager && sent_ns > announced_ns) {
    bound = bytes <= options_.eager_bytes_min
                ? fmt::format(", as is all of up to {} bytes", options_.eager_bytes_min)
            : sent_ns > rendezvous_ns(bytes)
                ? std::string{", as is what fits a packet: an announcement is two packets more, "
                              "which both sides handle"}
                : fmt::format(", by what a direct copy takes, {:.0f} ns for this one",
                              rendezvous_ns(bytes));
  } else if (!is_eager && sent_ns < announced_ns) {
    const double ps = goes_direct ? direct_ps_per_byte_.value : stream_ps_per_byte();
    const std::uint64_t head = std::min<std::uint64_t>({bytes, head_bytes_, packet_bytes_max_});
    const double turn_ns = 2 * latency_ns_.value;  // Of all of it nothing waits for the answer.
    const double head_ns =
        head == bytes ? turn_ns : std::min(static_cast<double>(head) * ps / 1000, turn_ns);
    bound = eager_bytes_ < options_.eager_bytes_max
                ? ", from where on a rendezvous pays, but for some messages of about one packet"
                : ", the most, since it takes memory of a receiver that is not ready" +
                      tell_head(head, head_ns);
  }
  return fmt::format(
      "{} bytes: {} (eager {:.0f} ns: latency {:.0f} ns, {:.0f} ps/byte; rendezvous {:.0f} ns: {} "
      "at {:.0f} ps/byte{}); eager up to {} bytes{}{}{}",
      bytes,
      is_eager  ? "eager"
      : is_lent ? "rendezvous, lent"
                : "rendezvous",
      sent_ns, latency_ns_.value,
      stream_ps_per_byte() + copy_ps_per_byte_.value / 2,
      announced_ns,
      goes_direct ? "written directly" : "packets",
      goes_direct ? direct_ps_per_byte_.value : stream_ps_per_byte(),
      both_ways_ == 0 || !is_direct_
          ? ""
          : fmt::format("; of those that come {:.0f} % while others go, so that a byte of packets "
                        "takes what filling and reading take, {:.0f} and {:.0f} ps",
                        100 * both_ways_, packet_ps_per_byte_.value, reading_ps_per_byte_.value),
      eager_bytes_,
      bound,
      !is_eager || !hands_over()
          ? ""
          : fmt::format("; {:.0f} ns of the sender's, left to an idle worker "
                        "if he does not wait for it",
                        send_ns_.value),
      lent_from_bytes == kNever ? "" : explain_lending(is_lent, lent_from_bytes));
}

std::array<CostModel::Row, 9> CostModel::figures() const noexcept {
  return {{{"latency_ns", latency_ns_},
           {"packet_ns", packet_ns_},
           {"packet_ps_per_byte", packet_ps_per_byte_},
           {"copy_ps_per_byte", copy_ps_per_byte_},
           {"direct_latency_ns", direct_latency_ns_},
           {"direct_ps_per_byte", direct_ps_per_byte_},
           {"send_ns", send_ns_},
           {"piece_ps_per_byte", piece_ps_per_byte_},
           {"reading_ps_per_byte", reading_ps_per_byte_}}};
}

std::string CostModel::describe() const {
  std::string text;
  for (const Row& row : figures()) {
    const std::string_view name{row.name};
    if (is_direct_ || !(name.starts_with("direct") || name.starts_with("reading"))) {
      text +=
          fmt::format("{} {:.0f} ({}", row.name, row.figure.value, to_string(row.figure.origin));
      text += row.figure.corrections == 0
                  ? "), "
                  : fmt::format(", corrected {} times), ", row.figure.corrections);
    }
  }
  text += fmt::format("eager up to {} bytes, ", eager_bytes_);
  text += direct_from_bytes_ == kNever
              ? "never copied directly, "
              : fmt::format("copied directly from {}, ", direct_from_bytes_);
  return text + fmt::format("sharing packets up to {}{}", share_bytes_,
                            hands_over() ? ", left to idle workers" : "");
}

}  // namespace sterna::net
