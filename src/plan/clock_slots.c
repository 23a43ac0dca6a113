/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_slots.c - finds slots that equal an earlier one.
 *
 * The times of a slot follow from the items of its stage and from its key.  The
 * key lists when each stream of its device becomes free, when values of other
 * slots are ready, and when the layers and exchanges for which it waits end,
 * all relative to the end of the kernels before it.  Equal keys give equal
 * times (Baccelli et al., "Synchronization and Linearity", 1992: the recurrence
 * is linear in max-plus algebra, so a shift of the inputs shifts the outputs by
 * as much).
 *
 * The first and the last slots of a stage are always issued, because they
 * gather weights and reduce gradients.
 */
#include "plan/clock.h"

#include <string.h>

/* The most slots that are kept of one kind, so that a look-up stays cheap. */
#define KNOWN_MOST 32

/* The result of an issued slot; times are relative to the end of the kernels
 * before it. */
typedef struct known {
    struct known *next;
    const sc_time *key; /* [n_key] */

    struct {
        sc_time from, to, kernels;
    } stream[SC_N_STREAMS];

    sc_time cat[SC_N_CATS];
    const sc_time *seen; /* [n_seen] ends; NEVER: it did not run */
    uint32_t n_past, n_reduced;
    const sc_time *past; /* [n_past] ends of the last layers, the last first */
    sc_time reduced[2];
    sc_time last;
    bool alone; /* no exchange overlaps its kernels or later ones, so its times
                   are equal in every walk */
} known;

#define NEVER INT64_MIN

/* Slots of one stage on a device with the same passes. */
typedef struct clock_kind {
    bool made;
    uint8_t early;   /* bits of streams that may begin before its kernels */
    bool fills;      /* waits for exchanges of earlier slots' gradients */
    uint8_t streams; /* bits of streams on which it has items */
    uint32_t n_outer, n_seen, n_closes, n_empties;
    uint32_t back;         /* most layers that a prefetch reaches back */
    const uint32_t *outer; /* [n_outer] items of other slots that it reads */
    const bool *ahead; /* [n_outer] also read on streams other than compute */
    const uint32_t *seen; /* [n_seen] its items that other slots read */
    uint32_t n_known;
    known *first;
} clock_kind;

static uint32_t kind_index(uint8_t parts)
{
    static const uint8_t at[] = {
        [LOWER_FWD] = 0, [LOWER_X] = 1, [LOWER_W] = 2, [LOWER_X | LOWER_W] = 3};
    return at[parts];
}

static bool in_slot(const lowering *g, uint32_t i, uint32_t stage,
                    uint8_t parts)
{
    return g->prog->item[i].stage == stage && !g->prog->item[i].once &&
           (g->item[i].part & parts);
}

/* Whether item `i` needs a wait for item `m` of another slot.  Kernels of a
 * stage need none, because their stream runs them in order; marks are in no
 * stream. */
static bool worth(const lowering *g, uint32_t m, uint32_t i)
{
    if (g->item[i].work == 0 && !g->item[i].none) return true;
    return g->prog->item[m].stage != g->prog->item[i].stage ||
           g->item[m].stream != SC_S_COMPUTE ||
           g->item[i].stream != SC_S_COMPUTE || g->item[m].none;
}

/* Sets read[i] if another slot reads the result of item i. */
static void find_read(const lowering *g, bool *read)
{
    bool split = lower_splits(g);
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        const program_item *it = &g->prog->item[i];
        uint8_t parts = g->item[i].part;
        if (parts != LOWER_FWD && !split) parts = LOWER_X | LOWER_W;
        for (uint32_t k = 0; k < g->item[i].n_after; k++) {
            uint32_t m = g->item[i].after[k];
            if (!in_slot(g, m, it->stage, parts) && worth(g, m, i))
                read[m] = true;
        }
        for (uint32_t k = 0; split && it->once && k < it->n_in; k++) {
            uint32_t m = g->prog->value[it->in[k]].made;
            if (m != SC_NONE) read[m] = true;
        }
    }
}

static void keep_alone(clock_kind *k)
{
    known **to = &k->first;
    for (known *w = k->first; w; w = w->next)
        if (w->alone) {
            *to = w;
            to = &w->next;
        }
    *to = NULL;
    k->n_known = 0; /* the limit applies to each walk */
}

