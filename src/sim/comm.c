/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c - communicators in use, and the collective that a task describes. */
#include "sim/world.h"

#include <string.h>

/* ---- the algorithm of a collective --------------------------------------- */

const sc_ccl *sim_node_ccl(const sc_system *s, uint64_t id)
{
    uint32_t at = 0;
    SC_FIRST(at, s->n_node_ccl, mid, s->node_ccl[mid].node >= id);
    if (at < s->n_node_ccl && s->node_ccl[at].node == id)
        return &s->node_ccl[at].ccl;
    return NULL;
}

int sim_op_of(uint8_t coll)
{
    return coll < SC_N_CCL_OPS ? coll : -1;
}

static bool is_flat(const sim_world *w, const sc_task_list *t, uint32_t task)
{
    int op = sim_op_of(t->coll[task]);
    return op >= 0 && w->sys->ccl[op].n > 0 && w->sys->ccl[op].dim[0].flat;
}

bool sim_is_custom(const sim_world *w, const sc_task_list *t, uint32_t task)
{
    int op = sim_op_of(t->coll[task]);
    return sim_node_ccl(w->sys, t->id[task]) ||
           (op >= 0 && w->sys->ccl_custom[op].n > 0);
}

uint32_t sim_root_of(const sc_task_list *t, uint32_t task)
{
    return sc_coll_is_rooted(t->coll[task]) ? t->peer[task] : 0;
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

static uint32_t base_of(const sim_world *w, uint32_t rank, uint32_t mask)
{
    for (uint32_t d = 0; d < w->n_dims; d++)
        if (mask >> d & 1)
            rank -= sim_coordinate(&w->dim[d], rank) * w->dim[d].stride;
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
        if (c->mask >> d & 1)
            m = m * w->dim[d].size + sim_coordinate(&w->dim[d], rank);
    return m;
}

static sim_comm *add_comm(sim_world *w, uint64_t hash)
{
    sim_comm *c = SC_NEW(w->a, sim_comm);
    if (c && sc_map_add_ptr(&w->comms, w->a, hash, c)) return c;
    w->status = sc_error_nomem(w->err);
    return NULL;
}

static void finish_comm(sim_world *w, sim_comm *c)
{
    c->symmetric = w->symmetric;
    c->n_live = c->symmetric ? 1 : c->n;
    c->count = sc_alloc(w->a, c->n_live, sizeof *c->count);
    if (!c->count) w->status = sc_error_nomem(w->err);
}

/* All members of every dimension of its mask. */
static void all_along(const sim_world *w, sim_comm *c)
{
    for (uint32_t d = 0; d < w->n_dims; d++)
        c->along[d] = c->mask >> d & 1 ? w->dim[d].size : 1;
}

/* All ranks of the network that agree with `rank` outside `mask`. */
static sim_comm *world_comm(sim_world *w, uint32_t rank, uint32_t mask)
{
    uint32_t base = base_of(w, rank, mask);
    uint32_t key[2] = {mask, base};
    uint64_t hash = sc_hash(key, sizeof key, 1);
    uint32_t at = 0;
    sim_comm *c;
    while ((c = sc_map_next_ptr(&w->comms, hash, &at)))
        if (c->group == SC_TASK_WORLD && c->mask == mask && c->base == base)
            return c;
    c = add_comm(w, hash);
    if (!c) return NULL;
    c->mask = mask;
    c->base = base;
    c->group = SC_TASK_WORLD;
    c->n = 1;
    all_along(w, c);
    for (uint32_t d = 0; d < w->n_dims; d++) c->n *= c->along[d];
    finish_comm(w, c);
    return c;
}

/* The number of members along each dimension, if the members are a grid: all
 * combinations of some coordinates, with those of the first dimension
 * adjacent. */
bool sim_is_grid(const sim_world *w, const uint32_t *rank, uint32_t n,
                 uint32_t *along)
{
    uint32_t stride = 1, several = 0;
    if (w->rules->subgroups_ring) return false;
    for (uint32_t d = 0; d < w->n_dims; d++) {
        const sim_dim *x = &w->dim[d];
        uint32_t first = sim_coordinate(x, rank[0]), k = 1;
        while (k * stride < n &&
               sim_coordinate(x, rank[(size_t)k * stride]) != first)
            k++;
        along[d] = k;
        for (uint32_t m = 0; m < n; m++)
            if (sim_coordinate(x, rank[m]) !=
                sim_coordinate(x, rank[(size_t)(m / stride % k) * stride]))
                return false;
        stride *= k;
        several += k > 1;
    }
    return stride == n && several > 1;
}

static sim_comm *list_comm(sim_world *w, uint32_t slot, const uint32_t *rank,
                           uint32_t n)
{
    if (w->by_group[slot]) return w->by_group[slot];
    uint64_t hash = sc_hash(&slot, sizeof slot, 2);
    sim_comm *c = add_comm(w, hash);
    if (!c) return NULL;
    c->group = slot;
    c->flat = !sim_is_grid(w, rank, n, c->along);
    c->n = n;
    c->rank = rank;
    finish_comm(w, c);
    w->by_group[slot] = c;
    return c;
}

/* A group of all ranks counts its collectives separately from the world's. */
static sim_comm *all_comm(sim_world *w, uint32_t slot)
{
    if (w->by_group[slot]) return w->by_group[slot];
    sim_comm *c = add_comm(w, sc_hash(&slot, sizeof slot, 2));
    if (!c) return NULL;
    c->group = slot;
    c->mask = (1u << w->n_dims) - 1;
    c->n = w->n_npus;
    all_along(w, c);
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
