/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_memory.c - lifetimes of the values of a program in device memory.
 *
 * Weights, optimizer states and accumulated gradients are always allocated.  A
 * value of a micro-batch lives from the operation that makes it to the last one
 * that reads it.  Gradients that are exchanged once a step are reduced in
 * place.  If only a shard is kept, the exchange frees the gradient of the
 * micro-batch.
 */
#include "plan/clock.h"
#include "plan/internal.h"

#include <math.h>

typedef enum span { SPAN_NONE, SPAN_ALWAYS, SPAN_STEP, SPAN_MICRO } span;

bool lower_leaves(const lowering *g, uint32_t v)
{
    for (uint32_t k = g->use_head[v]; k < g->use_head[v + 1]; k++) {
        const program_item *it = &g->prog->item[g->use[k]];
        if (it->once || it->out == SC_NONE) continue;
        if (g->root[it->out] != v) return true;
    }
    return false;
}

static span span_of(const lowering *g, uint32_t v)
{
    const program_value *x = &g->prog->value[v];
    bool once = x->made != SC_NONE && g->prog->item[x->made].once;
    if (g->root[v] != v || x->tier != SC_TIER_DEVICE || x->bytes < 1)
        return SPAN_NONE;
    switch ((value_kind)x->what) {
    case VALUE_WEIGHT:
    case VALUE_RESIDUAL:
    case VALUE_STATE: return SPAN_ALWAYS;
    case VALUE_WEIGHT_NEW: return SPAN_NONE; /* overwrites the old weight */
    case VALUE_WEIGHT_GRAD:
    case VALUE_GRAD_KEPT:
        if (once) return SPAN_NONE; /* overwrites the sum */
        if (lower_leaves(g, v)) return SPAN_MICRO;
        return g->sum[v] ? SPAN_ALWAYS : SPAN_NONE;
    default:
        if (x->made == SC_NONE) return SPAN_ALWAYS;
        return once ? SPAN_STEP : SPAN_MICRO;
    }
}

/* All uses of a weight on a stage accumulate into one gradient. */
static sc_status find_spans(lowering *g)
{
    uint32_t n = g->prog->n_values, n_tensors = g->job->net->n_tensors;
    uint32_t *last = SC_NEW_N(g->a, uint32_t, n_tensors);
    g->sum = SC_RAW_N(g->a, bool, n);
    g->span = SC_RAW_N(g->a, uint8_t, n);
    if (!last || !g->sum || !g->span) return sc_error_nomem(g->err);
    for (uint32_t t = 0; t < n_tensors; t++) last[t] = SC_NONE;
    for (uint32_t v = 0; v < n; v++) {
        const program_value *x = &g->prog->value[v];
        bool grad = x->what == VALUE_WEIGHT_GRAD;
        g->sum[v] = !grad || last[x->tensor] != x->stage;
        if (grad) last[x->tensor] = x->stage;
        g->span[v] = (uint8_t)span_of(g, v);
    }
    return SC_OK;
}

/* Links each permanent value to the one before it of the same tensor: a device
 * that holds both ends of a pipeline keeps a shared table once. */
static sc_status find_shared(lowering *g)
{
    uint32_t n = g->prog->n_values, n_tensors = g->job->net->n_tensors;
    uint32_t *last = SC_RAW_N(g->a, uint32_t, n_tensors);
    g->shared = SC_RAW_N(g->a, uint32_t, n);
    if (!last || !g->shared) return sc_error_nomem(g->err);
    for (uint32_t t = 0; t < n_tensors; t++) last[t] = SC_NONE;
    for (uint32_t v = 0; v < n; v++) {
        const program_value *x = &g->prog->value[v];
        g->shared[v] = SC_NONE;
        if (x->what < VALUE_WEIGHT || g->span[v] != SPAN_ALWAYS) continue;
        g->shared[v] = last[x->tensor];
        last[x->tensor] = v;
    }
    return SC_OK;
}

static bool there_already(const lowering *g, uint32_t v, uint32_t dev)
{
    const program_value *x = &g->prog->value[v];
    for (uint32_t u = g->shared[v]; u != SC_NONE; u = g->shared[u]) {
        const program_value *y = &g->prog->value[u];
        bool here = g->inst_of[dev * g->p->n_stages + y->stage] != SC_NONE;
        if (here && y->stage != x->stage && y->what == x->what) return true;
    }
    return false;
}

