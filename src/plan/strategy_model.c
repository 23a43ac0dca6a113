/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_model.c - matches the rules of a strategy with a model's
 * operators. */
#include "plan/internal.h"
#include "plan/strategy.h"

#include <string.h>

typedef struct judgement {
    const sc_strategy *s;
    const sc_model *m;
    sc_arena *a;
    sc_err *err;
    sc_status first;
} judgement;

typedef struct meets {
    uint32_t ops;  /* operators that a rule matches */
    uint64_t dims; /* bit per split of the rule: some operator has its dim */
} meets;

/* Hash of the operators of a layer that a rule matches; 0: none.  Adds them to
 * `found`. */
static uint64_t meet(const sc_strategy_rule *r, const sc_model *m,
                     const sc_layer *l, uint32_t block, meets *found)
{
    uint64_t which = 0;
    char path[128];
    for (uint32_t k = 0; k < l->n_ops; k++) {
        const sc_net_op *op = &m->kinds->op[l->first + k];
        sc_kind_path(l, block, op, path, sizeof path);
        if (!sc_rule_matches(r->match, path)) continue;
        which = sc_hash(&k, sizeof k, which + 1);
        found->ops++;
        for (uint32_t i = 0; i < r->n_split && i < 64; i++)
            if (sc_net_op_iter(op, r->split[i].dim) >= 0)
                found->dims |= UINT64_C(1) << i;
    }
    return which;
}

/* The usual pattern for a path in all blocks: "layers.*.fc1" for
 * "layers.3.fc1". */
static const char *of_all_blocks(sc_arena *a, const char *path)
{
    char *out = sc_strdup(a, path), *to = out;
    if (!out) return path;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "."), digits = strspn(p, "0123456789");
        if (n > 0 && digits == n) {
            *to++ = '*';
        } else {
            memcpy(to, p, n);
            to += n;
        }
        p += n;
        if (*p) *to++ = *p++;
    }
    *to = '\0';
    return out;
}

sc_status plan_rule_unmatched(const sc_strategy_rule *r, const sc_net *g,
                              sc_arena *a, sc_err *err)
{
    size_t n = 0;
    const char **names =
        SC_NEW_N(a, const char *, g->n_instances + 2 * (size_t)g->n_ops + 1);
    if (!names) return sc_error_nomem(err);
    for (uint32_t i = 0; i < g->n_instances; i++)
        names[n++] = of_all_blocks(a, g->instance[i].path);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        names[n++] = of_all_blocks(a, g->op[i].path);
        names[n++] = g->op[i].path;
    }
    const char *near = sc_nearest(r->match, names);
    const char *hint = "`stepcast show NAME --layers` lists operators";
    if (near) hint = sc_sprintf(a, "did you mean '%s'?", near);
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, r->pos, hint,
                    "rule '%s' matches no operator of %s", r->match, g->name);
}

static void judge(judgement *x, const sc_strategy_rule *r, const meets *found)
{
    if (!found->ops) {
        sc_status s = plan_rule_unmatched(r, x->m->kinds, x->a, x->err);
        if (x->first == SC_OK) x->first = s;
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

/* Adds the matches of a rule in every block to the blocks' labels.  Returns
 * whether it matches some blocks but not all. */
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
    judgement x = {.s = s, .m = m, .a = a, .err = err};
    uint64_t *label = SC_NEW_N(a, uint64_t, m->n_blocks);
    sc_pos pos = sc_pos_file(s->file);
    if (!label) return sc_error_nomem(err);
    if (m->net) { /* it has no layers; infer_rules.c applies rules to it */
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

/* Whether a rule matches all blocks of a kind in the same way, so that the
 * first block can represent them. */
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
                        "a rule treats layers of one kind differently");
    }
    return SC_OK;
}
