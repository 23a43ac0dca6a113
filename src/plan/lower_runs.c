/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_runs.c - merges operations that run on a compute stream without a break
 * into one operation of several parts.
 *
 * An operation joins the one before it if its inputs were made on its own
 * stream and no other stream waits for the one before.  An exchange can be a
 * part if no other stream uses its links; once-a-step exchanges use them only
 * at the ends of a step.  The parts are found once for each stage and kind of
 * slot. First slots are a kind of their own because they wait for once-a-step
 * items, and last slots because once-a-step items wait for them.
 *
 * The fast sink shares no links.  It uses joined operations if no exchange
 * overlaps the kernels of a slot, because the times then add up.
 */
#include "plan/clock.h"

#include <string.h>

typedef struct run {
    lower_item sum;
    uint32_t n;
    const uint32_t *item; /* [n] */
    const sc_parts *parts;
} run;

typedef struct step {
    uint32_t item;
    const run *run; /* NULL: a single item */
} step;

typedef struct steps {
    uint32_t n, at_once; /* the steps from `at_once` on are transfers */
    step *step;          /* [n] */
} steps;

enum { FIRST = 1, LAST = 2, NOISY = 4, VARIANTS = 8, PARTS = 8 };

/* Whether other streams use the links of an exchange: always or per micro-
 * batch, only once a step, or never. */
typedef enum solitude { SHARED, WHILE_QUIET, ALONE } solitude;

struct lower_runs {
    bool *inside;     /* [n_items] made by the compute stream of its stage */
    uint8_t *alone;   /* [n_items] solitude of exchanges */
    uint8_t *awaited; /* [n_items] another stream waits for it: ALWAYS, ONCE */
    uint8_t *read; /* [n_stages] lower_part whose values are read once a step */
    uint8_t *slowed; /* [n_stages] lower_part whose exchanges slow kernels */
    bool early;   /* once-a-step exchanges use links during the first slots */
    bool *ending; /* [pp] once-a-step exchanges may run from now on */
    steps **slot; /* [n_stages][2][PARTS][VARIANTS] */
    uint32_t n, cap;
    sc_op *op; /* [n] operation that contains the part with each number */
};

enum { ALWAYS = 1, ONCE = 2 };

/* ---- numbers ------------------------------------------------------------ */

sc_op lower_op_of(const lowering *g, uint32_t number)
{
    return g->runs ? g->runs->op[number] : number;
}

uint32_t lower_number(lowering *g, sc_op op, uint32_t n)
{
    struct lower_runs *r = g->runs;
    if (!r) return op;
    uint32_t first = r->n;
    while (n > r->cap - r->n) {
        sc_op *all =
            sc_grow_raw(g->a, r->op, r->cap, &r->cap, 4096, sizeof *all);
        if (!all) {
            g->failed = true;
            return first;
        }
        r->op = all;
    }
    while (n-- > 0) r->op[r->n++] = op;
    return first;
}

/* ---- waits -------------------------------------------------------------- */

static uint32_t maker(const lowering *g, const program_item *it, uint32_t k)
{
    return g->prog->value[it->in[k]].made;
}

/* Marks take no time and are in no queue. */
static bool is_queued(const lower_item *t)
{
    return t->stream == SC_S_COMPUTE && t->work > 0;
}

static bool by_stream(const lowering *g, uint32_t i)
{
    const program_item *it = &g->prog->item[i];
    if (it->once || it->to != SC_NONE) return false;
    if (!g->item[i].none) return is_queued(&g->item[i]);
    uint32_t m = g->item[i].as;
    return m == SC_NONE ||
           (g->prog->item[m].stage == it->stage && g->runs->inside[m]);
}

/* Marks an item as awaited, and its input if the item takes no time. */
static void await(const lowering *g, uint32_t m, uint8_t when)
{
    for (;;) {
        const program_item *it = &g->prog->item[m];
        g->runs->awaited[m] |= when;
        if (when == ONCE) g->runs->read[it->stage] |= g->item[m].part;
        if (!g->item[m].none || g->item[m].as == SC_NONE) return;
        m = g->item[m].as;
    }
}

/* Marks the inputs of an item as awaited, unless its own compute stream makes
 * them.  A transfer to another device waits for the end of its slot. */
