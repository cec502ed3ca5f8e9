// A rank on its way here, or perhaps to come. Private to migration/.
#pragma once

#include <cstdint>

#include "migration/migrator.h"

namespace sterna::migration {

/// Guard: the migrator's lock_ for `phase` and the flags; the rest belongs to whoever works on the
/// arrival in its phase.
struct Migrator::Arrival {
  enum class Phase : std::uint8_t {
    mapping,    // on_prepare or on_offer prepares its memory.
    prepared,   // Mapped ahead: the rank still runs at the source and may never come.
    accepted,   // Nobody works on it: its bytes may come.
    receiving,  // on_received waits for its bytes.
    received,   // We said "all bytes here": only a dead source or COMMIT installs it.
    ending,     // It is being installed, or given up.
  };
  std::uint32_t rank = 0;
  std::uint32_t from_node = 0;
  Phase phase = Phase::mapping;
  bool is_ahead = false;      // Of a PREPARE, no offer has taken it over.
  bool is_wanted = false;     // An offer waits for the PREPARE to finish.
  bool is_cancelled = false;  // The source took the offer back, or died, while we worked on it.
  memory::RankSlot* slot = nullptr;  // Null: not mapped yet.
  memory::RankShape shape;           // As it is mapped.
  std::uint64_t memory_inode = 0;    // Of the memory that is mapped.
  bool is_memory_shared = false;
  bool is_expected = false;  // The transport holds its messages.
  net::Landing landing;
};

}  // namespace sterna::migration
