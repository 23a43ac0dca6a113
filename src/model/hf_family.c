/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_family.c - reads config.json of types that differ from Llama in a few
 * facts: positions of norms and biases, windows, experts.
 */
#include "model/hf.h"

#include <stdlib.h>
#include <string.h>

static void act(hf_reader *r)
{
    /* Gemma's newer key corrects its older one */
    const char *newer = "hidden_activation";
    bool gemma = r->t.act == SC_ACT_GEGLU;
    (void)hf_get(r, r->root, "hidden_act");
    hf_act(r, r->root,
           gemma && hf_get(r, r->root, newer) ? newer : "hidden_act");
}

static void biases(hf_reader *r, const hf_type *type)
{
    bool out = (type->has & HF_HAS_OUT_BIAS) != 0;
    r->t.qkv_bias = hf_bool(r, r->root, "attention_bias", type->qkv_bias);
    if (out) r->t.proj_bias = r->t.qkv_bias;
    if (hf_bool(r, r->root, "attention_out_bias", false)) r->t.proj_bias = true;
    r->t.mlp_bias = hf_bool(r, r->root, "mlp_bias", r->t.mlp_bias);
    if (type->has & HF_HAS_QK_NORM)
        r->t.qk_norm = hf_bool(r, r->root, "qk_norm", true);
    if (hf_bool(r, r->root, "use_bias", false)) r->t.bias = true;
}

static void gated_by(hf_reader *r, const char *key, bool *fact, bool fallback)
{
    *fact = hf_bool(r, r->root, key, fallback);
}

/* ---- dense */

/* Files of released sizes omit numbers that equal those of the smallest
 * size. */
static void gemma3(hf_reader *r)
{
    sc_transformer *t = &r->t;
    if (!t->hidden) t->hidden = 2304;
    if (!t->ffn) t->ffn = 9216;
    if (!t->heads) t->heads = 8;
    if (!t->kv_heads) t->kv_heads = 4;
    if (!t->head_dim) t->head_dim = 256;
    if (!t->vocab) t->vocab = 262208;
    if (!hf_get(r, r->root, "sliding_window")) t->window = 4096;
    hf_windows(r, 0, 6);
}

/* n_head_kv is used only by the newer decoder. */
static void falcon(hf_reader *r)
{
    sc_transformer *t = &r->t;
    bool newer = hf_bool(r, r->root, "new_decoder_architecture", false);
    bool one = hf_bool(r, r->root, "multi_query", true);
    if (!newer) t->kv_heads = one ? 1 : t->heads;
    if (newer && !t->kv_heads) t->kv_heads = t->heads;
    bool parallel = hf_bool(r, r->root, "parallel_attn", true);
    t->parallel = newer || parallel;
    const sc_node *norms = hf_get(r, r->root, "num_ln_in_parallel_attn");
    bool two = newer && (!norms || hf_number(r, r->root, norms->key, 2) == 2);
    t->one_norm = t->parallel && !two;
    t->bias = hf_bool(r, r->root, "bias", false);
    if (hf_bool(r, r->root, "alibi", false)) t->position = SC_POS_ALIBI;
    t->dropout = hf_number(r, r->root, "hidden_dropout", 0) > 0;
    const sc_node *factor = hf_get(r, r->root, "ff_factor");
    double by = factor ? hf_number(r, r->root, factor->key, 4) : 4;
    if (!t->ffn) t->ffn = (int64_t)(by * (double)t->hidden);
    hf_act(r, r->root, "activation");
}

static void phi(hf_reader *r)
{
    hf_act(r, r->root, "hidden_act");
    r->t.dropout = hf_number(r, r->root, "resid_pdrop", 0) > 0;
    r->t.qk_norm = hf_bool(r, r->root, "qk_layernorm", false);
}

static void persimmon(hf_reader *r)
{
    hf_act(r, r->root, "hidden_act");
    r->t.dropout = hf_number(r, r->root, "hidden_dropout", 0) > 0;
    r->t.qk_norm = hf_bool(r, r->root, "qk_layernorm", true);
}

