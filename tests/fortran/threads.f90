! Each call of the module sterna.f90: what it does, and what it answers to wrong calls.
module work
  use, intrinsic :: iso_c_binding
  use sterna
  implicit none
  integer, parameter :: kThreads = 20
  type(c_ptr) :: bubble, handles(kThreads)
  character(len=512) :: text

contains

  subroutine expect(is_true, what)
    logical, intent(in) :: is_true
    character(len=*), intent(in) :: what
    if (is_true) return
    call sterna_error_detail(text)
    print '(4a)', "not true: ", what, ": ", trim(text)
    stop 1
  end subroutine expect

  subroutine expect_detail(words)
    character(len=*), intent(in) :: words
    call sterna_error_detail(text)
    call expect(index(text, words) /= 0, words)
  end subroutine expect_detail

  recursive subroutine doubles(argument) bind(c)
    type(c_ptr), value :: argument
    integer(c_int), pointer :: number
    call c_f_pointer(argument, number)
    number = number * 2
    call expect(sterna_thread_yield() == STERNA_SUCCESS, "yield")
    number = number + 1
  end subroutine doubles

  ! The thread, and the one that created it, agree on who it is.
  recursive subroutine tells_itself(argument) bind(c)
    type(c_ptr), value :: argument
    type(c_ptr), pointer :: itself
    call c_f_pointer(argument, itself)
    itself = sterna_thread_self()
  end subroutine tells_itself

  ! Parks until it is told to go on, and ends in the middle.
  recursive subroutine parks_and_leaves(argument) bind(c)
    type(c_ptr), value :: argument
    integer(c_int), pointer :: number
    call c_f_pointer(argument, number)
    call expect(sterna_thread_sleep(1000_c_int64_t) == STERNA_SUCCESS, "sleep")
    call expect(sterna_thread_park(STERNA_FOREVER) == STERNA_SUCCESS, "park")
    number = 7
    call expect(sterna_thread_exit() == STERNA_SUCCESS, "is never back")
    number = 8
  end subroutine parks_and_leaves

  ! Until it is cancelled.
  recursive subroutine goes_on(argument) bind(c)
    type(c_ptr), value :: argument
    if (c_associated(argument)) return
    do
      call sterna_thread_test_cancel()
      call expect(sterna_thread_yield() == STERNA_SUCCESS, "yield")
    end do
  end subroutine goes_on

  recursive subroutine meets(argument) bind(c)
    type(c_ptr), value :: argument
    integer(c_int), pointer :: number
    call c_f_pointer(argument, number)
    number = 1
    call expect(sterna_thread_set_load(sterna_thread_self(), 3_c_int32_t) == STERNA_SUCCESS, "load")
    call expect(sterna_thread_set_load(sterna_thread_self(), 0_c_int32_t) &
                == STERNA_INVALID_ARGUMENT, "no load")
    call expect(sterna_bubble_barrier(bubble) == STERNA_SUCCESS, "barrier")
    number = 2
  end subroutine meets
end module work

program threads
  use work
  implicit none
  integer(c_int), target :: numbers(kThreads)
  type(c_ptr), target :: itself
  type(sterna_thread_options) :: options
  type(c_ptr) :: inner
  integer :: i

  call expect(c_sizeof(options) == options%size_bytes, "options are those of C")
  call expect(sterna_thread_create(doubles, c_null_ptr, inner) == STERNA_NOT_STARTED, "too early")
  call expect(sterna_policy_set("none such") /= STERNA_SUCCESS, "no such policy")
  call expect_detail("none such")
  call expect(sterna_policy_set("spread") == STERNA_SUCCESS, "policy")
  call expect(sterna_start() == STERNA_SUCCESS, "start")
  call expect(sterna_worker_count() >= 1, "workers")
  call expect(.not. c_associated(sterna_thread_self()), "the main program is no user thread")
  call test_threads()
  call test_control()
  call test_bubbles()
  call expect(sterna_stop() == STERNA_SUCCESS, "stop")
  print '(a)', "No Errors"

