// seed.h: the C names of seeds.
#include "threads/seeds/seed.h"

#include <new>

#include <sterna/seed.h>

#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/hot_scope.h"
#include "threads/carriers/border.h"
#include "threads/user_calls.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::runtime::RuntimeScope;
using threads::Seed;

namespace {

/// A seed whose function is code of the program, to which the thread that runs it crosses over.
struct UserSeed : Seed {
  sterna_thread_function user_function = nullptr;
  void* user_argument = nullptr;
};
static_assert(sizeof(sterna_seed) >= sizeof(UserSeed) && alignof(sterna_seed) >= alignof(UserSeed));

void run_user(void* seed) noexcept {
  const auto& its = *static_cast<const UserSeed*>(seed);
  threads::Thread& me = *threads::self();
  threads::leave_runtime(me);
  its.user_function(its.user_argument);
  (void)threads::enter_runtime(me);
}

UserSeed& seed_of(sterna_seed* seed) noexcept {
  return *std::launder(reinterpret_cast<UserSeed*>(seed));
}

UserSeed& make_seed(sterna_seed* seed, sterna_thread_function function, void* argument) noexcept {
  auto& made = *new (seed) UserSeed;
  made.user_function = function;
  made.user_argument = argument;
  return made;
}

sterna_status refuse_planter() noexcept {
  return capi::refuse(STERNA_INVALID_ARGUMENT,
                      "a seed is joined or taken back once, by the thread that planted it");
}

/// On a kernel thread, which has no list of seeds: a thread, marked by `outer`.
sterna_status plant_on_kernel_thread(capi::Program& program, UserSeed& seed,
                                     const threads::ThreadOptions& options) noexcept {
  auto made = program.team->spawn(options, run_user, &seed);
  if (!made) {
    return capi::to_status(made.error().code);
  }
  seed.thread = made.value();
  seed.outer = &seed;
  seed.state.store(Seed::kPlanted, std::memory_order_relaxed);
  return STERNA_SUCCESS;
}

bool is_of_kernel_thread(const Seed& seed) noexcept {
  return seed.outer == &seed && seed.state.load(std::memory_order_relaxed) == Seed::kPlanted;
}

[[gnu::noinline]] sterna_status plant_of_others(sterna_seed* seed, sterna_thread_function function,
                                                void* argument) noexcept {
  return sterna_seed_plant_with(seed, nullptr, function, argument);
}

[[gnu::noinline]] sterna_status leave_plant(threads::Thread* me) noexcept {
  threads::leave_planting(*me);
  return STERNA_SUCCESS;
}

}  // namespace

// As in sterna_thread_create all calls are the last thing that is done, so that nothing is kept
// over one.
sterna_status sterna_seed_plant(sterna_seed* seed, sterna_thread_function function,
                                void* argument) noexcept {
  threads::Thread* const me = sterna::runtime::find_hot_caller();
  if (me == nullptr || me->entity != nullptr || capi::is_in_poll() ||
      capi::the_program == nullptr || function == nullptr || seed == nullptr ||
      me->seeds == &seed_of(seed)) [[unlikely]] {
    return plant_of_others(seed, function, argument);
  }
  UserSeed& planted = make_seed(seed, function, argument);
  if (!threads::try_plant_in_user_code(*me, planted, run_user, &planted)) [[unlikely]] {
    return plant_of_others(seed, function, argument);
  }
  return threads::try_leave_birth(*me) ? STERNA_SUCCESS : leave_plant(me);
}

