/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast.c - the step of segments, by which candidates are ranked: durations
 * composed by the schedule's recurrence.
 *
 * finish(v, mb) = max(finish of the same pass on the neighbouring stage,
 * the device's previous slot) + duration.  Exchanges beside compute are
 * composed layer by layer, those of weights and gradients other than ZeRO-3's
 * each pass in isolation.
 */
#include "predict/internal.h"

#include <math.h>
#include <string.h>

/* What a device has run that shards weights. */
typedef struct past {
    double busy; /* end of its exchanges */
    uint64_t n;  /* layers */
    double end[SC_PREFETCH_MAX + 2];
    double left[2]; /* when buffers of gradients are free */
    bool turn;      /* the next to fill */
} past;

/* A virtual stage on one of its devices. */
typedef struct chunk {
    const sc_segment **layer; /* [n] */
    bool *block;              /* [n] neither embedding nor head */
    uint32_t n, n_bwd;        /* layers; the last ones, which a backward pass
                                 runs */
} chunk;

typedef struct fast {
    const sc_plan *p;
    const sc_segment *segments;
    double sigma;     /* extra time per overlapped time */
    uint32_t chunks;  /* of a device */
    chunk *chunk;     /* [pp * chunks] */
    double *f, *b;    /* [pp * chunks] duration of a closed pass */
    double *w;        /* [pp * chunks] of b, the pass for weights */
    double *gathered; /* [pp] end of the gathers of updated weights */
    bool gathers;     /* they run beside the first forward */
    bool beside;      /* gradients are exchanged beside the last backward */
    double *tail;     /* [pp] exchange left after the latest backward */
    sc_step_costs *c; /* [pp] */
    past *past;       /* [pp] */
} fast;

/* Layers of a virtual stage, as a pass of it runs them. */
static const sc_segment *run_of(const chunk *c, bool bwd, uint32_t k)
{
    return c->layer[bwd ? c->n - 1 - k : k];
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

/* End of the layer that has to be done before the weights of one `ahead`
 * layers from now are gathered. */
static double gate(const past *h, uint32_t depth, uint32_t ahead)
{
    uint64_t back = 1 + depth - ahead;
    return back > h->n ? 0 : h->end[(h->n - back) % SC_COUNT(h->end)];
}

/* Gradients of a layer that leave with a backward pass. */
static double sent_s(const sc_segment *b, bool last)
{
    return b->grad_s + (last ? b->once_s : 0);
}

/* A layer that computes for `c` from `t` on and whose gradients leave behind what
 * does until `*busy`; returns when it is done.  They leave bucket by bucket; where
 * a rank keeps a part of them, they do from two buffers, so that the next is
 * filled when what it held is gone; behind their layer where gathers of the next
 * one's weights share the way. */
static double leave(past *h, const sc_segment *b, bool last, double c, double t,
                    double *busy)
{
    double s = sent_s(b, last);
    bool several = b->bulk > 0 && b->gather_s <= 0;
    uint32_t n = several ? (uint32_t)(b->buckets + 0.5) : 1;
    for (uint32_t i = 0; i < n; i++) {
        double *left = &h->left[h->turn];
        if (b->bulk > 0) t = larger(t, *left);
        t += c / n;
        if (s <= 0) continue;
        *busy = larger(*busy, t) + s / n;
        *left = *busy;
        h->turn = !h->turn;
    }
    return t;
}

/* Of weights before a pass; what the forward pass of ZeRO-2 gathered is there. */
static double gather_s(const fast *x, const sc_segment *b, bool bwd)
{
    return bwd && x->p->run.zero < 3 ? 0 : b->gather_s;
}

/* Weights in shards: per layer compute beside the exchanges of its neighbours,
 * those of earlier passes included.  What overlaps slows both. */
static double zero3(fast *x, const chunk *l, uint32_t dev, sc_pass pass,
                    bool last, double start)
{
    bool bwd = pass != SC_FWD;
    uint32_t n = bwd ? l->n_bwd : l->n, next = 0;
    uint32_t depth = (uint32_t)x->p->run.sw->prefetch;
    past *h = &x->past[dev];
    double t = start, busy = h->busy, ready[SC_PREFETCH_MAX + 1] = {0};
    for (uint32_t k = 0; k < n; k++) {
        const sc_segment *b = run_of(l, bwd, k);
        for (; next < n && next <= k + depth; next++) {
            double s = gather_s(x, run_of(l, bwd, next), bwd);
            if (s > 0) busy = larger(busy, gate(h, depth, next - k)) + s;
            ready[next % (depth + 1)] = s > 0 ? busy : 0;
        }
        double c = bwd ? b->bwd_s + b->pack_s : b->fwd_s;
        if (pass == SC_BWD_X) c -= b->w_s + b->pack_s;
        double from = larger(t, ready[k % (depth + 1)]);
        /* Only kernels are slowed, among which the rest of a layer lies. */
        double own = (bwd ? b->bwd_cat : b->fwd_cat)[SC_CAT_COMPUTE];
        if (pass == SC_BWD_X) own -= b->w_cat[SC_CAT_COMPUTE];
        double over = smaller(c, larger(0, busy - from));
        double slow = over > 0 ? x->sigma * own * over / c : 0;
        for (uint32_t i = k + 1; i < next; i++) {
            double *r = &ready[i % (depth + 1)];
            *r += x->sigma * smaller(own, larger(0, *r - from));
        }
        busy += slow;
        t = pass == SC_BWD ? leave(h, b, last, c + slow, from, &busy)
                           : from + c + slow;
        h->end[h->n++ % SC_COUNT(h->end)] = t;
    }
    h->busy = busy;
    x->tail[dev] = bwd ? larger(0, busy - t) : 0;
    return t - start;
}

/* The weight pass needs no weights, and leaves gradients to be scattered. */
static double late_zero3(fast *x, const chunk *l, uint32_t dev, bool last,
                         double start)
{
    past *h = &x->past[dev];
    double t = start;
    for (uint32_t k = 0; k < l->n_bwd; k++) {
        const sc_segment *b = run_of(l, true, k);
        double own = b->w_cat[SC_CAT_COMPUTE] + b->pack_s;
        double c = b->w_s + b->pack_s +
                   x->sigma * smaller(own, larger(0, h->busy - t));
        t = leave(h, b, last, c, t, &h->busy);
    }
    x->tail[dev] = larger(0, h->busy - t);
    return t - start;
}

/* Weights are gathered from the start of the step on, beside whatever runs:
 * only what is not there when a layer needs it is waited for. */
static double first_forward(fast *x, const chunk *l, uint32_t dev, double start)
{
    double t = start, gathered = x->gathered[dev], busy = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        const sc_segment *b = l->layer[k];
        gathered += b->update_s;
        t = larger(t, gathered) + b->fwd_s;
        busy += b->fwd_s;
    }
    double beside = smaller(busy, larger(0, gathered - start));
    x->gathered[dev] = gathered;
    return t + x->sigma * beside - start;
}

/* A backward pass whose gradients leave in parts, behind what leaves until
 * `busy`; `split`: for weights alone. */
static double parts_backward(fast *x, const chunk *l, uint32_t dev, bool split,
                             bool last, double start, double busy)
{
    double t = start;
    past *h = &x->past[dev];
    for (uint32_t k = 0; k < l->n_bwd; k++) {
        const sc_segment *b = run_of(l, true, k);
        double own = (split ? b->w_cat : b->bwd_cat)[SC_CAT_COMPUTE];
        double c = (split ? b->w_s : b->bwd_s) + b->pack_s;
        c += x->sigma * smaller(own + b->pack_s, larger(0, busy - t));
        t = leave(h, b, last, c, t, &busy);
    }
    x->tail[dev] = larger(0, busy - t);
    return t - start;
}

/* Gradients that leave together, each bucket when it is full. */
typedef struct buckets {
    double full;          /* bytes */
    double bytes, s;      /* of the one that is filled, without what each has */
    double least;         /* seconds that each has, whatever its bytes */
    double free_at, sent; /* end, and seconds, of all that left */
} buckets;

static void bucket_leaves(buckets *k, double at)
{
    if (k->bytes <= 0) return;
    double s = k->s + k->least;
    k->free_at = larger(k->free_at, at) + s;
    k->sent += s;
    k->bytes = k->s = 0;
}

/* A block's gradients come all through its backward pass, which takes `seconds`
 * and ends at `to`; a table's is one tensor. */
static void add_gradients(buckets *k, const sc_segment *b, bool block,
                          double seconds, double to)
{
    double left = b->grad_bytes, least = smaller(b->grad_least_s, b->grad_s);
    double each = left > 0 ? (b->grad_s - least) / left : 0;
    k->least = larger(k->bytes > 0 ? k->least : 0, least);
    while (block && k->full > 0 && k->bytes + left > k->full) {
        double part = larger(0, k->full - k->bytes);
        left -= part;
        k->bytes += part;
        k->s += part * each;
        bucket_leaves(k, to - seconds * left / b->grad_bytes);
    }
    k->bytes += left;
    k->s += left * each;
    if (k->bytes >= k->full) bucket_leaves(k, to);
}

/* With the exchanges of gradients that it makes; `split`: for weights alone. */
static double last_backward(fast *x, const chunk *l, uint32_t dev, bool split,
                            double behind)
{
    const sc_run *r = &x->p->run;
    double replicas = (double)sc_run_dp(r) * r->size[SC_AX_CP];
    double t = 0, own = 0; /* kernels: only they are slowed */
    buckets all = {.full = sc_software_bucket(r->sw, r->zero >= 3, replicas,
                                              r->sw->reduce_bytes),
                   .free_at = behind};
    for (uint32_t k = 0; k < l->n_bwd; k++) {
        const sc_segment *b = run_of(l, true, k);
        double s = (split ? b->w_s : b->bwd_s) + b->pack_s;
        t += s;
        own += (split ? b->w_cat : b->bwd_cat)[SC_CAT_COMPUTE] + b->pack_s;
        add_gradients(&all, b, l->block[l->n - 1 - k], s, t);
    }
    bucket_leaves(&all, t);
    double tail = larger(0, all.free_at - t);
    double beside = smaller(own, larger(0, behind + all.sent - tail));
    /* Both run slower while they overlap. */
    x->tail[dev] = tail;
    return t + x->sigma * beside;
}

static sc_status chunk_new(fast *x, uint32_t c, sc_arena *a, sc_err *err)
{
    uint32_t dev = c / x->chunks;
    uint32_t v = sc_run_stage(&x->p->run, dev, c % x->chunks), still = 0;
    const sc_segment *own = sc_plan_segments(x->p, x->segments, dev);
    chunk *l = &x->chunk[c];
    l->n = sc_plan_stage_layers(x->p, v);
    l->layer = SC_NEW_N(a, const sc_segment *, l->n);
    l->block = SC_NEW_N(a, bool, l->n);
    if (!l->layer || !l->block) return sc_error_nomem(err);
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t entry = sc_plan_stage_entry(x->p, v, k);
        const sc_segment *b = &own[entry];
        l->block[k] = x->p->run.model->layer[entry].kind == SC_LAYER_BLOCK;
        l->layer[k] = b;
        still += still == k && b->still;
        x->f[c] += b->fwd_s;
        x->b[c] += b->bwd_s;
        x->w[c] += b->w_s;
    }
    l->n_bwd = l->n - still;
    return SC_OK;
}

