/* SPDX-License-Identifier: Apache-2.0 */
/* complete.c - fills and checks the numbers a transformer is made from. */
#include "model/read.h"

void model_where_all(model_where *w, sc_pos pos)
{
    for (int i = 0; i < MODEL_N_FIELDS; i++) w->at[i] = pos;
}

static int64_t field_value(const sc_transformer *t, int field)
{
    const char *base = (const char *)t;
    const sc_key *key = &sc_transformer_keys[field];
    if (key->type == SC_T_INT) {
        return *(const int64_t *)(const void *)(base + key->offset);
    }
    return *(const int *)(const void *)(base + key->offset);
}

/* Zero is "not given" for every number; what must be given is checked here,
 * so that a caller without a file gets the same errors as a reader. */
static sc_status check_field(const sc_transformer *t, int field, sc_pos pos,
                             sc_err *err)
{
    const sc_key *key = &sc_transformer_keys[field];
    int64_t v = field_value(t, field);

    if (key->type == SC_T_ENUM) {
        int64_t n = 0;
        while (key->names[n]) n++;
        if (v >= 0 && v < n) return SC_OK;
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "%s %lld is not a legal kind", key->name, (long long)v);
    }
    if (v == 0 && key->required) {
        return sc_error(err, SC_EINPUT, SC_C_MISSING, pos, key->help,
                        "%s is not given", key->name);
    }
    double d = (double)v;
    if (v == 0 || (d >= key->min && d <= key->max)) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                    "%s %lld is not between %.0f and %.0f", key->name,
                    (long long)v, key->min, key->max);
}

static sc_status check_fields(const sc_transformer *t, const model_where *w,
                              sc_err *err)
{
    sc_status first = SC_OK;
    for (int i = 0; i < MODEL_N_FIELDS; i++) {
        sc_type type = sc_transformer_keys[i].type;
        if (type != SC_T_INT && type != SC_T_ENUM) continue;
        sc_status s = check_field(t, i, w->at[i], err);
        if (first == SC_OK) first = s;
    }
    return first;
}

/* Each needs the numbers it divides to be in range. */
static sc_status check_heads(sc_transformer *t, const model_where *w,
                             sc_err *err)
{
    sc_status s = SC_OK;
    if (t->kv_heads == 0) t->kv_heads = t->heads;
    if (t->heads % t->kv_heads != 0) {
        s = sc_error(err, SC_EINPUT, SC_C_DIVIDE, w->at[MODEL_KV_HEADS],
                     "kv_heads must divide heads",
                     "%lld heads can't share %lld kv_heads evenly",
                     (long long)t->heads, (long long)t->kv_heads);
    }
    if (t->head_dim > 0) return s;
    if (t->hidden % t->heads != 0) {
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE, w->at[MODEL_HEADS],
                        "change heads, or give head_dim",
                        "%lld heads don't divide hidden %lld",
                        (long long)t->heads, (long long)t->hidden);
    }
    t->head_dim = t->hidden / t->heads;
    if (t->head_dim <= (int64_t)sc_transformer_keys[MODEL_HEAD_DIM].max) {
        return s;
    }
    return sc_error(err, SC_EINPUT, SC_C_RANGE, w->at[MODEL_HEADS], NULL,
                    "heads of %lld elements are too wide",
                    (long long)t->head_dim);
}

static sc_status check_positions(sc_transformer *t, const model_where *w,
                                 sc_err *err)
{
    if (t->position != SC_POS_LEARNED) {
        t->positions = 0;
        return SC_OK;
    }
    if (t->max_seq == 0) t->max_seq = t->positions;
    if (t->positions == 0) t->positions = t->max_seq;
    if (t->positions == 0) {
        return sc_error(err, SC_EINPUT, SC_C_MISSING, w->at[MODEL_MAX_SEQ],
                        "write e.g. max_seq: 2048",
                        "learned positions need max_seq");
    }
    if (t->positions < t->max_seq) {
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, w->at[MODEL_POSITIONS],
                        NULL, "%lld positions for sequences up to %lld",
                        (long long)t->positions, (long long)t->max_seq);
    }
    return SC_OK;
}

sc_status model_complete(sc_transformer *t, const model_where *w, sc_err *err)
{
    SC_TRY(check_fields(t, w, err));

    if (t->ffn == 0) {
        t->ffn = 4 * t->hidden;
        if (model_gated(t))
            t->ffn = ((8 * t->hidden + 2) / 3 + 255) / 256 * 256;
    }
    if (t->norm == SC_NORM_RMS) t->norm_bias = false;
    if (t->bias) t->qkv_bias = true;
    if (!t->name) t->name = "";

    sc_status heads = check_heads(t, w, err);
    sc_status positions = check_positions(t, w, err);
    return heads != SC_OK ? heads : positions;
}
