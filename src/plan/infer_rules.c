/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_rules.c - applies the rules of a strategy to every operator.
 *
 * Rules of the file override those of presets; then the rule with more literal
 * characters applies, then the later one.  Rules are sorted in this order once,
 * so that the last match applies.
 */
#include "plan/infer.h"
#include "plan/strategy.h"

#include <stdlib.h>
#include <string.h>

uint32_t infer_parts(const inference *f, sc_axes list)
{
    uint32_t n = 1;
    for (; list; list >>= 4) n *= f->mesh.size[(list & 15) - 1];
    return n;
}

sc_axes infer_without(sc_axes list, uint32_t mask)
{
    sc_axes out = 0;
    for (; list; list >>= 4) {
        uint32_t ax = (uint32_t)(list & 15) - 1;
        if (!(mask >> ax & 1)) out = sc_axes_add(out, ax);
    }
    return out;
}

static const char *axes_text(const inference *f, sc_axes list)
{
    const char *text = "";
    for (; list; list >>= 4) {
        const char *name = f->s->axis[(list & 15) - 1].name;
        const char *more =
            sc_sprintf(f->a, "%s%s%s", text, *text ? " x " : "", name);
        if (more) text = more;
    }
    return text;
}

/* ---- sorting and matching -------------------------------------------- */

static int weaker(const void *x, const void *y)
{
    const infer_rule *a = x, *b = y;
    if (a->file != b->file) return a->file ? 1 : -1;
    size_t p = sc_rule_specificity(a->r->match);
    size_t q = sc_rule_specificity(b->r->match);
    if (p != q) return p < q ? -1 : 1;
    return a->r < b->r ? -1 : a->r > b->r;
}

/* Whether two rules have equal rank, so that neither overrides the other. */
static bool rivals(const infer_rule *a, const infer_rule *b)
{
    return a != b && a->file == b->file &&
           sc_rule_specificity(a->r->match) == sc_rule_specificity(b->r->match);
}

static sc_status gather(inference *f)
{
    infer_list presets = {0};
    SC_TRY(infer_presets(f, &presets));
    f->n_rules = presets.n + f->s->n_rules;
    f->rule = SC_NEW_N(f->a, infer_rule, f->n_rules);
    if (!f->rule) return sc_error_nomem(f->err);
    /* Presets come first, and both lists keep their order. */
    for (uint32_t i = 0; i < presets.n; i++)
        f->rule[i] = (infer_rule){.r = &presets.rule[i]};
    for (uint32_t i = 0; i < f->s->n_rules; i++)
        f->rule[presets.n + i] =
            (infer_rule){.r = &f->s->rule[i], .file = true};
    if (f->n_rules) qsort(f->rule, f->n_rules, sizeof *f->rule, weaker);
    return SC_OK;
}

static sc_status match(inference *f, uint32_t op, uint32_t *buf)
{
    infer_node *n = &f->node[op];
    for (uint32_t i = 0; i < f->n_rules; i++) {
        const sc_strategy_rule *r = f->rule[i].r;
        if (r->roles && !(r->roles & f->role[op])) continue;
        if (!sc_rule_matches(r->match, f->g->op[op].path)) continue;
        f->rule[i].matched = true;
        buf[n->n_match++] = i;
    }
    uint32_t *list = SC_NEW_N(f->a, uint32_t, n->n_match);
    if (!list) return sc_error_nomem(f->err);
    memcpy(list, buf, n->n_match * sizeof *list);
    n->match = list;
    return SC_OK;
}

const infer_rule *infer_stated(const inference *f, uint32_t op,
                               sc_rule_tensor what, uint32_t input)
{
    const infer_node *n = &f->node[op];
    for (uint32_t i = n->n_match; i-- > 0;) {
        const infer_rule *g = &f->rule[n->match[i]];
        if (g->r->tensor == what && g->r->has_split &&
            (what != SC_RT_IN || g->r->input == input))
            return g;
    }
    return NULL;
}

