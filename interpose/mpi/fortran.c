/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fortran.c - Fortran's numbers of our groups, requests and messages.
 *
 * MPICH's handles are these numbers. Open MPI's library for Fortran
 * (libmpi_mpifh) converts arguments and then calls these functions and all
 * others of the interposer (front/fortran.c). It numbers its own objects from 0
 * on; ours begin far above.
 */
#include "mpi/handle.h"

#ifdef OPEN_MPI

#include <stdlib.h>
#include <string.h>

#define FIRST_REQUEST 0x40000000
#define FIRST_MESSAGE 0x30000000
#define FIRST_GROUP   0x20000000

/* Numbers of a kind of handle, from `first` on and below `end`. */
#define NUMBERS(type, kind, first, end)                          \
    MPI_Fint type##_c2f(type h)                                  \
    {                                                            \
        uint32_t i;                                              \
        bool ours = handle_is(handle_bits(h), kind, &i);         \
        return ours ? (first) + (MPI_Fint)i : P##type##_c2f(h);  \
    }                                                            \
    type type##_f2c(MPI_Fint n)                                  \
    {                                                            \
        if (n < (first) || n >= (end)) return P##type##_f2c(n);  \
        return handle_make(type, kind, (uint32_t)(n - (first))); \
    }

NUMBERS(MPI_Group, HANDLE_GROUP, FIRST_GROUP, FIRST_MESSAGE)
NUMBERS(MPI_Message, HANDLE_MESSAGE, FIRST_MESSAGE, FIRST_REQUEST)
NUMBERS(MPI_Request, HANDLE_REQUEST, FIRST_REQUEST, INT32_MAX)

/* ---- calls that leave or make one of ours ---------------------------------- */

/* libmpi_mpifh reads the number out of the handle that a call leaves, at a
 * place that depends on its version. It gets an object that has the number
 * everywhere; it does nothing else with it. */
#define OBJECT 128 /* numbers: more than a request or group of Open MPI has */

typedef struct objects {
    MPI_Fint **object; /* [n] by index; NULL: not needed yet */
    uint32_t n;
} objects;

static objects of_requests, of_groups;

static void *object_of(objects *t, uint32_t i, MPI_Fint number)
{
    mp_lock();
    if (i >= t->n) {
        uint32_t n = 2 * i + 64;
        MPI_Fint **more = realloc(t->object, n * sizeof *more);
        if (!more) live_die(mp.l, "out of memory");
        memset(more + t->n, 0, (n - t->n) * sizeof *more);
        t->object = more;
        t->n = n;
    }
    if (!t->object[i]) {
        t->object[i] = mp_alloc(OBJECT * sizeof number);
        for (int k = 0; k < OBJECT; k++) t->object[i][k] = number;
    }
    void *object = t->object[i];
    mp_unlock();
    return object;
}

static void requests(int n, MPI_Request *r)
{
    uint32_t i;
    for (int k = 0; k < n; k++)
        if (handle_is(handle_bits(r[k]), HANDLE_REQUEST, &i))
            r[k] = object_of(&of_requests, i, MPI_Request_c2f(r[k]));
}

static void group(MPI_Group *g)
{
    uint32_t i;
    if (handle_is(handle_bits(*g), HANDLE_GROUP, &i))
        *g = object_of(&of_groups, i, MPI_Group_c2f(*g));
}

#define FORM(name, parameters, arguments, after) \
    int MPI_F_##name parameters;                 \
    int MPI_F_##name parameters                  \
    {                                            \
        int code = MPI_##name arguments;         \
        after;                                   \
        return code;                             \
    }

FORM(Wait, (MPI_Request * r, MPI_Status *s), (r, s), requests(1, r))
FORM(Test, (MPI_Request * r, int *flag, MPI_Status *s), (r, flag, s),
     requests(1, r))
FORM(Waitall, (int n, MPI_Request *r, MPI_Status *s), (n, r, s), requests(n, r))
FORM(Testall, (int n, MPI_Request *r, int *flag, MPI_Status *s),
     (n, r, flag, s), requests(n, r))
FORM(Waitany, (int n, MPI_Request *r, int *at, MPI_Status *s), (n, r, at, s),
     requests(n, r))
FORM(Testany, (int n, MPI_Request *r, int *at, int *flag, MPI_Status *s),
     (n, r, at, flag, s), requests(n, r))
FORM(Waitsome, (int n, MPI_Request *r, int *done, int *at, MPI_Status *s),
     (n, r, done, at, s), requests(n, r))
FORM(Testsome, (int n, MPI_Request *r, int *done, int *at, MPI_Status *s),
     (n, r, done, at, s), requests(n, r))
FORM(Group_union, (MPI_Group a, MPI_Group b, MPI_Group *g), (a, b, g), group(g))
FORM(Group_intersection, (MPI_Group a, MPI_Group b, MPI_Group *g), (a, b, g),
     group(g))
FORM(Group_difference, (MPI_Group a, MPI_Group b, MPI_Group *g), (a, b, g),
     group(g))
FORM(Group_incl, (MPI_Group a, int n, const int *at, MPI_Group *g),
     (a, n, at, g), group(g))
FORM(Group_excl, (MPI_Group a, int n, const int *at, MPI_Group *g),
     (a, n, at, g), group(g))
FORM(Group_range_incl, (MPI_Group a, int n, int at[][3], MPI_Group *g),
     (a, n, at, g), group(g))
FORM(Group_range_excl, (MPI_Group a, int n, int at[][3], MPI_Group *g),
     (a, n, at, g), group(g))

#endif
