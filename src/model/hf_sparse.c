/* SPDX-License-Identifier: Apache-2.0 */
/* hf_sparse.c - reads config.json of models with experts, latent attention,
 * windows in some layers, or Mamba layers. */
#include "model/hf.h"

#include <string.h>

static const hf_spelling experts[] = {
    {MODEL_EXPERTS,
     {"n_routed_experts", "num_local_experts", "num_experts",
      "num_routed_experts", "moe_num_experts"}},
    {MODEL_TOPK,
     {"num_experts_per_tok", "num_experts_per_token", "experts_per_token",
      "moe_top_k", "moe_k"}},
};

static const hf_spelling expert_width[] = {
    {MODEL_MOE_FFN, {"moe_intermediate_size"}}};

void hf_experts(hf_reader *r, bool width)
{
    hf_numbers(r, experts, SC_COUNT(experts), true);
    if (width) hf_numbers(r, expert_width, 1, true);
}

/* ---- types */

static void mixtral(hf_reader *r)
{
    static const hf_spelling width[] = {{MODEL_WINDOW, {"sliding_window"}}};
    hf_numbers(r, experts, SC_COUNT(experts), true);
    hf_numbers(r, width, 1, false);
}

static void qwen3(hf_reader *r, bool moe)
{
    r->t.qk_norm = true;
    r->t.qkv_bias = hf_bool(r, r->root, "attention_bias", false);
    r->t.proj_bias = r->t.qkv_bias;
    if (!r->t.head_dim) r->t.head_dim = 128; /* default of the type */
    hf_windows(r, 0, 0);
    if (!moe) return;
    hf_numbers(r, experts, SC_COUNT(experts), true);
    hf_numbers(r, expert_width, 1, true);
    r->t.moe_every = hf_count(r, "decoder_sparse_step", MODEL_MOE_EVERY);

    hf_dense_list(r, "mlp_only_layers");
}

static void gpt_oss(hf_reader *r)
{
    r->t.sinks = true;
    if (!hf_bool(r, r->root, "attention_bias", true)) {
        hf_unsupported(r, hf_get(r, r->root, "attention_bias"),
                       "biases in a part of the block");
    }
    if (!r->t.head_dim) r->t.head_dim = 64; /* default of the type */
    hf_numbers(r, experts, SC_COUNT(experts), true);
    hf_windows(r, 2, 0);
}

static void deepseek_experts(hf_reader *r)
{
    const sc_node *every = hf_get(r, r->root, "moe_layer_freq");
    hf_numbers(r, experts, SC_COUNT(experts), true);
    hf_numbers(r, expert_width, 1, true);
    r->t.first_dense = hf_count(r, "first_k_dense_replace", MODEL_FIRST_DENSE);
    hf_mlp_types(r);
    static const hf_spelling groups[] = {{MODEL_ROUTE_GROUPS, {"n_group"}},
                                         {MODEL_ROUTE_TOPK, {"topk_group"}}};
    hf_numbers(r, groups, SC_COUNT(groups), false);
    r->t.router_bias = hf_is(r, "topk_method", "noaux_tc");
    if (every && hf_number(r, r->root, every->key, 1) != 1) {
        hf_unsupported(r, every, "experts in some of the layers");
    }
    int64_t n = hf_count(r, "n_shared_experts", MODEL_TOPK);
    if (!n) n = hf_count(r, "num_shared_experts", MODEL_TOPK);
    int64_t most = (int64_t)sc_transformer_keys[MODEL_SHARED_FFN].max;
    if (r->t.moe_ffn && n > most / r->t.moe_ffn) {
        hf_fail(r, SC_C_RANGE, r->where.at[MODEL_TOPK], NULL,
                "%lld shared experts are too many", (long long)n);
        return;
    }
    r->t.shared_ffn = n * r->t.moe_ffn;
}

static void deepseek(hf_reader *r, const hf_type *type)
{
    static const hf_spelling q[] = {{MODEL_Q_RANK, {"q_lora_rank"}}};
    static const hf_spelling latent[] = {
        {MODEL_KV_RANK, {"kv_lora_rank"}},
        {MODEL_QK_NOPE, {"qk_nope_head_dim"}},
        {MODEL_QK_ROPE, {"qk_rope_head_dim"}},
        {MODEL_V_DIM, {"v_head_dim"}},
    };
    if (type->may & HF_MOE) deepseek_experts(r);
    hf_numbers(r, q, 1, false);
    hf_numbers(r, latent, SC_COUNT(latent), true);
    r->t.head_dim = 0; /* newer files store the width of the rotary part under
                          this key */
    r->t.mtp = hf_count(r, "num_nextn_predict_layers", MODEL_MTP);
    if (hf_bool(r, r->root, "attention_bias", false)) {
        hf_unsupported(r, hf_get(r, r->root, "attention_bias"),
                       "biases in a part of the block");
    }
}

/* ---- Nemotron-H */

