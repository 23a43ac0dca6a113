/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast_chunk.c - computes what all passes of a chunk of layers have in common,
 * and divides their time into categories.
 */
#include "plan/plan_buckets.h"
#include "plan/plan_segment.h"
#include "predict/fast.h"

#include <math.h>
#include <string.h>

/* The exchanges of the bucket that is ready first, which it closes; of a bucket
 * that the next layer fills, the fraction that is this layer's. */
static double rest_issued(const fast_engine *x, plan_buckets *s)
{
    plan_bucket b = plan_bucket_close(s, plan_bucket_first(s));
    const sc_gradient *g = b.own;
    return g->n * (x->units ? 1 : b.bytes[0] / x->full);
}

/* Counts the exchanges of a layer's gradients; each bucket holds several
 * gradients. */
static double gradients_issued(const fast_engine *x, const sc_segment *b)
{
    double n = 0;
    plan_bucket room[SC_MOVED], *to;
    plan_buckets s = {.full = x->full, .room = SC_MOVED, .open = room};
    for (uint32_t i = 0; i < b->n_gradients; i++) {
        sc_gradient *g = &b->gradient[i];
        while (!(to = plan_bucket_of(&s, plan_bucket_way(g))))
            n += rest_issued(x, &s);
        to->own = g;
        if (!plan_bucket_add(&s, to, g->bytes, g->n, i)) continue;
        plan_bucket_close(&s, to);
        n += g->n;
    }
    while (s.n) n += rest_issued(x, &s);
    return n;
}

/* Counts what the host issues in a pass of a chunk: exchanges of weights and
 * gradients, and kernels that cast or compress gradients. */
static double moves_issued(const fast_engine *x, const fast_chunk *l, bool bwd)
{
    const sc_run *r = &x->p->run;
    bool root = false;
    double n = 0;
    if (r->sw->capture != SC_CAPTURE_NONE) return 0;
    for (uint32_t k = 0; k < (bwd ? l->n_bwd : l->n); k++) {
        const sc_segment *b = fast_layer(l, bwd, k);
        bool own = !l->root[fast_place(l, bwd, k)] || !root;
        root = root || l->root[fast_place(l, bwd, k)];
        if (own && x->shards) n += l->gathers[bwd][k].seconds > 0;
        if (own && bwd && x->each) n += gradients_issued(x, b);
        /* Without casts they are packed when they are exchanged. */
        bool packs = b->pack_s > 0 && (x->each || b->cast_s > 0);
        if (own && bwd && packs) n += 1;
    }
    return n;
}

/* Seconds that passes wait for copies from another memory. A pass waits for
 * weights that arrive more slowly than it uses them, behind activations that
 * leave. The backward pass waits if activations are still leaving when it
 * begins, and for what arrives more slowly than it needs it. */
static void copies_wait(fast_chunk *l)
{
    double out = 0, in = 0, forward = 0, first = 0, rest = 0, fetch = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        out += l->layer[k]->out_s;
        fetch += l->layer[k]->away * l->layer[k]->fetch_s[0];
        forward += l->layer[k]->fwd_s;
    }
    l->fwd_copies = fetch > 0 ? fast_larger(0, out + fetch - forward) : 0;
    for (uint32_t k = 0; k < l->n_bwd; k++) {
        const sc_segment *b = fast_layer(l, true, k);
        in += b->in_s + b->away * b->fetch_s[1];
        if (in > 0)
            rest += b->bwd_s;
        else
            first += b->bwd_s;
    }
    l->copies = fast_larger(0, in - rest);
    if (fetch <= 0) l->copies += fast_larger(0, out - forward - first);
}

/* Counts the transfers to neighbours that a virtual stage issues after a
 * pass. */
static double sends(const fast_engine *x, uint32_t v, bool bwd)
{
    const sc_run *r = &x->p->run;
    bool last = bwd ? v == 0 : v + 1 == x->p->n_stages;
    if (last || r->size[SC_AX_PP] == 1) return 0;
    return r->sw->capture == SC_CAPTURE_STEP ? 0 : 1;
}

