/* SPDX-License-Identifier: Apache-2.0 */
/* hf_details.c - reads the keys of a config.json that are not plain numbers,
 * and reports values that are not supported. */
#include "model/hf.h"

#include <string.h>

typedef enum refuse_when {
    WHEN_SET,  /* any value but null, false and 0 */
    WHEN_MANY, /* a number above 1 */
    WHEN_FALSE /* false */
} refuse_when;

#define PARTS hf_other_ways

static const struct {
    const char *key;
    refuse_when when;
    const char *what;
    unsigned part; /* ignored for types that may have this part */
} refused[] = {
    {"num_local_experts", WHEN_MANY, "mixture-of-experts layers", HF_MOE},
    {"num_experts", WHEN_MANY, "mixture-of-experts layers", HF_MOE},
    {"n_routed_experts", WHEN_SET, "mixture-of-experts layers", HF_MOE},
    {"moe_num_experts", WHEN_MANY, "mixture-of-experts layers", HF_MOE},
    {"kv_lora_rank", WHEN_SET, "multi-head latent attention", HF_MLA},
    {"q_lora_rank", WHEN_SET, "multi-head latent attention", HF_MLA},
    {"num_nextn_predict_layers", WHEN_SET, "multi-token prediction", HF_MTP},
    {"is_encoder_decoder", WHEN_SET, "an encoder and a decoder", HF_STACKS},
    {"add_cross_attention", WHEN_SET, "cross attention", 0},
    {"use_sliding_window", WHEN_SET, "windows in some of the layers", 0},
    {"full_attn_mod", WHEN_MANY, "windows in some of the layers", 0},
    {"do_layer_norm_before", WHEN_FALSE, "norms behind the blocks", 0},
    {"layer_norm_elementwise_affine", WHEN_FALSE, "norms without weights", 0},
    {"_remove_final_layer_norm", WHEN_SET, "a head without a norm", 0},
};

static bool is_refused(const sc_node *n, refuse_when when)
{
    bool scalar = n->kind == SC_N_SCALAR && !n->quoted;
    bool is_false = scalar && strcmp(n->text, "false") == 0;
    bool zero = is_false || (scalar && strcmp(n->text, "0") == 0);
    switch (when) {
    case WHEN_SET: return !zero;
    case WHEN_MANY: return !zero && !(scalar && strcmp(n->text, "1") == 0);
    case WHEN_FALSE: return is_false;
    }
    return false;
}

void hf_unsupported(hf_reader *r, const sc_node *n, const char *what)
{
    hf_fail(r, SC_C_UNSUPPORTED, n->pos, hf_other_ways,
            "not modelled: %s (\"%.60s\")", what, n->key);
}

/* Newer files list the kind of every layer. */
static void check_layer_types(hf_reader *r)
{
    const sc_node *n = hf_get(r, r->root, "layer_types");
    if (!n || n->kind != SC_N_SEQ) return;
    for (const sc_node *c = n->child; c; c = c->next) {
        if (c->kind == SC_N_SCALAR && strcmp(c->text, "full_attention") == 0) {
            continue;
        }
        hf_unsupported(r, n, "layers of several kinds");
        return;
    }
}

void hf_refuse(hf_reader *r, const hf_type *type)
{
    unsigned may = type->may;
    for (size_t i = 0; i < SC_COUNT(refused); i++) {
        const sc_node *n = hf_get(r, r->root, refused[i].key);
        if (refused[i].part & may) continue;
        if (n && is_refused(n, refused[i].when)) {
            hf_unsupported(r, n, refused[i].what);
        }
    }
    if (!(may & HF_WINDOWS)) check_layer_types(r);
}

/* Activations with their plain and gated forms; -1: not modelled. */
static const struct {
    const char *name;
    int plain, gated;
} activations[] = {
    {"gelu", SC_ACT_GELU, SC_ACT_GEGLU},
    {"gelu_new", SC_ACT_GELU, SC_ACT_GEGLU},
    {"gelu_fast", SC_ACT_GELU, SC_ACT_GEGLU},
    {"gelu_python", SC_ACT_GELU, SC_ACT_GEGLU},
    {"gelu_pytorch_tanh", SC_ACT_GELU, SC_ACT_GEGLU},
    {"quick_gelu", SC_ACT_GELU, SC_ACT_GEGLU},
    {"relu", SC_ACT_RELU, -1},
    {"relu2", SC_ACT_RELU2, -1},
    {"xielu", SC_ACT_GELU, -1}, /* as many passes; has two more scalars per
                                   layer */
    {"silu", SC_ACT_GELU, SC_ACT_SWIGLU}, /* plain: as many passes */
    {"swish", SC_ACT_GELU, SC_ACT_SWIGLU},
};

