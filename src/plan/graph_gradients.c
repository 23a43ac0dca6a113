/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_gradients.c - gradients of weights: where they go, their buckets,
 * weights that stages share, the optimizer, and its weights gathered again.
 */
#include "plan/compress.h"
#include "plan/graph_infer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALL_DIMS ((1u << SC_G_DIMS) - 1)

static double gradient_bytes(const infer *f, uint32_t tensor)
{
    const sc_gtensor *t = &f->g->tensor[tensor];
    return f->job->grad_bytes > 0 ? f->job->grad_bytes * gi_elements(f, t)
                                  : gi_bytes(f, t);
}

/* The gradient is brought to where a rule of the file says, or else to where
 * the optimizer works: by what places it, or the gradient, or the weight. */
static sc_status destinations(infer *f, gi_wgrad *w)
{
    const sc_gtensor *t = &f->g->tensor[w->tensor];
    const gi_rule *weight, *grad = gi_said(f, w->op, SC_RT_GRAD, 0);
    const gi_rule *optim = gi_said(f, w->op, SC_RT_OPTIM, 0);
    layout g;
    SC_TRY(gi_weight_kept(f, w->op, w->port, &w->kept, &weight));
    g = w->kept;
    const gi_rule *by = weight;
    if (grad && (!weight || grad > weight)) {
        SC_TRY(gi_place(f, t, grad, &w->used, true, &g));
        by = grad;
    }
    w->state = g;
    if (optim) SC_TRY(gi_place(f, t, optim, &w->used, true, &w->state));
    bool said = by && by->file;
    w->want = optim && !said ? w->state : g;
    w->origin = optim && !said ? optim->r->origin
                : by           ? by->r->origin
                               : gi_by(f, w->op);
    bool parts = layout_fraction(&g, ALL_DIMS, &f->mesh) <
                 layout_fraction(&w->used, ALL_DIMS, &f->mesh);
    w->once = !parts || (f->n_stages > 1 && f->job->sw->stage_gather);
    return SC_OK;
}

sc_status gi_add_wgrad(infer *f, uint32_t op, uint32_t k, uint32_t value)
{
    const sc_gport *p = &f->g->op[op].weight[k];
    uint32_t stage = f->node[op].stage, i = f->wgrad_of[p->tensor];
    while (i && f->wgrad[i - 1].stage != stage) i = f->wgrad[i - 1].before;
    if (!i) {
        gi_wgrad *grown = sc_grow(f->a, f->wgrad, f->n_wgrads, &f->cap_wgrads,
                                  64, sizeof *grown);
        if (!grown) return sc_error_nomem(f->err);
        f->wgrad = grown;
        i = ++f->n_wgrads;
        grown[i - 1] = (gi_wgrad){.tensor = p->tensor,
                                  .stage = stage,
                                  .before = f->wgrad_of[p->tensor],
                                  .times = f->times,
                                  .block = f->block};
        f->wgrad_of[p->tensor] = i;
    }
    gi_wgrad *w = &f->wgrad[i - 1];
    uint32_t *values =
        sc_grow(f->a, w->value, w->n_values, &w->cap_values, 1, sizeof *values);
    if (!values) return sc_error_nomem(f->err);
    w->value = values;
    w->op = op;
    w->port = k;
    w->used = gi_port(f, op, p, false);
    w->made = gi_weight_grad(f, op, k);
    w->value[w->n_values++] = value;
    w->last = f->prog->value[value].made;
    return destinations(f, w);
}

/* ---- buckets ------------------------------------------------------------- */

typedef struct bucket {
    struct bucket *next;
    uint32_t stage, n_moves;
    uint32_t ready; /* place of its latest gradient among all */
    bool once;
    layout_move move[SC_MESH_AXES];
    double bytes[SC_MESH_AXES]; /* V of each move */
    double out[SC_MESH_AXES];   /* what it leaves on a rank */
    double pack_s;              /* kernels that compress it */
    uint32_t n, cap;
    uint32_t *wgrad; /* [n] */
} bucket;

typedef struct buckets {
    infer *f;
    bucket *open;
    uint32_t closed; /* of all communicators */
} buckets;

