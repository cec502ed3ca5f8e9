// The messages of the handshake: fixed sizes, little-endian, each starts with its own magic word.
#include "net/opening/auth.h"

#include <algorithm>

#include <sodium.h>

#include "base/check.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kHelloMagic = 0x364e5453;      // "STN6"
constexpr std::uint32_t kChallengeMagic = 0x324e5453;  // "STN2"
constexpr std::uint32_t kProofMagic = 0x334e5453;      // "STN3"
constexpr std::uint32_t kVerdictMagic = 0x344e5453;    // "STN4"
constexpr std::uint32_t kConfirmMagic = 0x374e5453;    // "STN7"

constexpr std::size_t kHelloBytes = 4 + 4 + 4 + 8 + 32;
constexpr std::size_t kChallengeBytes = 4 + 32 + 32;
constexpr std::size_t kProofBytes = 4 + 32;
constexpr std::size_t kVerdictBytes = 4 + 4 + 32;
constexpr std::size_t kConfirmBytes = 4 + 32;

constexpr std::uint32_t kAdmitted = 1;
constexpr std::uint32_t kDeclined = 2;

constexpr std::size_t kRoleBytes = 16;

std::uint32_t word_at(std::span<const std::byte> message, std::size_t offset) noexcept {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    word |= static_cast<std::uint32_t>(message[offset + i]) << (8 * i);
  }
  return word;
}

void put_word(std::span<std::byte, 4> out, std::uint32_t word) noexcept {
  for (std::size_t i = 0; i < 4; ++i) {
    out[i] = static_cast<std::byte>(word >> (8 * i));
  }
}

/// In constant time: how much of a wrong tag is right must not show in how long we take.
bool same_tag(std::span<const std::byte> given, std::span<const std::byte> wanted) noexcept {
  return given.size() == wanted.size() &&
         sodium_memcmp(given.data(), wanted.data(), wanted.size()) == 0;
}

}  // namespace

