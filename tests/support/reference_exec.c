/* SPDX-License-Identifier: Apache-2.0 */
#include "reference_exec.h"

#include <math.h>
#include <stdlib.h>

/* ---- random executions --------------------------------------------------- */

static void add_traffic(prop *p, sc_graph_builder *b, sc_arena *a)
{
    uint32_t n = 1 + (uint32_t)prop_below(p, 4);
    uint64_t *link = SC_NEW_N(a, uint64_t, n);
    double *share = SC_NEW_N(a, double, n);
    for (uint32_t k = 0; k < n; k++) {
        link[k] = prop_below(p, REF_EXEC_LINKS);
        share[k] = prop_below(p, 2) ? 1 : 0.25 + 3 * prop_unit(p);
    }
    sc_graph_add_traffic(b, &(sc_traffic){n, link, share});
}

static sc_time random_work(prop *p)
{
    switch (prop_below(p, 4)) {
    case 0: return (sc_time)prop_below(p, 3);
    case 1: return (sc_time)prop_below(p, 5) * 1000000000;
    case 2: return (sc_time)prop_below(p, 1000000);
    default: return (sc_time)prop_below(p, 1ull << 36);
    }
}

/* Bytes, and no less work than they take on the links. */
static void set_bytes(prop *p, const sc_traffic *t, bool honest, sc_op_desc *op)
{
    double most = 0;
    for (uint32_t k = 0; k < t->n; k++) {
        double share = 0;
        for (uint32_t j = 0; j < t->n; j++)
            if (t->link[j] == t->link[k]) share += t->share[j];
        most = fmax(most, share);
    }
    op->bytes = 1 + prop_below(p, 20000000);
    if (prop_below(p, 2)) op->latency = (sc_time)prop_below(p, 1000000);
    double least = ceil((double)op->bytes * most * 1e3);
    double times = !honest && prop_below(p, 4) == 3 ? 0.5 : 1;
    if (prop_below(p, 2)) times *= 1 + 2 * prop_unit(p);
    op->work = op->latency + (sc_time)(least * times) + 1;
}

static void add_op(prop *p, sc_graph_builder *b, uint32_t n_devices,
                   const sc_traffic *t, uint32_t n_traffic, bool honest)
{
    uint32_t dev[4];
    sc_op_desc op = {.name = "op",
                     .kind = (uint8_t)prop_below(p, SC_N_OP_KINDS),
                     .stream = (uint8_t)prop_below(p, SC_N_STREAMS),
                     .cat = (uint8_t)prop_below(p, SC_N_CATS),
                     .traffic = SC_NONE,
                     .dev = dev};
    if (op.cat == SC_CAT_BUBBLE) op.cat = SC_CAT_OTHER;
    uint32_t first = (uint32_t)prop_below(p, n_devices);
    op.n_dev = 1 + (uint32_t)prop_below(p, n_devices);
    for (uint32_t k = 0; k < op.n_dev; k++) dev[k] = (first + k) % n_devices;
    if (op.kind != SC_OP_MARK) op.work = random_work(p);
    bool moves = op.kind == SC_OP_COLL || op.kind == SC_OP_P2P;
    if (moves && n_traffic && prop_below(p, 8)) {
        op.traffic = (uint32_t)prop_below(p, n_traffic);
        set_bytes(p, &t[op.traffic], honest, &op);
    }
    sc_graph_add_op(b, &op);
}

bool random_exec(prop *p, uint32_t max_ops, bool traffic, bool honest,
                 sc_arena *a, sc_graph *out, sc_err *err)
{
    sc_graph probe;
    sc_graph_builder *b = sc_graph_builder_new(a);
    uint32_t n_devices = 1 + (uint32_t)prop_below(p, 4);
    uint32_t n_traffic = traffic ? 1 + (uint32_t)prop_below(p, 4) : 0;
    for (uint32_t d = 0; d < n_devices; d++)
        sc_graph_add_class(b, sc_sprintf(a, "gpu%u", d), d, 1);
    for (uint32_t k = 0; k < n_traffic; k++) add_traffic(p, b, a);
    /* to read back what traffic there is */
    if (sc_graph_build(b, a, &probe, err)) return false;
    uint32_t n = (uint32_t)prop_below(p, max_ops + 1u);
    for (sc_op i = 0; i < n; i++) {
        add_op(p, b, n_devices, probe.traffics, n_traffic, honest);
        uint32_t n_deps = i ? (uint32_t)prop_below(p, 3) : 0;
        for (uint32_t k = 0; k < n_deps; k++)
            sc_graph_add_dep(b, (sc_op)prop_below(p, i), i);
    }
    return sc_graph_build(b, a, out, err) == SC_OK;
}

