! Threads and bubbles of Sterna for Fortran (2008): the C calls of sterna.h, thread.h, bubble.h,
! policy.h, and of control.h what needs no structure of C, by ISO_C_BINDING, under their names, with
! their meaning; what they do is said there. Mutexes and conditions are types of C: OpenMP and MPI
! have theirs for Fortran, and join, park and the barrier of a bubble order threads here.
!
!     use sterna
!     status = sterna_start()
!     status = sterna_thread_create(work, c_loc(part), thread)      ! work: bind(c), like sterna_work
!     status = sterna_thread_join(thread)
!
! Compile this file with the compiler that compiles the program, which writes sterna.mod, and link
! with -lsterna. Procedures that several threads run must be recursive (gfortran: -frecursive):
! else the compiler may keep their larger local arrays in one place for all threads. A thread has
! 60 KiB of stack unless stack_bytes of the options says more.
module sterna
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: c_ptr, c_null_ptr, c_loc, c_f_pointer, c_associated

  integer(c_int), parameter, public :: STERNA_SUCCESS = 0, STERNA_OUT_OF_MEMORY = 1, &
      STERNA_INVALID_ARGUMENT = 2, STERNA_BUSY = 3, STERNA_TIMED_OUT = 4, STERNA_NOT_OWNER = 5, &
      STERNA_DEADLOCK = 6, STERNA_NOT_STARTED = 7, STERNA_UNSUPPORTED = 8, STERNA_CLOSED = 9, &
      STERNA_TRUNCATED = 10, STERNA_REFUSED = 11, STERNA_NOT_FOUND = 12, STERNA_SYSTEM = 13, &
      STERNA_CANCELLED = 14

  integer(c_int32_t), parameter, public :: STERNA_ANY_WORKER = -1
  integer(c_int64_t), parameter, public :: STERNA_FOREVER = -1_c_int64_t  ! All bits, as in C.
  integer(c_int32_t), parameter, public :: STERNA_PRIORITY_IDLE = 0, &
      STERNA_PRIORITY_LOW_BATCH = 1, STERNA_PRIORITY_BATCH = 2, STERNA_PRIORITY_NORMAL = 11, &
      STERNA_PRIORITY_REAL_TIME = 20, STERNA_PRIORITY_SYSTEM = 24
  integer(c_int32_t), parameter, public :: STERNA_PREEMPTION_NONE = 0, STERNA_PREEMPTION_JOB = 1, &
      STERNA_PREEMPTION_SLICE = 2, STERNA_PREEMPTION_COMMUNICATION = 3

  ! sterna_thread_options of thread.h, with its defaults; unsigned numbers are signed ones here.
  type, bind(c), public :: sterna_thread_options
    integer(c_size_t) :: size_bytes = 80
    type(c_ptr) :: name = c_null_ptr
    integer(c_size_t) :: stack_bytes = 0
    integer(c_int32_t) :: worker = STERNA_ANY_WORKER
    integer(c_int8_t) :: is_bound = 0
    integer(c_int8_t) :: is_detached = 0
    integer(c_int8_t) :: is_cancellable = 0
    integer(c_int8_t) :: is_frozen = 0
    integer(c_int32_t) :: guard_bytes = 0
    integer(c_int32_t) :: priority = STERNA_PRIORITY_NORMAL
    type(c_ptr) :: place = c_null_ptr
    integer(c_int32_t) :: preemption = STERNA_PREEMPTION_JOB
    integer(c_int32_t) :: load = 0
    type(c_ptr) :: bubble = c_null_ptr
    type(c_ptr) :: stack = c_null_ptr
    integer(c_int32_t) :: auto_bubbles = 0
    integer(c_int8_t) :: has_own_locals = 0
    integer(c_int8_t) :: is_migratable = 0
    integer(c_int16_t) :: reserved = 0
  end type sterna_thread_options

  ! What a thread runs.
  abstract interface
    subroutine sterna_work(argument) bind(c)
      import :: c_ptr
      type(c_ptr), value :: argument
    end subroutine sterna_work
  end interface
  public :: sterna_work

  ! sterna_start(), sterna_stop(): by the main program. Threads and bubbles are type(c_ptr).
  public :: sterna_start, sterna_stop, sterna_worker_count, sterna_policy_set, sterna_error_detail
  public :: sterna_thread_create, sterna_thread_join, sterna_thread_self, sterna_thread_yield
  public :: sterna_thread_set_priority, sterna_thread_set_preemption, sterna_thread_detach
  public :: sterna_thread_exit, sterna_thread_sleep, sterna_thread_park, sterna_thread_unpark
  public :: sterna_thread_yield_to, sterna_thread_cancel, sterna_thread_test_cancel
  public :: sterna_thread_set_load, sterna_bubble_set_name
  public :: sterna_bubble_create, sterna_bubble_add_thread, sterna_bubble_add_bubble
  public :: sterna_bubble_set_priority, sterna_bubble_set_level, sterna_bubble_set_slice
  public :: sterna_bubble_set_preemptible, sterna_bubble_own_memory, sterna_bubble_phase
  public :: sterna_bubble_submit, sterna_bubble_shake
  public :: sterna_bubble_barrier, sterna_bubble_join, sterna_bubble_destroy

  interface
    integer(c_int) function start(options) bind(c, name="sterna_start")
      import :: c_int, c_ptr
      type(c_ptr), value :: options
    end function start
    integer(c_int) function sterna_stop() bind(c)
      import :: c_int
    end function sterna_stop
    integer(c_int32_t) function sterna_worker_count() bind(c)
      import :: c_int32_t
    end function sterna_worker_count
    integer(c_int) function policy_set(policy) bind(c, name="sterna_policy_set")
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: policy(*)
    end function policy_set
    integer(c_int) function error_detail(buffer, bytes) bind(c, name="sterna_error_detail")
      import :: c_int, c_char, c_int64_t
      character(kind=c_char), intent(out) :: buffer(*)
      integer(c_int64_t), value :: bytes
    end function error_detail

    integer(c_int) function thread_create(options, work, argument, thread) &
        bind(c, name="sterna_thread_create")
      import :: c_int, c_ptr, c_funptr
      type(c_ptr), value :: options
      type(c_funptr), value :: work
      type(c_ptr), value :: argument
      type(c_ptr), intent(out) :: thread
    end function thread_create
    integer(c_int) function sterna_thread_join(thread) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
    end function sterna_thread_join
    type(c_ptr) function sterna_thread_self() bind(c)
      import :: c_ptr
    end function sterna_thread_self
    integer(c_int) function sterna_thread_yield() bind(c)
      import :: c_int
    end function sterna_thread_yield
    integer(c_int) function sterna_thread_set_priority(thread, priority) bind(c)
      import :: c_int, c_ptr, c_int32_t
      type(c_ptr), value :: thread
      integer(c_int32_t), value :: priority
    end function sterna_thread_set_priority
    integer(c_int) function sterna_thread_detach(thread) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
    end function sterna_thread_detach
    integer(c_int) function sterna_thread_exit() bind(c)
      import :: c_int
    end function sterna_thread_exit
    integer(c_int) function sterna_thread_sleep(duration_ns) bind(c)
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: duration_ns
    end function sterna_thread_sleep
    integer(c_int) function sterna_thread_park(timeout_ns) bind(c)
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: timeout_ns
    end function sterna_thread_park
    integer(c_int) function sterna_thread_unpark(thread) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
    end function sterna_thread_unpark
    integer(c_int) function sterna_thread_yield_to(thread) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
    end function sterna_thread_yield_to
    integer(c_int) function sterna_thread_cancel(thread) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
    end function sterna_thread_cancel
    subroutine sterna_thread_test_cancel() bind(c)
    end subroutine sterna_thread_test_cancel
    integer(c_int) function sterna_thread_set_preemption(thread, mode) bind(c)
      import :: c_int, c_ptr, c_int32_t
      type(c_ptr), value :: thread
      integer(c_int32_t), value :: mode
    end function sterna_thread_set_preemption
    integer(c_int) function sterna_thread_set_load(thread, load) bind(c)
      import :: c_int, c_ptr, c_int32_t
      type(c_ptr), value :: thread
      integer(c_int32_t), value :: load
    end function sterna_thread_set_load

    integer(c_int) function sterna_bubble_create(bubble) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), intent(out) :: bubble
    end function sterna_bubble_create
    integer(c_int) function bubble_add_thread(bubble, options, work, argument) &
        bind(c, name="sterna_bubble_add_thread")
      import :: c_int, c_ptr, c_funptr
      type(c_ptr), value :: bubble, options
      type(c_funptr), value :: work
      type(c_ptr), value :: argument
    end function bubble_add_thread
    integer(c_int) function sterna_bubble_add_bubble(bubble, child) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble, child
    end function sterna_bubble_add_bubble
    integer(c_int) function sterna_bubble_set_priority(bubble, priority) bind(c)
      import :: c_int, c_ptr, c_int32_t
      type(c_ptr), value :: bubble
      integer(c_int32_t), value :: priority
    end function sterna_bubble_set_priority
    integer(c_int) function bubble_set_name(bubble, name) bind(c, name="sterna_bubble_set_name")
      import :: c_int, c_ptr, c_char
      type(c_ptr), value :: bubble
      character(kind=c_char), intent(in) :: name(*)
    end function bubble_set_name
    integer(c_int) function sterna_bubble_set_level(bubble, level) bind(c)
      import :: c_int, c_ptr, c_int32_t
      type(c_ptr), value :: bubble
      integer(c_int32_t), value :: level
    end function sterna_bubble_set_level
    integer(c_int) function sterna_bubble_set_slice(bubble, slice_ns) bind(c)
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: bubble
      integer(c_int64_t), value :: slice_ns
    end function sterna_bubble_set_slice
    integer(c_int) function sterna_bubble_set_preemptible(bubble, is_preemptible) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int), value :: is_preemptible
    end function sterna_bubble_set_preemptible
    integer(c_int) function sterna_bubble_own_memory(bubble, base, bytes) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: bubble, base
      integer(c_size_t), value :: bytes
    end function sterna_bubble_own_memory
    integer(c_int) function sterna_bubble_phase(number) bind(c)
      import :: c_int, c_int32_t
      integer(c_int32_t), value :: number
    end function sterna_bubble_phase
    integer(c_int) function sterna_bubble_submit(bubble) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
    end function sterna_bubble_submit
    integer(c_int) function sterna_bubble_shake() bind(c)
      import :: c_int
    end function sterna_bubble_shake
    integer(c_int) function bubble_barrier(bubble, is_last) bind(c, name="sterna_bubble_barrier")
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble, is_last
    end function bubble_barrier
    integer(c_int) function sterna_bubble_join(bubble) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
    end function sterna_bubble_join
    integer(c_int) function sterna_bubble_destroy(bubble) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
    end function sterna_bubble_destroy
  end interface

