/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symmetry.c - which ranks are simulated on behalf of others.
 *
 * One rank of a class represents all of them if nothing distinguishes them:
 * their groups lie within the class and look the same from every member (the
 * route to the k-th neighbour costs the same for all), their peers are ranks of
 * other classes, one to one, over routes of equal cost, and no two of them
 * share a link. Then a member receives the same messages that it sends, and all
 * ranks of the class act at the same time. If any of this fails, every rank is
 * simulated.
 */
#include "sim/world.h"

typedef struct symmetry {
    sim_world *w;
    uint32_t *first;  /* [n_classes] smallest rank */
    uint32_t *parent; /* [n_ranks] union-find: ranks joined by messages */
    uint64_t checks;  /* pairs looked at */
} symmetry;

#define MAX_CHECKS (1u << 26)

/* ---- routes ------------------------------------------------------------ */

/* The cost of a route between two ranks; equal values mean equal cost. */
typedef struct route {
    bool plain; /* uses only links of its two ends */
    uint32_t dim, hops;
} route;

static route route_between(const sim_world *w, uint32_t from, uint32_t to)
{
    route out = {true, w->n_dims, 0};
    for (uint32_t i = 0; i < w->n_dims; i++) {
        const sim_dim *d = &w->dim[i];
        uint32_t a = sim_coordinate(d, from), b = sim_coordinate(d, to);
        if (a == b) continue;
        if (out.dim < w->n_dims) { /* a second dimension */
            if (!w->rules->first_dim_only) out.plain = false;
            break;
        }
        out.dim = i;
        uint32_t ahead = (b + d->size - a) % d->size;
        bool back = d->size - ahead < ahead;
        out.hops =
            d->kind == SC_DIM_RING ? (back ? d->size - ahead : ahead) : 1;
        if (d->kind == SC_DIM_RING && w->served) {
            if (out.hops > 1) out.plain = false;
            out.hops = 1 + back; /* which of the two links */
        }
        if (d->kind == SC_DIM_MESH) out.plain = false;
    }
    return out;
}

static bool same_route(route a, route b)
{
    return a.plain && b.plain && a.dim == b.dim && a.hops == b.hops;
}

/* ---- groups ------------------------------------------------------------ */

/* Members of a group along one dimension; all members if the group is no
 * grid. */
typedef struct axis {
    uint32_t n, stride;
    sc_ccl_kind kind;
} axis;

/* The member whose place along the axis is `off` after that of member `i`
 * (cyclically), or differs from it in the bits of `off` (`swap`). */
static uint32_t other(const axis *l, uint32_t i, uint32_t off, bool swap)
{
    sc_assert(l->stride > 0 && l->n > 0);
    uint32_t at = i / l->stride % l->n;
    uint32_t to = swap ? at ^ off : (at + off) % l->n;
    return i - at * l->stride + to * l->stride;
}

static bool alike_at(symmetry *f, const sc_rank_group *g, const axis *l,
                     uint32_t off, bool swap)
{
    route first =
        route_between(f->w, g->rank[0], g->rank[other(l, 0, off, swap)]);
    for (uint32_t i = 1; l->n > 1 && i < g->n; i++)
        if (!same_route(first, route_between(f->w, g->rank[i],
                                             g->rank[other(l, i, off, swap)])))
            return false;
    f->checks += g->n;
    return true;
}

/* Whether every member has the same routes to the others on its axis. */
static bool axis_alike(symmetry *f, const sc_rank_group *g, const axis *l)
{
    bool power = (l->n & (l->n - 1)) == 0;
    switch (l->kind) {
    case SC_CCL_RING:
        return alike_at(f, g, l, 1, false) &&
               alike_at(f, g, l, l->n - 1, false);
    case SC_CCL_DIRECT:
        for (uint32_t i = 1; i < l->n; i++)
            if (f->checks > MAX_CHECKS || !alike_at(f, g, l, i, false))
                return false;
        return true;
    case SC_CCL_HALVING_DOUBLING:
        for (uint32_t i = 1; power && i < l->n; i *= 2)
            if (!alike_at(f, g, l, i, true)) return false;
        return power;
    default: return false;
    }
}

static bool axes_equal(symmetry *f, const sc_rank_group *a,
                       const sc_rank_group *b, const axis *l)
{
    uint32_t last = l->kind == SC_CCL_DIRECT ? l->n - 1 : 1;
    if (l->kind == SC_CCL_HALVING_DOUBLING) last = l->n / 2;
    for (uint32_t i = 1; l->n > 1 && i <= last;
         i = l->kind == SC_CCL_HALVING_DOUBLING ? 2 * i : i + 1)
        if (!same_route(
                route_between(f->w, a->rank[0], a->rank[(size_t)i * l->stride]),
                route_between(f->w, b->rank[0],
                              b->rank[(size_t)i * l->stride])))
            return false;
    return true;
}

/* Writes the axes of a group and their algorithms to out[SC_HW_DIMS]; returns
 * their number. */
