// What the handle of a bubble of a C program points to: bubble.cc builds it, bubble_member.cc puts
// threads into it, bubble_run.cc runs it, bubble_join.cc ends it, held.cc moves it.
//
// Whose is a thread of a bubble? Its bubble's, which joins it in the end, unless the program has
// its handle from sterna_thread_create, or it is detached: then the bubble waits until its entity
// has left the tree, which is the last that a thread does with it, and its slot is freed by
// whoever joins it, or by its end. The entry of a thread says which (is_joined_by_bubble), also
// when its member is gone.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <sterna/bubble.h>

#include "base/fair_lock.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "threads/sync/barrier.h"
#include "threads/sync/semaphore.h"

namespace sterna::runtime::capi {

/// Guard of who holds what, and of the counts, of all bubbles that run: one lock, since threads and
/// bubbles go from one to another. Held for some instructions; the lock of the engine, and those of
/// barriers and semaphores, may be taken inside it. Fair: a joiner takes it once a thread, and
/// others that move and look without end would keep it out.
inline constinit FairLock bubbles_lock;

struct Member;
using Members = std::list<std::unique_ptr<Member>>;  // Spliced, so that a move allocates nothing.
using Bubbles = std::list<std::unique_ptr<sterna_bubble>>;

/// A thread of a bubble, to come or running. Its entity is removed when the thread ends.
struct Member {
  sched::Entity entity;
  std::string name;
  threads::ThreadOptions options;  // But for the name.
  ThreadExtras extras;
  sterna_thread_function function = nullptr;
  void* argument = nullptr;
  // Null: it is made when it starts. Of one with a handle, or in a stack of the program's: it waits
  // for its start. Constant; its slot may be another thread's once it has started.
  threads::Thread* made = nullptr;
  std::uint32_t first_place = sched::kNoPlace;  // Until it starts. Guard: as the next ones.
  // Guard of these five: bubbles_lock, once it runs.
  sterna_bubble* bubble = nullptr;  // Null: of none any more.
  Members::iterator self;           // In the list of its bubble, or of those of none.
  bool has_left = false;  // Its last cleanup has run: it is nobody's to look at. See mark_left().
  bool is_joined_by_bubble = true;  // False: somebody has its handle, or it is detached.
  // Null: it has not begun. By the thread itself, so that who starts it looks at nothing of it
  // afterwards: it may have ended by then, and the memory of this object be gone.
  threads::Thread* thread = nullptr;
  // At the barrier of its bubble it cannot be moved to another one: whose place there would it
  // take along? Free to at_barrier and back: by the thread; free to moving and back: by who moves
  // it. Acquire and release, so that the thread sees which bubble it has after a move.
  enum Stance : std::uint8_t { free, at_barrier, moving };
  std::atomic<std::uint8_t> stance{free};
  // Of the thread: runs last of its cleanups, which may outlive the frame of its function.
  threads::Cleanup leaving;
};

}  // namespace sterna::runtime::capi

/// Before it is submitted: of the program, which builds it from one thread at a time. Afterwards
/// any of its threads may add to it, anybody moves what is in it, and one thread joins it.
struct sterna_bubble {
  sterna_bubble() { bubble.handle = this; }
  ~sterna_bubble() {
    if (sterna::runtime::capi::Program* const its = sterna::runtime::capi::program()) {
      its->scheduler->forget_memory(bubble);
    }
  }
  sterna_bubble(const sterna_bubble&) = delete;
  sterna_bubble& operator=(const sterna_bubble&) = delete;

  sterna::sched::Bubble bubble;
  char name[sterna::threads::kNameBytes] = {};          // Constant once it is submitted.
  std::uint32_t first_place = sterna::sched::kNoPlace;  // Until it is submitted.
  // Guard of all below: bubbles_lock, once it runs.
  sterna::runtime::capi::Members members;
  // Those that have left, and are not joined by the bubble: until they are out of the tree.
  sterna::runtime::capi::Members left;
  sterna::runtime::capi::Bubbles children;
  sterna::runtime::capi::Bubbles::iterator self;  // In the list of its holder, if it has one.
  sterna_bubble* holder = nullptr;
  std::uint32_t running = 0;       // Threads of its own that have not left.
  std::uint32_t running_here = 0;  // The same, with those of the bubbles inside it.
  bool is_submitted = false;
  bool is_joined = false;  // Or somebody is joining it.
  bool is_closed = false;  // The joiner has seen the end of all: it is being freed.
  // A unit each time that running_here becomes 0 while somebody joins.
  sterna::threads::Semaphore ended;
  sterna::threads::Barrier barrier{1};  // Of those that run; a place is kept when nobody does.
};

