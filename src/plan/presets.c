/* SPDX-License-Identifier: Apache-2.0 */
/* presets.c - presets expand to rules of the strategy tree. */
#include <stepcast/plan_strategy.h>

#include "plan/plan_internal.h"

typedef struct split_rule {
    const char *match;
    sc_dimname dim;
} split_rule;

/* Shoeybi et al. 2019: column-parallel then row-parallel products, vocabulary
 * split of embedding and loss. */
static const split_rule megatron_tp[] = {
    {"embedding.embed", SC_D_VOCAB}, {"layers.*.qkv", SC_D_HEAD},
    {"layers.*.rope", SC_D_HEAD},    {"layers.*.attn", SC_D_HEAD},
    {"layers.*.proj", SC_D_HEAD},    {"layers.*.fc1", SC_D_FFN},
    {"layers.*.act", SC_D_FFN},      {"layers.*.fc2", SC_D_FFN},
    {"head.lm_head", SC_D_VOCAB},    {"head.loss", SC_D_VOCAB},
};

/* The same for latent and cross attention, shared experts, Mamba and adapters.
 */
static const split_rule megatron_tp_more[] = {
    {"layers.*.q_proj", SC_D_HEAD},      {"layers.*.q_up", SC_D_HEAD},
    {"layers.*.kv_up", SC_D_HEAD},       {"layers.*.shared_fc1", SC_D_FFN},
    {"layers.*.shared_act", SC_D_FFN},   {"layers.*.shared_fc2", SC_D_FFN},
    {"layers.*.in_proj", SC_D_STATE},    {"layers.*.conv", SC_D_STATE},
    {"layers.*.scan", SC_D_STATE},       {"layers.*.out_proj", SC_D_STATE},
    {"layers.*.ssm_norm", SC_D_STATE},   {"layers.*.lm_head", SC_D_VOCAB},
    {"layers.*.loss", SC_D_VOCAB},       {"layers.*.qkv_lora_b", SC_D_HEAD},
    {"layers.*.proj_lora_a", SC_D_HEAD}, {"layers.*.fc1_lora_b", SC_D_FFN},
    {"layers.*.fc2_lora_a", SC_D_FFN},   {"layers.*.qkv_lora_add", SC_D_HEAD},
    {"layers.*.fc1_lora_add", SC_D_FFN}, {"head.mtp_lm_head", SC_D_VOCAB},
    {"head.mtp_loss", SC_D_VOCAB},       {"layers.*.qk_norm", SC_D_HEAD},
    {"layers.*.cross_q", SC_D_HEAD},     {"layers.*.cross_kv", SC_D_HEAD},
    {"layers.*.cross_attn", SC_D_HEAD},  {"layers.*.cross_proj", SC_D_HEAD},
};

/* Korthikanti et al. 2022: what lies between them splits the sequence. */
static const char *const sequence_parallel[] = {
    "embedding.position", "embedding.embed_norm", "embedding.embed_drop",
    "layers.*.norm1",     "layers.*.add1",        "layers.*.norm2",
    "layers.*.add2",      "head.norm_f",
};

/* Products that every rank makes alike (Megatron-Core's latent attention), and
 * sums that adapters or cross attention put between them. */
static const char *const sequence_parallel_more[] = {
    "layers.*.q_down",        "layers.*.q_norm",       "layers.*.kv_down",
    "layers.*.kv_norm",       "layers.*.cross_norm",   "layers.*.cross_add",
    "layers.*.proj_lora_add", "layers.*.fc2_lora_add",
};

/* So do routed tokens, whose experts are not split. */
static const char *const sequence_parallel_experts[] = {
    "layers.*.router",     "layers.*.dispatch",  "layers.*.combine",
    "layers.*.shared_add", "layers.*.experts_*",
};

static void add(sc_rule *rules, uint32_t *n, sc_rule r)
{
    if (*n < PLAN_RULES) rules[*n] = r;
    ++*n;
}

static void split(sc_rule *rules, uint32_t *n, const char *match,
                  sc_dimname dim, sc_axlist axes, const char *origin)
{
    add(rules, n,
        (sc_rule){.match = match,
                  .aspect = SC_R_SPLIT,
                  .dim = (uint8_t)dim,
                  .axes = axes,
                  .origin = origin});
}

static void sequence(sc_rule *rules, uint32_t *n, const char *const *match,
                     size_t count)
{
    sc_axlist seq = sc_axlist_add(sc_axlist_add(0, SC_AX_CP), SC_AX_TP);
    for (size_t i = 0; i < count; i++)
        split(rules, n, match[i], SC_D_SEQ, seq, "preset sequence-parallel");
}

static void tensor_parallel(const sc_run *run, sc_rule *rules, uint32_t *n)
{
    const sc_transformer *t = &run->model->t;
    sc_axlist tp = sc_axlist_add(0, SC_AX_TP);
    static const char *const origin = "preset megatron-tp";
    const sc_strategy *own = run->strategy;
    if (own && own->n_axes && own->tensor_parallel < 1) return; /* its rules */
    for (size_t i = 0; i < SC_COUNT(megatron_tp); i++)
        split(rules, n, megatron_tp[i].match, megatron_tp[i].dim, tp, origin);
    /* Rules that no operator of the model matches say nothing. */
    bool more = t->experts || t->kv_rank || t->lora || t->pattern || t->mtp ||
                t->qk_norm || t->decoder_layers;
    for (size_t i = 0; more && i < SC_COUNT(megatron_tp_more); i++)
        split(rules, n, megatron_tp_more[i].match, megatron_tp_more[i].dim, tp,
              origin);
    if (!run->sp) return;
    sequence(rules, n, sequence_parallel, SC_COUNT(sequence_parallel));
    if (more)
        sequence(rules, n, sequence_parallel_more,
                 SC_COUNT(sequence_parallel_more));
    if (t->experts)
        sequence(rules, n, sequence_parallel_experts,
                 SC_COUNT(sequence_parallel_experts) - run->experts_over_tp);
}

