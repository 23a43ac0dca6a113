/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - runs a graph: chooses the loop by what overlaps and shares, and sums
 * what links carried. */
#include "sim/run.h"

#include <math.h>
#include <stdlib.h>

void sc_sim_opts_init(sc_sim_opts *o)
{
    *o = (sc_sim_opts){.gamma = NAN, .link_fraction = {1, 1}};
    for (int a = 0; a < SC_N_OP_KINDS; a++)
        for (int b = 0; b < SC_N_OP_KINDS; b++) o->rate[a][b] = 1;
}

sc_status sim_too_long(const sc_graph *g, sc_op i, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                    "op %u \"%.80s\" ends later than 106 days", i, g->name[i]);
}

sc_status sim_stopped(const sc_graph *g, uint32_t n_done, sc_err *err)
{
    return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "the engine stopped after %u of %u ops", n_done, g->n_ops);
}

/* ---- overlap ------------------------------------------------------------- */

static sc_status check_opts(const sc_sim_opts *o, sc_err *err)
{
    for (unsigned a = 0; a < SC_N_OP_KINDS; a++)
        for (unsigned b = 0; b < SC_N_OP_KINDS; b++)
            if (!(o->rate[a][b] > 0 && o->rate[a][b] <= 1))
                return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                                "the rate of %s beside %s is not in (0, 1]",
                                sc_op_kind_names[a], sc_op_kind_names[b]);
    if (o->gamma < 0 || o->gamma > 1e6)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "gamma is not between 0 and 1e6");
    sc_assert(!o->of_class || !o->rules || !o->rules->ready_order);
    for (int s = 0; s < 2; s++)
        if (!(o->link_fraction[s] > 0 && o->link_fraction[s] <= 1))
            return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                            "a share of links is not in (0, 1]");
    return SC_OK;
}

static double pair_rate(const sc_sim_opts *o, unsigned a, unsigned b)
{
    bool grad = (a == SC_OP_COMPUTE && b == SIM_GRAD) ||
                (a == SIM_GRAD && b == SC_OP_COMPUTE);
    if (grad && o->gamma >= 0) return 1 / (1 + o->gamma);
    unsigned x = a == SIM_GRAD ? SC_OP_COLL : a;
    unsigned y = b == SIM_GRAD ? SC_OP_COLL : b;
    return o->rate[x][y];
}

static void fill_rates(const sc_sim_opts *o, sim_rates *out)
{
    out->any = false;
    for (unsigned a = 0; a <= SIM_N_KINDS; a++) {
        for (unsigned set = 0; set < 1u << SIM_N_KINDS; set++) {
            double least = 1;
            for (unsigned b = 0; b < SIM_N_KINDS && a < SIM_N_KINDS; b++) {
                double rate = pair_rate(o, a, b);
                if ((set >> b & 1) && rate < least) least = rate;
            }
            out->at[a][set] = least;
            out->any |= least < 1;
        }
    }
}

/* Rates of every class, each of which is made once. */
static sc_status rates_of_classes(const sc_graph *g, const sc_sim_opts *o,
                                  sc_arena *a, sim_run *run, sc_err *err)
{
    if (!o->of_class) return SC_OK;
    const sim_rates **of = SC_NEW_N(a, const sim_rates *, g->n_classes);
    if (!of) return sc_error_nomem(err);
    for (uint32_t c = 0; c < g->n_classes; c++) {
        uint32_t k = c;
        while (k > 0 && o->of_class[k - 1] != o->of_class[c]) k--;
        if (k > 0) {
            of[c] = of[k - 1];
            continue;
        }
        sim_rates *own = SC_NEW(a, sim_rates);
        if (!own) return sc_error_nomem(err);
        SC_TRY(check_opts(o->of_class[c], err));
        fill_rates(o->of_class[c], own);
        of[c] = own;
    }
    run->of_class = of;
    return SC_OK;
}

/* Whether kinds on the streams of one class can slow each other down. */
static bool slow_down(const uint8_t kinds[SC_N_STREAMS], const sim_rates *rates)
{
    for (unsigned s = 0; s < SC_N_STREAMS; s++) {
        unsigned others = 0;
        for (unsigned y = 0; y < SC_N_STREAMS; y++)
            if (y != s) others |= kinds[y];
        for (unsigned k = 0; k < SIM_N_KINDS; k++)
            if ((kinds[s] >> k & 1) && rates->at[k][others] < 1) return true;
    }
    return false;
}

/* Whether two ops of one class can slow each other down. */
static sc_status interacts(const sim_run *run, sc_arena *a, bool *out,
                           sc_err *err)
{
    const sc_graph *g = run->g;
    *out = false;
    if (!run->of_class && !run->rates->any) return SC_OK;
    uint8_t(*kinds)[SC_N_STREAMS] =
        sc_alloc(a, g->n_classes, sizeof *kinds); /* bit per kind */
    if (!kinds) return sc_error_nomem(err);
    for (sc_op i = 0; i < g->n_ops && !*out; i++) {
        unsigned bit = sim_bits(g, i), s = g->stream[i];
        for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++) {
            uint32_t c = g->cls[p];
            uint8_t *k = kinds[c];
            if ((k[s] & bit) == bit) continue;
            k[s] |= (uint8_t)bit;
            *out = *out ||
                   slow_down(k, run->of_class ? run->of_class[c] : run->rates);
        }
    }
    return SC_OK;
}

