/* SPDX-License-Identifier: Apache-2.0 */
/* complete.c - completes and checks the numbers of a transformer. */
#include "model/read.h"

#include <stddef.h>
#include <string.h>

void model_where_all(model_where *w, sc_pos pos)
{
    for (int i = 0; i < MODEL_N_FIELDS; i++) w->at[i] = pos;
}

void model_dense_only(sc_transformer *t)
{
    size_t from = offsetof(sc_transformer, qk_norm);
    if (t->kv_rank && !t->head_dim) t->head_dim = 1;
    memset((char *)t + from, 0, sizeof *t - from);
}

static int64_t field_value(const sc_transformer *t, int field)
{
    const char *base = (const char *)t;
    const sc_key *key = &sc_transformer_keys[field];
    if (key->type == SC_T_BOOL) {
        return *(const bool *)(const void *)(base + key->offset);
    }
    if (key->type == SC_T_STRING) {
        const char *v =
            *(const char *const *)(const void *)(base + key->offset);
        return v && *v;
    }
    if (key->type == SC_T_INT) {
        return *(const int64_t *)(const void *)(base + key->offset);
    }
    return *(const int *)(const void *)(base + key->offset);
}

/* Zero means "not given" for every number.  Required numbers are checked here,
 * so that callers without a file get the same errors as readers. */
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

