/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - the plan of a network as text. */
#include "plan/internal.h"
#include "plan/plan_schedule.h"
#include "plan/prices.h"
#include "plan/program.h"

#include <stdio.h>
#include <string.h>

static void axes_text(const sc_strategy *s, sc_axes list, const char *between,
                      sc_text *out)
{
    for (const char *sep = ""; list; list >>= 4, sep = between)
        sc_text_add(out, "%s%s", sep, s->axis[(list & 15) - 1].name);
}

static void splits_text(const sc_strategy *s, const sc_strategy_rule *r,
                        sc_text *out)
{
    static const char *const verb[SC_N_RULE_TENSORS] = {
        [SC_RT_OP] = "split",
        [SC_RT_WEIGHT] = "shard weights",
        [SC_RT_BIAS] = "shard biases",
        [SC_RT_GRAD] = "shard gradients",
        [SC_RT_OPTIM] = "shard optimizer states",
        [SC_RT_OUT] = "keep results split",
        [SC_RT_OUT_GRAD] = "keep their gradients split",
        [SC_RT_IN] = "read an input split",
    };
    if (r->n_split == 0)
        sc_text_add(out, "%s: whole", sc_rule_tensor_names[r->tensor]);
    else
        sc_text_add(out, "%s", verb[r->tensor]);
    for (uint32_t i = 0; i < r->n_split; i++) {
        const sc_rule_split *d = &r->split[i];
        sc_text_add(out, "%s %s ", i ? "," : "", d->dim);
        if (d->axes)
            sc_text_add(out, "over ");
        else
            sc_text_add(out, "whole");
        axes_text(s, d->axes, " x ", out);
    }
}

static void rule_text(const sc_strategy *s, const sc_strategy_rule *r,
                      sc_text *out)
{
    const char *sep = "";
    sc_text_add(out, "  %-24s ", r->called ? r->called : r->match);
    if (r->has_split) {
        splits_text(s, r, out);
        sep = ", ";
    }
    if (r->over_stages) {
        sc_text_add(out, "%ssplit over all stages of pp", sep);
        sep = ", ";
    }
    if (r->recompute >= 0) {
        sc_text_add(out, "%s%s", sep,
                    r->recompute ? "recompute" : "do not recompute");
        if (r->rc_group) sc_text_add(out, " %u blocks at once", r->rc_group);
        if (r->rc_first)
            sc_text_add(out, " the first %u blocks of a stage", r->rc_first);
        sep = ", ";
    }
    if (r->tier >= 0) {
        sc_text_add(out, "%s%s is kept on %s", sep,
                    sc_rule_tensor_names[r->tensor], sc_tier_names[r->tier]);
        sep = ", ";
    }
    if (r->round_robin) {
        sc_text_add(out, "%s%s", sep,
                    r->balanced
                        ? "sharded evenly over the ranks of "
                        : "whole operators, round-robin over the ranks of ");
        axes_text(s, r->assign, " x ", out);
        sep = ", ";
    }
    for (uint32_t i = 0; i < r->n_at; i++, sep = ", ")
        sc_text_add(out, "%s%s = %u", sep, s->axis[r->at[i].axis].name,
                    r->at[i].coord);
    sc_text_add(out, "   (%s)\n", r->origin);
}

/* " on device 1", if there are several.  A DualPipe stage is on two devices. */
static void device_text(const sc_net_plan *p, uint32_t v, sc_text *out)
{
    const sc_strategy *s = p->job->strategy;
    uint32_t pp = (uint32_t)sc_strategy_degree(s, SC_AX_PP);
    sc_schedule how = program_schedule(p->job, p->n_stages > pp);
    uint32_t chunks = sc_schedule_chunks(how, p->n_stages / pp);
    const char *sep = " on device ";
    for (uint32_t d = 0; pp > 1 && d < pp; d++)
        for (uint32_t c = 0; c < chunks; c++) {
            if (sc_schedule_stage(how, pp, chunks, d, c) != v) continue;
            sc_text_add(out, "%s%u", sep, d);
            sep = " and ";
        }
}

