/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.c - time and memory of one layer of each kind in both passes of a
 * micro-batch, from its operator network.
 *
 * A network with few layers is compiled on one stage.  The items of the layer
 * that represents its kind are added up.  Runs that differ only in the number
 * of replicas or the pipeline share the result; exchanges of weights and
 * gradients depend on both and are priced in segment_weights.c.
 */
#include "plan/segment.h"

#include "hw/hw_memo.h"
#include "plan/strategy.h"

#include <math.h>
#include <string.h>

/* Weights of one operator: weight, bias, and further ones of attention; also
 * exchanges beside it in a pass. */
#define WEIGHTS 4

uint32_t segment_kind_of(const segment_reading *x, uint32_t item)
{
    uint32_t op = x->prog.item[item].op;
    if (op == SC_NONE) return SC_NONE;
    uint32_t part = x->net.part[op];
    uint32_t kind = x->net.net->instance[part].kind;
    return x->net.chosen[kind] == part ? kind : SC_NONE;
}

/* ---- the program ----------------------------------------------------- */

/* Whether the strategy has rules: they may name axes of replicas, or single
 * layers, so neither can be left out of the network. */
static bool has_rules(const sc_run *r)
{
    return r->strategy && r->strategy->n_rules > 0;
}

static sc_run alone(const sc_run *of)
{
    sc_run r = *of;
    r.size[SC_AX_PP] = 1;
    r.vpp = 1;
    r.order = NULL;
    r.schedule = SC_SCH_1F1B;
    /* The second micro-batch adds its gradients to those of the first. */
    r.ga = of->ga > 1 && !sc_run_shards(of) ? 2 : 1;
    r.zero = 0;
    r.optim_tier = 0;
    if (segment_scales(of)) r.offload = of->offload > 0;
    r.offload_weights = of->offload_weights > 0;
    r.rc_group = r.rc_first = 0;
    r.checkpoint_every = 0;
    r.compress = (sc_compress){SC_GRAD_PLAIN, 0};
    if (!has_rules(of)) r.size[SC_AX_DP] = r.size[SC_AX_REP] = 1;
    r.gbs = r.mbs * r.ga * sc_run_dp(&r);
    return r;
}

/* Drops rules for weights, gradients and states, because segment_weights.c
 * applies them. */
static void drop_kept(sc_strategy *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_rules; i++)
        if (s->rule[i].tensor == SC_RT_OP) s->rule[n++] = s->rule[i];
    s->n_rules = n;
}

/* Makes all nodes have the run's device (see kinds.c). */
static sc_status one_kind(const sc_hw **hw, sc_arena *a, sc_err *err)
{
    if ((*hw)->n_groups == 0) return SC_OK;
    sc_hw *own = SC_NEW(a, sc_hw);
    if (!own) return sc_error_nomem(err);
    *own = **hw;
    own->n_groups = 0;
    own->memo = hw_memo_new(a);
    *hw = own;
    return SC_OK;
}

static sc_status compile(segment_reading *x)
{
    sc_run r = alone(x->run);
    sc_strategy *s = SC_NEW(x->a, sc_strategy);
    if (!s) return sc_error_nomem(x->err);
    SC_TRY(one_kind(&r.hw, x->a, x->err));
    SC_TRY(sc_strategy_of_run(&r, x->a, s, x->err));
    drop_kept(s);
    s->cuts = SC_CUT_EVEN;
    s->n_cuts = s->n_in_flight = s->n_pools = 0;
    x->job = (sc_net_run){.hw = r.hw,
                          .net = x->net.net,
                          .strategy = s,
                          .sw = r.sw,
                          .cost = r.cost,
                          .micro = r.mbs,
                          .ga = r.ga,
                          .precision = r.precision,
                          .recipe = r.recipe,
                          .optimizer = "adam",
                          .grad_bytes = r.sw->reduce_bytes,
                          .opts = r.opts,
                          .kept = x->net.prices,
                          .no_update = true};
    x->tp = sc_strategy_axis(s, SC_AX_TP);
    x->job.numa_unbound = false; /* step_costs.c adds this slowdown */
    SC_TRY(sc_net_plan_compile(&x->job, x->a, &x->plan, x->err));
    x->clock.a = x->a;
    x->g =
        (lowering){.p = &x->plan, .a = x->a, .err = x->err, .clock = &x->clock};
    SC_TRY(lower_begin(&x->g, &x->prog));
    return clock_lifetimes(&x->g);
}

/* ---- time ------------------------------------------------------------ */

