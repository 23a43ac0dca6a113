/* SPDX-License-Identifier: Apache-2.0 */
/* shared_port.c - a real rank's side of the memory. */
#include "emu/shared_rank.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------------- */

static sc_status refused(const char *what, sc_err *err)
{
    const char *why = sc_errno_text(errno);
    return sc_error(err, SC_EIO, SC_C_IO, sc_pos_none(),
                    "the launcher's memory is reached through /proc", "%s: %s",
                    what, why);
}

void *port_map(long pid, int fd, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", pid, fd);
    int own = open(path, O_RDWR | O_CLOEXEC);
    if (own < 0) return NULL;
    void *m = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_NORESERVE, own, 0);
    int saved = errno;
    close(own);
    errno = saved;
    return m == MAP_FAILED ? NULL : m;
}

static bool read_number(const char **at, long max, long *out)
{
    char *end;
    errno = 0;
    *out = strtol(*at, &end, 10);
    bool ok = end != *at && errno == 0 && *out >= 0 && *out <= max;
    *at = end;
    return ok;
}

/* "PID FD RANK:FD..." */
static sc_status read_where(sc_emu_port *p, const char *path, sc_arena *a,
                            int *fd, sc_err *err)
{
    char *text;
    size_t len;
    long rank, other;
    SC_TRY(sc_file_read(path, 1 << 20, a, &text, &len, err));
    const char *at = text;
    bool ok =
        read_number(&at, INT_MAX, &p->pid) && read_number(&at, INT_MAX, &other);
    *fd = ok ? (int)other : -1;
    while (ok && *at && *at != '\n') {
        port_peer *v =
            sc_grow(a, p->peer, p->n_peers, &p->cap_peers, 4, sizeof *v);
        if (!v) return sc_error_nomem(err);
        p->peer = v;
        ok = read_number(&at, UINT32_MAX, &rank) && *at++ == ':' &&
             read_number(&at, INT_MAX, &other);
        if (ok)
            v[p->n_peers++] =
                (port_peer){.rank = (uint32_t)rank, .fd = (int)other};
    }
    if (ok) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_SYNTAX, sc_pos_file(path), NULL,
                    "the file does not name the shared memory");
}

static sc_status attach(sc_emu_port *p, sc_err *err)
{
    uint32_t none = 0;
    if (atomic_compare_exchange_strong(&p->port->attached, &none, 1)) {
        atomic_store(&p->port->pid, (int32_t)getpid());
        return SC_OK;
    }
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_none(), NULL,
                    "rank %u has run already; with several real ranks, none of "
                    "them can restart",
                    p->rank);
}

sc_status sc_emu_port_open(const char *path, uint32_t rank, sc_arena *a,
                           sc_emu_port **out, sc_err *err)
{
    int fd;
    sc_emu_port *p = SC_NEW(a, sc_emu_port);
    if (!p) return sc_error_nomem(err);
    p->rank = rank;
    p->spare = p->lent = SC_EMU_NO_CELL;
    SC_TRY(read_where(p, path, a, &fd, err));
    shared_head *h = port_map(p->pid, fd, sizeof *h);
    if (!h) return refused("the launcher's shared memory was not found", err);
    bool ok = h->magic == SHARED_MAGIC && h->n_real == p->n_peers;
    size_t size = h->size;
    munmap(h, sizeof *h);
    p->head = ok ? port_map(p->pid, fd, size) : NULL;
    if (!p->head)
        return refused("the launcher's shared memory is that of another run",
                       err);
    while (p->number < p->n_peers && p->peer[p->number].rank != rank)
        p->number++;
    if (p->number == p->n_peers)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "rank %u is not real", rank);
    p->port = shared_port_at(p->head, p->number);
    SC_TRY(attach(p, err));
    *out = p;
    return SC_OK;
}

/* ---- cells ----------------------------------------------------------------------- */

static void keep_spare(sc_emu_port *p, sc_emu_cell k)
{
    p->port->cell[k].next = p->spare;
    p->spare = k;
}

/* The server frees it, after all cells lent before. */
static void lend_cell(sc_emu_port *p, sc_emu_cell k)
{
    p->port->cell[k].next = SC_EMU_NO_CELL;
    if (p->lent == SC_EMU_NO_CELL)
        p->lent = k;
    else
        p->port->cell[p->last_lent].next = k;
    p->last_lent = k;
}

static void reclaim(sc_emu_port *p)
{
    while (p->lent != SC_EMU_NO_CELL) {
        sc_emu_cell k = p->lent;
        shared_cell *c = &p->port->cell[k];
        if (atomic_load_explicit(&c->state, memory_order_acquire) != CELL_FREE)
            return;
        p->lent = c->next;
        keep_spare(p, k);
    }
}