static sc_status durations(fast *x, sc_arena *a, sc_err *err)
{
    const sc_run *r = &x->p->run;
    bool dp = sc_run_dp(r) * r->size[SC_AX_CP] > 1, shards = sc_run_shards(r);
    /* tp, too, sums gradients of what each of its ranks has */
    bool sums = dp || r->size[SC_AX_TP] > 1;
    x->beside = sums && !shards && r->sw->grad_overlap;
    x->gathers = dp && r->zero > 0 && !shards && r->sw->param_overlap;
    for (uint32_t c = 0; c < r->size[SC_AX_PP] * x->chunks; c++)
        SC_TRY(chunk_new(x, c, a, err));
    return SC_OK;
}

typedef struct sweep {
    double *done_f, *done_b; /* [n_stages * ga], < 0: not yet */
    double *at;              /* [pp] clock of each device */
    double *grad;            /* [pp] end of exchanges beside compute */
    uint32_t *pos, *n_order; /* [pp] */
    sc_slot **order;         /* [pp] */
    /* of the chunks of each device */
    uint32_t chunks;
    uint32_t *first, *last, *stage; /* [pp * chunks] sc_schedule_ends() */
    bool *up, *down; /* [pp * chunks] the next stage, and the one before, are on
                        other devices */
    bool *idle;      /* [n_stages] nothing to do in the backward pass */
    bool each_time;  /* gradients are exchanged after every micro-batch */
} sweep;

