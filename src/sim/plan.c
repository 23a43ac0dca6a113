/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - communicators, and how a collective on one is split into chunks
 * and phases.
 *
 * A chunk of an all-reduce over dimensions 0..k is reduce-scattered along
 * 0..k-1, all-reduced along k and gathered along k-1..0; other collectives
 * pass all dimensions, all-gather from the last to the first.
 */
#include "sim/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what runs a collective ---------------------------------------------- */

static const sc_ccl *node_ccl(const sc_system *s, uint64_t id)
{
    uint32_t lo = 0, hi = s->n_node_ccl;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->node_ccl[mid].node < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < s->n_node_ccl && s->node_ccl[lo].node == id)
        return &s->node_ccl[lo].ccl;
    return NULL;
}

static int op_of(uint8_t coll)
{
    switch (coll) {
    case SC_TC_ALL_REDUCE: return SC_OP_AR;
    case SC_TC_ALL_GATHER: return SC_OP_AG;
    case SC_TC_REDUCE_SCATTER:
    case SC_TC_REDUCE_SCATTER_BLOCK: return SC_OP_RS;
    case SC_TC_ALL_TO_ALL: return SC_OP_A2A;
    default: return -1;
    }
}

static bool is_flat(const sim_world *w, const sc_task_list *t, uint32_t task)
{
    int op = op_of(t->coll[task]);
    return op >= 0 && w->sys->ccl[op].n > 0 && w->sys->ccl[op].dim[0].flat;
}

bool sim_is_custom(const sim_world *w, const sc_task_list *t, uint32_t task)
{
    int op = op_of(t->coll[task]);
    return node_ccl(w->sys, t->id[task]) ||
           (op >= 0 && w->sys->ccl_custom[op].n > 0);
}

uint32_t sim_root_of(const sc_task_list *t, uint32_t task)
{
    switch (t->coll[task]) {
    case SC_TC_REDUCE:
    case SC_TC_GATHER:
    case SC_TC_SCATTER:
    case SC_TC_BROADCAST: return t->peer[task];
    default: return 0;
    }
}

/* ---- communicators ----------------------------------------------------- */

uint32_t sim_mask_of(const sim_world *w, const sc_task_list *t, uint32_t task)
{
    uint32_t all = (1u << w->n_dims) - 1, mask = all;
    if (sim_is_custom(w, t, task)) return all;
    if (t->flags[task] & SC_TASK_DIMS) mask = t->dims[task] & all;
    if (is_flat(w, t, task)) return mask & 1 ? all : 0;
    return mask;
}

static uint32_t coordinate(const sim_world *w, uint32_t rank, uint32_t d)
{
    return rank / w->dim[d].stride % w->dim[d].size;
}

static uint32_t base_of(const sim_world *w, uint32_t rank, uint32_t mask)
{
    for (uint32_t d = 0; d < w->n_dims; d++)
        if (mask >> d & 1) rank -= coordinate(w, rank, d) * w->dim[d].stride;
    return rank;
}

uint32_t sim_comm_rank(const sim_world *w, const sim_comm *c, uint32_t member)
{
    if (c->rank) return c->rank[member];
    uint32_t rank = c->base;
    for (uint32_t d = 0; d < w->n_dims; d++)
        if (c->mask >> d & 1) {
            rank += member % w->dim[d].size * w->dim[d].stride;
            member /= w->dim[d].size;
        }
    return rank;
}

uint32_t sim_comm_member(const sim_world *w, const sim_comm *c, uint32_t rank)
{
    uint32_t m = 0;
    if (c->rank) {
        while (m < c->n && c->rank[m] != rank) m++;
        return m;
    }
    for (uint32_t d = w->n_dims; d-- > 0;)
        if (c->mask >> d & 1) m = m * w->dim[d].size + coordinate(w, rank, d);
    return m;
}

static void grow_comms(sim_world *w)
{
    uint32_t cap = w->comm_cap ? 2 * w->comm_cap : 64;
    sim_comm **table = sc_alloc(w->a, cap, sizeof(sim_comm *));
    if (!table) {
        w->status = sc_error_nomem(w->err);
        return;
    }
    for (uint32_t i = 0; i < w->comm_cap; i++)
        for (sim_comm *c = w->comms[i], *next; c; c = next) {
            next = c->chain;
            c->chain = table[c->hash & (cap - 1)];
            table[c->hash & (cap - 1)] = c;
        }
    w->comms = table;
    w->comm_cap = cap;
}

