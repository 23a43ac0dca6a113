/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicas.c - finds data-parallel replicas in a workload.
 *
 * Communicators have shapes: their size and the distances of their members
 * from the first.  For every set of shapes that may run across replicas, what
 * the others and the messages connect is a candidate replica; the candidates
 * have to be equal.  Jobs have few shapes, so all sets are tried.
 */
#include "graph/replicas.h"

#include <string.h>

typedef struct finder {
    const sc_workload *w;
    sc_err *err;
    graph_replicas r; /* of the set of shapes that is tried */
    uint32_t inside;  /* bit per shape: can't run across */
    uint32_t *first;  /* [n_classes] a rank of it */
    uint32_t *parent; /* [n_ranks] union-find */
    uint32_t *seen;   /* [n_ranks] scratch: stamps of places */
    uint32_t stamp;
} finder;

/* ---- shapes ------------------------------------------------------------------ */

static bool same_shape(const sc_rank_group *a, const sc_rank_group *b)
{
    if (a->n != b->n) return false;
    for (uint32_t k = 1; k < a->n; k++)
        if (a->rank[k] - a->rank[0] != b->rank[k] - b->rank[0]) return false;
    return true;
}

static sc_status find_shapes(finder *f)
{
    const sc_workload *w = f->w;
    uint32_t first[GRAPH_SHAPES], n = 0;
    for (uint32_t g = 0; g < w->n_groups; g++) {
        uint32_t s = 0;
        while (s < n && !same_shape(&w->groups[first[s]], &w->groups[g])) s++;
        if (s == GRAPH_SHAPES)
            return sc_error(f->err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(),
                            NULL,
                            "communicators have more than %d shapes, so the "
                            "ranks do not form a mesh",
                            GRAPH_SHAPES);
        if (s == n) first[n++] = g;
        f->r.shape[g] = s;
    }
    f->r.n_shapes = n;
    return SC_OK;
}

/* Of the shape that all ranks are; it always runs across replicas. */
#define WORLD (1u << GRAPH_SHAPES)

/* Bit of a collective's shape. */
static uint32_t bit_of(const finder *f, uint32_t rank, const sc_task_list *l,
                       uint32_t task)
{
    if (l->kind[task] != SC_TASK_COLL) return 0;
    if (l->group[task] == SC_TASK_WORLD) return WORLD;
    return 1u << f->r.shape[f->w->ranks[rank].groups[l->group[task]]];
}

static bool sums(const sc_task_list *l, uint32_t i)
{
    return l->kind[i] == SC_TASK_COLL &&
           (l->coll[i] == SC_ALL_REDUCE || l->coll[i] == SC_REDUCE_SCATTER);
}

/* A task of which only the recorded time is known, not what it used. */
static bool is_opaque(const sc_task_list *l, uint32_t i)
{
    return (l->flags[i] & SC_TASK_NO_SIZE) && (l->flags[i] & SC_TASK_NO_OPS);
}

/* Shapes that belong to a replica, by the tasks of one rank.  `leads`: shapes
 * summed over after a task; `kernels`: those of them behind a kernel. */
static void find_inside(finder *f, uint32_t rank, uint32_t *leads,
                        uint32_t *kernels)
{
    const sc_task_list *l = &f->w->classes[f->w->ranks[rank].cls];
    for (uint32_t i = l->n_tasks; i-- > 0;) {
        uint32_t after = 0, bit = bit_of(f, rank, l, i), through = 0;
        for (uint32_t k = l->succ_head[i]; k < l->succ_head[i + 1]; k++) {
            uint32_t s = l->succ[k];
            uint32_t its = sums(l, s) ? bit_of(f, rank, l, s) : 0;
            after |= leads[s] | its;
            if (l->kind[s] == SC_TASK_COMP)
                through |= is_opaque(l, s) ? kernels[s] : leads[s];
        }
        leads[i] = after;
        kernels[i] = through;
        if (sums(l, i)) f->inside |= bit & through;
        if (l->kind[i] == SC_TASK_COLL && l->coll[i] == SC_ALL_TO_ALL)
            f->inside |= bit;
    }
}

/* ---- candidates --------------------------------------------------------------- */

static uint32_t root(finder *f, uint32_t r)
{
    while (f->parent[r] != r) r = f->parent[r] = f->parent[f->parent[r]];
    return r;
}

