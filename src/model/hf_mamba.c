/* SPDX-License-Identifier: Apache-2.0 */
/* hf_mamba.c - config.json of Mamba, and of hybrids whose blocks have an MLP
 * behind a mixer: each of these is two letters of a pattern. */
#include "model/hf.h"

#include <stdlib.h>
#include <string.h>

/* A key whose other value is not modelled. */
static void only(hf_reader *r, const char *key, bool value, const char *what)
{
    if (hf_bool(r, r->root, key, value) != value)
        hf_unsupported(r, hf_get(r, r->root, key), what);
}

static void only_silu(hf_reader *r, const char *key)
{
    const sc_node *n = hf_get(r, r->root, key);
    if (n && !hf_is(r, key, "silu")) hf_unsupported(r, n, "this activation");
}

static char *letters(hf_reader *r, int64_t n, char fill)
{
    if (n < 1 || n > 100000) return NULL;
    char *s = SC_NEW_N(r->arena, char, (size_t)n + 1);
    if (s) memset(s, fill, (size_t)n);
    return s;
}

/* Blocks of a mixer alone. */
static void alone(hf_reader *r)
{
    sc_transformer *t = &r->t;
    t->heads = t->kv_heads = t->ssm_heads; /* there is no attention */
    t->head_dim = 1;
    t->ffn = t->hidden; /* no block has one */
    t->pattern = letters(r, t->layers, 'M');
}

static void mamba2(hf_reader *r)
{
    static const hf_spelling ssm[] = {
        {MODEL_SSM_STATE, {"state_size"}},  {MODEL_SSM_HEADS, {"num_heads"}},
        {MODEL_SSM_HEAD_DIM, {"head_dim"}}, {MODEL_SSM_GROUPS, {"n_groups"}},
        {MODEL_SSM_CONV, {"conv_kernel"}},
    };
    hf_numbers(r, ssm, SC_COUNT(ssm), true);
    only_silu(r, "hidden_act");
    only(r, "use_bias", false, "biases in a part of the block");
    only(r, "use_conv_bias", true, "convolutions without a bias");
    only(r, "rms_norm", true, "mixers without a norm");
    alone(r);
}

/* Channels are heads of one element; steps go through hidden / 16 without a
 * number ("auto"). */
static void steps(hf_reader *r, const char *rank, const char *expand)
{
    sc_transformer *t = &r->t;
    const sc_node *n = hf_get(r, r->root, rank);
    t->ssm_rank = (t->hidden + 15) / 16;
    if (n && !n->quoted) (void)hf_int(r, n, MODEL_SSM_RANK);
    double by = hf_number(r, r->root, expand, 2);
    double d = by * (double)t->hidden;
    if (d >= 1 && d <= sc_transformer_keys[MODEL_SSM_HEADS].max)
        t->ssm_heads = (int64_t)d;
    t->ssm_head_dim = t->ssm_groups = 1;
    r->note = "the scan of Mamba-1 has the price of a scan of Mamba-2";
}

static void mamba(hf_reader *r)
{
    static const hf_spelling ssm[] = {{MODEL_SSM_STATE, {"state_size"}},
                                      {MODEL_SSM_CONV, {"conv_kernel"}}};
    hf_numbers(r, ssm, SC_COUNT(ssm), true);
    steps(r, "time_step_rank", "expand");
    (void)hf_get(r, r->root, "intermediate_size"); /* expand says the same */
    only_silu(r, "hidden_act");
    only(r, "use_bias", false, "biases in a part of the block");
    only(r, "use_conv_bias", true, "convolutions without a bias");
    alone(r);
}

/* ---- mixers with MLPs */

/* Two letters for each layer: `mixer` of them, and what stands behind. */
static void pairs(hf_reader *r, bool (*attends)(hf_reader *, int64_t),
                  bool (*routes)(hf_reader *, int64_t))
{
    sc_transformer *t = &r->t;
    char *s = letters(r, 2 * t->layers, 'M');
    for (int64_t i = 0; s && i < t->layers; i++) {
        if (attends(r, i)) s[2 * i] = '*';
        s[2 * i + 1] = routes(r, i) ? 'E' : '-';
    }
    if (!s) return;
    t->pattern = s;
    t->layers *= 2;
}

static bool of_period(hf_reader *r, const char *period, const char *offset,
                      int64_t i, double each, double first)
{
    int64_t p = (int64_t)hf_number(r, r->root, period, each);
    int64_t o = (int64_t)hf_number(r, r->root, offset, first);
    return p > 0 && i % p == o;
}