static uint8_t kind_of(const program_value *x)
{
    static const uint8_t kind[] = {
        SC_MEM_ACTIVATION, SC_MEM_ACTIVATION, SC_MEM_ACTIVATION, SC_MEM_WEIGHT,
        SC_MEM_WEIGHT,     SC_MEM_GRAD,       SC_MEM_GRAD,       SC_MEM_OPTIM,
        SC_MEM_WEIGHT,     SC_MEM_COMM,       SC_MEM_ACTIVATION};
    return kind[x->what];
}

typedef struct pools {
    sc_lifetime *all;
    uint32_t n;
    sc_op *last; /* next free place */
} pools;

static void add(pools *p, const sc_lifetime *l)
{
    p->all[p->n++] = *l;
}

/* Lists the operations that read a value of one micro-batch; if none do, the
 * operation that makes it. */
static void readers(const lowering *g, pools *p, uint32_t v, uint32_t mb,
                    uint32_t member, sc_lifetime *l)
{
    sc_op *first = p->last;
    for (uint32_t k = g->use_head[v]; k < g->use_head[v + 1]; k++) {
        const program_item *it = &g->prog->item[g->use[k]];
        sc_op op = lower_ops(g, it->once ? 0 : mb, g->use[k])[member];
        if (op == SC_NONE || op == l->first) continue;
        if (p->last == first || p->last[-1] != op) *p->last++ = op;
    }
    if (p->last == first) *p->last++ = l->first;
    l->last = first;
    l->n_last = (uint32_t)(p->last - first);
}

static void micro(lowering *g, pools *p, uint32_t v)
{
    const program_value *x = &g->prog->value[v];
    sc_lifetime l = {
        .name = x->name, .kind = kind_of(x), .bytes = (uint64_t)ceil(x->bytes)};
    for (uint32_t mb = 0; mb < g->n_rows; mb++)
        for (uint32_t r = 0; r < g->members; r++) {
            l.batch = mb + 1;
            l.device = lower_device(g, x->stage, mb) * g->members + r;
            l.first = lower_ops(g, mb, x->made)[r];
            if (l.first == SC_NONE) continue;
            readers(g, p, v, mb, r, &l);
            add(p, &l);
        }
}

static void always(lowering *g, pools *p, uint32_t v, const lower_instance *at)
{
    const program_value *x = &g->prog->value[v];
    for (uint32_t r = 0; r < g->members; r++)
        add(p, &(sc_lifetime){.name = x->name,
                              .device = at->dev * g->members + r,
                              .kind = kind_of(x),
                              .bytes = (uint64_t)ceil(x->bytes),
                              .first = SC_NONE});
}

/* Adds a value that is made once and read by every micro-batch. */
static void step(lowering *g, pools *p, uint32_t v, const lower_instance *at)
{
    const program_value *x = &g->prog->value[v];
    for (uint32_t r = 0; r < g->members; r++) {
        sc_lifetime l = {.name = x->name,
                         .device = at->dev * g->members + r,
                         .kind = kind_of(x),
                         .bytes = (uint64_t)ceil(x->bytes),
                         .first = lower_ops(g, at->row, x->made)[r]};
        if (l.first == SC_NONE) continue;
        l.last = p->last;
        for (uint32_t k = g->use_head[v]; k < g->use_head[v + 1]; k++) {
            bool once = g->prog->item[g->use[k]].once;
            for (uint32_t mb = 0; mb < (once ? 1 : g->n_rows); mb++) {
                sc_op op = lower_ops(g, once ? at->row : mb, g->use[k])[r];
                if (op != SC_NONE) *p->last++ = op;
            }
        }
        if (p->last == l.last) *p->last++ = l.first;
        l.n_last = (uint32_t)(p->last - l.last);
        add(p, &l);
    }
}

static sc_status pools_new(lowering *g, pools *p)
{
    uint64_t lives = 0, ends = 0, per;
    for (uint32_t v = 0; v < g->prog->n_values; v++) {
        span s = (span)g->span[v];
        if (s == SPAN_NONE) continue;
        per = s == SPAN_MICRO ? g->n_rows : 2;
        lives += per;
        if (s == SPAN_MICRO || s == SPAN_STEP)
            ends += (s == SPAN_STEP ? 2 * (uint64_t)g->n_rows : per) *
                    (1 + g->use_head[v + 1] - g->use_head[v]);
    }
    lives = (lives + 6 * (uint64_t)g->pp) * g->members;
    ends *= g->members;
    if (lives >= SC_NONE)
        return sc_error(g->err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(),
                        "simulate classes of ranks", "too many tensors");
    p->all = SC_RAW_N(g->a, sc_lifetime, lives);
    p->last = SC_RAW_N(g->a, sc_op, ends);
    return p->all && p->last ? SC_OK : sc_error_nomem(g->err);
}