namespace sterna::runtime::capi {

/// Of a call that decides inside bubbles_lock, where no text can be made: SUCCESS, or why not.
struct Verdict {
  sterna_status status = STERNA_SUCCESS;
  const char* rule = nullptr;  // A sentence for sterna_error_detail.
};
inline constexpr Verdict kClosedVerdict{STERNA_BUSY,
                                        "the bubble has ended, and who joins it is freeing it"};
/// "bubble 'name'", or "bubble 0x7f..".
[[nodiscard]] std::string words_for(const sterna_bubble& bubble);

/// Its status, outside of the lock: the sentence is kept for the caller.
sterna_status tell(const Verdict& verdict) noexcept;

/// bubbles_lock is held: whether `bubble` may hold `child`, with all that it holds.
[[nodiscard]] Verdict check_nesting(const sterna_bubble& bubble,
                                    const sterna_bubble& child) noexcept;
/// `child`, which does not run, is held by `bubble` from now on, and starts if that runs. With
/// is_move it leaves the one that holds it; without, that is refused. Refused, nothing has changed.
sterna_status put_bubble(sterna_bubble& bubble, sterna_bubble& child, bool is_move) noexcept;

/// All threads of the bubble and of those in it.
void list_all(const sterna_bubble& bubble, std::vector<Member*>& members);
/// Into the tree: the bubble with all it holds.
void insert_all(sched::Engine& engine, sched::Bubble& holder, sterna_bubble& bubble) noexcept;
/// bubbles_lock is not held: those that begin at a place of their own go there, wherever the policy
/// has put them.
void put_first(sched::Engine& engine, const sterna_bubble& bubble) noexcept;
void put_first(sched::Engine& engine, Member& member) noexcept;
/// Its entity is in the tree, and it is counted.
sterna_status start(Program& program, Member& member) noexcept;
/// The same for all. The first failure; the others run.
sterna_status start_all(Program& program, const std::vector<Member*>& members) noexcept;

/// A thread for the bubble, from options that were converted once; `handle` (may be null) is
/// written before it can run.
sterna_status add_member(sterna_bubble& bubble, const sterna_thread_options& options,
                         sterna_thread_function function, void* argument,
                         sterna_thread** handle) noexcept;
/// The entries of threads of bubbles: joined by the bubble, or not.
void run_member(void* member);
void run_handed_member(void* member);
/// The bubble runs, and counts the thread already: so does this one, from now on.
sterna_status start_late(Program& program, sterna_bubble& bubble, Member& member) noexcept;
/// By who stops the program, all of whose threads have ended: joins the bubbles that nobody joins,
/// and waits for kernel threads that are joining one, or a thread.
void join_forgotten(Program& program) noexcept;
/// The bubble goes: threads of services do not belong to it any more. Waits for who adds one now.
void forget_bubble(const sterna_bubble& bubble) noexcept;
/// The bubble is not submitted, and goes: what was made for it has ended. May switch.
void end_made(sterna_bubble& bubble) noexcept;
/// The thread, of a bubble or not, is freed by the join of its bubble.
[[nodiscard]] bool is_joined_by_bubble(const threads::Thread& thread) noexcept;
/// It does not run yet, nor is it being started. bubbles_lock is held.
[[nodiscard]] bool is_unstarted(const Member& member) noexcept;

/// Null: the thread, which may be null, is none of a bubble of the program. To be looked into by
/// the thread itself only: of another one it may be freed at any time.
[[nodiscard]] Member* member_of(const threads::Thread* thread) noexcept;
/// bubbles_lock is held, as long as the member is looked into: null, too, when that has left.
[[nodiscard]] Member* living_member_of(const threads::Thread& thread) noexcept;
/// bubbles_lock is held. Two looks for each thread that comes, at those of `all` that came first:
/// what has left is soon gone, and is to be freed by the caller, out of `ended`.
void take_ended(Members& all, Members& ended) noexcept;
/// bubbles_lock is held: one more thread of its own takes part in the barrier; one leaves it.
void enter(sterna_bubble& bubble) noexcept;
void leave(sterna_bubble& bubble) noexcept;
/// bubbles_lock is held: it is told what the bubbles around it say of preemption, unless it has not
/// begun, when it asks itself.
void tell_preemptible(const sched::Engine& engine, Member& member) noexcept;
/// The same for all threads in it, at any depth.
void tell_all_preemptible(const sched::Engine& engine, const sterna_bubble& bubble) noexcept;
/// Programs do not know how deep the machine of the day is: the deepest level there is then.
[[nodiscard]] std::uint32_t level_of_machine(std::uint32_t level) noexcept;
/// bubbles_lock is held: so many threads more, or less, in it and all around it.
void add_running(sterna_bubble* bubble, std::uint32_t count) noexcept;
void subtract_running(sterna_bubble* bubble, std::uint32_t count) noexcept;

}  // namespace sterna::runtime::capi