/* ---- the reference ------------------------------------------------------- */

typedef struct ref_op {
    double left; /* ps at full rate */
    double beside, rate;
    bool runs, done, flows; /* flows: past its latency, on links */
} ref_op;

typedef struct ref {
    const sc_graph *x;
    const sc_sim_opts *o;
    ref_op *op;
    sc_result *r;
} ref;

static bool shares_device(const sc_graph *x, sc_op i, sc_op j)
{
    for (uint32_t p = sc_op_place(x, i); p < sc_op_place(x, i + 1); p++)
        for (uint32_t q = sc_op_place(x, j); q < sc_op_place(x, j + 1); q++)
            if (x->cls[p] == x->cls[q]) return true;
    return false;
}

static bool moves(const ref *s, sc_op i)
{
    const sc_graph *x = s->x;
    return s->o->hw && x->traffic[i] != SC_NONE && x->bytes[i] > 0 &&
           x->work[i] > x->latency[i];
}

static bool can_start(const ref *s, sc_op i)
{
    const sc_graph *x = s->x;
    if (s->op[i].runs || s->op[i].done) return false;
    for (sc_op j = 0; j < i; j++) {
        if (s->op[j].done) continue;
        for (uint32_t k = x->succ_head[j]; k < x->succ_head[j + 1]; k++)
            if (x->succ[k] == i) return false;
        if (x->kind[i] != SC_OP_MARK && x->kind[j] != SC_OP_MARK &&
            x->stream[i] == x->stream[j] && shares_device(x, i, j))
            return false;
    }
    return true;
}

static bool is_grad(const sc_graph *x, sc_op i)
{
    return x->kind[i] == SC_OP_COLL && x->stream[i] == SC_S_GRAD;
}

static double pair_rate(const ref *s, sc_op i, sc_op j)
{
    const sc_graph *x = s->x;
    if (x->kind[i] > SC_OP_MEM || x->kind[j] > SC_OP_MEM) return 1;
    bool grad = (is_grad(x, i) && x->kind[j] == SC_OP_COMPUTE) ||
                (is_grad(x, j) && x->kind[i] == SC_OP_COMPUTE);
    if (grad && s->o->gamma >= 0) return 1 / (1 + s->o->gamma);
    return s->o->rate[x->kind[i]][x->kind[j]];
}

/* What a rate of 1 of op `i` takes of a link, of what it carries. */
static double part(const ref *s, sc_op i, uint64_t link)
{
    const sc_graph *x = s->x;
    const sc_traffic *t = &x->traffics[x->traffic[i]];
    double share = 0, bw = sc_hw_link_bw(s->o->hw, link) * 1e-12;
    for (uint32_t k = 0; k < t->n; k++)
        if (t->link[k] == link) share += t->share[k];
    double all =
        share * (double)x->bytes[i] / (double)(x->work[i] - x->latency[i]) / bw;
    return all < 1 || x->kind[i] == SC_OP_P2P ? all : 1;
}