int infer_tier(const inference *f, uint32_t op, sc_rule_tensor what, bool *said)
{
    bool none;
    if (!said) said = &none;
    *said = true;
    const infer_node *n = &f->node[op];
    for (uint32_t i = n->n_match; i-- > 0;) {
        const sc_strategy_rule *r = f->rule[n->match[i]].r;
        if (r->tensor == what && r->tier >= 0) return r->tier;
    }
    *said = false;
    return SC_TIER_DEVICE;
}

const char *infer_by(const inference *f, uint32_t op)
{
    const infer_node *n = &f->node[op];
    const infer_rule *best = n->rr_rule;
    for (uint32_t i = 0; i < f->g->op[op].n_iter; i++)
        if (n->by[i] && n->split[i] && (!best || n->by[i] > best))
            best = n->by[i];
    return best ? best->r->origin : NULL;
}

/* ---- splits of iteration dims ---------------------------------------- */

/* Number of positions from which an operator's were chosen (masked words).  If
 * ranks split those evenly, each also has on average an equal part of these. */
static uint64_t chosen_among(const inference *f, uint32_t op, uint32_t it)
{
    for (;;) {
        const sc_net_op *o = &f->g->op[op];
        const sc_iter_dim *d = &o->iter[it];
        const sc_operand *in = o->n_in ? &o->in[0] : NULL;
        uint32_t k = 0, n = in ? f->g->tensor[in->tensor].n_dim : 0;
        while (k < n && in->at[k] != it) k++;
        if (k == n) return infer_units(d);
        const sc_tensor *x = &f->g->tensor[in->tensor];
        if (o->type == SC_NET_SLICE && d->kind == SC_I_FREE)
            return x->dim[k].extent;
        if (x->dim[k].extent != d->extent || x->op == SC_NONE)
            return infer_units(d);
        op = x->op;
        it = f->g->op[op].out.at[k];
        if (it == SC_NO_ITER) return infer_units(d);
    }
}

static sc_status can_split(inference *f, uint32_t op, uint32_t it,
                           const infer_rule *g)
{
    const sc_net_op *o = &f->g->op[op];
    const sc_iter_dim *d = &o->iter[it];
    const sc_strategy_rule *r = g->r;
    if (f->pp >= 0 && sc_axes_mask(f->node[op].split[it]) >> f->pp & 1)
        return sc_error(
            f->err, SC_EINPUT, SC_C_CONFLICT, r->pos,
            "axis pp divides the model into stages and nothing else",
            "rule '%s' (%s) splits dimension %s of %s over pp", r->match,
            r->origin, d->name, o->path);
    if (d->kind == SC_I_OPAQUE)
        return sc_error(f->err, SC_EINPUT, SC_C_CONFLICT, r->pos, NULL,
                        "rule '%s' (%s) splits dimension %s of %s, which can't "
                        "be split",
                        r->match, r->origin, d->name, o->path);
    /* Programs pad a vocabulary before they split it. */
    bool padded = !g->file && strcmp(d->name, "vocab") == 0;
    if (d->batch || padded) return SC_OK;
    uint64_t parts = infer_parts(f, f->node[op].split[it]);
    uint64_t whole = infer_units(d);
    if (parts && whole % parts == 0) return SC_OK;
    if (parts && chosen_among(f, op, it) % parts == 0) return SC_OK;
    /* Rules of the file may split unevenly; programs of presets reject that. */
    if (g->file && parts <= whole) {
        f->ragged = true;
        return SC_OK;
    }
    return sc_error(
        f->err, SC_EINPUT, SC_C_DIVIDE, r->pos, NULL,
        "%llu parts (%s) %s the %llu %s of dimension %s of %s; rule '%s' (%s)",
        (unsigned long long)parts, axes_text(f, f->node[op].split[it]),
        g->file ? "are more than" : "do not divide", (unsigned long long)whole,
        d->units ? "indivisible parts" : "elements", d->name, o->path, r->match,
        r->origin);
}

