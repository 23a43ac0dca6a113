/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_weights.c - layouts of stored weights, and their gathers before use.
 *
 * Programs that shard weights gather those of a layer together (a unit of FSDP,
 * a module of DeepSpeed), before its first operator runs, and free them after
 * it.  FSDP2 has one unit for everything outside of blocks, which stays
 * gathered until its gradients are made; with pipeline stages a program may
 * keep all units gathered from the first micro-batch to the last.
 */
#include "plan/infer.h"

sc_status infer_weight_kept(inference *f, uint32_t op, uint32_t k, layout *out,
                            const infer_rule **by)
{
    const sc_operand *p = &f->g->op[op].weight[k];
    layout used = infer_port(f, op, p, false);
    const infer_rule *r = infer_stated(f, op, k ? SC_RT_BIAS : SC_RT_WEIGHT, 0);
    *out = used;
    *by = r;
    if (!r) return SC_OK;
    return infer_place(f, &f->g->tensor[p->tensor], r, &used, true, out);
}

bool infer_has_masters(const inference *f)
{
    return !f->rules->gradients_as_weights &&
           sc_value_bytes(f->job->precision) < 4;
}

/* Bytes of a stored element, divided by those of a value.  Frozen weights are
 * stored in the format of products. */
static double kept_wider(const inference *f, const sc_tensor *t)
{
    double used = sc_value_bytes(f->job->precision);
    if (!infer_has_masters(f) || t->bytes > 0) return 1;
    if (!t->learns) return f->job->precision >= SC_FP8 ? 1 / used : 1;
    return f->job->forward_only ? 1 : f->job->sw->weight_bytes / used;
}

/* The kept weight on the stage of `op`; its first reader decides its layout. */
static infer_form *weight_form(inference *f, uint32_t op, uint32_t k, int tier,
                               const layout *kept)
{
    const sc_net_op *o = &f->g->op[op];
    uint32_t tensor = o->weight[k].tensor, stage = f->node[op].stage;
    const sc_tensor *t = &f->g->tensor[tensor];
    infer_form *form = infer_find(f->fwd[tensor], stage, NULL);
    if (form) return form;
    uint32_t v =
        infer_value(f, (program_value){.word = {o->path, t->name},
                                       .tensor = tensor,
                                       .what = VALUE_WEIGHT,
                                       .tier = (uint8_t)tier,
                                       .stage = stage,
                                       .bytes = infer_rank_bytes(f, t, kept) *
                                                kept_wider(f, t) *
                                                infer_rr_fraction(f, op, true),
                                       .copies = infer_copies(f, kept),
                                       .made = SC_NONE});
    return infer_remember(f, &f->fwd[tensor], stage, v, kept);
}

/* Whether axes shard weights as ZeRO does.  Other axes belong to tensor
 * parallelism of several dimensions, in which each product gathers its own
 * weight. */
bool infer_shards(const inference *f, uint32_t axes)
{
    uint32_t mask = sc_axes_mask(sc_strategy_samples(f->s));
    if (f->cp >= 0) mask |= 1u << f->cp;
    return (axes & ~mask) == 0;
}

bool infer_in_root(const inference *f, uint32_t op)
{
    return f->job->sw->root_group && !infer_in_block(f->g->op[op].path);
}

bool infer_one_group(const inference *f, uint32_t a, uint32_t b)
{
    if (f->node[a].stage != f->node[b].stage) return false;
    if (infer_in_root(f, a)) return infer_in_root(f, b);
    return f->unit[a] == f->unit[b] ||
           infer_same_unit(f->g->op[a].path, f->g->op[b].path);
}

bool infer_keeps_gathered(const inference *f)
{
    return f->s->zero == 2 && f->job->sw->zero2_weights &&
           !f->rules->exchanges_overlap;
}

bool infer_stays_gathered(const inference *f)
{
    return f->job->sw->stage_gather && f->n_stages > 1 && !f->job->forward_only;
}

typedef struct use {
    const sc_operand *port;
    infer_form *form;
    const infer_rule *by;
    layout used;
    uint32_t n_moves;
    layout_move move[SC_MESH_AXES];
} use;

static sc_status use_of(inference *f, uint32_t op, uint32_t k, use *u)
{
    layout kept;
    u->port = &f->g->op[op].weight[k];
    u->used = infer_port(f, op, u->port, false);
    SC_TRY(infer_weight_kept(f, op, k, &kept, &u->by));
    int tier = infer_tier(f, op, k ? SC_RT_BIAS : SC_RT_WEIGHT, NULL);
    u->form = weight_form(f, op, k, tier, &kept);
    if (!u->form) return sc_error_nomem(f->err);
    u->n_moves =
        infer_moves(f, u->port->tensor, &u->form->l, &u->used, u->move);
    return SC_OK;
}

static infer_why why_of(const inference *f, uint32_t op, uint32_t phase,
                        const use *u)
{
    return (infer_why){.path = f->g->op[op].path,
                       .tensor = f->g->tensor[u->port->tensor].name,
                       .origin = u->by ? u->by->r->origin : NULL,
                       .pass = phase == INFER_BACKWARD ? SC_PASS_DGRAD
                                                       : SC_PASS_FWD,
                       .op = op,
                       .stage = f->node[op].stage,
                       .of = u->port->tensor,
                       .what = VALUE_WEIGHT_USED,
                       .phase = (uint8_t)phase};
}