static sim_comm *add_comm(sim_world *w, uint64_t hash)
{
    if (w->n_comms >= w->comm_cap) grow_comms(w);
    sim_comm *c = SC_NEW(w->a, sim_comm);
    if (!c || w->status != SC_OK) {
        if (w->status == SC_OK) w->status = sc_error_nomem(w->err);
        return NULL;
    }
    c->hash = hash;
    c->chain = w->comms[hash & (w->comm_cap - 1)];
    w->comms[hash & (w->comm_cap - 1)] = c;
    w->n_comms++;
    return c;
}

static void finish_comm(sim_world *w, sim_comm *c)
{
    c->folded = w->folded;
    c->n_live = c->folded ? 1 : c->n;
    c->count = sc_alloc(w->a, c->n_live, sizeof *c->count);
    if (!c->count) w->status = sc_error_nomem(w->err);
}

/* All ranks of the network that agree with `rank` outside `mask`. */
static sim_comm *world_comm(sim_world *w, uint32_t rank, uint32_t mask)
{
    uint32_t base = base_of(w, rank, mask);
    uint32_t key[2] = {mask, base};
    uint64_t hash = sc_hash(key, sizeof key, 1);
    for (sim_comm *c = w->comm_cap ? w->comms[hash & (w->comm_cap - 1)] : NULL;
         c; c = c->chain)
        if (c->group == SC_TASK_WORLD && c->mask == mask && c->base == base)
            return c;
    sim_comm *c = add_comm(w, hash);
    if (!c) return NULL;
    c->mask = mask;
    c->base = base;
    c->group = SC_TASK_WORLD;
    c->n = 1;
    for (uint32_t d = 0; d < w->n_dims; d++)
        if (mask >> d & 1) c->n *= w->dim[d].size;
    finish_comm(w, c);
    return c;
}

static sim_comm *list_comm(sim_world *w, uint32_t slot, const uint32_t *rank,
                           uint32_t n)
{
    if (w->by_group[slot]) return w->by_group[slot];
    uint64_t hash = sc_hash(&slot, sizeof slot, 2);
    sim_comm *c = add_comm(w, hash);
    if (!c) return NULL;
    c->group = slot;
    c->flat = true;
    c->n = n;
    c->rank = rank;
    finish_comm(w, c);
    w->by_group[slot] = c;
    return c;
}

/* A group of all ranks: as the world, but with collectives of its own. */
static sim_comm *all_comm(sim_world *w, uint32_t slot)
{
    if (w->by_group[slot]) return w->by_group[slot];
    sim_comm *c = add_comm(w, sc_hash(&slot, sizeof slot, 2));
    if (!c) return NULL;
    c->group = slot;
    c->mask = (1u << w->n_dims) - 1;
    c->n = w->n_npus;
    finish_comm(w, c);
    w->by_group[slot] = c;
    return c;
}

/* A job that is not the whole network is a list of its ranks. */
static sim_comm *job_comm(sim_world *w, uint32_t job)
{
    const sc_rank_job *j = &w->w->jobs[job];
    uint32_t slot = w->w->n_groups + job;
    if (w->by_group[slot]) return w->by_group[slot];
    uint32_t *rank = sc_alloc(w->a, j->n, sizeof *rank);
    if (!rank) {
        w->status = sc_error_nomem(w->err);
        return NULL;
    }
    for (uint32_t i = 0; i < j->n; i++) rank[i] = j->first + i;
    return list_comm(w, slot, rank, j->n);
}

sim_comm *sim_comm_of(sim_world *w, sim_rank *r, uint32_t task)
{
    uint32_t slot = r->tasks->group[task];
    if (slot != SC_TASK_WORLD) {
        uint32_t g = r->trace->groups[slot];
        const sc_rank_group *group = &w->w->groups[g];
        if (group->n < w->n_npus) return list_comm(w, g, group->rank, group->n);
        return all_comm(w, g);
    } else if (w->w->jobs[r->trace->job].n < w->n_npus) {
        return job_comm(w, r->trace->job);
    }
    return world_comm(w, r->id, sim_mask_of(w, r->tasks, task));
}