/* The passes of a virtual stage that wait for a transfer of another device. */
static uint8_t receives(const fast_engine *x, uint32_t v)
{
    const sc_run *r = &x->p->run;
    uint32_t own = sc_run_device(r, v, 0);
    bool fwd = v > 0 && sc_run_device(r, v - 1, 0) != own;
    bool bwd = v + 1 < x->p->n_stages && sc_run_device(r, v + 1, 0) != own;
    return (uint8_t)(fwd | bwd << 1);
}

/* What a pass of a virtual stage issues besides kernels of its layers and their
 * exchanges: a stage that receives a transfer in parts gathers them over TP. */
static sc_span besides(const fast_engine *x, const fast_chunk *l, uint32_t v,
                       bool bwd)
{
    const sc_run *r = &x->p->run;
    uint32_t tp = r->size[SC_AX_TP];
    bool gathers = sends(x, v, !bwd) > 0 && sc_run_gathers_sent(r);
    return (sc_span){.launches =
                         moves_issued(x, l, bwd) + sends(x, v, bwd) + gathers,
                     .members = gathers ? tp : 0};
}

/* Computes the seconds that the host and copies to it add to each pass of a
 * chunk, which is virtual stage `v`. */
static void chunk_host(const fast_engine *x, uint32_t v, const sc_issue **room,
                       fast_chunk *l)
{
    const sc_run *r = &x->p->run;
    if (l->n == 0) return;
    sc_span fwd = besides(x, l, v, false), bwd = besides(x, l, v, true);
    sc_host_rate host = sc_plan_host_rate(
        r->cost, r->sw,
        sc_plan_stages_apart(r->hw, r->size[SC_AX_PP], x->p->stride[SC_AX_PP]));
    double blocked = r->launch_blocking ? r->cost->p[SC_P_BLOCKING] : 0;
    for (uint32_t k = 0; k < l->n; k++) room[k] = &l->layer[k]->fwd_issue;
    l->fwd_host =
        sc_plan_host_seconds(&host, room, l->n, &fwd) + blocked * fwd.launches;
    for (uint32_t k = 0; k < l->n_bwd; k++)
        room[k] = &fast_layer(l, true, k)->bwd_issue;
    double s = sc_plan_host_seconds(&host, room, l->n_bwd, &bwd) +
               blocked * bwd.launches;
    bool weights = l->n_bwd > 0 && room[l->n_bwd - 1]->weights;
    l->w_host = weights ? s : 0;
    copies_wait(l);
    l->fwd_host += l->fwd_copies;
    l->x_host = (weights ? 0 : s) + l->copies;
}

/* Seconds by which transfers lengthen the exchanges of the first layers of a
 * pass, because the result of the pass before it is sent meanwhile. */
static double beside_sent(const fast_engine *x, const fast_chunk *l,
                          uint32_t dev, bool bwd)
{
    const sc_step_costs *c = &x->c[dev];
    fast_queue sent = {.end = c->send.seconds,
                       .use = {c->send.use[0], c->send.use[1]},
                       .rate = c->send.rate};
    double t = 0;
    if (l->join[bwd] > 0) t = c->join.seconds + fast_beside(&sent, &c->join, 0);
    double lost = t - l->join[bwd];
    for (uint32_t k = 0; k < (bwd ? l->n_bwd : l->n) && t < sent.end; k++) {
        const sc_segment *b = fast_layer(l, bwd, k);
        double start = t;
        for (uint32_t i = 0; i < b->n_contenders[bwd]; i++) {
            const sc_contender *own = &b->contender[bwd][i];
            double more = fast_beside(&sent, own, start + own->from);
            start += more;
            lost += more;
        }
        t = start + (bwd ? b->bwd_s : b->fwd_s);
    }
    return lost;
}

/* The same for a layer's exchanges and transfers that arrive at any time of a
 * pass, in `fraction` of it. */