static void starcoder2(hf_reader *r)
{
    static const hf_spelling width[] = {{MODEL_WINDOW, {"sliding_window"}}};
    const sc_node *norm = hf_get(r, r->root, "norm_type");
    const sc_node *mlp = hf_get(r, r->root, "mlp_type");
    hf_act(r, r->root, "hidden_act");
    hf_numbers(r, width, 1, false);
    if (hf_get(r, r->root, "layer_types")) hf_windows(r, 1, 0);
    r->t.bias = hf_bool(r, r->root, "use_bias", true);
    r->t.dropout = hf_number(r, r->root, "residual_dropout", 0) > 0;
    if (norm && !hf_is(r, norm->key, "layer_norm"))
        hf_unsupported(r, norm, "norms of this type");
    if (mlp && !hf_is(r, mlp->key, "default"))
        hf_unsupported(r, mlp, "MLPs of this type");
}

static void cohere(hf_reader *r, const hf_type *type)
{
    const sc_node *order = hf_get(r, r->root, "order_of_interleaved_layers");
    act(r);
    biases(r, type);
    bool norm = false;
    gated_by(r, "use_qk_norm", &norm, false);
    r->t.qk_norm = r->t.qk_norm_all = norm;
    if (type->may & HF_WINDOWS) hf_windows(r, 0, 4);
    if (order && !hf_is(r, order->key, "local_attn_first"))
        hf_unsupported(r, order, "layers of such kinds in this order");
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "use_parallel_block" : "use_gated_activation";
        if (!hf_bool(r, r->root, key, true))
            hf_unsupported(r, hf_get(r, r->root, key), "blocks of this kind");
    }
    (void)hf_get(r, r->root, "use_parallel_embedding");
    (void)hf_get(r, r->root, "use_embedding_sharing"); /* repeats `tied` */
}

static void gptj(hf_reader *r)
{
    hf_act(r, r->root, "activation_function");
    r->t.dropout = hf_number(r, r->root, "resid_pdrop", 0) > 0;
}

/* The parts of a parallel block share a norm. */
static void stablelm(hf_reader *r)
{
    hf_act(r, r->root, "hidden_act");
    r->t.qkv_bias = hf_bool(r, r->root, "use_qkv_bias", false);
    r->t.parallel = hf_bool(r, r->root, "use_parallel_residual", false);
    r->t.one_norm = r->t.parallel;
    r->t.dropout = hf_number(r, r->root, "hidden_dropout", 0) > 0;
    if (hf_bool(r, r->root, "qk_layernorm", false))
        hf_unsupported(r, hf_get(r, r->root, "qk_layernorm"),
                       "a layer norm for each head of queries and keys");
}

/* Windows are pairs of a list of words and its number of repetitions. */
static void gpt_neo(hf_reader *r)
{
    static const hf_spelling width[] = {{MODEL_WINDOW, {"window_size"}}};
    const sc_node *pairs = hf_get(r, r->root, "attention_types");
    const sc_node *list = hf_get(r, r->root, "attention_layers");
    uint64_t n = (uint64_t)r->t.layers, at = 0;
    hf_act(r, r->root, "activation_function");
    r->t.dropout = hf_number(r, r->root, "resid_dropout", 0) > 0;
    hf_numbers(r, width, 1, true);
    char *s = n && n <= 100000 ? SC_NEW_N(r->arena, char, n + 1) : NULL;
    const sc_node *pair =
        pairs && pairs->kind == SC_N_SEQ ? pairs->child : NULL;
    for (; s && pair && pair->kind == SC_N_SEQ; pair = pair->next) {
        const sc_node *words = pair->child;
        const sc_node *times = words ? words->next : NULL;
        long k = times && times->text ? strtol(times->text, NULL, 10) : 0;
        for (long i = 0; i < k && words->kind == SC_N_SEQ && at < n; i++)
            for (const sc_node *c = words->child; c && at < n; c = c->next)
                s[at++] = c->text && !strcmp(c->text, "local") ? 'W' : 'F';
    }
    if (s && at == n) {
        hf_window_letters(r, s);
    } else {
        const sc_node *what = pairs ? pairs : list ? list : r->root;
        hf_fail(r, SC_C_CONFLICT, what->pos, "one kind for each layer",
                "attention_types do not name %llu layers",
                (unsigned long long)n);
    }
}

/* Positions are sinusoidal and have no weights. */
static void xglm(hf_reader *r)
{
    hf_act(r, r->root, "activation_function");
    r->t.dropout = hf_number(r, r->root, "dropout", 0.1) > 0;
}

