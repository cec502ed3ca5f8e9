// Handles, places and the texts of refusals.
#include "runtime/capi/threads/handle.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>

#include "memory/rank_slot.h"
#include "runtime/capi/program.h"
#include "runtime/scope.h"
#include "threads/life/life.h"
#include "threads/this_thread.h"

namespace sterna::runtime::capi {
namespace {

/// A descriptor, not just some address of a stack.
bool names_descriptor(std::uintptr_t bits) noexcept {
  const std::uintptr_t address = address_in(bits);
  return memory::is_stack_address(address) && memory::descriptor_address(address) == address;
}

/// Of the calling thread; null: there is none, or no memory for it.
char* detail_of_caller(bool make) noexcept {
  threads::Thread* const me = threads::self();
  if (me == nullptr || memory::rank_slot_of(me) != nullptr) {
    return threads::kernel_detail();
  }
  if (me->error_text == nullptr && make) {
    me->error_text = new (std::nothrow) char[threads::kDetailBytes]{};
    me->end_flags |= threads::EndFlag::belongings;
  }
  return me->error_text;
}

}  // namespace

threads::Thread* living_thread_of(const sterna_thread* handle) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  if (!names_descriptor(bits)) {
    return nullptr;
  }
  auto* const thread = reinterpret_cast<threads::Thread*>(address_in(bits));
  const std::uint64_t number = thread->id.load(std::memory_order_relaxed);
  const bool is_gone = (number & 0xffff) != bits >> kHandleShift ||
                       thread->joiner.load(std::memory_order_acquire) == threads::Joined::reaped;
  return is_gone ? nullptr : thread;
}

threads::Thread* thread_of(const sterna_thread* handle) noexcept {
  threads::Thread* const thread = living_thread_of(handle);
  if (thread != nullptr) {
    return thread;
  }
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  if (!names_descriptor(bits)) {
    keep_detail("a thread is named by the handle that sterna_thread_create gave; this is none");
  } else {
    (void)refuse(STERNA_INVALID_ARGUMENT,
                 "the thread of handle {:#x} is gone: a thread is joined once, and a detached one "
                 "that has ended is not named any more",
                 bits);
  }
  return nullptr;
}

std::string words_for(const threads::Thread* thread) {
  if (thread == nullptr) {
    return "a kernel thread";
  }
  char name[threads::kNameBytes];
  const std::string_view shown = threads::display_name(*thread, name);
  return thread->name[0] != '\0' ? fmt::format("thread '{}'", shown) : std::string{shown};
}

void keep_detail(std::string_view text) noexcept {
  if (char* const detail = detail_of_caller(!text.empty()); detail != nullptr) {
    const std::size_t bytes = std::min(text.size(), threads::kDetailBytes - 1);
    std::memcpy(detail, text.data(), bytes);
    detail[bytes] = '\0';
  }
}

sterna_status refuse_in_poll(const char* call) noexcept {
  return refuse(STERNA_DEADLOCK,
                "{}: what the poll runs (a quick service, the callback of a message, a polling "
                "task) must not wait: "
                "register the service as STERNA_RPC_THREAD, or let a thread wait",
                call);
}

sterna_status refuse_argument(const char* call) noexcept {
  return refuse(STERNA_INVALID_ARGUMENT, "{}: an argument is NULL, or out of its range", call);
}

const topology::Place* place_named(std::string_view text) noexcept {
  const Program& its = *program();
  const std::size_t colon = text.find(':');
  const topology::Place* place = nullptr;
  std::uint32_t index = 0;
  const std::string_view number =
      colon != std::string_view::npos ? text.substr(colon + 1) : std::string_view{};
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (error == std::errc{} && end == number.data() + number.size()) {
    for (const topology::Place* one : its.topology->places()) {
      if (topology::to_string(one->kind) == text.substr(0, colon) && one->index == index) {
        place = one;
      }
    }
  }
  if (place == nullptr) {
    (void)refuse(STERNA_NOT_FOUND,
                 "the machine has no place \"{}\": sterna topo shows them, e.g. \"core:0\"", text);
  }
  return place;
}

WorkerRange workers_at(std::string_view text) noexcept {
  const Program& its = *program();
  const topology::Place* const place = place_named(text);
  if (place == nullptr) {
    return {};
  }
  WorkerRange range{.place = place->id};
  const auto& pus = its.worker_places;
  for (std::uint32_t i = 0; i < pus.size(); ++i) {
    const bool is_inside = &topology::common_ancestor(*pus[i], *place) == place;
    if (is_inside && range.count == 0) {
      range.first = i;
    }
    range.count += is_inside ? 1 : 0;
  }
  if (range.count == 0) {
    (void)refuse(STERNA_NOT_FOUND, "no worker of this process runs at place \"{}\"", text);
  }
  return range;
}

}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;

sterna_status sterna_error_detail(char* buffer, uint64_t bytes) noexcept {
  const sterna::runtime::RuntimeScope scope;
  if (buffer == nullptr || bytes == 0) {
    return STERNA_INVALID_ARGUMENT;
  }
  const char* const detail = capi::detail_of_caller(false);
  const std::size_t length = detail == nullptr ? 0 : std::strlen(detail);
  const std::size_t stored = std::min<std::size_t>(bytes - 1, length);
  std::memcpy(buffer, detail == nullptr ? "" : detail, stored);
  buffer[stored] = '\0';
  return stored == length ? STERNA_SUCCESS : STERNA_TRUNCATED;
}
