/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf.c - a HuggingFace config.json as a transformer.
 *
 * Each model type has a row with what its code fixes or takes for granted
 * where the file is silent.  Keys that don't change sizes are ignored; keys
 * that make another kind of model of it are refused.
 */
#include "model/hf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const hf_type types[] = {
    /* name         arch                        kind           may         position         act            norm           tied   bias   qkv    dropout ffn_4h need_kv */
    {"gpt2",        "GPT2LMHeadModel",          HF_GPT2,       0,          SC_POS_LEARNED,  SC_ACT_GELU,   SC_NORM_LAYER, true,  true,  false, true,  true,  false},
    {"gpt_neox",    "GPTNeoXForCausalLM",       HF_GPT_NEOX,   0,          SC_POS_ROTARY,   SC_ACT_GELU,   SC_NORM_LAYER, false, true,  false, false, false, false},
    {"opt",         "OPTForCausalLM",           HF_OPT,        0,          SC_POS_LEARNED,  SC_ACT_RELU,   SC_NORM_LAYER, true,  true,  false, true,  false, false},
    {"bloom",       "BloomForCausalLM",         HF_BLOOM,      0,          SC_POS_ALIBI,    SC_ACT_GELU,   SC_NORM_LAYER, true,  true,  false, false, true,  false},
    {"mpt",         "MPTForCausalLM",           HF_MPT,        0,          SC_POS_LEARNED,  SC_ACT_GELU,   SC_NORM_LAYER, true,  true,  false, false, true,  false},
    {"llama",       "LlamaForCausalLM",         HF_LLAMA,      0,          SC_POS_ROTARY,   SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, false, false, false, false},
    {"mistral",     "MistralForCausalLM",       HF_MISTRAL,    0,          SC_POS_ROTARY,   SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, false, false, false, true},
    {"qwen2",       "Qwen2ForCausalLM",         HF_QWEN2,      0,          SC_POS_ROTARY,   SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, true,  false, false, true},
    {"mixtral",     "MixtralForCausalLM",       HF_MIXTRAL,    HF_MOE,     SC_POS_ROTARY,   SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, false, false, false, true},
    {"qwen3",       "Qwen3ForCausalLM",         HF_QWEN3,      HF_WINDOWS, SC_POS_ROTARY,   SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, false, false, false, true},
    {"qwen3_moe",   "Qwen3MoeForCausalLM",      HF_QWEN3_MOE,  HF_MOE | HF_WINDOWS,
                                                                           SC_POS_ROTARY,   SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, false, false, false, true},
    {"gpt_oss",     "GptOssForCausalLM",        HF_GPT_OSS,    HF_MOE | HF_WINDOWS,
                                                                           SC_POS_ROTARY,   SC_ACT_SWIGLU, SC_NORM_RMS,   false, true,  true,  false, false, true},
    {"deepseek_v2", "DeepseekV2ForCausalLM",    HF_DEEPSEEK,   HF_MOE | HF_MLA | HF_MTP,
                                                                           SC_POS_ROTARY,   SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, false, false, false, false},
    {"deepseek_v3", "DeepseekV3ForCausalLM",    HF_DEEPSEEK,   HF_MOE | HF_MLA | HF_MTP,
                                                                           SC_POS_ROTARY,   SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, false, false, false, false},
    {"kimi_k2",     "KimiK2ForCausalLM",        HF_DEEPSEEK,   HF_MOE | HF_MLA | HF_MTP,
                                                                           SC_POS_ROTARY,   SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, false, false, false, false},
    {"nemotron_h",  "NemotronHForCausalLM",     HF_NEMOTRON_H, HF_MOE | HF_MTP,
                                                                           SC_POS_NONE,     SC_ACT_RELU2,  SC_NORM_RMS,   false, false, false, false, false, true},
    {"bert",        "BertForMaskedLM",          HF_BERT,       0,          SC_POS_LEARNED,  SC_ACT_GELU,   SC_NORM_LAYER, true,  true,  true,  true,  false, false},
    {"t5",          "T5ForConditionalGeneration", HF_T5,       HF_STACKS,  SC_POS_RELATIVE, SC_ACT_RELU,   SC_NORM_RMS,   true,  false, false, true,  false, false},
    {"vit",         "ViTForImageClassification", HF_VIT,       0,          SC_POS_LEARNED,  SC_ACT_GELU,   SC_NORM_LAYER, false, true,  true,  false, false, false},
};

