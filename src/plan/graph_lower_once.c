/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_lower_once.c - what happens once a step: exchanges of accumulated
 * gradients, the optimizer, gathers of updated weights.
 *
 * A step in the steady state: weights that are gathered beside the forward
 * pass are gathered at its start.
 */
#include "plan/graph_lower.h"

#include <string.h>

static bool is_update(const gp_item *it)
{
    return it->pass == SC_GP_UPDATE && it->exchange == SC_NONE && !it->copy;
}

static bool *issued(const gl *g, const gl_instance *at, uint32_t i)
{
    return &g->issued[(size_t)at->row * g->prog->n_items + i];
}

static sc_status issue(gl *g, const gl_instance *at, uint32_t i)
{
    *issued(g, at, i) = true;
    return gl_emit(g, at, 0, i);
}

/* Reads only what has been issued. */
static bool ready(const gl *g, const gl_instance *at, const gp_item *it)
{
    for (uint32_t k = 0; k < it->n_in; k++) {
        uint32_t m = g->prog->value[it->in[k]].made;
        if (m == SC_NONE || !g->prog->item[m].once) continue;
        const gl_instance *of = at;
        uint32_t v = g->prog->item[m].stage;
        if (v != at->stage)
            of =
                &g->inst[g->inst_of[sc_schedule_device(g->schedule, g->pp,
                                                       g->chunks, v, 0, g->ga) *
                                        g->p->n_stages +
                                    v]];
        if (!*issued(g, of, m)) return false;
    }
    return true;
}

/* Weights gathered for all micro-batches, and updated ones in the order in
 * which they are used. */
sc_status gl_first_pass(gl *g, gl_instance *at)
{
    const gl_list *once = &g->stage[at->stage].once;
    for (uint32_t k = 0; k < once->n; k++) {
        const gp_item *it = &g->prog->item[once->item[k]];
        if (it->out != SC_NONE &&
            g->prog->value[it->out].what == GP_WEIGHT_USED)
            SC_TRY(issue(g, at, once->item[k]));
    }
    const gl_list *l = &g->stage[at->stage].fwd;
    for (uint32_t k = 0; k < l->n; k++) {
        const gp_item *it = &g->prog->item[l->item[k]];
        for (uint32_t n = 0; n < it->n_in; n++) {
            const gp_value *v = &g->prog->value[it->in[n]];
            uint32_t i = v->what == GP_WEIGHT ? g->fresh[v->tensor] : SC_NONE;
            if (i == SC_NONE || g->prog->item[i].stage != at->stage) continue;
            if (!*issued(g, at, i)) SC_TRY(issue(g, at, i));
        }
    }
    return SC_OK;
}

/* Gradients of a stage that is done, where something else still runs. */
sc_status gl_last_pass(gl *g, gl_instance *at)
{
    const gl_list *l = &g->stage[at->stage].once;
    for (uint32_t k = 0; k < l->n; k++) {
        const gp_item *it = &g->prog->item[l->item[k]];
        if (g->item[l->item[k]].stream != SC_S_GRAD) continue;
        if (*issued(g, at, l->item[k]) || !ready(g, at, it)) continue;
        if (g->p->exchange[it->exchange].grad) SC_TRY(issue(g, at, l->item[k]));
    }
    return SC_OK;
}

/* Everything of an instance that can be issued; `*left` counts the rest.
 * Updates wait until nothing else is left. */
static sc_status sweep(gl *g, const gl_instance *at, uint32_t *n,
                       uint32_t *left)
{
    const gl_list *l = &g->stage[at->stage].once;
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t i = l->item[k];
        const gp_item *it = &g->prog->item[i];
        if (*issued(g, at, i) || is_update(it)) continue;
        if (!ready(g, at, it)) {
            ++*left;
            continue;
        }
        SC_TRY(issue(g, at, i));
        ++*n;
    }
    return SC_OK;
}

static sc_status others(gl *g)
{
    uint32_t n, left;
    do {
        n = left = 0;
        for (uint32_t k = 0; k < g->n_inst; k++)
            SC_TRY(sweep(g, &g->inst[k], &n, &left));
    } while (n && left);
    return SC_OK;
}

/* ---- the optimizer -------------------------------------------------------- */

/* One operation for all weights of a device whose states wait in the same
 * memory: it starts when all their gradients are there. */
static void update(gl *g, uint32_t dev, uint32_t member, uint8_t stream)
{
    gl_item sum = {.name = "optimizer", .stream = stream};
    for (uint32_t k = 0; k < g->n_inst; k++) {
        const gl_list *l = &g->stage[g->inst[k].stage].once;
        if (g->inst[k].dev != dev) continue;
        for (uint32_t n = 0; n < l->n; n++) {
            const gl_item *t = &g->item[l->item[n]];
            if (!is_update(&g->prog->item[l->item[n]]) || t->stream != stream)
                continue;
            sum.kind = t->kind;
            sum.work += t->work;
            sum.flops += t->flops;
            sum.bytes += t->bytes;
        }
    }
    if (sum.work == 0) return;
    uint32_t at = dev * g->members + member;
    sc_exec_op o = {.cat = SC_CAT_OPTIMIZER,
                    .bytes = sum.bytes,
                    .flops = sum.flops,
                    .traffic = SC_NONE,
                    .dev = &at,
                    .n_dev = 1};
    sc_op op = gl_add(g, &sum, &o);
    for (uint32_t k = 0; k < g->n_inst; k++) {
        const gl_list *l = &g->stage[g->inst[k].stage].once;
        if (g->inst[k].dev != dev) continue;
        for (uint32_t n = 0; n < l->n; n++) {
            uint32_t i = l->item[n];
            if (!is_update(&g->prog->item[i]) || g->item[i].stream != stream)
                continue;
            *issued(g, &g->inst[k], i) = true;
            gl_ops(g, g->inst[k].row, i)[member] = op;
            gl_after_values(g, &g->inst[k], 0, i, member, op);
        }
    }
}

sc_status gl_finish(gl *g)
{
    static const uint8_t streams[] = {SC_S_COMPUTE, SC_S_HOST};
    SC_TRY(others(g));
    for (uint32_t dev = 0; dev < g->pp; dev++)
        for (uint32_t r = 0; r < g->members; r++)
            for (size_t s = 0; s < SC_COUNT(streams); s++)
                update(g, dev, r, streams[s]);
    for (uint32_t k = 0; k < g->n_inst; k++) {
        const gl_list *l = &g->stage[g->inst[k].stage].once;
        for (uint32_t n = 0; n < l->n; n++)
            if (is_update(&g->prog->item[l->item[n]]))
                *issued(g, &g->inst[k], l->item[n]) = true;
    }
    return others(g);
}
