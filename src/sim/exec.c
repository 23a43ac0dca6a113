/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - runs an execution: what has to be known before, and the sweep. */
#include "sim/exec.h"

#include <math.h>
#include <stdlib.h>

void sc_exec_opts_init(sc_exec_opts *o)
{
    *o = (sc_exec_opts){.gamma = NAN, .link_share = {1, 1}};
    sc_sim_opts_init(&o->rates);
}

sc_status exec_too_long(const sc_exec *x, sc_op i, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                    "op %u \"%.80s\" ends later than 106 days", i, x->name[i]);
}

sc_status exec_stopped(const sc_exec *x, uint32_t n_done, sc_err *err)
{
    return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "the executor stopped after %u of %u ops", n_done,
                    x->n_ops);
}

/* ---- the sweep ----------------------------------------------------------- */

typedef struct queue {
    sc_time end; /* of the last op */
    sc_op op;
} queue;

sc_status exec_sweep(const sc_exec *x, sc_arena *a, sc_exec_result *r,
                     sc_err *err)
{
    queue *queues = SC_NEW_N(a, queue, (size_t)x->n_devices * SC_N_STREAMS);
    if (!queues) return sc_error_nomem(err);
    sc_time *start = r->start; /* before an op's turn: when it may start */
    sc_op *cause = r->cause;
    for (sc_op i = 0; i < x->n_ops; i++) {
        sc_time t = start[i], work = x->work[i];
        sc_op why = cause[i];
        uint32_t from = x->dev_head[i], to = x->dev_head[i + 1];
        bool queued = x->kind[i] != SC_OP_MARK;
        for (uint32_t k = from; k < to && queued; k++) {
            const queue *q =
                &queues[(size_t)x->dev[k] * SC_N_STREAMS + x->stream[i]];
            bool wait = (q->end > t) | ((q->end == t) & (q->op > why));
            why = wait ? q->op : why;
            t = wait ? q->end : t;
        }
        if (work >= SC_TIME_MAX - t) return exec_too_long(x, i, err);
        sc_time end = t + work;
        start[i] = t;
        r->end[i] = end;
        cause[i] = t ? why : SC_NONE;
        for (uint32_t k = from; k < to; k++) {
            uint32_t d = x->dev[k];
            if (queued)
                queues[(size_t)d * SC_N_STREAMS + x->stream[i]] =
                    (queue){end, i};
            if (end > r->finish[d]) r->finish[d] = end;
        }
        /* ids only grow, so the last of equals is the largest */
        for (uint32_t k = x->succ_head[i]; k < x->succ_head[i + 1]; k++) {
            sc_op s = x->succ[k];
            bool later = end >= start[s];
            start[s] = later ? end : start[s];
            cause[s] = later ? i : cause[s];
        }
        if (end > r->makespan) r->makespan = end;
    }
    r->n_events = x->n_ops;
    return SC_OK;
}

/* ---- what acts ----------------------------------------------------------- */

static sc_status check_opts(const sc_exec_opts *o, sc_err *err)
{
    for (unsigned a = 0; a < SC_N_OP_KINDS; a++)
        for (unsigned b = 0; b < SC_N_OP_KINDS; b++)
            if (!(o->rates.rate[a][b] > 0 && o->rates.rate[a][b] <= 1))
                return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                                "the rate of %s beside %s is not in (0, 1]",
                                sc_op_kind_names[a], sc_op_kind_names[b]);
    if (o->gamma < 0 || o->gamma > 1e6)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "gamma is not between 0 and 1e6");
    for (int s = 0; s < 2; s++)
        if (!(o->link_share[s] > 0 && o->link_share[s] <= 1))
            return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                            "a share of links is not in (0, 1]");
    return SC_OK;
}

static double pair_rate(const sc_exec_opts *o, unsigned a, unsigned b)
{
    bool grad = (a == SC_OP_COMPUTE && b == EXEC_GRAD) ||
                (a == EXEC_GRAD && b == SC_OP_COMPUTE);
    if (grad && o->gamma >= 0) return 1 / (1 + o->gamma);
    unsigned x = a == EXEC_GRAD ? SC_OP_COLL : a;
    unsigned y = b == EXEC_GRAD ? SC_OP_COLL : b;
    return o->rates.rate[x][y];
}

static void fill_rates(const sc_exec_opts *o, exec_rates *out)
{
    out->any = false;
    for (unsigned a = 0; a < EXEC_N_KINDS; a++) {
        for (unsigned set = 0; set < 1u << EXEC_N_KINDS; set++) {
            double least = 1;
            for (unsigned b = 0; b < EXEC_N_KINDS; b++) {
                double rate = pair_rate(o, a, b);
                if ((set >> b & 1) && rate < least) least = rate;
            }
            out->at[a][set] = least;
            out->any |= least < 1;
        }
    }
}

