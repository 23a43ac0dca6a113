/* SPDX-License-Identifier: Apache-2.0 */
/* shared.c - the launcher's side: creates the memory and serves it. */
#include "emu/shared_server.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The server spins instead of sleeping if an event is due this soon. */
#define SPIN_PS 60000000LL
/* Virtual clock: how often blocking ranks are checked. */
#define LOOK_PS (SC_PS_PER_S / 20)

/* ---- memory -------------------------------------------------------------- */

static sc_status refused(const char *what, sc_err *err)
{
    const char *why = sc_errno_text(errno);
    return sc_error(err, SC_EIO, SC_C_IO, sc_pos_none(), NULL, "%s: %s", what,
                    why);
}

static sc_status lend(const char *name, size_t size, int *fd, sc_err *err)
{
    *fd = memfd_create(name, MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, (off_t)size) != 0)
        return refused("there is no memory to share between real ranks", err);
    return SC_OK;
}

static sc_status lend_all(sc_emu_shared *s, sc_err *err)
{
    SC_TRY(lend("stepcast-shared", s->size, &s->fd, err));
    for (uint32_t i = 0; i < s->n; i++)
        SC_TRY(lend("stepcast-data", SHARED_ROOM, &s->data[i], err));
    void *m = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (m == MAP_FAILED)
        return refused("the memory that real ranks share cannot be mapped",
                       err);
    s->head = m;
    return SC_OK;
}

/* "shared": process, descriptor of the memory, descriptor of each rank's
 * data */
static sc_status write_address(const sc_emu_shared *s, const char *path,
                               sc_err *err)
{
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "%ld %d", (long)getpid(), s->fd);
    for (uint32_t i = 0; i < s->n; i++)
        sc_text_add(&t, " %u:%d", s->rank[i].rank, s->data[i]);
    sc_text_add(&t, "\n");
    sc_status status =
        t.failed ? sc_error_nomem(err) : sc_file_write(path, t.buf, t.len, err);
    sc_text_free(&t);
    return status;
}

sc_status server_new(const sc_emu_config *c, sc_arena *a, sc_emu_shared **out,
                     sc_err *err)
{
    sc_emu_shared *s = SC_NEW(a, sc_emu_shared);
    if (!s) return sc_error_nomem(err);
    s->n = c->n_real;
    s->a = a;
    s->virt = c->clock == SC_EMU_VIRTUAL;
    s->size = shared_size(s->n, c->world);
    s->fd = -1;
    s->data = SC_NEW_N(a, int, s->n);
    s->rank = SC_NEW_N(a, server_rank, s->n);
    if (!s->data || !s->rank) return sc_error_nomem(err);
    for (uint32_t i = 0; i < s->n; i++) s->data[i] = -1;
    *out = s;
    return sc_emu_new(c, a, &s->emu, err);
}

void server_fill(sc_emu_shared *s, const sc_emu_config *c)
{
    s->head->magic = SHARED_MAGIC;
    s->head->size = s->size;
    s->head->world = c->world;
    s->head->n_real = s->n;
    s->head->virt = s->virt;
    s->head->start = shared_now();
    atomic_store(&s->head->next, SC_TIME_MAX);
    for (uint32_t i = 0; i < s->n; i++) {
        s->rank[i].rank = c->real[i];
        s->rank[i].port = shared_port_at(s->head, i);
        s->rank[i].since = s->head->start;
        s->rank[i].factor = sc_emu_straggler(c, c->real[i]);
        s->rank[i].cpu = -1;
    }
}

sc_status sc_emu_shared_new(const char *path, const sc_emu_config *c,
                            sc_arena *a, sc_emu_shared **out, sc_err *err)
{
    sc_emu_shared *s;
    SC_TRY(server_new(c, a, &s, err));
    sc_status status = lend_all(s, err);
    if (status == SC_OK) {
        server_fill(s, c);
        status = write_address(s, path, err);
    }
    if (status == SC_OK)
        *out = s;
    else
        sc_emu_shared_close(s);
    return status;
}

void sc_emu_shared_close(sc_emu_shared *s)
{
    if (s->head) munmap(s->head, s->size);
    s->head = NULL;
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->data[i] >= 0) close(s->data[i]);
        s->data[i] = -1;
    }
}

/* ---- serving ------------------------------------------------------------- */

static void ring_bell(shared_head *h)
{
    atomic_fetch_add(&h->asked, 1);
    if (atomic_load(&h->asleep)) shared_wake(&h->asked);
}

