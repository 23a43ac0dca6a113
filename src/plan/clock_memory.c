/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_memory.c - memory use in the fast sink: repeats the lifetimes of one
 * micro-batch along the schedule.
 *
 * lower_memory.c finds the lifetimes of one micro-batch, whose operations are
 * numbers of items.  They determine, for each kind of slot, the most memory
 * that it adds and the memory that it leaves allocated.  The peak of a device
 * is in one of its slots.  A tensor that another stream reads is freed when the
 * next operation of that stream is issued.
 */
#include "plan/clock.h"

#include <math.h>
#include <string.h>

/* Kinds of slots: the passes of a micro-batch in their order. */
enum { SLOT_F, SLOT_X, SLOT_W, SLOTS };

typedef struct change {
    uint32_t at;  /* place in the slot; allocations precede frees */
    uint8_t kind; /* sc_mem_kind */
    bool frees;
    double bytes;
    uint32_t next; /* SC_NONE */
} change;

/* Memory that a slot adds, by kind. */
typedef struct profile {
    uint32_t head, n;      /* changes; items of the slot */
    uint32_t closes, last; /* number of layers; place after the last one */
    uint32_t end;          /* place at which the last layer begins */
    double most[SC_N_MEM_KINDS], net[SC_N_MEM_KINDS];
    double tail[SC_N_MEM_KINDS];  /* most while the last layer runs */
    double ahead[SC_N_MEM_KINDS]; /* prefetched during the last layer of the
                                     previous slot */
    double sum_most, sum_net, sum_tail, sum_ahead;
} profile;

typedef struct templates {
    lowering *g;
    bool split;       /* the backward pass has two slots */
    profile *of;      /* [n_stages][SLOTS] */
    uint32_t *from;   /* [n_items] place at which its result is allocated */
    uint32_t *place;  /* [n_items] in its slot */
    uint32_t *behind; /* [n_items] place of the next item on its stream */
    change *change;
    uint32_t n_changes;
    uint32_t *last; /* [n] changes of a slot by place, while it is walked */
    uint32_t cap_last;
} templates;

static uint32_t slot_of(const templates *t, uint32_t item)
{
    uint8_t part = t->g->item[item].part;
    if (part == LOWER_FWD) return SLOT_F;
    return part == LOWER_W && t->split ? SLOT_W : SLOT_X;
}

static profile *profile_of(const templates *t, uint32_t stage, uint32_t slot)
{
    return &t->of[stage * SLOTS + slot];
}

static void note(templates *t, uint32_t stage, uint32_t slot, uint32_t at,
                 const sc_lifetime *l, bool frees)
{
    profile *p = profile_of(t, stage, slot);
    t->change[t->n_changes] = (change){.at = at,
                                       .kind = l->kind,
                                       .frees = frees,
                                       .bytes = (double)l->bytes,
                                       .next = p->head};
    p->head = t->n_changes++;
}

/* ---- places ------------------------------------------------------------- */

static void number(templates *t, uint32_t stage, const lower_list *l)
{
    uint32_t on[SLOTS][SC_N_STREAMS];
    memset(on, 0xff, sizeof on);
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t i = l->item[k], s = slot_of(t, i);
        profile *p = profile_of(t, stage, s);
        /* A prefetch starts when a layer ends. */
        t->from[i] = t->g->item[i].back ? p->last : p->n;
        t->place[i] = p->n++;
        if (!t->g->item[i].closes) continue;
        p->end = p->closes++ ? p->last : 0;
        p->last = p->n;
    }
    for (uint32_t k = l->n; k-- > 0;) {
        uint32_t i = l->item[k], s = slot_of(t, i);
        uint32_t *next = &on[s][t->g->item[i].stream];
        t->behind[i] = *next == SC_NONE ? profile_of(t, stage, s)->n : *next;
        *next = t->place[i];
    }
}

/* Place at which a value is freed whose last reader is item `i`. */
static uint32_t free_at(const templates *t, uint32_t i)
{
    bool kernels = t->g->item[i].stream == SC_S_COMPUTE;
    return kernels ? t->place[i] : t->behind[i];
}

/* ---- tensors ------------------------------------------------------------ */

/* Finds slot and place of the last reader on a stage. */
static bool last_reader(const templates *t, const sc_lifetime *l,
                        uint32_t stage, uint32_t *slot, uint32_t *at)
{
    bool any = false;
    for (uint32_t k = 0; k < l->n_last; k++) {
        uint32_t i = l->last[k], s = slot_of(t, i), to = free_at(t, i);
        const program_item *it = &t->g->prog->item[i];
        if (it->once || it->stage != stage) continue;
        if (any && (s < *slot || (s == *slot && to < *at))) continue;
        *slot = s;
        *at = to;
        any = true;
    }
    return any;
}