sterna_status sterna_seed_plant_with(sterna_seed* seed, const sterna_thread_options* options,
                                     sterna_thread_function function, void* argument) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) [[unlikely]] {
    return capi::why_no_program();
  }
  if (seed == nullptr || function == nullptr) [[unlikely]] {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "a seed needs memory and a function");
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);  // Its join would wait.
  }
  const threads::Thread* const me = threads::self();
  const bool is_user_thread = me != nullptr;
  if (is_user_thread && me->seeds == &seed_of(seed)) [[unlikely]] {
    return capi::refuse(STERNA_BUSY,
                        "seed {} is planted already: it is joined before it is planted "
                        "again",
                        static_cast<const void*>(seed));
  }
  if (options == nullptr && is_user_thread) [[likely]] {
    UserSeed& planted = make_seed(seed, function, argument);
    threads::plant(planted, run_user, &planted);
    return STERNA_SUCCESS;
  }
  // As small a stack as an inline run has: what is not asked for forces nothing.
  threads::ThreadOptions used{.stack_bytes = threads::kSeedStackBytes};
  if (options != nullptr) {
    if (const sterna_status status = capi::convert(*options, *program->team, used);
        status != STERNA_SUCCESS) {
      return status;
    }
    if (used.detached || options->stack != nullptr || options->bubble != nullptr ||
        options->has_own_locals != 0) {
      return capi::refuse(STERNA_INVALID_ARGUMENT,
                          "a seed is joined, and has no stack, bubble or thread-local variables of "
                          "its own: is_detached and has_own_locals are 0, stack and bubble NULL");
    }
  }
  UserSeed& planted = make_seed(seed, function, argument);
  if (is_user_thread) {
    threads::plant(planted, used, run_user, &planted);
    return STERNA_SUCCESS;
  }
  return plant_on_kernel_thread(*program, planted, used);
}

namespace {

[[gnu::noinline]] sterna_status join_of_others(sterna_seed* seed) noexcept {
  const RuntimeScope scope;
  if (seed == nullptr) [[unlikely]] {
    return refuse_planter();
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll("sterna_seed_join");
  }
  Seed& joined = seed_of(seed);
  threads::JoinOutcome outcome = threads::JoinOutcome::joined_already;
  if (threads::self() != nullptr) [[likely]] {
    outcome = threads::try_join(joined);
  } else if (is_of_kernel_thread(joined)) {
    outcome = threads::try_join_until(*joined.thread, sterna::kNever);
    joined.state.store(Seed::kJoined, std::memory_order_relaxed);
  }
  switch (outcome) {
    case threads::JoinOutcome::ended:
      return STERNA_SUCCESS;
    case threads::JoinOutcome::cancelled:
      return STERNA_CANCELLED;
    default:
      return refuse_planter();
  }
}

sterna_status run_joined(const UserSeed& seed) noexcept {
  seed.user_function(seed.user_argument);
  return STERNA_SUCCESS;
}

[[gnu::noinline]] sterna_status give_way_and_run(threads::Thread& me,
                                                 const UserSeed& seed) noexcept {
  threads::leave_wished(me);
  return run_joined(seed);
}

}  // namespace

// Usually it is the last one that was planted, and still there: then it runs here, as the code of
// the program that it is.
sterna_status sterna_seed_join(sterna_seed* seed) noexcept {
  threads::Thread* const me = sterna::runtime::find_hot_caller();
  bool must_give_way;
  if (me == nullptr || seed == nullptr || capi::is_in_poll() ||
      !threads::try_take_in_user_code(*me, seed_of(seed), must_give_way)) [[unlikely]] {
    return join_of_others(seed);
  }
  return must_give_way ? give_way_and_run(*me, seed_of(seed)) : run_joined(seed_of(seed));
}

sterna_status sterna_seed_withdraw(sterna_seed* seed) noexcept {
  const RuntimeScope scope;
  const bool is_kernel_thread = threads::self() == nullptr;
  if (seed == nullptr ||
      !(is_kernel_thread ? is_of_kernel_thread(seed_of(seed)) : is_planter(seed_of(seed)))) {
    return refuse_planter();
  }
  if (is_kernel_thread || !threads::withdraw(seed_of(seed))) {
    return capi::refuse(STERNA_BUSY, "the seed has begun: join it");
  }
  return STERNA_SUCCESS;
}

sterna_thread* sterna_seed_thread(const sterna_seed* seed) noexcept {
  const RuntimeScope scope;
  return seed != nullptr ? capi::handle_of(reinterpret_cast<const UserSeed*>(seed)->thread)
                         : nullptr;
}
