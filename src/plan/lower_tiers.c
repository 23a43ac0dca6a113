/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_tiers.c - adds copies of values that are kept in another memory:
 * activations are copied out after their last use of the forward pass and back
 * before the first of the backward pass; weights in before each pass; gradients
 * out and updated weights in around an optimizer on the host.
 */
#include "plan/lower.h"
#include "plan/plan_host.h"
#include "plan/prices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct extra {
    uint32_t key; /* 2 i: before item i, 2 i + 1: after it */
    uint32_t id;  /* n_items + the place in the list */
    program_item item;
} extra;

typedef struct edit {
    const sc_net_run *job;
    const net_program *from;
    sc_arena *a;
    sc_err *err;
    net_program *to;
    uint32_t cap_values, n_extra, cap_extra;
    extra *extra;
    uint32_t *use_head; /* [n_values + 2] CSR: items that read a value */
    uint32_t *use;
    bool *own;               /* [n_items] its list of inputs is a copy */
    uint32_t *weight, *next; /* [n_tensors], [n_values] lists of each tensor's
                                weight values */
    uint32_t *away; /* [n_values] copy of a gradient on the host; SC_NONE */
} edit;

static double hosted(const sc_net_run *job)
{
    const sc_hw *hw = job->hw;
    if (!hw || !hw->host_size) return 1;
    return fmin(hw->host_size, hw->n_devices);
}

/* Host memory bandwidth for one device: the devices of a host divide it,
 * because they update their weights at the same time. */
double lower_host_bw(const sc_net_run *job)
{
    const sc_device *d = job->hw ? job->hw->device : NULL;
    if (!d) return INFINITY;
    double all = job->host_mem_bw > 0 ? job->host_mem_bw
                                      : plan_host_memory(d, job->hw->host_size);
    return all * PLAN_UPDATE_FRACTION / hosted(job);
}

double lower_tier_bw(const sc_net_run *job, sc_tier tier)
{
    if (tier == SC_TIER_EXPANDED) return job->hw ? job->hw->expanded.bw : 0;
    double bw = job->hw && job->hw->device ? job->hw->device->host_bw : 0;
    double all = job->nvme_bw > 0 ? job->nvme_bw : PLAN_NVME_BW;
    double nvme = all / hosted(job);
    return tier == SC_TIER_NVME && (bw <= 0 || bw > nvme) ? nvme : bw;
}

double sc_net_copy_bw(const sc_net_run *job, double *latency_s)
{
    const sc_strategy *s = job->strategy;
    bool used[SC_TIER_NVME + 1] = {false};
    double least = INFINITY;
    *latency_s = 0;
    for (uint32_t i = 0; s && i < s->n_rules; i++)
        if (s->rule[i].tier > SC_TIER_DEVICE) used[s->rule[i].tier] = true;
    if (s && (s->offload_activations > 0 || s->offload_weights > 0))
        used[sc_offload_tier(s->offload_to)] = true;
    if (s && s->optimizer_tier >= SC_TIER_CPU) used[SC_TIER_CPU] = true;
    for (int t = SC_TIER_EXPANDED; t <= (int)SC_TIER_NVME; t++) {
        double bw = used[t] ? lower_tier_bw(job, (sc_tier)t) : 0;
        if (bw <= 0 || bw >= least) continue;
        least = bw;
        *latency_s = t == SC_TIER_EXPANDED ? job->hw->expanded.latency_s : 0;
    }
    return isinf(least) ? lower_tier_bw(job, SC_TIER_CPU) : least;
}

/* ---- editing ------------------------------------------------------------ */

static sc_status add_value(edit *e, program_value v, uint32_t *out)
{
    net_program *p = e->to;
    program_value *all =
        sc_grow(e->a, p->value, p->n_values, &e->cap_values, 64, sizeof *all);
    if (!all) return sc_error_nomem(e->err);
    p->value = all;
    all[p->n_values] = v;
    *out = p->n_values++;
    return SC_OK;
}

