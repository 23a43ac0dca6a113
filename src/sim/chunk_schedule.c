/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_schedule.c - how a collective is split into chunks and phases.
 *
 * A chunk of an all-reduce over dimensions 0..k is reduce-scattered along
 * 0..k-1, all-reduced along k and gathered along k-1..0; other collectives
 * pass all dimensions, all-gather from the last to the first.
 */
#include "sim/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- algorithms -------------------------------------------------------- */

/* By the schedule of coll_schedule.h, with the messages of member 0.  The entry
 * after the last message is the whole data. */
void sim_plan_halving(sim_phase *p)
{
    sc_coll_schedule h;
    (void)sc_coll_schedule_halving((sc_coll)p->op, (sc_coll_group){p->n, 0, 0},
                                   &h);
    bool gathers = p->op == SC_ALL_GATHER;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        sc_coll_blocks b = sc_coll_carries(&h, h.phase, 0, i);
        p->step_off[i] = sc_coll_to(&h, h.phase, 0, i);
        p->step_size[i] =
            gathers ? p->size * b.count : p->size / (p->n / b.count);
    }
    p->step_off[p->n_steps] = 1;
    p->step_size[p->n_steps] = gathers ? p->size * p->n : p->size;
}

/* Messages of halving-doubling (Thakur et al., 2005) in the order in which
 * one member inserts them: distances and sizes. */
static bool halving_steps(sim_world *w, sim_phase *p)
{
    double levels = log2(p->n);
    uint32_t n =
        p->op == SC_ALL_REDUCE ? (uint32_t)(2 * levels) : (uint32_t)levels;
    p->n_steps = n;
    p->step_size = sc_alloc(w->a, n + 1, sizeof *p->step_size);
    p->step_off = sc_alloc(w->a, n + 1, sizeof *p->step_off);
    if (!p->step_size || !p->step_off) {
        w->status = sc_error_nomem(w->err);
        return false;
    }
    w->hooks.halving(p);
    return true;
}

/* Fills in what follows from op, kind, n and size; returns the size that the
 * chunk has afterwards. */
static uint64_t finish_phase(sim_world *w, sim_phase *p)
{
    uint32_t n = p->n;
    if (p->window == 0 || p->window > n - 1) p->window = n - 1;
    if (p->kind == SC_COLL_HALVING) (void)halving_steps(w, p);
    p->message = p->op == SC_ALL_GATHER ? p->size : p->size / n;
    if (p->kind == SC_COLL_TREE) p->message = p->size;
    if (w->loads) {
        p->load = sc_alloc(w->a, 32, sizeof *p->load); /* by log2(distance) */
        if (!p->load && w->status == SC_OK) w->status = sc_error_nomem(w->err);
    }
    return sim_phase_leaves(p);
}

static uint32_t dim_members(const sim_builder *d, uint32_t dim)
{
    if (d->comm->flat || d->list->dim[dim].flat) return d->comm->n;
    return d->comm->along[dim];
}

bool sim_builder_active(const sim_builder *d, uint32_t dim)
{
    if (d->comm->flat || d->list->dim[dim].flat) return d->comm->n > 1;
    return d->comm->along[dim] > 1;
}

/* Distance between neighbours of a dimension, in members. */
static uint32_t dim_stride(const sim_builder *d, uint32_t dim)
{
    uint32_t stride = 1;
    if (d->comm->flat || d->list->dim[dim].flat) return 1;
    for (uint32_t i = 0; i < dim; i++) stride *= d->comm->along[i];
    return stride;
}

static const char *const kind_names[] = {"ring", "direct", "halvingDoubling",
                                         "doubleBinaryTree", "custom"};

static const uint8_t patterns[SC_N_CCL_KINDS] = {
    [SC_CCL_RING] = SC_COLL_RING,
    [SC_CCL_DIRECT] = SC_COLL_DIRECT,
    [SC_CCL_HALVING_DOUBLING] = SC_COLL_HALVING,
    [SC_CCL_DOUBLE_BINARY_TREE] = SC_COLL_TREE,
    [SC_CCL_CUSTOM] = SC_COLL_MESSAGE};

