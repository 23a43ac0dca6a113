/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_once.c - operations that happen once a step: exchanges of accumulated
 * gradients, the optimizer, gathers of updated weights.
 *
 * The step is in the steady state: weights whose gathers overlap the forward
 * pass are gathered at its start.
 */
#include "plan/lower.h"
#include "plan/plan_host.h"

#include <math.h>

bool lower_is_update(const program_item *it)
{
    return it->pass == SC_PASS_UPDATE && it->exchange == SC_NONE && !it->copy;
}

static bool *issued(const lowering *g, const lower_instance *at, uint32_t i)
{
    return &g->issued[(size_t)at->row * g->prog->n_items + i];
}

static sc_status issue(lowering *g, const lower_instance *at, uint32_t i)
{
    *issued(g, at, i) = true;
    return lower_emit(g, at, 0, i);
}

static bool passes_done(const lower_instance *at)
{
    return !at->left[0] && !at->left[1] && !at->left[2];
}

/* Whether everything that an item reads has been issued. */
static bool ready(const lowering *g, const lower_instance *at,
                  const program_item *it)
{
    for (uint32_t k = 0; k < it->n_in; k++) {
        uint32_t m = g->prog->value[it->in[k]].made;
        if (m == SC_NONE) continue;
        const lower_instance *of = at;
        uint32_t v = g->prog->item[m].stage;
        if (v != at->stage)
            of = &g->inst[g->inst_of[lower_device(g, v, 0) * g->p->n_stages +
                                     v]];
        if (g->prog->item[m].once ? !*issued(g, of, m) : !passes_done(of))
            return false;
    }
    return true;
}

/* Issues gathers of weights for all micro-batches, and of updated weights in
 * the order in which they are used. */
sc_status lower_first_pass(lowering *g, lower_instance *at)
{
    const lower_list *once = &g->stage[at->stage].once;
    for (uint32_t k = 0; k < once->n; k++) {
        const program_item *it = &g->prog->item[once->item[k]];
        if (it->out != SC_NONE &&
            g->prog->value[it->out].what == VALUE_WEIGHT_USED)
            SC_TRY(issue(g, at, once->item[k]));
    }
    const lower_list *l = &g->stage[at->stage].fwd;
    for (uint32_t k = 0; k < l->n; k++) {
        const program_item *it = &g->prog->item[l->item[k]];
        for (uint32_t n = 0; n < it->n_in; n++) {
            const program_value *v = &g->prog->value[it->in[n]];
            uint32_t i =
                v->what == VALUE_WEIGHT ? g->new_weight[v->tensor] : SC_NONE;
            if (i == SC_NONE || g->prog->item[i].stage != at->stage) continue;
            if (!*issued(g, at, i)) SC_TRY(issue(g, at, i));
        }
    }
    return SC_OK;
}

/* Issues the gradient exchanges of a stage that has ended, because they overlap
 * the stages that still run. */
sc_status lower_last_pass(lowering *g, lower_instance *at)
{
    const lower_list *l = &g->stage[at->stage].once;
    for (uint32_t k = 0; k < l->n; k++) {
        const program_item *it = &g->prog->item[l->item[k]];
        if (g->item[l->item[k]].stream != SC_S_GRAD) continue;
        if (*issued(g, at, l->item[k]) || !ready(g, at, it)) continue;
        if (g->p->exchange[it->exchange].grad) SC_TRY(issue(g, at, l->item[k]));
    }
    return SC_OK;
}

/* Issues all items of an instance that are ready; `*left` counts the others.
 * Updates wait until no other item is left. */
static sc_status sweep(lowering *g, const lower_instance *at, uint32_t *n,
                       uint32_t *left)
{
    const lower_list *l = &g->stage[at->stage].once;
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t i = l->item[k];
        const program_item *it = &g->prog->item[i];
        if (*issued(g, at, i) || lower_is_update(it)) continue;
        if (!ready(g, at, it)) {
            ++*left;
            continue;
        }
        SC_TRY(issue(g, at, i));
        ++*n;
    }
    return SC_OK;
}

static sc_status others(lowering *g)
{
    uint32_t n, left;
    do {
        n = left = 0;
        for (uint32_t k = 0; k < g->n_inst; k++)
            SC_TRY(sweep(g, &g->inst[k], &n, &left));
    } while (n && left);
    return SC_OK;
}

/* ---- the optimizer ------------------------------------------------------- */

/* Updated weights are copied back tile by tile while the host updates others
 * (Ren et al. 2021, ZeRO-Offload), so only the time beyond that copy counts. */