/* Each check needs its divisors to be in range. */
static sc_status check_heads(sc_transformer *t, const model_where *w,
                             sc_err *err)
{
    sc_status s = SC_OK;
    if (t->kv_heads == 0) t->kv_heads = t->heads;
    if (t->kv_heads <= 0 || t->heads % t->kv_heads != 0) {
        s = sc_error(err, SC_EINPUT, SC_C_DIVIDE, w->at[MODEL_KV_HEADS],
                     "kv_heads must divide heads",
                     "%lld heads can't share %lld kv_heads evenly",
                     (long long)t->heads, (long long)t->kv_heads);
    }
    if (t->head_dim > 0) return s;
    if (t->heads <= 0 || t->hidden % t->heads != 0) {
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
                    "heads of %lld elements are too large",
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

/* ---- parts that not every model has */

/* Keys that need another key, or that have no effect without it. */
static const struct {
    uint8_t key, with;
    bool needed; /* true: `with` needs `key`; false: `key` needs `with` */
} pairs[] = {
    {MODEL_TOPK, MODEL_EXPERTS, true},
    {MODEL_TOPK, MODEL_EXPERTS, false},
    {MODEL_MOE_FFN, MODEL_EXPERTS, false},
    {MODEL_SHARED_FFN, MODEL_EXPERTS, false},
    {MODEL_FIRST_DENSE, MODEL_EXPERTS, false},
    {MODEL_MOE_EVERY, MODEL_EXPERTS, false},
    {MODEL_LATENT, MODEL_EXPERTS, false},
    {MODEL_ROUTE_GROUPS, MODEL_EXPERTS, false},
    {MODEL_ROUTE_TOPK, MODEL_EXPERTS, false},
    {MODEL_WINDOW_EVERY, MODEL_WINDOW, false},
    {MODEL_FULL_EVERY, MODEL_WINDOW, false},
    {MODEL_WINDOW_PATTERN, MODEL_WINDOW, false},
    {MODEL_ONE_NORM, MODEL_PARALLEL, false},
    {MODEL_QK_NORM_ALL, MODEL_QK_NORM, false},
    {MODEL_QK_NOPE, MODEL_KV_RANK, true},
    {MODEL_V_DIM, MODEL_KV_RANK, true},
    {MODEL_Q_RANK, MODEL_KV_RANK, false},
    {MODEL_QK_NOPE, MODEL_KV_RANK, false},
    {MODEL_QK_ROPE, MODEL_KV_RANK, false},
    {MODEL_V_DIM, MODEL_KV_RANK, false},
    {MODEL_LORA_MLP, MODEL_LORA, false},
    {MODEL_RELATIVE_EACH, MODEL_DECODER_LAYERS, false},
    {MODEL_EMBED_WIDTH, MODEL_ENCODER, false},
    {MODEL_REPLACED, MODEL_ENCODER, false},
    {MODEL_PATCH, MODEL_IMAGE, true},
    {MODEL_PATCH, MODEL_IMAGE, false},
    {MODEL_CLASSES, MODEL_IMAGE, false},
};

/* Kinds of models that exclude each other. */
static const uint8_t apart[][2] = {
    {MODEL_PATTERN, MODEL_ENCODER},
    {MODEL_PATTERN, MODEL_DECODER_LAYERS},
    {MODEL_PATTERN, MODEL_IMAGE},
    {MODEL_PATTERN, MODEL_FIRST_DENSE},
    {MODEL_ENCODER, MODEL_IMAGE},
    {MODEL_ENCODER, MODEL_DECODER_LAYERS},
    {MODEL_IMAGE, MODEL_TIED},
    {MODEL_IMAGE, MODEL_DECODER_LAYERS},
    {MODEL_MTP, MODEL_ENCODER},
    {MODEL_MTP, MODEL_DECODER_LAYERS},
    {MODEL_MTP, MODEL_IMAGE},
    {MODEL_EXPERTS, MODEL_DECODER_LAYERS},
    {MODEL_KV_RANK, MODEL_DECODER_LAYERS},
    {MODEL_KV_RANK, MODEL_QK_NORM},
    {MODEL_PARALLEL, MODEL_ENCODER},
    {MODEL_PARALLEL, MODEL_DECODER_LAYERS},
    {MODEL_PARALLEL, MODEL_NORMS},
    {MODEL_HEAD_BIAS, MODEL_IMAGE},
    {MODEL_FULL_EVERY, MODEL_WINDOW_EVERY},
    {MODEL_WINDOW_PATTERN, MODEL_WINDOW_EVERY},
    {MODEL_WINDOW_PATTERN, MODEL_FULL_EVERY},
    {MODEL_WINDOW_PATTERN, MODEL_PATTERN},
    {MODEL_ATTN_GATE, MODEL_KV_RANK},
    {MODEL_ATTN_GATE, MODEL_ENCODER},
    {MODEL_ATTN_GATE, MODEL_DECODER_LAYERS},
    {MODEL_PLAIN_NORM, MODEL_ENCODER},
};

static sc_status check_pairs(const sc_transformer *t, const model_where *w,
                             sc_err *err)
{
    sc_status first = SC_OK, s = SC_OK;
    for (size_t i = 0; i < SC_COUNT(pairs); i++) {
        int key = pairs[i].key, with = pairs[i].with;
        bool needed = pairs[i].needed;
        if (needed ? !field_value(t, with) || field_value(t, key)
                   : !field_value(t, key) || field_value(t, with)) {
            continue;
        }
        int given = needed ? with : key, missing = needed ? key : with;
        s = sc_error(err, SC_EINPUT, SC_C_MISSING, w->at[given],
                     sc_transformer_keys[missing].help, "%s needs %s",
                     sc_transformer_keys[given].name,
                     sc_transformer_keys[missing].name);
        if (first == SC_OK) first = s;
    }
    for (size_t i = 0; i < SC_COUNT(apart); i++) {
        int x = apart[i][0], y = apart[i][1];
        if (!field_value(t, x) || !field_value(t, y)) continue;
        s = sc_error(err, SC_EINPUT, SC_C_CONFLICT, w->at[y], NULL,
                     "%s and %s exclude each other",
                     sc_transformer_keys[x].name, sc_transformer_keys[y].name);
        if (first == SC_OK) first = s;
    }
    return first;
}

static sc_status check_groups(sc_transformer *t, const model_where *w,
                              sc_err *err)
{
    if (t->route_groups == 1 && t->route_topk == 1)
        t->route_groups = t->route_topk = 0; /* all experts are allowed */
    int64_t n = t->route_groups, k = t->route_topk;
    if (!n && !k) return SC_OK;
    if (!n || !k || k > n || t->experts % n != 0 ||
        t->topk > t->experts / n * k)
        return sc_error(err, SC_EINPUT, SC_C_RANGE,
                        w->at[n ? MODEL_ROUTE_GROUPS : MODEL_ROUTE_TOPK],
                        "groups divide the experts; the groups of a token hold "
                        "its experts",
                        "%lld experts of a token in %lld of %lld groups of "
                        "%lld experts",
                        (long long)t->topk, (long long)k, (long long)n,
                        (long long)t->experts);
    return SC_OK;
}

static sc_status check_experts(sc_transformer *t, const model_where *w,
                               sc_err *err)
{
    if (!t->experts) return SC_OK;
    if (!t->moe_ffn) t->moe_ffn = t->ffn;
    if (!t->moe_every) t->moe_every = 1;
    if (t->bias) t->router_bias = true;
    if (t->topk > t->experts) {
        return sc_error(err, SC_EINPUT, SC_C_RANGE, w->at[MODEL_TOPK], NULL,
                        "a token can't go to %lld of %lld experts",
                        (long long)t->topk, (long long)t->experts);
    }
    SC_TRY(check_groups(t, w, err));
    if (t->first_dense >= t->layers || t->moe_every > t->layers) {
        bool dense = t->first_dense >= t->layers;
        return sc_error(err, SC_EINPUT, SC_C_RANGE,
                        w->at[dense ? MODEL_FIRST_DENSE : MODEL_MOE_EVERY],
                        NULL, "none of %lld layers is left for the experts",
                        (long long)t->layers);
    }
    return SC_OK;
}

static sc_status check_mamba(sc_transformer *t, const model_where *w,
                             sc_err *err)
{
    static const uint8_t needed[] = {MODEL_SSM_STATE, MODEL_SSM_HEADS,
                                     MODEL_SSM_HEAD_DIM};
    sc_status s = SC_OK;
    for (size_t i = 0; i < SC_COUNT(needed); i++) {
        if (field_value(t, needed[i])) continue;
        s = sc_error(err, SC_EINPUT, SC_C_MISSING, w->at[MODEL_PATTERN],
                     sc_transformer_keys[needed[i]].help,
                     "blocks M, D and B need %s",
                     sc_transformer_keys[needed[i]].name);
    }
    if (!t->ssm_groups) t->ssm_groups = 1;
    if (!t->ssm_conv) t->ssm_conv = 4;
    if (s != SC_OK || t->ssm_heads % t->ssm_groups == 0) return s;
    return sc_error(err, SC_EINPUT, SC_C_DIVIDE, w->at[MODEL_SSM_GROUPS],
                    "ssm_groups must divide ssm_heads",
                    "%lld heads don't make %lld groups",
                    (long long)t->ssm_heads, (long long)t->ssm_groups);
}

static sc_status check_pattern(sc_transformer *t, const model_where *w,
                               sc_err *err)
{
    sc_pos pos = w->at[MODEL_PATTERN];
    if (!t->pattern) return SC_OK;
    size_t n = strlen(t->pattern), legal = strspn(t->pattern, "MDB*-E");
    if (legal < n) {
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos,
                        "letters are M, D, B, *, - and E",
                        "letter %zu of the pattern has no meaning", legal + 1);
    }
    if (n != (uint64_t)t->layers) {
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos,
                        "one letter per layer",
                        "the pattern has %zu letters for %lld layers", n,
                        (long long)t->layers);
    }
    if (strchr(t->pattern, 'E') && !t->experts) {
        return sc_error(err, SC_EINPUT, SC_C_MISSING, pos,
                        sc_transformer_keys[MODEL_EXPERTS].help,
                        "blocks E need experts");
    }
    const char *two = strpbrk(t->pattern, "DB");
    if (two && t->ssm_rank) {
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, w->at[MODEL_SSM_RANK],
                        NULL, "blocks %c and ssm_rank exclude each other",
                        *two);
    }
    return strpbrk(t->pattern, "MDB") ? check_mamba(t, w, err) : SC_OK;
}