static bool fits(const sim_phase *p)
{
    bool power = (p->n & (p->n - 1)) == 0;
    switch (p->kind) {
    case SC_COLL_HALVING: return power && p->op != SC_ALL_TO_ALL;
    case SC_COLL_TREE: return power && p->op == SC_ALL_REDUCE;
    default: return true;
    }
}

void sim_builder_pass(sim_world *w, sim_builder *d, uint32_t dim, int op,
                      int queue_half)
{
    sim_phase *p = &d->schedule->phase[d->schedule->n_phases++];
    uint32_t port = dim;
    sc_ccl_kind kind = d->list->dim[dim].kind;
    p->op = (uint8_t)op;
    p->kind = patterns[kind];
    p->dim = (uint8_t)dim;
    p->queue_half = (uint8_t)queue_half;
    p->local = d->comm->flat;
    p->n = dim_members(d, dim);
    p->stride = dim_stride(d, dim);
    p->window = d->list->dim[dim].window;
    p->size = d->size;
    if (sim_in_network_can(w, d, op, &port)) {
        p->kind = SC_COLL_SWITCH;
        p->port = (uint8_t)port;
    } else if (!w->rules->unfit_runs && !fits(p)) {
        sim_warn(w, SIM_WARN_UNFIT,
                 "%s cannot run with %u members; a ring is used",
                 kind_names[kind], p->n);
        p->kind = SC_COLL_RING;
    }
    d->size = finish_phase(w, p);
}

static void all_reduce_phases(sim_world *w, sim_builder *d)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < d->n_dims; i++)
        if (sim_builder_active(d, i)) last = i;
    for (uint32_t i = 0; i < last; i++)
        if (sim_builder_active(d, i))
            sim_builder_pass(w, d, i, SC_REDUCE_SCATTER, 1);
    if (sim_builder_active(d, last))
        sim_builder_pass(w, d, last, SC_ALL_REDUCE, 1);
    for (uint32_t i = last; i-- > 0;)
        if (sim_builder_active(d, i))
            sim_builder_pass(w, d, i, SC_ALL_GATHER, 2);
}

static void plain_phases(sim_world *w, sim_builder *d, int op)
{
    for (uint32_t k = 0; k < d->n_dims; k++) {
        uint32_t i = op == SC_ALL_GATHER ? d->n_dims - 1 - k : k;
        if (sim_builder_active(d, i)) sim_builder_pass(w, d, i, op, 0);
    }
}

static sc_status lacks(sim_world *w, const sim_rank *r, uint32_t task,
                       const char *key, const char *hint)
{
    if (w->status == SC_OK)
        w->status =
            sc_error(w->err, SC_EINPUT, SC_C_MISSING, w->sys->pos, hint,
                     "rank %u, task %llu needs the key '%s' of the system file",
                     r->id, (unsigned long long)r->tasks->id[task], key);
    return w->status;
}

static const char *const op_keys[] = {
    "all-reduce-implementation", "all-gather-implementation",
    "reduce-scatter-implementation", "all-to-all-implementation"};

/* The algorithm that the system file names for this task. */
static const sc_ccl *own_algorithm(const sim_world *w, const sim_rank *r,
                                   sim_comm *c, uint32_t task, int op)
{
    const sc_ccl *own = sim_node_ccl(w->sys, r->tasks->id[task]);
    bool group = c->group != SC_TASK_WORLD;
    if (!group || op < 0 || !w->rules->group_keeps_algorithm) return own;
    if (!c->keeps[op]) {
        c->keeps[op] = true;
        c->kept[op] = own;
    }
    return c->kept[op];
}