static void buffer(lowering *g, pools *p, const char *name, uint8_t kind,
                   uint32_t dev, double bytes)
{
    for (uint32_t r = 0; bytes >= 1 && r < g->members; r++)
        add(p, &(sc_lifetime){.name = name,
                              .device = dev * g->members + r,
                              .kind = kind,
                              .bytes = (uint64_t)ceil(bytes),
                              .first = SC_NONE});
}

/* Every micro-batch has its own receive buffers in both directions, and the
 * last stage keeps the input of the loss. */
static void batch_buffers(lowering *g, pools *p)
{
    double sent = 0, logits = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        const program_item *it = &g->prog->item[i];
        if (it->pass != SC_PASS_FWD || it->recomputed) continue;
        if (it->to != SC_NONE) sent = fmax(sent, it->bytes);
        if (it->exchange != SC_NONE || it->copy || it->op == SC_NONE ||
            g->job->net->op[it->op].type != SC_NET_LOSS)
            continue;
        for (uint32_t k = 0; k < it->n_in; k++)
            logits = fmax(logits, g->prog->value[it->in[k]].bytes);
        last = lower_device(g, it->stage, 0);
    }
    for (uint32_t dev = 0; dev < g->pp; dev++)
        buffer(g, p, "stage buffers of all micro-batches", SC_MEM_COMM, dev,
               2.0 * g->ga * g->chunks * sent +
                   (dev == last ? (g->ga - 1) * logits : 0));
}

/* Bytes of weights that item `i` gathers on a rank. */
static double gathered(const lowering *g, uint32_t i)
{
    const program_item *it = &g->prog->item[i];
    double sum = 0;
    if (it->exchange == SC_NONE || it->out == SC_NONE) return 0;
    for (uint32_t k = 0; k <= it->n_more; k++) {
        const program_value *v = &g->prog->value[it->out + k];
        if (v->what == VALUE_WEIGHT_USED) sum += v->bytes;
    }
    return sum;
}

/* FSDP2 gathers on a separate stream, whose memory other streams cannot reuse.
 * Its buffers hold the root unit (embedding and head).  Layers fit into them,
 * unless layers stay gathered during the step as the root does. */
static void gather_buffers(lowering *g, pools *p)
{
    for (uint32_t dev = 0; dev < g->pp; dev++) {
        double root = 0, layer = 0;
        for (uint32_t i = 0; i < g->prog->n_items; i++) {
            const program_item *it = &g->prog->item[i];
            double bytes = gathered(g, i);
            if (bytes <= 0 || lower_device(g, it->stage, 0) != dev) continue;
            if (infer_in_block(g->job->net->op[it->op].path))
                layer = fmax(layer, it->once ? bytes : 0);
            else
                root += bytes;
        }
        int64_t ahead = g->job->sw->prefetch > 0 ? g->job->sw->prefetch : 0;
        buffer(g, p, "all-gather buffers", SC_MEM_COMM, dev,
               root + (double)ahead * layer);
    }
}

/* Adds `each` bytes per gradient that is summed over the step, besides the
 * sums. */
static void add_copies(lowering *g, pools *p, const char *name, double each)
{
    double wide = g->job->sw->grad_bytes;
    if (wide <= 0 || each <= 0) return;
    for (uint32_t dev = 0, n = p->n; dev < g->pp; dev++) {
        double sums = 0;
        for (uint32_t i = 0; i < n; i++)
            if (p->all[i].kind == SC_MEM_GRAD && p->all[i].first == SC_NONE &&
                p->all[i].device == dev * g->members)
                sums += (double)p->all[i].bytes;
        buffer(g, p, name, SC_MEM_GRAD, dev, sums * each / wide);
    }
}