/* ---- algorithms -------------------------------------------------------- */

/* Halves that are whole: out along distances 1, 2, 4 ..., back the same way. */
static void whole_steps(sim_phase *p)
{
    uint32_t out = p->op == SC_OP_AG ? 0 : p->n_steps;
    if (p->op == SC_OP_AR) out /= 2;
    for (uint32_t i = 0; i <= p->n_steps; i++) {
        uint32_t left = p->n_steps - i; /* steps until all is back */
        bool away = i < out;
        p->step_off[i] = away ? 1ull << i : left ? 1ull << (left - 1) : 1;
        p->step_size[i] = p->size >> (away ? i + 1 : left);
        if (p->op == SC_OP_AG) p->step_size[i] = p->size << i;
    }
}

/* Messages of halving-doubling (Thakur et al., 2005) in the order in which
 * one member inserts them: distances and sizes. */
static bool halving_steps(sim_world *w, sim_phase *p)
{
    double levels = log2(p->n), turn = 2;
    uint32_t n = p->op == SC_OP_AR ? (uint32_t)(2 * levels) : (uint32_t)levels;
    p->n_steps = n;
    p->step_size = sc_alloc(w->a, n + 1, sizeof *p->step_size);
    p->step_off = sc_alloc(w->a, n + 1, sizeof *p->step_off);
    if (!p->step_size || !p->step_off) {
        w->status = sc_error_nomem(w->err);
        return false;
    }
    if (!w->rules->chunks_cut) {
        whole_steps(p);
        return true;
    }
    uint64_t off = 1, size = p->size / 2;
    if (p->op == SC_OP_AG) {
        off = p->n / 2;
        size = p->size;
        turn = 0.5;
    }
    for (uint32_t i = 0; i <= n; i++) {
        p->step_off[i] = off;
        p->step_size[i] = size;
        off = (uint64_t)((double)off * turn);
        size = (uint64_t)((double)size / turn);
        if (off == p->n && p->op == SC_OP_AR) {
            turn = 0.5;
            off = (uint64_t)((double)off * turn);
            size = (uint64_t)((double)size / turn);
        }
    }
    return true;
}

/* Fills in what follows from op, kind, n and size; returns the size that the
 * chunk has afterwards. */
static uint64_t finish_phase(sim_world *w, sim_phase *p)
{
    uint32_t n = p->n;
    if (p->window == 0 || p->window > n - 1) p->window = n - 1;
    if (p->kind == SC_CCL_HALVING_DOUBLING) (void)halving_steps(w, p);
    p->message = p->op == SC_OP_AG ? p->size : p->size / n;
    if (p->kind == SC_CCL_DOUBLE_BINARY_TREE) p->message = p->size;
    return sim_phase_leaves(p);
}

static uint32_t dim_members(const sim_world *w, const sim_draft *d,
                            uint32_t dim)
{
    if (d->comm->flat || d->list->dim[dim].flat) return d->comm->n;
    return w->dim[dim].size;
}

bool sim_draft_active(const sim_world *w, const sim_draft *d, uint32_t dim)
{
    if (d->comm->flat || d->list->dim[dim].flat) return d->comm->n > 1;
    return d->comm->mask >> dim & 1 && w->dim[dim].size > 1;
}

/* Distance between neighbours of a dimension, in members. */
static uint32_t dim_stride(const sim_world *w, const sim_draft *d, uint32_t dim)
{
    uint32_t stride = 1;
    if (d->comm->flat || d->list->dim[dim].flat) return 1;
    for (uint32_t i = 0; i < dim; i++)
        if (d->comm->mask >> i & 1) stride *= w->dim[i].size;
    return stride;
}

static const char *const kind_names[] = {"ring", "direct", "halvingDoubling",
                                         "doubleBinaryTree", "custom"};

static bool fits(const sim_phase *p)
{
    bool power = (p->n & (p->n - 1)) == 0;
    switch (p->kind) {
    case SC_CCL_HALVING_DOUBLING: return power && p->op != SC_OP_A2A;
    case SC_CCL_DOUBLE_BINARY_TREE: return power && p->op == SC_OP_AR;
    default: return true;
    }
}

