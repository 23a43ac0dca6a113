/* SPDX-License-Identifier: Apache-2.0 */
/* hf_mamba.c - reads config.json of Mamba, and of hybrids whose layers have a
 * mixer and then an MLP: each layer is two letters of the pattern. */
#include "model/hf.h"

#include <stdlib.h>
#include <string.h>

/* Refuses the other value of a key, which is not modelled. */
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

/* Sets blocks that have only a mixer. */
static void alone(hf_reader *r)
{
    sc_transformer *t = &r->t;
    t->heads = t->kv_heads = t->ssm_heads; /* there is no attention */
    t->head_dim = 1;
    t->ffn = t->hidden; /* no block has an MLP */
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

/* Each channel is a head of one element; step lengths are projected through
 * hidden / 16 unless the file has a number (not "auto"). */
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
}

static void mamba(hf_reader *r)
{
    static const hf_spelling ssm[] = {{MODEL_SSM_STATE, {"state_size"}},
                                      {MODEL_SSM_CONV, {"conv_kernel"}}};
    hf_numbers(r, ssm, SC_COUNT(ssm), true);
    steps(r, "time_step_rank", "expand");
    (void)hf_get(r, r->root, "intermediate_size"); /* repeats `expand` */
    only_silu(r, "hidden_act");
    only(r, "use_bias", false, "biases in a part of the block");
    only(r, "use_conv_bias", true, "convolutions without a bias");
    alone(r);
}

/* ---- mixers with MLPs */

/* Sets two letters for each layer: its mixer, and its MLP. */
static void pairs(hf_reader *r, const char *mixer, const char *mlp)
{
    sc_transformer *t = &r->t;
    char *s = mixer && mlp ? letters(r, 2 * t->layers, 'M') : NULL;
    if (!s) {
        hf_fail(r, SC_C_RANGE, r->where.at[MODEL_LAYERS], NULL,
                "%lld layers of two blocks each", (long long)t->layers);
        return;
    }
    for (int64_t i = 0; i < t->layers; i++) {
        s[2 * i] = mixer[i];
        s[2 * i + 1] = mlp[i];
    }
    t->pattern = s;
    t->layers *= 2;
}

/* Sets `letter` in every `period`-th layer from `offset` on. */
static void periodic(hf_reader *r, char *s, char letter, const char *period,
                     const char *offset, double each, double first)
{
    int64_t p = (int64_t)hf_number(r, r->root, period, each);
    int64_t o = (int64_t)hf_number(r, r->root, offset, first);
    for (int64_t i = o; s && o < p && i < r->t.layers; i += p) s[i] = letter;
}

/* Norms of steps, B and C have a few hundred elements and are not counted. */
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
    char *mixer = letters(r, t->layers, 'M'), *mlp = letters(r, t->layers, '-');
    periodic(r, mixer, '*', "attn_layer_period", "attn_layer_offset", 8, 4);
    periodic(r, mlp, t->experts > 1 ? 'E' : '-', "expert_layer_period",
             "expert_layer_offset", 2, 1);
    pairs(r, mixer, mlp);
    if (t->experts == 1) t->experts = t->topk = 0;
    if (t->experts) t->moe_ffn = t->ffn;
}

/* The letter of a mixer's name; 0: unknown name. */
static char mixer_of(const sc_node *c)
{
    static const struct {
        const char *word;
        char letter;
    } words[] = {{"attention", '*'},
                 {"full_attention", '*'},
                 {"mamba", 'M'},
                 {"mamba2", 'M'},
                 {"linear_attention", 'D'}};

    for (size_t i = 0; c->text && i < SC_COUNT(words); i++)
        if (strcmp(c->text, words[i].word) == 0) return words[i].letter;
    return 0;
}

/* Attention in the layers that a list of kinds or of layer numbers names;
 * `other` is the letter of the other layers. */
