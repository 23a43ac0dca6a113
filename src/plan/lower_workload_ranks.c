/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_workload_ranks.c - finds the role of each rank in every communicator of
 * a lowered network.  Ranks of one pipeline device take part in the same
 * exchanges and have the same tasks.
 */
#include "base/util.h"
#include "plan/lower_workload.h"

#include <string.h>

/* ---- communicators ------------------------------------------------------ */

/* Finds or adds the group of these members, in ascending order. */
static sc_status group_of(work_sides *s, sc_map *by, const uint32_t *member,
                          uint32_t n, sc_arena *a, uint32_t *out, sc_err *err)
{
    uint32_t *rank = SC_NEW_N(a, uint32_t, n);
    if (!rank) return sc_error_nomem(err);
    memcpy(rank, member, n * sizeof *rank);
    sc_sort_numbers(rank, n);
    uint64_t hash = sc_hash(rank, n * sizeof *rank, 0);
    uint32_t at = 0;
    while ((*out = sc_map_next(by, hash, &at)) < s->n_groups) {
        const sc_rank_group *x = &s->group[*out];
        if (x->n == n && memcmp(x->rank, rank, n * sizeof *rank) == 0)
            return SC_OK;
    }
    sc_rank_group *all =
        sc_grow(a, s->group, s->n_groups, &s->cap_groups, 64, sizeof *all);
    if (!all || !sc_map_add(by, a, hash, s->n_groups))
        return sc_error_nomem(err);
    s->group = all;
    *out = s->n_groups++;
    all[*out] = (sc_rank_group){.n = n, .rank = rank};
    return SC_OK;
}

/* ---- parts of ranks ----------------------------------------------------- */

/* Whether a group moves nothing: it has one member, or a rank would send to
 * itself. */
static bool says_nothing(const lower_comm *c, uint32_t group)
{
    const uint32_t *r = c->rank + (size_t)group * c->size;
    return c->size < 2 || (c->coll == SC_SENDRECV && r[0] == r[1]);
}

static sc_status heads(const lower_notes *n, work_sides *s, sc_arena *a,
                       sc_err *err)
{
    s->head = SC_NEW_N(a, uint32_t, (size_t)s->n_ranks + 2);
    if (!s->head) return sc_error_nomem(err);
    for (uint32_t c = 0; c < n->n_comms; c++)
        for (uint32_t i = 0; i < n->comm[c].n_groups * n->comm[c].size; i++)
            if (!says_nothing(&n->comm[c], i / n->comm[c].size))
                s->head[n->comm[c].rank[i] + 2]++;
    for (uint32_t r = 0; r < s->n_ranks; r++) s->head[r + 2] += s->head[r + 1];
    s->part = SC_NEW_N(a, work_part, s->head[s->n_ranks + 1]);
    return s->part ? SC_OK : sc_error_nomem(err);
}

static void add_part(work_sides *s, uint32_t rank, uint32_t comm,
                     uint32_t value, work_role role)
{
    s->part[s->head[rank + 1]++] =
        (work_part){.comm = comm, .value = value, .role = (uint8_t)role};
}

static void find_first(work_sides *s, uint32_t rank)
{
    work_part *own = s->part + s->head[rank];
    uint32_t n = s->head[rank + 1] - s->head[rank];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (own[k].value != own[i].value ||
               (own[k].role == WORK_MEMBER) != (own[i].role == WORK_MEMBER))
            k++;
        own[i].first = k;
    }
}

static sc_status parts(const lower_notes *n, work_sides *s, uint32_t all,
                       sc_arena *a, sc_err *err)
{
    sc_map by = {0};
    SC_TRY(heads(n, s, a, err));
    for (uint32_t c = 0; c < n->n_comms; c++) {
        const lower_comm *x = &n->comm[c];
        for (uint32_t g = 0; g < x->n_groups; g++) {
            const uint32_t *r = x->rank + (size_t)g * x->size;
            uint32_t of = SC_TASK_WORLD;
            if (says_nothing(x, g)) continue;
            if (x->coll == SC_SENDRECV) {
                add_part(s, r[0], c, r[1], WORK_SENDS);
                add_part(s, r[1], c, r[0], WORK_RECEIVES);
                continue;
            }
            if (x->size < all)
                SC_TRY(group_of(s, &by, r, x->size, a, &of, err));
            for (uint32_t k = 0; k < x->size; k++)
                add_part(s, r[k], c, of, WORK_MEMBER);
        }
    }
    for (uint32_t r = 0; r < s->n_ranks; r++) find_first(s, r);
    return SC_OK;
}

/* ---- devices ------------------------------------------------------------ */

