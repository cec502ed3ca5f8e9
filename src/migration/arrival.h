// A rank on its way here, or perhaps to come, and one that leaves. Private to migration/.
#pragma once

#include <cstdint>

#include "migration/migrator.h"

namespace sterna::migration {

/// Guard: the migrator's lock_ for `phase` and the flags; the rest belongs to whoever works on the
/// arrival in its phase.
struct Migrator::Arrival {
  enum class Phase : std::uint8_t {
    mapping,    // on_prepare or on_offer prepares its memory.
    prepared,   // Mapped ahead, or still mapped: the rank runs at the source and may never come.
    accepted,   // Nobody works on it: its bytes may come.
    receiving,  // on_received waits for its bytes.
    received,   // We said "all bytes here": only a dead source or COMMIT installs it.
    ending,     // It is being installed, or given up.
  };
  std::uint32_t rank = 0;
  std::uint32_t from_node = 0;
  Phase phase = Phase::mapping;
  bool is_ahead = false;      // Prepared, or being prepared: no offer has taken it over.
  bool is_kept = false;       // It was here; then also is_ahead, until it comes back.
  bool is_wanted = false;     // An offer waits for the PREPARE to finish, or for the unmapping.
  bool is_given_up = false;   // A thread unmaps it; then also `ending`.
  bool is_cancelled = false;  // The source took the offer back, or died, while we worked on it.
  memory::RankSlot* slot = nullptr;  // Null: not mapped yet.
  memory::RankShape shape;           // As it is mapped.
  std::uint64_t memory_inode = 0;    // Of the memory that is mapped.
  std::uint64_t memory_device = 0;
  std::uint64_t offer_number = 0;  // Of the offer that it answers.
  bool is_memory_shared = false;
  bool is_expected = false;  // The transport holds its messages.
  net::Landing landing;
};

/// Of a thread that does something about a rank.
struct Migrator::RankTask {
  Migrator* migrator;
  std::uint32_t rank;
};

/// On the stack of the rank that moves; read by the mover until the rank runs again.
struct Migrator::Departure {
  Migrator* migrator;
  memory::RankSlot* slot;
  std::uint32_t to_node;
  bool is_memory_closed = false;   // The destination cannot open it.
  bool is_forgotten = false;       // The team counts the rank out: the last step before COMMIT.
  memory::RankShape shape{};       // As it was offered, and is mapped here.
  std::uint64_t memory_inode = 0;  // Of memory that the destination has opened; 0: it was copied.
  std::uint64_t memory_device = 0;
  std::uint64_t offer_number = 0;  // 0: nothing is known of it there.
};

}  // namespace sterna::migration