static sc_status check_window_pattern(const sc_transformer *t,
                                      const model_where *w, sc_err *err)
{
    const char *p = t->window_pattern;
    size_t legal = p ? strspn(p, "WF") : 0;
    if (!p || !p[legal]) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_RANGE, w->at[MODEL_WINDOW_PATTERN],
                    "letters are W and F",
                    "letter %zu of the window_pattern has no meaning",
                    legal + 1);
}

/* Encoders have norms before their parts or after the sums.  A value that equals
 * the default becomes the default. */
static sc_status check_norms(sc_transformer *t, const model_where *w,
                             sc_err *err)
{
    bool alone = t->encoder && !t->image;
    bool stacks = alone || t->decoder_layers;
    if (t->norms == (alone ? SC_NORMS_SUMS : SC_NORMS_BEFORE))
        t->norms = SC_NORMS_DEFAULT;
    if (!stacks || (t->norms != SC_NORMS_AFTER && t->norms != SC_NORMS_BOTH))
        return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, w->at[MODEL_NORMS],
                    "an encoder has norms before its parts or after the sums",
                    "norms: %s does not apply to an encoder",
                    sc_norms_names[t->norms]);
}

/* An image is cut into patches; one more token represents the class. */
static sc_status check_image(sc_transformer *t, const model_where *w,
                             sc_err *err)
{
    if (!t->image || !t->patch) return SC_OK;
    if (t->image % t->patch != 0) {
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE, w->at[MODEL_PATCH], NULL,
                        "patches of %lld pixels don't fill %lld",
                        (long long)t->patch, (long long)t->image);
    }
    int64_t side = t->image / t->patch, tokens = side * side + 1;
    int64_t limit = (int64_t)sc_transformer_keys[MODEL_MAX_SEQ].max;
    if (!t->max_seq && tokens <= limit) t->max_seq = tokens;
    if (!t->classes) t->classes = t->vocab;
    if (t->vocab != t->classes) {
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, w->at[MODEL_CLASSES],
                        "vocab is what the head chooses from",
                        "%lld classes contradict a vocab of %lld",
                        (long long)t->classes, (long long)t->vocab);
    }
    if (t->max_seq == tokens) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, w->at[MODEL_IMAGE],
                    "leave max_seq out", "an image makes %lld tokens",
                    (long long)tokens);
}

