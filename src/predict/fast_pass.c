/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast_pass.c - computes a pass of a chunk; layer by layer if exchanges of
 * weights and gradients overlap it.
 *
 * Kernels and exchanges that overlap slow each other. Gathers of weights and
 * exchanges of gradients have separate queues.  They share links with each other
 * and with exchanges of the layers.
 */
#include "plan/plan_buckets.h"
#include "plan/plan_segment.h"
#include "predict/fast_scene.h"

#include <math.h>
#include <string.h>

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

/* ---- queues -------------------------------------------------------------- */

static void all_stretched(fast_scene *s, uint32_t which, const fast_stretch *o)
{
    fast_queue *queue = which ? &s->d->grads : &s->d->gathers;
    queue->end = fast_stretched(o, queue->end);
    for (uint32_t i = 0; which && i < 2; i++)
        s->d->left[i] = fast_stretched(o, s->d->left[i]);
    for (uint32_t i = 0; !which && i < s->n_ready; i++)
        s->ready[i] = fast_stretched(o, s->ready[i]);
}

/* The exchanges in the next `c` seconds of a layer share links with queues.
 * Returns the seconds that they lose.  Not inlined, because run() is called
 * most, and rarely needs it. */
__attribute__((noinline)) static double share(fast_scene *s, double c)
{
    fast_queue *queue[] = {&s->d->gathers, &s->d->grads};
    double lost = 0, from = s->done;
    s->done += c;
    for (; s->n_contenders && s->contender->from < s->done; s->contender++) {
        double at = s->t + lost + s->contender->from - from;
        s->n_contenders--;
        for (uint32_t i = 0; s->contender->from >= from && i < 2; i++) {
            fast_stretch o;
            if (queue[i]->end <= at ||
                !fast_conflict(s->contender->use, queue[i]))
                continue;
            lost += fast_loses(s->contender, queue[i], at, &o);
            all_stretched(s, i, &o);
        }
    }
    return lost;
}

/* Runs a layer of `c` seconds. `own` of them are kernels, which exchanges
 * slow. */
static void run(fast_scene *s, double c, double own)
{
    fast_queue *queue[] = {&s->d->gathers, &s->d->grads};
    double lost = 0, from = s->t;
    if (queue[0]->end <= from && queue[1]->end <= from) {
        s->t += c;
        s->done += c;
        return;
    }
    if (s->n_contenders && (fast_conflict(s->most_use, queue[0]) ||
                            fast_conflict(s->most_use, queue[1])))
        c += share(s, c);
    else
        s->done += c;
    for (uint32_t i = 0; c > 0 && i < 2; i++) {
        double over = smaller(c, queue[i]->end - from);
        if (over <= 0) continue;
        double slow = s->x->sigma * own * over / c;
        queue[i]->end += slow;
        lost = fast_larger(lost, slow);
    }
    for (uint32_t i = 0; lost > 0 && i < s->n_ready; i++)
        if (s->ready[i] > from)
            s->ready[i] +=
                s->x->sigma * own * smaller(1, (s->ready[i] - from) / c);
    s->t += c + lost;
    s->lost += lost;
}

double fast_send(fast_engine *x, uint32_t dev, double at)
{
    const sc_step_costs *c = &x->c[dev];
    fast_device *d = &x->device[dev];
    fast_queue own = {.end = at};
    fast_queue *other = d->grads.end > d->gathers.end ? &d->grads : &d->gathers;
    (void)fast_adds(&own, other, at, &c->send);
    return own.end - at;
}

/* ---- weights ------------------------------------------------------------- */

/* Issues the gather of the `next`-th layer of a pass before the k-th layer
 * runs. */
static void fetch(fast_scene *s, bool bwd, uint32_t next, uint32_t k,
                  uint32_t depth)
{
    fast_device *d = s->d;
    double *to = &s->ready[next % (depth + 1)];
    const sc_contender *load = &s->l->gathers[bwd][next];
    *to = 0;
    if (load->seconds <= 0) return;
    fast_stretch o =
        fast_adds(&d->gathers, &d->grads, fast_gate(d, depth, next - k), load);
    for (uint32_t i = 0; i < 2; i++)
        d->left[i] = fast_stretched(&o, d->left[i]);
    *to = d->gathers.end;
}

