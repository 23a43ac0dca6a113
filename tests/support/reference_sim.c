/* SPDX-License-Identifier: Apache-2.0 */
#include "reference_sim.h"

#include <math.h>

typedef enum phase { WAITS, RUNS, DONE } phase;

typedef struct state {
    phase phase;
    double left, rate; /* at .since */
    sc_time since, due;
} state;

typedef struct reference {
    const sc_graph *g;
    const sc_sim_opts *o;
    sc_result *r;
    state *op;
} reference;

/* Must b come after a has completed? */
static bool precedes(const sc_graph *g, sc_op a, sc_op b)
{
    for (uint32_t k = g->succ_head[a]; k < g->succ_head[a + 1]; k++)
        if (g->succ[k] == b) return true;
    return a < b && g->cls[a] == g->cls[b] && g->stream[a] == g->stream[b] &&
           g->kind[a] != SC_OP_MARK && g->kind[b] != SC_OP_MARK;
}

static bool may_start(const reference *x, sc_op i)
{
    if (x->op[i].phase != WAITS) return false;
    for (sc_op p = 0; p < x->g->n_ops; p++)
        if (x->op[p].phase != DONE && precedes(x->g, p, i)) return false;
    return true;
}

static void finish_op(reference *x, sc_op i, sc_time now)
{
    x->op[i].phase = DONE;
    x->r->end[i] = now;
    if (now > x->r->makespan) x->r->makespan = now;
    if (now > x->r->finish[x->g->cls[i]]) x->r->finish[x->g->cls[i]] = now;
}

static void start_op(reference *x, sc_op i, sc_time now)
{
    x->r->start[i] = now;
    if (x->g->work[i] == 0) {
        finish_op(x, i, now);
        return;
    }
    x->op[i] =
        (state){.phase = RUNS, .left = (double)x->g->work[i], .since = now};
}

static bool heeds_others(unsigned kind)
{
    return kind == SC_OP_COMPUTE || kind == SC_OP_COLL || kind == SC_OP_P2P ||
           kind == SC_OP_MEM;
}

static double rate_of(const reference *x, sc_op i)
{
    double rate = 1;
    const sc_graph *g = x->g;
    for (sc_op k = 0; k < g->n_ops; k++) {
        if (k == i || x->op[k].phase != RUNS || g->cls[k] != g->cls[i] ||
            !heeds_others(g->kind[i]) || !heeds_others(g->kind[k]))
            continue;
        rate = fmin(rate, x->o->rate[g->kind[i]][g->kind[k]]);
    }
    return rate;
}

static void set_rates(reference *x, sc_time now)
{
    for (sc_op i = 0; i < x->g->n_ops; i++) {
        state *s = &x->op[i];
        double rate = s->phase == RUNS ? rate_of(x, i) : 0;
        if (s->phase != RUNS || rate == s->rate) continue;
        s->left -= (double)(now - s->since) * s->rate;
        s->since = now;
        s->rate = rate;
        s->due = now + (sc_time)ceil(fmax(s->left, 0) / rate);
    }
}

static void step(reference *x, sc_time now)
{
    for (sc_op i = 0; i < x->g->n_ops; i++)
        if (x->op[i].phase == RUNS && x->op[i].due == now) finish_op(x, i, now);
    for (bool any = true; any;) {
        any = false;
        for (sc_op i = 0; i < x->g->n_ops; i++) {
            if (!may_start(x, i)) continue;
            start_op(x, i, now);
            any = true;
        }
    }
    set_rates(x, now);
}

/* The next time at which something completes; false if nothing runs. */
static bool next_time(const reference *x, sc_time *now)
{
    bool any = false;
    for (sc_op i = 0; i < x->g->n_ops; i++) {
        if (x->op[i].phase != RUNS) continue;
        if (!any || x->op[i].due < *now) *now = x->op[i].due;
        any = true;
    }
    return any;
}

static sc_op find_cause(const reference *x, sc_op i)
{
    sc_op cause = SC_NONE;
    for (sc_op p = 0; p < i && x->r->start[i] > 0; p++)
        if (x->r->end[p] == x->r->start[i] && precedes(x->g, p, i)) cause = p;
    return cause;
}

bool reference_run(const sc_graph *g, const sc_sim_opts *o, sc_arena *a,
                   sc_result *out)
{
    sc_result r = {.n_ops = g->n_ops,
                   .start = SC_NEW_N(a, sc_time, g->n_ops),
                   .end = SC_NEW_N(a, sc_time, g->n_ops),
                   .cause = SC_NEW_N(a, sc_op, g->n_ops),
                   .finish = SC_NEW_N(a, sc_time, g->n_classes)};
    reference x = {g, o, &r, SC_NEW_N(a, state, g->n_ops)};
    if (!r.start || !r.end || !r.cause || !r.finish || !x.op) return false;
    sc_time now = 0;
    do {
        step(&x, now);
    } while (next_time(&x, &now));
    for (sc_op i = 0; i < g->n_ops; i++) {
        if (x.op[i].phase != DONE) return false;
        r.cause[i] = find_cause(&x, i);
    }
    *out = r;
    return true;
}