static char *listed(hf_reader *r, char other)
{
    const sc_node *kinds = hf_get(r, r->root, "layer_types");
    const sc_node *older = hf_get(r, r->root, "layers_block_type");
    const sc_node *numbers = hf_get(r, r->root, "attn_layer_indices");
    int64_t n = r->t.layers, i = 0;
    char *s = letters(r, n, other);
    if (!kinds) kinds = older;
    const sc_node *c = s && kinds ? kinds->child : NULL;
    for (; c && i < n; c = c->next, i++) {
        s[i] = mixer_of(c);
        if (s[i] == '*' || s[i] == other) continue;
        hf_unsupported(r, kinds, "layers of such kinds");
        return NULL;
    }
    bool same = !kinds || (!c && i == n);
    c = s && numbers && !kinds ? numbers->child : NULL;
    for (; c; c = c->next) {
        long at = c->text ? strtol(c->text, NULL, 10) : -1;
        if (at >= 0 && at < n) s[at] = '*';
    }
    if (s && !same)
        hf_fail(r, SC_C_CONFLICT, kinds->pos, "one kind for each layer",
                "%s does not name %lld layers", kinds->key, (long long)n);
    return s;
}

/* Bamba and Granite 4 have Mamba-2 mixers. */
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
    hf_numbers(r, ssm, SC_COUNT(ssm), false); /* required by M */
    (void)hf_get(r, r->root, "mamba_expand"); /* repeats the heads */
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
        t->ffn = t->shared_ffn; /* the shared expert is the MLP */
        t->shared_ffn = 0;
    }
    char *mixers = listed(r, 'M');
    if (mixers)
        pairs(r, mixers, letters(r, t->layers, experts > 0 ? 'E' : '-'));
}

/* The width of the Mamba half is given beside its heads. */
static void state_width(hf_reader *r)
{
    static const hf_spelling width[] = {{MODEL_SSM_HEAD_DIM, {"mamba_d_head"}}};
    sc_transformer *t = &r->t;
    const sc_node *inner = hf_get(r, r->root, "mamba_d_ssm");
    const sc_node *head = hf_get(r, r->root, "mamba_d_head");
    double expand = hf_number(r, r->root, "mamba_expand", 2);
    double all = inner ? hf_number(r, r->root, inner->key, 0)
                       : expand * (double)t->hidden;
    int64_t heads = t->ssm_heads;
    if (head && !hf_is_word(head, "auto"))
        hf_numbers(r, width, 1, true);
    else if (heads)
        t->ssm_head_dim = (int64_t)all / heads;
    if (heads && all != (double)heads * (double)t->ssm_head_dim)
        hf_fail(r, SC_C_CONFLICT, inner ? inner->pos : r->root->pos, NULL,
                "%lld heads of %lld elements do not make a width of %.0f",
                (long long)heads, (long long)t->ssm_head_dim, all);
}

/* If `mamba_rms_norm` is off, a gate replaces the norm and takes as many
 * passes. */
static void falcon_h1(hf_reader *r)
{
    static const hf_spelling ssm[] = {
        {MODEL_SSM_STATE, {"mamba_d_state"}},
        {MODEL_SSM_HEADS, {"mamba_n_heads"}},
    };
    static const hf_spelling more[] = {
        {MODEL_SSM_GROUPS, {"mamba_n_groups"}},
        {MODEL_SSM_CONV, {"mamba_d_conv"}},
    };
    static const char *const biases[] = {"mamba_proj_bias", "attention_bias",
                                         "mlp_bias", "projectors_bias"};
    const sc_node *kinds = hf_get(r, r->root, "layers_block_type");
    const sc_node *newer = hf_get(r, r->root, "layer_types");
    if (newer) kinds = newer;
    hf_act(r, r->root, "hidden_act");
    hf_numbers(r, ssm, SC_COUNT(ssm), true);
    hf_numbers(r, more, SC_COUNT(more), false);
    state_width(r);
    (void)hf_bool(r, r->root, "mamba_rms_norm", false);
    only(r, "mamba_conv_bias", true, "convolutions without a bias");
    only(r, "mamba_use_mlp", true, "layers without an MLP");
    for (size_t i = 0; i < SC_COUNT(biases); i++)
        only(r, biases[i], false, "biases in a part of the block");
    for (const sc_node *c = kinds ? kinds->child : NULL; c; c = c->next)
        if (!hf_is_word(c, "hybrid")) {
            hf_unsupported(r, kinds, "layers of such kinds");
            return;
        }
    pairs(r, letters(r, r->t.layers, 'B'), letters(r, r->t.layers, '-'));
}