/* The iteration dim that a rule calls `name`.  `h` also matches the rows of a
 * window, "oh"; without weights, `out` is the last dim of the result. */
int infer_iter_named(const inference *f, const sc_net_op *o, const char *name)
{
    int it = sc_net_op_iter(o, name);
    for (uint32_t i = 0; it < 0 && i < o->n_iter; i++)
        if (o->iter[i].name[0] == 'o' && strlen(name) == 1 &&
            strcmp(o->iter[i].name + 1, name) == 0)
            it = (int)i;
    if (it >= 0 || o->n_weight || strcmp(name, "out") != 0) return it;
    uint32_t n = f->g->tensor[o->out.tensor].n_dim;
    uint8_t last = n ? o->out.at[n - 1] : SC_NO_ITER;
    return last == SC_NO_ITER || o->iter[last].batch ? -1 : last;
}

/* Applies coordinates on axes.  Those on pp are stages (infer_cut.c). */
static sc_status assign_place(inference *f, infer_node *n, infer_rule *g)
{
    SC_TRY(infer_place_of(f, g->r, &n->place));
    n->rr_axes = 0;
    for (uint32_t ax = 0; n->place && ax < f->mesh.n_axes; ax++)
        if (f->place[n->place - 1].axes >> ax & 1)
            n->rr_axes = sc_axes_add(n->rr_axes, ax);
    n->rr_rule = NULL;
    g->matched_any = true;
    return SC_OK;
}

/* Applies a rule to an operator's iteration space. */
static sc_status assign_split(inference *f, uint32_t op, infer_rule *g)
{
    const sc_net_op *o = &f->g->op[op];
    infer_node *n = &f->node[op];
    const sc_strategy_rule *r = g->r;
    if (r->round_robin) {
        n->rr_axes = r->assign;
        n->place = 0;
        n->rr_rule = g;
        g->matched_any = true;
    }
    if (r->n_at) SC_TRY(assign_place(f, n, g));
    if (r->pool) g->matched_any = true; /* infer_cut.c */
    if (r->tensor != SC_RT_OP || !r->has_split) return SC_OK;
    if (r->n_split == 0) {
        memset(n->split, 0, sizeof n->split);
        for (uint32_t i = 0; i < o->n_iter; i++) n->by[i] = g;
        g->matched_any = true;
    }
    for (uint32_t k = 0; k < r->n_split; k++) {
        int it = infer_iter_named(f, o, r->split[k].dim);
        if (it < 0) continue;
        /* Presets match every operator with such a dim, so they skip dims that
         * cannot be split. */
        if (!g->file && o->iter[it].kind == SC_I_OPAQUE) continue;
        if (r->where_divides &&
            infer_units(&o->iter[it]) % infer_parts(f, r->split[k].axes) != 0)
            continue;
        n->split[it] = r->split[k].axes;
        n->by[it] = g;
        g->matched_any = true;
    }
    return SC_OK;
}

/* An axis splits only one dim of an operator: if two rules use it, the one with
 * higher rank applies. */
static sc_status one_dim_each(inference *f, uint32_t op)
{
    const sc_net_op *o = &f->g->op[op];
    infer_node *n = &f->node[op];
    for (uint32_t i = 0; i < o->n_iter; i++)
        for (uint32_t j = i + 1; j < o->n_iter; j++) {
            uint32_t both =
                sc_axes_mask(n->split[i]) & sc_axes_mask(n->split[j]);
            if (!both) continue;
            const infer_rule *a = n->by[i], *b = n->by[j];
            if (rivals(a, b))
                return sc_error(
                    f->err, SC_EINPUT, SC_C_CONFLICT, b->r->pos,
                    "an axis can split only one dimension of an operator",
                    "rules '%s' (%s) and '%s' (%s) both use axis %s for %s",
                    a->r->match, a->r->origin, b->r->match, b->r->origin,
                    axes_text(f, infer_without(n->split[i], ~both)), o->path);
            uint32_t loser = a > b ? j : i;
            n->split[loser] = infer_without(n->split[loser], both);
        }
    return SC_OK;
}