static double beside_received(const sc_contender *transfer, const sc_segment *b,
                              bool bwd, double fraction)
{
    double lost = 0;
    const double *use = transfer->use;
    for (uint32_t i = 0; i < b->n_contenders[bwd]; i++) {
        const sc_contender *own = &b->contender[bwd][i];
        fast_queue got = {INFINITY, {use[0], use[1]}, transfer->rate};
        double more = fast_beside(&got, own, 0);
        double all = own->seconds - own->latency + more;
        /* it is as slow as this in `fraction` of its time */
        if (more > 0)
            lost += fraction * more * (all - more) / (all - fraction * more);
    }
    return lost;
}

static double all_received(const fast_engine *x, const fast_chunk *l,
                           uint32_t dev, bool bwd, double fraction)
{
    double sum = 0, one = 0;
    const sc_segment *last = NULL;
    for (uint32_t k = 0; k < (bwd ? l->n_bwd : l->n); k++) {
        const sc_segment *b = fast_layer(l, bwd, k);
        if (b != last) one = beside_received(&x->c[dev].send, b, bwd, fraction);
        sum += one;
        last = b;
    }
    return sum;
}

/* Adds the time by which transfers between stages lengthen passes of a chunk. */
static void chunk_shares(const fast_engine *x, uint32_t dev, fast_chunk *l)
{
    double arrive = (l->receives & 1) + (l->receives >> 1);
    double pass = l->f + l->b;
    if (x->p->run.size[SC_AX_PP] == 1 || pass <= 0) return;
    double fraction = fmin(1, arrive * x->c[dev].send.seconds / pass);
    for (int bwd = 0; bwd < 2; bwd++) {
        l->shared[bwd] = all_received(x, l, dev, bwd, fraction);
        if (!x->c[dev].send_blocks)
            l->shared[bwd] += beside_sent(x, l, dev, bwd);
    }
    l->f += l->shared[0];
    l->b += l->shared[1];
}

/* ZeRO-2 keeps what the forward pass gathered, the backward pass of an embedding
 * table needs no weights, and the root unit is gathered at once. */
static sc_contender gather_of(const fast_engine *x, const fast_chunk *l,
                              bool bwd, uint32_t k)
{
    uint32_t at = fast_place(l, bwd, k);
    if (bwd && (x->p->run.zero < 3 || l->kind[at] == SC_LAYER_EMBED))
        return (sc_contender){0};
    if (!l->root[at]) return fast_load_of(&l->layer[at]->gather);
    for (uint32_t i = 0; i < at; i++)
        if (l->root[i]) return (sc_contender){0};
    sc_exchange root = {0};
    for (uint32_t i = at; !bwd && i < l->n; i++) {
        const sc_exchange *own = &l->layer[i]->gather;
        if (!l->root[i]) continue;
        root.seconds += own->seconds;
        root.latency += own->latency;
        root.bytes += own->bytes;
        for (int s = 0; s < 2; s++) root.link_s[s] += own->link_s[s];
    }
    return fast_load_of(&root);
}

static bool list_gathers(const fast_engine *x, fast_chunk *l, sc_arena *a)
{
    for (int bwd = 0; x->shards && bwd < 2; bwd++) {
        l->gathers[bwd] = SC_NEW_N(a, sc_contender, l->n);
        if (!l->gathers[bwd]) return false;
        for (uint32_t k = 0; k < l->n; k++)
            l->gathers[bwd][k] = gather_of(x, l, bwd, k);
    }
    return true;
}