static sc_status rate_unknown(const edit *e, uint32_t v, sc_tier tier)
{
    SC_TRY(program_name_values(e->to, e->a, e->err));
    return sc_error(e->err, SC_EINPUT, SC_C_MISSING, sc_pos_none(),
                    tier == SC_TIER_EXPANDED
                        ? "give expanded_memory and expanded_bw behind the "
                          "machine's name"
                        : "give host_bw in the device's file",
                    "the transfer rate between device and %s memory, which %s "
                    "needs, is not known",
                    tier == SC_TIER_EXPANDED ? "expanded" : "host",
                    e->to->value[v].name);
}

static double latency_of(const edit *e, sc_tier tier)
{
    return tier == SC_TIER_EXPANDED ? e->job->hw->expanded.latency_s : 0;
}

/* A copy of value `v` in memory `tier`, made by a copy at `key`. */
static sc_status copied(edit *e, uint32_t v, program_value into,
                        const program_item *at, uint32_t key, uint32_t *out)
{
    sc_tier slow = into.tier > e->to->value[v].tier
                       ? (sc_tier)into.tier
                       : (sc_tier)e->to->value[v].tier;
    double bw = lower_tier_bw(e->job, slow);
    uint32_t *in = SC_NEW(e->a, uint32_t);
    extra *all =
        sc_grow(e->a, e->extra, e->n_extra, &e->cap_extra, 64, sizeof *all);
    if (!in || !all) return sc_error_nomem(e->err);
    e->extra = all;
    if (bw <= 0) return rate_unknown(e, v, slow);
    if (e->job->prices)
        SC_TRY(prices_report_copy(e->job, e->job->net->op[at->op].path,
                                  sc_tier_names[into.tier], into.bytes, bw,
                                  e->err));
    *in = v;
    into.made = e->from->n_items + e->n_extra;
    SC_TRY(add_value(e, into, out));
    program_item it = {.pass = at->pass,
                       .recomputed = at->recomputed,
                       .cat = SC_CAT_OFFLOAD,
                       .stage = into.stage,
                       .to = SC_NONE,
                       .op = at->op,
                       .exchange = SC_NONE,
                       .copy = true,
                       .once = at->once,
                       .seconds = into.bytes / bw + latency_of(e, slow),
                       .bytes = into.bytes,
                       .n_in = 1,
                       .in = in,
                       .out = *out};
    all[e->n_extra++] = (extra){key, into.made, it};
    return SC_OK;
}

/* Item `i` reads `to` instead of `from`. */
static sc_status reads_instead(edit *e, uint32_t i, uint32_t from, uint32_t to)
{
    program_item *it = &e->to->item[i];
    if (!e->own[i]) {
        uint32_t *in = SC_NEW_N(e->a, uint32_t, it->n_in);
        if (!in) return sc_error_nomem(e->err);
        memcpy(in, it->in, it->n_in * sizeof *in);
        it->in = in;
        e->own[i] = true;
    }
    uint32_t *in = (uint32_t *)it->in;
    for (uint32_t k = 0; k < it->n_in; k++)
        if (in[k] == from) in[k] = to;
    return SC_OK;
}

static bool forward(const program_item *it)
{
    return it->pass == SC_PASS_FWD && !it->recomputed;
}

/* ---- activations -------------------------------------------------------- */

typedef struct uses {
    uint32_t last_fwd, first_bwd; /* items; SC_NONE */
    bool towards_inputs;          /* of the backward passes */
} uses;

static uses uses_of(const edit *e, uint32_t v)
{
    uses u = {SC_NONE, SC_NONE, false};
    const program_value *x = &e->from->value[v];
    for (uint32_t k = e->use_head[v]; k < e->use_head[v + 1]; k++) {
        uint32_t i = e->use[k];
        const program_item *it = &e->from->item[i];
        if (it->once || it->stage != x->stage) continue;
        if (forward(it)) {
            u.last_fwd = i;
            continue;
        }
        if (u.first_bwd == SC_NONE) u.first_bwd = i;
        if (it->pass != SC_PASS_WGRAD) u.towards_inputs = true;
    }
    return u;
}

