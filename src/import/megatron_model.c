/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_model.c - makes the model that options of Megatron-LM describe. */
#include "import/blocks.h"
#include "import/megatron.h"
#include "import/tokenizer.h"

#include <stdio.h>
#include <string.h>

static sc_status put(megatron *m, const char *key, int64_t *field,
                     megatron_id id, int64_t value)
{
    *field = value;
    return megatron_origin_of(m, true, key, id);
}

/* Index of the value of option `id` in `names`; -1 and an error if it is not
 * there. */
static int choose(megatron *m, megatron_id id, const char *const *names,
                  const char *hint)
{
    const import_value *v = &m->v[id];
    for (int i = 0; names[i]; i++)
        if (strcmp(v->text, names[i]) == 0) return i;
    if (!v->bad)
        import_error(m->to, SC_C_UNKNOWN_NAME, v->at, hint, "%s '%.60s'",
                     v->name, v->text);
    return -1;
}

static void unsupported(megatron *m, megatron_id id, const char *what)
{
    import_error(m->to, SC_C_UNSUPPORTED, m->v[id].at, NULL, "%s %.60s: %s",
                 m->v[id].name, m->v[id].text, what);
}

/* Reports a list of blocks that can't be read, or whose length is not the
 * model's. */
static void not_a_list(megatron *m, megatron_id id, import_blocks_form form,
                       const import_blocks *b, const sc_transformer *t,
                       const char *hint)
{
    if (form != IMPORT_BLOCKS_LENGTH) {
        unsupported(m, id, hint);
        return;
    }
    import_error(m->to, SC_C_CONFLICT, m->v[id].at, NULL,
                 "%s names %lld blocks, the model has %lld", m->v[id].name,
                 (long long)b->n, (long long)t->layers);
}

/* ---- attention, MLP, embedding ----------------------------------------------------- */

/* Reads which blocks have no window: every n-th, or those with 0 in a list. */
static sc_status window_blocks(megatron *m, sc_transformer *t)
{
    const import_value *v = &m->v[M_WINDOW_FREQ];
    import_blocks b;
    if (!v->given || v->bad) return SC_OK;
    import_blocks_form form = import_blocks_read(v->text, t->layers, &b);
    switch (form) {
    case IMPORT_BLOCKS_EVERY:
        if (b.every == 1) t->window = 0; /* all of them */
        if (b.every == 1) return SC_OK;
        return put(m, "full_every", &t->full_every, M_WINDOW_FREQ, b.every);
    case IMPORT_BLOCKS_LIST:
        if (b.n_ones == t->layers) return SC_OK;
        if (b.n_ones == 0) t->window = 0;
        if (b.n_ones == 0) return SC_OK;
        if (b.last_zero_of)
            return put(m, "full_every", &t->full_every, M_WINDOW_FREQ,
                       b.last_zero_of);
        if (b.first_one_of)
            return put(m, "window_every", &t->window_every, M_WINDOW_FREQ,
                       b.first_one_of);
        unsupported(m, M_WINDOW_FREQ,
                    "the blocks with a window do not repeat with a period");
        return SC_OK;
    default:
        not_a_list(m, M_WINDOW_FREQ, form, &b, t,
                   "write a number, or a list such as [1,1,0]*8");
        return SC_OK;
    }
}

/* "(4095,0)" or "4095,0": positions before each token; negative: all. */
static sc_status window(megatron *m, sc_transformer *t)
{
    const char *s = m->v[M_WINDOW].text;
    int64_t n = 0;
    if (!m->v[M_WINDOW].given) return SC_OK;
    s += *s == '(';
    if (*s == '-') return SC_OK;
    for (; *s >= '0' && *s <= '9' && n < (1 << 28); s++)
        n = 10 * n + (*s - '0');
    if (n == 0 || (*s && !strchr(",) ", *s))) {
        import_error(m->to, SC_C_TYPE, m->v[M_WINDOW].at, "write 4095,0",
                     "%s '%.60s' is not a pair of numbers", m->v[M_WINDOW].name,
                     m->v[M_WINDOW].text);
        return SC_OK;
    }
    SC_TRY(put(m, "window", &t->window, M_WINDOW, n + 1));
    return window_blocks(m, t);
}

