/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_items.c - finds the properties of items that are equal in all
 * micro-batches (operation, stream, readers of values) and the order in which
 * the items of each stage are issued.
 *
 * Prefetches (weights gathered or copied, activations copied back) are issued
 * some layers before their use, so that they precede exchanges in their stream
 * which wait for those layers.
 */
#include "plan/lower.h"
#include "plan/plan_host.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- operations --------------------------------------------------------- */

static bool reads(const lowering *g, const program_item *it, value_kind what)
{
    for (uint32_t i = 0; i < it->n_in; i++)
        if (g->prog->value[it->in[i]].what == what) return true;
    return false;
}

static value_kind makes(const lowering *g, const program_item *it)
{
    return it->out == SC_NONE ? VALUE_INPUT
                              : (value_kind)g->prog->value[it->out].what;
}

/* The optimizer runs on the host if that holds its states. */
static bool on_host(const lowering *g, const program_item *it)
{
    if (it->pass != SC_PASS_UPDATE || it->copy || it->exchange != SC_NONE)
        return false;
    for (uint32_t i = 0; i < it->n_in; i++) {
        const program_value *v = &g->prog->value[it->in[i]];
        if (v->what == VALUE_STATE && v->tier >= SC_TIER_CPU) return true;
    }
    return false;
}

/* Stages exchange parts of the embedding table, the head's inputs and their
 * gradients over three communicators, each of which has its own queue. */
static uint8_t over_stages(const lowering *g, const program_item *it,
                           const sc_net_exchange *x)
{
    if (g->job->net->op[it->op].on_all_stages) return SC_S_COPY;
    return x->coll == SC_BROADCAST ? SC_S_COMM : SC_S_P2P;
}

static uint8_t stream_of(const lowering *g, const program_item *it)
{
    if (it->copy) return SC_S_COPY;
    if (on_host(g, it)) return SC_S_HOST;
    if (it->exchange == SC_NONE) return SC_S_COMPUTE;
    const sc_net_exchange *x = &g->p->exchange[it->exchange];
    if (x->p2p && it->to != SC_NONE) {
        /* Transfers are queued with the other exchanges of their source. */
        if (g->rules->transfers_first) return SC_S_COMM;
        return g->p2p_overlaps ? SC_S_P2P : SC_S_COMPUTE;
    }
    if (g->job->layers_chunk && x->axes == 0 && !x->p2p && !it->once)
        return over_stages(g, it, x);
    if (x->grad) return g->grads_overlap ? SC_S_GRAD : SC_S_COMPUTE;
    if (reads(g, it, VALUE_WEIGHT_NEW))
        return g->weights_overlap ? SC_S_GRAD : SC_S_COMPUTE;
    if (makes(g, it) == VALUE_WEIGHT_USED) return SC_S_COMM;
    /* An exchange of activations blocks the kernels before and after it.  Its
     * price leaves out the time that the program hides. */
    return g->rules->exchanges_overlap ? SC_S_COMM : SC_S_COMPUTE;
}

static uint8_t kind_of(const lowering *g, const program_item *it)
{
    if (it->copy) return SC_OP_MEM;
    /* It runs no kernel, so exchanges do not slow it. */
    if (on_host(g, it) || it->cat == SC_CAT_HOST) return SC_OP_HOST;
    if (it->exchange == SC_NONE) return SC_OP_COMPUTE;
    return g->p->exchange[it->exchange].p2p ? SC_OP_P2P : SC_OP_COLL;
}

static uint8_t part_of(const program_item *it)
{
    if (it->pass == SC_PASS_FWD && !it->recomputed) return LOWER_FWD;
    return it->pass == SC_PASS_WGRAD ? LOWER_W : LOWER_X;
}

static const char *const pass_names[] = {"forward", "backward", "input grad",
                                         "weight grad", "update"};