/* Ranks of data parallelism that are no ranks of expert parallelism. */
static sc_axlist replicas(const sc_run *run)
{
    sc_axlist list = sc_axlist_add(0, SC_AX_DP);
    return run->size[SC_AX_REP] > 1 ? sc_axlist_add(list, SC_AX_REP) : list;
}

/* Jacobs et al. 2023: attention has some of the heads and all tokens. */
static void ulysses(const sc_run *run, sc_rule *rules, uint32_t *n)
{
    static const char *const origin = "preset ulysses";
    sc_axlist cp = sc_axlist_add(0, SC_AX_CP);
    sc_axlist heads = sc_axlist_add(sc_axlist_add(0, SC_AX_TP), SC_AX_CP);
    if (run->size[SC_AX_CP] == 1 || run->sw->cp_comm != SC_CP_ULYSSES) return;
    split(rules, n, "layers.*.attn", SC_D_SEQ, 0, origin);
    split(rules, n, "layers.*.attn", SC_D_HEAD, heads, origin);
    split(rules, n, "layers.*.cross_attn", SC_D_SEQ, 0, origin);
    split(rules, n, "layers.*.cross_attn", SC_D_HEAD, cp, origin);
}

/* Experts are replicated over what is left of data parallelism beside expert
 * parallelism; tokens come to them by the batch axis that experts occupy. */
static void expert_parallel(const sc_run *run, sc_rule *rules, uint32_t *n)
{
    sc_axlist over = sc_axlist_add(0, SC_AX_EP);
    if (run->experts_over_tp) over = sc_axlist_add(over, SC_AX_TP);
    split(rules, n, "*.experts_*", SC_D_BATCH, replicas(run),
          "preset expert-parallel");
    split(rules, n, "*.experts_*", SC_D_EXPERT, over, "preset expert-parallel");
}

static void zero(const sc_run *run, sc_axlist all, sc_rule *rules, uint32_t *n)
{
    static const sc_aspect aspect[] = {SC_R_OPTIM, SC_R_GRAD, SC_R_WEIGHT};
    static const char *const origin[] = {"preset zero-1", "preset zero-2",
                                         "preset zero-3"};
    sc_axlist experts = sc_axlist_add(sc_axlist_add(0, SC_AX_DP), SC_AX_CP);
    for (int z = 0; z < run->zero && z < 3; z++) {
        add(rules, n,
            (sc_rule){.match = "*",
                      .aspect = aspect[z],
                      .axes = all,
                      .origin = origin[z]});
        if (run->model->t.experts)
            add(rules, n,
                (sc_rule){.match = "*.experts_*",
                          .aspect = aspect[z],
                          .axes = experts,
                          .origin = origin[z]});
    }
}

/* torchtitan's per-operator checkpointing keeps every second product. */
static const char *const per_operator[] = {
    "layers.*.norm1", "layers.*.qkv", "layers.*.rope", "layers.*.add1",
    "layers.*.norm2", "layers.*.fc1", "layers.*.act",  "layers.*.add2",
};

/* Where attention recomputes by itself, selective recomputation is of what is
 * cheap to make again (Megatron-Core's --recompute-modules). */
static const char *const cheap[] = {
    "layers.*.norm1",       "layers.*.norm2",      "layers.*.act",
    "layers.*.experts_act", "layers.*.shared_act", "layers.*.q_up",
    "layers.*.kv_up",
};

static const char *const attention[] = {"layers.*.attn"};
static const char *const whole[] = {"layers.*"};

bool plan_recompute_find(sc_recompute what, bool fused, uint32_t i,
                         plan_recompute_row *out)
{
    static const struct {
        const char *const *match;
        size_t n;
        const char *origin;
    } sets[] = {
        [SC_RC_NONE] = {NULL, 0, NULL},
        [SC_RC_SELECTIVE] = {attention, 1, "preset selective recompute"},
        [SC_RC_FULL] = {whole, 1, "preset full recompute"},
        [SC_RC_OPS] = {per_operator, SC_COUNT(per_operator),
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

static void recompute(const sc_run *run, sc_rule *rules, uint32_t *n)
{
    plan_recompute_row row;
    bool fused = run->sw->attention != SC_ATTN_UNFUSED;
    for (uint32_t i = 0; plan_recompute_find(run->recompute, fused, i, &row);
         i++)
        add(rules, n,
            (sc_rule){.match = row.match,
                      .aspect = SC_R_RECOMPUTE,
                      .on = true,
                      .origin = row.origin});
}

sc_status plan_presets(const sc_run *run, sc_rule *rules, uint32_t *n,
                       sc_err *err)
{
    sc_axlist batch = sc_axlist_add(sc_axlist_add(0, SC_AX_DP), SC_AX_EP);
    sc_axlist samples = sc_axlist_add(replicas(run), SC_AX_EP);
    if (!run->strategy || run->strategy->data_parallel)
        split(rules, n, "*", SC_D_BATCH, samples, "preset data-parallel");
    if (run->size[SC_AX_CP] > 1)
        split(rules, n, "*", SC_D_SEQ, sc_axlist_add(0, SC_AX_CP),
              "preset context-parallel");
    tensor_parallel(run, rules, n);
    ulysses(run, rules, n);
    if (run->model->t.experts) expert_parallel(run, rules, n);
    zero(run, sc_axlist_add(batch, SC_AX_CP), rules, n);
    recompute(run, rules, n);
    if (*n <= PLAN_RULES) return SC_OK;
    return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "presets write more than %d rules", PLAN_RULES);
}
