/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.c - of all rules that match an operator, those that hold. */
#include <stepcast/plan_strategy.h>

#include "plan/plan_internal.h"

#include <stdio.h>
#include <string.h>

typedef struct chosen {
    const sc_rule *split[SC_N_DIMNAMES], *weight, *grad, *optim, *recompute;
} chosen;

/* Written in a strategy's file. */
static bool is_own(const sc_rule *r)
{
    return r && r->pos.line > 0;
}

static void offer(const sc_rule **slot, const sc_rule *r)
{
    const sc_rule *now = *slot;
    if (now && is_own(now) != is_own(r)) {
        if (is_own(r)) *slot = r;
    } else if (!now || sc_path_specificity(r->match) >=
                           sc_path_specificity(now->match)) {
        *slot = r;
    }
}

/* Of dims that only the output has, experts are chosen, not computed. */
const sc_iter *plan_rule_iter(const sc_operator *op, uint32_t dim)
{
    const sc_iter *found = NULL;
    for (uint32_t i = 0; i < op->n_iter; i++) {
        const sc_iter *it = &op->iter[i];
        bool out =
            it->kind == SC_I_FREE && op->y >> i & 1 && it->name != SC_D_EXPERT;
        if (it->name == dim || (dim == SC_D_OUT && out) ||
            (dim == SC_D_IN && it->kind == SC_I_REDUCE))
            found = it;
    }
    return found;
}

void plan_own_path(const sc_layer *layer, uint32_t block, const sc_operator *op,
                   char *buf, size_t size)
{
    if (layer->kind == SC_LAYER_BLOCK)
        snprintf(buf, size, "layers.%u.%s", block, op->name);
    else
        snprintf(buf, size, "%s.%s", layer->path, op->name);
}

/* The operator in the first block of its kind, as a strategy names it. */
static void first_path(const sc_model *m, uint32_t layer, const sc_operator *op,
                       char *buf, size_t size)
{
    uint32_t block = 0;
    while (block < m->n_blocks && m->order[block] != layer) block++;
    plan_own_path(&m->layer[layer], block, op, buf, size);
}

static void choose(const sc_plan *p, uint32_t layer, const char *kind,
                   const sc_operator *op, chosen *c)
{
    char own[128];
    if (p->run.strategy) first_path(p->run.model, layer, op, own, sizeof own);
    for (uint32_t i = 0; i < p->n_rules; i++) {
        const sc_rule *r = &p->rules[i];
        const sc_iter *it = NULL;
        if (r->aspect == SC_R_SPLIT && !(it = plan_rule_iter(op, r->dim)))
            continue;
        const char *path = is_own(r) ? own : kind;
        if (!sc_path_match(r->match, strlen(r->match), path)) continue;
        switch (r->aspect) {
        case SC_R_SPLIT: offer(&c->split[it->name], r); break;
        case SC_R_WEIGHT: offer(&c->weight, r); break;
        case SC_R_GRAD: offer(&c->grad, r); break;
        case SC_R_OPTIM: offer(&c->optim, r); break;
        case SC_R_RECOMPUTE: offer(&c->recompute, r); break;
        }
    }
    /* Gradients are kept as their weight is, states as their gradient, unless
     * the file says otherwise. */
    if (is_own(c->weight) && !is_own(c->grad)) c->grad = c->weight;
    if (is_own(c->grad) && !is_own(c->optim)) c->optim = c->grad;
}

/* Attention reads keys and values whole, but its queries may be split. */
static bool splittable(const sc_operator *op, const sc_iter *it)
{
    return it->kind != SC_I_OPAQUE ||
           (op->type == SC_ATTENTION && it->name == SC_D_SEQ);
}