/* Seconds of gathering a layer's updated weights. */
static double updated(const fast_chunk *l, const sc_segment *b)
{
    double s = 0;
    for (uint32_t i = 0; i < b->update.n; i++) {
        const sc_moved *m = &b->update.moved[i];
        const sc_moved *all = sc_exchange_over(l->update, m->axes);
        s += all->seconds * m->bytes / all->bytes;
    }
    return s;
}

/* The updated weights are gathered from the start of the step, and a layer
 * waits only for weights that have not arrived. */
static double first_forward(fast_engine *x, const fast_chunk *l, uint32_t dev,
                            double start)
{
    fast_queue *queue = &x->device[dev].gathers;
    double t = start + l->join[0] + l->shared[0], busy = 0, sum = 0,
           all = l->update->seconds;
    double begun = queue->end,
           each = x->stays_gathered || all <= 0
                      ? 0
                      : all * x->gathered / l->update->bytes;
    for (uint32_t k = 0; k < l->n; k++) {
        const sc_segment *b = l->layer[k];
        sum += x->stays_gathered ? b->gather.seconds : updated(l, b);
        /* the layer's last weights arrive with the rest of their bucket */
        double to =
            each > 0 ? smaller(all, each * ceil(sum / each - 1e-9)) : sum;
        t = fast_larger(t, begun + to) + b->fwd_s;
        busy += b->fwd_s;
    }
    queue->end = begun + sum;
    double beside = smaller(busy, fast_larger(0, queue->end - start));
    x->lost = x->sigma * beside;
    return t + l->fwd_host + x->lost - start;
}

/* ---- gradients ----------------------------------------------------------- */

/* Open buckets of gradients. */
typedef struct buckets {
    plan_buckets s;
    plan_bucket room[SC_MOVED];
} buckets;

static void open_none(buckets *k, double full)
{
    k->s = (plan_buckets){.full = full, .room = SC_MOVED, .open = k->room};
}

static bool same_bucket(const sc_gradient *a, const sc_gradient *b)
{
    bool same = a->n == b->n && plan_bucket_way(a) == plan_bucket_way(b);
    for (uint32_t k = 0; same && k < a->n; k++)
        same = a->bytes[k] == b->bytes[k];
    return same;
}

/* Seconds of a bucket's exchanges and their fraction of links; computed
 * once. */
static const fast_price *price_of(fast_engine *x, const sc_gradient *g)
{
    uint32_t i = 0;
    while (i < x->n_prices && !same_bucket(&x->price[i].of, g)) i++;
    if (i < x->n_prices) return &x->price[i];
    if (x->n_prices == FAST_PRICES) i = x->n_prices = 0;
    fast_price *p = &x->price[i];
    sc_exchange all = {0};
    *p = (fast_price){.of = *g};
    for (uint32_t k = 0; k < g->n; k++) {
        sc_coll_price cp = {0};
        double first = 0;
        sc_status s = sc_plan_move_price(x->p, g->axes[k], (sc_coll)g->coll[k],
                                         g->bytes[k], &cp, &first, x->err);
        if (s != SC_OK) x->status = s;
        all.seconds += cp.seconds;
        all.latency += first;
        all.bytes += g->bytes[k];
        all.link_s[0] += cp.link_s[0];
        all.link_s[1] += cp.link_s[1];
    }
    p->load = fast_load_of(&all);
    x->n_prices++;
    return p;
}

static void bucket_leaves(fast_scene *s, buckets *k, plan_bucket *full)
{
    fast_device *d = s->d;
    plan_bucket b = plan_bucket_close(&k->s, full);
    sc_gradient all = *(const sc_gradient *)b.own;
    memcpy(all.bytes, b.bytes, sizeof all.bytes);
    const fast_price *p = price_of(s->x, &all);
    bool between = !s->x->overlaps; /* not overlapped: on the kernels' stream */
    if (between) b.ready = s->t;
    fast_stretch o = fast_adds(&d->grads, &d->gathers, b.ready, &p->load);
    for (uint32_t r = 0; o.both > 0 && r < s->n_ready; r++)
        s->ready[r] = fast_stretched(&o, s->ready[r]);
    if (between) s->t = d->grads.end;
    d->left[d->next_buffer] = d->grads.end;
    d->next_buffer = !d->next_buffer;
}