/* "off-by-one" adds a constant to each sum, which takes hardly any time. */
static sc_status sinks(megatron *m, sc_transformer *t)
{
    static const char *const names[] = {"vanilla", "off-by-one", "learnable",
                                        NULL};
    if (!m->v[M_SOFTMAX].given) return SC_OK;
    int i = choose(m, M_SOFTMAX, names, "vanilla, off-by-one or learnable");
    t->sinks = i == 2;
    return t->sinks ? megatron_origin_of(m, true, "sinks", M_SOFTMAX) : SC_OK;
}

static sc_status attention(megatron *m, sc_transformer *t)
{
    if (m->v[M_GQA].given) {
        SC_TRY(put(m, "kv_heads", &t->kv_heads, M_GROUPS,
                   megatron_number(m, M_GROUPS, 1)));
    } else {
        t->kv_heads = t->heads;
        if (m->v[M_GROUPS].given && megatron_number(m, M_GROUPS, 1) != 1)
            SC_TRY(import_warn(m->to, m->v[M_GROUPS].pos,
                               "without --group-query-attention it has no "
                               "effect"));
        SC_TRY(megatron_origin_of(m, true, "kv_heads", M_GQA));
    }
    if (megatron_good(m, M_KV_CHANNELS))
        SC_TRY(put(m, "head_dim", &t->head_dim, M_KV_CHANNELS,
                   megatron_number(m, M_KV_CHANNELS, 1)));
    SC_TRY(window(m, t));
    SC_TRY(sinks(m, t));
    t->qk_norm = m->v[M_QK_NORM].given && !m->v[M_MLA].given;
    if (t->qk_norm) SC_TRY(megatron_origin_of(m, true, "qk_norm", M_QK_NORM));
    t->qkv_bias = m->v[M_QKV_BIAS].given;
    return t->qkv_bias ? megatron_origin_of(m, true, "qkv_bias", M_QKV_BIAS)
                       : SC_OK;
}

static sc_status latent_attention(megatron *m, sc_transformer *t)
{
    if (!m->v[M_MLA].given) return SC_OK;
    if (!m->v[M_KV_RANK].given)
        import_error(m->to, SC_C_MISSING, m->v[M_MLA].pos,
                     "give --kv-lora-rank",
                     "--multi-latent-attention without a rank");
    if (m->v[M_Q_RANK].given)
        SC_TRY(put(m, "q_rank", &t->q_rank, M_Q_RANK,
                   megatron_number(m, M_Q_RANK, 0)));
    SC_TRY(put(m, "kv_rank", &t->kv_rank, M_KV_RANK,
               megatron_number(m, M_KV_RANK, 0)));
    SC_TRY(put(m, "qk_nope", &t->qk_nope, M_QK_NOPE,
               megatron_number(m, M_QK_NOPE, 128)));
    SC_TRY(put(m, "qk_rope", &t->qk_rope, M_QK_ROPE,
               megatron_number(m, M_QK_ROPE, 64)));
    return put(m, "v_dim", &t->v_dim, M_V_DIM,
               megatron_number(m, M_V_DIM, 128));
}

static sc_status mlp(megatron *m, sc_transformer *t)
{
    megatron_id id = M_SWIGLU;
    t->act = SC_ACT_GELU;
    if (m->v[M_SWIGLU].given) t->act = SC_ACT_SWIGLU;
    if (m->v[M_GEGLU].given) t->act = SC_ACT_GEGLU, id = M_GEGLU;
    if (m->v[M_SQ_RELU].given) t->act = SC_ACT_RELU2, id = M_SQ_RELU;
    SC_TRY(megatron_origin_of(m, true, "act", id));
    int64_t ffn = 4 * t->hidden;
    if (m->v[M_SWIGLU].given) ffn = 4 * t->hidden * 2 / 3 / 64 * 64;
    if (ffn < 1) ffn = 64;
    return put(m, "ffn", &t->ffn, M_FFN, megatron_number(m, M_FFN, ffn));
}

