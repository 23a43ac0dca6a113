/* SPDX-License-Identifier: Apache-2.0 */
/* infer_buckets.c - reduces gradients of weights over their replicas, several
 * in one exchange. */
#include "plan/compress.h"
#include "plan/infer.h"
#include "plan/plan_buckets.h"
#include "plan/prices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALL_DIMS ((1u << SC_TENSOR_DIMS) - 1)

double infer_grad_bytes(const inference *f, uint32_t tensor)
{
    const sc_tensor *t = &f->g->tensor[tensor];
    return f->job->grad_bytes > 0 ? f->job->grad_bytes * infer_elements(f, t)
                                  : infer_bytes(f, t);
}

bool infer_sized_buckets(const inference *f)
{
    return f->s->grad_bucket > 0 || f->job->sw->bucket_bytes > 0;
}

bool infer_grads_overlap(const inference *f)
{
    int said = f->s->grad_overlap;
    return f->rules->exchanges_overlap ||
           (said >= 0 ? said : f->job->sw->grad_overlap);
}

/* The gradients of a bucket. */
typedef struct bucket {
    uint32_t stage, n_moves;
    bool once, cast;
    layout_move move[SC_MESH_AXES];
    double bytes[SC_MESH_AXES]; /* V of each move */
    double out[SC_MESH_AXES];   /* bytes on a rank after the move */
    double made;       /* bytes on a rank in the format of the exchange */
    double cast_bytes; /* moved by the cast to that format */
    double pack_s;     /* kernels that copy or compress it */
    uint32_t n, cap;
    uint32_t *wgrad; /* [n] */
} bucket;

/* The exchanges of one gradient; equal gradients share this. */
typedef struct way {
    bool known, units; /* units: exchanged together with its unit */
    uint32_t n;
    layout_move *move;   /* [n] */
    double *bytes, *out; /* [n] V of each move; bytes on a rank after it */
    double made, cast_bytes, pack_s;
} way;

typedef struct buckets {
    inference *f;
    way *way; /* [n_wgrads] */
    plan_buckets open;
    uint64_t ways;   /* number of the buckets opened so far */
    uint32_t closed; /* number of closed buckets of all communicators */
} buckets;

static bool same_way(const bucket *b, const infer_wgrad *w, const way *y)
{
    if (b->stage != w->stage || b->once != w->once || b->n_moves != y->n ||
        b->cast != w->cast)
        return false;
    for (uint32_t i = 0; i < y->n; i++)
        if (b->move[i].coll != y->move[i].coll ||
            b->move[i].axes != y->move[i].axes)
            return false;
    return true;
}

/* Adds kernels that compress gradients `in` before their exchange; `*value` is
 * the result. */