static uint32_t first_slot(const templates *t, const sc_lifetime *l,
                           uint32_t stage)
{
    uint32_t first = SLOTS;
    for (uint32_t k = 0; k < l->n_last; k++) {
        const program_item *it = &t->g->prog->item[l->last[k]];
        uint32_t s = slot_of(t, l->last[k]);
        if (!it->once && it->stage == stage && s < first) first = s;
    }
    return first;
}

/* Adds a tensor of a micro-batch to the slots that allocate and free it.  A
 * tensor from another stage is allocated when the pass that reads it begins. */
static void tensor(templates *t, const sc_lifetime *l)
{
    const program_item *made = &t->g->prog->item[l->first];
    bool comes = made->to != SC_NONE;
    uint32_t stage = comes ? made->to : made->stage, slot = 0, at = 0;
    uint32_t from = comes ? first_slot(t, l, stage) : slot_of(t, l->first);
    if (from == SLOTS || !last_reader(t, l, stage, &slot, &at)) return;
    if (!comes && t->g->item[l->first].back > 1)
        profile_of(t, stage, from)->ahead[l->kind] += (double)l->bytes;
    note(t, stage, from, comes ? 0 : t->from[l->first], l, false);
    note(t, stage, slot, at, l, true);
}

/* Adds all tensors: those of the step to `permanent`, those of one
 * micro-batch to its slots. */
static sc_status tensors(templates *t, double (*permanent)[SC_N_MEM_KINDS])
{
    const lower_clock *c = t->g->clock;
    t->change = SC_RAW_N(t->g->a, change, 2 * (size_t)c->n_lives);
    if (!t->change) return sc_error_nomem(t->g->err);
    for (uint32_t k = 0; k < c->n_lives; k++) {
        const sc_lifetime *l = &c->life[k];
        bool micro = l->first != SC_NONE && !t->g->prog->item[l->first].once;
        if (micro)
            tensor(t, l);
        else
            permanent[l->device][l->kind] += (double)l->bytes;
    }
    return SC_OK;
}

/* ---- slots -------------------------------------------------------------- */

static double sum(const double kind[SC_N_MEM_KINDS])
{
    double all = 0;
    for (uint32_t k = 0; k < SC_N_MEM_KINDS; k++) all += kind[k];
    return all;
}

static void add(double to[SC_N_MEM_KINDS], const double what[SC_N_MEM_KINDS])
{
    for (uint32_t k = 0; k < SC_N_MEM_KINDS; k++) to[k] += what[k];
}

/* Applies the changes of a slot by place: allocations, then frees. */
static sc_status walk_slot(templates *t, profile *p)
{
    uint32_t n = 2 * (p->n + 2);
    if (n > t->cap_last) {
        t->last = SC_NEW_N(t->g->a, uint32_t, 2 * (size_t)n);
        if (!t->last) return sc_error_nomem(t->g->err);
        t->cap_last = 2 * n;
    }
    memset(t->last, 0xff, n * sizeof *t->last);
    for (uint32_t k = p->head, next; k != SC_NONE; k = next) {
        change *c = &t->change[k];
        uint32_t *head = &t->last[2 * c->at + c->frees];
        next = c->next;
        c->next = *head;
        *head = k;
    }
    double now = 0, most = 0, tail = 0; /* whole bytes: their sums are exact */
    for (uint32_t at = 0; at < n; at++) {
        for (uint32_t k = t->last[at]; k != SC_NONE; k = t->change[k].next) {
            const change *c = &t->change[k];
            double bytes = c->frees ? -c->bytes : c->bytes;
            p->net[c->kind] += bytes;
            now += bytes;
        }
        if (now > most) {
            memcpy(p->most, p->net, sizeof p->net);
            most = now;
        }
        if (at == p->end || (at > p->end && now > tail)) {
            memcpy(p->tail, p->net, sizeof p->net);
            tail = now;
        }
    }
    p->sum_most = sum(p->most);
    p->sum_net = sum(p->net);
    p->sum_tail = sum(p->tail);
    p->sum_ahead = sum(p->ahead);
    return SC_OK;
}

/* State of a device during the walk of its slots. */
typedef struct walked {
    double now[SC_N_MEM_KINDS];
    double then[SC_N_MEM_KINDS]; /* before the previous slot */
    double sum, sum_then;        /* of all kinds */
    const profile *before;       /* profile of the previous slot */
} walked;