/* If operations are not listed one by one, the operator's name is enough. */
static const char *name_of(const lowering *g, const program_item *it)
{
    const char *path = it->op == SC_NONE ? "" : g->job->net->op[it->op].path;
    if (g->clock || (g->job->joined && !g->notes)) return path;
    if (it->cat == SC_CAT_HOST) return "wait for the host";
    if (it->exchange == SC_NONE)
        return sc_sprintf(g->a, "%s %s%s", path,
                          it->recomputed ? "recomputed " : "",
                          it->copy ? "copy" : pass_names[it->pass]);
    const sc_net_exchange *x = &g->p->exchange[it->exchange];
    return sc_sprintf(g->a, "%s %s %s%s", x->path ? x->path : path, x->tensor,
                      x->p2p ? "send" : sc_coll_names[x->coll],
                      x->bucketed ? " (bucket)" : "");
}

/* An update on the host moves as many bytes as on a device, through the host's
 * memory; states on NVMe are copied meanwhile. */
static double host_seconds(const lowering *g, const program_item *it)
{
    double s = it->price.bytes / lower_host_bw(g->job), drives = 0;
    for (uint32_t i = 0; i < it->n_in; i++) {
        const program_value *v = &g->prog->value[it->in[i]];
        if (v->what == VALUE_STATE && v->tier == SC_TIER_NVME)
            drives += 2 * v->bytes;
    }
    drives = fmin(drives, it->price.bytes);
    return fmax(s, drives / lower_tier_bw(g->job, SC_TIER_NVME));
}

/* Seconds of kernels.  An update may read and write states elsewhere, those of a
 * table only of the rows that it changes. */
static double kernel_seconds(const lowering *g, const program_item *it)
{
    double states = 0;
    for (uint32_t i = 0; i < it->n_in && it->pass == SC_PASS_UPDATE; i++) {
        const program_value *v = &g->prog->value[it->in[i]];
        if (v->what == VALUE_STATE && v->tier == SC_TIER_EXPANDED)
            states += 2 * v->bytes;
    }
    if (states <= 0) return it->price.seconds;
    return plan_expanded_update(g->job->hw, it->price.seconds,
                                fmin(states, it->price.bytes));
}

static void timed(const lowering *g, const program_item *it, lower_item *t)
{
    if (t->kind == SC_OP_COMPUTE || it->cat == SC_CAT_HOST) {
        t->none = it->price.seconds <= 0 && it->n_in <= 1;
        t->work = sc_time_from_s(g->slow * kernel_seconds(g, it));
        if (it->price.seconds > 0) t->latency = g->rules->launch_gap;
        t->work += t->latency;
        t->flops = it->price.flops;
        t->bytes = (uint64_t)it->price.bytes;
        return;
    }
    if (t->kind == SC_OP_HOST) {
        t->work = sc_time_from_s(g->slow * host_seconds(g, it));
        t->bytes = (uint64_t)it->price.bytes;
        return;
    }
    t->work = sc_time_from_s(g->slow * it->seconds);
    t->latency = sc_time_from_s(g->slow * it->latency);
    if (t->latency > t->work) t->latency = t->work;
    t->bytes = (uint64_t)it->bytes;
}

/* Lists each item of the same micro-batch that makes an input of item `i`,
 * once; inputs from items that run once a step set its `once`.  `named`
 * [n_items] holds the last item that listed an item, + 1. */
static uint32_t *before(lowering *g, uint32_t i, uint32_t *named,
                        uint32_t *room)
{
    const program_item *it = &g->prog->item[i];
    lower_item *t = &g->item[i];
    t->after = room;
    for (uint32_t k = 0; k < it->n_in; k++) {
        const program_value *v = &g->prog->value[it->in[k]];
        uint32_t m = v->made;
        if (m == SC_NONE || it->once || g->prog->item[m].once) {
            t->once = t->once || m != SC_NONE ||
                      (v->what == VALUE_WEIGHT &&
                       g->new_weight[v->tensor] != SC_NONE);
            continue;
        }
        if (named[m] == i + 1) continue;
        named[m] = i + 1;
        *room++ = m;
        t->n_after++;
    }
    return room;
}

