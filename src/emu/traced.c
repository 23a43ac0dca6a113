/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traced.c - the programs of emulated ranks, from traces.
 *
 * A trace becomes the list of its exchanges, each with the compute time before
 * it in the order of ids, and with the last point at which a node waited for an
 * earlier exchange. A program advances from one exchange with a real rank to
 * the next; exchanges without real ranks only add the computation around them.
 */
#include "emu/traced.h"

#include <string.h>

#define WORLD_WHAT  ((uint64_t)UINT32_MAX)
#define MESSAGE_BIT ((uint64_t)1 << 63)

typedef struct exchange {
    sc_coll coll;
    uint32_t slot; /* of the group, or of the peer */
    uint64_t size;
    sc_time at;     /* compute time before it */
    sc_time woken;  /* the same at the last wait before */
    uint32_t waits; /* number of waits so far */
} exchange;

typedef struct program {
    exchange *v;
    uint32_t n, waits;
    sc_time total; /* total compute time */
} program;

/* Position of a rank in its program. */
typedef struct position {
    sc_time at;
    uint64_t waits;
} position;

/* Position of a rank among its exchanges of one kind. */
typedef struct cursor {
    uint32_t rank, next;
    uint64_t what, round;
} cursor;

struct emu_traced {
    const sc_workload *w;
    sc_arena *a;
    program *program; /* [n_classes] */
    uint32_t *same;   /* [n_groups] the first group of the same ranks */
    sc_map groups;    /* by their ranks */
    position *pos;    /* [n_ranks] */
    cursor *cursor;
    uint32_t n, cap;
    sc_map cursors; /* by rank and what */
};

/* ---- programs ------------------------------------------------------------ */

static bool kind_of(const sc_task_list *l, uint32_t i, sc_coll *out)
{
    if (l->flags[i] & SC_TASK_NO_COMM) return false;
    if (l->kind[i] == SC_TASK_SEND)
        *out = SC_SEND;
    else if (l->kind[i] == SC_TASK_RECV)
        *out = SC_RECV;
    else if (l->kind[i] == SC_TASK_COLL)
        *out = (sc_coll)l->coll[i];
    else
        return false;
    return true;
}

static sc_status read_program(const sc_task_list *l, sc_arena *a, program *p,
                              sc_err *err)
{
    uint8_t *woken = SC_NEW_N(a, uint8_t, l->n_tasks);
    sc_time last = 0;
    sc_coll coll;
    for (uint32_t i = 0; i < l->n_tasks; i++) p->n += kind_of(l, i, &coll);
    p->v = SC_NEW_N(a, exchange, p->n);
    if (!woken || !p->v) return sc_error_nomem(err);
    p->n = 0;
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        bool exchanges = kind_of(l, i, &coll);
        if (woken[i]) {
            last = p->total;
            p->waits++;
        }
        if (!exchanges) {
            if (l->kind[i] == SC_TASK_COMP) p->total += l->duration[i];
            continue;
        }
        bool message = coll == SC_SEND || coll == SC_RECV;
        p->v[p->n++] =
            (exchange){coll,       message ? l->peer[i] : l->group[i],
                       l->size[i], p->total,
                       last,       p->waits};
        for (uint32_t k = l->succ_head[i]; k < l->succ_head[i + 1]; k++)
            woken[l->succ[k]] = 1;
    }
    return SC_OK;
}

/* ---- groups -------------------------------------------------------------- */

static bool same_ranks(const sc_rank_group *g, const uint32_t *rank, uint32_t n)
{
    return g->n == n && memcmp(g->rank, rank, n * sizeof *rank) == 0;
}

/* The first group of these ranks; if there is none, `i` becomes it, unless it
 * is EMU_NONE. */
static uint32_t find_group(const emu_traced *f, const uint32_t *rank,
                           uint32_t n)
{
    uint64_t hash = sc_hash(rank, n * sizeof *rank, 0);
    uint32_t at = 0, i;
    do i = sc_map_next(&f->groups, hash, &at);
    while (i != SC_MAP_END && !same_ranks(&f->w->groups[i], rank, n));
    return i == SC_MAP_END ? EMU_NONE : i;
}

static bool add_group(emu_traced *f, uint32_t i)
{
    const sc_rank_group *g = &f->w->groups[i];
    uint32_t first = find_group(f, g->rank, g->n);
    f->same[i] = first == EMU_NONE ? i : first;
    return first != EMU_NONE ||
           sc_map_add(&f->groups, f->a,
                      sc_hash(g->rank, g->n * sizeof *g->rank, 0), i);
}

static bool is_world(const sc_workload *w, const sc_rank_group *g)
{
    if (g->n != w->n_ranks) return false;
    for (uint32_t i = 0; i < g->n; i++)
        if (g->rank[i] != i) return false;
    return true;
}

static sc_status index_groups(emu_traced *f, sc_err *err)
{
    const sc_workload *w = f->w;
    f->same = SC_NEW_N(f->a, uint32_t, w->n_groups);
    if (!f->same) return sc_error_nomem(err);
    for (uint32_t i = 0; i < w->n_groups; i++) {
        if (is_world(w, &w->groups[i]))
            f->same[i] = SC_TASK_WORLD;
        else if (!add_group(f, i))
            return sc_error_nomem(err);
    }
    return SC_OK;
}

