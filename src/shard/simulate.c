/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.c - the step of a plan as a graph.
 *
 * Devices with equal loads are one class.  Of an all-to-all each class has an
 * operation that moves the bytes that its devices send, over the links of their
 * routes; it takes as long as an even exchange of the larger of what a device
 * sends and receives, or longer where links are shared.  All of these start
 * together, and kernels wait for all of them.
 */
#include "cost/cost_traffic.h"
#include "shard/prices.h"
#include "sim/sim.h"

#include <math.h>
#include <string.h>

typedef struct run {
    sc_shard_prices *p;
    const sc_shard_plan *plan;
    sc_arena *a;
    sc_err *err;
    sc_graph_builder *b;
    uint32_t *cls;   /* [n] class of each device */
    uint32_t *first; /* [n_classes] its first device */
    uint32_t *all;   /* [n_classes] all classes */
    uint32_t n_classes;
    double *link;    /* [n_links] bytes */
    double *forward; /* [n_classes] seconds */
    double data_forward;
} run;

/* ---- look-ups that share the cache of a device */

typedef struct look {
    uint32_t table, variant;
} look;

/* The seconds of a kernel over these parts: consecutive ones are read at
 * once. */
static sc_status kernel(run *r, const look *x, uint32_t n, double samples,
                        double *out)
{
    const sc_device *d = r->p->job->hw->device;
    double cache = sc_lookup_cache(d->l2_bytes);
    uint32_t most = (uint32_t)sc_lookup_together(d->units, samples, n);
    sc_row_law *law = SC_NEW_N(r->a, sc_row_law, most);
    const sc_row_law **laws = SC_NEW_N(r->a, const sc_row_law *, most);
    double *hit = SC_NEW_N(r->a, double, most), sum = 0;
    if (!law || !laws || !hit) return sc_error_nomem(r->err);
    for (uint32_t first = 0; first < n; first += most) {
        uint32_t some = n - first < most ? n - first : most;
        for (uint32_t i = 0; i < some; i++) {
            const look *l = &x[first + i];
            sc_lookups of = shard_lookups(r->p, l->table, l->variant);
            sc_row_law_of(&of, &law[i]);
            laws[i] = &law[i];
        }
        sc_lookup_hits(laws, some, cache, hit);
        for (uint32_t i = 0; i < some; i++)
            sum += shard_forward(r->p, x[first + i].table, x[first + i].variant,
                                 hit[i]);
    }
    *out = n > 0 ? r->p->launch[0] + sum : 0;
    return SC_OK;
}

static bool is_on(const sc_shard_place *x, uint32_t device)
{
    for (uint32_t i = 0; i < x->parts; i++)
        if (x->device[i] == device) return true;
    return false;
}

static uint32_t looks_of(const run *r, uint32_t device, bool data, look *out)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < r->p->job->n_tables; t++) {
        const sc_shard_place *x = &r->plan->place[t];
        bool here = data ? x->split == SC_SHARD_DATA
                         : x->split != SC_SHARD_DATA && is_on(x, device);
        if (here) out[n++] = (look){t, shard_variant(x)};
    }
    return n;
}

static sc_status forward(run *r)
{
    double batch = r->p->job->batch;
    look *x = SC_NEW_N(r->a, look, r->p->job->n_tables);
    if (!x) return sc_error_nomem(r->err);
    for (uint32_t c = 0; c < r->n_classes; c++) {
        uint32_t n = looks_of(r, r->first[c], false, x);
        SC_TRY(kernel(r, x, n, batch, &r->forward[c]));
    }
    uint32_t n = looks_of(r, 0, true, x);
    return kernel(r, x, n, batch / r->p->n, &r->data_forward);
}

/* ---- classes */

static bool alike(const sc_shard_load *x, const sc_shard_load *y)
{
    return x->forward == y->forward && x->backward == y->backward &&
           x->sends == y->sends && x->indices == y->indices &&
           x->parts == y->parts && x->tables == y->tables;
}

static sc_status classes(run *r)
{
    uint32_t n = r->p->n;
    uint32_t *count = SC_NEW_N(r->a, uint32_t, n);
    r->cls = SC_NEW_N(r->a, uint32_t, n);
    r->first = SC_NEW_N(r->a, uint32_t, n);
    r->all = SC_NEW_N(r->a, uint32_t, n);
    r->forward = SC_NEW_N(r->a, double, n);
    if (!count || !r->cls || !r->first || !r->all || !r->forward)
        return sc_error_nomem(r->err);
    const sc_shard_load *l = r->plan->load;
    for (uint32_t d = 0; d < n; d++) {
        uint32_t c = 0;
        while (c < r->n_classes && !alike(&l[r->first[c]], &l[d])) c++;
        if (c == r->n_classes) r->first[r->n_classes++] = d;
        r->cls[d] = c;
        count[c]++;
    }
    for (uint32_t c = 0; c < r->n_classes; c++) {
        const char *name = sc_sprintf(r->a, "device %u", r->first[c]);
        if (!name) return sc_error_nomem(r->err);
        r->all[c] = sc_graph_add_class(r->b, name, r->first[c], count[c]);
    }
    return SC_OK;
}

