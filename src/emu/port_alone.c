/* SPDX-License-Identifier: Apache-2.0 */
/* port_alone.c - a real rank whose world is in its own process. */
#include "emu/shared_rank.h"
#include "emu/shared_server.h"

#include <sys/mman.h>

/* Memory that is used only where it is touched. */
static void *room(size_t size)
{
    void *m = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return m == MAP_FAILED ? NULL : m;
}

sc_status sc_emu_port_alone(const sc_emu_config *c, sc_arena *a,
                            sc_emu_port **out, sc_err *err)
{
    sc_emu_shared *s;
    sc_emu_port *p = SC_NEW(a, sc_emu_port);
    port_peer *self = SC_NEW(a, port_peer);
    if (!p || !self) return sc_error_nomem(err);
    SC_TRY(server_new(c, a, &s, err));
    s->head = room(s->size);
    self->rank = c->real[0];
    self->fd = -1;
    self->data = room(SHARED_ROOM);
    if (!s->head || !self->data) return sc_error_nomem(err);
    server_fill(s, c);
    s->rank[0].known = true; /* its scheduling class is this thread's */
    *p = (sc_emu_port){.rank = c->real[0],
                       .alone = s,
                       .head = s->head,
                       .port = s->rank[0].port,
                       .spare = SC_EMU_NO_CELL,
                       .lent = SC_EMU_NO_CELL,
                       .peer = self,
                       .n_peers = 1,
                       .cap_peers = 1};
    atomic_store(&s->head->next, sc_emu_next(s->emu));
    *out = p;
    return SC_OK;
}

bool sc_emu_port_is_alone(const sc_emu_port *p)
{
    return p->alone != NULL;
}

static void settle(sc_emu_shared *s, sc_status status)
{
    if (status != SC_OK) server_give_up_all(s, &s->err);
    server_wake(s);
}

/* Advances to the next end; false: it is not due by `t`. */
static bool advance(sc_emu_shared *s, sc_time t, sc_status *status)
{
    sc_time next = sc_emu_next(s->emu);
    if (next == SC_TIME_MAX || next > t) return false;
    sc_err_init(&s->err);
    *status = server_advance(s, next, &s->err);
    return *status == SC_OK;
}

void port_alone_look(sc_emu_port *p, sc_time now)
{
    sc_status status = SC_OK;
    bool any = false;
    while (advance(p->alone, now, &status)) any = true;
    if (any || status != SC_OK) settle(p->alone, status);
}

/* Time passes only while the program waits: up to the end of that wait. */
void port_alone_serve(sc_emu_port *p)
{
    sc_emu_shared *s = p->alone;
    server_rank *r = &s->rank[0];
    sc_status status = SC_OK;
    while (server_first(r)) server_serve(s, 0);
    while (r->n_awaits > 0) {
        sc_time by = server_gives_up(r);
        if (advance(s, by, &status)) continue;
        if (by == SC_TIME_MAX || status != SC_OK) break;
        server_give_up(s, by);
    }
    settle(s, status);
}
