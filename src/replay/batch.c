/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - another batch: which dimensions grow with it, and how much longer
 * operators on the host take.
 *
 * A trace does not say which dimension is the batch.  But parameters do not grow
 * with it, and operators that state parameters are known; the other tensors have
 * their samples in front.
 */
#include "replay/batch.h"

#include "et/et.h"

#include <math.h>
#include <string.h>

static uint64_t key_of(const struct shape_tensor *t)
{
    return sc_hash(t->dim, t->n_dims * sizeof *t->dim, t->n_dims);
}

static bool has_shape(const replay_params *p, const struct shape_tensor *t)
{
    return sc_map_get(&p->shapes, key_of(t)) != SC_MAP_END;
}

/* A weight, or its transpose. */
static bool is_param(const replay_params *p, const struct shape_tensor *t)
{
    struct shape_tensor turned = *t;
    if (has_shape(p, t)) return true;
    if (t->n_dims != 2) return false;
    turned.dim[0] = t->dim[1];
    turned.dim[1] = t->dim[0];
    return has_shape(p, &turned);
}

/* ---- parameters ---------------------------------------------------------- */

static sc_status add_shape(replay_params *p, const struct shape_tensor *t,
                           sc_arena *a, sc_err *err)
{
    if (t->n_dims == 0 || has_shape(p, t)) return SC_OK;
    return sc_map_set(&p->shapes, a, key_of(t), 0) ? SC_OK
                                                   : sc_error_nomem(err);
}

static bool in_optimizer(const replay_rank *r, uint32_t span)
{
    for (span = r->parent[span]; span != REPLAY_NONE; span = r->parent[span]) {
        const sc_trace_span *s = replay_span(r, span);
        if (strncmp(r->m->name[s->name], "Optimizer.step", 14) == 0)
            return true;
    }
    return false;
}

/* Whether an input is a parameter, by the operator alone. A product adds its result
 * to a bias, and what the bias has one value for each column of is a weight. */
static bool is_known(const char *name, const shape_inputs *in, uint32_t i)
{
    if (strcmp(name, "torch::autograd::AccumulateGrad") == 0) return true;
    if (strcmp(name, "aten::addmm") == 0 && i == 2)
        return in->tensor[0].n_dims == 1;
    return sc_et_is_parameter(name, i);
}

sc_status replay_params_of(const replay_rank *r, sc_arena *a,
                           replay_params *out, sc_err *err)
{
    *out = (replay_params){.any_shape = false};
    for (uint64_t i = 0; i < r->m->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(r->m, i);
        shape_inputs in;
        if (s->kind != SC_SPAN_OP || !r->m->args[s->args].dims) continue;
        shape_read(r->m->name[r->m->args[s->args].dims], &in);
        out->any_shape = true;
        bool all = in_optimizer(r, (uint32_t)i);
        for (uint32_t k = 0; k < in.n; k++)
            if (all || is_known(r->m->name[s->name], &in, k))
                SC_TRY(add_shape(out, &in.tensor[k], a, err));
    }
    return SC_OK;
}

/* ---- kernels ------------------------------------------------------------- */

static void grow(uint64_t *dim, double factor)
{
    double v = floor((double)*dim * factor + 0.5);
    *dim = v < 1 ? 1 : v > 1e15 ? (uint64_t)1e15 : (uint64_t)v;
}

/* The gradient of a weight sums over samples: neither operand is a parameter, but
 * the result is. */
static bool sums_samples(const replay_params *p, const char *name,
                         const shape_inputs *in)
{
    const struct shape_tensor *x = &in->tensor[0], *y = &in->tensor[1];
    if (!strstr(name, "aten::mm") || in->n < 2) return false;
    if (x->n_dims != 2 || y->n_dims != 2) return false;
    if (is_param(p, x) || is_param(p, y)) return false;
    struct shape_tensor result = {2, {x->dim[0], y->dim[1]}};
    return is_param(p, &result);
}

void replay_batch_scale(const replay_params *p, const char *name, double factor,
                        shape_inputs *in)
{
    bool lookup = strstr(name, "embedding") || strstr(name, "index_select");
    if (sums_samples(p, name, in)) {
        grow(&in->tensor[0].dim[1], factor);
        grow(&in->tensor[1].dim[0], factor);
        return;
    }
    for (uint32_t i = 0; i < in->n; i++) {
        struct shape_tensor *t = &in->tensor[i];
        if (t->n_dims < (lookup ? 1 : 2) || is_param(p, t)) continue;
        grow(&t->dim[0], factor);
    }
}

/* ---- the host ------------------------------------------------------------ */