/* The algorithm if the system file names none: by the kind of dimension. */
static sc_ccl_list usual(sim_world *w, int op)
{
    sc_ccl_list l = {.n = w->n_dims};
    for (uint32_t i = 0; i < w->n_dims; i++) {
        bool line =
            w->dim[i].kind == SC_DIM_RING || w->dim[i].kind == SC_DIM_MESH;
        l.dim[i].kind = line ? SC_CCL_RING : SC_CCL_DIRECT;
    }
    sim_warn(w, SIM_WARN_ALGORITHM + (uint32_t)op,
             "the system file has no '%s': ring is used on rings and meshes, "
             "direct on other dimensions",
             op_keys[op]);
    return l;
}

/* The dimension along which the members of a subgroup lie; n_dims: several. */
static uint32_t dim_along(const sim_world *w, const uint32_t *rank, uint32_t n)
{
    uint32_t found = w->n_dims;
    for (uint32_t i = 0; i < w->n_dims; i++) {
        uint32_t first = sim_coordinate(&w->dim[i], rank[0]), m = 1;
        while (m < n && sim_coordinate(&w->dim[i], rank[m]) == first) m++;
        if (m == n) continue;
        if (found < w->n_dims) return w->n_dims;
        found = i;
    }
    return found;
}

/* The one algorithm of a subgroup: of the dimension it lies in, or a ring. */
sc_ccl sim_subgroup_ccl(const sim_world *w, const uint32_t *rank, uint32_t n,
                        const sc_ccl_list *l)
{
    uint32_t dim = l->n == 1 ? 0 : w->n_dims;
    if (l->n > 1 && !w->rules->subgroups_ring) dim = dim_along(w, rank, n);
    if (dim < l->n) return l->dim[dim];
    return (sc_ccl){.kind = SC_CCL_RING};
}