static void awaits(const lowering *g, uint32_t i)
{
    const program_item *it = &g->prog->item[i];
    const lower_item *t = &g->item[i];
    bool transfer = t->kind == SC_OP_P2P && it->to != SC_NONE;
    /* The last slot of a pass may be looked up, so its ends must be kept. */
    bool always = !it->once || (g->clock && lower_splits(g));
    if (t->none) return;
    if (transfer && lower_device(g, it->to, 0) != lower_device(g, it->stage, 0))
        return;
    for (uint32_t k = 0; k < it->n_in; k++) {
        uint32_t m = maker(g, it, k);
        if (m == SC_NONE || g->prog->item[m].once) continue;
        if (transfer || !is_queued(t) || g->prog->item[m].stage != it->stage)
            await(g, m, always ? ALWAYS : ONCE);
    }
}

/* ---- links -------------------------------------------------------------- */

#define NOBODY SC_NONE
#define MANY   (SC_NONE - 1)

static sc_status comm_of(lowering *g, uint32_t i, uint32_t *dev,
                         const lower_comm **out)
{
    const program_item *it = &g->prog->item[i];
    uint32_t to = it->to == SC_NONE ? SC_NONE : lower_device(g, it->to, 0);
    *dev = lower_device(g, it->stage, 0);
    *out = NULL;
    if (it->exchange == SC_NONE || it->copy || to == *dev) return SC_OK;
    return lower_comm_of(g, i, *dev, to, out);
}

/* The only device that runs an exchange; MANY: several do. */
static uint32_t runner(uint32_t dev, const lower_comm *c)
{
    return c->n_dev == 0 || (c->n_dev == 1 && c->dev[0] == dev) ? dev : MANY;
}

static bool on_stream(const lowering *g, uint32_t i)
{
    return g->item[i].kind == SC_OP_COLL && g->item[i].stream == SC_S_COMPUTE;
}

/* Whether an item is a gather that may overlap the first slots. */
static bool is_early(const lowering *g, const program_item *it)
{
    if (it->out != SC_NONE && g->prog->value[it->out].what == VALUE_WEIGHT_USED)
        return true;
    for (uint32_t k = 0; g->weights_overlap && k < it->n_in; k++)
        if (g->prog->value[it->in[k]].what == VALUE_WEIGHT_NEW) return true;
    return false;
}

/* The devices whose exchanges use each link, separately for exchanges that run
 * once a step and for all others (`often`). */
typedef struct crossed {
    uint32_t *often, *once; /* [links] the only device; NOBODY; MANY */
    bool *early;            /* [links] used during the first slots */
} crossed;

static sc_status find_crossed(lowering *g, crossed *x)
{
    const lower_comm *c, *last = NULL;
    uint32_t dev, *last_of = NULL, last_who = NOBODY;
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        const program_item *it = &g->prog->item[i];
        SC_TRY(comm_of(g, i, &dev, &c));
        if (!c || !c->moves) continue;
        bool once = it->once && !on_stream(g, i);
        uint32_t *of = once ? x->once : x->often;
        uint32_t who = once || on_stream(g, i) ? runner(dev, c) : MANY;
        bool early = once && is_early(g, it);
        if (!early && c == last && of == last_of && who == last_who) continue;
        for (uint32_t k = 0; k < c->moves->n; k++) {
            uint32_t *at = &of[c->moves->link[k]];
            *at = *at == NOBODY || *at == who ? who : MANY;
            x->early[c->moves->link[k]] |= early;
        }
        last = c;
        last_of = of;
        last_who = who;
    }
    return SC_OK;
}

/* Whether other jobs may use a link: they have other nodes. */
static bool is_public(const sc_net_site *site, uint64_t link)
{
    bool nodes = site && site->hw->n_nodes > 1;
    return site &&
           !(nodes && sc_hw_link_scope(site->hw, link) == SC_SCOPE_NODE);
}

static solitude solitude_of(const lowering *g, const crossed *x, uint32_t dev,
                            const lower_comm *c)
{
    solitude is = ALONE;
    for (uint32_t k = 0; c->moves && k < c->moves->n; k++) {
        uint64_t link = c->moves->link[k];
        bool never = x->once[link] == NOBODY;
        if (is_public(g->job->site, link)) return SHARED;
        if (x->often[link] != dev) return SHARED;
        if (!never && x->once[link] != dev) return SHARED;
        if (!never) is = WHILE_QUIET;
        if (x->early[link]) g->runs->early = true;
    }
    return is;
}

