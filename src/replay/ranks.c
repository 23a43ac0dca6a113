/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - several ranks together: which kernels are one collective, and how
 * far the clocks of the ranks are apart.
 *
 * The members of a collective end together, so the median difference of their
 * ends is the difference of the clocks.  A collective begins when its last
 * member arrives; what it takes from then on is its own time.  A message is a
 * collective of its two ranks.
 */
#include "replay/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_COLLECTIVE 1000000 /* ps: no kernel takes less */

/* A kernel of a collective: the n-th of its group on its rank. */
typedef struct member {
    uint64_t group; /* hash of its name */
    uint32_t nth, rank, op;
    bool message;
    sc_time launched;
} member;

static int by_launch(const void *x, const void *y)
{
    const member *a = x, *b = y;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    if (a->launched != b->launched) return a->launched < b->launched ? -1 : 1;
    return (a->op > b->op) - (a->op < b->op);
}

static int by_coll(const void *x, const void *y)
{
    const member *a = x, *b = y;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    if (a->nth != b->nth) return a->nth < b->nth ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Messages from one rank to another are a sequence of their own: the k-th that is
 * sent is the k-th that is received.  False: a message of which the peer is not
 * known. */
static bool group_of(const replay_rank *r, const sc_trace_span_args *x,
                     uint64_t *out, bool *message)
{
    const char *name = r->m->name[x->ranks ? x->ranks : x->group];
    uint32_t peer[2];
    *out = sc_hash(name, strlen(name), 3);
    *message = replay_message(r, x, peer);
    if (!*message) return true;
    *out = sc_hash(peer, sizeof peer, *out);
    return peer[0] && peer[1];
}

static sc_status list_members(const replay_rank *r, uint32_t rank, sc_arena *a,
                              member **all, uint32_t *n, uint32_t *cap,
                              sc_err *err)
{
    uint32_t first = *n;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        if (replay_span(r, r->op[i].span)->kind != SC_SPAN_COLL) continue;
        const sc_trace_span_args *x = replay_comm_args(r, i);
        uint64_t group;
        bool message;
        if (!group_of(r, x, &group, &message) || r->op[i].item == REPLAY_NONE)
            continue;
        member *grown = sc_grow_raw(a, *all, *n, cap, 64, sizeof *grown);
        if (!grown) return sc_error_nomem(err);
        *all = grown;
        (*all)[(*n)++] = (member){.group = group,
                                  .message = message,
                                  .rank = rank,
                                  .op = i,
                                  .launched = replay_launched(r, i)};
    }
    if (*n > first) qsort(*all + first, *n - first, sizeof **all, by_launch);
    for (uint32_t i = first + 1; i < *n; i++)
        if ((*all)[i].group == (*all)[i - 1].group)
            (*all)[i].nth = (*all)[i - 1].nth + 1;
    return SC_OK;
}

/* Whether all ranks have the same number of collectives of the group that begins
 * at all[i]; `*end` is behind its last member. */
static bool complete(const member *all, uint32_t n, uint32_t i, uint32_t *end,
                     uint32_t *ranks)
{
    uint32_t first = i, of_first = 0;
    while (i < n && all[i].group == all[first].group) i++;
    *end = i;
    while (first + of_first < i && all[first + of_first].nth == 0) of_first++;
    *ranks = of_first;
    for (uint32_t k = first; k < i; k++)
        if (all[k].nth != (k - first) / of_first ||
            all[k].rank != all[first + (k - first) % of_first].rank)
            return false;
    return (i - first) % of_first == 0;
}

static sc_status join_group(sc_replay_model *m, const member *all, uint32_t end,
                            uint32_t i, uint32_t ranks, sc_err *err)
{
    for (; i < end; i += ranks) {
        replay_coll *c = &m->coll[m->n_colls];
        c->n = ranks;
        c->message = all[i].message;
        c->rank = SC_NEW_N(m->a, uint32_t, ranks);
        c->op = SC_NEW_N(m->a, uint32_t, ranks);
        c->lag = SC_NEW_N(m->a, sc_time, ranks);
        if (!c->rank || !c->op || !c->lag) return sc_error_nomem(err);
        for (uint32_t k = 0; k < ranks; k++) {
            c->rank[k] = all[i + k].rank;
            c->op[k] = all[i + k].op;
            m->rank[c->rank[k]].op[c->op[k]].coll = m->n_colls;
        }
        m->n_colls++;
    }
    return SC_OK;
}

static sc_status join(sc_replay_model *m, member *all, uint32_t n,
                      sc_text *warnings, sc_err *err)
{
    if (n) qsort(all, n, sizeof *all, by_coll);
    m->coll = SC_NEW_N(m->a, replay_coll, n);
    if (!m->coll) return sc_error_nomem(err);
    for (uint32_t i = 0, end; i < n; i = end) {
        uint32_t ranks;
        if (!complete(all, n, i, &end, &ranks)) {
            sc_text_add(warnings,
                        "ranks have different numbers of collectives of one "
                        "group: these %u last as long as recorded\n",
                        end - i);
            continue;
        }
        if (ranks > 1) SC_TRY(join_group(m, all, end, i, ranks, err));
    }
    return SC_OK;
}

/* ---- clocks -------------------------------------------------------------- */