/* Prefers cells that were used before, so that few pages are touched. */
static sc_status alloc_cell(sc_emu_port *p, shared_kind kind, sc_time t,
                            sc_emu_cell *out, sc_err *err)
{
    reclaim(p);
    uint32_t k = p->spare;
    if (k != SC_EMU_NO_CELL)
        p->spare = p->port->cell[k].next;
    else if (p->n_used < SHARED_CELLS)
        k = p->n_used++;
    if (k != SC_EMU_NO_CELL) {
        p->port->cell[k].kind = (uint8_t)kind;
        p->port->cell[k].t = t;
        *out = k;
        return SC_OK;
    }
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                    "more than %u operations at once with several real ranks",
                    SHARED_CELLS);
}

/* Submits a filled cell. */
static void ask(sc_emu_port *p, sc_emu_cell cell)
{
    shared_port *port = p->port;
    shared_head *h = p->head;
    uint32_t pushed = atomic_load_explicit(&port->pushed, memory_order_relaxed);
    atomic_store_explicit(&port->cell[cell].state, CELL_ASKED,
                          memory_order_relaxed);
    port->ring[pushed % SHARED_CELLS] = cell;
    atomic_store_explicit(&port->pushed, pushed + 1, memory_order_release);
    if (p->alone) {
        port_alone_serve(p);
        return;
    }
    atomic_fetch_add(&h->asked, 1);
    if (atomic_load(&h->asleep)) shared_wake(&h->asked);
}

static sc_status said(const char *text, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_none(), NULL, "%s",
                    text);
}

sc_status sc_emu_port_done(sc_emu_port *p, sc_emu_cell cell, bool *done,
                           sc_time *begin, sc_time *end, sc_err *err)
{
    shared_cell *c = &p->port->cell[cell];
    uint32_t state = atomic_load_explicit(&c->state, memory_order_acquire);
    *done = state == CELL_DONE;
    if (state == CELL_FAILED) return said(p->port->text, err);
    if (!*done) SC_TRY(sc_emu_port_failed(p, err));
    *begin = c->begin;
    *end = c->end;
    return SC_OK;
}

void sc_emu_port_free(sc_emu_port *p, sc_emu_cell cell)
{
    atomic_store_explicit(&p->port->cell[cell].state, CELL_FREE,
                          memory_order_release);
    keep_spare(p, cell);
}

/* Asks, and waits for the answer. */
static sc_status ask_now(sc_emu_port *p, sc_emu_cell cell, sc_err *err)
{
    bool done = false;
    sc_time begin, end;
    sc_status status = SC_OK;
    ask(p, cell);
    while (status == SC_OK) {
        uint32_t seen = sc_emu_port_seen(p);
        status = sc_emu_port_done(p, cell, &done, &begin, &end, err);
        if (status != SC_OK || done) break;
        sc_emu_port_sleep(p, seen, SC_TIME_MAX);
    }
    return status;
}

uint32_t sc_emu_port_seen(const sc_emu_port *p)
{
    return atomic_load(&p->port->answers);
}

void sc_emu_port_sleep(sc_emu_port *p, uint32_t seen, sc_time at_most)
{
    shared_port *port = p->port;
    atomic_fetch_add(&port->sleepers, 1);
    if (atomic_load(&port->answers) == seen)
        shared_sleep(&port->answers, seen, at_most);
    atomic_fetch_sub(&port->sleepers, 1);
}

/* ---- questions --------------------------------------------------------------------- */

sc_status sc_emu_port_group(sc_emu_port *p, const uint32_t *rank, uint32_t n,
                            uint64_t instance, sc_time now, uint32_t *group,
                            uint32_t *n_real, sc_err *err)
{
    sc_emu_cell k = 0;
    if (rank && n > p->head->world)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "a group of %u ranks in a world of %u", n,
                        p->head->world);
    SC_TRY(alloc_cell(p, SHARED_GROUP, now, &k, err));
    shared_cell *c = &p->port->cell[k];
    c->other = rank ? n : 0;
    c->ticket = instance;
    if (rank)
        memcpy(shared_list_at(p->head, p->number), rank, n * sizeof *rank);
    SC_TRY(ask_now(p, k, err));
    *group = c->reply[0];
    *n_real = c->reply[1];
    sc_emu_port_free(p, k);
    return SC_OK;
}

sc_status sc_emu_port_cpu(sc_emu_port *p, const sc_emu_op *op, sc_time now,
                          sc_time *cpu, sc_err *err)
{
    sc_emu_cell k = 0;
    SC_TRY(alloc_cell(p, SHARED_CPU, now, &k, err));
    p->port->cell[k].op = *op;
    SC_TRY(ask_now(p, k, err));
    *cpu = p->port->cell[k].end;
    sc_emu_port_free(p, k);
    return SC_OK;
}