/* One block in four has no positions, which cost nearly nothing. */
static void smollm3(hf_reader *r, const hf_type *type)
{
    act(r);
    biases(r, type);
    r->t.proj_bias = r->t.qkv_bias;
    hf_windows(r, 0, 0);
}

/* ---- experts */

void hf_shared(hf_reader *r, const char *key)
{
    const hf_spelling shared[] = {{MODEL_SHARED_FFN, {key}}};
    const sc_node *n = hf_get(r, r->root, key);
    bool zero = n && n->kind == SC_N_SCALAR && strcmp(n->text, "0") == 0;
    if (n && !zero) hf_numbers(r, shared, 1, false);
}

static void qwen2_moe(hf_reader *r)
{
    hf_act(r, r->root, "hidden_act");
    hf_experts(r, true);
    hf_shared(r, "shared_expert_intermediate_size");
    r->t.moe_every = hf_count(r, "decoder_sparse_step", MODEL_MOE_EVERY);
    hf_dense_list(r, "mlp_only_layers");
    r->t.qkv_bias = hf_bool(r, r->root, "qkv_bias", true);
    (void)hf_get(r, r->root, "sliding_window"); /* read, but not used */
}

/* The number of MTP blocks that the checkpoint has. */
static void glm_moe(hf_reader *r, const hf_type *type)
{
    act(r);
    biases(r, type);
    gated_by(r, "use_qk_norm", &r->t.qk_norm, r->t.qk_norm);
    hf_experts(r, true);
    r->t.first_dense = hf_count(r, "first_k_dense_replace", MODEL_FIRST_DENSE);
    hf_mlp_types(r);
    static const hf_spelling groups[] = {{MODEL_ROUTE_GROUPS, {"n_group"}},
                                         {MODEL_ROUTE_TOPK, {"topk_group"}}};
    hf_numbers(r, groups, SC_COUNT(groups), false);
    r->t.shared_ffn =
        hf_count(r, "n_shared_experts", MODEL_TOPK) * r->t.moe_ffn;
    r->t.router_bias = true;
    if (!r->t.ffn) r->t.ffn = r->t.moe_ffn; /* no block is dense */
    r->t.mtp = hf_count(r, "num_nextn_predict_layers", MODEL_MTP);
}

/* Experts are used from one block on, to the last. */
static void ernie_moe(hf_reader *r, const hf_type *type)
{
    sc_transformer *t = &r->t;
    const sc_node *every = hf_get(r, r->root, "moe_layer_interval");
    const sc_node *last = hf_get(r, r->root, "moe_layer_end_index");
    act(r);
    biases(r, type);
    hf_experts(r, true);
    t->first_dense = hf_count(r, "moe_layer_start_index", MODEL_FIRST_DENSE);
    t->shared_ffn =
        hf_count(r, "moe_num_shared_experts", MODEL_TOPK) * t->moe_ffn;
    t->router_bias = hf_bool(r, r->root, "moe_use_aux_free", true);
    if (every && hf_number(r, r->root, every->key, 1) != 1)
        hf_unsupported(r, every, "experts in some of the layers");
    bool none = last && last->kind == SC_N_SCALAR && !strcmp(last->text, "-1");
    if (last && !none &&
        hf_number(r, r->root, last->key, 0) < (double)t->layers - 1)
        hf_unsupported(r, last, "dense layers behind the first");
}

/* Three blocks in four attend within chunks of 8,192 tokens. */
static void llama4(hf_reader *r)
{
    static const hf_spelling dense[] = {{MODEL_FFN, {"intermediate_size_mlp"}}};
    sc_transformer *t = &r->t;
    const sc_node *layers = hf_get(r, r->root, "moe_layers");
    int64_t expert = t->ffn;
    hf_act(r, r->root, "hidden_act");
    hf_experts(r, false);
    if (hf_get(r, r->root, "intermediate_size_mlp")) {
        t->ffn = 0;
        hf_numbers(r, dense, 1, true);
    }
    t->moe_ffn = t->shared_ffn = expert;
    t->moe_every = hf_count(r, "interleave_moe_layer_step", MODEL_MOE_EVERY);
    if (hf_bool(r, r->root, "attention_bias", false))
        t->qkv_bias = t->proj_bias = true;
    (void)hf_get(r, r->root, "use_qk_norm"); /* these norms have no weights */
    (void)layers;                            /* repeats the step */
    if (!hf_get(r, r->root, "attention_chunk_size")) t->window = 8192;
    hf_windows(r, 0, 4);
}

