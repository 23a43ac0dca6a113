! SPDX-License-Identifier: Apache-2.0
! fortran.f90 - a program in Fortran: its lines are those of a real run.
program fortran
   use mpi
   implicit none
   integer, parameter :: n = 1000
   integer :: rank, size, code, half, half_rank, half_size, next, last, i
   integer :: requests(4), statuses(MPI_STATUS_SIZE, 4), status(MPI_STATUS_SIZE)
   integer :: all, odd, sub, grid, received, persistent(2), index
   integer :: coords(1)
   logical :: flag, periods(1)
   double precision :: x(n), y(n), a(n), b(n), t
   character(len=20) :: name

   call MPI_Init(code)
   t = MPI_Wtime()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
   call MPI_Comm_size(MPI_COMM_WORLD, size, code)
   next = modulo(rank + 1, size)
   last = modulo(rank - 1, size)
   x = rank + 1

   call MPI_Allreduce(x, y, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
   print '(a,i0,a,i0,a,f0.1)', 'rank ', rank, ' of ', size, ' sum ', y(n)
   call MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE_PRECISION, MPI_MAX, &
                      MPI_COMM_WORLD, code)
   print '(a,i0,a,f0.1)', 'rank ', rank, ' in place ', x(1)
   a = rank + 0.5
   call MPI_Bcast(a, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, code)
   print '(a,i0,a,f0.1)', 'rank ', rank, ' broadcast ', a(n)

   x = rank
   call MPI_Sendrecv(x, n, MPI_DOUBLE_PRECISION, next, 7, y, n, &
                     MPI_DOUBLE_PRECISION, last, 7, MPI_COMM_WORLD, status, code)
   call MPI_Get_count(status, MPI_DOUBLE_PRECISION, received, code)
   print '(a,i0,a,f0.1,3(a,i0))', 'rank ', rank, ' message ', y(1), ' from ', &
      status(MPI_SOURCE), ' tag ', status(MPI_TAG), ' count ', received

   call MPI_Irecv(a, n, MPI_DOUBLE_PRECISION, last, 1, MPI_COMM_WORLD, requests(1), code)
   call MPI_Irecv(b, n, MPI_DOUBLE_PRECISION, next, 2, MPI_COMM_WORLD, requests(2), code)
   call MPI_Isend(x, n, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD, requests(3), code)
   call MPI_Isend(x, n, MPI_DOUBLE_PRECISION, last, 2, MPI_COMM_WORLD, requests(4), code)
   call MPI_Waitall(4, requests, statuses, code)
   print '(a,i0,2(a,f0.1),2(a,i0))', 'rank ', rank, ' ring ', a(2), ' ', b(2), &
      ' from ', statuses(MPI_SOURCE, 1), ' ', statuses(MPI_SOURCE, 2)
   if (any(requests /= MPI_REQUEST_NULL)) print *, 'requests are left'

   call MPI_Send_init(x, 1, MPI_DOUBLE_PRECISION, next, 3, MPI_COMM_WORLD, persistent(1), code)
   call MPI_Recv_init(y, 1, MPI_DOUBLE_PRECISION, last, 3, MPI_COMM_WORLD, persistent(2), code)
   do i = 1, 3
      x(1) = 10*i + rank
      call MPI_Startall(2, persistent, code)
      call MPI_Wait(persistent(2), MPI_STATUS_IGNORE, code)
      call MPI_Waitany(1, persistent, index, MPI_STATUS_IGNORE, code)
      print '(a,i0,a,f0.1,a,i0)', 'rank ', rank, ' persistent ', y(1), ' index ', index
   end do
   call MPI_Request_free(persistent(1), code)
   call MPI_Request_free(persistent(2), code)

   call MPI_Iallreduce(x, y, 1, MPI_DOUBLE_PRECISION, MPI_MIN, MPI_COMM_WORLD, &
                       requests(1), code)
   flag = .false.
   do while (.not. flag)
      call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, code)
   end do
   print '(a,i0,a,f0.1)', 'rank ', rank, ' least ', y(1)

   call MPI_Comm_split(MPI_COMM_WORLD, modulo(rank, 2), rank, half, code)
   call MPI_Comm_rank(half, half_rank, code)
   call MPI_Comm_size(half, half_size, code)
   print '(3(a,i0))', 'rank ', rank, ' is ', half_rank, ' of ', half_size
   x(1) = rank
   call MPI_Allreduce(x, y, 1, MPI_DOUBLE_PRECISION, MPI_SUM, half, code)
   print '(a,i0,a,f0.1)', 'rank ', rank, ' half sum ', y(1)
   call MPI_Comm_set_name(half, 'half', code)
   call MPI_Comm_get_name(half, name, i, code)
   print '(a,i0,2a)', 'rank ', rank, ' name ', name(1:i)
   call MPI_Comm_free(half, code)

   call MPI_Comm_split(MPI_COMM_WORLD, 5 - modulo(rank, 2), -rank, half, code)
   call MPI_Comm_size(half, half_size, code)
   print '(2(a,i0))', 'rank ', rank, ' other half ', half_size
   call MPI_Comm_free(half, code)

   call MPI_Comm_group(MPI_COMM_WORLD, all, code)
   call MPI_Group_incl(all, 1, [size - 1], odd, code)
   call MPI_Comm_create(MPI_COMM_WORLD, odd, sub, code)
   print '(a,i0,a,l1)', 'rank ', rank, ' outside ', sub == MPI_COMM_NULL
   call MPI_Group_free(odd, code)
   call MPI_Group_free(all, code)

   call MPI_Isend(x, 1, MPI_DOUBLE_PRECISION, next, 9, MPI_COMM_WORLD, requests(1), code)
   call MPI_Mprobe(last, 9, MPI_COMM_WORLD, i, status, code)
   call MPI_Mrecv(y, 1, MPI_DOUBLE_PRECISION, i, status, code)
   call MPI_Wait(requests(1), MPI_STATUS_IGNORE, code)
   print '(a,i0,a,f0.1,a,l1)', 'rank ', rank, ' probed ', y(1), ' done ', &
      i == MPI_MESSAGE_NULL

   call MPI_Cart_create(MPI_COMM_WORLD, 1, [size], [.true.], .false., grid, code)
   call MPI_Cart_get(grid, 1, coords, periods, coords, code)
   call MPI_Cart_shift(grid, 0, 1, last, next, code)
   print '(a,i0,a,l1,2(a,i0))', 'rank ', rank, ' ring is closed ', periods(1), &
      ', ', last, ' to ', next

   call MPI_Barrier(MPI_COMM_WORLD, code)
   if (MPI_Wtime() < t) print *, 'time runs backwards'
   call MPI_Finalize(code)
end program fortran
