/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle.h - handles of our own among the library's.
 *
 * MPICH's handles are ints whose two highest bits tell how the object is
 * stored; 0 marks the null handles, which are numbered by type from 0x04000000
 * on. Open MPI's are addresses, none of which lies in the first page except one
 * of the upper half. Ours are MARK + index.
 */
#ifndef HANDLE_H
#define HANDLE_H

#include "mpi/mp.h"

#define HANDLE_ROOM 0x00ffffffU

#ifdef OPEN_MPI
#define HANDLE_REQUEST UINT64_C(0x9c00000001000000)
#define HANDLE_GROUP   UINT64_C(0x9c00000002000000)
#define HANDLE_MESSAGE UINT64_C(0x9c00000003000000)

static inline uint64_t handle_bits(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

#define handle_make(type, mark, index) ((type)(uintptr_t)((mark) + (index)))
#else
#define HANDLE_REQUEST UINT64_C(0x01000000)
#define HANDLE_GROUP   UINT64_C(0x02000000)
#define HANDLE_MESSAGE UINT64_C(0x03000000)

static inline uint64_t handle_bits(int handle)
{
    return (uint32_t)handle;
}

#define handle_make(type, mark, index) ((type)((mark) + (index)))
#endif

/* Whether it is a handle of that kind; its index. */
static inline bool handle_is(uint64_t bits, uint64_t mark, uint32_t *index)
{
    *index = (uint32_t)(bits & HANDLE_ROOM);
    return (bits & ~(uint64_t)HANDLE_ROOM) == mark;
}

static inline bool handle_is_request(MPI_Request r)
{
    uint32_t i;
    return mp.ready && handle_is(handle_bits(r), HANDLE_REQUEST, &i);
}

#endif