/* Adds launches and kernels before the next wait of the host. */
static void issue(const segment_reading *x, const program_item *it, sc_issue *i)
{
    double n = it->exchange == SC_NONE ? it->price.launches : 1;
    const sc_cost *cost = x->run->cost;
    infer_issue(&x->job, &x->prog, x->plan.exchange, x->tp, it,
                i->waits ? &i->last : &i->first);
    for (int apart = 0; apart < 2; apart++) {
        sc_host_rate host = sc_plan_host_rate(cost, x->run->sw, apart);
        if (x->run->launch_blocking)
            i->between[apart] += n * cost->p[SC_P_BLOCKING];
        if (i->waits && infer_waits(&x->job, it))
            i->between[apart] += infer_host_seconds(&host, &i->last);
    }
    if (!infer_waits(&x->job, it)) return;
    i->waits = true;
    i->last = (sc_span){0};
}

/* Most exchanges of a pass of a layer; further ones share no links. */
static uint32_t most_contenders(const segment_reading *x, uint32_t kind)
{
    return WEIGHTS * x->run->model->layer[kind].n_ops;
}

/* Whether all exchanges in a node cross the same ports.  Along the dimensions of
 * a torus, and between pairs, they have links of their own. */
static bool same_ports(const sc_hw *hw)
{
    for (uint32_t i = 0; i < hw->n_dims; i++)
        if (hw->dim[i].ports == 0 && hw->dim[i].kind != SC_DIM_SWITCH &&
            hw->dim[i].kind != SC_DIM_TREE)
            return false;
    return true;
}

/* Lists an exchange that runs between kernels. */
static void contends(const segment_reading *x, const program_item *it,
                     uint32_t kind, int which)
{
    sc_segment *b = &x->b[kind];
    const sc_net_exchange *e = &x->plan.exchange[it->exchange];
    uint32_t n = b->n_contenders[which];
    double part = e->seconds > 0 ? it->seconds / e->seconds : 0, link_s[2];
    if (it->seconds <= 0 || n == most_contenders(x, kind)) return;
    for (int s = 0; s < 2; s++) link_s[s] = part * e->link_s[s];
    if (!same_ports(x->run->hw)) link_s[SC_SCOPE_NODE] = 0;
    b->contender[which][n] =
        sc_contender_of(it->seconds, it->latency, link_s, it->bytes);
    b->contender[which][n].from = x->pass[kind][which].now;
    double *most = b->most_use[which], *use = b->contender[which][n].use;
    for (int s = 0; s < 2; s++) most[s] = fmax(most[s], use[s]);
    b->n_contenders[which]++;
}

/* Adds a copy between memories: of a weight before its use, or of a saved
 * activation. */
static void copies(segment_reading *x, const program_item *it, uint32_t kind,
                   int which)
{
    sc_segment *b = &x->b[kind];
    if (x->prog.value[it->out].what == VALUE_WEIGHT_USED) {
        b->fetch_s[which] += it->seconds;
        if (which == FORWARD) b->fetched += it->bytes;
        return;
    }
    x->pass[kind][which].copies += it->seconds;
    if (which == FORWARD) b->offloaded += it->bytes;
}

static void add_item(segment_reading *x, uint32_t i, int which)
{
    const program_item *it = &x->prog.item[i];
    const lower_item *t = &x->g.item[i];
    uint32_t kind = segment_kind_of(x, i);
    if (kind == SC_NONE || it->cat == SC_CAT_HOST ||
        infer_of_weights(&x->prog, x->plan.exchange, it))
        return;
    sc_segment *b = &x->b[kind];
    segment_pass *p = &x->pass[kind][which];
    double *cat = which == FORWARD ? b->fwd_cat : b->bwd_cat;
    if (it->copy) {
        copies(x, it, kind, which);
        return;
    }
    bool kernels = it->exchange == SC_NONE;
    double s = kernels ? it->price.seconds : it->seconds;
    cat[it->cat] += s;
    if (!kernels) contends(x, it, kind, which);
    if (which == BACKWARD && kernels && !it->recomputed)
        x->made[it->op] = (sc_made){p->now, p->now + s};
    p->now += s;
    if (t->part == LOWER_W) b->w_cat[it->cat] += s;
    if (!t->none) b->flops += t->flops;
    issue(x, it, which == FORWARD ? &b->fwd_issue : &b->bwd_issue);
    if (which == BACKWARD && kernels) b->bwd_issue.weights = t->part == LOWER_W;
}

static double sum_of(const double cat[SC_N_CATS])
{
    double s = 0;
    for (uint32_t c = 0; c < SC_N_CATS; c++) s += cat[c];
    return s;
}