static double duration(fast *x, const sweep *s, const sc_slot *o, uint32_t dev,
                       double start)
{
    const sc_run *r = &x->p->run;
    uint32_t c = dev * s->chunks + o->chunk;
    const chunk *l = &x->chunk[c];
    sc_pass pass = (sc_pass)o->pass;
    bool grads = pass == SC_BWD || pass == SC_BWD_W, split = pass == SC_BWD_W;
    bool last = o->mb == s->last[c];
    if (sc_run_shards(r))
        return split ? late_zero3(x, l, dev, last, start)
                     : zero3(x, l, dev, pass, last, start);
    bool exchange = last || s->each_time;
    if (grads && exchange && x->beside) /* chunks share a stream */
        return s->each_time
                   ? parts_backward(x, l, dev, split, last, start, s->grad[dev])
                   : last_backward(x, l, dev, split,
                                   larger(0, s->grad[dev] - start));
    if (split) return x->w[c];
    if (pass == SC_BWD_X) return x->b[c] - x->w[c];
    if (pass == SC_BWD) return x->b[c];
    return o->mb == s->first[c] && x->gathers ? first_forward(x, l, dev, start)
                                              : x->f[c];
}

/* A pass for weights: nobody waits for it. */
static bool weight_slot(fast *x, sweep *s, uint32_t dev, const sc_slot *o)
{
    uint32_t c = dev * s->chunks + o->chunk, v = s->stage[c];
    if (!s->idle[v]) {
        double start = s->at[dev];
        double end = start + duration(x, s, o, dev, start);
        bool last = o->mb == s->last[c];
        s->at[dev] = end;
        bool shards = sc_run_shards(&x->p->run);
        if (last || (x->beside && s->each_time) || shards)
            s->grad[dev] = larger(s->grad[dev], end + x->tail[dev]);
    }
    s->pos[dev]++;
    return true;
}