contains

  integer(c_int) function sterna_start()
    sterna_start = start(c_null_ptr)
  end function sterna_start

  ! Before sterna_start, or while it runs: "spread" spreads bubbles over the machine, and so on.
  integer(c_int) function sterna_policy_set(policy)
    character(len=*), intent(in) :: policy
    sterna_policy_set = policy_set(trim(policy) // c_null_char)
  end function sterna_policy_set

  ! Why the last call was refused; blanks follow it.
  subroutine sterna_error_detail(text)
    character(len=*), intent(out) :: text
    character(kind=c_char) :: buffer(512)
    integer :: i
    integer(c_int) :: status
    text = ""
    status = error_detail(buffer, int(size(buffer), c_int64_t))
    if (status /= STERNA_SUCCESS .and. status /= STERNA_TRUNCATED) return
    do i = 1, min(len(text), size(buffer))
      if (buffer(i) == c_null_char) exit
      text(i:i) = buffer(i)
    end do
  end subroutine sterna_error_detail

  ! The name of the procedure is long since gfortran takes it for that of a global one.
  integer(c_int) function sterna_thread_create(sterna_entry, argument, thread, options)
    procedure(sterna_work) :: sterna_entry
    type(c_ptr), intent(in) :: argument
    type(c_ptr), intent(out) :: thread
    type(sterna_thread_options), intent(in), target, optional :: options
    type(c_ptr) :: its_options
    its_options = c_null_ptr
    if (present(options)) its_options = c_loc(options)
    sterna_thread_create = thread_create(its_options, c_funloc(sterna_entry), argument, thread)
  end function sterna_thread_create

  integer(c_int) function sterna_bubble_add_thread(bubble, sterna_entry, argument, options)
    type(c_ptr), intent(in) :: bubble
    procedure(sterna_work) :: sterna_entry
    type(c_ptr), intent(in) :: argument
    type(sterna_thread_options), intent(in), target, optional :: options
    type(c_ptr) :: its_options
    its_options = c_null_ptr
    if (present(options)) its_options = c_loc(options)
    sterna_bubble_add_thread = &
        bubble_add_thread(bubble, its_options, c_funloc(sterna_entry), argument)
  end function sterna_bubble_add_thread

  integer(c_int) function sterna_bubble_set_name(bubble, name)
    type(c_ptr), intent(in) :: bubble
    character(len=*), intent(in) :: name
    sterna_bubble_set_name = bubble_set_name(bubble, trim(name) // c_null_char)
  end function sterna_bubble_set_name

  integer(c_int) function sterna_bubble_barrier(bubble)
    type(c_ptr), intent(in) :: bubble
    sterna_bubble_barrier = bubble_barrier(bubble, c_null_ptr)
  end function sterna_bubble_barrier

end module sterna