static sc_status times(segment_reading *x)
{
    const lower_list *of[PASSES] = {&x->g.stage[0].fwd, &x->g.stage[0].bwd};
    x->made = SC_NEW_N(x->a, sc_made, x->net.net->n_ops);
    if (!x->made) return sc_error_nomem(x->err);
    for (int which = 0; which < PASSES; which++)
        for (uint32_t k = 0; k < of[which]->n; k++)
            add_item(x, of[which]->item[k], which);
    for (uint32_t l = 0; l < x->run->model->n_layers; l++) {
        sc_segment *b = &x->b[l];
        b->fwd_s = sum_of(b->fwd_cat);
        b->bwd_s = sum_of(b->bwd_cat);
        b->w_s = sum_of(b->w_cat);
        b->out_s = x->pass[l][FORWARD].copies;
        b->in_s = x->pass[l][BACKWARD].copies;
    }
    return SC_OK;
}

double sc_plan_host_seconds(const sc_host_rate *host,
                            const sc_issue *const *layer, uint32_t n,
                            const sc_span *more)
{
    sc_span now = *more, before = {0};
    double s = 0;
    bool waited = false;
    for (uint32_t i = 0; i < n; i++) {
        plan_span_add(&now, &layer[i]->first);
        s += layer[i]->between[host->apart];
        if (!layer[i]->waits) continue;
        if (waited)
            s += infer_host_seconds(host, &now);
        else
            before = now;
        waited = true;
        now = layer[i]->last;
    }
    /* An equal pass follows, and its first wait ends the last span. */
    plan_span_add(&now, &before);
    return s + infer_host_seconds(host, &now);
}

/* ---- weights --------------------------------------------------------- */

static compress_matrix matrix_of(const sc_tensor *t, bool expert,
                                 double fraction)
{
    compress_matrix m = {fraction, 1, 1};
    for (uint32_t d = 0; d < t->n_dim; d++) {
        double n = (double)t->dim[d].extent;
        if (expert && d == 0)
            m.count = n;
        else if (d == expert)
            m.rows *= n;
        else
            m.cols *= n;
    }
    return m;
}

/* Layout of a weight. */
typedef struct facts {
    double fraction; /* fraction of its elements on one rank */
    bool summed;     /* its gradient is summed over tp */
} facts;

static sc_status too_many(const segment_reading *x, const char *path)
{
    return sc_error(x->err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "more than %d weights belong to the operator at %s",
                    WEIGHTS, path);
}

/* The rule of the file that applies to a tensor of an operator. */
static struct segment_said said_of(const segment_reading *x, const char *path,
                                   sc_rule_tensor what)
{
    const uint32_t replicas =
        1u << SC_AX_DP | 1u << SC_AX_EP | 1u << SC_AX_CP | 1u << SC_AX_REP;
    const sc_strategy *s = x->run->strategy;
    struct segment_said best = {.said = false};
    for (uint32_t i = 0; s && i < s->n_rules; i++) {
        const sc_strategy_rule *r = &s->rule[i];
        if (r->tensor != what || !r->has_split) continue;
        if (!sc_rule_matches(r->match, path)) continue;
        uint64_t rank = (uint64_t)sc_rule_specificity(r->match) << 32 | i;
        if (best.said && rank < best.rank) continue;
        best = (struct segment_said){.said = true, .rank = rank};
        for (uint32_t k = 0; k < r->n_split; k++)
            for (sc_axes list = r->split[k].axes; list; list >>= 4) {
                int ax = plan_run_axis(s, (uint32_t)(list & 15) - 1);
                if (ax >= 0) best.axes |= (uint8_t)(1u << ax & replicas);
            }
    }
    return best;
}

static sc_status add_weights(segment_reading *x, const facts *of, uint32_t kind)
{
    const sc_net *g = x->net.net;
    uint32_t part = x->net.chosen[kind];
    sc_segment *b = &x->b[kind];
    double whole = x->pass[kind][BACKWARD].now;
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t k = 0; x->net.part[op] == part && k < g->op[op].n_weight;
             k++) {
            uint32_t w = g->op[op].weight[k].tensor;
            const sc_tensor *t = &g->tensor[w];
            bool expert = g->op[op].type == SC_NET_EXPERT;
            if (b->n_weights >= WEIGHTS * x->run->model->layer[kind].n_ops)
                return too_many(x, g->op[op].path);
            const char *path = g->op[op].path;
            if (whole > 0)
                b->made[b->n_weights] =
                    (sc_made){x->made[op].from / whole, x->made[op].to / whole};
            b->weight[b->n_weights++] = (segment_weight){
                .kept = said_of(x, path, k ? SC_RT_BIAS : SC_RT_WEIGHT),
                .grad = said_of(x, path, SC_RT_GRAD),
                .state = said_of(x, path, SC_RT_OPTIM),
                .elements = of[w].fraction * sc_tensor_elements(t, 1),
                .expert = expert,
                .summed = of[w].summed,
                .frozen = !t->learns,
                .shared = t->op != op,
                .table = g->op[op].type == SC_NET_EMBED,
                .low = plan_low_weight(g, op, k),
                .matrix = matrix_of(t, expert, of[w].fraction)};
        }
    return SC_OK;
}