/* Every fourth block attends to all positions and does not rotate them. */
static void afmoe(hf_reader *r)
{
    sc_transformer *t = &r->t;
    const sc_node *every = hf_get(r, r->root, "global_attn_every_n_layers");
    double full = every ? hf_number(r, r->root, every->key, 4) : 4;
    act(r);
    hf_experts(r, true);
    t->attn_gate = t->router_bias = true;
    t->first_dense = hf_count(r, "num_dense_layers", MODEL_FIRST_DENSE);
    t->shared_ffn = hf_count(r, "num_shared_experts", MODEL_TOPK) * t->moe_ffn;
    hf_windows(r, 0, full >= 1 && full <= 1e5 ? (int64_t)full : 4);
}

static void phi_moe(hf_reader *r, const hf_type *type)
{
    static const hf_spelling width[] = {{MODEL_WINDOW, {"sliding_window"}}};
    hf_act(r, r->root, "hidden_act");
    biases(r, type);
    gated_by(r, "lm_head_bias", &r->t.head_bias, false);
    hf_experts(r, false);
    hf_numbers(r, width, 1, false);
}

static void every_layer(hf_reader *r, const hf_type *type)
{
    act(r);
    biases(r, type);
    hf_experts(r, false);
    hf_shared(r, "shared_intermediate_size");
}

static void minimax_m2(hf_reader *r)
{
    const sc_node *kind = hf_get(r, r->root, "qk_norm_type");
    const sc_node *list = hf_get(r, r->root, "attn_type_list");
    hf_act(r, r->root, "hidden_act");
    hf_experts(r, false);
    hf_shared(r, "shared_intermediate_size");
    if (!r->t.head_dim) r->t.head_dim = 128; /* default of the type */
    gated_by(r, "use_qk_norm", &r->t.qk_norm, true);
    r->t.qk_norm_all = r->t.qk_norm;
    if (kind && !hf_is(r, kind->key, "per_layer"))
        hf_unsupported(r, kind, "norms of this type");
    r->t.router_bias = hf_bool(r, r->root, "use_routing_bias", true);
    for (const sc_node *c = list ? list->child : NULL; c; c = c->next)
        if (c->kind != SC_N_SCALAR || strcmp(c->text, "1") != 0) {
            hf_unsupported(r, list, "lightning attention, which is linear");
            break;
        }
    /* the checkpoint has no blocks of multi-token prediction */
    (void)hf_get(r, r->root, "use_mtp");
    (void)hf_get(r, r->root, "num_mtp_modules");
    (void)hf_get(r, r->root, "mtp_transformer_layers");
}

/* Sizes of experts are numbers or lists with a number for each layer. */
static void hunyuan_experts(hf_reader *r)
{
    static const struct {
        const char *key;
        model_field field;
    } sizes[] = {{"num_experts", MODEL_EXPERTS},
                 {"moe_topk", MODEL_TOPK},
                 {"moe_intermediate_size", MODEL_MOE_FFN}};

    sc_transformer *t = &r->t;
    for (size_t i = 0; i < SC_COUNT(sizes); i++) {
        const sc_node *n = hf_same(r, sizes[i].key);
        if (n) (void)hf_int(r, n, sizes[i].field);
    }
    const sc_node *shared = hf_same(r, "num_shared_expert");
    int64_t one = t->ffn, n = 1;
    if (shared && hf_int(r, shared, MODEL_SHARED_FFN)) n = t->shared_ffn;
    if (shared && one &&
        n > (int64_t)sc_transformer_keys[MODEL_SHARED_FFN].max / one) {
        hf_fail(r, SC_C_RANGE, shared->pos, NULL,
                "%lld shared experts are too many", (long long)n);
        return;
    }
    t->shared_ffn = n * one;
    t->first_dense = hf_count(r, "moe_layer_num_skipped", MODEL_FIRST_DENSE);
}