/* Whether known slots also hold for other numbers of micro-batches.  They do
 * not in bidirectional schedules, whose stages depend on that number. */
static bool shares(const lowering *g, const lower_clock *c,
                   const struct sc_net_walks *x)
{
    return x && g->schedule <= SC_SCH_INTERLEAVED && !g->job->order &&
           (!x->kinds ||
            (x->slow[0] == c->slow[0] && x->slow[1] == c->slow[1]));
}

void clock_slots_share(const lowering *g, const lower_clock *c)
{
    struct sc_net_walks *x = lower_shared(g);
    if (!shares(g, c, x)) return;
    memcpy(x->slow, c->slow, sizeof x->slow);
    x->kinds = c->kinds;
    x->read = c->read;
    x->named = c->named;
    x->at = c->at;
    x->stamp = c->stamp;
    for (uint32_t i = 0; i < 4 * g->n_inst; i++) keep_alone(&c->kinds[i]);
}

sc_status clock_slots_new(const lowering *g, lower_clock *c)
{
    const struct sc_net_walks *x = lower_shared(g);
    if (shares(g, c, x) && x->kinds) {
        c->kinds = x->kinds;
        c->read = x->read;
        c->named = x->named;
        c->at = x->at;
        c->stamp = x->stamp;
        return SC_OK;
    }
    c->kinds = SC_NEW_N(g->a, clock_kind, 4 * (size_t)g->n_inst);
    c->read = SC_NEW_N(g->a, bool, g->prog->n_items);
    c->named = SC_NEW_N(g->a, uint32_t, g->prog->n_items);
    c->at = SC_NEW_N(g->a, uint32_t, g->prog->n_items);
    if (!c->kinds || !c->read || !c->named || !c->at)
        return sc_error_nomem(g->err);
    find_read(g, c->read);
    return SC_OK;
}

/* ---- inputs and outputs of a kind of slots ------------------------------- */

typedef struct found {
    uint32_t *outer, *seen;
    bool *ahead;
} found;

/* Lists item `m` of another slot, which `t` reads. */
static void find_outer(lower_clock *c, const lower_item *t, uint32_t m,
                       clock_kind *k, found *f)
{
    bool first = c->named[m] != c->stamp;
    c->named[m] = c->stamp;
    if (first) {
        c->at[m] = k->n_outer++;
        if (f) f->outer[c->at[m]] = m;
    }
    if (f && t->stream != SC_S_COMPUTE) f->ahead[c->at[m]] = true;
}

static void find(const lowering *g, const lower_slot *s, clock_kind *k,
                 found *f)
{
    const lower_stage *st = &g->stage[s->stage];
    const lower_list *l = s->parts == LOWER_FWD ? &st->fwd : &st->bwd;
    lower_clock *c = g->clock;
    c->stamp++;
    for (uint32_t n = 0; n < l->n; n++) {
        uint32_t i = l->item[n];
        const lower_item *t = &g->item[i];
        bool inside = false;
        if (!(t->part & s->parts)) continue;
        for (uint32_t j = 0; j < t->n_after; j++) {
            uint32_t m = t->after[j];
            inside = inside || in_slot(g, m, s->stage, s->parts);
            if (in_slot(g, m, s->stage, s->parts)) continue;
            if (worth(g, m, i)) find_outer(c, t, m, k, f);
        }
        uint8_t stream = (uint8_t)(1u << t->stream);
        if (t->stream == SC_S_P2P) stream |= 1u << SC_S_P2P_ODD;
        if (t->back || (t->stream != SC_S_COMPUTE && !inside && !t->none))
            k->early |= stream;
        if (t->work > 0) k->streams |= stream;
        if (t->back > k->back) k->back = t->back;
        k->n_closes += t->closes;
        k->fills = k->fills || t->fills;
        k->n_empties += t->empties;
        if (!c->read[i]) continue;
        if (f) f->seen[k->n_seen] = i;
        k->n_seen++;
    }
}