/* Exchanges buckets in the order in which they are complete. */
static void all_leave(fast_scene *s, buckets *k)
{
    while (k->s.n) bucket_leaves(s, k, plan_bucket_first(&k->s));
}

/* Finds the bucket for a gradient. A new bucket of sharded gradients waits
 * until one of two buffers is free. */
static plan_bucket *bucket_of(fast_scene *s, buckets *k, sc_gradient *g,
                              bool buffers)
{
    uint64_t way = plan_bucket_way(g);
    plan_bucket *b = plan_bucket_of(&k->s, way);
    if (!b) {
        all_leave(s, k);
        b = plan_bucket_of(&k->s, way);
    }
    if (b->own) return b;
    if (buffers) s->t = fast_larger(s->t, s->d->left[s->d->next_buffer]);
    b->own = g;
    return b;
}

/* Runs the backward pass of a layer for `c` seconds, `own` of them kernels,
 * and collects its gradients. */
static void run_gradients(fast_scene *s, const sc_segment *b, double c,
                          double own, buckets *k)
{
    bool casts = b->cast_s > 0;
    bool buffers = b->bulk > 0 && s->x->each;
    double done = 0;
    for (uint32_t i = 0; !casts && i < b->n_gradients; i++) {
        sc_gradient *g = &b->gradient[i];
        const sc_made *made = &b->made[g->weight];
        double from = fast_larger(done, made->from);
        double to = fast_larger(from, made->to);
        run(s, (from - done) * c, (from - done) * own);
        plan_bucket *at = bucket_of(s, k, g, buffers);
        run(s, (to - from) * c, (to - from) * own);
        if (plan_bucket_add(&k->s, at, g->bytes, g->n, s->t))
            bucket_leaves(s, k, at);
        done = to;
    }
    double cast = casts ? b->cast_s : 0;
    run(s, (1 - done) * c - cast, (1 - done) * own - cast);
    for (uint32_t i = 0; casts && i < b->n_gradients; i++) {
        sc_gradient *g = &b->gradient[i];
        plan_bucket *at = bucket_of(s, k, g, buffers);
        (void)plan_bucket_add(&k->s, at, g->bytes, g->n, s->t + cast);
    }
    run(s, cast, cast);
    sc_contender once = fast_load_of(&b->once);
    if (s->last) (void)fast_adds(&s->d->grads, &s->d->gathers, s->t, &once);
}

/* ---- equal layers --------------------------------------------------------- */

/* The state of a device relative to a time: [FAST_VIEW + fast_gates()].
 * Events that are too old to matter become x->long_ago. */
static void view_of(const fast_engine *x, const fast_device *d, double t,
                    double *v)
{
    uint32_t n = fast_gates(x);
    *v++ = fast_larger(d->gathers.end - t, -x->long_ago);
    *v++ = fast_larger(d->grads.end - t, -x->long_ago);
    for (int s = 0; s < 2; s++) *v++ = d->gathers.use[s];
    for (int s = 0; s < 2; s++) *v++ = d->grads.use[s];
    *v++ = FAST_RATE * d->gathers.rate;
    *v++ = FAST_RATE * d->grads.rate;
    *v++ = fast_larger(d->left[d->next_buffer] - t, 0);
    *v++ = fast_larger(d->left[!d->next_buffer] - t, 0);
    for (uint32_t i = 0; i < n; i++)
        *v++ = fast_larger(fast_gate(d, n - 1, i) - t, -x->long_ago);
}

/* Lets `later` seconds pass, in which a device repeats what led to its state at
 * `t`.  What ended long ago stays where it is. */