/* Joins two sets; the smaller rank becomes the root. */
static void join(finder *f, uint32_t a, uint32_t b)
{
    a = root(f, a);
    b = root(f, b);
    if (a < b)
        f->parent[b] = a;
    else
        f->parent[a] = b;
}

static void connect(finder *f)
{
    const sc_workload *w = f->w;
    for (uint32_t r = 0; r < w->n_ranks; r++) f->parent[r] = r;
    for (uint32_t g = 0; g < w->n_groups; g++)
        for (uint32_t k = 1; k < w->groups[g].n; k++)
            if (!(f->r.across >> f->r.shape[g] & 1))
                join(f, w->groups[g].rank[0], w->groups[g].rank[k]);
    for (uint32_t r = 0; r < w->n_ranks; r++)
        for (uint32_t k = 0; k < w->classes[w->ranks[r].cls].n_peers; k++)
            join(f, r, w->ranks[r].peers[k]);
}

/* Numbers parts and places in the order of ranks; false if the parts differ in
 * size. */
static bool number(finder *f)
{
    graph_replicas *r = &f->r;
    uint32_t n = f->w->n_ranks, *count = f->seen;
    r->n = 0;
    for (uint32_t i = 0; i < n; i++)
        if (root(f, i) == i) {
            r->of[i] = r->n++;
            count[i] = 0;
        }
    if (r->n < 2 || n % r->n != 0) return false;
    r->size = n / r->n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t head = root(f, i);
        r->of[i] = r->of[head];
        r->at[i] = count[head]++;
        if (r->at[i] >= r->size) return false;
        r->rank[r->of[i] * r->size + r->at[i]] = i;
    }
    return true;
}

/* Checks that a communicator inside a replica has the same places as in the
 * first replica. */
static bool alike_inside(const finder *f, const sc_rank_group *a,
                         const sc_rank_group *b)
{
    if (a->n != b->n) return false;
    for (uint32_t k = 0; k < a->n; k++)
        if (f->r.at[a->rank[k]] != f->r.at[b->rank[k]]) return false;
    return true;
}

static bool alike(const finder *f, uint32_t rank)
{
    const sc_workload *w = f->w;
    const graph_replicas *r = &f->r;
    const sc_rank_trace *x = &w->ranks[rank];
    const sc_rank_trace *y = &w->ranks[r->rank[r->at[rank]]];
    if (x->cls != y->cls) return false;
    const sc_task_list *l = &w->classes[x->cls];
    for (uint32_t k = 0; k < l->n_groups; k++) {
        uint32_t g = x->groups[k], h = y->groups[k];
        if (r->shape[g] != r->shape[h]) return false;
        uint32_t across = r->across >> r->shape[g] & 1;
        uint32_t same = w->ranks[f->first[x->cls]].groups[k];
        if (across != (r->across >> r->shape[same] & 1)) return false;
        if (across ? g != h : !alike_inside(f, &w->groups[g], &w->groups[h]))
            return false;
    }
    for (uint32_t k = 0; k < l->n_peers; k++)
        if (r->at[x->peers[k]] != r->at[y->peers[k]]) return false;
    return true;
}

/* Checks that a communicator across replicas has the same places in each. */
static bool even(finder *f, const sc_rank_group *g)
{
    const graph_replicas *r = &f->r;
    uint32_t places = 0, stamp = ++f->stamp;
    for (uint32_t k = 0; k < g->n; k++)
        if (r->of[g->rank[k]] == 0) {
            f->seen[r->at[g->rank[k]]] = stamp;
            places++;
        }
    for (uint32_t k = 0; k < g->n; k++)
        if (f->seen[r->at[g->rank[k]]] != stamp) return false;
    return (uint64_t)places * r->n == g->n;
}

static bool valid(finder *f)
{
    const sc_workload *w = f->w;
    graph_replicas *r = &f->r;
    connect(f);
    if (!number(f)) return false;
    for (uint32_t i = 0; i < w->n_ranks; i++)
        if (!alike(f, i)) return false;
    memset(f->seen, 0, w->n_ranks * sizeof *f->seen);
    f->stamp = 0;
    for (uint32_t g = 0; g < w->n_groups; g++)
        if (r->across >> r->shape[g] & 1 && !even(f, &w->groups[g]))
            return false;
    r->stride = r->rank[r->size] - r->rank[0];
    r->regular = true;
    for (uint32_t i = 0; i < w->n_ranks; i++)
        if (graph_replicas_rank(r, r->n, r->of[i], r->at[i]) != i)
            r->regular = false;
    if (!r->regular) r->stride = w->n_ranks;
    return true;
}