static sc_status position(megatron *m, sc_transformer *t)
{
    static const char *const names[] = {
        "learned_absolute", "rope", "alibi", "none", "yarn", "mrope", NULL};
    static const int values[] = {SC_POS_LEARNED, SC_POS_ROTARY, SC_POS_ALIBI,
                                 SC_POS_NONE,    SC_POS_ROTARY, SC_POS_ROTARY};
    megatron_id id = M_POSITION;
    t->position = SC_POS_LEARNED;
    if (m->v[M_NO_POSITION].given)
        t->position = SC_POS_NONE, id = M_NO_POSITION;
    if (m->v[M_ROTARY].given) t->position = SC_POS_ROTARY, id = M_ROTARY;
    if (m->v[M_POSITION].given) {
        int i = choose(m, M_POSITION, names,
                       "learned_absolute, rope, alibi or none");
        bool off = i == 0 && id != M_POSITION; /* a default, which argument
                                                  tables always show */
        if (i >= 0 && !off) t->position = values[i], id = M_POSITION;
    }
    SC_TRY(megatron_origin_of(m, true, "position", id));
    if (megatron_good(m, M_MAX_POS))
        return put(m, "max_seq", &t->max_seq, M_MAX_POS,
                   megatron_number(m, M_MAX_POS, 1));
    if (m->v[M_MAX_POS].given) return SC_OK;
    char name[64];
    if (t->position == SC_POS_LEARNED)
        import_error(m->to, SC_C_MISSING, sc_pos_file(m->to->file),
                     "it is the number of rows of the learned table", "no %s",
                     megatron_name(m, M_MAX_POS, name));
    return put(
        m, "max_seq", &t->max_seq, M_SEQ,
        megatron_number(m, M_SEQ, m->to->job->seq > 0 ? m->to->job->seq : 1));
}

/* Rows of the embedding table: `n` padded so that tensor parallelism divides
 * them. */
static sc_status padded(megatron *m, sc_transformer *t, int64_t n,
                        const import_value *v, const char *from)
{
    int64_t step = megatron_number(m, M_VOCAB_STEP, 128) * m->to->job->tp;
    char how[160];
    t->vocab = (n + step - 1) / step * step;
    snprintf(how, sizeof how, "%spadded to a multiple of %lld", from,
             (long long)step);
    if (v) return import_origin(m->to, true, "vocab", v, how);
    const char *text = sc_strdup(m->to->a, how);
    return text ? import_origin(m->to, true, "vocab", NULL, text)
                : sc_error_nomem(m->to->err);
}

/* The vocabulary that belongs to the tokenizer's name. The tokenizer's files
 * are not read. */
static sc_status tokenizer(megatron *m, sc_transformer *t)
{
    /* of Pai-Megatron-Patch: named after the model */
    const import_value *patch = &m->v[M_PATCH_TOKENIZER];
    const import_value *type = patch->given ? patch : &m->v[M_TOKENIZER];
    const import_value *model = patch->given ? patch : &m->v[M_TOKENIZER_MODEL];
    const char *what = "";
    const char *none = m->tree ? "" : NULL;
    int64_t n = import_tokenizer(type->given ? type->text : none,
                                 model->given ? model->text : "", &what);
    if (n == 0) {
        import_error(m->to, SC_C_MISSING,
                     type->given ? type->at : sc_pos_file(m->to->file),
                     "give --vocab-size; tokenizer files are not read",
                     "the size of the vocabulary is not in this file");
        return SC_OK;
    }
    n += megatron_number(m, M_EXTRA_VOCAB, 0);
    m->to->out->vocabulary = sc_sprintf(
        m->to->a, "vocabulary %lld: that of %s; --vocab-size sets another",
        (long long)n, what);
    if (!m->to->out->vocabulary) return sc_error_nomem(m->to->err);
    if (type->given) return padded(m, t, n, type, "");
    return padded(m, t, n, NULL, "default: GPT2BPETokenizer, ");
}

static sc_status vocabulary(megatron *m, sc_transformer *t)
{
    if (m->to->job->vocab > 0)
        return padded(m, t, m->to->job->vocab, NULL, "--vocab-size, ");
    if (megatron_good(m, M_PADDED_VOCAB))
        return put(m, "vocab", &t->vocab, M_PADDED_VOCAB,
                   megatron_number(m, M_PADDED_VOCAB, 1));
    if (megatron_good(m, M_VOCAB))
        return padded(m, t, megatron_number(m, M_VOCAB, 1), &m->v[M_VOCAB], "");
    return m->v[M_VOCAB].given ? SC_OK : tokenizer(m, t);
}

