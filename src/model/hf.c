/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf.c - reads a HuggingFace config.json as a transformer.
 *
 * Each model type has a row (hf_types.c) with the facts that its code fixes or
 * assumes if the file does not state them.  Keys that do not affect the network
 * are listed by name (hf_keys.c); all others are read or refused.
 */
#include "model/hf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const hf_spelling spellings[] = {
    {MODEL_LAYERS,   {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"}},
    {MODEL_HIDDEN,   {"hidden_size", "n_embd", "d_model", "n_embed", "dim"}},
    {MODEL_HEADS,    {"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads", "encoder_attention_heads"}},
    {MODEL_KV_HEADS, {"num_key_value_heads", "num_kv_heads", "n_head_kv"}},
    {MODEL_HEAD_DIM, {"head_dim", "d_kv"}},
    {MODEL_FFN,      {"intermediate_size", "ffn_dim", "n_inner", "d_ff", "ffn_hidden_size", "hidden_dim", "encoder_ffn_dim"}},
    {MODEL_VOCAB,    {"vocab_size"}},
    {MODEL_MAX_SEQ,  {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"}},
};

/* clang-format on */

const sc_node *hf_get(hf_reader *r, const sc_node *map, const char *key)
{
    const sc_node *n =
        map && map->kind == SC_N_MAP ? sc_node_get(map, key) : NULL;
    if (!n) return NULL;
    const sc_node **v = sc_grow(r->arena, r->known, r->n_known, &r->cap_known,
                                64, sizeof(const sc_node *));
    if (v) {
        r->known = v;
        v[r->n_known++] = n;
    }
    return n->kind != SC_N_NULL ? n : NULL;
}

void hf_fail(hf_reader *r, sc_code code, sc_pos pos, const char *hint,
             const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    sc_error_v(r->err, &r->status, SC_EINPUT, code, pos, hint, fmt, ap);
    va_end(ap);
}

/* Whether a number or truth value has its JSON type: it is never in quotes. */
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
    const sc_node *n = hf_get(r, map, key);
    bool v = fallback;
    if (n) (void)hf_value(r, n, kind, &v);
    return v;
}

double hf_number(hf_reader *r, const sc_node *map, const char *key,
                 double fallback)
{
    static const sc_key kind = {
        .type = SC_T_QUANTITY, .unit = SC_U_NONE, .min = 0, .max = 1e6};
    const sc_node *n = hf_get(r, map, key);
    double v = fallback;
    if (n) (void)hf_value(r, n, kind, &v);
    return v;
}

const char *hf_string(hf_reader *r, const sc_node *map, const char *key)
{
    static const sc_key kind = {.type = SC_T_STRING};
    const sc_node *n = hf_get(r, map, key);
    const char *v;
    return n && hf_value(r, n, kind, &v) ? v : NULL;
}

void hf_note(hf_reader *r, const char *fmt, ...)
{
    char text[240];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->note = r->note ? sc_sprintf(r->arena, "%s; %s", r->note, text)
                      : sc_strdup(r->arena, text);
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
    const sc_node *n = hf_get(r, r->root, key);
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

bool hf_is_word(const sc_node *n, const char *word)
{
    return n->kind == SC_N_SCALAR && n->quoted && strcmp(n->text, word) == 0;
}

/* Reports a missing key with its meaning, but without the default of
 * model.yml. */
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

/* Reads the spelling that the file uses; two that disagree are an error. */
static void read_number(hf_reader *r, const hf_spelling *s, bool required)
{
    size_t offset = sc_transformer_keys[s->field].offset;
    const int64_t *v = (const void *)((const char *)&r->t + offset);
    const sc_node *first = NULL;
    for (int i = 0; i < HF_SPELLINGS && s->key[i]; i++) {
        const sc_node *n = hf_get(r, r->root, s->key[i]);
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
    if (value != 0 || hf_get(r, r->root, key)) return;
    hf_fail(r, SC_C_MISSING, r->root->pos, NULL, "missing key \"%s\"", key);
}

static void read_numbers(hf_reader *r, const hf_type *type)
{
    for (size_t i = 0; i < SC_COUNT(spellings); i++) {
        model_field f = spellings[i].field;
        /* the letters of a hybrid count its layers, and a vision model has no
         * vocabulary */
        bool apart = (type->kind == HF_NEMOTRON_H && f == MODEL_LAYERS) ||
                     (type->kind == HF_VIT && f == MODEL_VOCAB) ||
                     (type->may & HF_DEFAULTS && f != MODEL_LAYERS);
        read_number(r, &spellings[i],
                    sc_transformer_keys[f].required && !apart);
    }
    sc_transformer *t = &r->t;
    bool opt = type->kind == HF_OPT;
    /* the table starts with two unused rows */
    if (opt && t->max_seq) t->positions = t->max_seq + 2;
    if (type->need_kv && !sc_node_get(r->root, "num_key_value_heads")) {
        need(r, 0, "num_key_value_heads");
    }
    if (!type->ffn_4h && !(type->may & HF_DEFAULTS))
        need(r, t->ffn, opt ? "ffn_dim" : "intermediate_size");
}

static void set_defaults(sc_transformer *t, const hf_type *type)
{
    t->position = type->position;
    t->act = type->act;
    t->norm = type->norm;
    t->tied = type->tied;
    t->bias = type->bias;
    t->qkv_bias = type->qkv_bias;
    t->norm_bias =
        type->norm == SC_NORM_LAYER && !(type->has & HF_HAS_PLAIN_NORM);
    t->dropout = type->dropout;
    t->parallel = (type->has & HF_HAS_PARALLEL) != 0;
    t->one_norm = (type->has & HF_HAS_ONE_NORM) != 0;
    t->qk_norm = (type->has & (HF_HAS_QK_NORM | HF_HAS_QK_ALL)) != 0;
    t->qk_norm_all = (type->has & HF_HAS_QK_ALL) != 0;
    t->proj_bias = (type->has & HF_HAS_PROJ_BIAS) != 0;
    t->mlp_bias = (type->has & HF_HAS_MLP_BIAS) != 0;
    t->head_bias = (type->has & HF_HAS_HEAD_BIAS) != 0;
    t->plain_norm = (type->has & HF_HAS_BARE_NORM) != 0;
    if (type->has & HF_HAS_NORMS_AFTER) t->norms = SC_NORMS_AFTER;
    if (type->has & HF_HAS_NORMS_BOTH) t->norms = SC_NORMS_BOTH;
    if (type->has & HF_HAS_NORMS_SUMS) t->norms = SC_NORMS_SUMS;
}

/* The path of the file identifies the model better than "config". */
static const char *name_of(hf_reader *r, const hf_type *type, const char *file)
{
    const char *given = hf_string(r, r->root, "_name_or_path");
    const char *slash = given ? strrchr(given, '/') : NULL;
    const char *last = slash ? slash + 1 : given;
    if (last && *last) return last;
    const char *stem = model_stem(file, r->arena);
    return stem && strcmp(stem, "config") != 0 ? stem : type->name;
}

/* Papers count these blocks separately. */
static void note_mtp(hf_reader *r, const sc_model *m)
{
    if (m->t.mtp)
        hf_note(r,
                "%lld block%s of multi-token prediction with %.3g billion "
                "parameters train beside the %.4g billion that are counted",
                (long long)m->t.mtp, m->t.mtp > 1 ? "s" : "",
                (double)m->mtp_params / 1e9, (double)m->params / 1e9);
}

static sc_status with_note(hf_reader *r, const sc_model **out)
{
    sc_model *m = SC_NEW(r->arena, sc_model);
    if (!m) return sc_error_nomem(r->err);
    *m = **out;
    if (m->note) hf_note(r, "%s", m->note);
    m->note = r->note;
    *out = m;
    return SC_OK;
}

sc_status model_read_hf(const char *text, size_t len, const char *file,
                        sc_arena *a, const sc_model **out, sc_err *err)
{
    sc_node *root;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_JSON, file, a, &root, err));
    if (root->kind != SC_N_MAP) {
        return sc_error(err, SC_EINPUT, SC_C_TYPE, root->pos, NULL,
                        "a HuggingFace configuration must be an object");
    }
    hf_reader r = {.root = root, .arena = a, .err = err};
    model_where_all(&r.where, root->pos);

    hf_language_model(&r);
    const hf_type *type = hf_find_type(&r);
    if (!type) return r.status;
    hf_refuse(&r, type);
    set_defaults(&r.t, type);
    read_numbers(&r, type);
    hf_details(&r, type);
    hf_other_keys(&r, type);
    r.t.name = name_of(&r, type, file);
    if (r.status != SC_OK) {
        /* contradictions are reported in the same pass if all numbers are
         * there */
        if (r.t.layers && r.t.hidden && r.t.heads && r.t.vocab) {
            if (r.t.position == SC_POS_LEARNED && !r.t.max_seq) {
                r.t.position = SC_POS_NONE;
            }
            model_dense_only(&r.t);
            (void)model_complete(&r.t, &r.where, err);
        }
        return r.status;
    }
    SC_TRY(model_make(&r.t, &r.where, (sc_source){0}, a, out, err));
    note_mtp(&r, *out);
    return r.note ? with_note(&r, out) : SC_OK;
}