static sc_status find_alone(lowering *g)
{
    const sc_hw *hw = g->job->site ? g->job->site->hw : g->job->hw;
    uint64_t n = hw ? sc_hw_n_links(hw) : 0;
    crossed x = {SC_NEW_N(g->a, uint32_t, n), SC_NEW_N(g->a, uint32_t, n),
                 SC_NEW_N(g->a, bool, n)};
    const lower_comm *c, *last = NULL;
    uint32_t dev, last_dev = NOBODY;
    uint8_t is = SHARED;
    if (!x.often || !x.once || !x.early) return sc_error_nomem(g->err);
    memset(x.often, 0xff, n * sizeof *x.often);
    memset(x.once, 0xff, n * sizeof *x.once);
    SC_TRY(find_crossed(g, &x));
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        SC_TRY(comm_of(g, i, &dev, &c));
        if (!c || !on_stream(g, i) || runner(dev, c) != dev) continue;
        if (c != last || dev != last_dev)
            is = (uint8_t)solitude_of(g, &x, dev, c);
        g->runs->alone[i] = is;
        last = c;
        last_dev = dev;
    }
    return SC_OK;
}

/* ---- parts -------------------------------------------------------------- */

static bool is_part(const lowering *g, uint32_t i, uint32_t variant)
{
    const lower_item *t = &g->item[i];
    const program_item *it = &g->prog->item[i];
    if (!is_queued(t) || t->none || t->back || it->copy || it->to != SC_NONE)
        return false;
    if (it->exchange == SC_NONE) return t->kind == SC_OP_COMPUTE;
    return !t->fills &&
           g->runs->alone[i] >= (variant & NOISY ? ALONE : WHILE_QUIET);
}

/* Whether an item can extend a run.  Inputs from other stages do not prevent
 * it, because they have arrived before the slot starts. */
static bool follows(const lowering *g, uint32_t i, uint32_t variant)
{
    const lower_item *t = &g->item[i];
    if (!is_part(g, i, variant) || t->fills || (t->once && variant & FIRST))
        return false;
    for (uint32_t k = 0; k < t->n_after; k++)
        if (g->prog->item[t->after[k]].stage == g->prog->item[i].stage &&
            !g->runs->inside[t->after[k]])
            return false;
    return true;
}

static bool ends(const lowering *g, uint32_t i, uint32_t variant)
{
    uint8_t awaited = g->runs->awaited[i];
    return g->item[i].closes || awaited & ALWAYS ||
           (awaited & ONCE && variant & LAST);
}

static void moves(sc_parts *p, uint32_t traffic, uint64_t bytes, uint32_t *all,
                  uint64_t *sum)
{
    uint32_t k = 0;
    while (k < p->n_moves && all[k] != traffic) k++;
    if (k == p->n_moves) sum[p->n_moves++] = 0;
    all[k] = traffic;
    sum[k] += bytes;
}

/* Room for all runs of a slot. */
typedef struct room {
    run *run;
    sc_parts *parts;
    sc_time *end;
    uint8_t *kind, *cat;
    uint32_t *item, *traffic;
    uint64_t *bytes;
} room;

static bool room_new(sc_arena *a, uint32_t n, room *x)
{
    *x = (room){.run = SC_RAW_N(a, run, n / 2),
                .parts = SC_RAW_N(a, sc_parts, n / 2),
                .end = SC_RAW_N(a, sc_time, n),
                .kind = SC_RAW_N(a, uint8_t, n),
                .cat = SC_RAW_N(a, uint8_t, n),
                .item = SC_RAW_N(a, uint32_t, n),
                .traffic = SC_RAW_N(a, uint32_t, n),
                .bytes = SC_RAW_N(a, uint64_t, n)};
    return x->run && x->parts && x->end && x->kind && x->cat && x->item &&
           x->traffic && x->bytes;
}

static void advance_room(room *x, uint32_t n)
{
    x->run++;
    x->parts++;
    x->end += n;
    x->kind += n;
    x->cat += n;
    x->item += n;
    x->traffic += n;
    x->bytes += n;
}

static sc_status make_parts(lowering *g, room *x, run *r)
{
    sc_parts *p = x->parts;
    sc_time at = 0;
    uint32_t dev;
    *p = (sc_parts){.n = r->n,
                    .end = x->end,
                    .kind = x->kind,
                    .cat = x->cat,
                    .traffic = x->traffic,
                    .bytes = x->bytes};
    for (uint32_t k = 0; k < r->n; k++) {
        const lower_item *t = &g->item[r->item[k]];
        const lower_comm *c = NULL;
        if (!g->clock) SC_TRY(comm_of(g, r->item[k], &dev, &c));
        x->end[k] = at += t->work;
        x->kind[k] = t->kind;
        x->cat[k] = g->prog->item[r->item[k]].cat;
        p->kinds |= 1u << t->kind;
        p->by_cat[x->cat[k]] += t->work;
        if (c && c->traffic[0] != SC_NONE)
            moves(p, c->traffic[0], t->bytes, x->traffic, x->bytes);
        r->sum.flops += t->flops;
    }
    r->sum.work = at;
    r->parts = p;
    return SC_OK;
}

