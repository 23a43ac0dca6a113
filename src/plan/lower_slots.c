/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_slots.c - sorts the slots of all devices by their estimated ends, which
 * are sums of the durations of their items and are used for the order only.
 */
#include "plan/lower.h"
#include "plan/plan_schedule.h"

#include <string.h>

static uint32_t part_index(uint8_t part)
{
    return part == LOWER_FWD ? 0 : part == LOWER_X ? 1 : 2;
}

static uint8_t parts_of(uint8_t pass)
{
    static const uint8_t parts[] = {LOWER_FWD, LOWER_X | LOWER_W, LOWER_X,
                                    LOWER_W};
    return parts[pass];
}

/* ---- durations and waits of slots --------------------------------------- */

static bool blocks(const lower_item *t)
{
    return !t->none && !t->back && t->stream != SC_S_GRAD &&
           t->stream != SC_S_COPY && t->stream != SC_S_P2P;
}

static sc_status need(lowering *g, lower_stage *s, uint32_t *cap,
                      const struct lower_need *want)
{
    for (uint32_t k = 0; k < s->n_needs; k++) {
        struct lower_need *n = &s->needs[k];
        if (n->part != want->part || n->before != want->before ||
            n->stage != want->stage)
            continue;
        if (want->delay > n->delay) n->delay = want->delay;
        return SC_OK;
    }
    struct lower_need *all =
        sc_grow_raw(g->a, s->needs, s->n_needs, cap, 8, sizeof *all);
    if (!all) return sc_error_nomem(g->err);
    s->needs = all;
    all[s->n_needs++] = *want;
    return SC_OK;
}

static sc_status item_needs(lowering *g, lower_stage *s, uint32_t *cap,
                            uint32_t i)
{
    const program_item *it = &g->prog->item[i];
    for (uint32_t k = 0; k < it->n_in; k++) {
        uint32_t m = g->prog->value[it->in[k]].made;
        if (m == SC_NONE || g->prog->item[m].once) continue;
        if (g->prog->item[m].stage == it->stage &&
            g->item[m].part == g->item[i].part)
            continue;
        sc_time delay = g->item[m].stream == SC_S_P2P ? g->item[m].work : 0;
        SC_TRY(need(g, s, cap,
                    &(struct lower_need){.part = g->item[i].part,
                                         .before = g->item[m].part,
                                         .stage = g->prog->item[m].stage,
                                         .delay = delay}));
    }
    return SC_OK;
}

static bool arrives(const lowering *g, const program_item *it, uint32_t k)
{
    uint32_t m = g->prog->value[it->in[k]].made;
    return m != SC_NONE && !g->prog->item[m].once &&
           g->prog->item[m].stage != it->stage;
}

static sc_status arrivals(lowering *g, lower_stage *s, const lower_list *l)
{
    uint32_t n = s->n_arrivals;
    for (uint32_t i = 0; i < l->n; i++)
        for (uint32_t k = 0; k < g->prog->item[l->item[i]].n_in; k++)
            n += arrives(g, &g->prog->item[l->item[i]], k);
    uint32_t *item = SC_NEW_N(g->a, uint32_t, n);
    uint8_t *part = SC_NEW_N(g->a, uint8_t, n);
    if (!item || !part) return sc_error_nomem(g->err);
    for (uint32_t k = 0; k < s->n_arrivals; k++) {
        item[k] = s->arrival[k];
        part[k] = s->arrival_part[k];
    }
    for (uint32_t i = 0; i < l->n; i++) {
        const program_item *it = &g->prog->item[l->item[i]];
        for (uint32_t k = 0; k < it->n_in; k++) {
            if (!arrives(g, it, k)) continue;
            item[s->n_arrivals] = g->prog->value[it->in[k]].made;
            part[s->n_arrivals++] = g->item[l->item[i]].part;
        }
    }
    s->arrival = item;
    s->arrival_part = part;
    return SC_OK;
}