/* ---- exchanges */

static sc_status add_route(run *r, uint32_t from, uint32_t to, double bytes)
{
    uint64_t hop[64];
    uint32_t n = sc_hw_route(r->p->job->hw, from, to, 0, hop, SC_COUNT(hop));
    if (n > SC_COUNT(hop))
        return sc_error(r->err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(),
                        NULL, "a route has more than %d links",
                        (int)SC_COUNT(hop));
    for (uint32_t i = 0; i < n; i++) r->link[hop[i]] += bytes;
    return SC_OK;
}

/* Links with bytes become the traffic of an operation of `bytes`. */
static sc_status traffic(run *r, double bytes, uint32_t *out)
{
    uint64_t n_links = sc_hw_n_links(r->p->job->hw);
    uint32_t n = 0;
    *out = SC_NONE;
    for (uint64_t i = 0; i < n_links; i++) n += r->link[i] > 0;
    uint64_t *link = SC_NEW_N(r->a, uint64_t, n);
    double *part = SC_NEW_N(r->a, double, n);
    if (!link || !part) return sc_error_nomem(r->err);
    n = 0;
    for (uint64_t i = 0; i < n_links; i++) {
        if (!(r->link[i] > 0)) continue;
        link[n] = i;
        part[n++] = r->link[i] / bytes;
        r->link[i] = 0;
    }
    sc_traffic t = {n, link, part};
    if (n > 0) *out = sc_graph_add_traffic(r->b, &t);
    return SC_OK;
}

/* Bytes per sample that belong to a device: sums or row numbers. */
static double weight(const sc_shard_load *l, bool indices)
{
    return indices ? l->indices : l->sends;
}

static sc_status seconds(run *r, sc_coll coll, double bytes, sc_time *work,
                         sc_time *latency)
{
    const sc_shard_job *j = r->p->job;
    sc_coll_price p, least;
    SC_TRY(
        sc_cost_coll(j->cost, j->hw, coll, bytes, &r->p->at, -1, &p, r->err));
    SC_TRY(sc_cost_coll(j->cost, j->hw, coll, fmin(bytes, 8.0 * r->p->n),
                        &r->p->at, -1, &least, r->err));
    *work = sc_time_from_s(p.seconds);
    *latency = sc_time_from_s(fmin(p.seconds, least.seconds));
    return SC_OK;
}

typedef struct exchange {
    const char *name;
    bool indices;  /* row numbers, or sums and their gradients */
    bool by_owner; /* the owner of tables sends; otherwise it receives */
} exchange;

/* The part of an all-to-all that the devices of a class send. */
static sc_status send(run *r, const exchange *x, uint32_t c, double all,
                      sc_op *out)
{
    const sc_shard_load *load = r->plan->load;
    uint32_t n = r->p->n;
    double local = r->p->job->batch / n, sum = 0;
    double own = weight(&load[r->first[c]], x->indices);
    for (uint32_t s = 0; s < n; s++) {
        if (r->cls[s] != c) continue;
        for (uint32_t d = 0; d < n; d++) {
            if (d == s) continue;
            uint32_t owner = x->by_owner ? s : d;
            double bytes = local * weight(&load[owner], x->indices);
            sum += bytes;
            SC_TRY(add_route(r, s, d, bytes));
        }
    }
    double fullest = fmax((n - 1) * own, all - own) * local * n / (n - 1);
    sc_op_desc op = {.name = x->name,
                     .cls = r->all[c],
                     .traffic = SC_NONE,
                     .bytes = (uint64_t)ceil(sum),
                     .kind = SC_OP_COLL,
                     .stream = SC_S_COMM,
                     .cat = SC_CAT_OTHER};
    SC_TRY(seconds(r, SC_ALL_TO_ALL, fmax(1, fullest), &op.work, &op.latency));
    if (sum > 0) SC_TRY(traffic(r, ceil(sum), &op.traffic));
    *out = sc_graph_add_op(r->b, &op);
    return SC_OK;
}

static sc_op mark(run *r, const char *name)
{
    const sc_op_desc op = {.name = name,
                           .cls = SC_NONE,
                           .traffic = SC_NONE,
                           .kind = SC_OP_MARK,
                           .stream = SC_S_COMPUTE,
                           .cat = SC_CAT_OTHER};
    return sc_graph_add_op(r->b, &op);
}

/* After `after` (SC_NONE: at the start), and until all have ended. */
static sc_status all_to_all(run *r, const exchange *x, sc_op after, sc_op *out)
{
    const sc_shard_load *load = r->plan->load;
    double all = 0;
    sc_op op[SC_SHARD_DEVICES];
    for (uint32_t d = 0; d < r->p->n; d++) all += weight(&load[d], x->indices);
    for (uint32_t c = 0; c < r->n_classes && r->p->n > 1 && all > 0; c++) {
        SC_TRY(send(r, x, c, all, &op[c]));
        if (after != SC_NONE) sc_graph_add_dep(r->b, after, op[c]);
    }
    *out = mark(r, x->name);
    if (after != SC_NONE) sc_graph_add_dep(r->b, after, *out);
    for (uint32_t c = 0; c < r->n_classes && r->p->n > 1 && all > 0; c++)
        sc_graph_add_dep(r->b, op[c], *out);
    return SC_OK;
}

