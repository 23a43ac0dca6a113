! SPDX-License-Identifier: Apache-2.0
! fortran08.f90 - the same with the module mpi_f08, whose handles are types.
program fortran08
   use mpi_f08
   implicit none
   integer :: rank, size, half_rank, next, last, i
   type(MPI_Request) :: requests(2), reduction
   type(MPI_Status) :: statuses(2), status
   type(MPI_Comm) :: half
   type(MPI_Group) :: all, one
   double precision :: x(10), y(10)

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call MPI_Comm_size(MPI_COMM_WORLD, size)
   next = modulo(rank + 1, size)
   last = modulo(rank - 1, size)
   x = rank + 1
   call MPI_Allreduce(x, y, 10, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
   print '(a,i0,a,f0.1)', 'rank ', rank, ' sum ', y(10)
   call MPI_Irecv(y, 10, MPI_DOUBLE_PRECISION, last, 1, MPI_COMM_WORLD, requests(1))
   call MPI_Isend(x, 10, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD, requests(2))
   call MPI_Waitall(2, requests, statuses)
   print '(a,i0,a,f0.1,a,i0)', 'rank ', rank, ' ring ', y(1), ' from ', &
      statuses(1)%MPI_SOURCE
   call MPI_Iallreduce(x, y, 10, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, reduction)
   call MPI_Wait(reduction, status)
   print '(a,i0,a,f0.1)', 'rank ', rank, ' most ', y(1)
   call MPI_Comm_split(MPI_COMM_WORLD, modulo(rank, 2), rank, half)
   call MPI_Comm_rank(half, half_rank)
   print '(2(a,i0))', 'rank ', rank, ' is ', half_rank
   call MPI_Comm_group(MPI_COMM_WORLD, all)
   call MPI_Group_excl(all, 1, [0], one)
   call MPI_Group_size(one, i)
   print '(2(a,i0))', 'rank ', rank, ' others ', i
   call MPI_Finalize()
end program fortran08