/* Whether a value is saved from the forward to the backward pass. */
static bool is_saved(const edit *e, uint32_t v, uses *u)
{
    const program_value *x = &e->from->value[v];
    if (x->what != VALUE_ACT && x->what != VALUE_EXTRA) return false;
    if (x->made == SC_NONE || x->bytes <= 0 || x->stays) return false;
    if (!forward(&e->from->item[x->made])) return false;
    *u = uses_of(e, v);
    return u->first_bwd != SC_NONE;
}

static sc_status offload(edit *e, uint32_t v, sc_tier tier, const uses *u)
{
    program_value x = e->from->value[v];
    uint32_t away, back;
    program_item at = e->from->item[x.made];
    uint32_t behind = u->last_fwd != SC_NONE ? u->last_fwd : x.made;
    x.tier = (uint8_t)tier;
    SC_TRY(copied(e, v, x, &at, 2 * behind + 1, &away));
    e->to->value[v].tier = x.tier = SC_TIER_DEVICE;
    at = e->from->item[u->first_bwd];
    if (u->towards_inputs && at.pass == SC_PASS_WGRAD) at.pass = SC_PASS_DGRAD;
    SC_TRY(copied(e, away, x, &at, 2 * u->first_bwd, &back));
    for (uint32_t k = e->use_head[v]; k < e->use_head[v + 1]; k++) {
        const program_item *it = &e->from->item[e->use[k]];
        if (it->once || forward(it) || it->stage != x.stage) continue;
        SC_TRY(reads_instead(e, e->use[k], v, back));
    }
    return SC_OK;
}

static sc_tier offload_tier(const edit *e)
{
    const sc_strategy *s = e->job->strategy;
    return s ? sc_offload_tier(s->offload_to) : SC_TIER_CPU;
}

/* Values of which a fraction is kept in another memory, evenly spread over
 * those of each pipeline device. */
typedef struct spread {
    double fraction;
    sc_tier to;
    sc_schedule schedule;
    uint32_t pp, chunks;
    double *seen, *away; /* [pp] bytes */
} spread;

static sc_status spread_new(const edit *e, double fraction, spread *out)
{
    const sc_strategy *s = e->job->strategy;
    uint32_t pp = s ? (uint32_t)sc_strategy_degree(s, SC_AX_PP) : 1;
    bool named = s && s->schedule >= 0 && s->schedule != SC_SCH_FILE;
    *out = (spread){.schedule = named ? (sc_schedule)s->schedule : SC_SCH_1F1B,
                    .chunks = s ? sc_strategy_chunks(s) : 1,
                    .fraction = fraction > 0 ? fraction : 0,
                    .to = offload_tier(e),
                    .pp = pp,
                    .seen = SC_NEW_N(e->a, double, pp),
                    .away = SC_NEW_N(e->a, double, pp)};
    return out->seen && out->away ? SC_OK : sc_error_nomem(e->err);
}

/* The memory of the next of these values: in expanded memory whichever brings the
 * fraction nearer, in others no more than the fraction, with which measured runs
 * were fitted.  One that a rule names keeps its own. */
static sc_tier next_tier(spread *s, const program_value *x)
{
    sc_tier tier = (sc_tier)x->tier;
    uint32_t dev =
        sc_schedule_device(s->schedule, s->pp, s->chunks, x->stage, 0, 1);
    double own = s->to == SC_TIER_EXPANDED ? x->bytes / 2 : x->bytes - 0.5;
    s->seen[dev] += x->bytes;
    if (tier == SC_TIER_DEVICE && s->fraction > 0 &&
        s->away[dev] + own <= s->fraction * s->seen[dev])
        tier = s->to;
    if (tier != SC_TIER_DEVICE) s->away[dev] += x->bytes;
    return tier;
}

/* Offloads the values that rules name and the strategy's fraction of the
 * others, evenly spread. */
static sc_status activations(edit *e)
{
    const sc_strategy *s = e->job->strategy;
    spread sp;
    SC_TRY(spread_new(e, s ? s->offload_activations : 0, &sp));
    for (uint32_t v = 0; v < e->from->n_values; v++) {
        uses u;
        if (!is_saved(e, v, &u)) continue;
        sc_tier tier = next_tier(&sp, &e->from->value[v]);
        if (tier != SC_TIER_DEVICE) SC_TRY(offload(e, v, tier, &u));
    }
    return SC_OK;
}