static sc_status stage_needs(lowering *g, uint32_t v)
{
    lower_stage *s = &g->stage[v];
    uint32_t cap = 0;
    const lower_list *of[] = {&s->fwd, &s->bwd};
    SC_TRY(arrivals(g, s, &s->fwd));
    SC_TRY(arrivals(g, s, &s->bwd));
    for (size_t l = 0; l < SC_COUNT(of); l++) {
        for (uint32_t k = 0; k < of[l]->n; k++) {
            uint32_t i = of[l]->item[k];
            const lower_item *t = &g->item[i];
            if (blocks(t)) s->span[part_index(t->part)] += t->work;
            SC_TRY(item_needs(g, s, &cap, i));
        }
    }
    /* They keep the order of passes in a stage without backward kernels. */
    SC_TRY(need(g, s, &cap, &(struct lower_need){LOWER_X, LOWER_FWD, v, 0}));
    return need(g, s, &cap, &(struct lower_need){LOWER_W, LOWER_X, v, 0});
}

/* ---- the orders of devices ---------------------------------------------- */

typedef struct orders {
    sc_slot **of;           /* [pp] slots of each device in its order */
    sc_slot **layers;       /* [pp] passes of layers in order; passes of a split
                         vocabulary are placed among them */
    uint32_t (*next)[2][3]; /* [pp] the next micro-batch of a pass and chunk */
    uint32_t *n, *at;       /* [pp] numbers of slots and of placed ones */
    lower_slot **placed;    /* [pp] the slots that have estimated times */
    uint32_t seq;
    sc_time *free;  /* [pp] */
    sc_time *end;   /* [3][n_stages * ga] by part; -1: not placed */
    sc_time *begin; /* [3][n_stages * ga] */
} orders;

/* Limits the forward passes before a backward pass to the number that may be in
 * flight, without changing the order of either kind. */
static void limit(const sc_slot *in, uint32_t n, uint32_t most, sc_slot *out)
{
    uint32_t f = 0, b = 0, flight = 0, k = 0;
    while (k < n) {
        while (f < n && in[f].pass != SC_FWD) f++;
        while (b < n && in[b].pass == SC_FWD) b++;
        bool forward = f < n && (flight < most || b == n);
        if (forward) flight++;
        if (!forward && in[b].pass != SC_BWD_X) flight--;
        out[k++] = in[forward ? f++ : b++];
    }
}

static uint32_t most_in_flight(const lowering *g, uint32_t dev)
{
    const sc_strategy *s = g->job->strategy;
    return s && dev < s->n_in_flight ? s->in_flight[dev] : 0;
}

static uint32_t from_file(const lowering *g, uint32_t dev, sc_slot *out)
{
    const sc_schedule_file *f = g->job->order;
    uint32_t n = 0;
    for (uint32_t k = 0; k < f->n[dev]; k++)
        if (!g->job->forward_only || f->slot[dev][k].pass == SC_FWD)
            out[n++] = f->slot[dev][k];
    return n;
}

/* Orders the passes of the layers.  The passes of a split vocabulary are placed
 * among them (Yeung et al. 2024: two more micro-batches are in flight). */
static sc_status layers_order(lowering *g, uint32_t dev, orders *o)
{
    uint32_t most = g->pp - dev + 2;
    uint32_t room = sc_schedule_slots(SC_SCH_1F1B, 1, g->ga);
    sc_slot *s = SC_NEW_N(g->a, sc_slot, room);
    o->layers[dev] = SC_NEW_N(g->a, sc_slot, room);
    o->of[dev] = SC_NEW_N(g->a, sc_slot, (size_t)room * g->chunks);
    if (!s || !o->layers[dev] || !o->of[dev]) return sc_error_nomem(g->err);
    uint32_t n = sc_schedule_order(SC_SCH_1F1B, g->pp, 1, g->ga, dev,
                                   g->job->forward_only, s);
    limit(s, n, most_in_flight(g, dev) ? most_in_flight(g, dev) : most,
          o->layers[dev]);
    for (uint32_t k = 0; k < n; k++)
        o->layers[dev][k].chunk = (uint16_t)(g->job->layers_chunk - 1);
    o->n[dev] = n * g->chunks;
    return SC_OK;
}