/* Newer files have a list of words instead of letters. */
static char *letters_of(hf_reader *r, const sc_node *list)
{
    static const struct {
        const char *word;
        char letter;
    } kinds[] = {
        {"mamba", 'M'}, {"attention", '*'}, {"mlp", '-'}, {"moe", 'E'}};

    size_t n = 0, at = 0;
    for (const sc_node *c = list->child; c; c = c->next) n++;
    char *out = SC_NEW_N(r->arena, char, n + 1);
    for (const sc_node *c = list->child; out && c; c = c->next, at++) {
        for (size_t i = 0; i < SC_COUNT(kinds); i++) {
            if (c->kind == SC_N_SCALAR && strcmp(c->text, kinds[i].word) == 0)
                out[at] = kinds[i].letter;
        }
        if (out[at]) continue;
        hf_fail(r, SC_C_UNKNOWN_NAME, c->pos, "mamba, attention, mlp, moe",
                "unknown kind of layer \"%.40s\"",
                c->kind == SC_N_SCALAR ? c->text : "");
        return NULL;
    }
    return out;
}

static void hybrid_pattern(hf_reader *r)
{
    const sc_node *list = hf_get(r, r->root, "layers_block_type");
    const sc_node *text = hf_get(r, r->root, "hybrid_override_pattern");
    const sc_node *n = list ? list : text;
    if (!n) {
        hf_fail(r, SC_C_MISSING, r->root->pos, NULL,
                "missing key \"hybrid_override_pattern\"");
        return;
    }
    r->where.at[MODEL_PATTERN] = n->pos;
    r->t.pattern = list && list->kind == SC_N_SEQ
                       ? letters_of(r, list)
                       : hf_string(r, r->root, n->key);
    if (r->t.pattern && !r->t.layers) {
        r->t.layers = (int64_t)strlen(r->t.pattern);
    }
}

static void hybrid_experts(hf_reader *r)
{
    static const hf_spelling shared[] = {
        {MODEL_SHARED_FFN, {"moe_shared_expert_intermediate_size"}}};
    static const hf_spelling latent[] = {{MODEL_LATENT, {"moe_latent_size"}}};
    hf_numbers(r, experts, SC_COUNT(experts), true);
    hf_numbers(r, expert_width, 1, true);
    hf_numbers(r, latent, 1, false);
    int64_t n = hf_count(r, "n_shared_experts", MODEL_TOPK);
    hf_numbers(r, shared, 1, n > 0);
    if (n == 0) r->t.shared_ffn = 0;
}

static void nemotron_h(hf_reader *r)
{
    static const char *const biases[] = {"use_bias", "attention_bias",
                                         "mlp_bias", "mamba_proj_bias"};
    static const hf_spelling ssm[] = {
        {MODEL_SSM_STATE, {"ssm_state_size", "mamba_state_dim"}},
        {MODEL_SSM_HEADS, {"mamba_num_heads"}},
        {MODEL_SSM_HEAD_DIM, {"mamba_head_dim"}},
        {MODEL_SSM_GROUPS, {"n_groups", "mamba_n_groups"}},
        {MODEL_SSM_CONV, {"conv_kernel"}},
    };
    const sc_node *scan = hf_get(r, r->root, "mamba_hidden_act");
    hybrid_pattern(r);
    if (scan && !hf_is(r, scan->key, "silu"))
        hf_unsupported(r, scan, "this activation");
    hf_act(r, r->root, "mlp_hidden_act");
    for (size_t i = 0; i < SC_COUNT(biases); i++) {
        if (hf_bool(r, r->root, biases[i], false)) {
            hf_unsupported(r, hf_get(r, r->root, biases[i]),
                           "biases in a part of the block");
        }
    }
    if (!hf_bool(r, r->root, "use_conv_bias", true)) {
        hf_unsupported(r, hf_get(r, r->root, "use_conv_bias"),
                       "convolutions without a bias");
    }
    const char *p = r->t.pattern ? r->t.pattern : "";
    if (strchr(p, 'M')) hf_numbers(r, ssm, SC_COUNT(ssm), true);
    if (!strchr(p, 'E')) return;
    static const hf_spelling groups[] = {{MODEL_ROUTE_GROUPS, {"n_group"}},
                                         {MODEL_ROUTE_TOPK, {"topk_group"}}};
    hf_numbers(r, groups, SC_COUNT(groups), false);
    if (!r->t.route_topk && r->t.route_groups == 1) r->t.route_groups = 0;
    hybrid_experts(r);
    r->t.mtp = hf_count(r, "num_nextn_predict_layers", MODEL_MTP);
}

void hf_details_sparse(hf_reader *r, const hf_type *type)
{
    if (type->kind != HF_NEMOTRON_H) hf_act(r, r->root, "hidden_act");
    switch (type->kind) {
    case HF_MIXTRAL: mixtral(r); break;
    case HF_QWEN3: qwen3(r, false); break;
    case HF_QWEN3_MOE: qwen3(r, true); break;
    case HF_GPT_OSS: gpt_oss(r); break;
    case HF_DEEPSEEK: deepseek(r, type); break;
    default: nemotron_h(r); break;
    }
}