static bool slot(fast *x, sweep *s, uint32_t dev)
{
    const sc_run *r = &x->p->run;
    uint32_t n = x->p->n_stages;
    const sc_slot *o = &s->order[dev][s->pos[dev]];
    if (o->pass == SC_BWD_W) return weight_slot(x, s, dev, o);
    uint32_t c = dev * s->chunks + o->chunk, v = s->stage[c];
    size_t i = (size_t)v * r->ga + o->mb;
    bool bwd = o->pass != SC_FWD;
    double in = 0;
    if (!bwd && v > 0) in = s->done_f[i - r->ga];
    if (bwd) in = v + 1 < n ? s->done_b[i + r->ga] : s->done_f[i];
    if (in < 0 || (bwd && s->done_f[i] < 0)) return false;
    if (bwd && s->idle[v]) { /* nothing to do, nobody waits */
        s->done_b[i] = in;
        s->pos[dev]++;
        return true;
    }
    double start = larger(in, s->at[dev]);
    double end = start + duration(x, s, o, dev, start) + x->c[dev].send_slow_s;
    double sent = end;
    bool last = bwd ? v == 0 || s->idle[v - 1] : v + 1 == n;
    if (!last && (bwd ? s->down : s->up)[c]) sent += x->c[dev].send_s;
    s->at[dev] = x->c[dev].send_blocks ? sent : end;
    bool ends = o->mb == s->last[c];
    if (o->pass == SC_BWD && (ends || (x->beside && s->each_time)))
        s->grad[dev] = larger(s->grad[dev], end + x->tail[dev]);
    (bwd ? s->done_b : s->done_f)[i] = sent;
    s->pos[dev]++;
    return true;
}

/* What the slots of a device's chunks have in common. */
static void chunks_of(const fast *x, uint32_t dev, sweep *s)
{
    const sc_run *r = &x->p->run;
    for (uint32_t k = 0; k < s->chunks; k++) {
        uint32_t c = dev * s->chunks + k, v = sc_run_stage(r, dev, k);
        sc_schedule_ends(s->order[dev], s->n_order[dev], k, &s->first[c],
                         &s->last[c]);
        uint32_t mb = s->first[c];
        s->stage[c] = v;
        s->idle[v] = x->chunk[c].n_bwd == 0;
        s->up[c] = v + 1 < x->p->n_stages && sc_run_device(r, v + 1, mb) != dev;
        s->down[c] = v > 0 && sc_run_device(r, v - 1, mb) != dev;
    }
}

static sc_status sweep_new(const fast *x, sc_arena *a, sweep *s, sc_err *err)
{
    const sc_run *r = &x->p->run;
    uint32_t pp = r->size[SC_AX_PP], chunks = sc_run_chunks(r);
    size_t n = (size_t)x->p->n_stages * r->ga, m = (size_t)pp * chunks;
    *s = (sweep){.done_f = SC_NEW_N(a, double, n),
                 .done_b = SC_NEW_N(a, double, n),
                 .at = SC_NEW_N(a, double, pp),
                 .grad = SC_NEW_N(a, double, pp),
                 .pos = SC_NEW_N(a, uint32_t, pp),
                 .n_order = SC_NEW_N(a, uint32_t, pp),
                 .order = SC_NEW_N(a, sc_slot *, pp),
                 .chunks = chunks,
                 .first = SC_NEW_N(a, uint32_t, m),
                 .last = SC_NEW_N(a, uint32_t, m),
                 .stage = SC_NEW_N(a, uint32_t, m),
                 .up = SC_NEW_N(a, bool, m),
                 .down = SC_NEW_N(a, bool, m),
                 .idle = SC_NEW_N(a, bool, x->p->n_stages),
                 .each_time = sc_run_reductions(r) > 1};
    if (!s->done_f || !s->done_b || !s->at || !s->grad || !s->pos ||
        !s->n_order || !s->order || !s->first || !s->last || !s->stage ||
        !s->up || !s->down || !s->idle)
        return sc_error_nomem(err);
    for (size_t i = 0; i < n; i++) s->done_f[i] = s->done_b[i] = -1;
    for (uint32_t dev = 0; dev < pp; dev++) {
        s->order[dev] = SC_NEW_N(a, sc_slot, sc_run_slots(r));
        if (!s->order[dev]) return sc_error_nomem(err);
        s->n_order[dev] = sc_run_order(r, dev, s->order[dev]);
        chunks_of(x, dev, s);
    }
    return SC_OK;
}