/* If the pass for inputs reads a recomputed value, it also recomputes it. */
static void pull(lowering *g)
{
    for (uint32_t i = g->prog->n_items; i-- > 0;) {
        const lower_item *t = &g->item[i];
        if (t->part != LOWER_X || g->prog->item[i].once) continue;
        for (uint32_t k = 0; k < t->n_after; k++) {
            uint32_t m = t->after[k];
            if (g->item[m].part == LOWER_W &&
                g->prog->item[m].stage == g->prog->item[i].stage)
                g->item[m].part = LOWER_X;
        }
    }
}

/* The item that frees the buffer of exchange `i`: the exchange, or the copy to
 * the memory in which micro-batches are summed.  Such copies are in the queue
 * of the exchanges, before the next exchange (DeepSpeed's
 * copy_grads_in_partition, FSDP2's foreach_reduce). */
static uint32_t last_of_bucket(const lowering *g, uint32_t i)
{
    uint32_t at = i, next = i;
    while (next != SC_NONE) {
        uint32_t out = g->prog->item[at = next].out;
        next = SC_NONE;
        if (out == SC_NONE || g->prog->item[at].copy) break;
        uint32_t v = g->root[out];
        for (uint32_t k = g->use_head[v]; k < g->use_head[v + 1]; k++) {
            const program_item *it = &g->prog->item[g->use[k]];
            bool moves = it->copy || it->exchange != SC_NONE;
            if (g->use[k] > at && moves && !it->once) next = g->use[k];
        }
    }
    return g->prog->item[at].copy ? at : i;
}

/* Whether a gradient is copied to the host as soon as a kernel has made it. */
static bool goes_away(const lowering *g, uint32_t i)
{
    const program_item *it = &g->prog->item[i];
    if (!it->copy || it->once || it->n_in != 1) return false;
    const program_value *v = &g->prog->value[it->in[0]];
    return v->what == VALUE_WEIGHT_GRAD || v->what == VALUE_GRAD_KEPT;
}

/* Finds the items that fill gradient buffers which are reduced or copied to the
 * host in each micro-batch.  Exchanges with separate queues have no buffers. */
static void find_fillers(lowering *g)
{
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        const program_item *it = &g->prog->item[i];
        bool grad =
            it->exchange != SC_NONE && g->p->exchange[it->exchange].grad;
        bool away = goes_away(g, i), fills = false;
        if ((!grad && !away) || it->once || g->rules->exchanges_overlap)
            continue;
        for (uint32_t k = 0; k < it->n_in; k++) {
            uint32_t m = g->prog->value[it->in[k]].made;
            if (m == SC_NONE || g->prog->item[m].exchange != SC_NONE) continue;
            g->item[m].fills = fills = true;
        }
        g->item[i].fills = fills && grad;
        if (fills) g->item[last_of_bucket(g, i)].empties = true;
    }
}

static sc_status describe(lowering *g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->prog->n_items; i++) n += g->prog->item[i].n_in;
    uint32_t *room = SC_NEW_N(g->a, uint32_t, n);
    uint32_t *named = SC_NEW_N(g->a, uint32_t, g->prog->n_items);
    if (!room || !named) return sc_error_nomem(g->err);
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        const program_item *it = &g->prog->item[i];
        lower_item *t = &g->item[i];
        t->kind = kind_of(g, it);
        t->stream = stream_of(g, it);
        t->part = part_of(it);
        t->name = name_of(g, it);
        if (!t->name) return sc_error_nomem(g->err);
        timed(g, it, t);
        t->as = it->n_in ? g->prog->value[it->in[0]].made : SC_NONE;
        room = before(g, i, named, room);
    }
    pull(g);
    return SC_OK;
}

/* ---- values ------------------------------------------------------------- */

/* Whether the result uses the memory of the input: a view, a sum over ranks in
 * place, or a transfer to a stage of the same device. */