/* ---- results ------------------------------------------------------------- */

static bool result_alloc(const sc_graph *g, sc_arena *a, sc_result *r)
{
    uint32_t n = r->n_ops = g->n_ops;
    return (r->start = SC_NEW_N(a, sc_time, n)) &&
           (r->end = SC_NEW_N(a, sc_time, n)) &&
           (r->cause = SC_NEW_N(a, sc_op, n)) &&
           (r->shared = SC_NEW_N(a, sc_time, n)) &&
           (r->overlapped = SC_NEW_N(a, sc_time, n)) &&
           (r->finish = SC_NEW_N(a, sc_time, g->n_classes)) &&
           (!g->part_head ||
            (r->part_end = SC_NEW_N(a, sc_time, sc_part_first(g, n))));
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

sc_time sc_part_end(const sc_graph *g, const sc_result *r, sc_op i, uint32_t k)
{
    const sc_parts *p = g->parts ? g->parts[i] : NULL;
    if (!p) return r->end[i];
    sc_time late = r->part_end[g->part_head[i] + k];
    return late ? late : r->start[i] + p->end[k];
}

sc_time sc_part_start(const sc_graph *g, const sc_result *r, sc_op i,
                      uint32_t k)
{
    return k ? sc_part_end(g, r, i, k - 1) : r->start[i];
}

/* Sums what all ops have moved over each link. */
static sc_status sum_links(const sc_graph *g, sc_arena *a, sc_result *r,
                           sc_err *err)
{
    size_t n = 0, used = 0;
    for (uint32_t t = 0; t < g->n_traffic; t++) n += g->traffics[t].n;
    carried *all = SC_NEW_N(a, carried, n);
    double *bytes = SC_NEW_N(a, double, g->n_traffic);
    if (!all || !bytes) return sc_error_nomem(err);
    for (sc_op i = 0; i < g->n_ops; i++) {
        const sc_parts *p = g->parts ? g->parts[i] : NULL;
        if (g->traffic[i] != SC_NONE)
            bytes[g->traffic[i]] += (double)g->bytes[i];
        for (uint32_t k = 0; p && k < p->n_moves; k++)
            bytes[p->traffic[k]] += (double)p->bytes[k];
    }
    n = 0;
    for (uint32_t t = 0; t < g->n_traffic; t++)
        for (uint32_t k = 0; k < g->traffics[t].n; k++)
            all[n++] = (carried){g->traffics[t].link[k],
                                 g->traffics[t].share[k] * bytes[t]};
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

/* Only the sweep has delays that occupy no stream. */
static sc_status refuse_delays(const sc_graph *g, sc_err *err)
{
    for (sc_op i = 0; i < g->n_ops; i++)
        if (g->work[i] && g->kind[i] == SC_OP_MARK)
            return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(),
                            "put it on a stream",
                            "op %u \"%.80s\" is a delay in a graph whose ops "
                            "slow each other down",
                            i, g->name[i]);
    return SC_OK;
}

/* The cheapest of the simulators that the rules and the graph allow. */
static sc_status simulate(const sim_run *run, bool overlap, sc_op *order,
                          sc_arena *a, sc_result *r, sc_err *err)
{
    if (!order && !overlap && !run->net->flows)
        return sim_sweep(run->g, a, r, err);
    SC_TRY(refuse_delays(run->g, err));
    if (order) return sim_rounds(run, a, order, r, err);
    return sim_events(run, a, r, err);
}

sc_status sc_sim_run(const sc_graph *g, const sc_sim_opts *o, sc_arena *a,
                     sc_result *out, sc_err *err)
{
    sc_result r = {0};
    sim_rates rates;
    sim_net net = {0};
    bool overlap;
    sim_run run = {g,        o->rules ? o->rules : sc_rules_find(NULL),
                   &rates,   &net,
                   o->gamma, NULL};
    SC_TRY(check_opts(o, err));
    sc_assert(sim_is_ordered(g));
    if (!result_alloc(g, a, &r)) return sc_error_nomem(err);
    if (g->n_traffic) SC_TRY(sum_links(g, a, &r, err));
    sc_op *order = NULL;
    if (run.rules->ready_order && !(order = SC_NEW_N(a, sc_op, g->n_ops)))
        return sc_error_nomem(err);
    r.order = order;
    sc_arena_mark mark = sc_arena_save(a);
    fill_rates(o, &rates);
    SC_TRY(rates_of_classes(g, o, a, &run, err));
    SC_TRY(interacts(&run, a, &overlap, err));
    if (o->hw && !run.rules->links_private)
        SC_TRY(sim_net_init(g, o, a, &net, err));
    SC_TRY(simulate(&run, overlap, order, a, &r, err));
    for (uint32_t c = 0; c < g->n_classes; c++)
        if (r.finish[c] > r.makespan) r.makespan = r.finish[c];
    if (net.flows) SC_TRY(sim_net_check(&net, g, o, &r, err));
    sc_arena_restore(a, mark);
    sc_assert(sim_is_causal(g, &r));
    *out = r;
    return SC_OK;
}