/* ---- weights and the optimizer ------------------------------------------ */

static bool looks_up(const edit *e, const program_item *it)
{
    return it->exchange == SC_NONE && it->pass == SC_PASS_FWD && !it->copy &&
           e->job->net->op[it->op].type == SC_NET_EMBED;
}

/* Copies a weight in before its first use in a pass, for the whole pass. */
static sc_status fetch(edit *e, uint32_t v, bool fwd)
{
    uint32_t used = SC_NONE;
    for (uint32_t k = e->use_head[v]; k < e->use_head[v + 1]; k++) {
        uint32_t i = e->use[k];
        const program_item *it = &e->from->item[i];
        if (it->once || it->copy || forward(it) != fwd || looks_up(e, it))
            continue;
        if (used == SC_NONE) {
            program_value x = e->from->value[v];
            x.what = VALUE_WEIGHT_USED;
            x.tier = SC_TIER_DEVICE;
            SC_TRY(copied(e, v, x, it, 2 * i, &used));
        }
        SC_TRY(reads_instead(e, i, v, used));
    }
    return SC_OK;
}

/* Look-ups read the rows that they need where the table is, while they write
 * their results to the device's memory. */
static void look_up(edit *e, uint32_t v)
{
    sc_tier tier = (sc_tier)e->to->value[v].tier;
    double bw = lower_tier_bw(e->job, tier);
    for (uint32_t k = e->use_head[v]; k < e->use_head[v + 1]; k++) {
        program_item *it = &e->to->item[e->use[k]];
        if (!looks_up(e, it)) continue;
        double rows = it->price.bytes;
        if (it->out != SC_NONE) rows -= e->to->value[it->out].bytes;
        double s = fmax(0, rows) / bw + latency_of(e, tier);
        it->price.seconds = fmax(it->price.seconds, s);
    }
}

/* The weight that item `i` updates; SC_NONE: not known. */
static uint32_t weight_of(const edit *e, uint32_t i)
{
    const program_item *it = &e->from->item[i];
    for (uint32_t k = 0; k < it->n_in; k++) {
        const program_value *x = &e->from->value[it->in[k]];
        if (x->what != VALUE_STATE) continue;
        uint32_t v = e->weight[x->tensor];
        while (v != SC_NONE && e->from->value[v].stage != it->stage)
            v = e->next[v];
        if (v != SC_NONE) return v;
    }
    return SC_NONE;
}

/* The memory of the states that an update reads. */
static sc_tier states_tier(const edit *e, const program_item *it)
{
    sc_tier far = SC_TIER_DEVICE;
    for (uint32_t k = 0; k < it->n_in; k++) {
        const program_value *x = &e->to->value[it->in[k]];
        if (x->what == VALUE_STATE && x->tier > far) far = (sc_tier)x->tier;
    }
    return far;
}

/* Rows of a table are updated where it is: most of the bytes are theirs. */
static void update_rows(const edit *e, program_item *it, sc_tier tier)
{
    double s = it->price.bytes / lower_tier_bw(e->job, tier);
    it->price.seconds = fmax(it->price.seconds, s + latency_of(e, tier));
}

/* Copies a weight from the memory in which it was updated, the host's or the
 * device's, to the one that keeps it.  Beside states in expanded memory, its
 * update writes it there. */
static sc_status new_weight(edit *e, uint32_t i, sc_tier states)
{
    const program_item *it = &e->from->item[i];
    uint32_t out = it->out, w = weight_of(e, i), fresh;
    sc_tier made = states >= SC_TIER_CPU ? SC_TIER_CPU : SC_TIER_DEVICE, to;
    program_value x;
    if (w == SC_NONE && out == SC_NONE) return SC_OK;
    to = w != SC_NONE ? (sc_tier)e->to->value[w].tier : SC_TIER_DEVICE;
    if (to == made || to == states) return SC_OK;
    bool table = e->job->net->op[it->op].type == SC_NET_EMBED;
    if (table && made == SC_TIER_DEVICE) {
        update_rows(e, &e->to->item[i], to);
        return SC_OK;
    }
    if (out != SC_NONE) {
        x = e->to->value[out];
        e->to->value[out].tier = (uint8_t)made;
    } else {
        x = e->to->value[w];
        x.what = VALUE_WEIGHT_NEW;
        x.made = i;
        x.tier = (uint8_t)made;
        SC_TRY(add_value(e, x, &out));
        e->to->item[i].out = out;
    }
    x.tier = (uint8_t)to;
    SC_TRY(copied(e, out, x, it, 2 * i + 1, &fresh));
    if (it->out == SC_NONE) return SC_OK;
    for (uint32_t k = e->use_head[out]; k < e->use_head[out + 1]; k++)
        SC_TRY(reads_instead(e, e->use[k], out, fresh));
    return SC_OK;
}