/* Experts in every `decoder_sparse_step`-th layer except those of a list. */
static char *sparse(hf_reader *r)
{
    const sc_node *dense = hf_get(r, r->root, "mlp_only_layers");
    double each = hf_number(r, r->root, "decoder_sparse_step", 1);
    int64_t n = r->t.layers, step = each >= 1 ? (int64_t)each : n + 1;
    char *s = letters(r, n, '-');
    for (int64_t i = step - 1; s && i < n; i += step) s[i] = 'E';
    const sc_node *c = s && dense ? dense->child : NULL;
    for (; c; c = c->next) {
        long at = c->text ? strtol(c->text, NULL, 10) : -1;
        if (at >= 0 && at < n) s[at] = '-';
    }
    return s;
}

/* Qwen3-Next and Qwen3.5: three blocks in four have a gated DeltaNet, and the
 * fourth has attention with a gated output. */
static void delta(hf_reader *r, const hf_type *type)
{
    static const hf_spelling ssm[] = {
        {MODEL_SSM_STATE, {"linear_key_head_dim"}},
        {MODEL_SSM_HEADS, {"linear_num_value_heads"}},
        {MODEL_SSM_HEAD_DIM, {"linear_value_head_dim"}},
        {MODEL_SSM_GROUPS, {"linear_num_key_heads"}},
        {MODEL_SSM_CONV, {"linear_conv_kernel_dim"}},
    };
    sc_transformer *t = &r->t;
    bool moe = (type->may & HF_MOE) != 0;
    const sc_node *list = hf_get(r, r->root, "layer_types");
    hf_act(r, r->root, "hidden_act");
    hf_numbers(r, ssm, SC_COUNT(ssm), true);
    t->attn_gate = hf_bool(r, r->root, "attn_output_gate", true);
    t->qkv_bias = t->proj_bias = hf_bool(r, r->root, "attention_bias", false);
    if (!t->head_dim) t->head_dim = 256; /* default of the type */
    double full = hf_number(r, r->root, "full_attention_interval", 4);
    int64_t each = full >= 1 ? (int64_t)full : 1;
    char *mixers = list ? listed(r, 'D') : letters(r, t->layers, 'D');
    for (int64_t i = each - 1; mixers && !list && i < t->layers; i += each)
        mixers[i] = '*';
    if (moe) {
        hf_experts(r, true);
        hf_shared(r, "shared_expert_intermediate_size");
        if (!t->ffn) t->ffn = t->moe_ffn;
    } else {
        (void)hf_get(r, r->root, "mlp_only_layers");
    }
    t->mtp = hf_count(r, "mtp_num_hidden_layers", MODEL_MTP);
    if (mixers) pairs(r, mixers, moe ? sparse(r) : letters(r, t->layers, '-'));
}

void hf_details_mamba(hf_reader *r, const hf_type *type)
{
    switch (type->kind) {
    case HF_MAMBA2: mamba2(r); return;
    case HF_MAMBA: mamba(r); return;
    case HF_JAMBA: jamba(r); return;
    case HF_DELTA: delta(r, type); return;
    case HF_FALCON_H1: falcon_h1(r); return;
    default: hybrid(r); return;
    }
}