void hf_act(hf_reader *r, const sc_node *map, const char *key)
{
    const sc_node *n = hf_get(r, map, key);
    const char *word = n ? hf_string(r, map, key) : NULL;
    bool gated = model_gated(&r->t);
    if (!word) return;
    for (size_t i = 0; i < SC_COUNT(activations); i++) {
        if (strcmp(word, activations[i].name) != 0) continue;
        int act = gated ? activations[i].gated : activations[i].plain;
        if (act < 0) break;
        r->t.act = act;
        return;
    }
    hf_fail(r, SC_C_UNSUPPORTED, n->pos,
            "gelu, silu, relu, relu2, and gated silu or gelu",
            "the %s activation \"%.60s\" is not modelled",
            gated ? "gated" : "plain", word);
}

static void gpt2(hf_reader *r, const hf_type *type)
{
    hf_act(r, r->root, "activation_function");
    r->t.dropout = hf_number(r, r->root, "resid_pdrop", 0.1) > 0;
    if (strcmp(type->name, "gpt_bigcode") == 0 &&
        hf_bool(r, r->root, "multi_query", false))
        r->t.kv_heads = 1;
}

static void gpt_neox(hf_reader *r)
{
    hf_act(r, r->root, "hidden_act");
    r->t.dropout = hf_number(r, r->root, "hidden_dropout", 0) > 0;
    r->t.parallel = hf_bool(r, r->root, "use_parallel_residual", true);
    if (!hf_bool(r, r->root, "attention_bias", true)) {
        hf_unsupported(r, hf_get(r, r->root, "attention_bias"),
                       "biases in a part of the block");
    }
}

/* BioGPT has other names for the same keys. */
static void opt(hf_reader *r, const hf_type *type)
{
    bool bio = strcmp(type->name, "biogpt") == 0;
    const sc_node *proj = hf_get(r, r->root, "word_embed_proj_dim");
    hf_act(r, r->root, bio ? "hidden_act" : "activation_function");
    r->t.dropout =
        hf_number(r, r->root, bio ? "hidden_dropout_prob" : "dropout", 0.1) > 0;
    r->t.bias = hf_bool(r, r->root, "enable_bias", true);
    if (proj && hf_number(r, r->root, proj->key, 0) != (double)r->t.hidden) {
        hf_unsupported(r, proj, "embeddings of another width");
    }
}

static void bloom(hf_reader *r)
{
    r->t.dropout = hf_number(r, r->root, "hidden_dropout", 0) > 0;
    r->t.embed_norm = true;
    /* the code has no key for another width */
    r->t.ffn = 4 * r->t.hidden;
}

static void llama(hf_reader *r)
{
    hf_act(r, r->root, "hidden_act");
    bool attention = hf_bool(r, r->root, "attention_bias", false);
    bool mlp = hf_bool(r, r->root, "mlp_bias", false);
    r->t.bias = attention && mlp;
    r->t.qkv_bias = r->t.proj_bias = attention && !mlp;
    r->t.mlp_bias = mlp && !attention;
}

static void mistral(hf_reader *r, const hf_type *type)
{
    const sc_node *n = hf_get(r, r->root, "sliding_window");
    hf_act(r, r->root, "hidden_act");
    if (n) {
        (void)hf_int(r, n, MODEL_WINDOW);
    } else if (type->need_kv && !sc_node_get(r->root, "sliding_window")) {
        r->t.window = 4096; /* default of the type; null means none */
    }
}

/* A group of keys, or NULL if the file does not have it. */
static const sc_node *group(hf_reader *r, const char *key)
{
    const sc_node *n = hf_get(r, r->root, key);
    if (!n || n->kind == SC_N_MAP) return n;
    hf_fail(r, SC_C_TYPE, n->pos, NULL, "%s must be an object", key);
    return NULL;
}