static void view_moves(const fast_engine *x, fast_device *d, double t,
                       double later)
{
    double *queue[] = {&d->gathers.end, &d->grads.end};
    for (uint32_t i = 0; i < 2; i++) {
        if (*queue[i] - t > -x->long_ago) *queue[i] += later;
        if (d->left[i] > t) d->left[i] += later;
    }
    for (uint32_t i = 1; i <= fast_gates(x); i++) {
        double *end = &d->end[(d->n - i) % SC_COUNT(d->end)];
        if (*end - t > -x->long_ago) *end += later;
    }
}

/* ---- passes -------------------------------------------------------------- */

/* Seconds of a layer's pass, and of its kernels, which exchanges slow. */
static double pass_seconds(const sc_segment *b, sc_pass pass, bool sends,
                           double *own)
{
    double pack = sends ? b->pack_s : 0;
    const double *cat = pass == SC_FWD     ? b->fwd_cat
                        : pass == SC_BWD_W ? b->w_cat
                                           : b->bwd_cat;
    *own = cat[SC_CAT_COMPUTE] + pack;
    if (pass == SC_BWD_X) *own -= b->w_cat[SC_CAT_COMPUTE];
    return pass == SC_FWD     ? b->fwd_s
           : pass == SC_BWD   ? b->bwd_s + pack
           : pass == SC_BWD_X ? b->bwd_s - b->w_s
                              : b->w_s + pack;
}

/* Number of layers after the k-th that are equal and have equal prefetches. */
static uint32_t alike(const fast_scene *s, const fast_walk *w, uint32_t k)
{
    uint32_t same = 0, depth = w->gets ? s->n_ready - 1 : 0;
    const sc_segment *b = fast_layer(s->l, w->bwd, k);
    if ((w->sends && !s->x->units) || s->l->root[fast_place(s->l, w->bwd, k)])
        return 0;
    while (k + same + 1 < w->n && fast_layer(s->l, w->bwd, k + same + 1) == b)
        same++;
    return same > depth ? same - depth : 0;
}

/* If a layer leaves the state as it was, all equal layers after it do so
 * too. Returns the last of these layers. */
static uint32_t skip(fast_scene *s, fast_walk *w, uint32_t k)
{
    uint32_t more = alike(s, w, k), n = FAST_VIEW + fast_gates(s->x);
    uint32_t size = s->n_ready;
    double now[SC_COUNT(w->was)], ready[SC_PREFETCH_MAX + 1];
    if (more == 0) {
        w->known = false;
        return k;
    }
    view_of(s->x, s->d, s->t, now);
    for (uint32_t i = 0; w->gets && i + 1 < size; i++)
        now[n++] = fast_larger(0, s->ready[(k + 1 + i) % size] - s->t);
    if (!w->known || !fast_same_view(now, w->was, n)) {
        memcpy(w->was, now, n * sizeof *now);
        w->known = true;
        w->t = s->t;
        w->lost = s->lost;
        return k;
    }
    double later = more * (s->t - w->t);
    view_moves(s->x, s->d, s->t, later);
    s->t += later;
    s->lost += more * (s->lost - w->lost);
    memcpy(ready, s->ready, size * sizeof *ready);
    for (uint32_t i = 1; i < size; i++)
        s->ready[(k + more + i) % size] = ready[(k + i) % size] + later;
    w->next += w->gets ? more : 0;
    w->known = false;
    return k + more;
}

/* Begins a pass; gathers whose layers are the first to run are issued. */
static void begin(fast_engine *x, const fast_chunk *l, uint32_t dev,
                  sc_pass pass, bool sends, bool last, double start,
                  fast_scene *s, fast_walk *w)
{
    w->bwd = pass != SC_FWD;
    w->gets = x->shards && pass != SC_BWD_W;
    w->sends = sends;
    w->n = w->bwd ? l->n_bwd : l->n;
    w->next = 0;
    w->known = false;
    s->x = x;
    s->d = &x->device[dev];
    s->l = l;
    s->t = start;
    s->lost = 0;
    s->last = last;
    s->done = 0;
    s->n_contenders = 0;
    s->contender = NULL;
    s->most_use = NULL;
    s->n_ready = 1 + (uint32_t)x->p->run.sw->prefetch;
    memset(s->ready, 0, s->n_ready * sizeof *s->ready);
    for (; w->gets && w->next < w->n && w->next < s->n_ready; w->next++)
        fetch(s, w->bwd, w->next, 0, s->n_ready - 1);
}