static uint32_t axes_of(const sim_world *w, const sc_rank_group *g,
                        const sc_ccl_list *l, axis *out)
{
    uint32_t along[SC_HW_DIMS], stride = 1;
    if (l->n < w->n_dims || !sim_is_grid(w, g->rank, g->n, along)) {
        *out = (axis){g->n, 1, sim_subgroup_ccl(w, g->rank, g->n, l).kind};
        return 1;
    }
    for (uint32_t d = 0; d < w->n_dims; d++) {
        out[d] = (axis){along[d], stride, l->dim[d].kind};
        stride *= along[d];
    }
    return w->n_dims;
}

static bool same_axes(const axis *a, const axis *b, uint32_t n_a, uint32_t n_b)
{
    for (uint32_t i = 0; n_a == n_b && i < n_a; i++)
        if (a[i].n != b[i].n || a[i].kind != b[i].kind) return false;
    return n_a == n_b;
}

static bool in_class(const sim_world *w, const sc_rank_group *g, uint32_t cls)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (w->w->ranks[g->rank[i]].cls != cls) return false;
    return true;
}

/* Whether slot `slot` means equivalent groups for all ranks of a class; groups
 * in the same dimension have the same algorithm. */
static bool slot_alike(symmetry *f, uint32_t cls, uint32_t slot,
                       const sc_ccl_list *l)
{
    axis all[SC_HW_DIMS], own[SC_HW_DIMS];
    uint32_t n = 0;
    const sc_workload *w = f->w->w;
    const sc_rank_group *first = NULL;
    for (uint32_t r = f->first[cls]; r < w->n_ranks; r++) {
        if (w->ranks[r].cls != cls) continue;
        const sc_rank_group *g = &w->groups[w->ranks[r].groups[slot]];
        if (g->n >= f->w->n_npus) return false; /* see whole_alike */
        if (!first) n = axes_of(f->w, first = g, l, all);
        if (g->n != first->n) return false;
        bool lead = g->n > 1 && g->rank[0] == r;
        if (lead && !in_class(f->w, g, cls)) return false;
        if (lead && !same_axes(own, all, axes_of(f->w, g, l, own), n))
            return false;
        for (uint32_t i = 0; i < n; i++)
            if ((lead && !axis_alike(f, g, &all[i])) ||
                (g != first && !axes_equal(f, first, g, &all[i])))
                return false;
    }
    return true;
}

/* ---- collectives of all ranks ------------------------------------------ */

static bool dim_alike(const sim_world *w, const sc_ccl *c, uint32_t dim)
{
    const sim_dim *d = &w->dim[dim];
    bool power = (d->size & (d->size - 1)) == 0;
    if (d->kind != SC_DIM_RING && d->kind != SC_DIM_SWITCH &&
        d->kind != SC_DIM_FULL)
        return false;
    if (c->flat && w->n_dims > 1 &&
        (c->kind != SC_CCL_RING || !w->rules->first_dim_only))
        return false;
    bool far = d->kind == SC_DIM_RING && w->served && d->size > 3;
    switch (c->kind) {
    case SC_CCL_RING: return true;
    case SC_CCL_DIRECT: return !far;
    case SC_CCL_HALVING_DOUBLING: return power && !far;
    default: return false;
    }
}

static bool whole_alike(const sim_world *w, uint32_t op)
{
    const sc_ccl_list *l = &w->sys->ccl[op];
    if (w->w->n_classes > 1 || w->w->n_jobs > 1 || l->n == 0 ||
        w->w->n_ranks != w->n_npus)
        return false;
    for (uint32_t i = 0; i < l->n && i < w->n_dims; i++)
        if (!dim_alike(w, &l->dim[i], i)) return false;
    return true;
}

/* ---- tasks of a class -------------------------------------------------- */

static bool coll_alike(symmetry *f, uint32_t cls, uint32_t task,
                       uint64_t *seen_group, uint32_t *seen_whole)
{
    const sim_world *w = f->w;
    const sc_task_list *t = &w->w->classes[cls];
    uint32_t slot = t->group[task];
    int op = sim_op_of(t->coll[task]);
    if (op < 0) return sim_is_replayed(w, t, task);
    if (slot == SC_TASK_WORLD) {
        if (*seen_whole >> op & 1) return true;
        *seen_whole |= 1u << op;
        return whole_alike(w, (uint32_t)op);
    }
    if (slot < 64 && seen_group[op] >> slot & 1) return true;
    if (slot < 64) seen_group[op] |= 1ull << slot;
    const sc_ccl_list *l = &w->sys->ccl[op];
    return l->n > 0 && slot_alike(f, cls, slot, l);
}

static bool tasks_alike(symmetry *f, uint32_t cls)
{
    const sim_world *w = f->w;
    const sc_task_list *t = &w->w->classes[cls];
    uint64_t seen_group[SC_N_CCL_OPS] = {0};
    uint32_t seen_whole = 0;
    bool alone =
        w->pool->kind == SC_POOL_NONE || w->pool->kind == SC_POOL_PER_NPU;
    for (uint32_t i = 0; i < t->n_tasks; i++) {
        uint8_t kind = t->kind[i];
        if ((kind == SC_TASK_LOAD || kind == SC_TASK_STORE) && !alone)
            return false;
        if (kind == SC_TASK_COLL && !w->sys->replay_only &&
            !coll_alike(f, cls, i, seen_group, &seen_whole))
            return false;
    }
    return true;
}