/* Can two ops of one device slow each other down? */
static sc_status interacts(const sc_exec *x, const exec_rates *rates,
                           sc_arena *a, bool *out, sc_err *err)
{
    *out = false;
    if (!rates->any) return SC_OK;
    uint8_t(*kinds)[SC_N_STREAMS] =
        sc_alloc(a, x->n_devices, sizeof *kinds); /* bit per kind */
    if (!kinds) return sc_error_nomem(err);
    for (sc_op i = 0; i < x->n_ops; i++) {
        unsigned bit = 1u << exec_kind(x, i) & ((1u << EXEC_N_KINDS) - 1);
        for (uint32_t k = x->dev_head[i]; k < x->dev_head[i + 1]; k++)
            kinds[x->dev[k]][x->stream[i]] |= (uint8_t)bit;
    }
    for (uint32_t d = 0; d < x->n_devices && !*out; d++) {
        for (unsigned s = 0; s < SC_N_STREAMS; s++) {
            unsigned others = 0;
            for (unsigned y = 0; y < SC_N_STREAMS; y++)
                if (y != s) others |= kinds[d][y];
            for (unsigned k = 0; k < EXEC_N_KINDS; k++)
                if (kinds[d][s] >> k & 1)
                    *out = *out || rates->at[k][others] < 1;
        }
    }
    return SC_OK;
}

/* ---- results ------------------------------------------------------------- */

static bool result_alloc(const sc_exec *x, sc_arena *a, sc_exec_result *r)
{
    uint32_t n = r->n_ops = x->n_ops;
    return (r->start = SC_NEW_N(a, sc_time, n)) &&
           (r->end = SC_NEW_N(a, sc_time, n)) &&
           (r->cause = SC_NEW_N(a, sc_op, n)) &&
           (r->shared = SC_NEW_N(a, sc_time, n)) &&
           (r->overlapped = SC_NEW_N(a, sc_time, n)) &&
           (r->finish = SC_NEW_N(a, sc_time, x->n_devices));
}

typedef struct carried {
    uint64_t link;
    double bytes;
} carried;

static int compare_links(const void *p, const void *q)
{
    const carried *a = p, *b = q;
    return (a->link > b->link) - (a->link < b->link);
}

/* What all ops have moved over each link. */
static sc_status sum_links(const sc_exec *x, sc_arena *a, sc_exec_result *r,
                           sc_err *err)
{
    size_t n = 0, used = 0;
    for (uint32_t t = 0; t < x->n_traffic; t++) n += x->traffics[t].n;
    carried *all = SC_NEW_N(a, carried, n);
    double *bytes = SC_NEW_N(a, double, x->n_traffic);
    if (!all || !bytes) return sc_error_nomem(err);
    for (sc_op i = 0; i < x->n_ops; i++)
        if (x->traffic[i] != SC_NONE)
            bytes[x->traffic[i]] += (double)x->bytes[i];
    n = 0;
    for (uint32_t t = 0; t < x->n_traffic; t++)
        for (uint32_t k = 0; k < x->traffics[t].n; k++)
            all[n++] = (carried){x->traffics[t].link[k],
                                 x->traffics[t].share[k] * bytes[t]};
    qsort(all, n, sizeof *all, compare_links);
    for (size_t k = 0; k < n; k++) {
        if (!(all[k].bytes > 0)) continue;
        if (used > 0 && all[used - 1].link == all[k].link)
            all[used - 1].bytes += all[k].bytes;
        else
            all[used++] = all[k];
    }
    r->n_links = (uint32_t)used;
    r->link = SC_NEW_N(a, uint64_t, used);
    r->link_bytes = SC_NEW_N(a, double, used);
    if (!r->link || !r->link_bytes) return sc_error_nomem(err);
    for (size_t k = 0; k < used; k++) {
        r->link[k] = all[k].link;
        r->link_bytes[k] = all[k].bytes;
    }
    return SC_OK;
}

sc_status sc_exec_run(const sc_exec *x, const sc_exec_opts *o, sc_arena *a,
                      sc_exec_result *out, sc_err *err)
{
    sc_exec_result r = {0};
    exec_rates rates;
    exec_net net = {0};
    bool overlap;
    exec_run run = {x, o->rules ? o->rules : sc_rules_find(NULL), &rates, &net,
                    o->gamma};
    SC_TRY(check_opts(o, err));
    if (!result_alloc(x, a, &r)) return sc_error_nomem(err);
    SC_TRY(sum_links(x, a, &r, err));
    fill_rates(o, &rates);
    SC_TRY(interacts(x, &rates, a, &overlap, err));
    if (o->hw && !run.rules->links_private)
        SC_TRY(exec_net_init(x, o, a, &net, err));
    if (run.rules->ready_order)
        SC_TRY(exec_rounds(&run, a, &r, err));
    else if (overlap || net.flows)
        SC_TRY(exec_events(&run, a, &r, err));
    else
        SC_TRY(exec_sweep(x, a, &r, err));
    *out = r;
    return SC_OK;
}
