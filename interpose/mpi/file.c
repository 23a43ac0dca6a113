/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - files: every real rank's own part is really written. For the library
 * each has opened the file alone: what changes the file for all is synchronized
 * here, and file pointers that ranks share do not exist.
 */
#include "common/split.h"
#include "mpi/mp.h"

#include <stdlib.h>
#include <string.h>

/* Files that communicators of several ranks have opened. */
typedef struct opened {
    MPI_File handle;
    mp_comm *c;
    struct opened *next;
} opened;

static opened *files;

static mp_comm *comm_of(MPI_File f)
{
    if (!mp.ready) return NULL;
    mp_lock();
    const opened *o = files;
    while (o && o->handle != f) o = o->next;
    mp_unlock();
    return o ? o->c : NULL;
}

/* Real members wait for each other, which takes no emulated time. */
static void together(const mp_comm *c)
{
    if (c->n_real == 1) return;
    live_enter(mp.l);
    live_op op = {.coll = SC_BARRIER, .group = c->group, .silent = true};
    live_ticket k = live_post(mp.l, &op, live_now(mp.l));
    live_wait(mp.l, k);
    live_drop(mp.l, k);
    live_leave(mp.l);
}

static void take_code(void *code, uint32_t member, const void *p, size_t len)
{
    (void)member;
    if (len) memcpy(code, p, len);
}

/* The first real member tells the others with which code it has opened the
 * file: its class, as codes are a process's own. */
static int code_of_first(const mp_comm *c, int code)
{
    const live_members m = mp_members(c);
    PMPI_Error_class(code, &code);
    live_enter(mp.l);
    live_tell_real(mp.l, &m, &code, c->me_real == 0 ? sizeof code : 0,
                   take_code, &code);
    live_leave(mp.l);
    return code;
}

int MPI_File_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info,
                  MPI_File *fh)
{
    mp_comm *c = mp_ours(comm);
    if (c) {
        live_warn(mp.l,
                  "MPI_File_open: %s only real ranks read and write it, and "
                  "this takes no emulated time",
                  filename);
        live_passed(mp.l);
    }
    /* Whoever is first creates it; if that fails, it does so for all. */
    bool exclusive = c && c->n_real > 1 && (amode & MPI_MODE_EXCL);
    if (exclusive && c->me_real > 0) {
        int first = code_of_first(c, MPI_SUCCESS);
        if (first != MPI_SUCCESS) return first;
        amode &= ~MPI_MODE_EXCL;
    }
    int code = PMPI_File_open(comm, filename, amode, info, fh);
    if (exclusive && c->me_real == 0) code_of_first(c, code);
    if (!c || code != MPI_SUCCESS) return code;
    mp_comm_hold(c);
    opened *o = mp_alloc(sizeof *o);
    mp_lock();
    *o = (opened){*fh, c, files};
    files = o;
    mp_unlock();
    return code;
}

int MPI_File_set_size(MPI_File fh, MPI_Offset size)
{
    const mp_comm *c = comm_of(fh);
    if (c) together(c);
    int code = PMPI_File_set_size(fh, size);
    if (c) together(c);
    return code;
}

int MPI_File_preallocate(MPI_File fh, MPI_Offset size)
{
    const mp_comm *c = comm_of(fh);
    if (c) together(c);
    int code = PMPI_File_preallocate(fh, size);
    if (c) together(c);
    return code;
}

int MPI_File_close(MPI_File *fh)
{
    const mp_comm *c = comm_of(*fh);
    if (c) {
        together(c); /* it may be deleted */
        mp_lock();
        opened **at = &files;
        while ((*at)->handle != *fh) at = &(*at)->next;
        opened *o = *at;
        *at = o->next;
        mp_unlock();
        mp_comm_drop(o->c);
        free(o);
    }
    return PMPI_File_close(fh);
}

int MPI_File_get_group(MPI_File fh, MPI_Group *group)
{
    if (!mp.ready || fh == MPI_FILE_NULL) return PMPI_File_get_group(fh, group);
    return mp_group_of_comm(comm_of(fh), group);
}

/* Only communicators of one rank have windows. */
int MPI_Win_get_group(MPI_Win win, MPI_Group *group)
{
    if (!mp.ready || win == MPI_WIN_NULL) return PMPI_Win_get_group(win, group);
    return mp_group_of_comm(NULL, group);
}

/* ---- file pointers that ranks share -------------------------------------- */

#define SHARED(f, params, args)                             \
    int MPI_File_##f params                                 \
    {                                                       \
        const mp_comm *c = comm_of(fh);                     \
        if (c) return mp_refuse(c->handle, "MPI_File_" #f); \
        return PMPI_File_##f args;                          \
    }

#define READS                                                  \
    (MPI_File fh, void *buf, int count, MPI_Datatype datatype, \
     MPI_Status *status)
#define WRITES                                                       \
    (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, \
     MPI_Status *status)
#define NOW   (fh, buf, count, datatype, status)
#define LATER (fh, buf, count, datatype, request)

SHARED(read_shared, READS, NOW)
SHARED(write_shared, WRITES, NOW)
SHARED(read_ordered, READS, NOW)
SHARED(write_ordered, WRITES, NOW)
SHARED(iread_shared,
       (MPI_File fh, void *buf, int count, MPI_Datatype datatype,
        MPI_Request *request),
       LATER)
SHARED(iwrite_shared,
       (MPI_File fh, const void *buf, int count, MPI_Datatype datatype,
        MPI_Request *request),
       LATER)
SHARED(read_ordered_begin,
       (MPI_File fh, void *buf, int count, MPI_Datatype datatype),
       (fh, buf, count, datatype))
SHARED(write_ordered_begin,
       (MPI_File fh, const void *buf, int count, MPI_Datatype datatype),
       (fh, buf, count, datatype))
SHARED(read_ordered_end, (MPI_File fh, void *buf, MPI_Status *status),
       (fh, buf, status))
SHARED(write_ordered_end, (MPI_File fh, const void *buf, MPI_Status *status),
       (fh, buf, status))
SHARED(seek_shared, (MPI_File fh, MPI_Offset offset, int whence),
       (fh, offset, whence))
SHARED(get_position_shared, (MPI_File fh, MPI_Offset *offset), (fh, offset))
