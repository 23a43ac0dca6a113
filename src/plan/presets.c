/* SPDX-License-Identifier: Apache-2.0 */
/* presets.c - presets expand to rules of the strategy tree. */
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

/* Korthikanti et al. 2022: what lies between them splits the sequence. */
static const split_rule sequence_parallel[] = {
    {"embedding.position", SC_D_SEQ},   {"embedding.embed_norm", SC_D_SEQ},
    {"embedding.embed_drop", SC_D_SEQ}, {"layers.*.norm1", SC_D_SEQ},
    {"layers.*.add1", SC_D_SEQ},        {"layers.*.norm2", SC_D_SEQ},
    {"layers.*.add2", SC_D_SEQ},        {"head.norm_f", SC_D_SEQ},
};

static void add(sc_rule *rules, uint32_t *n, sc_rule r)
{
    if (*n < PLAN_RULES) rules[(*n)++] = r;
}

static void add_splits(const split_rule *s, size_t n_s, sc_axis ax,
                       const char *origin, sc_rule *rules, uint32_t *n)
{
    for (size_t i = 0; i < n_s; i++)
        add(rules, n,
            (sc_rule){.match = s[i].match,
                      .aspect = SC_R_SPLIT,
                      .dim = s[i].dim,
                      .axes = sc_axlist_add(0, ax),
                      .origin = origin});
}

sc_status plan_presets(const sc_run *run, sc_rule *rules, uint32_t *n,
                       sc_err *err)
{
    (void)err;
    sc_axlist dp = sc_axlist_add(0, SC_AX_DP);
    add(rules, n,
        (sc_rule){.match = "*",
                  .aspect = SC_R_SPLIT,
                  .dim = SC_D_BATCH,
                  .axes = dp,
                  .origin = "preset data-parallel"});
    add_splits(megatron_tp, SC_COUNT(megatron_tp), SC_AX_TP,
               "preset megatron-tp", rules, n);
    if (run->sp)
        add_splits(sequence_parallel, SC_COUNT(sequence_parallel), SC_AX_TP,
                   "preset sequence-parallel", rules, n);
    static const sc_aspect zero[] = {SC_R_OPTIM, SC_R_GRAD, SC_R_WEIGHT};
    static const char *const origin[] = {"preset zero-1", "preset zero-2",
                                         "preset zero-3"};
    for (int z = 0; z < run->zero && z < 3; z++)
        add(rules, n,
            (sc_rule){.match = "*",
                      .aspect = zero[z],
                      .axes = dp,
                      .origin = origin[z]});
    if (run->recompute == SC_RC_FULL)
        add(rules, n,
            (sc_rule){.match = "layers.*",
                      .aspect = SC_R_RECOMPUTE,
                      .on = true,
                      .origin = "preset full recompute"});
    if (run->recompute == SC_RC_SELECTIVE)
        add(rules, n,
            (sc_rule){.match = "layers.*.attn",
                      .aspect = SC_R_RECOMPUTE,
                      .on = true,
                      .origin = "preset selective recompute"});
    return SC_OK;
}