/* Updates the peak of a device by a moment at which its memory is the sum of
 * `now`, `more` and the prefetched `ahead`: `all` bytes. */
static void moment(const double now[SC_N_MEM_KINDS],
                   const double more[SC_N_MEM_KINDS],
                   const double ahead[SC_N_MEM_KINDS], double all,
                   sc_net_memory *out)
{
    if (all <= out->live) return;
    for (uint32_t k = 0; k < SC_N_MEM_KINDS; k++)
        out->by_kind[k] = now[k] + more[k] + ahead[k];
    out->live = all;
}

static void pass(walked *w, const profile *p, sc_net_memory *out)
{
    static const double none[SC_N_MEM_KINDS] = {0};
    const profile *b = w->before;
    if (b)
        moment(w->then, b->tail, p->ahead,
               w->sum_then + b->sum_tail + p->sum_ahead, out);
    moment(w->now, p->most, none, w->sum + p->sum_most, out);
    memcpy(w->then, w->now, sizeof w->then);
    w->sum_then = w->sum;
    add(w->now, p->net);
    w->sum += p->sum_net;
    w->before = p;
}

/* Bytes are whole numbers, so that sums are exact in any order. */
static sc_status walk_slots(const templates *t,
                            double (*permanent)[SC_N_MEM_KINDS],
                            sc_net_memory *out)
{
    static const uint8_t part[SLOTS] = {LOWER_FWD, LOWER_X, LOWER_W};
    static const double none[SC_N_MEM_KINDS] = {0};
    const lowering *g = t->g;
    walked *all = SC_NEW_N(g->a, walked, g->pp);
    if (!all) return sc_error_nomem(g->err);
    for (uint32_t dev = 0; dev < g->pp; dev++) {
        memcpy(all[dev].now, permanent[dev], sizeof all[dev].now);
        all[dev].sum = sum(permanent[dev]);
        moment(permanent[dev], none, none, all[dev].sum, &out[dev]);
    }
    for (uint32_t k = 0; k < g->n_slots; k++) {
        const lower_slot *s = &g->slot[k];
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            const profile *p = profile_of(t, s->stage, slot);
            if ((s->parts & part[slot]) && p->n > 0)
                pass(&all[s->dev], p, &out[s->dev]);
        }
    }
    return SC_OK;
}

/* Uses item numbers as operations, because no operations exist yet. */
sc_status clock_lifetimes(lowering *g)
{
    uint32_t n = g->prog->n_items;
    sc_op *item = SC_NEW_N(g->a, sc_op, n);
    if (!item) return sc_error_nomem(g->err);
    for (uint32_t k = 0; k < n; k++) item[k] = k;
    g->row[0] = g->row[1] = item;
    g->n_rows = 1;
    return lower_lifetimes(g);
}

sc_status clock_memory(lowering *g, sc_net_clock *out)
{
    templates t = {.g = g};
    size_t slots = (size_t)g->p->n_stages * SLOTS;
    double(*permanent)[SC_N_MEM_KINDS] =
        sc_alloc(g->a, g->pp, sizeof *permanent);
    t.of = SC_NEW_N(g->a, profile, slots);
    t.place = SC_NEW_N(g->a, uint32_t, g->prog->n_items);
    t.from = SC_NEW_N(g->a, uint32_t, g->prog->n_items);
    t.behind = SC_NEW_N(g->a, uint32_t, g->prog->n_items);
    out->memory = SC_NEW_N(g->a, sc_net_memory, g->pp);
    if (!permanent || !t.of || !t.place || !t.from || !t.behind || !out->memory)
        return sc_error_nomem(g->err);
    for (uint32_t k = 0; k < slots; k++) t.of[k].head = SC_NONE;
    for (uint32_t k = 0; k < g->n_slots && !t.split; k++)
        t.split = g->slot[k].parts == LOWER_W;
    for (uint32_t v = 0; v < g->p->n_stages; v++) {
        number(&t, v, &g->stage[v].fwd);
        number(&t, v, &g->stage[v].bwd);
    }
    SC_TRY(clock_lifetimes(g));
    SC_TRY(tensors(&t, permanent));
    for (uint32_t k = 0; k < slots; k++) SC_TRY(walk_slot(&t, &t.of[k]));
    SC_TRY(walk_slots(&t, permanent, out->memory));
    for (uint32_t dev = 0; dev < g->pp; dev++) {
        sc_net_memory *m = &out->memory[dev];
        double *kept = &m->by_kind[SC_MEM_ACTIVATION];
        double late = floor(*kept * sc_net_freed_late(g->job));
        *kept += late;
        m->live += late;
    }
    out->n_devices = g->pp;
    return SC_OK;
}
