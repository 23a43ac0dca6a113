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
    /* name      kind         position        act            norm           tied   bias   qkv    dropout ffn_4h need_kv */
    {"gpt2",     HF_GPT2,     SC_POS_LEARNED, SC_ACT_GELU,   SC_NORM_LAYER, true,  true,  false, true,  true,  false},
    {"gpt_neox", HF_GPT_NEOX, SC_POS_ROTARY,  SC_ACT_GELU,   SC_NORM_LAYER, false, true,  false, false, false, false},
    {"opt",      HF_OPT,      SC_POS_LEARNED, SC_ACT_RELU,   SC_NORM_LAYER, true,  true,  false, true,  false, false},
    {"bloom",    HF_BLOOM,    SC_POS_ALIBI,   SC_ACT_GELU,   SC_NORM_LAYER, true,  true,  false, false, true,  false},
    {"mpt",      HF_MPT,      SC_POS_LEARNED, SC_ACT_GELU,   SC_NORM_LAYER, true,  true,  false, false, true,  false},
    {"llama",    HF_LLAMA,    SC_POS_ROTARY,  SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, false, false, false, false},
    {"mistral",  HF_MISTRAL,  SC_POS_ROTARY,  SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, false, false, false, true},
    {"qwen2",    HF_QWEN2,    SC_POS_ROTARY,  SC_ACT_SWIGLU, SC_NORM_RMS,   false, false, true,  false, false, true},
};

/* Spellings of each number; HuggingFace maps them onto each other. */
typedef struct spelling {
    model_field field;
    const char *key[5]; /* NULL ends */
} spelling;

static const spelling spellings[] = {
    {MODEL_LAYERS,   {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}},
    {MODEL_HIDDEN,   {"hidden_size", "n_embd", "d_model", "n_embed"}},
    {MODEL_HEADS,    {"num_attention_heads", "n_head", "n_heads"}},
    {MODEL_KV_HEADS, {"num_key_value_heads"}},
    {MODEL_HEAD_DIM, {"head_dim"}},
    {MODEL_FFN,      {"intermediate_size", "ffn_dim", "n_inner"}},
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
    char what[240];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    sc_status s = sc_error(r->err, SC_EINPUT, code, pos, hint, "%s", what);
    if (r->status == SC_OK) r->status = s;
}

/* A number or truth value as JSON has them: never in quotes. */
bool hf_value(hf_reader *r, const sc_node *n, sc_key key, void *target)
{
    bool text = key.type == SC_T_STRING;
    key.name = n->key;
    if (n->kind != SC_N_SCALAR || n->quoted != text) {
        const char *kind = text                    ? "a string"
                           : key.type == SC_T_BOOL ? "true or false"
                                                   : "a number";
        hf_fail(r, SC_C_TYPE, n->pos, NULL, "%.80s needs %s", n->key, kind);
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

/* The one spelling that the file uses; two that disagree are an error. */
static void read_number(hf_reader *r, const spelling *s)
{
    size_t offset = sc_transformer_keys[s->field].offset;
    const int64_t *v = (const void *)((const char *)&r->t + offset);
    const sc_node *first = NULL;
    for (int i = 0; s->key[i]; i++) {
        const sc_node *n = hf_get(r->root, s->key[i]);
        if (!n) continue;
        int64_t before = *v;
        if (!hf_int(r, n, s->field)) return;
        if (first && *v != before) {
            hf_fail(r, SC_C_CONFLICT, n->pos, NULL, "%s contradicts %s", n->key,
                    first->key);
        }
        if (!first) first = n;
    }
    if (first || !sc_transformer_keys[s->field].required) return;
    hf_fail(r, SC_C_MISSING, r->root->pos, sc_transformer_keys[s->field].help,
            "missing key \"%s\"", s->key[0]);
}

static void need(hf_reader *r, int64_t value, const char *key)
{
    if (value != 0 || hf_get(r->root, key)) return;
    hf_fail(r, SC_C_MISSING, r->root->pos, NULL, "missing key \"%s\"", key);
}

static void read_numbers(hf_reader *r, const hf_type *type)
{
    for (size_t i = 0; i < SC_COUNT(spellings); i++) {
        read_number(r, &spellings[i]);
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

static const hf_type *find_type(hf_reader *r)
{
    const char *names[SC_COUNT(types) + 1] = {NULL};
    const sc_node *n = hf_get(r->root, "model_type");
    const char *word = hf_string(r, r->root, "model_type");
    static const char supported[] =
        "supported are gpt2, gpt_neox, opt, bloom, mpt, llama, mistral, qwen2";

    for (size_t i = 0; i < SC_COUNT(types); i++) names[i] = types[i].name;
    for (size_t i = 0; word && i < SC_COUNT(types); i++) {
        if (strcmp(word, types[i].name) == 0) return &types[i];
    }
    if (!n) {
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

    const hf_type *type = find_type(&r);
    hf_refuse(&r);
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
            (void)model_complete(&r.t, &r.where, err);
        }
        return r.status;
    }
    return model_make(&r.t, &r.where, (sc_source){0}, a, out, err);
}