static sc_status pack(inference *f, const bucket *b, const infer_wgrad *end,
                      const uint32_t *in, uint32_t n, uint32_t *value)
{
    program_item it = infer_kernels(end->op, b->stage, SC_PASS_WGRAD);
    it.once = b->once;
    it.price.seconds = b->pack_s;
    it.n_in = n;
    it.out = *value =
        infer_value(f, (program_value){.word = {"compressed gradient"},
                                       .tensor = end->tensor,
                                       .what = VALUE_ACT_GRAD,
                                       .stage = b->stage});
    uint32_t item =
        infer_item(f, it, in, b->once ? INFER_ONCE : INFER_BACKWARD);
    if (!b->once) infer_item_behind(f, item, end->last);
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

/* Casts gradients `in` of a micro-batch into a buffer of their exchange, or
 * adds them to those of other micro-batches; `*value` is the result. */
static sc_status cast_gradients(inference *f, const bucket *b,
                                const infer_wgrad *end, const uint32_t *in,
                                uint32_t n, uint32_t *value)
{
    const char *path = f->g->op[end->op].path;
    program_item it = infer_kernels(end->op, b->stage, SC_PASS_WGRAD);
    const sc_kernel kernel = {.kind = SC_K_MEMORY,
                              .name = "cast gradients",
                              .launches = 1,
                              .bytes = b->cast_bytes};
    it.n_in = n;
    it.price =
        sc_cost_kernel(f->job->cost, infer_slowest(f, b->stage), &kernel);
    it.out = *value =
        infer_value(f, (program_value){.word = {path, "weight grad,", "cast"},
                                       .tensor = end->tensor,
                                       .what = VALUE_GRAD_KEPT,
                                       .stage = b->stage,
                                       .bytes = b->made});
    infer_item_behind(f, infer_item(f, it, in, INFER_BACKWARD), end->last);
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

/* Lists the values of all gradients of a bucket, with room for one more, and
 * finds the gradient that is made last (`*end`). */
static sc_status gathered(inference *f, const bucket *b, uint32_t **in,
                          uint32_t *n_in, const infer_wgrad **end)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++) n += f->wgrad[b->wgrad[i]].n_values;
    uint32_t *all = SC_NEW_N(f->a, uint32_t, (size_t)n + 1);
    if (!all) return sc_error_nomem(f->err);
    n = 0;
    *end = &f->wgrad[b->wgrad[0]];
    for (uint32_t i = 0; i < b->n; i++) {
        const infer_wgrad *w = &f->wgrad[b->wgrad[i]];
        memcpy(all + n, w->value, w->n_values * sizeof *all);
        n += w->n_values;
        if (w->last > (*end)->last) *end = w;
    }
    *in = all;
    *n_in = n;
    return SC_OK;
}

/* Adds an exchange for each move of a bucket.  Its result holds all gradients
 * of the bucket. */
static sc_status emit(inference *f, const bucket *b)
{
    const infer_wgrad *first = &f->wgrad[b->wgrad[0]], *end = NULL;
    uint32_t n = 0, item = SC_NONE, buffer = SC_NONE, *in = NULL;
    SC_TRY(gathered(f, b, &in, &n, &end));
    const char *path = f->g->op[first->op].path;
    if (b->n > 1 && !f->job->no_update)
        path = sc_sprintf(f->a, "%s .. %s", path, f->g->op[end->op].path);
    if (!path) return sc_error_nomem(f->err);
    infer_why why = {.path = path,
                     .tensor = "weight grad",
                     .origin = first->origin,
                     .pass = SC_PASS_WGRAD,
                     .op = end->op,
                     .stage = b->stage,
                     .of = end->tensor,
                     .what = VALUE_GRAD_KEPT,
                     .phase = b->once ? INFER_ONCE : INFER_BACKWARD,
                     .grad = true,
                     .once = b->once};
    uint32_t last = end->last;
    if (b->cast) {
        SC_TRY(cast_gradients(f, b, end, in, n, &buffer));
        last = f->prog->value[buffer].made;
        in[0] = buffer;
        n = 1;
    }
    if (b->pack_s > 0) {
        SC_TRY(pack(f, b, end, in, n, &in[n]));
        last = f->prog->value[in[n++]].made;
    }
    for (uint32_t i = 0; i < b->n_moves; i++) {
        bool reduced = b->move[i].coll == SC_ALL_REDUCE;
        infer_coll c = {.coll = b->move[i].coll,
                        .axes = b->move[i].axes,
                        .bytes = b->bytes[i],
                        .out_bytes = b->out[i],
                        .reason = reduced ? "partial gradients to replicated"
                                          : "partial gradients to sharded",
                        .in = in,
                        .n_in = n,
                        .bucketed = b->n > 1};
        SC_TRY(infer_collective(f, &why, &c, &item));
        if (!b->once) infer_item_behind(f, item, last);
        in[0] = f->prog->item[item].out;
        n = 1;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        infer_wgrad *w = &f->wgrad[b->wgrad[i]];
        w->n_reduced = 1;
        w->reduced = in;
    }
    return SC_OK;
}