static void hunyuan(hf_reader *r, const hf_type *type)
{
    static const hf_spelling width[] = {
        {MODEL_HEAD_DIM, {"head_dim", "attention_head_dim"}}};
    const sc_node *norm = hf_get(r, r->root, "norm_type");
    act(r);
    biases(r, type);
    hf_numbers(r, width, 1, false);
    r->t.qk_norm = hf_bool(r, r->root, "use_qk_norm", true);
    if (norm && !hf_is(r, norm->key, "rms") && !hf_is(r, norm->key, "hf_rms"))
        hf_unsupported(r, norm, "norms of this type");
    if (!hf_bool(r, r->root, "use_rotary_pos_emb", true))
        r->t.position = SC_POS_NONE;
    (void)hf_get(r, r->root, "use_mixed_mlp_moe"); /* says that an expert is
                                                      shared */
    if (type->may & HF_MOE) hunyuan_experts(r);
}

static void grok(hf_reader *r)
{
    act(r);
    hf_experts(r, false);
}

static void dbrx(hf_reader *r)
{
    const sc_node *root = r->root;
    const sc_node *attn = hf_get(r, root, "attn_config");
    const sc_node *ffn = hf_get(r, root, "ffn_config");
    const sc_node *kv = hf_get(r, attn, "kv_n_heads");
    const sc_node *fn = hf_get(r, ffn, "ffn_act_fn");
    static const hf_spelling parts[] = {
        {MODEL_MOE_FFN, {"ffn_hidden_size"}},
        {MODEL_EXPERTS, {"moe_num_experts"}},
        {MODEL_TOPK, {"moe_top_k"}},
    };
    if (!attn || !ffn) {
        hf_fail(r, SC_C_MISSING, root->pos, NULL, "missing key \"%s\"",
                attn ? "ffn_config" : "attn_config");
        return;
    }
    if (kv) (void)hf_int(r, kv, MODEL_KV_HEADS);
    if (fn) hf_act(r, fn, "name");
    r->root = ffn;
    hf_numbers(r, parts, SC_COUNT(parts), true);
    r->root = root;
    r->t.ffn = r->t.moe_ffn;
    r->t.dropout = hf_number(r, root, "resid_pdrop", 0) > 0;
}

void hf_details_family(hf_reader *r, const hf_type *type)
{
    switch (type->kind) {
    case HF_FALCON: falcon(r); return;
    case HF_PHI: phi(r); return;
    case HF_STARCODER2: starcoder2(r); return;
    case HF_COHERE: cohere(r, type); return;
    case HF_GPTJ: gptj(r); return;
    case HF_SMOLLM3: smollm3(r, type); return;
    case HF_QWEN2_MOE: qwen2_moe(r); return;
    case HF_GLM_MOE: glm_moe(r, type); return;
    case HF_ERNIE_MOE: ernie_moe(r, type); return;
    case HF_LLAMA4: llama4(r); return;
    case HF_PHI_MOE: phi_moe(r, type); return;
    case HF_EXPERTS: every_layer(r, type); return;
    case HF_MINIMAX_M2: minimax_m2(r); return;
    case HF_GROK: grok(r); return;
    case HF_DBRX: dbrx(r); return;
    case HF_STABLELM: stablelm(r); return;
    case HF_GPT_NEO: gpt_neo(r); return;
    case HF_XGLM: xglm(r); return;
    case HF_PERSIMMON: persimmon(r); return;
    case HF_HUNYUAN: hunyuan(r, type); return;
    case HF_AFMOE: afmoe(r); return;
    case HF_DELTA:
    case HF_MAMBA2:
    case HF_MAMBA:
    case HF_JAMBA:
    case HF_FALCON_H1:
    case HF_HYBRID: hf_details_mamba(r, type); return;
    default: break;
    }
    act(r);
    biases(r, type);
    if (type->kind == HF_GEMMA3) {
        gemma3(r);
    } else if (type->may & HF_WINDOWS) {
        bool two = strstr(type->name, "gemma") != NULL; /* Gemma 2 and
                                                           VaultGemma */
        bool listed = hf_get(r, r->root, "layer_types") != NULL;
        bool cwm = strcmp(type->name, "cwm") == 0;
        hf_windows(r, two ? 2 : 0, two ? 0 : 4);
        if (cwm && !listed) {
            r->t.full_every = 0;
            r->t.window_pattern = "FWWW";
        }
    }
}