void sim_draft_pass(sim_world *w, sim_draft *d, uint32_t dim, int op, int pick)
{
    sim_phase *p = &d->plan->phase[d->plan->n_phases++];
    uint32_t port = dim;
    p->op = (uint8_t)op;
    p->kind = (uint8_t)d->list->dim[dim].kind;
    p->dim = (uint8_t)dim;
    p->pick = (uint8_t)pick;
    p->local = d->comm->flat;
    p->n = dim_members(w, d, dim);
    p->stride = dim_stride(w, d, dim);
    p->window = d->list->dim[dim].window;
    p->size = d->size;
    if (sim_offload_can(w, d, op, &port)) {
        p->kind = SIM_SWITCHED;
        p->port = (uint8_t)port;
    } else if (!w->rules->unfit_runs && !fits(p)) {
        sim_warn(w, SIM_WARN_UNFIT, "%s can't serve %u members, a ring does it",
                 kind_names[p->kind], p->n);
        p->kind = SC_CCL_RING;
    }
    d->size = finish_phase(w, p);
}

static void all_reduce_phases(sim_world *w, sim_draft *d)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < d->n_dims; i++)
        if (sim_draft_active(w, d, i)) last = i;
    for (uint32_t i = 0; i < last; i++)
        if (sim_draft_active(w, d, i)) sim_draft_pass(w, d, i, SC_OP_RS, 1);
    if (sim_draft_active(w, d, last)) sim_draft_pass(w, d, last, SC_OP_AR, 1);
    for (uint32_t i = last; i-- > 0;)
        if (sim_draft_active(w, d, i)) sim_draft_pass(w, d, i, SC_OP_AG, 2);
}

static void plain_phases(sim_world *w, sim_draft *d, int op)
{
    for (uint32_t k = 0; k < d->n_dims; k++) {
        uint32_t i = op == SC_OP_AG ? d->n_dims - 1 - k : k;
        if (sim_draft_active(w, d, i)) sim_draft_pass(w, d, i, op, 0);
    }
}

static sc_status lacks(sim_world *w, const sim_rank *r, uint32_t task,
                       const char *key, const char *hint)
{
    if (w->status == SC_OK)
        w->status =
            sc_error(w->err, SC_EINPUT, SC_C_MISSING, (sc_pos){0}, hint,
                     "rank %u, task %llu needs '%s' of the system file", r->id,
                     (unsigned long long)r->tasks->id[task], key);
    return w->status;
}

static const char *const op_keys[] = {
    "all-reduce-implementation", "all-gather-implementation",
    "reduce-scatter-implementation", "all-to-all-implementation"};

/* The algorithm that was named for this very task. */
static const sc_ccl *own_algorithm(const sim_world *w, const sim_rank *r,
                                   sim_comm *c, uint32_t task, int op)
{
    const sc_ccl *own = node_ccl(w->sys, r->tasks->id[task]);
    bool group = c->group != SC_TASK_WORLD;
    if (!group || op < 0 || !w->rules->group_keeps_algorithm) return own;
    if (!c->keeps[op]) {
        c->keeps[op] = true;
        c->kept[op] = own;
    }
    return c->kept[op];
}

/* What a system that names no algorithm means: by kind of dimension. */
static sc_ccl_list usual(sim_world *w, int op)
{
    sc_ccl_list l = {.n = w->n_dims};
    for (uint32_t i = 0; i < w->n_dims; i++) {
        bool line =
            w->dim[i].kind == SC_DIM_RING || w->dim[i].kind == SC_DIM_MESH;
        l.dim[i].kind = line ? SC_CCL_RING : SC_CCL_DIRECT;
    }
    sim_warn(w, SIM_WARN_ALGORITHM + (uint32_t)op,
             "the system names no '%s': ring on rings and meshes, direct "
             "elsewhere",
             op_keys[op]);
    return l;
}

/* The dimension along which the members of a subgroup lie; n_dims: several. */
static uint32_t dim_along(const sim_world *w, const sim_comm *c)
{
    uint32_t found = w->n_dims;
    for (uint32_t i = 0; i < w->n_dims; i++) {
        uint32_t first = coordinate(w, c->rank[0], i), m = 1;
        while (m < c->n && coordinate(w, c->rank[m], i) == first) m++;
        if (m == c->n) continue;
        if (found < w->n_dims) return w->n_dims;
        found = i;
    }
    return found;
}