/* ---- messages between ranks -------------------------------------------- */

static uint32_t root(symmetry *f, uint32_t r)
{
    while (f->parent[r] != r) {
        f->parent[r] = f->parent[f->parent[r]];
        r = f->parent[r];
    }
    return r;
}

static bool peers_alike(symmetry *f)
{
    const sc_workload *w = f->w->w;
    for (uint32_t r = 0; r < w->n_ranks; r++) {
        const sc_rank_trace *me = &w->ranks[r];
        const uint32_t *first = w->ranks[f->first[me->cls]].peers;
        for (uint32_t s = 0; s < w->classes[me->cls].n_peers; s++) {
            uint32_t to = me->peers[s];
            if (to >= w->n_ranks || to == r) return false;
            if (w->ranks[to].cls != w->ranks[first[s]].cls) return false;
            if (!same_route(route_between(f->w, r, to),
                            route_between(f->w, f->first[me->cls], first[s])))
                return false;
            f->parent[root(f, to)] = root(f, r);
        }
    }
    return true;
}

/* Represents each class by the rank that is joined with the first rank of the
 * first class; no class may be joined twice. All ranks have equivalent peers,
 * so sets of equal size are joined in the same way. */
static bool choose(symmetry *f, uint32_t *representative)
{
    const sc_workload *w = f->w->w;
    uint32_t *size = sc_alloc(f->w->a, w->n_ranks, sizeof *size);
    if (!size) return false;
    for (uint32_t r = 0; r < w->n_ranks; r++) size[root(f, r)]++;
    for (uint32_t c = 0; c < w->n_classes; c++)
        representative[c] = SC_TASK_WORLD;
    for (uint32_t c = 0; c < w->n_classes; c++) {
        if (representative[c] != SC_TASK_WORLD) continue;
        uint32_t set = root(f, f->first[c]);
        for (uint32_t r = 0; r < w->n_ranks; r++) {
            if (root(f, r) != set) continue;
            if (representative[w->ranks[r].cls] != SC_TASK_WORLD) return false;
            representative[w->ranks[r].cls] = r;
        }
    }
    for (uint32_t r = 0; r < w->n_ranks; r++)
        if (size[root(f, r)] != size[root(f, representative[w->ranks[r].cls])])
            return false;
    return true;
}

/* Chunks that travel in both directions reach a port at the same time, and the
 * ranks' numbers decide which is first. Only the two directions of a ring have
 * ports of their own. */
static bool routes_meet(const sim_world *w)
{
    if (!w->served) return false;
    if (w->comm_slots > 1) return true; /* also chunks of two collectives */
    if (w->o->queues < 2) return false;
    for (int op = 0; op < SC_N_CCL_OPS; op++)
        if (w->sys->ccl[op].n && w->sys->ccl[op].dim[0].kind != SC_CCL_RING)
            return true;
    return w->n_dims > 1 || w->dim[0].kind != SC_DIM_RING;
}

static bool can_be_symmetric(const sim_world *w)
{
    if (!w->o->symmetry || w->machine || w->o->devices || w->o->speed ||
        w->o->jitter > 0)
        return false;
    if (routes_meet(w)) return false;
    if (w->w->n_classes == w->w->n_ranks || w->sys->n_node_ccl) return false;
    for (int op = 0; op < SC_N_CCL_OPS; op++)
        if (w->sys->ccl_custom[op].n) return false;
    return true;
}

static bool all_alike(symmetry *f, uint32_t *representative)
{
    const sc_workload *w = f->w->w;
    for (uint32_t c = 0; c < w->n_classes; c++)
        if (!tasks_alike(f, c)) return false;
    return peers_alike(f) && choose(f, representative);
}

sc_status sim_symmetry(sim_world *w)
{
    const sc_workload *x = w->w;
    symmetry f = {.w = w};
    w->n_ranks = x->n_ranks;
    w->index = sc_alloc(w->a, w->n_npus, sizeof *w->index);
    f.first = sc_alloc(w->a, 2 * (size_t)x->n_classes, sizeof *f.first);
    f.parent = sc_alloc(w->a, x->n_ranks, sizeof *f.parent);
    if (!w->index || !f.first || !f.parent) return sc_error_nomem(w->err);
    uint32_t *representative = f.first + x->n_classes;
    for (uint32_t i = x->n_ranks; i-- > 0;) {
        w->index[i] = i;
        f.parent[i] = i;
        f.first[x->ranks[i].cls] = i;
    }
    if (!can_be_symmetric(w) || !all_alike(&f, representative)) return SC_OK;
    w->symmetric = true;
    w->n_ranks = x->n_classes;
    for (uint32_t i = 0; i < x->n_ranks; i++) w->index[i] = x->ranks[i].cls;
    w->representative = representative;
    return SC_OK;
}