static void stages_text(const sc_net_plan *p, sc_text *out)
{
    const sc_net *g = p->job->net;
    sc_text_add(out, "stages\n");
    for (uint32_t v = 0; v < p->n_stages; v++) {
        uint32_t first = g->n_ops, last = 0, n = 0;
        for (uint32_t op = 0; op < g->n_ops; op++) {
            if (p->stage_of[op] != v) continue;
            if (first == g->n_ops) first = op;
            last = op;
            n++;
        }
        if (n == 0) continue;
        sc_text_add(out, "  %u", v);
        device_text(p, v, out);
        sc_text_add(out, ": %u operator%s, %s to %s\n", n, n == 1 ? "" : "s",
                    g->op[first].path, g->op[last].path);
    }
}

/* ---- precision ------------------------------------------------------- */

/* Matrix products of one module, "layers.3", or of several equal neighbours. */
typedef struct listed {
    const char *first, *last, *names;
    uint32_t at; /* index of the last module among all */
} listed;

static void listed_text(const listed *l, const char *precision, sc_text *out)
{
    char where[96];
    if (!l->names) return;
    snprintf(where, sizeof where, "%s%s%s", l->first,
             l->last == l->first ? "" : " to ",
             l->last == l->first ? "" : l->last);
    sc_text_add(out, "  %-24s %-5s%s\n", where, precision, l->names);
}

/* Merges `now` into `all` if it follows directly and differs only in the number
 * in its path. */
static sc_status list(listed *all, const listed *now, const char *precision,
                      sc_arena *a, sc_text *out, sc_err *err)
{
    const char *had = all->names ? prices_starred(a, all->first) : "";
    const char *has = prices_starred(a, now->first);
    if (!had || !has) return sc_error_nomem(err);
    if (all->names && now->at == all->at + 1 && strcmp(had, has) == 0 &&
        strcmp(all->names, now->names) == 0) {
        all->last = now->first;
        all->at = now->at;
        return SC_OK;
    }
    listed_text(all, precision, out);
    *all = *now;
    return SC_OK;
}

/* Lists the products in the run's low precision, or those kept in 16 bits. */
static sc_status products_text(const sc_net_run *job, bool low, sc_arena *a,
                               sc_text *out, sc_err *err)
{
    const sc_net *g = job->net;
    const char *name = sc_precision_names[low ? job->precision : SC_BF16];
    listed all = {0}, now = {0};
    for (uint32_t i = 0, at = 0; i < g->n_ops; i++) {
        const sc_net_op *op = &g->op[i];
        at += i > 0 && !infer_same_unit(g->op[i - 1].path, op->path);
        bool product = op->type == SC_NET_LINEAR || op->type == SC_NET_EXPERT;
        if (!product || op->keep_bf16 == low) continue;
        const char *dot = strrchr(op->path, '.');
        int n = dot ? (int)(dot - op->path) : 0;
        const char *place = sc_sprintf(a, "%.*s", n, op->path);
        bool same = now.names && place && strcmp(place, now.first) == 0;
        if (now.names && !same) SC_TRY(list(&all, &now, name, a, out, err));
        const char *names = sc_sprintf(a, "%s %s", same ? now.names : "",
                                       dot ? dot + 1 : op->path);
        if (!place || !names) return sc_error_nomem(err);
        if (!same) now = (listed){.first = place, .last = place, .at = at};
        now.names = names;
    }
    if (now.names) SC_TRY(list(&all, &now, name, a, out, err));
    listed_text(&all, name, out);
    return SC_OK;
}

static sc_status precision_text(const sc_net_run *job, sc_arena *a,
                                sc_text *out, sc_err *err)
{
    if (job->precision < SC_FP8) return SC_OK;
    plan_recipe_head(job->recipe, job->sw, out);
    SC_TRY(products_text(job, true, a, out, err));
    SC_TRY(products_text(job, false, a, out, err));
    sc_text_add(
        out, "  attention, norms, sums and gradients stay in 16 or 32 bits\n");
    return SC_OK;
}

/* ---- exchanges ------------------------------------------------------- */

static const char *pass_text(const sc_net_exchange *x)
{
    if (x->pass == SC_PASS_FWD) return "forward";
    return x->pass == SC_PASS_UPDATE ? "update" : "backward";
}

/* A group of exchanges that differ only in the number of their block. */
typedef struct alike {
    const sc_net_exchange *first;
    const char *name, *where, *why; /* common to all */
    uint32_t times;
} alike;