sc_status sc_emu_port_why(sc_emu_port *p, sc_emu_cell cell, sc_time now,
                          sc_text *out, sc_err *err)
{
    sc_emu_cell k = 0;
    SC_TRY(alloc_cell(p, SHARED_WHY, now, &k, err));
    p->port->cell[k].other = cell;
    SC_TRY(ask_now(p, k, err));
    sc_text_add(out, "%s", p->port->text);
    sc_emu_port_free(p, k);
    return SC_OK;
}

sc_status sc_emu_port_look(sc_emu_port *p, sc_time now, sc_err *err)
{
    if (p->alone) {
        port_alone_look(p, now);
        return SC_OK;
    }
    if (!p->head->virt) return SC_OK;
    return sc_emu_port_settle(p, now, err);
}

sc_status sc_emu_port_settle(sc_emu_port *p, sc_time now, sc_err *err)
{
    sc_emu_cell k = 0;
    if (p->alone) return SC_OK;
    /* What ends now comes before it. */
    SC_TRY(alloc_cell(p, SHARED_LOOK, now + 1, &k, err));
    SC_TRY(ask_now(p, k, err));
    sc_emu_port_free(p, k);
    return SC_OK;
}

bool sc_emu_port_told(sc_emu_port *p, sc_emu_cell *out)
{
    uint32_t n = atomic_load_explicit(&p->port->ended, memory_order_acquire);
    if (p->told == n) return false;
    *out = p->port->done[p->told++ % SHARED_CELLS];
    return true;
}

const sc_emu_op *sc_emu_port_op(const sc_emu_port *p, sc_emu_cell cell)
{
    return &p->port->cell[cell].op;
}

sc_status sc_emu_port_post(sc_emu_port *p, const sc_emu_op *op, bool silent,
                           sc_time t, sc_emu_cell *out, sc_err *err)
{
    SC_TRY(alloc_cell(p, silent ? SHARED_JOIN : SHARED_POST, t, out, err));
    p->port->cell[*out].op = *op;
    ask(p, *out);
    return SC_OK;
}

sc_status sc_emu_port_waited(sc_emu_port *p, sc_time from, sc_time to,
                             sc_err *err)
{
    sc_emu_cell k = 0;
    SC_TRY(alloc_cell(p, SHARED_WAITED, to, &k, err));
    p->port->cell[k].begin = from;
    p->port->cell[k].end = to;
    ask(p, k);
    lend_cell(p, k);
    return SC_OK;
}

sc_status sc_emu_port_cancel(sc_emu_port *p, sc_emu_cell cell, sc_time now,
                             bool *canceled, sc_err *err)
{
    sc_emu_cell k = 0;
    SC_TRY(alloc_cell(p, SHARED_CANCEL, now, &k, err));
    p->port->cell[k].other = cell;
    SC_TRY(ask_now(p, k, err));
    *canceled = p->port->cell[k].reply[0];
    sc_emu_port_free(p, k);
    if (*canceled) sc_emu_port_free(p, cell);
    return SC_OK;
}

sc_status sc_emu_port_await(sc_emu_port *p, sc_emu_cell cell, sc_time now,
                            sc_time by, sc_emu_cell *out, sc_err *err)
{
    SC_TRY(alloc_cell(p, SHARED_AWAIT, now, out, err));
    /* An await for itself, which has not ended. */
    p->port->cell[*out].other = cell == SC_EMU_NO_CELL ? *out : cell;
    p->port->cell[*out].end = by;
    ask(p, *out);
    return SC_OK;
}

void sc_emu_port_leave(sc_emu_port *p)
{
    atomic_store(&p->port->attached, 2);
    atomic_fetch_add(&p->head->asked, 1);
    if (atomic_load(&p->head->asleep)) shared_wake(&p->head->asked);
}

sc_status sc_emu_port_failed(const sc_emu_port *p, sc_err *err)
{
    return atomic_load_explicit(&p->head->failed, memory_order_relaxed)
               ? said(p->head->text, err)
               : SC_OK;
}

sc_time sc_emu_port_start(const sc_emu_port *p)
{
    return p->head->start;
}

sc_time sc_emu_port_next(const sc_emu_port *p)
{
    return atomic_load_explicit(&p->head->next, memory_order_relaxed);
}

bool sc_emu_port_is_gone(const sc_emu_port *p, uint32_t rank)
{
    for (uint32_t i = 0; i < p->n_peers; i++) {
        const shared_port *o = shared_port_at(p->head, i);
        if (p->peer[i].rank == rank)
            return atomic_load(&o->gone) || atomic_load(&o->attached) == 2;
    }
    return true;
}