/* The algorithm of `task`: that of its node, that of all collectives of its
 * kind, or the list per dimension. For a subgroup that is not a grid, the list
 * becomes one algorithm over all members. */
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
    if (c->flat || (c->rank && out->n < w->n_dims)) {
        *out = (sc_ccl_list){.n = 1,
                             .dim = {sim_subgroup_ccl(w, c->rank, c->n, out)}};
        out->dim[0].flat = true;
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

static void unfit(sim_world *w, sc_pos at, const char *hint, const char *what)
{
    if (w->status == SC_OK)
        w->status =
            sc_error(w->err, SC_EINPUT, SC_C_UNSUPPORTED, at, hint, "%s", what);
}

/* Errors for algorithms that do not support the collective or the dimension. */
static void check_phase(sim_world *w, const sim_phase *p, sc_pos at)
{
    bool power = (p->n & (p->n - 1)) == 0;
    if (p->kind == SC_COLL_HALVING && p->op == SC_ALL_TO_ALL)
        unfit(w, at, "use direct or ring",
              "halvingDoubling does not support all-to-all");
    if (p->kind == SC_COLL_TREE &&
        (!power || (p->local && w->rules->unfit_runs)))
        unfit(w, at, "use ring or direct there",
              "doubleBinaryTree needs a whole dimension whose size is a power "
              "of two");
}

/* Equal chunks, a whole number of bytes for each member. */
void sim_schedule_split(sim_world *w, const sim_comm *c, sim_schedule *schedule,
                        int op)
{
    uint64_t n = op == SC_ALL_GATHER || schedule->coll == SC_GATHER ? 1 : c->n;
    if (n == 0) n = 1;
    uint64_t share = schedule->size ? (schedule->size + n - 1) / n : 1;
    uint64_t parts = w->sys->splits ? w->sys->splits : 1;
    if (parts > share && share > 0) parts = share;
    schedule->n_streams = (uint32_t)parts;
    schedule->chunk = (share + parts - 1) / parts * n;
    if (!w->sys->splits && schedule->coll != SC_BARRIER)
        sim_warn(w, SIM_WARN_SPLITS,
                 "the system file has no 'preferred-dataset-splits': a "
                 "collective is one chunk");
}

/* The trace gives the root as a position among all ranks, or in the group. */
static uint32_t root_member(const sim_world *w, const sim_comm *c,
                            uint32_t root)
{
    return c->rank ? root : sim_comm_member(w, c, root);
}

static void fill_rooted(sim_world *w, sim_rank *r, sim_comm *c, uint32_t task,
                        sim_schedule *schedule)
{
    char file[SIM_PATH];
    uint32_t root = sim_root_of(r->tasks, task);
    if (root >= (c->rank ? c->n : w->n_npus)) {
        w->status =
            sc_error(w->err, SC_EINPUT, SC_C_RANGE,
                     sim_rank_pos(w->w, r->id, file, sizeof file),
                     "comm_root is a position in the group, from 0",
                     "rank %u, task %llu: root %u of a group of %u", r->id,
                     (unsigned long long)r->tasks->id[task], root, c->n);
        return;
    }
    if (w->rules->broadcast_replayed)
        sim_warn(w, SIM_WARN_ROOTED,
                 "the library of %s has no %s; it is simulated as messages",
                 w->rules->name, sc_coll_names[schedule->coll]);
    schedule->root = root_member(w, c, root);
    schedule->phase = SC_NEW_N(w->a, sim_phase, SC_HW_DIMS);
    if (!schedule->phase) {
        w->status = sc_error_nomem(w->err);
        return;
    }
    sim_schedule_split(w, c, schedule, -1);
    sim_rooted_schedule(w, c, schedule);
}

static void fill(sim_world *w, sim_rank *r, sim_comm *c, uint32_t task,
                 sim_schedule *schedule)
{
    sc_ccl_list list;
    int op = sim_op_of(r->tasks->coll[task]);
    if (op < 0) {
        fill_rooted(w, r, c, task, schedule);
        return;
    }
    if (!choose(w, r, c, task, op, &list)) return;
    if (list.dim[0].kind == SC_CCL_CUSTOM) {
        schedule->custom = sim_custom_read(w, list.dim[0].prefix, c->n);
        schedule->n_streams = 1;
        schedule->phase = SC_NEW(w->a, sim_phase);
        schedule->n_phases = schedule->phase ? 1 : 0;
        if (schedule->phase) schedule->phase->kind = SC_COLL_MESSAGE;
        return;
    }
    if (!w->sys->splits && w->rules->all_given) {
        (void)lacks(w, r, task, "preferred-dataset-splits",
                    "give the number of chunks of a collective");
        return;
    }
    w->hooks.split(w, c, schedule, op);
    schedule->phase = SC_NEW_N(w->a, sim_phase, (size_t)2 * SC_HW_DIMS);
    if (!schedule->phase) {
        w->status = sc_error_nomem(w->err);
        return;
    }
    sim_builder d = {schedule, &list, list.n, schedule->chunk, c};
    if (op == SC_ALL_REDUCE && w->sys->local_bw_aware)
        all_reduce_phases(w, &d);
    else
        plain_phases(w, &d, op);
    sim_order_schedule(w, &d, op);
    for (uint32_t i = 0; i < schedule->n_phases; i++)
        check_phase(w, &schedule->phase[i], list.pos);
}

sim_schedule *sim_schedule_of(sim_world *w, sim_rank *r, sim_comm *c,
                              uint32_t task)
{
    const sc_task_list *t = r->tasks;
    if (w->trial) return w->trial->schedule;
    const sc_ccl *node = own_algorithm(w, r, c, task, sim_op_of(t->coll[task]));
    uint32_t root = sim_root_of(t, task);
    for (sim_schedule *p = c->schedules; p; p = p->next)
        if (p->coll == t->coll[task] && p->size == t->size[task] &&
            p->node == node && p->asked_root == root)
            return p;
    sim_schedule *p = SC_NEW(w->a, sim_schedule);
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
    p->next = c->schedules;
    c->schedules = p;
    return w->status == SC_OK ? p : NULL;
}
