/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim.h"

void sc_sim_opts_init(sc_sim_opts *o)
{
    for (int a = 0; a < SC_N_OP_KINDS; a++)
        for (int b = 0; b < SC_N_OP_KINDS; b++) o->rate[a][b] = 1;
}

sc_status sim_too_long(const sc_graph *g, sc_op i, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                    "op %u \"%.80s\" ends later than 106 days", i, g->name[i]);
}

typedef struct queue {
    sc_time end; /* of the last op */
    sc_op op;
} queue;

sc_status sim_sweep(const sc_graph *g, sc_arena *a, sc_result *r, sc_err *err)
{
    queue *queues = SC_NEW_N(a, queue, (size_t)g->n_classes * SC_N_STREAMS);
    if (!queues) return sc_error_nomem(err);
    sc_time *start = r->start; /* before an op's turn: when it may start */
    sc_op *cause = r->cause;
    for (sc_op i = 0; i < g->n_ops; i++) {
        uint32_t cls = g->cls[i];
        sc_time t = start[i], work = g->work[i];
        sc_op why = cause[i];
        queue *q = &queues[(size_t)cls * SC_N_STREAMS + g->stream[i]];
        bool queued = g->kind[i] != SC_OP_MARK;
        /* no branch: with varied durations it is a coin toss */
        bool wait = queued & ((q->end > t) | ((q->end == t) & (q->op > why)));
        why = wait ? q->op : why;
        t = wait ? q->end : t;
        if (work >= SC_TIME_MAX - t) return sim_too_long(g, i, err);
        sc_time end = t + work;
        start[i] = t;
        r->end[i] = end;
        cause[i] = t ? why : SC_NONE;
        if (queued) *q = (queue){end, i};
        if (end > r->finish[cls]) r->finish[cls] = end;
        /* ids only grow, so the last of equals is the largest */
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++) {
            sc_op s = g->succ[k];
            bool later = end >= start[s];
            start[s] = later ? end : start[s];
            cause[s] = later ? i : cause[s];
        }
    }
    r->n_events = g->n_ops;
    return SC_OK;
}

/* Can two ops of one class slow each other down?  *out tells. */
static sc_status interacts(const sc_graph *g, const sc_sim_opts *o, sc_arena *a,
                           bool *out, sc_err *err)
{
    uint32_t slows[SC_N_OP_KINDS] = {0}; /* bit per kind that matters to it */
    bool any = false;
    for (unsigned x = 0; x <= SC_OP_MEM; x++) {
        for (unsigned y = 0; y <= SC_OP_MEM; y++) {
            if (!(o->rate[x][y] < 1)) continue;
            slows[x] |= 1u << y;
            any = true;
        }
    }
    *out = false;
    if (!any) return SC_OK;
    uint8_t(*kinds)[SC_N_STREAMS] =
        sc_alloc(a, g->n_classes, sizeof *kinds); /* bit per kind */
    if (!kinds) return sc_error_nomem(err);
    for (sc_op i = 0; i < g->n_ops; i++)
        kinds[g->cls[i]][g->stream[i]] |= (uint8_t)(1u << g->kind[i]);
    for (uint32_t c = 0; c < g->n_classes; c++) {
        for (unsigned s = 0; s < SC_N_STREAMS; s++) {
            uint32_t others = 0;
            for (unsigned x = 0; x < SC_N_STREAMS; x++)
                if (x != s) others |= kinds[c][x];
            for (unsigned x = 0; x <= SC_OP_MEM; x++)
                if (kinds[c][s] >> x & 1) *out = *out || (slows[x] & others);
        }
    }
    return SC_OK;
}

static sc_status check_opts(const sc_sim_opts *o, sc_err *err)
{
    for (unsigned x = 0; x < SC_N_OP_KINDS; x++)
        for (unsigned y = 0; y < SC_N_OP_KINDS; y++)
            if (!(o->rate[x][y] > 0 && o->rate[x][y] <= 1))
                return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                                "the rate of %s beside %s is not in (0, 1]",
                                sc_op_kind_names[x], sc_op_kind_names[y]);
    return SC_OK;
}

sc_status sc_sim_run(const sc_graph *g, const sc_sim_opts *o, sc_arena *a,
                     sc_result *out, sc_err *err)
{
    sc_result r = {.n_ops = g->n_ops};
    SC_TRY(check_opts(o, err));
    if (!(r.start = SC_NEW_N(a, sc_time, g->n_ops)) ||
        !(r.end = SC_NEW_N(a, sc_time, g->n_ops)) ||
        !(r.cause = SC_NEW_N(a, sc_op, g->n_ops)) ||
        !(r.finish = SC_NEW_N(a, sc_time, g->n_classes)))
        return sc_error_nomem(err);
    sc_arena_mark mark = sc_arena_save(a);
    bool rates;
    SC_TRY(interacts(g, o, a, &rates, err));
    if (rates)
        SC_TRY(sim_events(g, o, a, &r, err));
    else
        SC_TRY(sim_sweep(g, a, &r, err));
    sc_arena_restore(a, mark);
    for (uint32_t c = 0; c < g->n_classes; c++)
        if (r.finish[c] > r.makespan) r.makespan = r.finish[c];
    *out = r;
    return SC_OK;
}
