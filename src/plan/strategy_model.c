/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_model.c - a strategy's rules meet the operators of a model. */
#include "plan/plan_internal.h"
#include "plan/strategy.h"

#include <stdio.h>
#include <string.h>

typedef struct meeting {
    const sc_strategy *s;
    const sc_model *m;
    sc_arena *a;
    sc_err *err;
    sc_status first;
} meeting;

typedef struct meets {
    uint32_t ops;  /* operators that a rule matches */
    uint64_t dims; /* bit per split of the rule: one of them has the dim */
} meets;

/* Which operators of a layer a rule matches, as a hash, 0: none; counts them. */
static uint64_t meet(const sc_strategy_rule *r, const sc_model *m,
                     const sc_layer *l, uint32_t block, meets *found)
{
    uint64_t which = 0;
    char path[128];
    for (uint32_t k = 0; k < l->n_ops; k++) {
        const sc_gop *op = &m->kinds->op[l->first + k];
        sc_kind_path(l, block, op, path, sizeof path);
        if (!sc_rule_matches(r->match, path)) continue;
        which = sc_hash(&k, sizeof k, which + 1);
        found->ops++;
        for (uint32_t i = 0; i < r->n_split && i < 64; i++)
            if (sc_gop_iter(op, r->split[i].dim) >= 0)
                found->dims |= UINT64_C(1) << i;
    }
    return which;
}

/* Paths that a pattern may have meant; NULL: out of memory. */
static const char **paths(const meeting *x)
{
    const sc_model *m = x->m;
    const char **list =
        SC_NEW_N(x->a, const char *, m->kinds->n_ops + m->n_layers + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; list && i < m->n_layers; i++) {
        const sc_layer *l = &m->layer[i];
        bool block = l->kind == SC_LAYER_BLOCK;
        const char *stem = block ? "layers.*" : l->path;
        list[n++] = stem;
        for (uint32_t k = l->first; k < l->first + l->n_ops; k++) {
            list[n] = sc_sprintf(x->a, "%s.%s", stem,
                                 sc_kind_op_name(l, &m->kinds->op[k]));
            if (!list[n++]) return NULL;
        }
    }
    return list;
}

static void no_operator(meeting *x, const sc_strategy_rule *r)
{
    char hint[200];
    const char **list = paths(x);
    const char *near = list ? sc_nearest(r->match, list) : NULL;
    if (near)
        snprintf(hint, sizeof hint, "did you mean %s?", near);
    else
        snprintf(hint, sizeof hint,
                 "paths such as layers.*.qkv, layers.0-%u, head; `stepcast "
                 "show NAME --layers` lists operators",
                 x->m->n_blocks - 1);
    sc_status s =
        sc_error(x->err, SC_EINPUT, SC_C_UNKNOWN_NAME, r->pos, hint,
                 "rule '%s' matches no operator of %s", r->match, x->m->name);
    if (x->first == SC_OK) x->first = s;
}

static void judge(meeting *x, const sc_strategy_rule *r, const meets *found)
{
    if (!found->ops) {
        no_operator(x, r);
        return;
    }
    for (uint32_t i = 0; i < r->n_split && i < 64; i++) {
        if (found->dims >> i & 1 || r->tensor != SC_RT_OP) continue;
        sc_status s = sc_error(
            x->err, SC_EINPUT, SC_C_UNKNOWN_NAME, r->split[i].pos,
            "dims are batch, seq, hidden, head, ffn, vocab, expert, state; "
            "or out and in",
            "no operator that '%s' matches has a dim %s", r->match,
            r->split[i].dim);
        if (x->first == SC_OK) x->first = s;
    }
}

static bool divides(const sc_model *m, const uint64_t *label)
{
    for (uint32_t i = 0; i < m->n_blocks; i++)
        if (label[i] != label[m->layer[m->order[i]].block]) return true;
    return false;
}

/* Joins what a rule matches of every block to the blocks' labels; says if it
 * is of some blocks only. */
static bool label_blocks(const sc_strategy_rule *r, const sc_model *m,
                         uint64_t *label, meets *found)
{
    bool some = false, all = true;
    for (uint32_t b = 0; b < m->n_blocks; b++) {
        uint64_t bits = meet(r, m, &m->layer[m->order[b]], b, found);
        label[b] = sc_hash(&bits, sizeof bits, label[b]);
        some = some || bits;
        all = all && bits;
    }
    return some && !all;
}

sc_status sc_strategy_model(const sc_strategy *s, const sc_model *m,
                            sc_arena *a, const sc_model **out, sc_err *err)
{
    meeting x = {.s = s, .m = m, .a = a, .err = err};
    uint64_t *label = SC_NEW_N(a, uint64_t, m->n_blocks);
    sc_pos pos = sc_pos_file(s->file);
    if (!label) return sc_error_nomem(err);
    if (m->graph) { /* has no layers; graphs meet rules themselves */
        *out = m;
        return SC_OK;
    }
    for (uint32_t i = 0; i < s->n_rules; i++) {
        const sc_strategy_rule *r = &s->rule[i];
        meets found = {0, 0};
        (void)meet(r, m, &m->layer[0], 0, &found);
        (void)meet(r, m, &m->layer[m->n_layers - 1], 0, &found);
        if (label_blocks(r, m, label, &found) && pos.line == 0) pos = r->pos;
        judge(&x, r, &found);
    }
    SC_TRY(x.first);
    if (divides(m, label)) return sc_model_divide(m, label, pos, a, out, err);
    *out = m;
    return SC_OK;
}

/* The first block of a kind stands for all. */
static bool kinds_follow(const sc_model *m, const sc_strategy_rule *r)
{
    meets any = {0, 0};
    for (uint32_t i = 0; i < m->n_blocks; i++) {
        const sc_layer *l = &m->layer[m->order[i]];
        if (meet(r, m, l, i, &any) != meet(r, m, l, l->block, &any))
            return false;
    }
    return true;
}

sc_status plan_strategy_check(const sc_plan *p, sc_err *err)
{
    const sc_strategy *s = p->run.strategy;
    for (uint32_t i = 0; s && i < s->n_rules; i++) {
        const sc_strategy_rule *r = &s->rule[i];
        if (!strpbrk(r->match, "0123456789?") || kinds_follow(p->run.model, r))
            continue;
        return sc_error(err, SC_EBUG, SC_C_BUG, r->pos, NULL,
                        "kinds of layers do not follow the rules");
    }
    return SC_OK;
}