static void find_summed(const segment_reading *x, facts *of)
{
    for (uint32_t i = 0; x->tp >= 0 && i < x->prog.n_items; i++) {
        const program_item *it = &x->prog.item[i];
        if (it->exchange == SC_NONE) continue;
        const sc_net_exchange *e = &x->plan.exchange[it->exchange];
        if (!e->grad || !(e->axes >> x->tp & 1)) continue;
        for (uint32_t k = 0; k < it->n_in; k++)
            of[x->prog.value[it->in[k]].tensor].summed = true;
    }
}

static sc_status weights(segment_reading *x)
{
    const sc_net *g = x->net.net;
    facts *of = SC_NEW_N(x->a, facts, g->n_tensors);
    if (!of) return sc_error_nomem(x->err);
    for (uint32_t v = 0; v < x->prog.n_values; v++) {
        const program_value *w = &x->prog.value[v];
        if (w->what == VALUE_WEIGHT)
            of[w->tensor].fraction = w->copies / x->plan.n_ranks;
    }
    find_summed(x, of);
    for (uint32_t l = 0; l < x->run->model->n_layers; l++)
        SC_TRY(add_weights(x, of, l));
    return SC_OK;
}

static sc_status read(segment_reading *x)
{
    SC_TRY(compile(x));
    SC_TRY(times(x));
    SC_TRY(segment_activations(x));
    return weights(x);
}

/* Reads all kinds of layers of a run into `out` [n_layers]. */
static sc_status read_all(const sc_run *run, const segment_network *net,
                          sc_arena *a, sc_segment *out, sc_err *err)
{
    uint32_t n = run->model->n_layers;
    memset(out, 0, n * sizeof *out);
    for (uint32_t l = 0; l < n; l++) {
        out[l].frozen_below = run->model->layer[l].frozen_below;
        size_t most = WEIGHTS * (size_t)run->model->layer[l].n_ops;
        out[l].weight = SC_NEW_N(a, segment_weight, most);
        out[l].made = SC_NEW_N(a, sc_made, most);
        for (int which = 0; which < PASSES; which++)
            out[l].contender[which] = SC_NEW_N(a, sc_contender, most);
        if (!out[l].weight || !out[l].made || !out[l].contender[FORWARD] ||
            !out[l].contender[BACKWARD])
            return sc_error_nomem(err);
    }
    sc_arena_mark mark = sc_arena_save(a);
    segment_reading *x = SC_NEW(a, segment_reading);
    if (!x) return sc_error_nomem(err);
    x->run = run;
    x->net = *net;
    x->a = a;
    x->err = err;
    x->b = out;
    x->pass = sc_alloc(a, n, sizeof *x->pass);
    if (!x->pass) return sc_error_nomem(err);
    SC_TRY(read(x));
    sc_arena_restore(a, mark);
    return SC_OK;
}

/* Reads the layers without recomputation too, if some blocks of a stage are not
 * recomputed or several are recomputed together. */
static sc_status read_kept(const sc_run *of, const segment_network *net,
                           sc_arena *a, sc_segment *out, sc_err *err)
{
    uint32_t n = of->model->n_layers, all = sc_run_segments(of);
    bool groups = of->recompute == SC_RC_FULL && of->rc_group > 1;
    sc_run r = *of;
    r.recompute = SC_RC_NONE;
    if (all > n) return read_all(&r, net, a, out + n, err);
    if (!groups) return SC_OK;
    sc_segment *b = SC_NEW_N(a, sc_segment, n);
    if (!b) return sc_error_nomem(err);
    SC_TRY(read_all(&r, net, a, b, err));
    for (uint32_t l = 0; l < n; l++) out[l].recompute_held = b[l].saved;
    return SC_OK;
}

sc_status sc_segment_passes(const sc_run *run, sc_segment_memo *memo,
                            sc_arena *a, sc_segment *out, sc_err *err)
{
    segment_network net;
    SC_TRY(segment_network_of(run, has_rules(run), memo, a, &net, err));
    SC_TRY(read_all(run, &net, a, out, err));
    return read_kept(run, &net, a, out, err);
}