static sc_status close_run(lowering *g, steps *s, const uint32_t *item,
                           uint32_t n, room *x)
{
    if (n == 0) return SC_OK;
    step *to = &s->step[s->n++];
    *to = (step){.item = item[0]};
    if (n == 1) return SC_OK;
    memcpy(x->item, item, n * sizeof *item);
    *x->run = (run){.n = n,
                    .item = x->item,
                    .sum = {.name = g->item[item[0]].name,
                            .kind = SC_OP_COMPUTE,
                            .stream = SC_S_COMPUTE}};
    to->run = x->run;
    SC_TRY(make_parts(g, x, x->run));
    advance_room(x, n);
    return SC_OK;
}

/* ---- slots -------------------------------------------------------------- */

/* Divides a slot into runs.  Items that take no time follow their run. */
static sc_status plan_slot(lowering *g, const lower_list *l, uint8_t parts,
                           uint32_t variant, steps *s)
{
    uint32_t *open = SC_NEW_N(g->a, uint32_t, 2 * (size_t)l->n), n = 0;
    uint32_t *idle = open + l->n, n_idle = 0;
    room x;
    s->step = SC_NEW_N(g->a, step, l->n);
    if (!open || !s->step || !room_new(g->a, l->n, &x))
        return sc_error_nomem(g->err);
    for (uint32_t k = 0; k <= l->n; k++) {
        uint32_t i = k < l->n ? l->item[k] : SC_NONE;
        if (i != SC_NONE &&
            (!(g->item[i].part & parts) || lower_is_transfer(g, i)))
            continue;
        bool none = i != SC_NONE && g->item[i].none;
        if (none && n > 0) {
            idle[n_idle++] = i;
            continue;
        }
        if (i == SC_NONE || n == 0 || !follows(g, i, variant) ||
            ends(g, open[n - 1], variant)) {
            SC_TRY(close_run(g, s, open, n, &x));
            for (uint32_t j = 0; j < n_idle; j++)
                s->step[s->n++] = (step){.item = idle[j]};
            n = n_idle = 0;
        }
        if (i == SC_NONE) break;
        if (is_part(g, i, variant))
            open[n++] = i;
        else
            s->step[s->n++] = (step){.item = i};
    }
    s->at_once = s->n;
    for (uint32_t k = 0; k < l->n; k++)
        if (g->item[l->item[k]].part & parts &&
            lower_is_transfer(g, l->item[k]))
            s->step[s->n++] = (step){.item = l->item[k]};
    return SC_OK;
}

/* Whether no once-a-step exchange can be running.  Exchanges of gradients start
 * after the last slot of a pass, and gathers may overlap the first slots. */
static bool is_quiet(const lowering *g, const lower_instance *at,
                     const lower_slot *s)
{
    for (uint32_t part = 0; part < 3; part++)
        if ((s->parts & g->runs->read[at->stage]) >> part & 1 &&
            at->last[part] == s->mb)
            g->runs->ending[at->dev] = true;
    if (g->runs->ending[at->dev]) return false;
    for (uint32_t k = 0; g->runs->early && k < g->n_inst; k++)
        for (uint32_t part = 0; part < 3; part++)
            if (g->inst[k].dev == at->dev && g->inst[k].left[part] > 0 &&
                !(g->inst[k].ran >> part & 1))
                return false;
    return true;
}

static sc_status slot_of(lowering *g, const lower_instance *at,
                         const lower_slot *s, const lower_list *l,
                         const steps **out)
{
    uint32_t variant = (at->ran & s->parts) != s->parts ? FIRST : 0;
    for (uint32_t part = 0; part < 3; part++)
        if ((s->parts >> part & 1) && at->last[part] == s->mb) variant |= LAST;
    if (!g->clock && !is_quiet(g, at, s)) variant |= NOISY;
    size_t list = 2 * (size_t)at->stage + (l == &g->stage[at->stage].bwd);
    steps **known =
        &g->runs->slot[(list * PARTS + s->parts) * VARIANTS + variant];
    if (!*known) {
        if (!(*known = SC_NEW(g->a, steps))) return sc_error_nomem(g->err);
        SC_TRY(plan_slot(g, l, s->parts, variant, *known));
    }
    *out = *known;
    return SC_OK;
}

