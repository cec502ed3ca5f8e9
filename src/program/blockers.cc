// A table in the rank's data names what it can, the counters of the slot count all.
#include "program/blockers.h"

#include <cstdarg>
#include <cstdio>

#include "base/utf8.h"
#include "program/blocker_table.h"
#include "program/rank_data.h"

namespace sterna::program {
namespace {

std::atomic<std::uint32_t>& counter(const RankData& data, BlockerKind kind) noexcept {
  return data.slot->refusals[static_cast<std::size_t>(kind)];
}

std::uint32_t& unnamed_count(RankData& data, BlockerKind kind) noexcept {
  return data.unnamed_blockers[static_cast<std::size_t>(kind) - kFirstBlockerKind];
}

const char* what_they_are(BlockerKind kind) noexcept {
  switch (kind) {
    case BlockerKind::file:
      return "open files";
    case BlockerKind::thread:
      return "threads";
    case BlockerKind::mapping:
      return "mappings";
    case BlockerKind::library:
      return "libraries";
    case BlockerKind::locale:
      return "locales";
    case BlockerKind::process:
      return "child processes and timers";
    case BlockerKind::order:
      break;
  }
  return "things";
}

bool has_order(const memory::RankSlot& slot) noexcept {
  return slot.refusals[static_cast<std::size_t>(BlockerKind::order)].load(
             std::memory_order_relaxed) != 0;
}

constexpr BlockerKind kKinds[] = {BlockerKind::file,    BlockerKind::thread, BlockerKind::mapping,
                                  BlockerKind::library, BlockerKind::locale, BlockerKind::process};

}  // namespace

void add_blocker(RankData& data, BlockerKind kind, std::uint64_t key, const char* format,
                 ...) noexcept {
  const SpinGuard guard{data.lock};
  counter(data, kind).fetch_add(1, std::memory_order_relaxed);
  for (Blocker& blocker : data.blockers) {
    if (!blocker.is_used) {
      blocker.is_used = true;
      blocker.kind = kind;
      blocker.key = key;
      va_list arguments;
      va_start(arguments, format);
      const int bytes = std::vsnprintf(blocker.text, sizeof blocker.text, format, arguments);
      va_end(arguments);
      if (bytes >= static_cast<int>(sizeof blocker.text)) {
        blocker.text[whole_characters({blocker.text, sizeof blocker.text - 1})] = '\0';
      }
      return;
    }
  }
  ++unnamed_count(data, kind);
}

void remove_blocker(RankData& data, BlockerKind kind, std::uint64_t key) noexcept {
  const SpinGuard guard{data.lock};
  for (Blocker& blocker : data.blockers) {
    if (blocker.is_used && blocker.kind == kind && blocker.key == key) {
      blocker.is_used = false;
      counter(data, kind).fetch_sub(1, std::memory_order_relaxed);
      return;
    }
  }
  // Acquired when the table was full: it is one of those without a name.
  std::uint32_t& unnamed = unnamed_count(data, kind);
  if (unnamed != 0) {
    --unnamed;
    counter(data, kind).fetch_sub(1, std::memory_order_relaxed);
  }
}

std::string describe_blockers(const memory::RankSlot& slot) {
  std::string text;
  if (slot.program == nullptr) {
    return text;
  }
  RankData& data = data_of(slot);
  const SpinGuard guard{data.lock};
  for (const Blocker& blocker : data.blockers) {
    if (blocker.is_used) {
      text.append(text.empty() ? "" : "; ").append(blocker.text);
    }
  }
  for (const BlockerKind kind : kKinds) {
    const std::uint32_t more = unnamed_count(data, kind);
    if (more != 0) {
      text += "; " + std::to_string(more) + " more " + what_they_are(kind);
    }
  }
  if (has_order(slot)) {
    text.append(text.empty() ? "" : "; ").append("the program wants it to stay");
  }
  return text;
}

bool may_move(const memory::RankSlot& slot) noexcept {
  for (const BlockerKind kind : kKinds) {
    if (slot.refusals[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed) != 0) {
      return false;
    }
  }
  return !has_order(slot);
}

}  // namespace sterna::program