/* Operators that are loops over others take them with them. */
static bool is_whole(sc_kernel_kind kind)
{
    return kind == SC_K_GEMM || kind == SC_K_CONV || kind == SC_K_FLASH ||
           kind == SC_K_SOFTMAX || kind == SC_K_NORM;
}

/* By how much longer an operator takes, and whether that counts for those inside
 * too; 1 if it has no shapes. */
static double longer(const replay_rank *r, const replay_params *p,
                     const sc_trace_span *s, double factor, bool *whole)
{
    const sc_trace_span_args *x = &r->m->args[s->args];
    const char *name = r->m->name[s->name];
    shape_inputs in;
    sc_kernel k, more;
    *whole = false;
    if (s->kind != SC_SPAN_OP || !x->dims) return 1;
    sc_precision precision = shape_precision(r->m->name[x->types]);
    shape_read(r->m->name[x->dims], &in);
    if (!shape_kernel(name, &in, precision, r->m->name[x->concrete], &k))
        return 1;
    replay_batch_scale(p, name, factor, &in);
    if (!shape_kernel(name, &in, precision, r->m->name[x->concrete], &more))
        return 1;
    sc_price here = sc_kernel_amount(&k), there = sc_kernel_amount(&more);
    *whole = is_whole(k.kind);
    if (*whole && here.flops > 0) return there.flops / here.flops;
    return here.bytes > 0 ? there.bytes / here.bytes : 1;
}

typedef struct open_op {
    sc_time end;
    double factor;
    bool whole;
} open_op;

typedef struct pacer {
    replay_pace *out;
    open_op open[64];
    uint32_t n;
    sc_time since;    /* what came before has been added */
    sc_time overhead; /* of an operator, whatever its size */
} pacer;

/* The innermost operator worked until `now`. */
static void work_until(pacer *x, sc_time now)
{
    double more = 0;
    if (now <= x->since) return;
    sc_time t = now - x->since;
    if (x->n && t > x->overhead)
        more = (double)(t - x->overhead) * (x->open[x->n - 1].factor - 1);
    x->since = now;
    replay_pace_add(x->out, now, more);
}

static void close_last(pacer *x)
{
    work_until(x, x->open[x->n - 1].end);
    x->n--;
}

static void close_until(pacer *x, sc_time now)
{
    while (x->n && x->open[x->n - 1].end <= now) close_last(x);
    work_until(x, now);
}

/* The time that calls of operators take of themselves: those that only return
 * another view of a tensor. */
static sc_status overhead_of(const replay_rank *r, uint32_t lane, sc_arena *a,
                             sc_time *out, sc_err *err)
{
    static const char *const views[] = {"aten::view", "aten::as_strided",
                                        "aten::t", "aten::transpose",
                                        "aten::expand"};
    uint32_t n = 0, first = r->host_head[lane], end = r->host_head[lane + 1];
    double *v = SC_RAW_N(a, double, end - first + 1);
    if (!v) return sc_error_nomem(err);
    for (uint32_t i = first; i < end; i++) {
        const sc_trace_span *s = replay_span(r, r->host[i]);
        for (size_t k = 0; k < SC_COUNT(views); k++)
            if (strcmp(r->m->name[s->name], views[k]) == 0)
                v[n++] = (double)s->dur;
    }
    *out = n ? (sc_time)sc_quantile(v, n, 0.5) : 0;
    return SC_OK;
}

sc_status replay_pace_of(const replay_rank *r, const replay_params *p,
                         uint32_t lane, double factor, sc_arena *a,
                         replay_pace *out, sc_err *err)
{
    uint32_t first = r->host_head[lane], end = r->host_head[lane + 1];
    pacer x = {.out = out};
    if (!replay_pace_new(2 * (end - first) + 2, a, out))
        return sc_error_nomem(err);
    if (first == end) return SC_OK;
    SC_TRY(overhead_of(r, lane, a, &x.overhead, err));
    x.since = replay_span(r, r->host[first])->start;
    replay_pace_add(out, x.since, 0);
    for (uint32_t i = first; i < end; i++) {
        const sc_trace_span *s = replay_span(r, r->host[i]);
        close_until(&x, s->start);
        if (s->kind != SC_SPAN_OP || x.n == SC_COUNT(x.open)) continue;
        open_op own = {.end = s->start + s->dur};
        if (x.n && x.open[x.n - 1].whole)
            own = (open_op){own.end, x.open[x.n - 1].factor, true};
        else
            own.factor = longer(r, p, s, factor, &own.whole);
        x.open[x.n++] = own;
    }
    while (x.n) close_last(&x);
    return SC_OK;
}