uint32_t graph_replicas_rank(const graph_replicas *r, uint32_t n,
                             uint32_t replica, uint32_t place)
{
    if (!r->regular)
        return r->rank[replica % r->n * r->size + place] +
               replica / r->n * r->n * r->size;
    return place % r->stride + r->stride * replica +
           r->stride * n * (place / r->stride);
}

bool graph_replicas_across(const sc_workload *w, const graph_replicas *r,
                           uint32_t rank, uint32_t task)
{
    const sc_rank_trace *t = &w->ranks[rank];
    const sc_task_list *l = &w->classes[t->cls];
    if (l->kind[task] != SC_TASK_COLL) return false;
    if (l->group[task] == SC_TASK_WORLD) return true;
    return r->across >> r->shape[t->groups[l->group[task]]] & 1;
}

/* ---- the best ------------------------------------------------------------------ */

static uint32_t bits(uint32_t mask)
{
    uint32_t n = 0;
    for (; mask; mask &= mask - 1) n++;
    return n;
}

static uint32_t distance(const graph_replicas *r)
{
    return r->rank[r->size] - r->rank[0];
}

/* Prefers replicas that are further apart, then fewer shapes across replicas. */
static bool better(const graph_replicas *r, uint32_t apart, uint32_t across)
{
    if (distance(r) != apart) return distance(r) > apart;
    return bits(r->across) < bits(across);
}

static sc_status none(const finder *f, uint32_t group)
{
    if (group != UINT32_MAX)
        return sc_error(
            f->err, SC_EINPUT, SC_C_REFERENCE, sc_pos_none(), NULL,
            "communicator \"%s\" does not connect equal parts of the job",
            f->w->groups[group].name);
    return sc_error(f->err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(),
                    "name a communicator that connects replicas",
                    "no communicators connect equal parts of the job that "
                    "could be data-parallel replicas");
}

static sc_status prepare(finder *f, sc_arena *a)
{
    const sc_workload *w = f->w;
    uint32_t most = 0, n = w->n_ranks;
    for (uint32_t c = 0; c < w->n_classes; c++)
        if (w->classes[c].n_tasks > most) most = w->classes[c].n_tasks;
    uint32_t *leads = SC_NEW_N(a, uint32_t, most);
    uint32_t *kernels = SC_NEW_N(a, uint32_t, most);
    bool *done = SC_NEW_N(a, bool, w->n_classes);
    f->first = SC_NEW_N(a, uint32_t, w->n_classes);
    f->r.shape = SC_NEW_N(a, uint32_t, w->n_groups);
    f->r.of = SC_NEW_N(a, uint32_t, n);
    f->r.at = SC_NEW_N(a, uint32_t, n);
    f->r.rank = SC_NEW_N(a, uint32_t, n);
    f->parent = SC_NEW_N(a, uint32_t, n);
    f->seen = SC_NEW_N(a, uint32_t, n);
    if (!leads || !kernels || !done || !f->first || !f->r.shape || !f->r.of ||
        !f->r.at || !f->r.rank || !f->parent || !f->seen)
        return sc_error_nomem(f->err);
    SC_TRY(find_shapes(f));
    for (uint32_t r = 0; r < n; r++) {
        uint32_t c = w->ranks[r].cls;
        if (done[c]) continue;
        f->first[c] = r;
        find_inside(f, r, leads, kernels);
        done[c] = true;
    }
    return SC_OK;
}

sc_status graph_replicas_find(const sc_workload *w, uint32_t group, sc_arena *a,
                              graph_replicas *out, sc_err *err)
{
    finder f = {.w = w, .err = err};
    uint32_t must = 0, best = 0, apart = 0;
    SC_TRY(prepare(&f, a));
    if (group != UINT32_MAX)
        must = 1u << f.r.shape[group];
    else if (f.inside & WORLD)
        return none(&f, group);
    f.inside &= ~must;
    for (uint32_t set = 0; set < 1u << f.r.n_shapes; set++) {
        if (set & f.inside || (set & must) != must) continue;
        f.r.across = set;
        if (!valid(&f) || (apart && !better(&f.r, apart, best))) continue;
        best = set;
        apart = distance(&f.r);
    }
    if (apart == 0) return none(&f, group);
    f.r.across = best;
    if (!valid(&f)) return none(&f, group);
    *out = f.r;
    return SC_OK;
}