/* Reports an impossible rule once, not for every operator. */
static sc_status may_split(inference *f, uint32_t op, uint32_t it)
{
    infer_rule *g = &f->rule[f->node[op].by[it] - f->rule];
    if (g->refused) return SC_EINPUT;
    sc_status s = can_split(f, op, it, g);
    g->refused = s != SC_OK;
    return s;
}

static sc_status resolve(inference *f, uint32_t op)
{
    const sc_net_op *o = &f->g->op[op];
    infer_node *n = &f->node[op];
    for (uint32_t i = 0; i < n->n_match; i++)
        SC_TRY(assign_split(f, op, &f->rule[n->match[i]]));
    n->decided = sc_axes_mask(n->rr_axes);
    for (uint32_t i = 0; n->rr_axes && i < o->n_iter; i++)
        n->split[i] = infer_without(n->split[i], n->decided);
    SC_TRY(one_dim_each(f, op));
    bool whole = o->n_iter > 0;
    for (uint32_t i = 0; i < o->n_iter; i++) {
        n->decided |= sc_axes_mask(n->split[i]);
        whole &= n->by[i] && n->by[i]->r->n_split == 0;
        if (n->by[i] && n->split[i]) SC_TRY(may_split(f, op, i));
    }
    if (whole || (n->rr_axes && !n->place)) n->decided = ~0u;
    return SC_OK;
}

/* Whether the same rules apply to the operator as to an earlier one. */
static bool repeats_rules(const inference *f, uint32_t op)
{
    return f->equal_op[op] != op;
}

/* ---- rules without effect -------------------------------------------- */

static bool tensor_of(const sc_net_op *o, const sc_strategy_rule *r)
{
    bool weight = r->tensor == SC_RT_WEIGHT || r->tensor == SC_RT_GRAD ||
                  r->tensor == SC_RT_OPTIM;
    if (weight) return o->n_weight > 0;
    if (r->tensor == SC_RT_BIAS) return o->n_weight > 1;
    return r->tensor != SC_RT_IN || r->input < o->n_in;
}

static sc_status said_nothing(inference *f, const infer_rule *g)
{
    const sc_strategy_rule *r = g->r;
    if (!g->matched) return plan_rule_unmatched(r, f->g, f->a, f->err);
    return sc_error(
        f->err, SC_EINPUT, SC_C_UNKNOWN_NAME, r->pos,
        "`stepcast show MODEL --layers` names the dimensions",
        "no operator that rule '%s' matches has %s%s%s", r->match,
        r->tensor == SC_RT_OP ? "dimension " : "",
        r->n_split && r->tensor == SC_RT_OP ? r->split[0].dim
                                            : sc_rule_tensor_names[r->tensor],
        r->n_split > 1 && r->tensor == SC_RT_OP ? " or the others" : "");
}

static sc_status check_spoke(inference *f)
{
    sc_status first = SC_OK;
    for (uint32_t op = 0; op < f->g->n_ops; op++)
        for (uint32_t i = 0; i < f->node[op].n_match && !repeats_rules(f, op);
             i++) {
            infer_rule *g = &f->rule[f->node[op].match[i]];
            bool splits = g->r->tensor == SC_RT_OP && g->r->n_split > 0;
            if (!splits && tensor_of(&f->g->op[op], g->r))
                g->matched_any = true;
        }
    for (uint32_t i = 0; i < f->n_rules; i++) {
        if (!f->rule[i].file || f->rule[i].matched_any) continue;
        sc_status s = said_nothing(f, &f->rule[i]);
        if (first == SC_OK) first = s;
    }
    return first;
}