/* The weight on one rank as PyTorch's PowerSGD sees it: a matrix of its first
 * dim by all others, one for each expert. */
static compress_matrix matrix_of(const inference *f, const infer_wgrad *w)
{
    const sc_tensor *t = &f->g->tensor[w->tensor];
    compress_matrix m = {1, 1, 1};
    bool experts = f->g->op[w->op].type == SC_NET_EXPERT;
    for (uint32_t d = 0; d < t->n_dim; d++) {
        double n = (double)t->dim[d].extent *
                   infer_fraction(f, w->tensor, &w->made, 1u << d);
        if (experts && d == 0)
            m.count = n;
        else if (d == experts)
            m.rows = n;
        else
            m.cols *= n;
    }
    return m;
}

/* Compresses move `m` of a gradient.  Sums over tp are inside a replica, so
 * they are not compressed. */
static sc_status on_the_wire(inference *f, const infer_wgrad *w, double bytes,
                             layout_move *m, compress_wire *out)
{
    const sc_net_run *j = f->job;
    const sc_tensor *t = &f->g->tensor[w->tensor];
    *out = (compress_wire){.coll = m->coll, .bytes = m->fraction * bytes};
    bool flat = j->sw->flat_bytes > 0 && !infer_grads_overlap(f);
    if ((j->compress.kind == SC_GRAD_PLAIN && !flat) ||
        infer_over(m->axes, f->tp))
        return SC_OK;
    double elements = infer_elements(f, t), ranks = 1;
    for (uint32_t ax = 0; ax < f->s->n_axes; ax++)
        if (m->axes >> ax & 1) ranks *= f->mesh.size[ax];
    compress_by by = {.cost = j->cost,
                      .device = infer_slowest(f, w->stage),
                      .format = j->compress,
                      .value_bytes = bytes / elements,
                      .flat = flat};
    compress_matrix x = matrix_of(f, w);
    sc_text why;
    sc_text_init(&why);
    by.why = j->prices ? &why : NULL;
    *out = compress_gradient(&by, &x, m->coll, m->fraction * elements, ranks);
    if (j->prices)
        SC_TRY(prices_report(j->prices, f->g->op[w->op].path,
                             prices_pass_name(SC_PASS_WGRAD), &why, f->err));
    m->coll = out->coll;
    if (out->residual > 0)
        (void)infer_value(f, (program_value){.word = {"compression error"},
                                             .tensor = w->tensor,
                                             .what = VALUE_RESIDUAL,
                                             .stage = w->stage,
                                             .bytes = out->residual,
                                             .made = SC_NONE});
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

/* Bytes that fill a bucket; 0: no limit, as for gradients that are reduced in
 * one exchange after the pass (Megatron-Core without overlap_grad_reduce). */
static double limit(const buckets *s, uint32_t tensor, bool units)
{
    const inference *f = s->f;
    double each =
        infer_grad_bytes(f, tensor) / infer_elements(f, &f->g->tensor[tensor]);
    double bytes = 0;
    if (infer_grads_overlap(f))
        bytes = sc_software_bucket(f->job->sw, units, f->replicas, each);
    if (f->s->grad_bucket > 0) bytes = f->s->grad_bucket;
    if (s->closed == 0 && f->rules->first_bucket && f->s->grad_overlap != 0)
        bytes = (double)f->rules->first_bucket;
    return bytes;
}

/* Whether gradients are exchanged unit by unit.  They are if weights are
 * sharded, or if the program has no bucket size and its gradients are sharded
 * or overlap kernels. */
static bool by_units(const inference *f, const infer_wgrad *w)
{
    layout_move m[SC_MESH_AXES];
    if (f->rules->exchanges_overlap) return false;
    if (!w->parts) return infer_grads_overlap(f) && !infer_sized_buckets(f);
    uint32_t n = infer_sequence(f, &w->kept, &w->used, m);
    return n == 1 ? infer_shards(f, m[0].axes)
                  : n == 0 && !infer_sized_buckets(f);
}

/* The bytes that a cast of a gradient (or its sum with those of earlier
 * micro-batches) moves, divided by the bytes that are exchanged. */
static double cast_factor(const inference *f, const infer_wgrad *w)
{
    const sc_tensor *t = &f->g->tensor[w->tensor];
    double wire = infer_grad_bytes(f, w->tensor);
    if (w->once && f->job->ga > 1)
        return f->job->sw->accum_bytes * infer_elements(f, t) / wire;
    return 1 + infer_bytes(f, t) / wire;
}

static sc_status find_way(inference *f, const infer_wgrad *w, way *y)
{
    layout_move m[SC_MESH_AXES];
    uint32_t n = infer_moves(f, w->tensor, &w->made, &w->want, m);
    double bytes = infer_grad_bytes(f, w->tensor);
    layout now = w->made;
    *y = (way){.known = true,
               .units = by_units(f, w),
               .n = n,
               .move = SC_NEW_N(f->a, layout_move, n),
               .bytes = SC_NEW_N(f->a, double, n),
               .out = SC_NEW_N(f->a, double, n)};
    if (!y->move || !y->bytes || !y->out) return sc_error_nomem(f->err);
    y->made = bytes * infer_fraction(f, w->tensor, &w->made, ALL_DIMS);
    y->cast_bytes = y->made * cast_factor(f, w);
    for (uint32_t k = 0; k < n; k++) {
        compress_wire wire;
        layout_move_on(&now, &w->want, &m[k]);
        if (k + 1 == n) now = w->want;
        y->out[k] = bytes * infer_fraction(f, w->tensor, &now, ALL_DIMS);
        SC_TRY(on_the_wire(f, w, bytes, &m[k], &wire));
        y->move[k] = m[k];
        y->bytes[k] = wire.bytes;
        y->pack_s += wire.pack_s;
    }
    return SC_OK;
}

/* The open bucket for a gradient; NULL if out of memory. */
static plan_bucket *bucket_of(buckets *s, const infer_wgrad *w, const way *y)
{
    plan_buckets *o = &s->open;
    for (uint32_t i = 0; i < o->n; i++)
        if (same_way(o->open[i].own, w, y)) return &o->open[i];
    bucket *b = SC_NEW(s->f->a, bucket);
    o->open = sc_grow(s->f->a, o->open, o->n, &o->room, 8, sizeof *o->open);
    if (!b || !o->open) return NULL;
    b->stage = w->stage;
    b->once = w->once;
    b->cast = w->cast;
    b->n_moves = y->n;
    memcpy(b->move, y->move, y->n * sizeof *y->move);
    plan_bucket *to = plan_bucket_of(o, ++s->ways);
    to->own = b;
    return to;
}

/* Closes a bucket and adds its exchanges to the program. */
static sc_status leave(buckets *s, plan_bucket *b)
{
    plan_bucket closed = plan_bucket_close(&s->open, b);
    return emit(s->f, closed.own);
}

/* Adds gradient `i`, the `ready`-th that the backward pass makes, to its
 * bucket. */
static sc_status push(buckets *s, uint32_t i, uint32_t ready)
{
    inference *f = s->f;
    infer_wgrad *w = &f->wgrad[i];
    const way *y = &s->way[i];
    if (y->n == 0) {
        w->n_reduced = w->n_values;
        w->reduced = w->value;
        return SC_OK;
    }
    plan_bucket *to = bucket_of(s, w, y);
    if (!to) return sc_error_nomem(f->err);
    bucket *b = to->own;
    uint32_t *list = sc_grow(f->a, b->wgrad, b->n, &b->cap, 8, sizeof *list);
    if (!list) return sc_error_nomem(f->err);
    b->wgrad = list;
    list[b->n++] = i;
    for (uint32_t k = 0; k < y->n; k++) {
        b->bytes[k] += y->bytes[k];
        b->out[k] += y->out[k];
    }
    b->made += y->made;
    b->cast_bytes += y->cast_bytes;
    b->pack_s += y->pack_s;
    s->open.full = limit(s, w->tensor, y->units);
    if (!plan_bucket_add(&s->open, to, y->bytes, 1, ready)) return SC_OK;
    s->closed++;
    return leave(s, to);
}

/* Closes all buckets.  Exchanges are queued in the order in which their buckets
 * are complete. */
static sc_status flush(buckets *s)
{
    while (s->open.n) SC_TRY(leave(s, plan_bucket_first(&s->open)));
    return SC_OK;
}

typedef struct ready {
    uint32_t stage, depth, op, port, wgrad;
    bool scattered, root;
} ready;

/* Sorts gradients by stage, then in the order in which the backward pass makes
 * them.  The last weight of an operator comes first. */
static int by_readiness(const void *x, const void *y)
{
    const ready *a = x, *b = y;
    if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
    if (a->scattered != b->scattered) return a->scattered ? 1 : -1;
    if (a->root != b->root) return a->root ? 1 : -1;
    if (a->depth != b->depth) return a->depth < b->depth ? -1 : 1;
    if (a->op != b->op) return a->op > b->op ? -1 : 1;
    return a->port > b->port ? -1 : a->port < b->port;
}

/* Whether `b` belongs to another unit, or to a new pass over the same one. */
static bool leaves_unit(const inference *f, const ready *a, const ready *b)
{
    return a >= b || !infer_one_group(f, a->op, b->op);
}

static bool parted(const ready *a, const ready *b)
{
    return a->stage != b->stage || a->scattered != b->scattered;
}

/* Adds the gradient `r`, which follows `last` (NULL: it is the first). */
static sc_status push_ready(buckets *s, const ready *last, const ready *r,
                            uint32_t place)
{
    way *y = &s->way[r->wgrad];
    if (!y->known) SC_TRY(find_way(s->f, &s->f->wgrad[r->wgrad], y));
    if (last && parted(last, r)) {
        SC_TRY(flush(s));
        s->closed = 0;
    } else if (last && y->units && leaves_unit(s->f, last, r)) {
        SC_TRY(flush(s));
    }
    return push(s, r->wgrad, place);
}

static sc_status in_buckets(inference *f, const ready *r)
{
    buckets s = {.f = f, .way = SC_NEW_N(f->a, way, f->n_wgrads)};
    if (!s.way) return sc_error_nomem(f->err);
    s.open.beyond = f->rules->buckets_counted_together;
    for (uint32_t i = 0; i < f->n_wgrads; i++)
        SC_TRY(push_ready(&s, i ? &r[i - 1] : NULL, &r[i], i));
    return flush(&s);
}

sc_status infer_reduce(inference *f)
{
    ready *r = SC_NEW_N(f->a, ready, f->n_wgrads);
    if (!r) return sc_error_nomem(f->err);
    bool together = f->rules->buckets_counted_together;
    bool last = f->rules->scattered_last;
    for (uint32_t i = 0; i < f->n_wgrads; i++) {
        const infer_wgrad *w = &f->wgrad[i];
        layout_move m[SC_MESH_AXES];
        uint32_t n = last ? infer_sequence(f, &w->made, &w->want, m) : 0;
        r[i] = (ready){.stage = w->stage,
                       .depth = together ? f->depth[w->op] : 0,
                       .op = w->op,
                       .port = w->port,
                       .wgrad = i,
                       .scattered = n && m[0].coll == SC_REDUCE_SCATTER,
                       .root = w->parts && infer_in_root(f, w->op)};
    }
    if (f->n_wgrads) qsort(r, f->n_wgrads, sizeof *r, by_readiness);
    return in_buckets(f, r);
}