static sc_time raw_offset(const sc_replay_model *m, uint32_t rank)
{
    const replay_rank *r = &m->rank[rank], *first = &m->rank[0];
    int64_t ns;
    if (__builtin_sub_overflow(r->m->origin_ns, first->m->origin_ns, &ns) ||
        ns > 3600000000000 || ns < -3600000000000)
        return 0; /* an hour apart: not one clock */
    return ns * 1000 + r->from - first->from;
}

/* The median of the differences, unless the clocks differ by less than these
 * vary: then they are one clock. Doubles hold hours in picoseconds exactly. */
static sc_time estimate(double *v, uint32_t n, sc_time raw)
{
    double middle = sc_quantile(v, n, 0.5);
    for (uint32_t i = 0; i < n; i++) v[i] = fabs(v[i] - middle);
    double spread = sc_quantile(v, n, 0.5);
    return fabs(middle - (double)raw) <= 3 * spread ? raw : (sc_time)middle;
}

/* The offset of a rank whose collectives are also of ranks that have one. */
static bool align(sc_replay_model *m, uint32_t rank, const bool *done,
                  double *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_colls; i++) {
        const replay_coll *c = &m->coll[i];
        sc_time own = 0, other = 0;
        bool has = false, known = false;
        for (uint32_t k = 0; k < c->n; k++) {
            const replay_rank *r = &m->rank[c->rank[k]];
            sc_time end = replay_end(r, c->op[k]);
            if (c->rank[k] == rank) {
                own = end;
                has = true;
            } else if (done[c->rank[k]] && !known) {
                other = r->offset + end;
                known = true;
            }
        }
        if (has && known) v[n++] = (double)(other - own);
    }
    if (n == 0) return false;
    m->rank[rank].offset = estimate(v, n, raw_offset(m, rank));
    return true;
}

static sc_status align_all(sc_replay_model *m, sc_text *warnings, sc_err *err)
{
    bool *done = SC_NEW_N(m->a, bool, m->n_ranks), more = true;
    double *v = SC_NEW_N(m->a, double, (size_t)m->n_colls + 1);
    sc_time least = 0;
    if (!done || !v) return sc_error_nomem(err);
    done[0] = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < m->n_ranks; i++)
            if (!done[i] && align(m, i, done, v)) done[i] = more = true;
    }
    for (uint32_t i = 0; i < m->n_ranks; i++) {
        if (!done[i]) {
            m->rank[i].offset = raw_offset(m, i);
            sc_text_add(warnings,
                        "rank %u shares no collective with rank %u: their "
                        "clocks are not aligned\n",
                        m->rank[i].rank, m->rank[0].rank);
        }
        if (m->rank[i].offset < least) least = m->rank[i].offset;
    }
    for (uint32_t i = 0; i < m->n_ranks; i++) m->rank[i].offset -= least;
    return SC_OK;
}

/* When the last member arrives, and when the first one is done. */
static void meet(const sc_replay_model *m, const replay_coll *c,
                 sc_time *arrival, sc_time *end)
{
    *arrival = 0;
    *end = SC_TIME_MAX;
    for (uint32_t k = 0; k < c->n; k++) {
        const replay_rank *r = &m->rank[c->rank[k]];
        sc_time start = r->offset + r->op[c->op[k]].start;
        sc_time own = r->offset + replay_end(r, c->op[k]);
        if (start > *arrival) *arrival = start;
        if (own < *end) *end = own;
    }
}

/* The own time of collectives, and how well the clocks agree. */
static void time_colls(sc_replay_model *m)
{
    for (uint32_t i = 0; i < m->n_colls; i++) {
        replay_coll *c = &m->coll[i];
        sc_time arrival, first;
        meet(m, c, &arrival, &first);
        c->dur = first - arrival;
        if (c->dur < LEAST_COLLECTIVE) c->dur = LEAST_COLLECTIVE;
        for (uint32_t k = 0; k < c->n; k++) {
            const replay_rank *r = &m->rank[c->rank[k]];
            sc_time end = r->offset + replay_end(r, c->op[k]);
            c->lag[k] = end > arrival + c->dur ? end - arrival - c->dur : 0;
            if (c->lag[k] > m->residual) m->residual = c->lag[k];
        }
    }
}

/* A short message is on its way before it is received, so that its sender waits for
 * nobody: such a pair lasts as long as recorded. */
static void leave_out_sent(sc_replay_model *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_colls; i++) {
        const replay_coll *c = &m->coll[i];
        sc_time arrival, end;
        meet(m, c, &arrival, &end);
        bool kept = !c->message || end > arrival;
        for (uint32_t k = 0; k < c->n; k++)
            m->rank[c->rank[k]].op[c->op[k]].coll = kept ? n : REPLAY_NONE;
        if (kept) m->coll[n++] = *c;
    }
    m->n_colls = n;
}

sc_status replay_join(sc_replay_model *m, sc_text *warnings, sc_err *err)
{
    member *all = NULL;
    uint32_t n = 0, cap = 0;
    if (m->n_ranks < 2) return SC_OK;
    for (uint32_t i = 0; i < m->n_ranks; i++)
        SC_TRY(list_members(&m->rank[i], i, m->a, &all, &n, &cap, err));
    SC_TRY(join(m, all, n, warnings, err));
    SC_TRY(align_all(m, warnings, err));
    leave_out_sent(m);
    time_colls(m);
    return SC_OK;
}

sc_time sc_replay_residual(const sc_replay_model *m)
{
    return m->residual;
}