static const hf_spelling spellings[] = {
    {MODEL_LAYERS,   {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}},
    {MODEL_HIDDEN,   {"hidden_size", "n_embd", "d_model", "n_embed"}},
    {MODEL_HEADS,    {"num_attention_heads", "n_head", "n_heads", "num_heads"}},
    {MODEL_KV_HEADS, {"num_key_value_heads"}},
    {MODEL_HEAD_DIM, {"head_dim", "d_kv"}},
    {MODEL_FFN,      {"intermediate_size", "ffn_dim", "n_inner", "d_ff"}},
    {MODEL_VOCAB,    {"vocab_size"}},
    {MODEL_MAX_SEQ,  {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"}},
};

/* clang-format on */

const sc_node *hf_get(const sc_node *map, const char *key)
{
    const sc_node *n =
        map && map->kind == SC_N_MAP ? sc_node_get(map, key) : NULL;
    return n && n->kind != SC_N_NULL ? n : NULL;
}

void hf_fail(hf_reader *r, sc_code code, sc_pos pos, const char *hint,
             const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    sc_error_v(r->err, &r->status, SC_EINPUT, code, pos, hint, fmt, ap);
    va_end(ap);
}

/* A number or truth value as JSON has them: never in quotes. */
static bool hf_value(hf_reader *r, const sc_node *n, sc_key key, void *target)
{
    bool text = key.type == SC_T_STRING;
    key.name = n->key;
    if (n->kind != SC_N_SCALAR || n->quoted != text) {
        const char *kind = text                    ? "a string"
                           : key.type == SC_T_BOOL ? "true or false"
                                                   : "a number";
        const char *hint = n->kind == SC_N_SCALAR && n->quoted
                               ? "write it without quotes"
                               : NULL;
        hf_fail(r, SC_C_TYPE, n->pos, hint, "%.80s needs %s", n->key, kind);
        return false;
    }
    sc_status s =
        sc_schema_set(&key, n->text, n->pos, target, r->arena, r->err);
    if (r->status == SC_OK) r->status = s;
    return s == SC_OK;
}

bool hf_bool(hf_reader *r, const sc_node *map, const char *key, bool fallback)
{
    static const sc_key kind = {.type = SC_T_BOOL};
    const sc_node *n = hf_get(map, key);
    bool v = fallback;
    if (n) (void)hf_value(r, n, kind, &v);
    return v;
}

double hf_number(hf_reader *r, const sc_node *map, const char *key,
                 double fallback)
{
    static const sc_key kind = {
        .type = SC_T_QUANTITY, .unit = SC_U_NONE, .min = 0, .max = 1e6};
    const sc_node *n = hf_get(map, key);
    double v = fallback;
    if (n) (void)hf_value(r, n, kind, &v);
    return v;
}

const char *hf_string(hf_reader *r, const sc_node *map, const char *key)
{
    static const sc_key kind = {.type = SC_T_STRING};
    const sc_node *n = hf_get(map, key);
    const char *v = NULL;
    if (n) (void)hf_value(r, n, kind, &v);
    return v;
}

bool hf_int(hf_reader *r, const sc_node *n, model_field field)
{
    sc_key key = sc_transformer_keys[field];
    r->where.at[field] = n->pos;
    return hf_value(r, n, key, &r->t);
}

int64_t hf_count(hf_reader *r, const char *key, model_field field)
{
    sc_key count = sc_transformer_keys[field];
    const sc_node *n = hf_get(r->root, key);
    int64_t v = 0;
    if (!n) return 0;
    count.offset = 0;
    count.min = 0;
    r->where.at[field] = n->pos;
    (void)hf_value(r, n, count, &v);
    return v;
}

bool hf_is(hf_reader *r, const char *key, const char *word)
{
    const char *s = hf_string(r, r->root, key);
    return s && strcmp(s, word) == 0;
}

/* What the key is, without what model.yml takes it to be by default. */
static void missing(hf_reader *r, const hf_spelling *s)
{
    const char *help = sc_transformer_keys[s->field].help;
    const char *hint =
        sc_sprintf(r->arena, "%.*s", (int)strcspn(help, ";"), help);
    for (int i = 0; i < HF_SPELLINGS && s->key[i]; i++) {
        const sc_node *n = sc_node_get(r->root, s->key[i]);
        if (!n) continue;
        hf_fail(r, SC_C_MISSING, n->pos, hint, "%s is null", s->key[i]);
        return;
    }
    hf_fail(r, SC_C_MISSING, r->root->pos, hint, "missing key \"%s\"",
            s->key[0]);
}

/* The one spelling that the file uses; two that disagree are an error. */
static void read_number(hf_reader *r, const hf_spelling *s, bool required)
{
    size_t offset = sc_transformer_keys[s->field].offset;
    const int64_t *v = (const void *)((const char *)&r->t + offset);
    const sc_node *first = NULL;
    for (int i = 0; i < HF_SPELLINGS && s->key[i]; i++) {
        const sc_node *n = hf_get(r->root, s->key[i]);
        if (!n) continue;
        int64_t before = *v;
        if (!hf_int(r, n, s->field)) return;
        if (first && *v != before) {
            hf_fail(r, SC_C_CONFLICT, n->pos, "keep one of them",
                    "%s contradicts %s", n->key, first->key);
        }
        if (!first) first = n;
    }
    if (!first && required) missing(r, s);
}

void hf_numbers(hf_reader *r, const hf_spelling *s, size_t n, bool required)
{
    for (size_t i = 0; i < n; i++) read_number(r, &s[i], required);
}

static void need(hf_reader *r, int64_t value, const char *key)
{
    if (value != 0 || hf_get(r->root, key)) return;
    hf_fail(r, SC_C_MISSING, r->root->pos, NULL, "missing key \"%s\"", key);
}

static void read_numbers(hf_reader *r, const hf_type *type)
{
    for (size_t i = 0; i < SC_COUNT(spellings); i++) {
        model_field f = spellings[i].field;
        /* a hybrid's letters count its layers, an image has no words */
        bool apart = (type->kind == HF_NEMOTRON_H && f == MODEL_LAYERS) ||
                     (type->kind == HF_VIT && f == MODEL_VOCAB);
        read_number(r, &spellings[i],
                    sc_transformer_keys[f].required && !apart);
    }
    sc_transformer *t = &r->t;
    bool opt = type->kind == HF_OPT;
    /* its table starts with two rows that no position uses */
    if (opt && t->max_seq) t->positions = t->max_seq + 2;
    if (type->need_kv && !sc_node_get(r->root, "num_key_value_heads")) {
        need(r, 0, "num_key_value_heads");
    }
    if (!type->ffn_4h) need(r, t->ffn, opt ? "ffn_dim" : "intermediate_size");
}

static void set_defaults(sc_transformer *t, const hf_type *type)
{
    t->position = type->position;
    t->act = type->act;
    t->norm = type->norm;
    t->tied = type->tied;
    t->bias = type->bias;
    t->qkv_bias = type->qkv_bias;
    t->norm_bias = type->norm == SC_NORM_LAYER;
    t->dropout = type->dropout;
}

/* Where the file came from says more than "config". */
static const char *name_of(hf_reader *r, const hf_type *type, const char *file)
{
    const char *given = hf_string(r, r->root, "_name_or_path");
    const char *slash = given ? strrchr(given, '/') : NULL;
    if (slash) given = slash + 1;
    if (given && *given) return given;
    const char *stem = model_stem(file, r->arena);
    return stem && strcmp(stem, "config") != 0 ? stem : type->name;
}

/* Files without model_type may name the class that reads them. */
static const hf_type *by_architecture(hf_reader *r)
{
    const sc_node *n = hf_get(r->root, "architectures");
    const sc_node *c = n && n->kind == SC_N_SEQ ? n->child : NULL;
    if (!c || c->kind != SC_N_SCALAR) return NULL;
    for (size_t i = 0; i < SC_COUNT(types); i++) {
        if (strcmp(c->text, types[i].arch) == 0) return &types[i];
    }
    return NULL;
}

static const hf_type *find_type(hf_reader *r)
{
    const char *names[SC_COUNT(types) + 1] = {NULL};
    const sc_node *n = hf_get(r->root, "model_type");
    const char *word = hf_string(r, r->root, "model_type");
    static const char supported[] =
        "supported are gpt2, gpt_neox, opt, bloom, mpt, llama, mistral, "
        "mixtral, qwen2, qwen3, qwen3_moe, gpt_oss, deepseek_v2, deepseek_v3, "
        "kimi_k2, nemotron_h, bert, t5, vit";

    for (size_t i = 0; i < SC_COUNT(types); i++) names[i] = types[i].name;
    for (size_t i = 0; word && i < SC_COUNT(types); i++) {
        if (strcmp(word, types[i].name) == 0) return &types[i];
    }
    if (!n) {
        const hf_type *type = by_architecture(r);
        if (type) return type;
        hf_fail(r, SC_C_MISSING, r->root->pos, supported,
                "missing key \"model_type\"");
    } else if (word) {
        const char *near = sc_nearest(word, names);
        char *hint =
            near ? sc_sprintf(r->arena, "did you mean %s? %s", near, supported)
                 : NULL;
        hf_fail(r, SC_C_UNKNOWN_NAME, n->pos, hint ? hint : supported,
                "unknown model_type \"%.60s\"", word);
    }
    return NULL;
}

/* Files of several towers keep the language model in an object of its own; a
 * tower beside it is refused where the other parts are. */
static void find_language_model(hf_reader *r)
{
    const sc_node *text = hf_get(r->root, "text_config");
    bool alone =
        !hf_get(r->root, "vision_config") && !hf_get(r->root, "audio_config");
    if (text && text->kind != SC_N_MAP) {
        hf_fail(r, SC_C_TYPE, text->pos, NULL, "text_config needs an object");
    } else if (text && alone) {
        r->root = text;
    }
}

sc_status model_read_hf(const char *text, size_t len, const char *file,
                        sc_arena *a, const sc_model **out, sc_err *err)
{
    sc_node *root;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_JSON, file, a, &root, err));
    if (root->kind != SC_N_MAP) {
        return sc_error(err, SC_EINPUT, SC_C_TYPE, root->pos, NULL,
                        "a HuggingFace configuration is an object");
    }
    hf_reader r = {.root = root, .arena = a, .err = err};
    model_where_all(&r.where, root->pos);

    find_language_model(&r);
    const hf_type *type = find_type(&r);
    hf_refuse(&r, type);
    if (!type) return r.status;
    set_defaults(&r.t, type);
    read_numbers(&r, type);
    hf_details(&r, type);
    r.t.name = name_of(&r, type, file);
    if (r.status != SC_OK) {
        /* what contradicts is said in the same pass, if all is there */
        if (r.t.layers && r.t.hidden && r.t.heads && r.t.vocab) {
            if (r.t.position == SC_POS_LEARNED && !r.t.max_seq) {
                r.t.position = SC_POS_NONE;
            }
            model_dense_only(&r.t);
            (void)model_complete(&r.t, &r.where, err);
        }
        return r.status;
    }
    return model_make(&r.t, &r.where, (sc_source){0}, a, out, err);
}