static sc_status device_order(lowering *g, uint32_t dev, orders *o)
{
    const sc_schedule_file *f = g->job->order;
    if (g->job->layers_chunk) return layers_order(g, dev, o);
    uint32_t room =
        f ? f->n[dev] : sc_schedule_slots(g->schedule, g->chunks, g->ga);
    sc_slot *s = SC_NEW_N(g->a, sc_slot, room);
    if (!s) return sc_error_nomem(g->err);
    o->of[dev] = s;
    o->n[dev] = f ? from_file(g, dev, s)
                  : sc_schedule_order(g->schedule, g->pp, g->chunks, g->ga, dev,
                                      g->job->forward_only, s);
    uint32_t most = most_in_flight(g, dev);
    if (!most) return SC_OK;
    o->of[dev] = SC_NEW_N(g->a, sc_slot, room);
    if (!o->of[dev]) return sc_error_nomem(g->err);
    limit(s, o->n[dev], most, o->of[dev]);
    return SC_OK;
}

static size_t cell(const lowering *g, uint32_t part, uint32_t stage,
                   uint32_t mb)
{
    return ((size_t)part * g->p->n_stages + stage) * g->ga + mb;
}

static sc_status prepare(lowering *g, orders *o)
{
    size_t cells = cell(g, 3, 0, 0);
    o->of = SC_NEW_N(g->a, sc_slot *, g->pp);
    o->n = SC_NEW_N(g->a, uint32_t, g->pp);
    o->layers = SC_NEW_N(g->a, sc_slot *, g->pp);
    o->next = sc_alloc(g->a, g->pp, sizeof *o->next);
    o->at = SC_NEW_N(g->a, uint32_t, g->pp);
    o->placed = SC_NEW_N(g->a, lower_slot *, g->pp);
    o->free = SC_NEW_N(g->a, sc_time, g->pp);
    o->end = SC_NEW_N(g->a, sc_time, cells);
    o->begin = SC_NEW_N(g->a, sc_time, cells);
    if (!o->of || !o->n || !o->layers || !o->next || !o->at || !o->placed ||
        !o->free || !o->end || !o->begin)
        return sc_error_nomem(g->err);
    memset(o->end, 0xff, cells * sizeof *o->end);
    uint32_t total = 0;
    for (uint32_t dev = 0; dev < g->pp; dev++) {
        SC_TRY(device_order(g, dev, o));
        total += o->n[dev];
    }
    g->slot = SC_RAW_N(g->a, lower_slot, total);
    if (!g->slot) return sc_error_nomem(g->err);
    for (uint32_t dev = 0; dev < g->pp; dev++) {
        o->placed[dev] = g->slot + g->n_slots;
        g->n_slots += o->n[dev];
    }
    return SC_OK;
}

/* Whether a wait is between parts of a split vocabulary in the same pass. */
static bool within(const lowering *g, uint32_t stage,
                   const struct lower_need *n)
{
    bool same =
        n->part & LOWER_FWD ? n->before == LOWER_FWD : n->before != LOWER_FWD;
    return same && n->stage != stage && lower_spread(g, stage) &&
           lower_spread(g, n->stage);
}

/* The end of a pass, which may wait for other parts of a split vocabulary after
 * its own kernels end at `end`. */
static sc_time ends_with(const lowering *g, const orders *o,
                         const lower_slot *s, sc_time end)
{
    const lower_stage *st = &g->stage[s->stage];
    for (uint32_t k = 0; k < st->n_needs; k++) {
        const struct lower_need *n = &st->needs[k];
        if (!(n->part & s->parts) || n->before != LOWER_FWD ||
            !within(g, s->stage, n))
            continue;
        sc_time other = o->end[cell(g, 0, n->stage, s->mb)] + n->delay;
        if (other > end) end = other;
    }
    return end;
}

/* Finds the start of a slot; false if it waits for a slot that has not been
 * placed. */