static sc_status kind_make(lowering *g, const lower_slot *s, clock_kind *k)
{
    found f;
    find(g, s, k, NULL);
    f.outer = SC_NEW_N(g->a, uint32_t, k->n_outer);
    f.seen = SC_NEW_N(g->a, uint32_t, k->n_seen);
    f.ahead = SC_NEW_N(g->a, bool, k->n_outer);
    if (!f.outer || !f.seen || !f.ahead) return sc_error_nomem(g->err);
    *k = (clock_kind){
        .made = true, .outer = f.outer, .seen = f.seen, .ahead = f.ahead};
    find(g, s, k, &f);
    return SC_OK;
}

/* ---- keys --------------------------------------------------------------- */

static uint32_t ring_size(const lowering *g)
{
    return g->ahead + 2;
}

static sc_op past_op(const lowering *g, uint32_t dev, uint32_t back)
{
    uint32_t n = g->n_past[dev];
    if (back > n) return SC_NONE;
    return g->past[dev * ring_size(g) + (n - back) % ring_size(g)];
}

static sc_op reduced_op(const lowering *g, uint32_t dev, uint32_t back)
{
    uint32_t n = g->n_reduced[dev];
    return back > n ? SC_NONE : g->reduced[2 * dev + (n - back) % 2];
}

static sc_time end_of(const lower_clock *c, sc_op op)
{
    return op == SC_NONE ? NEVER : c->op[op].end;
}

/* Adds a time to the key.  Unless an item may begin before the previous kernels
 * end (`early`), all earlier times have the same effect and count as zero. */
static void key_time(lower_clock *c, sc_time at, bool early)
{
    sc_time t = at == NEVER ? NEVER : at - c->begun;
    if (!early && t < 0) t = 0;
    c->key[c->n_key++] = t;
}

/* Adds the receiver of a transfer to the key, because it varies in
 * bidirectional schedules.  A transfer on a separate stream also occupies that
 * stream there. */
static void key_receiver(const lowering *g, const lower_slot *s, uint32_t i)
{
    lower_clock *c = g->clock;
    uint32_t to = g->prog->item[i].to;
    if (to == SC_NONE) return;
    uint32_t dev = lower_device(g, to, s->mb);
    c->key[c->n_key++] = dev;
    if (g->item[i].stream != SC_S_P2P) return;
    uint8_t stream = lower_transfer_stream(g, s->dev, dev);
    key_time(c, clock_stream_of(c, dev, stream)->to, false);
}

static sc_status key_of(lowering *g, const lower_slot *s, const clock_kind *k)
{
    lower_clock *c = g->clock;
    uint32_t most = 2 * SC_N_STREAMS + k->n_outer + 2 * k->n_seen + k->back + 2;
    if (most > c->cap_key) {
        c->key = SC_NEW_N(g->a, sc_time, 2 * (size_t)most);
        if (!c->key) return sc_error_nomem(g->err);
        c->cap_key = 2 * most;
    }
    c->n_key = 0;
    for (uint32_t st = SC_S_COMPUTE + 1; st < SC_N_STREAMS; st++) {
        const clock_stream *l = clock_stream_of(c, s->dev, st);
        bool used = k->streams >> st & 1;
        if (!used && st != SC_S_GRAD && st != SC_S_COMM) continue;
        key_time(c, l->to, used && (k->early >> st & 1));
        key_time(c, l->to > c->begun ? l->from : c->begun, false);
    }
    for (uint32_t n = 0; n < k->n_outer; n++)
        key_time(c, end_of(c, lower_ops(g, s->mb, k->outer[n])[0]),
                 k->ahead[n]);
    for (uint32_t n = 0; n < k->n_seen; n++) key_receiver(g, s, k->seen[n]);
    for (uint32_t n = 1; n <= k->back; n++)
        key_time(c, end_of(c, past_op(g, s->dev, n)), true);
    for (uint32_t n = 1; k->fills && n <= 2; n++)
        key_time(c, end_of(c, reduced_op(g, s->dev, n)), false);
    return SC_OK;
}

/* ---- a slot that is known ----------------------------------------------- */

static sc_op new_op(lowering *g, uint32_t dev, uint8_t stream, uint8_t cat,
                    sc_time start, sc_time end)
{
    clock_op o = {.start = start,
                  .end = end,
                  .dev = dev,
                  .stream = stream,
                  .cat = cat,
                  .kind = stream == SC_S_COMPUTE ? SC_OP_COMPUTE : SC_OP_COLL};
    return clock_new(g->clock, &o);
}