/* Equal parts are what blocks know. */
static sc_status check_parts(const sc_run *run, const char *path,
                             const sc_iter *it, const sc_rule *r, sc_err *err)
{
    uint64_t parts = 1;
    uint64_t extent = sc_iter_extent(it, plan_batch(run), run->seq);
    uint64_t units = it->units ? it->units : extent;
    if (!is_own(r)) return SC_OK;
    for (sc_axlist list = r->axes; list; list >>= 4)
        parts *= run->size[(list & 15) - 1];
    if (units % parts == 0) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_DIVIDE, r->pos, NULL,
                    "%llu parts do not divide dim %s of %s, %llu",
                    (unsigned long long)parts, sc_dimname_names[it->name], path,
                    (unsigned long long)units);
}

/* Of two rules of a file that use an axis, the more specific one has it, and
 * any of them before a preset. */
static bool gives_way(const sc_rule *r, const sc_rule *to)
{
    if (!is_own(to)) return false;
    return !is_own(r) ||
           sc_path_specificity(r->match) < sc_path_specificity(to->match);
}

static void share_axes(const chosen *c, sc_layout *split)
{
    for (uint32_t d = 0; d < SC_N_DIMNAMES; d++) {
        uint32_t taken = 0;
        if (!c->split[d]) continue;
        for (uint32_t i = 0; i < SC_N_DIMNAMES; i++)
            if (c->split[i] && gives_way(c->split[d], c->split[i]))
                taken |= sc_axlist_mask(c->split[i]->axes);
        for (sc_axlist list = c->split[d]->axes; list; list >>= 4) {
            uint32_t ax = (list & 15) - 1;
            if (!(taken >> ax & 1))
                split->shard[d] = sc_axlist_add(split->shard[d], (sc_axis)ax);
        }
    }
}

static sc_status check_split(const sc_plan *p, const char *path,
                             const sc_operator *op, const chosen *c,
                             const sc_layout *split, sc_err *err)
{
    uint32_t seen = 0;
    const sc_rule *owner[SC_N_AX] = {0};
    for (uint32_t d = 0; d < SC_N_DIMNAMES; d++) {
        const sc_rule *r = c->split[d];
        if (!r) continue;
        const sc_iter *it = plan_rule_iter(op, d);
        uint32_t mask = sc_axlist_mask(split->shard[d]);
        if (!splittable(op, it) && (mask || !is_own(r)))
            return sc_error(err, SC_EINPUT, SC_C_CONFLICT, r->pos, NULL,
                            "rule '%s' (%s) splits dimension %s of %s, which "
                            "can't be split",
                            r->match, r->origin, sc_dimname_names[d], path);
        for (uint32_t ax = 0; ax < SC_N_AX; ax++) {
            if (!(mask >> ax & 1) || p->run.size[ax] == 1) continue;
            if (seen >> ax & 1)
                return sc_error(err, SC_EINPUT, SC_C_CONFLICT, r->pos,
                                "one axis splits one dimension of an operator",
                                "rules '%s' (%s) and '%s' (%s) both use axis "
                                "%s on %s",
                                owner[ax]->match, owner[ax]->origin, r->match,
                                r->origin, sc_axis_names[ax], path);
            seen |= 1u << ax;
            owner[ax] = r;
        }
        SC_TRY(check_parts(&p->run, path, it, r, err));
    }
    return SC_OK;
}

sc_status plan_resolve(const sc_plan *p, uint32_t layer, const sc_operator *op,
                       sc_placed *out, sc_err *err)
{
    char path[128];
    chosen c = {{0}, 0, 0, 0, 0};
    sc_placed o = {.op = op};
    plan_path(&p->run.model->layer[layer], op, path, sizeof path);
    choose(p, layer, path, op, &c);
    share_axes(&c, &o.split);
    SC_TRY(check_split(p, path, op, &c, &o.split, err));
    o.weight = c.weight ? c.weight->axes : 0;
    o.grad = c.grad ? c.grad->axes : 0;
    o.optim = c.optim ? c.optim->axes : 0;
    o.recompute = c.recompute && c.recompute->on;
    *out = o;
    return SC_OK;
}