/* A gradient is copied to the host before the update that reads it.  From
 * ZeRO-2 on, and if each micro-batch reduces it, it is copied at once and the
 * host sums micro-batches (DeepSpeed's copy_grads_in_partition). */
static sc_status gradient_away(edit *e, uint32_t v, uint32_t update,
                               uint32_t *away)
{
    program_value x = e->to->value[v];
    uint32_t made = v < e->from->n_values ? e->from->value[v].made : SC_NONE;
    bool leaves = x.what == VALUE_GRAD_KEPT || e->job->strategy->zero >= 2;
    bool each = leaves && made != SC_NONE && !e->from->item[made].once;
    const program_item *at = &e->from->item[each ? made : update];
    x.tier = SC_TIER_CPU;
    return copied(e, v, x, at, each ? 2 * made + 1 : 2 * update, away);
}

static sc_status updates(edit *e, uint32_t i)
{
    const program_item *it = &e->from->item[i];
    sc_tier states = states_tier(e, it);
    for (uint32_t k = 0; k < it->n_in && states >= SC_TIER_CPU; k++) {
        uint32_t from = it->in[k], away = SC_NONE;
        const program_value x = e->to->value[from];
        if (x.what != VALUE_GRAD_KEPT && x.what != VALUE_WEIGHT_GRAD) continue;
        if (from < e->from->n_values) away = e->away[from];
        if (away == SC_NONE) {
            SC_TRY(gradient_away(e, from, i, &away));
            e->away[from] = away;
        }
        SC_TRY(reads_instead(e, i, from, away));
    }
    return new_weight(e, i, states);
}

static sc_status kept(edit *e)
{
    const sc_strategy *s = e->job->strategy;
    bool host = s && s->optimizer_tier > SC_TIER_DEVICE;
    spread weights;
    SC_TRY(spread_new(e, s ? s->offload_weights : 0, &weights));
    for (uint32_t v = 0; v < e->from->n_values; v++) {
        const program_value *x = &e->from->value[v];
        if (host && x->what == VALUE_STATE && x->tier == SC_TIER_DEVICE &&
            !x->stays)
            e->to->value[v].tier = (uint8_t)s->optimizer_tier;
        sc_tier there = (sc_tier)e->to->value[v].tier;
        if (x->what == VALUE_STATE && there == SC_TIER_EXPANDED &&
            lower_tier_bw(e->job, there) <= 0)
            return rate_unknown(e, v, there);
        if (x->what != VALUE_WEIGHT || x->stays) continue;
        e->to->value[v].tier = (uint8_t)next_tier(&weights, x);
        there = (sc_tier)e->to->value[v].tier;
        if (there == SC_TIER_DEVICE) continue;
        if (lower_tier_bw(e->job, there) <= 0) return rate_unknown(e, v, there);
        look_up(e, v);
        SC_TRY(fetch(e, v, true));
        SC_TRY(fetch(e, v, false));
    }
    for (uint32_t i = 0; i < e->from->n_items; i++)
        if (e->from->item[i].pass == SC_PASS_UPDATE &&
            e->from->item[i].exchange == SC_NONE && !e->from->item[i].copy)
            SC_TRY(updates(e, i));
    return SC_OK;
}

/* ---- all ---------------------------------------------------------------- */