static void push(clock_stream *l, sc_op op)
{
    memmove(l->recent + 1, l->recent, sizeof l->recent - sizeof *l->recent);
    l->recent[0] = op;
}

static void replay_streams(lowering *g, const lower_slot *s, const known *w,
                           sc_time at)
{
    lower_clock *c = g->clock;
    for (uint32_t st = 0; st < SC_N_STREAMS; st++) {
        clock_stream *l = clock_stream_of(c, s->dev, st);
        if (w->stream[st].to == NEVER) continue; /* unchanged */
        memset(l->recent, 0xff, sizeof l->recent);
        l->from = at + w->stream[st].from;
        l->to = at + w->stream[st].to;
        l->kernels = w->stream[st].kernels;
        push(l, new_op(g, s->dev, (uint8_t)st, SC_CAT_COMPUTE, l->from, l->to));
    }
    sc_op tail = clock_stream_of(c, s->dev, SC_S_COMPUTE)->recent[0];
    g->tail[s->dev].tail = tail;
}

static void replay_receiver(lowering *g, const lower_slot *s, uint32_t i,
                            sc_op op)
{
    lower_clock *c = g->clock;
    uint32_t to = g->prog->item[i].to;
    if (to == SC_NONE || g->item[i].stream != SC_S_P2P) return;
    uint32_t dev = lower_device(g, to, s->mb);
    clock_stream *l =
        clock_stream_of(c, dev, lower_transfer_stream(g, s->dev, dev));
    if (dev == s->dev) return;
    if (c->op[op].start > l->to) l->from = c->op[op].start;
    l->to = c->op[op].end;
    push(l, op);
}

static void replay_seen(lowering *g, const lower_slot *s, const clock_kind *k,
                        const known *w, sc_time at)
{
    lower_clock *c = g->clock;
    for (uint32_t n = 0; n < k->n_seen; n++) {
        uint32_t i = k->seen[n];
        const lower_item *t = &g->item[i];
        if (w->seen[n] == NEVER) continue;
        sc_time end = at + w->seen[n];
        sc_op op = new_op(g, s->dev, t->stream, g->prog->item[i].cat,
                          end - t->work, end);
        lower_ops(g, s->mb, i)[0] = op;
        if (op == SC_NONE) return;
        c->op[op].kind = t->kind;
        if (end <= c->begun || t->stream == SC_S_COMPUTE) continue;
        push(clock_stream_of(c, s->dev, t->stream), op);
        replay_receiver(g, s, i, op);
    }
}

static void replay_rings(lowering *g, const lower_slot *s, const clock_kind *k,
                         const known *w, sc_time at)
{
    uint32_t dev = s->dev, ring = ring_size(g);
    g->n_past[dev] += k->n_closes;
    for (uint32_t n = 0; n < w->n_past; n++)
        g->past[dev * ring + (g->n_past[dev] - 1 - n) % ring] =
            new_op(g, dev, SC_S_COMPUTE, SC_CAT_COMPUTE, at + w->past[n],
                   at + w->past[n]);
    g->n_reduced[dev] += k->n_empties;
    for (uint32_t n = 0; n < w->n_reduced; n++)
        g->reduced[2 * dev + (g->n_reduced[dev] - 1 - n) % 2] =
            new_op(g, dev, SC_S_GRAD, SC_CAT_DP, at + w->reduced[n],
                   at + w->reduced[n]);
}

static void replay(lowering *g, const lower_slot *s, const clock_kind *k,
                   const known *w)
{
    lower_clock *c = g->clock;
    sc_time at = c->begun;
    replay_streams(g, s, w, at);
    replay_seen(g, s, k, w, at);
    replay_rings(g, s, k, w, at);
    for (uint32_t i = 0; i < SC_N_CATS; i++) c->cat[s->dev][i] += w->cat[i];
    if (at + w->last > c->last) c->last = at + w->last;
}

void clock_slots_clear(const lowering *g, sc_op *row)
{
    for (uint32_t i = 0; i < 4 * g->n_inst; i++) {
        const clock_kind *k = &g->clock->kinds[i];
        for (uint32_t n = 0; n < k->n_seen; n++)
            for (uint32_t r = 0; r < g->members; r++)
                row[(size_t)k->seen[n] * g->members + r] = SC_NONE;
    }
}