Nonce random_nonce() noexcept {
  check(sodium_init() >= 0, "libsodium starts");
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Handshake Handshake::initiate(const JobSecret& secret, Nodes nodes, const Nonce& nonce,
                              std::uint64_t lost_connection) noexcept {
  check(nodes.self < nodes.node_count && nodes.peer < nodes.node_count && nodes.self != nodes.peer,
        "a handshake joins two different nodes of the job");
  Handshake handshake{secret, nodes};
  handshake.initiator_ = true;
  handshake.initiator_nonce_ = nonce;
  handshake.append_word(kHelloMagic);
  handshake.append_word(nodes.self);
  handshake.append_word(nodes.peer);
  handshake.lost_connection_ = lost_connection;
  handshake.append_word(static_cast<std::uint32_t>(lost_connection));
  handshake.append_word(static_cast<std::uint32_t>(lost_connection >> 32));
  handshake.append(nonce);
  handshake.awaited_ = Step::challenge;
  return handshake;
}

Handshake Handshake::respond(const JobSecret& secret, Nodes nodes, const Nonce& nonce) noexcept {
  Handshake handshake{secret, nodes};
  handshake.responder_nonce_ = nonce;
  handshake.awaited_ = Step::hello;
  return handshake;
}

std::size_t Handshake::bytes_wanted() const noexcept {
  switch (awaited_) {
    case Step::hello:
      return kHelloBytes;
    case Step::challenge:
      return kChallengeBytes;
    case Step::proof:
      return kProofBytes;
    case Step::verdict:
      return kVerdictBytes;
    case Step::confirm:
      return kConfirmBytes;
    case Step::none:
      return 0;
  }
  return 0;
}

Handshake::State Handshake::take(std::span<const std::byte> message) noexcept {
  check(message.size() == bytes_wanted(), "a handshake takes whole messages");
  reply_bytes_ = 0;
  switch (awaited_) {
    case Step::hello:
      return take_hello(message);
    case Step::challenge:
      return take_challenge(message);
    case Step::proof:
      return take_proof(message);
    case Step::verdict:
      return take_verdict(message);
    case Step::confirm:
      return take_confirm(message);
    case Step::none:
      break;
  }
  return state_;
}

Handshake::State Handshake::take_hello(std::span<const std::byte> message) noexcept {
  if (word_at(message, 0) != kHelloMagic) {
    return refuse("it does not speak our protocol");
  }
  const std::uint32_t from = word_at(message, 4);
  if (from >= nodes_.node_count || from == nodes_.self || word_at(message, 8) != nodes_.self) {
    return refuse("it names nodes that are not of this job");
  }
  nodes_.peer = from;
  lost_connection_ = word_at(message, 12) | std::uint64_t{word_at(message, 16)} << 32;
  std::ranges::copy(message.subspan(20, 32), initiator_nonce_.begin());
  append_word(kChallengeMagic);
  append(responder_nonce_);
  append(tag("responder", 0));
  awaited_ = Step::proof;
  return state_;
}

Handshake::State Handshake::take_challenge(std::span<const std::byte> message) noexcept {
  if (word_at(message, 0) != kChallengeMagic) {
    return refuse("it does not speak our protocol");
  }
  std::ranges::copy(message.subspan(4, 32), responder_nonce_.begin());
  if (!same_tag(message.subspan(36, 32), tag("responder", 0))) {
    return refuse("it does not know the secret of the job");
  }
  append_word(kProofMagic);
  append(tag("initiator", 0));
  awaited_ = Step::verdict;
  return state_;
}

Handshake::State Handshake::take_proof(std::span<const std::byte> message) noexcept {
  if (word_at(message, 0) != kProofMagic) {
    return refuse("it does not speak our protocol");
  }
  if (!same_tag(message.subspan(4, 32), tag("initiator", 0))) {
    return refuse("it does not know the secret of the job");
  }
  awaited_ = Step::none;
  state_ = State::proven;
  return state_;
}

Handshake::State Handshake::take_verdict(std::span<const std::byte> message) noexcept {
  const std::uint32_t verdict = word_at(message, 4);
  if (word_at(message, 0) != kVerdictMagic || (verdict != kAdmitted && verdict != kDeclined)) {
    return refuse("it does not speak our protocol");
  }
  if (!same_tag(message.subspan(8, 32), tag("verdict", verdict))) {
    return refuse("it does not know the secret of the job");
  }
  awaited_ = Step::none;
  state_ = verdict == kAdmitted ? State::admitted : State::declined;
  if (state_ == State::admitted) {
    append_word(kConfirmMagic);
    append(tag("confirm", 0));
  }
  return state_;
}

Handshake::State Handshake::take_confirm(std::span<const std::byte> message) noexcept {
  if (word_at(message, 0) != kConfirmMagic ||
      !same_tag(message.subspan(4, 32), tag("confirm", 0))) {
    return refuse("it did not confirm that it was admitted");
  }
  awaited_ = Step::none;
  state_ = State::admitted;
  return state_;
}

void Handshake::decide(bool admit) noexcept {
  check(state_ == State::proven, "only a proven peer is admitted or declined");
  const std::uint32_t verdict = admit ? kAdmitted : kDeclined;
  reply_bytes_ = 0;
  append_word(kVerdictMagic);
  append_word(verdict);
  append(tag("verdict", verdict));
  state_ = admit ? State::pledged : State::declined;
  awaited_ = admit ? Step::confirm : Step::none;
}

std::uint64_t Handshake::connection() const noexcept {
  const Tag name = tag("connection", 0);
  return (word_at(name, 0) | std::uint64_t{word_at(name, 4)} << 32) | 1;
}

Handshake::State Handshake::refuse(std::string_view why) noexcept {
  refusal_ = why;
  awaited_ = Step::none;
  state_ = State::refused;
  return state_;
}

Handshake::Tag Handshake::tag(std::string_view role, std::uint32_t word) const noexcept {
  static_assert(sizeof(Tag) == crypto_auth_BYTES && sizeof(JobSecret) == crypto_auth_KEYBYTES);
  std::array<std::byte, kRoleBytes + 4 + 4 + 4 + 8 + 32 + 32> text{};
  check(role.size() < kRoleBytes, "the name of a role fits");
  std::ranges::copy(std::as_bytes(std::span{role}), text.begin());
  const std::uint32_t initiator = initiator_ ? nodes_.self : nodes_.peer;
  const std::uint32_t responder = initiator_ ? nodes_.peer : nodes_.self;
  const std::span all{text};
  put_word(all.subspan<kRoleBytes, 4>(), word);
  put_word(all.subspan<kRoleBytes + 4, 4>(), initiator);
  put_word(all.subspan<kRoleBytes + 8, 4>(), responder);
  put_word(all.subspan<kRoleBytes + 12, 4>(), static_cast<std::uint32_t>(lost_connection_));
  put_word(all.subspan<kRoleBytes + 16, 4>(), static_cast<std::uint32_t>(lost_connection_ >> 32));
  std::ranges::copy(initiator_nonce_, text.begin() + kRoleBytes + 20);
  std::ranges::copy(responder_nonce_, text.begin() + kRoleBytes + 52);
  Tag out;
  crypto_auth(reinterpret_cast<unsigned char*>(out.data()),
              reinterpret_cast<const unsigned char*>(text.data()), text.size(),
              reinterpret_cast<const unsigned char*>(secret_.data()));
  return out;
}

void Handshake::append(std::span<const std::byte> bytes) noexcept {
  check(reply_bytes_ + bytes.size() <= reply_.size(), "a message of the handshake fits");
  std::ranges::copy(bytes, reply_.begin() + static_cast<std::ptrdiff_t>(reply_bytes_));
  reply_bytes_ += bytes.size();
}

void Handshake::append_word(std::uint32_t word) noexcept {
  std::array<std::byte, 4> bytes;
  put_word(bytes, word);
  append(bytes);
}

}  // namespace sterna::net