static bool starts(const lowering *g, const orders *o, const lower_slot *s,
                   sc_time *start)
{
    const lower_stage *st = &g->stage[s->stage];
    *start = o->free[s->dev];
    for (uint32_t k = 0; k < st->n_needs; k++) {
        const struct lower_need *n = &st->needs[k];
        if (!(n->part & s->parts)) continue;
        if (n->stage == s->stage && n->before & s->parts) continue;
        size_t at = cell(g, part_index(n->before), n->stage, s->mb);
        sc_time end = o->end[at];
        if (end < 0) return false;
        if (within(g, s->stage, n)) end = o->begin[at];
        if (end + n->delay > *start) *start = end + n->delay;
    }
    return true;
}

static bool place(lowering *g, orders *o, uint32_t dev)
{
    const sc_slot *in = &o->of[dev][o->at[dev]];
    lower_slot s = {.dev = dev,
                    .mb = in->mb,
                    .parts = parts_of(in->pass),
                    .stage = sc_schedule_stage(g->schedule, g->pp, g->chunks,
                                               dev, in->chunk),
                    .seq = o->seq};
    sc_time start;
    if (!starts(g, o, &s, &start)) return false;
    s.end = start;
    s.inst = g->inst_of[dev * g->p->n_stages + s.stage];
    for (uint32_t part = 0; part < 3; part++) {
        if (!(s.parts >> part & 1)) continue;
        s.end += g->stage[s.stage].span[part];
        lower_instance *at = &g->inst[s.inst];
        at->last[part] = s.mb;
        at->left[part]++;
    }
    s.end = ends_with(g, o, &s, s.end);
    for (uint32_t part = 0; part < 3; part++) {
        if (!(s.parts >> part & 1)) continue;
        o->begin[cell(g, part, s.stage, s.mb)] = start;
        o->end[cell(g, part, s.stage, s.mb)] = s.end;
    }
    o->free[dev] = s.end;
    /* With a split vocabulary slots are issued by start.  Sorted by end, the
     * start of a pass would queue behind the end of one that starts later. */
    if (g->job->layers_chunk) s.end = start;
    o->placed[dev][o->at[dev]++] = s;
    o->seq++;
    return true;
}

/* ---- passes of a vocabulary --------------------------------------------- */

/* The earliest start of a slot on a device; -1: not known yet. */
static sc_time could_start(const lowering *g, const orders *o, uint32_t dev,
                           const sc_slot *in)
{
    sc_time start;
    lower_slot s = {.dev = dev,
                    .mb = in->mb,
                    .parts = parts_of(in->pass),
                    .stage = sc_schedule_stage(g->schedule, g->pp, g->chunks,
                                               dev, in->chunk)};
    return starts(g, o, &s, &start) ? start : -1;
}

/* Finds the pass of a split vocabulary that can start first; -1: none can.
 * The embedding looks up no micro-batch before the first stage needs it. */
static sc_time next_part(const lowering *g, const orders *o, uint32_t dev,
                         sc_slot *out)
{
    uint32_t own = g->job->layers_chunk - 1u;
    sc_time best = -1;
    for (uint32_t c = 0; c < g->chunks; c++)
        for (uint32_t back = 0; back < 2; back++) {
            sc_slot s = {back ? SC_BWD : SC_FWD, (uint16_t)c,
                         o->next[dev][back][c]};
            bool early = c < own && !back && s.mb > o->next[0][0][own];
            if (c == own || s.mb >= g->ga || early) continue;
            if (back && g->job->forward_only) continue;
            sc_time start = could_start(g, o, dev, &s);
            if (start < 0 || (best >= 0 && start > best)) continue;
            best = start;
            *out = s;
        }
    return best;
}

/* Finds the next pass of a device.  A pass of a split vocabulary precedes the
 * next pass of layers if it can start as early, as all stages wait for it. */
