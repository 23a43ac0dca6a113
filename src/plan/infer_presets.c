/* SPDX-License-Identifier: Apache-2.0 */
/* infer_presets.c - the presets of a strategy as rules on operators. */
#include "plan/infer.h"
#include "plan/internal.h"

#include <string.h>

static sc_strategy_rule *add(inference *f, infer_list *out, const char *match,
                             const char *origin)
{
    sc_strategy_rule *grown =
        sc_grow_raw(f->a, out->rule, out->n, &out->cap, 32, sizeof *grown);
    if (!grown) return NULL;
    out->rule = grown;
    sc_strategy_rule *r = &grown[out->n++];
    *r = (sc_strategy_rule){.match = match,
                            .origin = origin,
                            .pos = sc_pos_none(),
                            .recompute = -1,
                            .tier = -1};
    return r;
}

/* Adds a rule that splits one dim over axes; `base` has its other fields. */
static sc_status split(inference *f, infer_list *out,
                       const sc_strategy_rule *base, const char *dim,
                       sc_axes axes)
{
    sc_strategy_rule *r = add(f, out, "*", base->origin);
    sc_rule_split *row = SC_NEW(f->a, sc_rule_split);
    if (!r || !row) return sc_error_nomem(f->err);
    *row = (sc_rule_split){.dim = dim, .axes = axes, .pos = sc_pos_none()};
    r->tensor = base->tensor;
    r->roles = base->roles;
    r->called = base->called;
    r->split = row;
    r->n_split = 1;
    r->has_split = true;
    return SC_OK;
}

static sc_status split_all(inference *f, infer_list *out, const char *dim,
                           sc_axes axes, const char *origin)
{
    sc_strategy_rule base = {.origin = origin};
    return split(f, out, &base, dim, axes);
}

static sc_axes samples(const inference *f)
{
    return sc_strategy_samples(f->s);
}

static sc_axes one(const inference *f, sc_axis axis)
{
    return sc_strategy_axes(f->s, 1u << axis);
}

static sc_axes joined(sc_axes a, sc_axes b)
{
    for (; b; b >>= 4) a = sc_axes_add(a, (uint32_t)(b & 15) - 1);
    return a;
}

static sc_status data_parallel(inference *f, infer_list *out)
{
    sc_axes all = samples(f);
    if (!f->s->data_parallel || !all) return SC_OK;
    return split_all(f, out, "batch", all, "preset data-parallel");
}

static sc_status context_parallel(inference *f, infer_list *out)
{
    sc_axes cp = one(f, SC_AX_CP);
    if (!cp) return SC_OK;
    return split_all(f, out, "seq", cp, "preset context-parallel");
}

static bool has_dim(const inference *f, const char *name)
{
    for (uint32_t op = 0; op < f->g->n_ops; op++)
        if (infer_iter_named(f, &f->g->op[op], name) >= 0) return true;
    return false;
}

/* Splits images and volumes into slabs.  Deep layers with fewer positions than
 * ranks run unsplit on each rank. */
static sc_status spatial(inference *f, infer_list *out)
{
    static const char *const outermost[] = {"d", "h", "w"};
    sc_axes axes = one(f, SC_AX_SPATIAL);
    for (size_t i = 0; axes && i < SC_COUNT(outermost); i++) {
        if (!has_dim(f, outermost[i])) continue;
        SC_TRY(split_all(f, out, outermost[i], axes, "preset spatial"));
        out->rule[out->n - 1].where_divides = true;
        break;
    }
    return SC_OK;
}

/* DeepSpeed-Ulysses (Jacobs et al. 2023): in attention a rank has some of the
 * heads and all tokens; elsewhere it has some of the tokens. */
static sc_status ulysses(inference *f, infer_list *out)
{
    sc_strategy_rule base = {.roles = INFER_ATTENTION,
                             .called = "attention",
                             .origin = "preset ulysses"};
    sc_axes cp = one(f, SC_AX_CP);
    if (!cp || f->s->context_parallel != SC_CP_ULYSSES) return SC_OK;
    SC_TRY(split(f, out, &base, "seq", 0));
    return split(f, out, &base, "out", joined(one(f, SC_AX_TP), cp));
}

/* Splits experts over the axes over which tokens are exchanged, and replicates
 * them over the other axes of data parallelism. */