/* Bytes of all flows rise together until links are full. */
static void rate_flows(ref *s)
{
    const sc_graph *x = s->x;
    for (sc_op i = 0; i < x->n_ops; i++)
        if (s->op[i].flows) s->op[i].rate = -1;
    for (;;) {
        double level = INFINITY;
        sc_op lone = SC_NONE;
        uint64_t full = 0;
        for (sc_op i = 0; i < x->n_ops; i++) {
            if (!s->op[i].flows || s->op[i].rate >= 0) continue;
            double per =
                (double)x->bytes[i] / (double)(x->work[i] - x->latency[i]);
            if (s->op[i].beside * per >= level) continue;
            level = s->op[i].beside * per;
            lone = i;
        }
        for (uint64_t l = 0; l < REF_EXEC_LINKS; l++) {
            double used = 0, open = 0;
            for (sc_op i = 0; i < x->n_ops; i++) {
                if (!s->op[i].flows) continue;
                if (s->op[i].rate >= 0)
                    used += part(s, i, l) * s->op[i].rate;
                else
                    open += part(s, i, l) *
                            (double)(x->work[i] - x->latency[i]) /
                            (double)x->bytes[i];
            }
            if (!(open > 0) || !(fmax(1 - used, 0) / open < level)) continue;
            level = fmax(1 - used, 0) / open;
            full = l;
            lone = SC_NONE;
        }
        if (isinf(level)) return;
        for (sc_op i = 0; i < x->n_ops; i++) {
            if (!s->op[i].flows || s->op[i].rate >= 0) continue;
            if (lone == SC_NONE ? part(s, i, full) == 0 : i != lone) continue;
            s->op[i].rate = level * (double)(x->work[i] - x->latency[i]) /
                            (double)x->bytes[i];
        }
    }
}

static void rate_all(ref *s)
{
    const sc_graph *x = s->x;
    for (sc_op i = 0; i < x->n_ops; i++) {
        if (!s->op[i].runs) continue;
        s->op[i].beside = 1;
        for (sc_op j = 0; j < x->n_ops; j++)
            if (j != i && s->op[j].runs && shares_device(x, i, j))
                s->op[i].beside = fmin(s->op[i].beside, pair_rate(s, i, j));
        s->op[i].rate = s->op[i].beside;
    }
    if (s->o->hw) rate_flows(s);
}

static void complete(ref *s, sc_op i, sc_time now)
{
    s->op[i].runs = s->op[i].flows = false;
    s->op[i].done = true;
    s->r->end[i] = now;
    if (now > s->r->makespan) s->r->makespan = now;
}

static void start_all(ref *s, sc_time now)
{
    const sc_graph *x = s->x;
    for (bool any = true; any;) {
        any = false;
        for (sc_op i = 0; i < x->n_ops; i++) {
            if (!can_start(s, i)) continue;
            any = true;
            s->r->start[i] = now;
            s->op[i].runs = true;
            s->op[i].flows = moves(s, i) && x->latency[i] == 0;
            s->op[i].left =
                (double)(moves(s, i) && x->latency[i] > 0 ? x->latency[i]
                                                          : x->work[i]);
            if (x->work[i] == 0) complete(s, i, now);
        }
    }
}

static sc_time next_event(const ref *s, sc_time now)
{
    sc_time next = SC_TIME_MAX;
    for (sc_op i = 0; i < s->x->n_ops; i++) {
        if (!s->op[i].runs) continue;
        double ps = s->op[i].left <= 0 ? 0 : s->op[i].left / s->op[i].rate;
        if (!(ps < 1e18)) continue;
        sc_time due = now + (sc_time)ceil(ps * (1 - 0x1p-45));
        if (due < next) next = due;
    }
    return next;
}

bool reference_exec(const sc_graph *x, const sc_sim_opts *o, sc_arena *a,
                    sc_result *out)
{
    sc_result r = {.n_ops = x->n_ops};
    r.start = SC_NEW_N(a, sc_time, x->n_ops);
    r.end = SC_NEW_N(a, sc_time, x->n_ops);
    ref s = {x, o, SC_NEW_N(a, ref_op, x->n_ops), &r};
    sc_time now = 0;
    for (uint32_t step = 0; step < 4 * x->n_ops + 4; step++) {
        start_all(&s, now);
        rate_all(&s);
        sc_time next = next_event(&s, now);
        if (next == SC_TIME_MAX) break;
        for (sc_op i = 0; i < x->n_ops; i++) {
            ref_op *p = &s.op[i];
            if (!p->runs) continue;
            sc_time due =
                now + (sc_time)ceil(p->left / p->rate * (1 - 0x1p-45));
            p->left -= p->rate * (double)(next - now);
            if (due > next && p->left > 0) continue;
            if (moves(&s, i) && !p->flows) {
                p->flows = true;
                p->left = (double)(x->work[i] - x->latency[i]);
            } else {
                complete(&s, i, next);
            }
        }
        now = next;
    }
    *out = r;
    for (sc_op i = 0; i < x->n_ops; i++)
        if (!s.op[i].done) return false;
    return true;
}