static bool in_place(const lowering *g, const program_item *it)
{
    if (it->copy || it->out == SC_NONE || it->n_in != 1 || it->n_more)
        return false;
    if (it->to != SC_NONE)
        return lower_device(g, it->stage, 0) == lower_device(g, it->to, 0);
    if (it->exchange != SC_NONE) {
        const sc_net_exchange *x = &g->p->exchange[it->exchange];
        return !x->p2p && x->coll == SC_ALL_REDUCE;
    }
    if (it->op == SC_NONE) return false;
    const sc_net_op *op = &g->job->net->op[it->op];
    return op->type == SC_NET_VIEW && !op->copy;
}

static void roots(lowering *g)
{
    const net_program *pr = g->prog;
    for (uint32_t v = 0; v < pr->n_values; v++) g->root[v] = v;
    for (uint32_t i = 0; i < pr->n_items; i++) {
        const program_item *it = &pr->item[i];
        if (!in_place(g, it)) continue;
        const program_value *from = &pr->value[it->in[0]];
        const program_value *to = &pr->value[it->out];
        if (from->tier == to->tier && to->bytes <= from->bytes)
            g->root[it->out] = g->root[it->in[0]];
    }
}

static sc_status uses(lowering *g)
{
    const net_program *pr = g->prog;
    uint32_t n = 0;
    for (uint32_t i = 0; i < pr->n_items; i++) n += pr->item[i].n_in;
    g->root = SC_NEW_N(g->a, uint32_t, pr->n_values);
    g->use_head = SC_NEW_N(g->a, uint32_t, (size_t)pr->n_values + 2);
    g->use = SC_NEW_N(g->a, uint32_t, n);
    if (!g->root || !g->use_head || !g->use) return sc_error_nomem(g->err);
    roots(g);
    for (uint32_t i = 0; i < pr->n_items; i++)
        for (uint32_t k = 0; k < pr->item[i].n_in; k++)
            g->use_head[g->root[pr->item[i].in[k]] + 2]++;
    for (uint32_t v = 0; v < pr->n_values; v++)
        g->use_head[v + 2] += g->use_head[v + 1];
    for (uint32_t i = 0; i < pr->n_items; i++)
        for (uint32_t k = 0; k < pr->item[i].n_in; k++)
            g->use[g->use_head[g->root[pr->item[i].in[k]] + 1]++] = i;
    return SC_OK;
}

/* ---- order of issue ----------------------------------------------------- */

static bool fetched(const lowering *g, const program_item *it)
{
    value_kind w = makes(g, it);
    if (it->once || it->out == SC_NONE) return false;
    if (it->copy)
        return w != VALUE_INPUT &&
               g->prog->value[it->out].tier == SC_TIER_DEVICE;
    return it->exchange != SC_NONE && w == VALUE_WEIGHT_USED;
}

static uint32_t depth_of(const lowering *g, const program_item *it)
{
    uint32_t ahead = it->copy ? g->rules->copy_ahead : g->rules->gather_ahead;
    if (ahead) return ahead;
    int64_t layers = g->job->sw ? g->job->sw->prefetch : 1;
    return layers < 0                 ? 0
           : layers > SC_PREFETCH_MAX ? SC_PREFETCH_MAX
                                      : (uint32_t)layers;
}

typedef struct issue {
    uint32_t *target;      /* [n_items] position of the layer that first reads
                              the value that an item fetches; SC_NONE */
    uint32_t *head, *next; /* [layers + 1], [n_items]: lists of the fetches that
                              are issued before each layer */
    bool all;              /* every operator counts as a layer */
} issue;

/* Finds the operations that read fetched values.  Consecutive ones in one unit
 * are a layer, and the last of them closes it. */