static sc_status chunk_open(fast_engine *x, uint32_t c, sc_arena *a,
                            sc_err *err)
{
    const sc_run *r = &x->p->run;
    uint32_t dev = c / x->chunks, n_frozen = 0;
    uint32_t v = sc_run_stage(r, dev, c % x->chunks);
    const sc_segment *own = sc_plan_segments(x->p, x->segments, dev);
    fast_chunk *l = &x->chunk[c];
    *l = (fast_chunk){.n = sc_plan_stage_layers(x->p, v),
                      .update = SC_NEW(a, sc_exchange)};
    l->layer = SC_NEW_N(a, const sc_segment *, l->n);
    l->kind = SC_NEW_N(a, uint8_t, l->n);
    l->root = SC_NEW_N(a, bool, l->n);
    const sc_issue **room = SC_NEW_N(a, const sc_issue *, l->n);
    if (!l->layer || !l->kind || !l->root || !l->update || !room)
        return sc_error_nomem(err);
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t entry = sc_plan_stage_entry(x->p, v, k);
        const sc_segment *b = &own[entry];
        l->layer[k] = b;
        l->kind[k] = (uint8_t)r->model->layer[entry % r->model->n_layers].kind;
        l->root[k] = l->kind[k] != SC_LAYER_BLOCK && r->sw->root_group &&
                     b->gather.bytes > 0;
        n_frozen += n_frozen == k && b->frozen_below;
    }
    for (uint32_t k = 0; k < l->n; k++)
        for (uint32_t i = 0; i < l->layer[k]->update.n; i++) {
            const sc_moved *m = &l->layer[k]->update.moved[i];
            plan_exchange_add(l->update, m->axes, m->coll, m->bytes);
        }
    SC_TRY(plan_exchange_price(x->p, l->update, err));
    l->n_bwd = l->n - n_frozen;
    if (!list_gathers(x, l, a)) return sc_error_nomem(err);
    chunk_host(x, v, room, l);
    l->receives = receives(x, v);
    for (int bwd = 0; bwd < 2; bwd++)
        l->join[bwd] = l->receives >> bwd & 1 ? x->c[dev].join.seconds : 0;
    l->f = l->fwd_host + l->join[0];
    l->w = l->w_host;
    l->b = l->x_host + l->w_host + l->join[1];
    for (uint32_t k = 0; k < l->n; k++) {
        const sc_segment *b = l->layer[k];
        double pack = x->stays_gathered && k >= n_frozen ? b->pack_s : 0;
        l->f += b->fwd_s;
        l->b += b->bwd_s + pack;
        l->w += b->w_s + pack;
    }
    chunk_shares(x, dev, l);
    return SC_OK;
}

/* Whether all layers of a pass gather their weights, or none does. */
static bool gathers_alike(const fast_chunk *l, bool bwd, uint32_t n)
{
    const sc_contender *of = l->gathers[bwd];
    for (uint32_t k = 1; of && k < n; k++)
        if ((of[k].seconds > 0) != (of[0].seconds > 0)) return false;
    return true;
}

/* `own` chunks differ from each other. */
static sc_status seen_open(fast_engine *x, uint32_t chunks, uint32_t own,
                           sc_arena *a, sc_err *err)
{
    uint32_t n = FAST_SEEN * 2 * SC_N_PASSES * own;
    uint32_t gates = fast_gates(x), view = 2 * FAST_VIEW + 3 * gates;
    x->seen = SC_NEW_N(a, fast_seen, n);
    double *v = SC_RAW_N(a, double, (size_t)n *view);
    if (!x->seen || !v) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++, v += view) {
        x->seen[i].after = v;
        x->seen[i].before = v + FAST_VIEW + gates;
    }
    for (uint32_t i = 0; i < x->p->run.size[SC_AX_PP]; i++)
        x->device[i].n = SC_COUNT(x->device[i].end);
    for (uint32_t c = 0; c < chunks; c++) {
        fast_chunk *l = &x->chunk[c];
        for (uint32_t k = 0; k < l->n; k++)
            x->long_ago =
                fast_larger(x->long_ago, 4 * (FAST_VIEW + gates) *
                                             l->layer[k]->gather.seconds);
        l->alike_f = gathers_alike(l, false, l->n);
        l->alike_b = gathers_alike(l, true, l->n_bwd);
    }
    return SC_OK;
}

/* The first chunk whose layers and devices are like those of `c`; `c` itself if
 * there is none. */