void sc_emu_shared_gone(sc_emu_shared *s, uint32_t rank)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->rank[i].rank == rank) atomic_store(&s->rank[i].port->gone, 1);
    ring_bell(s->head);
}

void sc_emu_shared_stop(sc_emu_shared *s)
{
    atomic_store(&s->head->stop, 1);
    ring_bell(s->head);
}

/* A rank that computes or spins in a real-time scheduling class, its own or the
 * launcher's, must not keep the server from its core. */
void server_keep_up(server_rank *r)
{
    pid_t pid = atomic_load(&r->port->pid);
    struct sched_param theirs, own;
    int policy = sched_getscheduler(pid), mine = sched_getscheduler(0);
    r->known = true;
    if (policy >= 0) policy &= ~SCHED_RESET_ON_FORK;
    if ((policy != SCHED_FIFO && policy != SCHED_RR) ||
        sched_getparam(pid, &theirs) != 0 || sched_getparam(0, &own) != 0)
        return;
    if (theirs.sched_priority < sched_get_priority_max(policy))
        theirs.sched_priority++;
    mine &= ~SCHED_RESET_ON_FORK;
    if ((mine == SCHED_FIFO || mine == SCHED_RR) &&
        own.sched_priority >= theirs.sched_priority)
        return;
    sched_setscheduler(0, policy, &theirs); /* if permitted */
}

static void doze(shared_head *h, uint32_t seen, sc_time at_most)
{
    atomic_store(&h->asleep, 1);
    if (atomic_load(&h->asked) == seen) shared_sleep(&h->asked, seen, at_most);
    atomic_store(&h->asleep, 0);
}

/* The rank with the oldest request; s->n: there is none. */
static uint32_t oldest(const sc_emu_shared *s, sc_time *t)
{
    uint32_t rank = s->n;
    *t = SC_TIME_MAX;
    for (uint32_t i = 0; i < s->n; i++) {
        const shared_cell *c = server_first(&s->rank[i]);
        if (!c || (rank < s->n && c->t >= *t)) continue;
        rank = i;
        *t = c->t;
    }
    return rank;
}

/* Real clock: answers all questions in the order of their times, however late
 * the thread is; returns the time until something is due. */
static sc_status serve_real(sc_emu_shared *s, sc_time *idle, sc_err *err)
{
    for (;;) {
        sc_time asked;
        uint32_t rank = oldest(s, &asked);
        sc_time now = shared_now() - s->head->start;
        sc_time next = sc_emu_next(s->emu);
        if (next != SC_TIME_MAX && next <= now &&
            (rank == s->n || next < asked)) {
            SC_TRY(server_advance(s, next, err));
            continue;
        }
        *idle = next == SC_TIME_MAX ? SC_TIME_MAX : next - now;
        if (rank == s->n) return SC_OK;
        server_serve(s, rank);
    }
}

static sc_status serve_virtual(sc_emu_shared *s, sc_time *idle, sc_err *err)
{
    bool done = true;
    while (done) SC_TRY(server_step(s, &done, err));
    server_look_after(s);
    *idle = LOOK_PS;
    return SC_OK;
}

static void wait_for_ranks(sc_emu_shared *s, uint32_t seen, sc_time idle)
{
    if (s->virt || idle == SC_TIME_MAX) {
        doze(s->head, seen, idle);
        return;
    }
    if (idle > SPIN_PS) {
        doze(s->head, seen, idle - SPIN_PS);
        return;
    }
    sc_time until = shared_now() + idle;
    while (atomic_load_explicit(&s->head->asked, memory_order_relaxed) ==
               seen &&
           shared_now() < until) {
    }
}

void server_give_up_all(sc_emu_shared *s, const sc_err *err)
{
    snprintf(s->head->text, sizeof s->head->text, "%s",
             err->n ? err->d[0].msg : "out of memory");
    atomic_store(&s->head->failed, 1);
    for (uint32_t i = 0; i < s->n; i++) s->rank[i].answered = true;
    server_wake(s);
}

sc_status sc_emu_serve_world(sc_emu_shared *s, sc_err *err)
{
    sc_status status = SC_OK;
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1);
    while (status == SC_OK && !atomic_load(&s->head->stop)) {
        uint32_t seen = atomic_load(&s->head->asked);
        sc_time idle;
        status =
            s->virt ? serve_virtual(s, &idle, err) : serve_real(s, &idle, err);
        server_wake(s);
        if (status == SC_OK) wait_for_ranks(s, seen, idle);
    }
    if (status != SC_OK) server_give_up_all(s, err);
    if (slack > 1) prctl(PR_SET_TIMERSLACK, slack);
    return status;
}