static sc_op compute(run *r, const char *name, uint32_t c, double s,
                     sc_op after)
{
    const sc_op_desc op = {.name = name,
                           .cls = r->all[c],
                           .traffic = SC_NONE,
                           .work = sc_time_from_s(s),
                           .kind = SC_OP_COMPUTE,
                           .stream = SC_S_COMPUTE,
                           .cat = SC_CAT_COMPUTE};
    sc_op id = sc_graph_add_op(r->b, &op);
    if (after != SC_NONE) sc_graph_add_dep(r->b, after, id);
    return id;
}

/* ---- the step */

static sc_status reduce(run *r, sc_op after, sc_op *out)
{
    double bytes = r->plan->load[0].reduced;
    sc_op_desc op = {.name = "reduce",
                     .traffic = SC_NONE,
                     .bytes = (uint64_t)bytes,
                     .kind = SC_OP_COLL,
                     .stream = SC_S_GRAD,
                     .cat = SC_CAT_DP,
                     .dev = r->all,
                     .n_dev = r->n_classes};
    uint32_t *rank = SC_NEW_N(r->a, uint32_t, r->p->n);
    sc_traffic moves;
    if (!rank) return sc_error_nomem(r->err);
    for (uint32_t d = 0; d < r->p->n; d++) rank[d] = d;
    sc_traffic_groups of = {rank, 1, r->p->n};
    SC_TRY(seconds(r, SC_ALL_REDUCE, bytes, &op.work, &op.latency));
    SC_TRY(sc_traffic_of(r->p->job->hw, SC_ALL_REDUCE, &of, 0, r->a, &moves,
                         r->err));
    if (moves.n > 0) op.traffic = sc_graph_add_traffic(r->b, &moves);
    *out = sc_graph_add_op(r->b, &op);
    sc_graph_add_dep(r->b, after, *out);
    return SC_OK;
}

static sc_status forward_pass(run *r, sc_op *out)
{
    static const exchange indices = {"row numbers", true, false};
    static const exchange sums = {"sums", false, true};
    sc_op sent, looked = SC_NONE, data[SC_SHARD_DEVICES];
    bool any = r->plan->load[0].data_parts > 0;
    for (uint32_t c = 0; c < r->n_classes && any; c++)
        data[c] = compute(r, "data forward", c, r->data_forward, SC_NONE);
    SC_TRY(all_to_all(r, &indices, SC_NONE, &sent));
    looked = mark(r, "forward");
    for (uint32_t c = 0; c < r->n_classes; c++) {
        sc_op op = compute(r, "forward", c, r->forward[c], sent);
        if (any) sc_graph_add_dep(r->b, data[c], op);
        sc_graph_add_dep(r->b, op, looked);
    }
    return all_to_all(r, &sums, looked, out);
}

static sc_status backward_pass(run *r, sc_op after)
{
    static const exchange gradients = {"gradients", false, false};
    const sc_shard_load *load = r->plan->load;
    sc_op sent, summed = SC_NONE;
    bool any = load[0].data_parts > 0;
    if (any) {
        double s = r->p->launch[1] + load[0].data_backward;
        sc_op all = mark(r, "data backward");
        for (uint32_t c = 0; c < r->n_classes; c++)
            sc_graph_add_dep(r->b, compute(r, "data backward", c, s, after),
                             all);
        summed = all;
        if (r->p->n > 1) SC_TRY(reduce(r, all, &summed));
    }
    SC_TRY(all_to_all(r, &gradients, after, &sent));
    for (uint32_t c = 0; c < r->n_classes; c++) {
        const sc_shard_load *l = &load[r->first[c]];
        double s = l->parts > 0 ? r->p->launch[1] + l->backward : 0;
        (void)compute(r, "backward", c, s, sent);
        if (any) (void)compute(r, "data update", c, l->data_update, summed);
    }
    return SC_OK;
}

sc_status sc_shard_simulate(sc_shard_prices *p, sc_arena *a,
                            sc_shard_plan *inout, sc_err *err)
{
    run r = {.p = p, .plan = inout, .a = a, .err = err};
    sc_graph g;
    sc_result result;
    sc_sim_opts opts;
    sc_op sums;
    r.b = sc_graph_builder_new(a);
    r.link = SC_NEW_N(a, double, sc_hw_n_links(p->job->hw));
    if (!r.b || !r.link) return sc_error_nomem(err);
    SC_TRY(classes(&r));
    SC_TRY(forward(&r));
    SC_TRY(forward_pass(&r, &sums));
    SC_TRY(backward_pass(&r, sums));
    SC_TRY(sc_graph_build(r.b, a, &g, err));
    sc_sim_opts_init(&opts);
    opts.hw = p->job->hw;
    SC_TRY(sc_sim_run(&g, &opts, a, &result, err));
    inout->simulated = sc_time_to_s(result.makespan);
    return SC_OK;
}