static void complete_heads(sc_transformer *t)
{
    if (!t->kv_rank) return;
    t->kv_heads = t->heads;
    if (!t->head_dim) t->head_dim = t->qk_nope + t->qk_rope;
}

sc_status model_complete(sc_transformer *t, const model_where *w, sc_err *err)
{
    SC_TRY(check_fields(t, w, err));

    if (t->pattern && !*t->pattern) t->pattern = NULL;
    if (t->window_pattern && !*t->window_pattern) t->window_pattern = NULL;
    if (t->ffn == 0) {
        t->ffn = 4 * t->hidden;
        if (model_gated(t))
            t->ffn = ((8 * t->hidden + 2) / 3 + 255) / 256 * 256;
    }
    if (t->norm == SC_NORM_RMS) t->norm_bias = false;
    if (t->embed_width == t->hidden) t->embed_width = 0;
    if (t->replaced) t->tied = false; /* its head is not over the vocabulary */
    if (t->bias) t->qkv_bias = true;
    if (!t->name) t->name = "";
    complete_heads(t);
    SC_TRY(check_norms(t, w, err));

    sc_status s[] = {
        check_heads(t, w, err),          check_pairs(t, w, err),
        check_experts(t, w, err),        check_pattern(t, w, err),
        check_image(t, w, err),          check_positions(t, w, err),
        check_window_pattern(t, w, err),
    };
    for (size_t i = 0; i < SC_COUNT(s); i++) {
        if (s[i] != SC_OK) return s[i];
    }
    return SC_OK;
}
