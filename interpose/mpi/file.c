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

mp_comm *mp_file_comm(MPI_File f)
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

static bool is_first(const mp_comm *c) /* of the real members */
{
    return c->real[0] == c->me;
}

static void take_code(void *code, uint32_t member, const void *p, size_t len)
{
    (void)member;
    if (len) memmove(code, p, len);
}

/* The first real member tells the others with which code it has opened the
 * file: its class, as codes are a process's own. */
static int code_of_first(const mp_comm *c, int code)
{
    const live_members m = mp_members(c);
    PMPI_Error_class(code, &code);
    live_enter(mp.l);
    live_tell_real(mp.l, &m, &code, is_first(c) ? sizeof code : 0, take_code,
                   &code);
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
    if (exclusive && !is_first(c)) {
        int first = code_of_first(c, MPI_SUCCESS);
        if (first != MPI_SUCCESS) return first;
        amode &= ~MPI_MODE_EXCL;
    }
    int code = PMPI_File_open(comm, filename, amode, info, fh);
    if (exclusive && is_first(c)) code_of_first(c, code);
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
    const mp_comm *c = mp_file_comm(fh);
    if (c) together(c);
    int code = PMPI_File_set_size(fh, size);
    if (c) together(c);
    return code;
}

int MPI_File_preallocate(MPI_File fh, MPI_Offset size)
{
    const mp_comm *c = mp_file_comm(fh);
    if (c) together(c);
    int code = PMPI_File_preallocate(fh, size);
    if (c) together(c);
    return code;
}

int MPI_File_close(MPI_File *fh)
{
    const mp_comm *c = mp_file_comm(*fh);
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
    return mp_group_of_comm(mp_file_comm(fh), group);
}

/* Only communicators of one rank have windows. */
int MPI_Win_get_group(MPI_Win win, MPI_Group *group)
{
    if (!mp.ready || win == MPI_WIN_NULL) return PMPI_Win_get_group(win, group);
    return mp_group_of_comm(NULL, group);
}