contains

  subroutine test_threads()
    numbers = [(i, i = 1, kThreads)]
    do i = 1, kThreads
      call expect(sterna_thread_create(doubles, c_loc(numbers(i)), handles(i)) &
                  == STERNA_SUCCESS, "create")
    end do
    do i = 1, kThreads
      call expect(sterna_thread_join(handles(i)) == STERNA_SUCCESS, "join")
    end do
    call expect(all(numbers == [(2 * i + 1, i = 1, kThreads)]), "each has run once")
    call expect(sterna_thread_join(handles(1)) == STERNA_INVALID_ARGUMENT, "joined twice")
    call expect_detail("joined")
    options%priority = STERNA_PRIORITY_BATCH
    options%stack_bytes = 1024 * 1024
    call expect(sterna_thread_create(tells_itself, c_loc(itself), handles(1), options) &
                == STERNA_SUCCESS, "with options")
    call expect(sterna_thread_set_priority(handles(1), STERNA_PRIORITY_IDLE) &
                == STERNA_SUCCESS, "priority")
    call expect(sterna_thread_set_priority(handles(1), STERNA_PRIORITY_SYSTEM + 1) &
                == STERNA_INVALID_ARGUMENT, "no such priority")
    call expect(sterna_thread_join(handles(1)) == STERNA_SUCCESS, "join")
    call expect(c_associated(itself, handles(1)), "self")
    options%priority = STERNA_PRIORITY_SYSTEM + 1
    call expect(sterna_thread_create(tells_itself, c_loc(itself), handles(1), options) &
                == STERNA_INVALID_ARGUMENT, "options are looked at")
    call expect_detail("priority")
  end subroutine test_threads

  subroutine test_control()
    type(sterna_thread_options) :: cancellable
    numbers = 0
    call expect(sterna_thread_create(parks_and_leaves, c_loc(numbers(1)), handles(1)) &
                == STERNA_SUCCESS, "create")
    call expect(sterna_thread_set_preemption(handles(1), STERNA_PREEMPTION_NONE) == STERNA_SUCCESS, "preemptible")
    call expect(sterna_thread_set_load(handles(1), 3_c_int32_t) == STERNA_UNSUPPORTED, "no bubble")
    call expect_detail("outside of bubbles")
    call expect(sterna_thread_unpark(handles(1)) == STERNA_SUCCESS, "unpark, also before it parks")
    call expect(sterna_thread_join(handles(1)) == STERNA_SUCCESS, "join")
    call expect(numbers(1) == 7, "it has left in the middle")
    cancellable%is_cancellable = 1
    call expect(sterna_thread_create(goes_on, c_null_ptr, handles(2), cancellable) &
                == STERNA_SUCCESS, "create")
    call expect(sterna_thread_cancel(handles(2)) == STERNA_SUCCESS, "cancel")
    call expect(sterna_thread_join(handles(2)) == STERNA_CANCELLED, "it was cancelled")
    call expect(sterna_thread_detach(c_null_ptr) == STERNA_INVALID_ARGUMENT, "detach nobody")
    call expect(sterna_thread_yield_to(c_null_ptr) == STERNA_INVALID_ARGUMENT, "to nobody")
  end subroutine test_control

  subroutine test_bubbles()
    type(sterna_thread_options) :: loaded
    call expect(sterna_bubble_create(bubble) == STERNA_SUCCESS, "create")
    call expect(sterna_bubble_set_name(bubble, "outer one") == STERNA_SUCCESS, "name")
    call expect(sterna_bubble_add_bubble(bubble, bubble) == STERNA_INVALID_ARGUMENT, "in itself")
    call expect_detail("bubble 'outer one' into bubble 'outer one'")
    call expect_detail("nest as a tree")
    call expect(sterna_bubble_create(inner) == STERNA_SUCCESS, "create")
    call expect(sterna_bubble_add_bubble(bubble, inner) == STERNA_SUCCESS, "nests")
    call expect(sterna_bubble_set_priority(inner, STERNA_PRIORITY_BATCH) == STERNA_SUCCESS, "priority")
    call expect(sterna_bubble_set_level(inner, 1_c_int32_t) == STERNA_SUCCESS, "level")
    call expect(sterna_bubble_set_slice(inner, 5000000_c_int64_t) == STERNA_SUCCESS, "slice")
    call expect(sterna_bubble_set_preemptible(inner, 1_c_int) == STERNA_SUCCESS, "preemptible")
    call expect(sterna_bubble_own_memory(inner, c_null_ptr, 1_c_size_t) == STERNA_INVALID_ARGUMENT, "none")
    numbers = 0
    loaded%load = 5
    do i = 1, 3
      call expect(sterna_bubble_add_thread(bubble, meets, c_loc(numbers(i))) == STERNA_SUCCESS, "add")
      call expect(sterna_bubble_add_thread(inner, doubles, c_loc(numbers(3 + i)), loaded) &
                  == STERNA_SUCCESS, "add")
    end do
    call expect(sterna_bubble_submit(bubble) == STERNA_SUCCESS, "submit")
    call expect(sterna_bubble_shake() == STERNA_SUCCESS, "shake")
    call expect(sterna_bubble_phase(1_c_int32_t) == STERNA_SUCCESS, "phase")
    call expect(sterna_bubble_join(bubble) == STERNA_SUCCESS, "join")
    call expect(all(numbers(1:3) == 2) .and. all(numbers(4:6) == 1), "all have run")
    call expect(sterna_bubble_create(bubble) == STERNA_SUCCESS, "create")
    call expect(sterna_bubble_destroy(bubble) == STERNA_SUCCESS, "destroy")
  end subroutine test_bubbles
end program threads