static void find_users(lowering *g, const lower_list *l, const issue *s)
{
    const sc_net_op *op = g->job->net->op;
    uint32_t last = SC_NONE;
    for (uint32_t k = 0; k < l->n; k++) {
        const program_item *it = &g->prog->item[l->item[k]];
        lower_item *t = &g->item[l->item[k]];
        if (it->exchange != SC_NONE || it->copy || t->none) continue;
        t->prefetch_user = s->all;
        for (uint32_t i = 0; i < it->n_in && !t->prefetch_user; i++) {
            uint32_t m = g->prog->value[it->in[i]].made;
            t->prefetch_user = m != SC_NONE && fetched(g, &g->prog->item[m]);
        }
        if (!t->prefetch_user) continue;
        if (last != SC_NONE && !s->all)
            g->item[last].closes = !infer_same_unit(
                op[g->prog->item[last].op].path, op[it->op].path);
        t->closes = true;
        last = l->item[k];
    }
}

/* Finds the layer that first reads each fetched value, and returns the number
 * of layers.  Goes backwards, because an item's readers come after it. */
static uint32_t find_targets(const lowering *g, const lower_list *l,
                             const issue *s)
{
    uint32_t layers = 0, at;
    for (uint32_t k = 0; k < l->n; k++) {
        layers += g->item[l->item[k]].closes;
        s->target[l->item[k]] = SC_NONE;
    }
    at = layers;
    for (uint32_t k = l->n; k-- > 0;) {
        uint32_t i = l->item[k], to = s->target[i];
        const program_item *it = &g->prog->item[i];
        at -= g->item[i].closes;
        if (it->exchange == SC_NONE && !it->copy)
            to = at < layers ? at : SC_NONE;
        for (uint32_t n = 0; to != SC_NONE && n < it->n_in; n++) {
            uint32_t m = g->prog->value[it->in[n]].made;
            if (m == SC_NONE || !fetched(g, &g->prog->item[m])) continue;
            if (g->prog->item[m].stage == it->stage) s->target[m] = to;
        }
    }
    return layers;
}

/* Issues each fetch as many layers before its reader as depth_of() says. */
static sc_status reorder(lowering *g, lower_list *l, const issue *s)
{
    uint32_t layers = find_targets(g, l, s), n = 0, at = 0;
    uint32_t *out = SC_NEW_N(g->a, uint32_t, l->n);
    bool begins = true; /* the next item begins a layer */
    if (!out) return sc_error_nomem(g->err);
    for (uint32_t u = 0; u <= layers; u++) s->head[u] = SC_NONE;
    for (uint32_t k = l->n; k-- > 0;) {
        uint32_t i = l->item[k], t = s->target[i];
        const program_item *it = &g->prog->item[i];
        if (!fetched(g, it) || t == SC_NONE) continue;
        uint32_t d = depth_of(g, it), u = t > d ? t - d : 0;
        g->item[i].back = 1 + (t < d ? d - t : 0);
        s->next[i] = s->head[u];
        s->head[u] = i;
    }
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t i = l->item[k];
        if (g->item[i].back) continue;
        for (; g->item[i].prefetch_user && begins && s->head[at] != SC_NONE;
             s->head[at] = s->next[s->head[at]])
            out[n++] = s->head[at];
        if (g->item[i].prefetch_user) begins = g->item[i].closes;
        at += g->item[i].closes;
        out[n++] = i;
    }
    l->item = out;
    return SC_OK;
}

/* Finds items on the compute stream that read no value of their own slot. */
static void find_sources(lowering *g, const lower_list *l)
{
    for (uint32_t k = 0; k < l->n; k++) {
        const program_item *it = &g->prog->item[l->item[k]];
        lower_item *t = &g->item[l->item[k]];
        t->source = it->exchange == SC_NONE && !it->copy;
        for (uint32_t i = 0; i < it->n_in && t->source; i++) {
            uint32_t m = g->prog->value[it->in[i]].made;
            if (m == SC_NONE || g->prog->item[m].stage != it->stage) continue;
            if (g->item[m].part == t->part) t->source = false;
        }
    }
}

static lower_list *list_of(lowering *g, uint32_t i)
{
    const program_item *it = &g->prog->item[i];
    lower_stage *s = &g->stage[it->stage];
    if (it->once) return &s->once;
    return g->item[i].part == LOWER_FWD ? &s->fwd : &s->bwd;
}