static sc_time beyond_copies(const lowering *g, uint32_t dev, sc_time work)
{
    for (uint32_t k = 0; k < g->n_inst; k++) {
        const lower_list *l = &g->stage[g->inst[k].stage].once;
        if (g->inst[k].dev != dev) continue;
        for (uint32_t n = 0; n < l->n; n++) {
            const program_item *it = &g->prog->item[l->item[n]];
            const program_value *out = &g->prog->value[it->copy ? it->out : 0];
            if (it->copy && out->what == VALUE_WEIGHT_NEW)
                work -= g->item[l->item[n]].work;
        }
    }
    return work < 0 ? 0 : work;
}

/* Adds one operation for all weights of a device whose states are kept in the
 * same memory.  It starts when all their gradients are ready. */
static void update(lowering *g, uint32_t dev, uint32_t member, uint8_t stream)
{
    lower_item sum = {.name = "optimizer", .stream = stream};
    for (uint32_t k = 0; k < g->n_inst; k++) {
        const lower_list *l = &g->stage[g->inst[k].stage].once;
        if (g->inst[k].dev != dev) continue;
        for (uint32_t n = 0; n < l->n; n++) {
            const lower_item *t = &g->item[l->item[n]];
            if (!lower_is_update(&g->prog->item[l->item[n]]) ||
                t->stream != stream)
                continue;
            sum.kind = t->kind;
            sum.work += t->work;
            sum.flops += t->flops;
            sum.bytes += t->bytes;
        }
    }
    if (sum.work == 0) return;
    bool host = stream == SC_S_HOST;
    if (host) sum.work = beyond_copies(g, dev, sum.work);
    uint32_t at = dev * g->members + member;
    sc_op_desc o = {.cat = host ? SC_CAT_OFFLOAD : SC_CAT_OPTIMIZER,
                    .bytes = sum.bytes,
                    .flops = sum.flops,
                    .traffic = SC_NONE,
                    .dev = &at,
                    .n_dev = 1};
    sc_op op = lower_add(g, &sum, &o);
    for (uint32_t k = 0; k < g->n_inst; k++) {
        uint32_t v = g->inst[k].stage;
        const lower_list *l = &g->stage[v].once;
        if (g->inst[k].dev != dev) continue;
        lower_after(g, g->replica_sum[(size_t)v * g->members + member], op);
        for (uint32_t n = 0; n < l->n; n++) {
            uint32_t i = l->item[n];
            if (!lower_is_update(&g->prog->item[i]) ||
                g->item[i].stream != stream)
                continue;
            *issued(g, &g->inst[k], i) = true;
            lower_ops(g, g->inst[k].row, i)[member] = op;
            lower_after_values(g, &g->inst[k], 0, i, member, op);
        }
    }
}

/* ---- checkpoints --------------------------------------------------------- */

/* Bytes of weights and states that one member of a device saves, on the device
 * (`here`) and on the host.  Copies divide the work, as each element is written
 * once.  `seen` [2 * n_tensors] holds the stages that have saved a tensor. */
static void state_bytes(const lowering *g, uint32_t dev, uint32_t *seen,
                        double *here, double *host)
{
    *here = *host = 0;
    for (uint32_t v = 0; v < g->prog->n_values; v++) {
        const program_value *x = &g->prog->value[v];
        if (x->what != VALUE_WEIGHT && x->what != VALUE_STATE) continue;
        uint32_t *stage = &seen[2 * x->tensor + (x->what == VALUE_STATE)];
        if (*stage == SC_NONE) *stage = x->stage;
        if (*stage != x->stage) continue;
        if (g->inst_of[dev * g->p->n_stages + x->stage] == SC_NONE) continue;
        double bytes = x->bytes / fmax(1, x->copies);
        for (uint32_t k = 0; k < g->n_inst; k++) /* DualPipe's second copy */
            if (g->inst[k].row && g->inst[k].stage == x->stage) bytes /= 2;
        *(x->tier < SC_TIER_CPU ? here : host) += bytes;
    }
}

/* Bandwidth of all hosts together to the memory that stores checkpoints, which
 * is NVMe or storage; 0 if checkpoints stay on the host. */
static double store_bw(const sc_net_run *job, const sc_strategy *s)
{
    const sc_hw *hw = job->hw;
    double hosts =
        hw && hw->host_size ? (double)hw->n_devices / hw->host_size : 1;
    double nvme = job->nvme_bw > 0 ? job->nvme_bw : PLAN_NVME_BW;
    hosts = fmax(1, hosts);
    switch (s->checkpoint_tier) {
    case SC_TIER_CPU: return INFINITY;
    case SC_TIER_NVME: return nvme * hosts;
    default:
        return job->storage_bw > 0 ? job->storage_bw : PLAN_STORAGE_BW * hosts;
    }
}

