/* SPDX-License-Identifier: Apache-2.0 */
/* real_ranks_net.c - distinct ranks of a network of operators under a strategy. */
#include "emu/emu_real_ranks.h"

#include <stdio.h>

/* An operator that a rule gives to one rank of some axes. */
typedef struct owned {
    const sc_strategy_rule *rule; /* NULL: every rank has a part */
    uint32_t turn, stage;
    uint64_t elements; /* of its weight */
} owned;

/* What distinguishes ranks. */
typedef struct kind {
    uint32_t stage, n_ops;
    uint64_t elements, hash;
} kind;

typedef struct planning {
    const sc_net_plan *p;
    const sc_strategy *s;
    sc_arena *a;
    owned *op; /* [graph->n_ops] */
    int pp;    /* axis; -1 */
    kind *seen;
    sc_emu_role *role;
    uint32_t n, cap_seen, cap_role;
} planning;

/* Position among the ranks of these axes, and their number. */
static uint32_t place(const planning *x, uint32_t rank, sc_axes axes,
                      uint32_t *parts)
{
    uint32_t at = 0;
    *parts = 1;
    for (; axes; axes >>= 4) {
        uint32_t axis = (uint32_t)(axes & 15) - 1;
        at = at * x->s->axis[axis].size +
             sc_strategy_coordinate(x->s, (int)axis, rank);
        *parts *= x->s->axis[axis].size;
    }
    return at;
}

/* The strongest rule that assigns an operator or splits it. */
static const sc_strategy_rule *assigns(const sc_net_plan *p, const char *path)
{
    for (uint32_t i = p->n_rules; i > 0; i--) {
        const sc_strategy_rule *r = p->rule[i - 1];
        if (!sc_rule_matches(r->match, path)) continue;
        if (r->round_robin) return r->balanced ? NULL : r;
        if (r->n_at > 0) return NULL;
    }
    return NULL;
}

static uint64_t weight_of(const sc_net *g, const sc_net_op *o)
{
    uint64_t n = 1;
    if (o->n_weight == 0) return 0;
    const sc_tensor *t = &g->tensor[o->weight[0].tensor];
    for (uint32_t i = 0; i < t->n_dim; i++) n *= t->dim[i].extent;
    return n;
}

static bool find_owned(planning *x)
{
    const sc_net *g = x->p->job->net;
    x->op = SC_NEW_N(x->a, owned, g->n_ops);
    for (uint32_t i = 0; x->op && i < g->n_ops; i++) {
        owned *o = &x->op[i];
        o->rule = assigns(x->p, g->op[i].path);
        if (!o->rule) continue;
        o->stage = x->p->stage_of[i];
        o->elements = weight_of(g, &g->op[i]);
        for (uint32_t k = 0; k < i; k++) o->turn += x->op[k].rule == o->rule;
    }
    return x->op != NULL;
}

static kind kind_of(const planning *x, uint32_t rank)
{
    uint32_t parts, stages = 1;
    kind k = {0};
    if (x->pp >= 0) {
        k.stage = sc_strategy_coordinate(x->s, x->pp, rank);
        stages = x->s->axis[x->pp].size;
    }
    for (uint32_t i = 0; i < x->p->job->net->n_ops; i++) {
        const owned *o = &x->op[i];
        if (!o->rule || o->stage % stages != k.stage) continue;
        uint32_t at = place(x, rank, o->rule->assign, &parts);
        if (o->turn % parts != at) continue;
        k.hash = sc_hash(&o->elements, sizeof o->elements, k.hash);
        k.elements += o->elements;
        k.n_ops++;
    }
    return k;
}

static bool same(const kind *x, const kind *y)
{
    return x->stage == y->stage && x->n_ops == y->n_ops &&
           x->elements == y->elements && x->hash == y->hash;
}

static bool count(planning *x, uint32_t rank)
{
    kind k = kind_of(x, rank);
    uint32_t i = 0;
    while (i < x->n && !same(&x->seen[i], &k)) i++;
    if (i == x->n) {
        x->seen =
            sc_grow(x->a, x->seen, x->n, &x->cap_seen, 8, sizeof *x->seen);
        x->role =
            sc_grow(x->a, x->role, x->n, &x->cap_role, 8, sizeof *x->role);
        if (!x->seen || !x->role) return false;
        x->seen[i] = k;
        x->role[x->n++] = (sc_emu_role){.rank = rank};
    }
    x->role[i].n++;
    return true;
}

static const char *describe(const planning *x, const kind *k)
{
    uint32_t stages = x->pp >= 0 ? x->s->axis[x->pp].size : 1;
    char stage[64] = "", owns[96] = "", size[32];
    if (stages > 1)
        snprintf(stage, sizeof stage, "pipeline stage %u of %u", k->stage,
                 stages);
    sc_unit_print_short((double)k->elements, SC_U_COUNT, size, sizeof size);
    if (k->n_ops > 0)
        snprintf(owns, sizeof owns, "%sruns %u operator%s with %s weights",
                 stage[0] ? ", " : "", k->n_ops, k->n_ops == 1 ? "" : "s",
                 size);
    if (x->n == 1) return "every rank does the same";
    if (!stage[0] && !owns[0]) return "runs no operator";
    return sc_sprintf(x->a, "%s%s", stage, owns);
}

sc_status sc_emu_real_ranks_of_net(const sc_net_plan *p, sc_arena *a,
                                   sc_emu_role **out, uint32_t *n, sc_err *err)
{
    planning x = {.p = p,
                  .s = p->job->strategy,
                  .a = a,
                  .pp = sc_strategy_axis(p->job->strategy, SC_AX_PP)};
    if (!find_owned(&x)) return sc_error_nomem(err);
    for (uint32_t r = 0; r < p->n_ranks; r++)
        if (!count(&x, r)) return sc_error_nomem(err);
    for (uint32_t i = 0; i < x.n; i++) {
        x.role[i].text = describe(&x, &x.seen[i]);
        if (!x.role[i].text) return sc_error_nomem(err);
    }
    *out = x.role;
    *n = x.n;
    return SC_OK;
}