/* The one algorithm of a subgroup: of the dimension it lies in, or a ring. */
static sc_ccl of_subgroup(const sim_world *w, const sim_comm *c,
                          const sc_ccl_list *l)
{
    uint32_t dim = l->n == 1 ? 0 : w->n_dims;
    if (l->n > 1 && !w->rules->subgroups_ring) dim = dim_along(w, c);
    if (dim < l->n) return l->dim[dim];
    return (sc_ccl){.kind = SC_CCL_RING};
}

/* What runs `task`: of its node, of all collectives of its kind, or the list
 * per dimension; a subgroup has one dimension, a list of several becomes a
 * ring there. */
static bool choose(sim_world *w, const sim_rank *r, sim_comm *c, uint32_t task,
                   int op, sc_ccl_list *out)
{
    const sc_system *s = w->sys;
    const sc_ccl *node = own_algorithm(w, r, c, task, op);
    if (node) {
        *out = (sc_ccl_list){.n = 1, .dim = {*node}};
        return true;
    }
    if (s->ccl_custom[op].n) {
        *out = s->ccl_custom[op];
        return true;
    }
    if (!s->ccl[op].n && !w->rules->all_given) {
        *out = usual(w, op);
    } else if (!s->ccl[op].n) {
        (void)lacks(w, r, task, op_keys[op],
                    "name an algorithm for each dimension");
        return false;
    } else {
        *out = s->ccl[op];
    }
    if (c->flat) {
        *out = (sc_ccl_list){.n = 1, .dim = {of_subgroup(w, c, out)}};
        return true;
    }
    bool wrong =
        out->n > w->n_dims || (!w->rules->dims_left_out && out->n < w->n_dims);
    if (wrong && !out->dim[0].flat) {
        w->status = sc_error(w->err, SC_EINPUT, SC_C_CONFLICT, out->pos,
                             "name one algorithm for each dimension",
                             "'%s' names %u algorithms, the network has %u "
                             "dimensions",
                             op_keys[op], out->n, w->n_dims);
        return false;
    }
    if (out->dim[0].flat) out->n = 1;
    return true;
}

static void unfit(sim_world *w, const char *hint, const char *what)
{
    if (w->status == SC_OK)
        w->status = sc_error(w->err, SC_EINPUT, SC_C_UNSUPPORTED, (sc_pos){0},
                             hint, "%s", what);
}

/* What an algorithm can't do. */
static void check_phase(sim_world *w, const sim_phase *p)
{
    bool power = (p->n & (p->n - 1)) == 0;
    if (p->kind == SC_CCL_HALVING_DOUBLING && p->op == SC_OP_A2A)
        unfit(w, "use direct or ring",
              "halvingDoubling has no form for all-to-all");
    if (p->kind == SC_CCL_DOUBLE_BINARY_TREE &&
        (!power || (p->local && w->rules->unfit_runs)))
        unfit(w, "use ring or direct there",
              "doubleBinaryTree needs a whole dimension whose size is a power "
              "of two");
}

/* Equal chunks, a whole number of bytes for each member. */
static void split_evenly(sim_world *w, const sim_comm *c, sim_plan *plan,
                         int op)
{
    uint64_t n = op == SC_OP_AG || plan->coll == SC_TC_GATHER ? 1 : c->n;
    uint64_t share = plan->size ? (plan->size + n - 1) / n : 1;
    uint64_t parts = w->sys->splits ? w->sys->splits : 1;
    if (parts > share) parts = share;
    plan->n_streams = (uint32_t)parts;
    plan->chunk = (share + parts - 1) / parts * n;
    if (!w->sys->splits && plan->coll != SC_TC_BARRIER)
        sim_warn(w, SIM_WARN_SPLITS,
                 "the system gives no 'preferred-dataset-splits': collectives "
                 "go as one chunk");
}

/* Chunks: the size is split evenly; chunks of less than a byte per rank are
 * made larger, a remainder is one more chunk of full size. */