static void save(lowering *g, uint32_t dev, const char *name, double seconds,
                 uint8_t kind, uint8_t cat)
{
    lower_item t = {.name = name,
                    .work = sc_time_from_s(seconds),
                    .kind = kind,
                    .stream = SC_S_COMPUTE};
    if (!t.work) return;
    for (uint32_t r = 0; r < g->members; r++) {
        uint32_t at = dev * g->members + r;
        sc_op_desc o = {.cat = cat, .traffic = SC_NONE, .dev = &at, .n_dev = 1};
        (void)lower_add(g, &t, &o);
    }
}

/* Sizes a checkpoint, and adds the part of it that one step pays for if any are
 * saved.  Programs with asynchronous checkpoints (torch's async_save, Megatron's
 * --async-save) go on when the host has its copy; others wait until everything
 * is stored. */
static sc_status checkpoints(lowering *g)
{
    const sc_strategy *s = g->job->strategy;
    uint32_t n = 2 * g->job->net->n_tensors;
    sc_net_save *c = &g->p->save;
    *c = (sc_net_save){0};
    if (!s || g->job->forward_only) return SC_OK;
    uint32_t *seen = SC_NEW_N(g->a, uint32_t, n);
    double *here = SC_NEW_N(g->a, double, g->pp);
    double bw = lower_tier_bw(g->job, SC_TIER_CPU), every, host;
    if (!seen || !here) return sc_error_nomem(g->err);
    for (uint32_t i = 0; i < n; i++) seen[i] = SC_NONE;
    every = (double)s->checkpoint_every;
    for (uint32_t dev = 0; dev < g->pp; dev++) {
        state_bytes(g, dev, seen, &here[dev], &host);
        c->bytes += (here[dev] + host) * g->p->n_ranks / g->pp;
        if (bw > 0) c->copy_s = fmax(c->copy_s, here[dev] / bw);
    }
    c->write_s = c->bytes / store_bw(g->job, s);
    c->every = every;
    c->async = s->checkpoint_async;
    for (uint32_t dev = 0; dev < g->pp && every > 0; dev++) {
        if (bw > 0)
            save(g, dev, "copy of the checkpoint to the host",
                 here[dev] / bw / every, SC_OP_MEM, SC_CAT_OFFLOAD);
        if (!c->async)
            save(g, dev, "write of the checkpoint", c->write_s / every,
                 SC_OP_HOST, SC_CAT_OTHER);
    }
    return SC_OK;
}

/* Bytes of each pipeline device in expanded memory: what is always there, and
 * activations of the micro-batches in flight. */
static sc_status expanded_bytes(lowering *g)
{
    const sc_hw *hw = g->job->hw;
    g->p->expanded = NULL;
    if (!hw || hw->expanded.bytes <= 0) return SC_OK;
    double *sum = SC_NEW_N(g->a, double, g->pp);
    if (!sum) return sc_error_nomem(g->err);
    for (uint32_t dev = 0; dev < g->pp; dev++) {
        double flight = g->schedule == SC_SCH_FILE
                            ? g->ga
                            : (double)sc_schedule_in_flight(
                                  g->schedule, g->pp, g->chunks, g->ga, dev) /
                                  g->chunks;
        for (uint32_t v = 0; v < g->prog->n_values; v++) {
            const program_value *x = &g->prog->value[v];
            bool always = x->what == VALUE_WEIGHT || x->what == VALUE_STATE;
            if (x->tier != SC_TIER_EXPANDED || x->what == VALUE_WEIGHT_NEW ||
                g->inst_of[dev * g->p->n_stages + x->stage] == SC_NONE)
                continue;
            sum[dev] += x->bytes * (always ? 1 : flight);
        }
    }
    g->p->expanded = sum;
    return SC_OK;
}

sc_status lower_finish(lowering *g)
{
    static const uint8_t streams[] = {SC_S_COMPUTE, SC_S_HOST};
    SC_TRY(others(g));
    SC_TRY(lower_dualpipe(g));
    for (uint32_t dev = 0; dev < g->pp; dev++)
        for (uint32_t r = 0; r < g->members; r++)
            for (size_t s = 0; s < SC_COUNT(streams); s++)
                update(g, dev, r, streams[s]);
    for (uint32_t k = 0; k < g->n_inst; k++) {
        const lower_list *l = &g->stage[g->inst[k].stage].once;
        for (uint32_t n = 0; n < l->n; n++)
            if (lower_is_update(&g->prog->item[l->item[n]]))
                *issued(g, &g->inst[k], l->item[n]) = true;
    }
    SC_TRY(others(g));
    SC_TRY(expanded_bytes(g));
    return checkpoints(g);
}