/* Runs a pass layer by layer while exchanges of earlier passes may still
 * run. The root unit's gradients are exchanged last. */
static double layered(fast_scene *s, fast_walk *w, sc_pass pass)
{
    fast_engine *x = s->x;
    const fast_chunk *l = s->l;
    double start = s->t;
    bool bwd = w->bwd;
    buckets open, root;
    open_none(&open, x->full);
    open_none(&root, x->full);
    run(s, fast_of(l->join, pass) + fast_of(l->shared, pass), 0);
    for (uint32_t k = 0; k < w->n; k = skip(s, w, k) + 1) {
        const sc_segment *b = fast_layer(l, bwd, k);
        double own, c = pass_seconds(b, pass, w->sends, &own);
        s->done = 0;
        s->contender = b->contender[bwd];
        s->most_use = b->most_use[bwd];
        s->n_contenders = pass == SC_BWD_W ? 0 : b->n_contenders[bwd];
        for (; w->gets && w->next < w->n && w->next < k + s->n_ready; w->next++)
            fetch(s, bwd, w->next, k, s->n_ready - 1);
        s->t = fast_larger(s->t, s->ready[k % s->n_ready]);
        if (w->sends)
            run_gradients(s, b, c, own,
                          l->root[fast_place(l, bwd, k)] ? &root : &open);
        else
            run(s, c, own);
        double done = s->t;
        if (x->units) all_leave(s, &open);
        if (w->gets && l->gathers[bwd][k].seconds > 0)
            s->d->end[s->d->n++ % SC_COUNT(s->d->end)] = done;
    }
    all_leave(s, &open);
    all_leave(s, &root);
    return s->t + fast_host(l, pass) - start;
}

/* ---- passes that are already computed ------------------------------------ */

/* layered() with a memo, because steady pipelines repeat the same pass, and
 * stages with the same layers too. */
static double repeated(fast_scene *s, fast_walk *w, uint32_t c, sc_pass pass)
{
    fast_engine *x = s->x;
    double now[FAST_VIEW + 2 * (SC_PREFETCH_MAX + 1)], start = s->t;
    size_t kind = x->chunk[c].seen;
    fast_seen *all =
        &x->seen[((kind * SC_N_PASSES + pass) * 2 + s->last) * FAST_SEEN];
    uint32_t n = fast_rest(s, w, now);
    for (uint32_t i = 0; i < FAST_SEEN; i++)
        if (all[i].known && fabs(now[0] - all[i].before[0]) < FAST_SAME &&
            fast_same_view(now, all[i].before, n)) {
            fast_repeat_changes(&all[i], start, fast_gates(x), s->d);
            x->lost = all[i].lost;
            return all[i].seconds;
        }
    fast_seen *seen = &all[all[0].next++ % FAST_SEEN];
    fast_device was = *s->d;
    memcpy(seen->before, now, n * sizeof *now);
    seen->seconds = layered(s, w, pass);
    seen->lost = x->lost = s->lost;
    fast_keep_changes(&was, s->d, start, fast_gates(x), seen);
    seen->known = true;
    return seen->seconds;
}

double fast_pass(fast_engine *x, uint32_t dev, uint32_t c, sc_pass pass,
                 bool first, bool last, double start)
{
    const fast_chunk *l = &x->chunk[c];
    bool sends = fast_makes_gradients(pass) && (x->shards || x->overlaps) &&
                 (last || x->each);
    x->lost = 0;
    if (x->shards || sends) {
        fast_scene s;
        fast_walk w;
        begin(x, l, dev, pass, sends, last, start, &s, &w);
        if (x->seen) return repeated(&s, &w, c, pass);
        double seconds = layered(&s, &w, pass);
        x->lost = s.lost;
        return seconds;
    }
    if (pass == SC_BWD_W) return l->w;
    if (pass == SC_BWD_X) return l->b - l->w;
    if (pass == SC_BWD) return l->b;
    return first && x->gathers ? first_forward(x, l, dev, start) : l->f;
}