static bool same(const alike *x, const alike *y)
{
    const sc_net_exchange *a = x->first, *b = y->first;
    return a->coll == b->coll && a->p2p == b->p2p &&
           strcmp(pass_text(a), pass_text(b)) == 0 && a->bytes == b->bytes &&
           a->size == b->size && a->n_groups == b->n_groups &&
           strcmp(x->name, y->name) == 0 && strcmp(x->where, y->where) == 0 &&
           strcmp(x->why, y->why) == 0;
}

/* Text of the axes or ranks of an exchange. */
static const char *where_text(const sc_net_plan *p, const sc_net_exchange *x,
                              sc_arena *a)
{
    const sc_strategy *s = p->job->strategy;
    sc_text t;
    sc_text_init(&t);
    sc_axes list = 0;
    for (uint32_t ax = 0; ax < s->n_axes; ax++)
        if (x->axes >> ax & 1) list = sc_axes_add(list, ax);
    if (list) sc_text_add(&t, " over ");
    axes_text(s, list, "+", &t);
    bool stages = !x->axes && (x->coll == SC_BROADCAST || x->coll == SC_REDUCE);
    if (stages) sc_text_add(&t, " over pp");
    if (x->p2p) sc_text_add(&t, " rank %u to %u", x->rank[0], x->rank[1]);
    const char *text = t.failed ? NULL : sc_strdup(a, t.buf);
    sc_text_free(&t);
    return text;
}

static sc_status describe(const sc_net_plan *p, const sc_net_exchange *x,
                          sc_arena *a, alike *out, sc_err *err)
{
    const char *name = sc_sprintf(a, "%s %s", x->path, x->tensor);
    *out = (alike){.first = x, .times = 1};
    out->name = name ? prices_starred(a, name) : NULL;
    out->where = where_text(p, x, a);
    out->why = sc_sprintf(a, "%s%s%s%s%s", x->bucketed ? "in a bucket, " : "",
                          x->why, x->origin ? "   (" : "",
                          x->origin ? x->origin : "", x->origin ? ")" : "");
    return out->name && out->where && out->why ? SC_OK : sc_error_nomem(err);
}

static void alike_text(const alike *l, sc_text *out)
{
    const sc_net_exchange *x = l->first;
    char size[32], name[96];
    sc_unit_print_short(x->bytes, SC_U_BYTES, size, sizeof size);
    snprintf(name, sizeof name, "%s %s", x->path, x->tensor);
    sc_text_add(out, "%-9s %-32s %-14s %9s", pass_text(x),
                l->times > 1 ? l->name : name,
                x->p2p ? "transfer" : sc_coll_names[x->coll], size);
    sc_text_add(out, "%s (%u x %u ranks)", l->where, x->n_groups, x->size);
    if (l->times > 1) sc_text_add(out, ", %u times", l->times);
    sc_text_add(out, ": %s\n", l->why);
}

/* Lists exchanges in the order in which the first of each kind runs. */
static sc_status exchanges_text(const sc_net_plan *p, sc_arena *a, sc_text *out,
                                sc_err *err)
{
    uint32_t n = 0;
    alike *list = SC_NEW_N(a, alike, p->n_exchanges);
    if (!list) return sc_error_nomem(err);
    for (uint32_t i = 0; i < p->n_exchanges; i++) {
        uint32_t k = 0;
        SC_TRY(describe(p, &p->exchange[i], a, &list[n], err));
        while (k < n && !same(&list[k], &list[n])) k++;
        list[k].times += k < n;
        n += k == n;
    }
    for (uint32_t k = 0; k < n; k++) alike_text(&list[k], out);
    return SC_OK;
}

sc_status sc_net_plan_explain(const sc_net_plan *p, sc_arena *a, sc_text *out,
                              sc_err *err)
{
    const sc_strategy *s = p->job->strategy;
    sc_text_add(out, "mesh");
    for (uint32_t ax = 0; ax < s->n_axes; ax++)
        sc_text_add(out, "  %s=%u", s->axis[ax].name, s->axis[ax].size);
    sc_text_add(out, "\nrules, the one with the highest priority last\n");
    for (uint32_t i = 0; i < p->n_rules; i++) rule_text(s, p->rule[i], out);
    stages_text(p, out);
    sc_arena_mark mark = sc_arena_save(a);
    SC_TRY(precision_text(p->job, a, out, err));
    sc_text_add(out, "collectives inferred, per micro-batch; those of "
                     "replicated gradients per step\n");
    SC_TRY(exchanges_text(p, a, out, err));
    sc_arena_restore(a, mark);
    return SC_OK;
}