static sc_time next_slot(const lowering *g, const orders *o, uint32_t dev,
                         sc_slot *out)
{
    uint32_t own = g->job->layers_chunk - 1u;
    uint32_t done = o->next[dev][0][own] + o->next[dev][1][own];
    sc_slot part = {0};
    sc_time best = -1, start = next_part(g, o, dev, &part);
    if (done < o->n[dev] / g->chunks) {
        *out = o->layers[dev][done];
        best = could_start(g, o, dev, out);
    }
    if (start < 0 || (best >= 0 && start > best)) return best;
    *out = part;
    return start;
}

/* Places the pass that starts first among the next passes of all devices. */
static bool place_first(lowering *g, orders *o)
{
    sc_time best = -1;
    uint32_t which = 0;
    sc_slot slot = {0}, s = {0};
    for (uint32_t dev = 0; dev < g->pp; dev++) {
        sc_time start = next_slot(g, o, dev, &s);
        if (start < 0 || (best >= 0 && start >= best)) continue;
        best = start;
        which = dev;
        slot = s;
    }
    if (best < 0) return false;
    o->of[which][o->at[which]] = slot;
    o->next[which][slot.pass != SC_FWD][slot.chunk]++;
    return place(g, o, which);
}

static bool ends_first(const lower_slot *a, const lower_slot *b)
{
    return a->end != b->end ? a->end < b->end : a->seq < b->seq;
}

/* Merges two orders. */
static void merge(const lower_slot *x, uint32_t n, const lower_slot *y,
                  uint32_t m, lower_slot *out)
{
    uint32_t i = 0, k = 0;
    while (i < n && k < m) {
        bool first = ends_first(&x[i], &y[k]);
        *out++ = first ? x[i] : y[k];
        i += first;
        k += !first;
    }
    memcpy(out, x + i, (n - i) * sizeof *out);
    memcpy(out + (n - i), y + k, (m - k) * sizeof *out);
}

/* Sorts the slots of all devices by their ends.  The slots of one device are
 * already sorted, so this is a merge sort that begins with whole devices. */
static sc_status by_end(lowering *g, orders *o)
{
    lower_slot *from = g->slot, *to = SC_RAW_N(g->a, lower_slot, g->n_slots);
    if (!to) return sc_error_nomem(g->err);
    for (uint32_t left = g->pp; left > 1; left = (left + 1) / 2) {
        lower_slot *x = from, *out = to;
        for (uint32_t k = 0; k < left; k += 2) {
            uint32_t n = o->n[k], m = k + 1 < left ? o->n[k + 1] : 0;
            merge(x, n, x + n, m, out);
            o->n[k / 2] = n + m;
            x += n + m;
            out += n + m;
        }
        lower_slot *swap = from;
        from = to;
        to = swap;
    }
    g->slot = from;
    return SC_OK;
}

static sc_status stuck(const lowering *g, uint32_t dev)
{
    const sc_strategy *s = g->job->strategy;
    if (most_in_flight(g, dev))
        return sc_error(g->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(s->file),
                        "raise max_in_flight",
                        "device %u would wait forever: the schedule needs more "
                        "micro-batches in flight",
                        dev);
    return sc_error(g->err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "the schedule of pipeline device %u can't go on", dev);
}

sc_status lower_needs(lowering *g)
{
    for (uint32_t v = 0; v < g->p->n_stages; v++) SC_TRY(stage_needs(g, v));
    return SC_OK;
}

bool lower_splits(const lowering *g)
{
    const sc_schedule_file *f = g->job->order;
    return sc_schedule_splits(g->schedule) || (f && f->splits);
}

sc_status lower_slots(lowering *g)
{
    orders o = {0};
    SC_TRY(prepare(g, &o));
    while (g->job->layers_chunk && place_first(g, &o)) continue;
    for (bool moved = !g->job->layers_chunk; moved;) {
        moved = false;
        for (uint32_t dev = 0; dev < g->pp; dev++)
            while (o.at[dev] < o.n[dev] && place(g, &o, dev)) moved = true;
    }
    for (uint32_t dev = 0; dev < g->pp; dev++)
        if (o.at[dev] < o.n[dev]) return stuck(g, dev);
    return by_end(g, &o);
}