/* What the host adds once a step. */
static double host_seconds(const sc_step_costs *c)
{
    return c->host_update_s + c->host_in_s + c->save_copy_s + c->save_write_s;
}

/* End of a device's passes and of the exchanges of its gradients. */
static double device_end(const fast *x, const sweep *s, uint32_t dev)
{
    const sc_step_costs *c = &x->c[dev];
    double sum = c->pack_s + c->grad_s + c->host_out_s;
    return larger(s->at[dev] + sum, s->grad[dev]);
}

/* After the pipeline: exchanges, tied weights, optimizer. */
static double finish(const fast *x, const sweep *s)
{
    const sc_run *r = &x->p->run;
    uint32_t pp = r->size[SC_AX_PP];
    double norm = 0, after = 0, met = 0, summed = 0;
    for (uint32_t dev = 0; dev < pp; dev++) {
        double sum = x->c[dev].pack_s + x->c[dev].grad_s + x->c[dev].host_out_s;
        double end = device_end(x, s, dev);
        if (dev == 0 || dev == pp - 1) met = larger(met, s->at[dev] + sum);
        norm = larger(norm, end);
        after = larger(after, x->c[dev].optimizer_s + x->c[dev].update_s +
                                  x->c[dev].fixed_s + host_seconds(&x->c[dev]));
    }
    if (pp > 1) norm = larger(norm, met + x->c[0].tied_s);
    for (uint32_t dev = 0; dev < pp / 2; dev++) {
        double other = device_end(x, s, pp - 1 - dev);
        if (x->c[dev].mirror_s > 0)
            summed = larger(summed, larger(device_end(x, s, dev), other) +
                                        x->c[dev].mirror_s);
    }
    norm = larger(norm, summed);
    return norm + after;
}

static sc_status compose(fast *x, sc_arena *a, double *step_s, sc_err *err)
{
    const sc_run *r = &x->p->run;
    sweep s;
    SC_TRY(durations(x, a, err));
    SC_TRY(sweep_new(x, a, &s, err));
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t dev = 0; dev < r->size[SC_AX_PP]; dev++)
            while (s.pos[dev] < s.n_order[dev] && slot(x, &s, dev))
                moved = true;
    }
    *step_s = finish(x, &s) * sc_plan_slow_factor(r);
    return SC_OK;
}

sc_status sc_predict_fast(const sc_plan *p, const sc_segment *segments,
                          sc_arena *a, double *step_s, sc_err *err)
{
    uint32_t pp = p->run.size[SC_AX_PP], chunks = sc_run_chunks(&p->run);
    size_t n = (size_t)pp * chunks;
    sc_arena_mark mark = sc_arena_save(a);
    double *d = SC_NEW_N(a, double, 3 * n + 2 * (size_t)pp);
    fast x = {.p = p,
              .segments = segments,
              .sigma = sc_plan_overlap(p, segments),
              .chunks = chunks,
              .chunk = SC_NEW_N(a, chunk, n),
              .c = SC_NEW_N(a, sc_step_costs, pp),
              .past = SC_NEW_N(a, past, pp)};
    if (!d || !x.chunk || !x.c || !x.past) return sc_error_nomem(err);
    x.f = d;
    x.b = d + n;
    x.w = d + 2 * n;
    x.tail = d + 3 * n;
    x.gathered = d + 3 * n + pp;
    sc_status s = SC_OK;
    for (uint32_t dev = 0; dev < pp && s == SC_OK; dev++)
        s = sc_plan_step_costs(p, segments, dev, &x.c[dev], err);
    if (s == SC_OK) s = compose(&x, a, step_s, err);
    sc_arena_restore(a, mark);
    return s;
}