/* Only weights, biases, optimizer states and results can be offloaded. */
static sc_status check_tier(const inference *f, const sc_strategy_rule *r)
{
    static const uint32_t away = 1u << SC_RT_WEIGHT | 1u << SC_RT_BIAS |
                                 1u << SC_RT_OPTIM | 1u << SC_RT_OUT;
    if (r->tier <= SC_TIER_DEVICE || away >> r->tensor & 1) return SC_OK;
    return sc_error(f->err, SC_EINPUT, SC_C_UNSUPPORTED, r->pos,
                    "only weight, bias, optim and out can be placed there",
                    "rule '%s' can't keep %s in %s", r->match,
                    sc_rule_tensor_names[r->tensor], sc_tier_names[r->tier]);
}

static void number_rr(inference *f)
{
    for (uint32_t i = 0; i < f->n_rules; i++) {
        uint32_t turn = 0;
        for (uint32_t op = 0; f->rule[i].r->round_robin && op < f->g->n_ops;
             op++)
            if (f->node[op].rr_rule == &f->rule[i])
                f->node[op].rr_index = turn++;
    }
}

/* Axes that split an operator, or that a rule of the file uses for a tensor.
 * Tensor rules of presets do not count: they give ranks no work. */
static uint32_t used_axes(const inference *f)
{
    uint32_t used = f->pp < 0 ? 0 : 1u << f->pp;
    for (uint32_t op = 0; op < f->g->n_ops; op++) {
        const infer_node *n = &f->node[op];
        if (repeats_rules(f, op)) continue;
        used |= sc_axes_mask(n->rr_axes);
        for (uint32_t i = 0; i < f->g->op[op].n_iter; i++)
            used |= sc_axes_mask(n->split[i]);
    }
    for (uint32_t i = 0; i < f->n_rules; i++) {
        const sc_strategy_rule *r = f->rule[i].r;
        for (uint32_t k = 0; f->rule[i].file && k < r->n_split; k++)
            used |= sc_axes_mask(r->split[k].axes);
    }
    return used;
}

/* Reports axes that split nothing: all their ranks would do the same work. */
static sc_status check_axes(inference *f)
{
    uint32_t used = used_axes(f);
    for (uint32_t ax = 0; ax < f->s->n_axes; ax++) {
        const sc_mesh_axis *a = &f->s->axis[ax];
        if (used >> ax & 1 || a->size <= 1) continue;
        return sc_error(f->err, SC_EINPUT, SC_C_CONFLICT, a->pos,
                        "add a rule or a preset that divides something over "
                        "the axis, or remove the axis",
                        "axis %s divides nothing of %s: its %u ranks would do "
                        "the same work",
                        a->name, f->g->name, a->size);
    }
    return SC_OK;
}

sc_status infer_rules(inference *f)
{
    SC_TRY(infer_roles(f));
    SC_TRY(gather(f));
    f->samples = (double)f->job->micro * (double)sc_strategy_replicas(f->s);
    f->node = SC_NEW_N(f->a, infer_node, f->g->n_ops);
    uint32_t *buf = SC_NEW_N(f->a, uint32_t, f->n_rules + 1);
    if (!f->node || !buf) return sc_error_nomem(f->err);
    SC_TRY(infer_alike(f));
    sc_status first = SC_OK;
    for (uint32_t op = 0; op < f->g->n_ops; op++) {
        if (repeats_rules(f, op)) {
            f->node[op] = f->node[f->equal_op[op]];
            continue;
        }
        f->node[op].segment = SC_NONE;
        SC_TRY(match(f, op, buf));
        sc_status s = resolve(f, op);
        if (first == SC_OK) first = s;
    }
    sc_status s = check_spoke(f);
    if (first == SC_OK) first = s;
    for (uint32_t i = 0; i < f->n_rules; i++) {
        s = check_tier(f, f->rule[i].r);
        if (first == SC_OK) first = s;
    }
    number_rr(f);
    return first == SC_OK ? check_axes(f) : first;
}

sc_status infer_expansion(inference *f)
{
    const sc_strategy_rule **list =
        SC_NEW_N(f->a, const sc_strategy_rule *, f->n_rules);
    if (!list) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < f->n_rules; i++)
        if (f->rule[i].matched) list[f->p->n_rules++] = f->rule[i].r;
    f->p->rule = list;
    return SC_OK;
}