/* Weights of one unit that one collective gathers. */
typedef struct together {
    uint32_t n, cap;

    struct part {
        uint32_t op, k, value;
        double bytes; /* on one rank, when gathered */
    } * part;

    double bytes; /* V */
} together;

static sc_status join(inference *f, together *t, uint32_t op, uint32_t k,
                      const use *u)
{
    struct part *grown =
        sc_grow_raw(f->a, t->part, t->n, &t->cap, 16, sizeof *grown);
    if (!grown) return sc_error_nomem(f->err);
    double bytes = infer_bytes(f, &f->g->tensor[u->port->tensor]);
    t->part = grown;
    grown[t->n++] =
        (struct part){op, k, u->form->value,
                      bytes * infer_fraction(f, u->port->tensor, &u->used,
                                             (1u << SC_TENSOR_DIMS) - 1)};
    t->bytes +=
        u->move[0].fraction * bytes * infer_low_gathered(f, u->port->tensor);
    return SC_OK;
}

static bool one_gather(const use *u, uint32_t axes)
{
    return u->n_moves == 1 && u->move[0].coll == SC_ALL_GATHER &&
           u->move[0].axes == axes;
}

/* Finds the weights of the unit of `op` that the same axes gather. */
static sc_status collect(inference *f, uint32_t op, uint32_t phase,
                         uint32_t axes, together *t)
{
    bool root = infer_in_root(f, op);
    uint32_t first = root ? 0 : op, end = root ? f->g->n_ops : op + 1;
    while (!root && first > 0 && infer_one_group(f, op, first - 1)) first--;
    while (!root && end < f->g->n_ops && infer_one_group(f, op, end)) end++;
    for (uint32_t i = first; i < end; i++) {
        const infer_node *n = &f->node[i];
        if (!infer_one_group(f, op, i) || n->rr_rule) continue;
        for (uint32_t k = 0; k < f->g->op[i].n_weight && k < INFER_REGATHERED;
             k++) {
            use u;
            if (n->regathered[phase][k]) continue;
            SC_TRY(use_of(f, i, k, &u));
            if (one_gather(&u, axes)) SC_TRY(join(f, t, i, k, &u));
        }
    }
    return SC_OK;
}

/* Records a gathered weight for this phase, or for all phases during which its
 * unit stays gathered. */
static void hold(inference *f, const struct part *p, uint32_t phase,
                 uint32_t value)
{
    bool lasts = infer_stays_gathered(f) || infer_keeps_gathered(f) ||
                 infer_in_root(f, p->op);
    uint32_t *held[] = {&f->node[p->op].regathered[phase][p->k],
                        &f->node[p->op].regathered[!phase][p->k]};
    *held[0] = value + 1;
    if (lasts) *held[1] = value + 1;
}

static sc_status gather(inference *f, const infer_why *why, uint32_t axes,
                        const together *t)
{
    infer_why own = *why, *w = &own;
    if (infer_stays_gathered(f)) {
        own.once = true;
        own.phase = INFER_ONCE;
    }
    uint32_t *in = SC_NEW_N(f->a, uint32_t, t->n), item;
    if (!in) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < t->n; i++) in[i] = t->part[i].value;
    infer_coll c = {.coll = SC_ALL_GATHER,
                    .axes = axes,
                    .bytes = t->bytes,
                    .out_bytes = t->part[0].bytes,
                    .reason = "sharded to replicated",
                    .in = in,
                    .n_in = t->n,
                    .bucketed = t->n > 1};
    SC_TRY(infer_collective(f, w, &c, &item));
    uint32_t out = f->prog->item[item].out;
    f->prog->item[item].n_more = t->n - 1;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct part *p = &t->part[i];
        if (i > 0) {
            program_value v = f->prog->value[out];
            v.bytes = p->bytes;
            v.tensor = f->g->op[p->op].weight[p->k].tensor;
            v.word[0] = f->g->op[p->op].path;
            v.word[1] = f->g->tensor[v.tensor].name;
            (void)infer_value(f, v);
        }
        hold(f, p, why->phase, out + i);
    }
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

sc_status infer_weight_used(inference *f, uint32_t op, uint32_t k,
                            uint32_t phase, uint32_t *value)
{
    infer_node *n = &f->node[op];
    use u = {0};
    if (k < INFER_REGATHERED && n->regathered[phase][k]) {
        *value = n->regathered[phase][k] - 1;
        return SC_OK;
    }
    SC_TRY(use_of(f, op, k, &u));
    infer_why w = why_of(f, op, phase, &u);
    infer_sum v = {0};
    bool apart =
        f->rules->exchanges_overlap || n->rr_rule || k >= INFER_REGATHERED;
    if (!apart && u.n_moves == 1 && one_gather(&u, u.move[0].axes) &&
        infer_shards(f, u.move[0].axes)) {
        together t = {0};
        SC_TRY(collect(f, op, phase, u.move[0].axes, &t));
        SC_TRY(gather(f, &w, u.move[0].axes, &t));
        *value = n->regathered[phase][k] - 1;
        return SC_OK;
    }
    if (!infer_sum_add(f, &v, u.form->value)) return sc_error_nomem(f->err);
    SC_TRY(infer_convert(f, &w, &u.form->l, &u.used,
                         infer_bytes(f, &f->g->tensor[u.port->tensor]), &v));
    *value = v.value[0];
    if (phase == INFER_BACKWARD && k < INFER_REGATHERED)
        n->regathered[phase][k] = *value + 1;
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}
