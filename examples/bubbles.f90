! Two bubbles of two threads each, spread over the machine; each thread adds up its part of a vector.
module sums
  use, intrinsic :: iso_c_binding
  use sterna
  implicit none

  type :: part
    real(c_double), pointer :: values(:) => null()
    real(c_double) :: result = 0
  end type part

contains

  recursive subroutine add_up(argument) bind(c)  ! Several threads run it: recursive.
    type(c_ptr), value :: argument
    type(part), pointer :: mine
    call c_f_pointer(argument, mine)
    mine%result = sum(mine%values)
  end subroutine add_up

  subroutine expect(status)
    integer(c_int), intent(in) :: status
    character(len=256) :: text
    if (status == STERNA_SUCCESS) return
    call sterna_error_detail(text)
    print '(a, i0, 2a)', "status ", status, ": ", trim(text)
    stop 1
  end subroutine expect

end module sums

program bubbles
  use, intrinsic :: iso_c_binding
  use sterna
  use sums
  implicit none
  type(c_ptr) :: outer, inner
  type(part), target :: parts(4)
  real(c_double), target :: values(4000)
  integer :: i

  values = [(real(i, c_double), i = 1, 4000)]
  call expect(sterna_policy_set("spread"))
  call expect(sterna_start())
  call expect(sterna_bubble_create(outer))
  do i = 1, 4
    if (mod(i, 2) == 1) then
      call expect(sterna_bubble_create(inner))
      call expect(sterna_bubble_add_bubble(outer, inner))
    end if
    parts(i)%values => values(1000 * i - 999:1000 * i)
    call expect(sterna_bubble_add_thread(inner, add_up, c_loc(parts(i))))
  end do
  call expect(sterna_bubble_submit(outer))
  call expect(sterna_bubble_shake())            ! The policy may place them anew at any time.
  call expect(sterna_bubble_join(outer))
  print '(a, f10.0)', "sum", sum(parts%result)
  call expect(sterna_stop())
end program bubbles