static void split(sim_world *w, const sim_comm *c, sim_plan *plan, int op)
{
    uint64_t size = plan->size;
    if (!w->rules->chunks_cut || op < 0) {
        split_evenly(w, c, plan, op);
        return;
    }
    uint64_t chunk = size / w->sys->splits;
    if (op != SC_OP_AG && w->n_npus > chunk) {
        chunk = w->n_npus;
        size = w->sys->splits * chunk;
    }
    if (chunk == 0) chunk = 1;
    plan->chunk = chunk;
    plan->n_streams = (uint32_t)((size + chunk - 1) / chunk);
}

/* The root stands as a position among all ranks, or in the group. */
static uint32_t root_member(const sim_world *w, const sim_comm *c,
                            uint32_t root)
{
    return c->rank ? root : sim_comm_member(w, c, root);
}

static void fill_rooted(sim_world *w, sim_rank *r, sim_comm *c, uint32_t task,
                        sim_plan *plan)
{
    uint32_t root = sim_root_of(r->tasks, task);
    if (root >= (c->rank ? c->n : w->n_npus)) {
        w->status =
            sc_error(w->err, SC_EINPUT, SC_C_RANGE, (sc_pos){0},
                     "comm_root is a position in the group, from 0",
                     "rank %u, task %llu: root %u of a group of %u", r->id,
                     (unsigned long long)r->tasks->id[task], root, c->n);
        return;
    }
    if (w->rules->broadcast_replayed)
        sim_warn(w, SIM_WARN_ROOTED,
                 "%s has no %s: it is simulated as messages", w->rules->name,
                 sc_task_coll_names[plan->coll]);
    plan->root = root_member(w, c, root);
    plan->phase = SC_NEW_N(w->a, sim_phase, SC_HW_DIMS);
    if (!plan->phase) {
        w->status = sc_error_nomem(w->err);
        return;
    }
    split(w, c, plan, -1);
    sim_rooted_plan(w, c, plan);
}

static void fill(sim_world *w, sim_rank *r, sim_comm *c, uint32_t task,
                 sim_plan *plan)
{
    sc_ccl_list list;
    int op = op_of(r->tasks->coll[task]);
    if (op < 0) {
        fill_rooted(w, r, c, task, plan);
        return;
    }
    if (!choose(w, r, c, task, op, &list)) return;
    if (list.dim[0].kind == SC_CCL_CUSTOM) {
        plan->custom = sim_custom_read(w, list.dim[0].prefix, c->n);
        plan->n_streams = 1;
        plan->phase = SC_NEW(w->a, sim_phase);
        plan->n_phases = plan->phase ? 1 : 0;
        if (plan->phase) plan->phase->kind = SC_CCL_CUSTOM;
        return;
    }
    if (!w->sys->splits && w->rules->all_given) {
        (void)lacks(w, r, task, "preferred-dataset-splits",
                    "say into how many chunks a collective is split");
        return;
    }
    split(w, c, plan, op);
    plan->phase = SC_NEW_N(w->a, sim_phase, 2 * SC_HW_DIMS);
    if (!plan->phase) {
        w->status = sc_error_nomem(w->err);
        return;
    }
    sim_draft d = {plan, &list, list.n, plan->chunk, c};
    if (op == SC_OP_AR && w->sys->local_bw_aware)
        all_reduce_phases(w, &d);
    else
        plain_phases(w, &d, op);
    sim_order_plan(w, &d, op);
    for (uint32_t i = 0; i < plan->n_phases; i++)
        check_phase(w, &plan->phase[i]);
}

sim_plan *sim_plan_of(sim_world *w, sim_rank *r, sim_comm *c, uint32_t task)
{
    const sc_task_list *t = r->tasks;
    if (w->trial) return w->trial->plan;
    const sc_ccl *node = own_algorithm(w, r, c, task, op_of(t->coll[task]));
    uint32_t root = sim_root_of(t, task);
    for (sim_plan *p = c->plans; p; p = p->next)
        if (p->coll == t->coll[task] && p->size == t->size[task] &&
            p->node == node && p->asked_root == root)
            return p;
    sim_plan *p = SC_NEW(w->a, sim_plan);
    if (!p) {
        w->status = sc_error_nomem(w->err);
        return NULL;
    }
    p->coll = t->coll[task];
    p->size = t->size[task];
    p->node = node;
    p->asked_root = root;
    p->n_lists = 1;
    fill(w, r, c, task, p);
    p->next = c->plans;
    c->plans = p;
    return w->status == SC_OK ? p : NULL;
}