/* Whether two ranks of a device have the same roles. */
static bool same_parts(const work_sides *s, uint32_t a, uint32_t b)
{
    const work_part *x = s->part + s->head[a], *y = s->part + s->head[b];
    uint32_t n = s->head[a + 1] - s->head[a];
    if (n != s->head[b + 1] - s->head[b]) return false;
    for (uint32_t k = 0; k < n; k++)
        if (x[k].comm != y[k].comm || x[k].role != y[k].role ||
            x[k].first != y[k].first)
            return false;
    return true;
}

sc_status work_sides_of(const lower_notes *notes, uint32_t n_ranks,
                        uint32_t all, sc_arena *a, work_sides *out, sc_err *err)
{
    work_sides s = {
        .n_ranks = n_ranks, .n = notes->pp, .stride = notes->stride};
    SC_TRY(parts(notes, &s, all, a, err));
    s.side = SC_NEW_N(a, work_side, s.n);
    if (!s.side) return sc_error_nomem(err);
    for (uint32_t r = 0; r < n_ranks; r++)
        if (!same_parts(&s, work_device(&s, r) * s.stride, r))
            return sc_error(
                err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                "the exchanges of rank %u differ from those of its stage", r);
    *out = s;
    return SC_OK;
}

void work_parts(const work_sides *s, uint32_t rank, uint32_t comm,
                uint32_t *from, uint32_t *to)
{
    uint32_t first = s->head[rank], end = s->head[rank + 1];
    SC_FIRST(first, end, mid, s->part[mid].comm >= comm);
    for (*from = *to = first; *to < end && s->part[*to].comm == comm;) ++*to;
}

/* ---- the workload ------------------------------------------------------- */

/* Numbers groups in the order in which ranks use them; `as`: number + 1. */
static sc_status name_group(const work_sides *s, uint32_t g, uint32_t *as,
                            sc_arena *a, sc_workload *w, sc_err *err)
{
    if (as[g]) return SC_OK;
    sc_rank_group *x = &w->groups[w->n_groups];
    *x = s->group[g];
    x->name = sc_sprintf(a, "%u", w->n_groups + 1);
    as[g] = ++w->n_groups;
    return x->name ? SC_OK : sc_error_nomem(err);
}

static sc_status rank_slots(const work_sides *s, const work_slots *x,
                            uint32_t rank, uint32_t *as, sc_arena *a,
                            sc_workload *w, sc_err *err)
{
    const work_part *own = s->part + s->head[rank];
    uint32_t *groups = SC_NEW_N(a, uint32_t, x->group.n);
    uint32_t *peers = SC_NEW_N(a, uint32_t, x->peer.n);
    if (!groups || !peers) return sc_error_nomem(err);
    for (uint32_t k = 0; k < x->group.n; k++) {
        uint32_t g = own[x->group.order[k]].value;
        SC_TRY(name_group(s, g, as, a, w, err));
        groups[k] = as[g] - 1;
    }
    for (uint32_t k = 0; k < x->peer.n; k++)
        peers[k] = own[x->peer.order[k]].value;
    w->ranks[rank].groups = groups;
    w->ranks[rank].peers = peers;
    w->ranks[rank].tags = x->tag.order;
    return SC_OK;
}

sc_status work_finish(work_sides *s, uint32_t all, const char *name,
                      sc_arena *a, sc_workload *out, sc_err *err)
{
    uint32_t idle = all > s->n_ranks;
    sc_workload w = {.n_ranks = all, .n_classes = s->n + idle, .n_jobs = 1};
    work_slots *x = SC_NEW_N(a, work_slots, w.n_classes);
    uint32_t *as = SC_NEW_N(a, uint32_t, s->n_groups);
    w.classes = SC_NEW_N(a, sc_task_list, w.n_classes);
    w.ranks = SC_NEW_N(a, sc_rank_trace, all);
    w.groups = SC_NEW_N(a, sc_rank_group, s->n_groups);
    w.jobs = SC_NEW(a, sc_rank_job);
    if (!x || !as || !w.classes || !w.ranks || !w.groups || !w.jobs)
        return sc_error_nomem(err);
    w.jobs[0] = (sc_rank_job){name, 0, all};
    static const work_side none;
    for (uint32_t c = 0; c < w.n_classes; c++)
        SC_TRY(work_list(c < s->n ? &s->side[c] : &none, &x[c], a,
                         &w.classes[c], err));
    for (uint32_t r = 0; r < all; r++) {
        uint32_t c = r < s->n_ranks ? work_device(s, r) : s->n;
        w.ranks[r].cls = c;
        if (r < s->n_ranks) SC_TRY(rank_slots(s, &x[c], r, as, a, &w, err));
    }
    *out = w;
    return SC_OK;
}