static void emit_run(lowering *g, const lower_instance *at, uint32_t mb,
                     const run *r)
{
    sc_op_desc o = {.cat = SC_CAT_COMPUTE,
                    .flops = r->sum.flops,
                    .traffic = SC_NONE,
                    .dev = &at->dev,
                    .n_dev = 1,
                    .parts = r->parts};
    uint32_t first = lower_add(g, &r->sum, &o), last = r->item[r->n - 1];
    lower_deps(g, at, mb, r->item[0], 0, first);
    for (uint32_t k = 0; k < r->n; k++)
        *lower_ops(g, mb, r->item[k]) = g->clock ? first : first + k;
    lower_ran(g, at, last, 0, first);
    if (g->item[last].closes) g->n_past[at->dev]++;
    g->opening = NULL;
}

sc_status lower_runs_pass(lowering *g, const lower_instance *at,
                          const lower_slot *s, const lower_list *l, bool *done)
{
    const steps *all = NULL;
    *done = !g->clock || (!(g->runs->slowed[at->stage] & s->parts) &&
                          clock_is_quiet(g->clock, at->dev));
    if (!*done) return SC_OK;
    SC_TRY(slot_of(g, at, s, l, &all));
    g->opening = s;
    for (uint32_t k = 0; k < all->n; k++) {
        const step *x = &all->step[k];
        if (k == all->at_once) g->opening = NULL;
        if (x->run) {
            emit_run(g, at, s->mb, x->run);
            continue;
        }
        SC_TRY(lower_emit(g, at, s->mb, x->item));
        if (g->item[x->item].stream == SC_S_COMPUTE && !g->item[x->item].none)
            g->opening = NULL;
    }
    g->opening = NULL;
    return g->failed ? sc_error_nomem(g->err) : SC_OK;
}

/* Finds, for each stage, the passes whose exchanges slow kernels.  Returns
 * false if every stage has such exchanges in both passes. */
static bool find_slowed(const lowering *g, uint8_t *slowed)
{
    bool quiet = false;
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        const lower_item *t = &g->item[i];
        bool slows = t->stream == SC_S_GRAD || t->stream == SC_S_COMM;
        if (slows && !g->prog->item[i].once)
            slowed[g->prog->item[i].stage] |= t->part;
    }
    for (uint32_t v = 0; v < g->p->n_stages; v++)
        quiet = quiet || !(slowed[v] & LOWER_FWD) ||
                !(slowed[v] & (LOWER_X | LOWER_W));
    return quiet;
}

static sc_status runs_new(lowering *g, struct lower_runs *r)
{
    uint32_t n = g->prog->n_items;
    if (!(r->inside = SC_NEW_N(g->a, bool, n)) ||
        !(r->alone = SC_NEW_N(g->a, uint8_t, n)) ||
        !(r->read = SC_NEW_N(g->a, uint8_t, g->p->n_stages)) ||
        !(r->awaited = SC_NEW_N(g->a, uint8_t, n)) ||
        !(r->slot = SC_NEW_N(g->a, steps *,
                             2 * (size_t)g->p->n_stages * PARTS * VARIANTS)))
        return sc_error_nomem(g->err);
    g->runs = r;
    for (uint32_t i = 0; i < n; i++) {
        r->inside[i] = by_stream(g, i);
        awaits(g, i);
    }
    if (!g->clock) return find_alone(g);
    memset(r->alone, ALONE, n);
    return SC_OK;
}

/* Kernels are not merged if a stage has a second instance on another device. */
sc_status lower_runs_prepare(lowering *g)
{
    if (!g->job->joined || g->members > 1 || g->rules->ready_order ||
        g->eager || g->job->layers_chunk)
        return SC_OK;
    for (uint32_t k = 0; k < g->n_inst; k++)
        if (g->inst[k].row) return SC_OK;
    struct sc_net_walks *x = lower_shared(g);
    const struct lower_runs *known = x ? x->runs[!g->clock] : NULL;
    struct lower_runs *r = SC_NEW(g->a, struct lower_runs);
    bool *ending = SC_NEW_N(g->a, bool, g->pp);
    if (!r || !ending) return sc_error_nomem(g->err);
    if (known) {
        *r = *known;
        r->op = NULL;
        r->n = r->cap = 0;
        g->runs = r;
    } else {
        r->slowed = SC_NEW_N(g->a, uint8_t, g->p->n_stages);
        if (!r->slowed) return sc_error_nomem(g->err);
        if (!find_slowed(g, r->slowed) && g->clock) return SC_OK;
        SC_TRY(runs_new(g, r));
        if (x) x->runs[!g->clock] = r;
    }
    r->ending = ending;
    return SC_OK;
}