static sc_status norms(megatron *m, sc_transformer *t)
{
    static const char *const names[] = {"LayerNorm", "RMSNorm", NULL};
    int i = 0;
    if (m->v[M_NORM].given)
        i = choose(m, M_NORM, names, "LayerNorm or RMSNorm");
    t->norm = i == 1 ? SC_NORM_RMS : SC_NORM_LAYER;
    t->norm_bias = t->norm == SC_NORM_LAYER;
    t->embed_norm = m->v[M_EMBED_NORM].given;
    return megatron_origin_of(m, true, "norm", M_NORM);
}

/* ---- experts ------------------------------------------------------------------------- */

/* "4": every fourth block has experts.  A list has a 1 for each such block. */
static sc_status expert_blocks(megatron *m, sc_transformer *t)
{
    const import_value *v = &m->v[M_MOE_FREQ];
    import_blocks b;
    if (!v->given || v->bad) return SC_OK;
    import_blocks_form form = import_blocks_read(v->text, t->layers, &b);
    switch (form) {
    case IMPORT_BLOCKS_EVERY:
        if (b.every == 1) return SC_OK;
        return put(m, "moe_every", &t->moe_every, M_MOE_FREQ, b.every);
    case IMPORT_BLOCKS_LIST:
        if (b.n_ones == t->layers) return SC_OK;
        if (b.n_ones > 0 && b.leading_zeros + b.n_ones == t->layers)
            return put(m, "first_dense", &t->first_dense, M_MOE_FREQ,
                       b.leading_zeros);
        if (b.first_one_of || b.last_one_of)
            return put(m, "moe_every", &t->moe_every, M_MOE_FREQ,
                       b.first_one_of ? b.first_one_of : b.last_one_of);
        unsupported(m, M_MOE_FREQ,
                    "only dense blocks first, or experts in every n-th block, "
                    "are modelled");
        return SC_OK;
    default:
        not_a_list(m, M_MOE_FREQ, form, &b, t,
                   "write a number, or a list such as ([0]*3+[1]*58)");
        return SC_OK;
    }
}

/* Node-limited routing: a token's experts are in some of the groups. */
static sc_status groups(megatron *m, sc_transformer *t)
{
    int64_t n = megatron_number(m, M_ROUTE_GROUPS, 0);
    int64_t k = megatron_number(m, M_ROUTE_TOPK, 0);
    if (n < 2 || k < 1 || k >= n) return SC_OK;
    SC_TRY(put(m, "route_groups", &t->route_groups, M_ROUTE_GROUPS, n));
    return put(m, "route_topk", &t->route_topk, M_ROUTE_TOPK, k);
}

static sc_status experts(megatron *m, sc_transformer *t)
{
    import_value *v = &m->v[M_EXPERTS];
    if (!v->given || v->bad) return SC_OK;
    double n = 0;
    size_t len = strlen(v->text);
    for (size_t i = 0; i < len && n < 1e6; i++) {
        if (v->text[i] < '0' || v->text[i] > '9')
            len = 0;
        else
            n = 10 * n + (v->text[i] - '0');
    }
    if (len == 0 || n < 1 || n >= 1e6) {
        import_error(m->to, len ? SC_C_RANGE : SC_C_TYPE, v->at, NULL,
                     "%s needs a whole number from 1, not '%.60s'", v->name,
                     v->text);
        return SC_OK;
    }
    if (n < 2) return SC_OK;
    SC_TRY(put(m, "experts", &t->experts, M_EXPERTS, (int64_t)n));
    SC_TRY(put(m, "topk", &t->topk, M_TOPK, megatron_number(m, M_TOPK, 2)));
    if (t->topk > t->experts)
        import_error(m->to, SC_C_CONFLICT,
                     m->v[M_TOPK].given ? m->v[M_TOPK].at : v->at, NULL,
                     "top %lld of %lld experts", (long long)t->topk,
                     (long long)t->experts);
    SC_TRY(put(m, "moe_ffn", &t->moe_ffn, M_MOE_FFN,
               megatron_number(m, M_MOE_FFN, t->ffn)));
    if (megatron_good(m, M_SHARED_FFN))
        SC_TRY(put(m, "shared_ffn", &t->shared_ffn, M_SHARED_FFN,
                   megatron_number(m, M_SHARED_FFN, 0)));
    SC_TRY(groups(m, t));
    t->router_bias = m->v[M_ROUTER_BIAS].given;
    if (t->router_bias)
        SC_TRY(megatron_origin_of(m, true, "router_bias", M_ROUTER_BIAS));
    return expert_blocks(m, t);
}