static void mpt_attention(hf_reader *r)
{
    const sc_node *c = group(r, "attn_config");
    const char *type = hf_string(r, c, "attn_type");
    const sc_node *kv = hf_get(r, c, "kv_n_heads");
    const sc_node *window = hf_get(r, c, "sliding_window_size");

    if (type && strcmp(type, "multiquery_attention") == 0) {
        r->t.kv_heads = 1;
    } else if (kv) {
        (void)hf_int(r, kv, MODEL_KV_HEADS);
    }
    if (window && strcmp(window->text ? window->text : "", "-1") != 0) {
        (void)hf_int(r, window, MODEL_WINDOW);
    }
    if (hf_bool(r, c, "qk_ln", false)) {
        hf_unsupported(r, hf_get(r, c, "qk_ln"), "norms of queries and keys");
    }
    /* positions are learned unless another kind replaces them */
    bool learned = hf_bool(r, r->root, "learned_pos_emb", true);
    r->t.position = learned ? SC_POS_LEARNED : SC_POS_NONE;
    if (hf_bool(r, c, "rope", false)) {
        r->t.position = SC_POS_ROTARY;
    } else if (hf_bool(r, c, "alibi", true)) {
        r->t.position = SC_POS_ALIBI;
    }
}

static void mpt_ffn(hf_reader *r)
{
    const sc_node *c = group(r, "ffn_config");
    const char *type = hf_string(r, c, "ffn_type");
    const sc_node *width = hf_get(r, c, "ffn_hidden_size");
    double ratio = hf_number(r, r->root, "expansion_ratio", 4);
    double ffn = ratio * (double)r->t.hidden;

    r->t.ffn = 0;
    if (width) {
        (void)hf_int(r, width, MODEL_FFN);
    } else if (ffn >= 1 && ffn <= sc_transformer_keys[MODEL_FFN].max) {
        r->t.ffn = (int64_t)ffn;
    } else if (r->t.hidden) {
        const sc_node *n = hf_get(r, r->root, "expansion_ratio");
        hf_fail(r, SC_C_RANGE, n ? n->pos : r->root->pos, NULL,
                "an MLP of %g elements", ffn);
    }
    if (type && strcmp(type, "mptglu") == 0) {
        r->t.act = SC_ACT_GEGLU;
    } else if (type && strcmp(type, "mptmlp") != 0 &&
               strcmp(type, "te_ln_mlp") != 0) {
        hf_unsupported(r, hf_get(r, c, "ffn_type"), "MLPs of this type");
    }
    hf_act(r, hf_get(r, c, "ffn_act_fn"), "name");
}

static void mpt(hf_reader *r)
{
    const char *norm = hf_string(r, r->root, "norm_type");
    mpt_attention(r);
    mpt_ffn(r);
    r->t.bias = !hf_bool(r, r->root, "no_bias", true);
    r->t.norm_bias = r->t.bias;
    r->t.dropout = hf_number(r, r->root, "resid_pdrop", 0) > 0;
    if (!norm) return;
    if (strstr(norm, "rmsnorm")) {
        r->t.norm = SC_NORM_RMS;
    } else if (!strstr(norm, "layernorm")) {
        hf_unsupported(r, hf_get(r, r->root, "norm_type"),
                       "norms of this type");
    }
}

void hf_details(hf_reader *r, const hf_type *type)
{
    r->t.tied = hf_bool(r, r->root, "tie_word_embeddings", type->tied);
    switch (type->kind) {
    case HF_GPT2: gpt2(r, type); break;
    case HF_GPT_NEOX: gpt_neox(r); break;
    case HF_OPT: opt(r, type); break;
    case HF_BLOOM: bloom(r); break;
    case HF_MPT: mpt(r); break;
    case HF_LLAMA: llama(r); break;
    case HF_MISTRAL: mistral(r, type); break;
    case HF_QWEN2:
        hf_act(r, r->root, "hidden_act");
        (void)hf_get(r, r->root, "sliding_window"); /* read, but not used */
        break;
    case HF_MIXTRAL:
    case HF_QWEN3:
    case HF_QWEN3_MOE:
    case HF_GPT_OSS:
    case HF_DEEPSEEK:
    case HF_NEMOTRON_H: hf_details_sparse(r, type); break;
    case HF_BERT:
    case HF_MODERNBERT:
    case HF_T5:
    case HF_BART:
    case HF_VIT: hf_details_encoder(r, type); break;
    default: hf_details_family(r, type); break;
    }
}