static sc_status expert_parallel(inference *f, infer_list *out)
{
    const uint32_t others = 1u << SC_AX_REP | 1u << SC_AX_DP | 1u << SC_AX_FSDP;
    sc_strategy_rule base = {.roles = INFER_EXPERTS,
                             .called = "experts",
                             .origin = "preset expert-parallel"};
    sc_axes ep = one(f, SC_AX_EP), over = ep;
    if (f->s->experts_over_tp) over = joined(over, one(f, SC_AX_TP));
    if (!f->s->data_parallel || !over) return SC_OK;
    if (ep)
        SC_TRY(split(f, out, &base, "batch", sc_strategy_axes(f->s, others)));
    return split(f, out, &base, "expert", over);
}

/* Splits losses by classes; networks name that dim differently. */
static sc_status losses(inference *f, infer_list *out, sc_strategy_rule *base,
                        sc_axes tp)
{
    const char *was = NULL;
    base->roles = INFER_LOSS;
    base->called = "losses";
    for (uint32_t op = 0; op < f->g->n_ops; op++) {
        const sc_net_op *o = &f->g->op[op];
        if (!(f->role[op] & INFER_LOSS)) continue;
        for (uint32_t i = 0; i < o->n_iter; i++) {
            const char *name = o->iter[i].name;
            if (o->iter[i].kind != SC_I_REDUCE) continue;
            if (was && strcmp(was, name) == 0) continue;
            was = name;
            SC_TRY(split(f, out, base, name, tp));
        }
    }
    return SC_OK;
}

static sc_status tensor_parallel(inference *f, infer_list *out)
{
    static const struct {
        infer_role role;
        const char *called, *dim;
    } rows[] = {{INFER_TABLE, "embedding tables", "in"},
                {INFER_COLUMN, "column-parallel products", "out"},
                {INFER_ROW, "row-parallel products", "in"}};

    sc_axes tp = one(f, SC_AX_TP), seq = joined(one(f, SC_AX_CP), tp);
    sc_strategy_rule base = {.origin = "preset megatron-tp"};
    if (f->s->tensor_parallel < 1 || !tp) return SC_OK;
    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        base.roles = rows[i].role;
        base.called = rows[i].called;
        SC_TRY(split(f, out, &base, rows[i].dim, tp));
    }
    SC_TRY(losses(f, out, &base, tp));
    if (f->s->tensor_parallel < 2) return SC_OK;
    base = (sc_strategy_rule){.roles = INFER_POSITIONS,
                              .called = "operators between products",
                              .origin = "preset sequence-parallel"};
    return split(f, out, &base, "seq", seq);
}

static sc_status zero(inference *f, infer_list *out)
{
    static const struct {
        sc_rule_tensor tensor;
        int64_t from;
        const char *origin;
    } rows[] = {
        {SC_RT_OPTIM, 1, "preset zero-1"},
        {SC_RT_GRAD, 2, "preset zero-2"},
        {SC_RT_WEIGHT, 3, "preset zero-3"},
        {SC_RT_BIAS, 3, "preset zero-3"},
    };

    const uint32_t replicas = 1u << SC_AX_DP | 1u << SC_AX_EP | 1u << SC_AX_CP;
    int axis = f->s->zero_axis;
    int64_t stage = f->s->zero;
    /* If the mesh has fsdp, its ranks shard and those of dp are replicas. */
    if (axis < 0) axis = sc_strategy_axis(f->s, SC_AX_FSDP);
    if (f->s->zero_axis < 0 && axis >= 0 && stage < 0) stage = 3;
    sc_axes over = axis >= 0 ? sc_axes_add(0, (uint32_t)axis)
                             : sc_strategy_axes(f->s, replicas);
    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        sc_strategy_rule base = {.origin = rows[i].origin,
                                 .tensor = rows[i].tensor};
        int64_t from =
            rows[i].from == 3 && infer_keeps_gathered(f) ? 2 : rows[i].from;
        if (stage < from) continue;
        SC_TRY(split(f, out, &base, "dim0", over));
        base.roles = INFER_EXPERTS;
        base.called = "experts";
        if (one(f, SC_AX_EP))
            SC_TRY(split(f, out, &base, "dim1",
                         infer_without(over, sc_axes_mask(one(f, SC_AX_EP)))));
    }
    return SC_OK;
}

/* ---- recomputation ----------------------------------------------------- */

typedef struct recompute_row {
    const char *match, *origin;
} recompute_row;

/* torchtitan's per-operator checkpointing keeps every second product. */
static const char *const every_second[] = {
    "layers.*.norm1", "layers.*.qkv", "layers.*.rope", "layers.*.add1",
    "layers.*.norm2", "layers.*.fc1", "layers.*.act",  "layers.*.add2",
};