static sc_status look_up(lowering *g, const lower_slot *s, bool *out)
{
    lower_clock *c = g->clock;
    const lower_instance *at = &g->inst[s->inst];
    clock_kind *k = &c->kinds[4 * s->inst + kind_index(s->parts)];
    bool last = true;
    *out = false;
    clock_close(c);
    c->now = NULL;
    c->n_issued++;
    for (uint32_t part = 0; part < 3; part++)
        last = last && at->left[part] == (s->parts >> part & 1u);
    /* An exchange over all stages also changes times of other devices. */
    if (!at->begun || last || g->job->layers_chunk) return SC_OK;
    if (!k->made) SC_TRY(kind_make(g, s, k));
    c->begun = clock_stream_of(c, s->dev, SC_S_COMPUTE)->to;
    SC_TRY(key_of(g, s, k));
    for (const known *w = k->first; w; w = w->next) {
        if (memcmp(w->key, c->key, c->n_key * sizeof *c->key) != 0) continue;
        replay(g, s, k, w);
        *out = true;
        c->n_issued--;
        return SC_OK;
    }
    c->now = k->n_known < KNOWN_MOST ? k : NULL;
    c->overlapped = false;
    memcpy(c->before, c->cat[s->dev], sizeof c->before);
    for (uint32_t st = 0; st < SC_N_STREAMS; st++)
        c->was[st] = clock_stream_of(c, s->dev, st)->to;
    return SC_OK;
}

sc_status clock_slot_begin(lowering *g, const lower_slot *s, bool *out)
{
    SC_TRY(look_up(g, s, out));
    if (!*out) g->clock->issued[s->mb] = true;
    return SC_OK;
}

/* ---- a slot that has been issued ---------------------------------------- */

static void keep_streams(const lowering *g, const lower_slot *s, known *w)
{
    const lower_clock *c = g->clock;
    sc_time done = clock_stream_of(c, s->dev, SC_S_COMPUTE)->to;
    w->alone = !c->overlapped;
    for (uint32_t st = 0; st < SC_N_STREAMS; st++) {
        const clock_stream *l = clock_stream_of(c, s->dev, st);
        w->stream[st].from = l->from - c->begun;
        w->stream[st].to = l->to == c->was[st] && st ? NEVER : l->to - c->begun;
        w->stream[st].kernels = l->kernels;
        if (st == SC_S_GRAD || st == SC_S_COMM)
            w->alone = w->alone && l->to <= done;
        if (l->to - c->begun > w->last) w->last = l->to - c->begun;
    }
    for (uint32_t i = 0; i < SC_N_CATS; i++)
        w->cat[i] = c->cat[s->dev][i] - c->before[i];
}

sc_status clock_slot_end(lowering *g, const lower_slot *s)
{
    lower_clock *c = g->clock;
    clock_kind *k = c->now;
    clock_close(c);
    if (!k) return SC_OK;
    uint32_t ring = ring_size(g);
    uint32_t n_past = k->n_closes < ring ? k->n_closes : ring;
    known *w = SC_NEW(g->a, known);
    sc_time *key = SC_NEW_N(g->a, sc_time, c->n_key);
    sc_time *seen = SC_NEW_N(g->a, sc_time, k->n_seen);
    sc_time *past = SC_NEW_N(g->a, sc_time, n_past);
    if (!w || !key || !seen || !past) return sc_error_nomem(g->err);
    memcpy(key, c->key, c->n_key * sizeof *key);
    keep_streams(g, s, w);
    for (uint32_t n = 0; n < k->n_seen; n++) {
        sc_time end = end_of(c, lower_ops(g, s->mb, k->seen[n])[0]);
        seen[n] = end == NEVER ? NEVER : end - c->begun;
    }
    for (uint32_t n = 0; n < n_past; n++)
        past[n] = end_of(c, past_op(g, s->dev, n + 1)) - c->begun;
    w->n_reduced = k->n_empties < 2 ? k->n_empties : 2;
    for (uint32_t n = 0; n < w->n_reduced; n++)
        w->reduced[n] = end_of(c, reduced_op(g, s->dev, n + 1)) - c->begun;
    w->key = key;
    w->seen = seen;
    w->n_past = n_past;
    w->past = past;
    w->next = k->first;
    k->first = w;
    k->n_known++;
    c->now = NULL;
    return SC_OK;
}