static sc_status lists(lowering *g)
{
    const net_program *pr = g->prog;
    uint32_t *room = SC_NEW_N(g->a, uint32_t, pr->n_items);
    if (!room) return sc_error_nomem(g->err);
    for (uint32_t i = 0; i < pr->n_items; i++) list_of(g, i)->n++;
    for (uint32_t v = 0; v < g->p->n_stages; v++) {
        lower_list *of[] = {&g->stage[v].fwd, &g->stage[v].bwd,
                            &g->stage[v].once};
        for (size_t k = 0; k < SC_COUNT(of); k++) {
            of[k]->item = room;
            room += of[k]->n;
            of[k]->n = 0;
        }
    }
    for (uint32_t i = 0; i < pr->n_items; i++) {
        lower_list *l = list_of(g, i);
        l->item[l->n++] = i;
    }
    return SC_OK;
}

static bool fetches(const lowering *g)
{
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        const program_item *it = &g->prog->item[i];
        if ((it->copy || it->exchange != SC_NONE) && fetched(g, it))
            return true;
    }
    return false;
}

static sc_status order(lowering *g)
{
    uint32_t n = g->prog->n_items;
    bool other = g->rules->gather_ahead > 0 || g->rules->ready_order;
    if (!other && !fetches(g)) return SC_OK;
    issue s = {.target = SC_NEW_N(g->a, uint32_t, n),
               .head = SC_NEW_N(g->a, uint32_t, (size_t)n + 1),
               .next = SC_NEW_N(g->a, uint32_t, n),
               .all = g->rules->gather_ahead > 0};
    if (!s.target || !s.head || !s.next) return sc_error_nomem(g->err);
    for (uint32_t v = 0; v < g->p->n_stages; v++) {
        lower_stage *st = &g->stage[v];
        find_users(g, &st->fwd, &s);
        find_users(g, &st->bwd, &s);
        SC_TRY(reorder(g, &st->fwd, &s));
        SC_TRY(reorder(g, &st->bwd, &s));
        if (!g->rules->ready_order) continue;
        find_sources(g, &st->fwd);
        find_sources(g, &st->bwd);
    }
    return SC_OK;
}

/* Finds, by tensor, the items that gather updated weights during the first
 * forward pass. */
static sc_status find_fresh(lowering *g)
{
    uint32_t n = g->job->net->n_tensors;
    g->new_weight = SC_NEW_N(g->a, uint32_t, n);
    if (!g->new_weight) return sc_error_nomem(g->err);
    for (uint32_t t = 0; t < n; t++) g->new_weight[t] = SC_NONE;
    if (!g->weights_overlap) return SC_OK;
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        const program_item *it = &g->prog->item[i];
        if (!it->once || it->exchange == SC_NONE) continue;
        for (uint32_t k = 0; k < it->n_in; k++) {
            const program_value *v = &g->prog->value[it->in[k]];
            if (v->what == VALUE_WEIGHT_NEW) g->new_weight[v->tensor] = i;
        }
    }
    return SC_OK;
}

sc_status lower_items(lowering *g)
{
    g->item = SC_NEW_N(g->a, lower_item, g->prog->n_items);
    g->stage = SC_NEW_N(g->a, lower_stage, g->p->n_stages);
    if (!g->item || !g->stage) return sc_error_nomem(g->err);
    SC_TRY(find_fresh(g));
    SC_TRY(describe(g));
    SC_TRY(uses(g));
    find_fillers(g);
    lower_find_implied(g);
    SC_TRY(lists(g));
    SC_TRY(order(g));
    uint32_t most = g->rules->copy_ahead > g->rules->gather_ahead
                        ? g->rules->copy_ahead
                        : g->rules->gather_ahead;
    g->ahead = most > SC_PREFETCH_MAX ? most : SC_PREFETCH_MAX;
    return SC_OK;
}
