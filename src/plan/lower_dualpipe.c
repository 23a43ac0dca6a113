/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_dualpipe.c - DualPipe replicas: the two devices that hold a stage sum
 * their gradients before the update.
 */
#include "plan/lower.h"

static bool is_gradient(const program_value *v)
{
    return v->what == VALUE_WEIGHT_GRAD || v->what == VALUE_GRAD_KEPT;
}

/* Whether a gradient was made from gradients in `seen`: the bytes of such a
 * bucket are counted with those, so they are not counted twice. */
static bool in_bucket(const lowering *g, uint32_t v, const bool *seen)
{
    uint32_t made = g->prog->value[v].made;
    if (made == SC_NONE) return false;
    const program_item *it = &g->prog->item[made];
    for (uint32_t k = 0; k < it->n_in; k++)
        if (seen[it->in[k]]) return true;
    return false;
}

/* Whether another stage made the gradient.  The gradient of a shared weight is
 * exchanged with those of the stage that made it. */
static bool elsewhere(const lowering *g, uint32_t v, uint32_t stage)
{
    uint32_t made = g->prog->value[v].made;
    return made != SC_NONE && g->prog->item[made].stage != stage;
}

/* Bytes of the gradients that the updates of a stage read, each once. */
static sc_status gradient_bytes(const lowering *g, uint32_t stage, double *out)
{
    const lower_list *l = &g->stage[stage].once;
    sc_arena_mark mark = sc_arena_save(g->a);
    bool *seen = SC_NEW_N(g->a, bool, g->prog->n_values);
    *out = 0;
    if (!seen) return sc_error_nomem(g->err);
    for (uint32_t k = 0; k < l->n; k++) {
        const program_item *it = &g->prog->item[l->item[k]];
        if (!lower_is_update(it)) continue;
        for (uint32_t n = 0; n < it->n_in; n++)
            seen[it->in[n]] = is_gradient(&g->prog->value[it->in[n]]);
    }
    for (uint32_t v = 0; v < g->prog->n_values; v++)
        if (seen[v] && !in_bucket(g, v, seen) && !elsewhere(g, v, stage))
            *out += g->prog->value[v].bytes;
    sc_arena_restore(g->a, mark);
    return SC_OK;
}

/* Sums the gradients of `member` on both devices of a stage. */
static sc_status sum(lowering *g, const lower_instance *at[2],
                     const lower_item *t, uint32_t member)
{
    uint32_t n = g->p->n_ranks / g->pp / g->members, comm;
    uint32_t *rank = SC_NEW_N(g->a, uint32_t, 2 * (size_t)n), dev[2];
    lower_comm pair = {
        .coll = SC_ALL_REDUCE, .n_groups = n, .size = 2, .rank = rank};
    if (!rank) return sc_error_nomem(g->err);
    for (uint32_t k = 0; k < 2; k++) {
        dev[k] = at[k]->dev * g->members + member;
        for (uint32_t r = 0; r < n; r++)
            rank[2 * (size_t)r + k] = lower_rank(g, at[k]->dev, member + r);
    }
    SC_TRY(lower_comm_add(g, &pair, &comm));
    sc_op_desc o = {.cat = SC_CAT_PP,
                    .bytes = t->bytes,
                    .traffic = g->comms->all[comm].traffic[0],
                    .dev = dev,
                    .n_dev = 2};
    sc_op op = lower_add(g, t, &o);
    lower_report(g, op,
                 &(lower_note){
                     .name = t->name, .comm = comm, .bytes = (double)t->bytes});
    const lower_list *l = &g->stage[at[0]->stage].once;
    for (uint32_t k = 0; k < l->n; k++) {
        if (!lower_is_update(&g->prog->item[l->item[k]])) continue;
        lower_after_values(g, at[0], 0, l->item[k], member, op);
        lower_after_values(g, at[1], 0, l->item[k], member, op);
    }
    g->replica_sum[(size_t)at[0]->stage * g->members + member] = op;
    return SC_OK;
}

static sc_status price(const lowering *g, const lower_instance *at[2],
                       lower_item *t)
{
    uint32_t both[] = {at[0]->dev, at[1]->dev};
    sc_place place = sc_hw_place_axis(g->job->hw, g->pp, g->stride, 2, both);
    sc_coll_price whole, least;
    double bytes;
    SC_TRY(gradient_bytes(g, at[0]->stage, &bytes));
    SC_TRY(sc_cost_coll(g->job->cost, g->job->hw, SC_ALL_REDUCE, bytes, &place,
                        -1, &whole, g->err));
    SC_TRY(sc_cost_coll(g->job->cost, g->job->hw, SC_ALL_REDUCE, 8, &place, -1,
                        &least, g->err));
    t->bytes = (uint64_t)bytes;
    t->work = sc_time_from_s(whole.seconds);
    t->latency = sc_time_from_s(least.seconds);
    if (t->latency > t->work) t->latency = t->work;
    return SC_OK;
}

sc_status lower_dualpipe(lowering *g)
{
    size_t n = (size_t)g->p->n_stages * g->members;
    g->replica_sum = SC_NEW_N(g->a, sc_op, n);
    if (!g->replica_sum) return sc_error_nomem(g->err);
    for (size_t k = 0; k < n; k++) g->replica_sum[k] = SC_NONE;
    if (!g->job->cost || !g->job->hw || g->job->forward_only) return SC_OK;
    for (uint32_t k = 0; k < g->n_inst; k++) {
        if (g->inst[k].row == 0) continue;
        uint32_t v = g->inst[k].stage, home = lower_device(g, v, 0);
        const lower_instance *at[2] = {
            &g->inst[g->inst_of[home * g->p->n_stages + v]], &g->inst[k]};
        lower_item t = {.name = "gradient sum of DualPipe replicas",
                        .kind = SC_OP_COLL,
                        .stream = g->grads_overlap ? SC_S_GRAD : SC_S_COMPUTE};
        SC_TRY(price(g, at, &t));
        for (uint32_t r = 0; r < g->members && t.work; r++)
            SC_TRY(sum(g, at, &t, r));
    }
    return SC_OK;
}