static sc_status prepare(edit *e)
{
    const net_program *p = e->from;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_items; i++) n += p->item[i].n_in;
    e->use_head = SC_NEW_N(e->a, uint32_t, (size_t)p->n_values + 2);
    e->use = SC_NEW_N(e->a, uint32_t, n);
    e->own = SC_NEW_N(e->a, bool, p->n_items);
    e->weight = SC_NEW_N(e->a, uint32_t, e->job->net->n_tensors);
    e->next = SC_NEW_N(e->a, uint32_t, p->n_values);
    e->away = SC_NEW_N(e->a, uint32_t, p->n_values);
    e->to->item = SC_NEW_N(e->a, program_item, p->n_items);
    e->to->value = SC_NEW_N(e->a, program_value, p->n_values);
    if (!e->weight || !e->next || !e->away || !e->use_head || !e->use ||
        !e->own || !e->to->item || !e->to->value)
        return sc_error_nomem(e->err);
    memcpy(e->to->item, p->item, p->n_items * sizeof *p->item);
    memcpy(e->to->value, p->value, p->n_values * sizeof *p->value);
    e->to->n_items = p->n_items;
    e->to->n_values = e->cap_values = p->n_values;
    for (uint32_t t = 0; t < e->job->net->n_tensors; t++)
        e->weight[t] = SC_NONE;
    for (uint32_t v = 0; v < p->n_values; v++) {
        e->away[v] = SC_NONE;
        if (p->value[v].what != VALUE_WEIGHT) continue;
        e->next[v] = e->weight[p->value[v].tensor];
        e->weight[p->value[v].tensor] = v;
    }
    for (uint32_t i = 0; i < p->n_items; i++)
        for (uint32_t k = 0; k < p->item[i].n_in; k++)
            e->use_head[p->item[i].in[k] + 2]++;
    for (uint32_t v = 0; v < p->n_values; v++)
        e->use_head[v + 2] += e->use_head[v + 1];
    for (uint32_t i = 0; i < p->n_items; i++)
        for (uint32_t k = 0; k < p->item[i].n_in; k++)
            e->use[e->use_head[p->item[i].in[k] + 1]++] = i;
    return SC_OK;
}

static int by_key(const void *x, const void *y)
{
    const extra *a = x, *b = y;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

/* Merges items and extras in order and renumbers the makers of values. */
static sc_status merge(edit *e)
{
    net_program *p = e->to;
    uint32_t total = p->n_items + e->n_extra, n = 0, k = 0;
    program_item *item = SC_NEW_N(e->a, program_item, total);
    uint32_t *now = SC_NEW_N(e->a, uint32_t, total);
    if (!item || !now) return sc_error_nomem(e->err);
    if (e->n_extra) qsort(e->extra, e->n_extra, sizeof *e->extra, by_key);
    for (uint32_t i = 0; i < p->n_items; i++) {
        for (; k < e->n_extra && e->extra[k].key == 2 * i; k++) {
            now[e->extra[k].id] = n;
            item[n++] = e->extra[k].item;
        }
        now[i] = n;
        item[n++] = p->item[i];
        for (; k < e->n_extra && e->extra[k].key == 2 * i + 1; k++) {
            now[e->extra[k].id] = n;
            item[n++] = e->extra[k].item;
        }
    }
    for (uint32_t v = 0; v < p->n_values; v++)
        if (p->value[v].made != SC_NONE)
            p->value[v].made = now[p->value[v].made];
    p->item = item;
    p->n_items = total;
    return SC_OK;
}

static bool all_on_device(const sc_net_run *job, const net_program *p)
{
    const sc_strategy *s = job->strategy;
    if (s && (s->offload_activations > 0 || s->offload_weights > 0 ||
              s->optimizer_tier > SC_TIER_DEVICE))
        return false;
    for (uint32_t v = 0; v < p->n_values; v++)
        if (p->value[v].tier != SC_TIER_DEVICE) return false;
    return true;
}

sc_status lower_tiers(const sc_net_run *job, const net_program *in, sc_arena *a,
                      net_program *out, sc_err *err)
{
    *out = *in;
    if (all_on_device(job, in)) return SC_OK;
    edit e = {.job = job, .from = in, .a = a, .err = err, .to = out};
    SC_TRY(prepare(&e));
    SC_TRY(activations(&e));
    SC_TRY(kept(&e));
    return merge(&e);
}