static bool jamba_attends(hf_reader *r, int64_t i)
{
    return of_period(r, "attn_layer_period", "attn_layer_offset", i, 8, 4);
}

static bool jamba_routes(hf_reader *r, int64_t i)
{
    bool some =
        of_period(r, "expert_layer_period", "expert_layer_offset", i, 2, 1);
    return some && r->t.experts > 1;
}

/* Norms of steps, B and C, a few hundred elements, are not counted. */
static void jamba(hf_reader *r)
{
    static const hf_spelling ssm[] = {{MODEL_SSM_STATE, {"mamba_d_state"}},
                                      {MODEL_SSM_CONV, {"mamba_d_conv"}}};
    sc_transformer *t = &r->t;
    hf_act(r, r->root, "hidden_act");
    hf_numbers(r, ssm, SC_COUNT(ssm), true);
    steps(r, "mamba_dt_rank", "mamba_expand");
    only(r, "mamba_proj_bias", false, "biases in a part of the block");
    only(r, "mamba_conv_bias", true, "convolutions without a bias");
    hf_experts(r, false);
    pairs(r, jamba_attends, jamba_routes);
    if (t->experts == 1) t->experts = t->topk = 0;
    if (t->experts) t->moe_ffn = t->ffn;
}

/* The item of a list of kinds or of numbers of layers. */
static bool in_list(hf_reader *r, int64_t i)
{
    const sc_node *kinds = hf_get(r, r->root, "layer_types");
    const sc_node *other = hf_get(r, r->root, "layers_block_type");
    const sc_node *numbers = hf_get(r, r->root, "attn_layer_indices");
    if (!kinds) kinds = other;
    int64_t k = 0;
    for (const sc_node *c = kinds ? kinds->child : NULL; c; c = c->next)
        if (k++ == i) return c->text && strcmp(c->text, "attention") == 0;
    for (const sc_node *c = numbers ? numbers->child : NULL; c; c = c->next)
        if (c->text && strtol(c->text, NULL, 10) == i) return true;
    return false;
}

static bool all_route(hf_reader *r, int64_t i)
{
    (void)i;
    return r->t.experts > 0;
}

/* Bamba and Granite 4: mixers of Mamba-2. */
static void hybrid(hf_reader *r)
{
    static const hf_spelling ssm[] = {
        {MODEL_SSM_STATE, {"mamba_d_state"}},
        {MODEL_SSM_HEADS, {"mamba_n_heads"}},
        {MODEL_SSM_HEAD_DIM, {"mamba_d_head"}},
        {MODEL_SSM_GROUPS, {"mamba_n_groups"}},
        {MODEL_SSM_CONV, {"mamba_d_conv"}},
    };
    sc_transformer *t = &r->t;
    const sc_node *positions = hf_get(r, r->root, "position_embedding_type");
    const sc_node *norm = hf_get(r, r->root, "normalization_function");
    int64_t experts = hf_count(r, "num_local_experts", MODEL_EXPERTS);
    hf_act(r, r->root, "hidden_act");
    hf_numbers(r, ssm, SC_COUNT(ssm), false); /* needed by M */
    (void)hf_get(r, r->root, "mamba_expand"); /* heads say the same */
    only(r, "mamba_proj_bias", false, "biases in a part of the block");
    only(r, "mamba_conv_bias", true, "convolutions without a bias");
    only(r, "attention_bias", false, "biases in a part of the block");
    only(r, "mlp_bias", false, "biases in a part of the block");
    if (norm && !hf_is(r, norm->key, "rmsnorm"))
        hf_unsupported(r, norm, "norms of this type");
    if (positions && hf_is(r, positions->key, "nope"))
        t->position = SC_POS_NONE;
    hf_shared(r, "shared_intermediate_size");
    (void)hf_get(r, r->root, "num_experts_per_tok");
    if (experts > 0) {
        hf_experts(r, false);
        t->moe_ffn = t->ffn;
    } else if (t->shared_ffn) {
        t->ffn = t->shared_ffn; /* the MLP is the shared expert alone */
        t->shared_ffn = 0;
    }
    pairs(r, in_list, all_route);
}

void hf_details_mamba(hf_reader *r, const hf_type *type)
{
    switch (type->kind) {
    case HF_MAMBA2: mamba2(r); return;
    case HF_MAMBA: mamba(r); return;
    case HF_JAMBA: jamba(r); return;
    default: hybrid(r); return;
    }
}