static bool same_way(const bucket *b, const gi_wgrad *w, const layout_move *m,
                     uint32_t n)
{
    if (b->stage != w->stage || b->once != w->once || b->n_moves != n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (b->move[i].coll != m[i].coll || b->move[i].axes != m[i].axes)
            return false;
    return true;
}

/* Kernels that compress gradients `in`, before they are exchanged; `*value`
 * stands for what they make. */
static sc_status pack(infer *f, const bucket *b, const gi_wgrad *end,
                      const uint32_t *in, uint32_t n, uint32_t *value)
{
    gp_item it = {.pass = SC_GP_WGRAD,
                  .cat = SC_CAT_COMPUTE,
                  .stage = b->stage,
                  .to = SC_NONE,
                  .op = end->op,
                  .exchange = SC_NONE,
                  .once = b->once,
                  .price = {.seconds = b->pack_s},
                  .n_in = n};
    it.out = *value = gi_value(f, (gp_value){.word = {"compressed gradient"},
                                             .tensor = end->tensor,
                                             .what = GP_ACT_GRAD,
                                             .stage = b->stage});
    uint32_t item = gi_item(f, it, in, b->once ? GI_ONCE : GI_BACKWARD);
    if (!b->once) gi_item_behind(f, item, end->last);
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

/* Each move in turn; what comes out is the gradient of all. */
static sc_status emit(infer *f, const bucket *b)
{
    gi_wgrad *first = &f->wgrad[b->wgrad[0]], *end = first;
    uint32_t n = 0, item = SC_NONE;
    for (uint32_t i = 0; i < b->n; i++) n += f->wgrad[b->wgrad[i]].n_values;
    uint32_t *in = SC_NEW_N(f->a, uint32_t, (size_t)n + 1);
    if (!in) return sc_error_nomem(f->err);
    n = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const gi_wgrad *w = &f->wgrad[b->wgrad[i]];
        memcpy(in + n, w->value, w->n_values * sizeof *in);
        n += w->n_values;
        if (w->last > end->last) end = &f->wgrad[b->wgrad[i]];
    }
    const char *path = f->g->op[first->op].path;
    if (b->n > 1)
        path = sc_sprintf(f->a, "%s .. %s", path, f->g->op[end->op].path);
    if (!path) return sc_error_nomem(f->err);
    gi_why why = {.path = path,
                  .tensor = "weight grad",
                  .origin = first->origin,
                  .pass = SC_GP_WGRAD,
                  .op = end->op,
                  .stage = b->stage,
                  .of = end->tensor,
                  .what = GP_GRAD_KEPT,
                  .phase = b->once ? GI_ONCE : GI_BACKWARD,
                  .grad = true,
                  .once = b->once};
    uint32_t last = end->last;
    if (b->pack_s > 0) {
        SC_TRY(pack(f, b, end, in, n, &in[n]));
        last = f->prog->value[in[n++]].made;
    }
    for (uint32_t i = 0; i < b->n_moves; i++) {
        bool reduced = b->move[i].coll == SC_ALL_REDUCE;
        gi_coll c = {.coll = b->move[i].coll,
                     .axes = b->move[i].axes,
                     .bytes = b->bytes[i],
                     .out_bytes = b->out[i],
                     .reason = reduced
                                   ? "sums of some samples, wanted whole"
                                   : "sums of some samples, wanted in parts",
                     .in = in,
                     .n_in = n,
                     .bucketed = b->n > 1};
        SC_TRY(gi_collective(f, &why, &c, &item));
        if (!b->once) gi_item_behind(f, item, last);
        in[0] = f->prog->item[item].out;
        n = 1;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        gi_wgrad *w = &f->wgrad[b->wgrad[i]];
        w->n_reduced = 1;
        w->reduced = in;
    }
    return SC_OK;
}

/* The weight on one rank as PyTorch's PowerSGD sees it: its first dim by all
 * others, of each expert. */
static compress_matrix matrix_of(const infer *f, const gi_wgrad *w)
{
    const sc_gtensor *t = &f->g->tensor[w->tensor];
    compress_matrix m = {1, 1, 1};
    bool experts = f->g->op[w->op].type == SC_G_EXPERT;
    for (uint32_t d = 0; d < t->n_dim; d++) {
        double n = (double)t->dim[d].extent *
                   gi_share(f, w->tensor, &w->made, 1u << d);
        if (experts && d == 0)
            m.count = n;
        else if (d == experts)
            m.rows = n;
        else
            m.cols *= n;
    }
    return m;
}

/* Move `m` of a gradient in the format of the wire.  Sums between the parts of
 * one replica stay as they are. */
static sc_status on_the_wire(infer *f, const gi_wgrad *w, double bytes,
                             layout_move *m, compress_wire *out)
{
    const sc_gjob *j = f->job;
    const sc_gtensor *t = &f->g->tensor[w->tensor];
    int tp = sc_strategy_axis(f->s, "tp");
    *out = (compress_wire){.coll = m->coll, .bytes = m->fraction * bytes};
    if (j->compress.kind == SC_GRAD_PLAIN || (tp >= 0 && m->axes >> tp & 1))
        return SC_OK;
    double elements = gi_elements(f, t), ranks = 1;
    for (uint32_t ax = 0; ax < f->s->n_axes; ax++)
        if (m->axes >> ax & 1) ranks *= f->mesh.size[ax];
    compress_by by = {.cost = j->cost,
                      .device = gi_slowest(f, w->stage),
                      .format = j->compress,
                      .wide = bytes / elements};
    compress_matrix x = matrix_of(f, w);
    *out = compress_gradient(&by, &x, m->coll, m->fraction * elements, ranks);
    m->coll = out->coll;
    if (out->residual > 0)
        (void)gi_value(f, (gp_value){.word = {"left by compression"},
                                     .tensor = w->tensor,
                                     .what = GP_RESIDUAL,
                                     .stage = w->stage,
                                     .bytes = out->residual,
                                     .made = SC_NONE});
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

static double limit(const buckets *s)
{
    const infer *f = s->f;
    double bytes =
        f->s->grad_bucket > 0 ? f->s->grad_bucket : f->job->sw->bucket_bytes;
    if (s->closed == 0 && f->rules->first_bucket && f->s->grad_overlap != 0)
        bytes = (double)f->rules->first_bucket;
    return bytes > 0 ? bytes : HUGE_VAL;
}

/* Gradient `i`, the `ready`-th that the backward pass makes. */
static sc_status put(buckets *s, uint32_t i, uint32_t ready)
{
    infer *f = s->f;
    gi_wgrad *w = &f->wgrad[i];
    layout_move m[SC_MESH_AXES];
    uint32_t n = gi_moves(f, w->tensor, &w->made, &w->want, m);
    if (n == 0) {
        w->n_reduced = w->n_values;
        w->reduced = w->value;
        return SC_OK;
    }
    double bytes = gradient_bytes(f, w->tensor);
    layout now = w->made;
    compress_wire wire[SC_MESH_AXES];
    double out[SC_MESH_AXES];
    for (uint32_t k = 0; k < n; k++) {
        layout_move_on(&now, &w->want, &m[k]);
        if (k + 1 == n) now = w->want;
        out[k] = bytes * gi_share(f, w->tensor, &now, ALL_DIMS);
        SC_TRY(on_the_wire(f, w, bytes, &m[k], &wire[k]));
    }
    bucket **at = &s->open;
    while (*at && !same_way(*at, w, m, n)) at = &(*at)->next;
    bucket *b = *at;
    if (!b) {
        b = *at = SC_NEW(f->a, bucket);
        if (!b) return sc_error_nomem(f->err);
        b->stage = w->stage;
        b->once = w->once;
        b->n_moves = n;
        memcpy(b->move, m, n * sizeof *m);
    }
    uint32_t *list = sc_grow(f->a, b->wgrad, b->n, &b->cap, 8, sizeof *list);
    if (!list) return sc_error_nomem(f->err);
    b->wgrad = list;
    list[b->n++] = i;
    b->ready = ready;
    for (uint32_t k = 0; k < n; k++) {
        b->bytes[k] += wire[k].bytes;
        b->out[k] += out[k];
        b->pack_s += wire[k].pack_s;
    }
    double full = limit(s);
    bool beyond = f->rules->buckets_counted_together;
    if (beyond ? b->bytes[0] <= full : b->bytes[0] < full) return SC_OK;
    s->closed++;
    *at = b->next;
    return emit(f, b);
}

/* A queue is served in order: what is complete first goes first. */
static sc_status flush(buckets *s)
{
    while (s->open) {
        bucket **first = &s->open;
        for (bucket **b = &s->open; *b; b = &(*b)->next)
            if ((*b)->ready < (*first)->ready) first = b;
        bucket *done = *first;
        *first = done->next;
        SC_TRY(emit(s->f, done));
    }
    return SC_OK;
}

typedef struct ready {
    uint32_t stage, depth, op, port, wgrad;
    bool scattered;
} ready;

/* By stage; in each as the backward pass makes them, by the way that leads to
 * them or as written; the last weight of an operator first. */
static int by_readiness(const void *x, const void *y)
{
    const ready *a = x, *b = y;
    if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
    if (a->scattered != b->scattered) return a->scattered ? 1 : -1;
    if (a->depth != b->depth) return a->depth < b->depth ? -1 : 1;
    if (a->op != b->op) return a->op > b->op ? -1 : 1;
    return a->port > b->port ? -1 : a->port < b->port;
}

/* Where weights are kept in parts, a unit's gradients leave with it; where only
 * gradients are, so they do in programs without buckets of a size. */
static bool leaves_unit(const infer *f, const ready *a, const ready *b)
{
    const gi_wgrad *w = &f->wgrad[b->wgrad];
    layout_move m[SC_MESH_AXES];
    if (f->rules->exchanges_beside || w->once) return false;
    uint32_t n = layout_sequence(&w->kept, &w->used, &f->mesh, m);
    bool sized = f->s->grad_bucket > 0 || f->job->sw->bucket_bytes > 0;
    bool units = n == 1 ? gi_shards(f, m[0].axes) : n == 0 && !sized;
    /* Behind itself, or what was before it: another instance. */
    return units && (a >= b ||
                     !gi_same_unit(f->g->op[a->op].path, f->g->op[b->op].path));
}

static bool parted(const ready *a, const ready *b)
{
    return a->stage != b->stage || a->scattered != b->scattered;
}

/* `r`, behind `last` (NULL: it is the first). */
static sc_status take(buckets *s, const ready *last, const ready *r,
                      uint32_t place)
{
    if (last && parted(last, r)) {
        SC_TRY(flush(s));
        s->closed = 0;
    } else if (last && leaves_unit(s->f, last, r)) {
        SC_TRY(flush(s));
    }
    return put(s, r->wgrad, place);
}

/* Gradients from `i` on that one instance makes of a run of which the folded
 * program has one of many. */
static uint32_t in_block(const infer *f, const ready *r, uint32_t i)
{
    const gi_wgrad *w = &f->wgrad[r[i].wgrad];
    uint32_t n = 1;
    while (w->times > 1 && i + n < f->n_wgrads && !parted(&r[i], &r[i + n]) &&
           f->wgrad[r[i + n].wgrad].block == w->block)
        n++;
    return n;
}

static sc_status in_buckets(infer *f, const ready *r)
{
    buckets s = {.f = f};
    const ready *last = NULL;
    uint32_t place = 0;
    for (uint32_t i = 0, n; i < f->n_wgrads; i += n) {
        n = in_block(f, r, i);
        for (uint32_t k = 0; k < n * f->wgrad[r[i].wgrad].times; k++) {
            SC_TRY(take(&s, last, &r[i + k % n], place++));
            last = &r[i + k % n];
        }
    }
    return flush(&s);
}

static sc_status reduce_all(infer *f)
{
    ready *r = SC_NEW_N(f->a, ready, f->n_wgrads);
    if (!r) return sc_error_nomem(f->err);
    bool together = f->rules->buckets_counted_together;
    bool last = f->rules->scattered_last;
    for (uint32_t i = 0; i < f->n_wgrads; i++) {
        const gi_wgrad *w = &f->wgrad[i];
        layout_move m[SC_MESH_AXES];
        uint32_t n = layout_sequence(&w->made, &w->want, &f->mesh, m);
        r[i] = (ready){w->stage, together ? f->depth[w->op] : 0,
                       w->op,    w->port,
                       i,        last && n && m[0].coll == SC_REDUCE_SCATTER};
    }
    if (f->n_wgrads) qsort(r, f->n_wgrads, sizeof *r, by_readiness);
    return in_buckets(f, r);
}

/* ---- weights of several stages ------------------------------------------- */

static sc_status tie(infer *f, gi_wgrad **same, uint32_t n)
{
    gi_wgrad *w = same[0];
    uint32_t *stage = SC_NEW_N(f->a, uint32_t, n), n_in = 0, out;
    for (uint32_t i = 0; i < n; i++) n_in += same[i]->n_reduced;
    uint32_t *in = SC_NEW_N(f->a, uint32_t, n_in);
    uint32_t *sums = SC_NEW_N(f->a, uint32_t, n);
    if (!stage || !in || !sums) return sc_error_nomem(f->err);
    n_in = 0;
    for (uint32_t i = 0; i < n; i++) {
        const gi_wgrad *x = same[i];
        stage[i] = x->stage;
        for (uint32_t k = 0; k < x->n_reduced; k++) in[n_in++] = x->reduced[k];
    }
    gi_why why = {.path = f->g->op[w->op].path,
                  .tensor = "weight grad",
                  .origin = w->origin,
                  .pass = SC_GP_UPDATE,
                  .op = w->op,
                  .stage = stage[0],
                  .of = w->tensor,
                  .what = GP_GRAD_KEPT,
                  .phase = GI_ONCE,
                  .grad = true,
                  .once = true};
    /* Buffers of gradients that are whole are summed whole, though an optimizer
     * reads a shard of each (Megatron-Core's finalize_model_grads). */
    double bytes =
        gradient_bytes(f, w->tensor) *
        gi_share(f, w->tensor, w->once ? &w->used : &w->want, ALL_DIMS);
    SC_TRY(gi_tie(f, &why, stage, n, bytes, in, n_in, &out));
    for (uint32_t i = 0; i < n; i++) {
        same[i]->tied = true;
        sums[i] = out + i;
        same[i]->n_reduced = 1;
        same[i]->reduced = &sums[i];
    }
    return SC_OK;
}

static int by_stage(const void *x, const void *y)
{
    const gi_wgrad *a = *(const gi_wgrad *const *)x;
    const gi_wgrad *b = *(const gi_wgrad *const *)y;
    return a->stage < b->stage ? -1 : a->stage > b->stage;
}

static sc_status tie_all(infer *f)
{
    gi_wgrad **same = SC_NEW_N(f->a, gi_wgrad *, f->n_stages);
    uint32_t *last = SC_NEW_N(f->a, uint32_t, f->g->n_tensors);
    if (!same || !last) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < f->n_wgrads; i++) {
        gi_wgrad *w = &f->wgrad[i];
        w->before = last[w->tensor];
        last[w->tensor] = i + 1;
    }
    for (uint32_t i = 0; i < f->n_wgrads && f->n_stages > 1; i++) {
        uint32_t n = 0, k = last[f->wgrad[i].tensor];
        if (f->wgrad[i].tied) continue;
        for (; k; k = f->wgrad[k - 1].before) same[n++] = &f->wgrad[k - 1];
        if (n < 2) continue;
        qsort(same, n, sizeof(gi_wgrad *), by_stage);
        SC_TRY(tie(f, same, n));
    }
    return SC_OK;
}

/* ---- the optimizer ------------------------------------------------------- */

/* Gathers of new weights over one communicator are one. */
typedef struct gathering {
    struct gathering *next;
    uint32_t stage, axes, n, cap;
    uint32_t *value;
    gi_why why;
    double bytes;
} gathering;

static sc_status gather_later(infer *f, gathering **list, const gi_why *w,
                              const layout_move *m, double bytes, uint32_t v)
{
    gathering *g = *list;
    while (g && (g->stage != w->stage || g->axes != m->axes)) g = g->next;
    if (!g) {
        g = SC_NEW(f->a, gathering);
        if (!g) return sc_error_nomem(f->err);
        *g = (gathering){
            .next = *list, .stage = w->stage, .axes = m->axes, .why = *w};
        *list = g;
    }
    uint32_t *grown = sc_grow(f->a, g->value, g->n, &g->cap, 16, sizeof *grown);
    if (!grown) return sc_error_nomem(f->err);
    g->value = grown;
    grown[g->n++] = v;
    g->bytes += bytes;
    return SC_OK;
}

/* Of the states of one element: what the program keeps of Adam's two fp32
 * moments and master weights; others have one moment. */
static double state_bytes(const infer *f)
{
    const char *o = f->job->optimizer;
    bool two = !o || strcmp(o, "adam") == 0 || strcmp(o, "lamb") == 0;
    bool low = sc_value_bytes(f->job->precision) < 4;
    if (gi_has_masters(f)) return f->job->sw->optim_bytes - (two ? 0 : 4);
    return (two ? 8 : 4) + (low ? 4 : 0);
}

int gi_state_tier(const infer *f, uint32_t op)
{
    bool said;
    int tier = gi_tier(f, op, SC_RT_OPTIM, &said);
    return said || f->s->optimizer_tier < 0 ? tier : f->s->optimizer_tier;
}

static sc_status update(infer *f, const gi_wgrad *w, gathering **later)
{
    const sc_gtensor *t = &f->g->tensor[w->tensor];
    const char *path = f->g->op[w->op].path;
    double share = gi_share(f, w->tensor, &w->state, ALL_DIMS);
    double state = state_bytes(f) * gi_elements(f, t) * share *
                   gi_turn_share(f, w->op, true);
    uint32_t *in = SC_NEW_N(f->a, uint32_t, (size_t)w->n_reduced + 1);
    int tier = gi_state_tier(f, w->op);
    sc_price price;
    if (!in) return sc_error_nomem(f->err);
    if (w->n_reduced) memcpy(in, w->reduced, w->n_reduced * sizeof *in);
    uint32_t kept = gi_value(f, (gp_value){.word = {path, t->name, "state"},
                                           .tensor = w->tensor,
                                           .what = GP_STATE,
                                           .tier = (uint8_t)tier,
                                           .stays = true,
                                           .stage = w->stage,
                                           .bytes = state,
                                           .copies = gi_copies(f, &w->state),
                                           .made = SC_NONE});
    gi_why why = {.path = path,
                  .tensor = t->name,
                  .origin = w->origin,
                  .pass = SC_GP_UPDATE,
                  .op = w->op,
                  .stage = w->stage,
                  .of = w->tensor,
                  .what = GP_STATE,
                  .phase = GI_ONCE,
                  .once = true};
    in[w->n_reduced] = kept;
    SC_TRY(gi_compute_turn(f, w->op, SC_GP_UPDATE, w->port, 1 / share, &price));
    SC_TRY(gi_note(f, w->op, SC_GP_UPDATE, price.seconds));
    layout_move m[SC_MESH_AXES];
    uint32_t n = gi_moves(f, w->tensor, &w->state, &w->kept, m);
    gp_item it = {.pass = SC_GP_UPDATE,
                  .cat = SC_CAT_OPTIMIZER,
                  .stage = w->stage,
                  .to = SC_NONE,
                  .op = w->op,
                  .exchange = SC_NONE,
                  .once = true,
                  .price = price,
                  .n_in = w->n_reduced + 1,
                  .out = SC_NONE};
    if (n > 0)
        it.out = gi_value(f, (gp_value){.word = {path},
                                        .tensor = w->tensor,
                                        .what = GP_WEIGHT_NEW,
                                        .stage = w->stage,
                                        .bytes = gi_held(f, t, &w->state)});
    (void)gi_item(f, it, in, GI_ONCE);
    why.what = GP_WEIGHT_NEW;
    for (uint32_t i = 0; i < n; i++)
        SC_TRY(gather_later(f, later, &why, &m[i],
                            w->times * m[i].fraction * gi_bytes(f, t), it.out));
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

sc_status gi_gradients(infer *f)
{
    gathering *later = NULL;
    SC_TRY(reduce_all(f));
    SC_TRY(tie_all(f));
    for (uint32_t i = 0; i < f->n_wgrads; i++) {
        f->times = f->wgrad[i].times;
        f->block = f->wgrad[i].block;
        SC_TRY(update(f, &f->wgrad[i], &later));
    }
    f->times = 1;
    f->block = 0;
    for (; later; later = later->next) {
        uint32_t item;
        later->why.tensor = "new weights";
        gi_coll c = {.coll = SC_ALL_GATHER,
                     .axes = later->axes,
                     .bytes = later->bytes,
                     .out_bytes = later->bytes,
                     .reason = "updated in parts, kept whole",
                     .in = later->value,
                     .n_in = later->n,
                     .bucketed = later->n > 1};
        SC_TRY(gi_collective(f, &later->why, &c, &item));
    }
    return SC_OK;
}