/* If the attention kernel recomputes by itself, selective recomputation repeats
 * cheap operators instead (Megatron-Core's --recompute-modules). */
static const char *const cheap[] = {
    "layers.*.norm1",       "layers.*.norm2",      "layers.*.act",
    "layers.*.experts_act", "layers.*.shared_act", "layers.*.q_up",
    "layers.*.kv_up",
};

static const char *const attention[] = {"layers.*.attn"};
static const char *const whole[] = {"layers.*"};

static bool recomputed(sc_recompute what, bool fused, uint32_t i,
                       recompute_row *out)
{
    static const struct {
        const char *const *match;
        size_t n;
        const char *origin;
    } sets[] = {
        [SC_RC_NONE] = {NULL, 0, NULL},
        [SC_RC_SELECTIVE] = {attention, 1, "preset selective recompute"},
        [SC_RC_FULL] = {whole, 1, "preset full recompute"},
        [SC_RC_OPS] = {every_second, SC_COUNT(every_second),
                       "preset per-operator recompute"},
        {cheap, SC_COUNT(cheap), "preset selective recompute"},
    };

    size_t set = what;
    if (what == SC_RC_SELECTIVE && fused) set = SC_COUNT(sets) - 1;
    if (i >= sets[set].n) return false;
    out->match = sets[set].match[i];
    out->origin = sets[set].origin;
    return true;
}

static sc_status recompute_rule(inference *f, infer_list *out,
                                const char *match, const char *origin)
{
    sc_strategy_rule *r = add(f, out, match, origin);
    if (!r) return sc_error_nomem(f->err);
    r->recompute = 1;
    return SC_OK;
}

/* torchtitan's per-operator checkpointing, for all models.  It keeps exchanged
 * tokens (all_to_all_single) and sums over ranks, but not grouped products.
 * The second product of attention is recomputed if it is not such a sum. */
static sc_status per_operator(inference *f, infer_list *out)
{
    static const char *const always[] = {
        "q_proj",     "q_down",     "q_norm",      "q_up",
        "kv_down",    "kv_norm",    "kv_up",       "router",
        "shared_fc1", "shared_act", "experts_fc1", "experts_act",
    };
    static const char *const alone[] = {"dispatch", "experts_fc2"};
    static const char origin[] = "preset per-operator recompute";
    for (size_t i = 0; i < SC_COUNT(always) + SC_COUNT(alone); i++) {
        size_t n = SC_COUNT(always);
        if (i >= n && sc_strategy_degree(f->s, SC_AX_EP) > 1) break;
        const char *match =
            sc_sprintf(f->a, "layers.*.%s", i < n ? always[i] : alone[i - n]);
        if (!match) return sc_error_nomem(f->err);
        SC_TRY(recompute_rule(f, out, match, origin));
    }
    if (sc_strategy_degree(f->s, SC_AX_TP) > 1) return SC_OK;
    return recompute_rule(f, out, "layers.*.proj", origin);
}

static sc_status recompute(inference *f, infer_list *out)
{
    bool fused = f->job->sw->attention != SC_ATTN_UNFUSED;
    if (f->s->recompute <= SC_RC_NONE) return SC_OK;
    recompute_row row;
    for (uint32_t i = 0;
         recomputed((sc_recompute)f->s->recompute, fused, i, &row); i++) {
        sc_strategy_rule *r = add(f, out, row.match, row.origin);
        if (!r) return sc_error_nomem(f->err);
        r->recompute = 1;
        if (f->s->recompute != SC_RC_FULL || f->s->rc_method < 0) continue;
        uint32_t n = f->s->rc_blocks > 0 ? (uint32_t)f->s->rc_blocks : 1;
        if (f->s->rc_method == SC_RCM_UNIFORM) r->rc_group = n;
        if (f->s->rc_method == SC_RCM_BLOCK) r->rc_first = n;
    }
    return f->s->recompute == SC_RC_OPS ? per_operator(f, out) : SC_OK;
}

sc_status infer_presets(inference *f, infer_list *out)
{
    SC_TRY(data_parallel(f, out));
    SC_TRY(context_parallel(f, out));
    SC_TRY(spatial(f, out));
    SC_TRY(tensor_parallel(f, out));
    SC_TRY(ulysses(f, out));
    SC_TRY(expert_parallel(f, out));
    SC_TRY(zero(f, out));
    return recompute(f, out);
}