double lower_scattered(const net_program *p, const program_item *it)
{
    if (it->pass != SC_PASS_FWD || it->recomputed || it->once ||
        it->exchange == SC_NONE || it->out == SC_NONE || it->n_in == 0)
        return 0;
    const program_value *in = &p->value[it->in[0]], *out = &p->value[it->out];
    if (out->what != VALUE_ACT || in->what != VALUE_ACT) return 0;
    return out->bytes < in->bytes ? in->bytes : 0;
}

/* Inputs of exchanges stay allocated until the exchange has run. A host that
 * runs ahead of the device has issued those of several passes, which each
 * scatter as often. Without stages these are two, of a layer and the next.
 * The first of several stages receives nothing before its first backward
 * pass: when its device ends the first forward pass, the host has issued all
 * others but the last, after which it waits for a gradient. */
double sc_exchanges_ahead(const sc_software *sw, uint64_t tp, uint32_t pp,
                          uint32_t micro, double each)
{
    double passes = 2;
    if (pp > 1)
        passes = micro > 2 && tp <= (uint64_t)sw->ahead_tp ? micro - 2.0 : 0;
    return fmin(passes * each, (double)sw->exchanges_ahead);
}

static void issued_ahead(lowering *g, pools *p)
{
    uint32_t micro = g->ga < g->pp ? g->ga : g->pp;
    uint64_t tp = sc_strategy_degree(g->job->strategy, SC_AX_TP);
    double most = 0, n = 0;
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        const program_item *it = &g->prog->item[i];
        double bytes = lower_scattered(g->prog, it);
        if (bytes <= 0 || lower_device(g, it->stage, 0) != 0) continue;
        most = fmax(most, bytes);
        n++;
    }
    buffer(g, p, "exchanges issued ahead", SC_MEM_COMM, 0,
           most * sc_exchanges_ahead(g->job->sw, tp, g->pp, micro, n));
}

/* Adds memory that programs allocate besides the values of a step, such as the
 * buffers into which they flatten gradients before an exchange. */
static void staging(lowering *g, pools *p)
{
    const sc_software *sw = g->job->sw;
    const sc_strategy *s = g->job->strategy;
    if (!sw || !s || g->job->forward_only) return;
    bool replicas = sc_strategy_replicas(s) > 1;
    double each = sc_value_bytes(g->job->precision);
    if (sw->two_gradients && sw->grad_bytes > each)
        add_copies(g, p, "gradients in the weights' format", each);
    if (replicas && plan_strategy_zero(s) == 0)
        add_copies(g, p, "gradient buckets", sw->copy_bytes);
    for (uint32_t d = 0; d < g->pp && replicas; d++)
        buffer(g, p, "gradient exchange buffers", SC_MEM_COMM, d,
               sw->flat_bytes);
    if (sw->batch_buffers && g->pp > 1) batch_buffers(g, p);
    if (sw->exchanges_ahead > 0) issued_ahead(g, p);
    if (sw->root_group) gather_buffers(g, p);
}

double sc_net_freed_late(const sc_net_run *job)
{
    if (!job->sw || !job->strategy || job->forward_only) return 0;
    if (sc_strategy_degree(job->strategy, SC_AX_PP) == 1) return 0;
    return job->sw->stage_reserve;
}

sc_status lower_lifetimes(lowering *g)
{
    pools p = {0};
    if (!g->clock) SC_TRY(program_name_values(g->prog, g->a, g->err));
    SC_TRY(find_spans(g));
    SC_TRY(find_shared(g));
    SC_TRY(pools_new(g, &p));
    for (uint32_t v = 0; v < g->prog->n_values; v++) {
        span s = (span)g->span[v];
        uint32_t stage = g->prog->value[v].stage;
        if (s == SPAN_MICRO) micro(g, &p, v);
        if (s != SPAN_ALWAYS && s != SPAN_STEP) continue;
        for (uint32_t dev = 0; dev < g->pp; dev++) {
            uint32_t k = g->inst_of[dev * g->p->n_stages + stage];
            if (k == SC_NONE || there_already(g, v, dev)) continue;
            if (s == SPAN_ALWAYS)
                always(g, &p, v, &g->inst[k]);
            else
                step(g, &p, v, &g->inst[k]);
        }
    }
    staging(g, &p);
    if (g->clock) {
        g->clock->n_lives = p.n;
        g->clock->life = p.all;
    } else {
        sc_graph_set_lifetimes(g->b, p.n, p.all);
    }
    return SC_OK;
}