uint64_t emu_traced_group(const emu_traced *f, const emu_group *g)
{
    if (!g->rank && g->n == f->w->n_ranks) return WORLD_WHAT;
    if (!g->rank) return EMU_NO_WHAT;
    uint32_t i = find_group(f, g->rank, g->n);
    return i == EMU_NONE ? EMU_NO_WHAT : i;
}

uint64_t emu_traced_pair(bool sends, uint32_t partner)
{
    return MESSAGE_BIT | (uint64_t)sends << 32 | partner;
}

/* ---- cursors ------------------------------------------------------------- */

static cursor *find_cursor(emu_traced *f, uint32_t rank, uint64_t what)
{
    uint64_t key[2] = {rank, what}, hash = sc_hash(key, sizeof key, 0);
    uint32_t at = 0, i;
    while ((i = sc_map_next(&f->cursors, hash, &at)) != SC_MAP_END)
        if (f->cursor[i].rank == rank && f->cursor[i].what == what)
            return &f->cursor[i];
    cursor *v = sc_grow(f->a, f->cursor, f->n, &f->cap, 64, sizeof *v);
    if (!v) return NULL;
    f->cursor = v;
    v[f->n] = (cursor){.rank = rank, .what = what};
    return sc_map_add(&f->cursors, f->a, hash, f->n) ? &v[f->n++] : NULL;
}

/* ---- steps --------------------------------------------------------------- */

static uint64_t what_of(const emu_traced *f, uint32_t rank, const exchange *x)
{
    const sc_rank_trace *r = &f->w->ranks[rank];
    if (x->coll == SC_SEND || x->coll == SC_RECV)
        return emu_traced_pair(x->coll == SC_SEND, r->peers[x->slot]);
    if (x->slot == SC_TASK_WORLD) return WORLD_WHAT;
    return f->same[r->groups[x->slot]];
}

static bool is_it(const emu_traced *f, uint32_t rank, const exchange *x,
                  const emu_called *c)
{
    bool share = c->coll == SC_ALL_GATHER || c->coll == SC_GATHER;
    uint64_t bytes = share ? x->size * c->n : x->size;
    if (x->coll != c->coll) return false;
    if (bytes != c->bytes && c->coll != SC_BARRIER) return false;
    return what_of(f, rank, x) == c->what;
}

bool emu_traced_has(const emu_traced *f, uint32_t rank)
{
    return f && f->program[f->w->ranks[rank].cls].n > 0;
}

/* Advances to exchange `x` of that round. A trace starts again when all its
 * calls have ended. */
static void walk(position *p, const program *g, const exchange *x,
                 uint64_t round, emu_step *out)
{
    sc_time first = (sc_time)round * g->total, at = first + x->at;
    uint64_t waits = round * ((uint64_t)g->waits + 1) + x->waits;
    sc_time from = p->at;
    if (at < from) at = from; /* the program called it in another order */
    out->waits = waits > p->waits;
    sc_time woken = first + x->woken;
    if (!out->waits || woken < from) woken = out->waits ? from : at;
    out->before = woken - from;
    out->after = at - woken;
    p->at = at;
    if (out->waits) p->waits = waits;
}

sc_status emu_traced_step(emu_traced *f, uint32_t rank, const emu_called *x,
                          emu_step *out, sc_err *err)
{
    const program *g = &f->program[f->w->ranks[rank].cls];
    *out = (emu_step){.found = false};
    if (x->what == EMU_NO_WHAT) return SC_OK;
    cursor *c = find_cursor(f, rank, x->what);
    if (!c) return sc_error_nomem(err);
    uint32_t i = c->next;
    uint64_t round = c->round;
    for (uint32_t k = 0; k < g->n; k++, i++) {
        if (i == g->n) {
            i = 0;
            round++;
        }
        if (!is_it(f, rank, &g->v[i], x)) continue;
        c->next = i + 1;
        c->round = round;
        out->found = true;
        walk(&f->pos[rank], g, &g->v[i], round, out);
        return SC_OK;
    }
    return SC_OK;
}

sc_status emu_traced_new(const sc_emu_config *c, sc_arena *a, emu_traced **out,
                         sc_err *err)
{
    const sc_workload *w = c->peers;
    *out = NULL;
    if (!w) return SC_OK;
    emu_traced *f = SC_NEW(a, emu_traced);
    if (!f) return sc_error_nomem(err);
    *f = (emu_traced){.w = w, .a = a};
    f->program = SC_NEW_N(a, program, w->n_classes);
    f->pos = SC_NEW_N(a, position, w->n_ranks);
    if (!f->program || !f->pos) return sc_error_nomem(err);
    for (uint32_t i = 0; i < w->n_classes; i++)
        SC_TRY(read_program(&w->classes[i], a, &f->program[i], err));
    SC_TRY(index_groups(f, err));
    *out = f;
    return SC_OK;
}