/* ---- the whole ------------------------------------------------------------------------ */

static sc_status dropout(megatron *m, sc_transformer *t)
{
    megatron_id drop =
        m->v[M_HID_DROPOUT].given ? M_HID_DROPOUT : M_ATT_DROPOUT;
    double hidden =
        megatron_good(m, M_HID_DROPOUT) ? m->v[M_HID_DROPOUT].number : 0.1;
    double scores =
        megatron_good(m, M_ATT_DROPOUT) ? m->v[M_ATT_DROPOUT].number : 0.1;
    t->dropout = hidden > 0 || scores > 0;
    return megatron_origin_of(m, true, "dropout", drop);
}

static sc_status linears(megatron *m, sc_transformer *t)
{
    t->tied = !m->v[M_UNTIE].given;
    t->bias = !m->v[M_NO_BIAS].given;
    SC_TRY(megatron_origin_of(m, true, "tied", M_UNTIE));
    return megatron_origin_of(m, true, "bias", M_NO_BIAS);
}

static sc_status blocks(megatron *m, sc_transformer *t)
{
    SC_TRY(put(m, "layers", &t->layers, M_LAYERS,
               megatron_number(m, M_LAYERS, 1)));
    SC_TRY(put(m, "hidden", &t->hidden, M_HIDDEN,
               megatron_number(m, M_HIDDEN, 1)));
    SC_TRY(put(m, "heads", &t->heads, M_HEADS, megatron_number(m, M_HEADS, 1)));
    SC_TRY(attention(m, t));
    SC_TRY(latent_attention(m, t));
    SC_TRY(mlp(m, t));
    return experts(m, t);
}

static sc_status body(megatron *m, sc_transformer *t)
{
    SC_TRY(blocks(m, t));
    SC_TRY(vocabulary(m, t));
    SC_TRY(position(m, t));
    SC_TRY(norms(m, t));
    SC_TRY(dropout(m, t));
    SC_TRY(linears(m, t));
    if (!megatron_good(m, M_MTP)) return SC_OK;
    return put(m, "mtp", &t->mtp, M_MTP, megatron_number(m, M_MTP, 0));
}

static void check(megatron *m, const sc_transformer *t)
{
    if (!megatron_good(m, M_KV_CHANNELS) && !m->v[M_MLA].given &&
        t->hidden % t->heads)
        import_error(m->to, SC_C_DIVIDE, m->v[M_HEADS].at,
                     "or give --kv-channels",
                     "%lld heads do not divide hidden size %lld",
                     (long long)t->heads, (long long)t->hidden);
    if (t->kv_heads > 0 && t->heads % t->kv_heads)
        import_error(m->to, SC_C_DIVIDE, m->v[M_GROUPS].at, NULL,
                     "%lld query groups do not divide %lld heads",
                     (long long)t->kv_heads, (long long)t->heads);
}

sc_status megatron_model(megatron *m)
{
    static const megatron_id size[] = {M_LAYERS, M_HIDDEN, M_HEADS};
    const megatron_id any[] = {M_FFN, M_GROUPS, M_SWIGLU, M_VOCAB};
    uint32_t given = 0, usable = 0;
    bool some = false;
    char name[64];
    for (size_t i = 0; i < SC_COUNT(size); i++) {
        given += m->v[size[i]].given;
        usable += megatron_good(m, size[i]);
    }
    for (size_t i = 0; i < SC_COUNT(any); i++)
        some = some || m->v[any[i]].given;
    if (given == 0 && !some) return SC_OK;
    for (size_t i = 0; i < SC_COUNT(size); i++)
        if (!m->v[size[i]].given)
            import_error(m->to, SC_C_MISSING, sc_pos_file(m->to->file),
                         "a model needs layers, hidden size and heads", "no %s",
                         megatron_name(m, size[i], name));
    if (usable < SC_COUNT(size)) return SC_OK;
    sc_transformer t = {0};
    SC_TRY(body(m, &t));
    check(m, &t);
    m->to->out->model = t;
    m->to->out->has_model = true;
    return SC_OK;
}