static uint32_t first_like(const fast_engine *x, uint32_t c)
{
    const sc_plan *p = x->p;
    uint32_t dev = c / x->chunks;
    uint32_t v = sc_run_stage(&p->run, dev, c % x->chunks);
    uint8_t gets = receives(x, v);
    for (uint32_t k = 0; k < c; k++) {
        uint32_t other = k / x->chunks;
        uint32_t w = sc_run_stage(&p->run, other, k % x->chunks);
        if (x->chunk[k].like == k && x->chunk[k].receives == gets &&
            x->c[dev].send.seconds == x->c[other].send.seconds &&
            (!p->kind || p->kind[dev] == p->kind[other]) &&
            sc_plan_stages_alike(p, v, w))
            return k;
    }
    return c;
}

sc_status fast_open(fast_engine *x, sc_arena *a, sc_err *err)
{
    const sc_run *r = &x->p->run;
    bool dp = sc_run_dp(r) * r->size[SC_AX_CP] > 1;
    double replicas = (double)sc_run_dp(r) * r->size[SC_AX_CP];
    uint32_t n = r->size[SC_AX_PP] * x->chunks, own = 0;
    x->stays_gathered = sc_run_stays_gathered(r);
    x->shards = sc_run_shards(r) && !x->stays_gathered;
    x->each = r->zero >= 2 && !x->stays_gathered;
    /* tp also sums gradients of parameters that each of its ranks holds */
    x->overlaps = (dp || r->size[SC_AX_TP] > 1) &&
                  (r->sw->grad_overlap || x->stays_gathered);
    x->full =
        sc_software_bucket(r->sw, r->zero >= 3, replicas, r->sw->reduce_bytes);
    x->gathered =
        sc_software_bucket(r->sw, false, replicas, sc_precision_bytes(SC_BF16));
    x->units = x->full <= 0 || sc_run_shards(r);
    x->gathers = dp && (x->stays_gathered ||
                        (r->zero > 0 && !x->shards && r->sw->param_overlap));
    for (uint32_t c = 0; c < n; c++) {
        uint32_t like = first_like(x, c);
        if (like < c)
            x->chunk[c] = x->chunk[like];
        else
            SC_TRY(chunk_open(x, c, a, err));
        x->chunk[c].like = like;
        x->chunk[c].seen = like < c ? x->chunk[like].seen : own++;
    }
    return x->each || x->overlaps ? seen_open(x, n, own, a, err) : SC_OK;
}

/* Divides the time left after kernels, exchanges of layers and the host:
 * slowdown by exchanges, and waiting for them. */
void fast_charge(fast_engine *x, uint32_t dev, uint32_t c, sc_pass pass,
                 double seconds)
{
    const fast_chunk *l = &x->chunk[c];
    bool back = pass == SC_BWD || pass == SC_BWD_X;
    double *cat = x->cat[dev], join = fast_of(l->join, pass), pack = 0;
    double sum = fast_host(l, pass) + join + fast_of(l->shared, pass);
    cat[SC_CAT_TP] += join;
    cat[SC_CAT_PP] += fast_of(l->shared, pass);
    for (uint32_t k = 0; k < (pass == SC_FWD ? l->n : l->n_bwd); k++) {
        const sc_segment *b = fast_layer(l, pass != SC_FWD, k);
        const double *of = pass == SC_FWD     ? b->fwd_cat
                           : pass == SC_BWD_W ? b->w_cat
                                              : b->bwd_cat;
        for (uint32_t i = 0; i < SC_N_CATS; i++) {
            double v = of[i] - (pass == SC_BWD_X ? b->w_cat[i] : 0);
            cat[i] += v;
            sum += v;
        }
        if (fast_makes_gradients(pass)) pack += b->pack_s;
    }
    double more = fmax(0, seconds - sum);
    double slowed = fmin(more, x->lost + pack);
    double copies = back ? l->copies : pass == SC_FWD ? l->fwd_copies : 0;
    cat[SC_CAT_HOST] += fast_host(l, pass) - copies;
    cat[SC_CAT_OFFLOAD] += copies;
    cat[SC_CAT_COMPUTE] += slowed;
    cat[SC_CAT_DP] += more - slowed;
}
