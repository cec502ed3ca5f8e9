// The handshake against itself, against itself with every single byte changed, and against replay.
#include "net/opening/auth.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

JobSecret secret_of(int seed) {
  JobSecret secret;
  secret.fill(static_cast<std::byte>(seed));
  return secret;
}

Nonce nonce_of(int seed) {
  Nonce nonce;
  nonce.fill(static_cast<std::byte>(seed));
  return nonce;
}

std::vector<std::byte> copy(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

struct Pair {
  Handshake initiator =
      Handshake::initiate(secret_of(1), {.self = 0, .peer = 1, .node_count = 4}, nonce_of(10));
  Handshake responder =
      Handshake::respond(secret_of(1), {.self = 1, .peer = 0, .node_count = 4}, nonce_of(20));
};

/// Passes messages until both stop; `damage` may change message number i.
template <typename Damage>
void run(Pair& pair, bool admit, Damage damage) {
  auto message = copy(pair.initiator.reply());
  for (int i = 0;; ++i) {
    Handshake& taker = i % 2 == 0 ? pair.responder : pair.initiator;
    damage(i, message);
    if (message.empty() || message.size() != taker.bytes_wanted()) {
      return;
    }
    if (taker.take(message) == Handshake::State::proven) {
      taker.decide(admit);
    }
    message = copy(taker.reply());
  }
}

constexpr auto kNoDamage = [](int, std::vector<std::byte>&) {};

TEST(Auth, NodesOfOneJobAdmitEachOther) {
  Pair pair;
  run(pair, true, kNoDamage);
  EXPECT_EQ(pair.initiator.state(), Handshake::State::admitted);
  EXPECT_EQ(pair.responder.state(), Handshake::State::admitted);
  EXPECT_EQ(pair.responder.peer(), 0U);
}

TEST(Auth, BothSidesKnowAConnectionByOneNumberAndTheOneThatItReplaces) {
  Pair first;
  run(first, true, kNoDamage);
  const std::uint64_t lost = first.initiator.connection();
  EXPECT_EQ(first.responder.connection(), lost);
  EXPECT_EQ(first.responder.lost_connection(), 0U);
  Pair second;
  second.initiator = Handshake::initiate(secret_of(1), {.self = 0, .peer = 1, .node_count = 4},
                                         nonce_of(11), lost);
  run(second, true, kNoDamage);
  EXPECT_EQ(second.responder.lost_connection(), lost);
  EXPECT_EQ(second.responder.connection(), second.initiator.connection());
  EXPECT_NE(second.initiator.connection(), lost);
}

TEST(Auth, WhoIsAdmittedIsWaitedForUntilItConfirms) {
  Pair pair;
  run(pair, true, [](int i, std::vector<std::byte>& message) {
    if (i == 4) {
      message.clear();
    }
  });
  EXPECT_EQ(pair.initiator.state(), Handshake::State::admitted);
  EXPECT_EQ(pair.responder.state(), Handshake::State::pledged);
}

TEST(Auth, DecliningIsKnownToBothSides) {
  Pair pair;
  run(pair, false, kNoDamage);
  EXPECT_EQ(pair.initiator.state(), Handshake::State::declined);
  EXPECT_EQ(pair.responder.state(), Handshake::State::declined);
}

TEST(Auth, AnotherSecretIsRefusedByTheInitiatorFirst) {
  Pair pair;
  pair.responder =
      Handshake::respond(secret_of(2), {.self = 1, .peer = 0, .node_count = 4}, nonce_of(20));
  run(pair, true, kNoDamage);
  EXPECT_EQ(pair.initiator.state(), Handshake::State::refused);
  EXPECT_NE(pair.initiator.refusal().find("secret"), std::string_view::npos);
  EXPECT_NE(pair.responder.state(), Handshake::State::admitted);
}

TEST(Auth, EveryChangedBitIsNoticed) {
  constexpr std::size_t kSizes[] = {52, 68, 36, 40, 36};
  for (int number = 0; number < 5; ++number) {
    for (std::size_t bit = 0; bit < kSizes[number] * 8; ++bit) {
      Pair pair;
      run(pair, true, [&](int i, std::vector<std::byte>& message) {
        if (i == number) {
          message[bit / 8] ^= std::byte{1} << (bit % 8);
        }
      });
      EXPECT_NE(pair.responder.state(), Handshake::State::admitted) << number << " " << bit;
      if (number < 4) {
        EXPECT_NE(pair.initiator.state(), Handshake::State::admitted) << number << " " << bit;
      }
    }
  }
}

TEST(Auth, ReflectedTagIsRefused) {
  // A stranger answers the challenge with the tag it has just been given.
  Pair pair;
  pair.responder.take(copy(pair.initiator.reply()));
  auto proof = copy(pair.responder.reply().subspan(32, 36));
  std::memcpy(proof.data(), "STN3", 4);
  EXPECT_EQ(pair.responder.take(proof), Handshake::State::refused);
}

TEST(Auth, ProofOfAnotherConnectionIsRefused) {
  Pair first;
  std::vector<std::byte> recorded;
  run(first, true, [&](int i, std::vector<std::byte>& message) {
    if (i == 2) {
      recorded = message;
    }
  });
  Pair second;
  second.responder =
      Handshake::respond(secret_of(1), {.self = 1, .peer = 0, .node_count = 4}, nonce_of(21));
  second.responder.take(copy(second.initiator.reply()));
  EXPECT_EQ(second.responder.take(recorded), Handshake::State::refused);
}

TEST(Auth, NodesOutsideTheJobAreRefused) {
  auto hello = copy(Pair{}.initiator.reply());
  hello[4] = std::byte{9};
  Pair pair;
  EXPECT_EQ(pair.responder.take(hello), Handshake::State::refused);
}

TEST(Auth, NoncesDiffer) {
  EXPECT_NE(random_nonce(), random_nonce());
}

}  // namespace
}  // namespace sterna::net
