// key.h: the C names of thread-specific data.
#include "threads/sync/key.h"

#include <sterna/key.h>

#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::runtime::RuntimeScope;

static_assert(threads::kKeyCountMax == STERNA_KEYS_MAX);

namespace {

sterna_status refuse_key(sterna_key key) noexcept {
  return capi::refuse(STERNA_INVALID_ARGUMENT,
                      "key {} is none: it was not created, or has been deleted", key);
}

}  // namespace

sterna_status sterna_key_create(sterna_key* key, void (*destructor)(void*)) noexcept {
  const RuntimeScope scope;
  const capi::Program* program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (key == nullptr) {
    return capi::refuse_argument(__func__);
  }
  auto made = threads::create_key(*program->team, destructor);
  if (!made) {
    return capi::refuse(STERNA_OUT_OF_MEMORY, "{}", made.error().text);
  }
  *key = made.value().index;
  return STERNA_SUCCESS;
}

sterna_status sterna_key_delete(sterna_key key) noexcept {
  const RuntimeScope scope;
  const capi::Program* program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (!threads::is_key(*program->team, {key})) {
    return refuse_key(key);
  }
  threads::delete_key(*program->team, {key});
  return STERNA_SUCCESS;
}

void* sterna_key_get(sterna_key key) noexcept {
  const RuntimeScope scope;
  return key < threads::kKeyCountMax ? threads::get_specific({key}) : nullptr;
}

sterna_status sterna_key_get_of(sterna_key key, const sterna_thread* thread,
                                void** value) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (value == nullptr) {
    return capi::refuse_argument(__func__);
  }
  const threads::Thread* const owner = capi::thread_of(thread);
  if (owner == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (!threads::is_key(*program->team, {key})) {
    return refuse_key(key);
  }
  *value = threads::specific_of(*owner, {key});
  return STERNA_SUCCESS;
}

sterna_status sterna_key_set(sterna_key key, void* value) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (threads::self() == nullptr) {
    return capi::refuse(STERNA_UNSUPPORTED, "a kernel thread has no values: key {}", key);
  }
  if (!threads::is_key(*program->team, {key})) {
    return refuse_key(key);
  }
  return threads::set_specific({key}, value) ? STERNA_SUCCESS : STERNA_OUT_OF_MEMORY;
}
