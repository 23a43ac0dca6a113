/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - the layers of a complete transformer, and what they add up
 * to. */
#include "model/ops.h"

#include <stddef.h>
#include <string.h>

/* T5's buckets of distances, in the encoder and in the decoder. */
#define RELATIVE_BUCKETS 32
/* BERT learns from this part of its tokens (Devlin et al. 2019). */
#define MASKED_SHARE 0.15

static void position_table(sc_layer *l, const char *name, sc_iter hidden,
                           int64_t params)
{
    sc_operator *op = model_pointwise(l, name, SC_POSITION, hidden);
    op->w = MODEL_D2;
    op->params = (uint64_t)params;
}

static void patches(sc_layer *l, const sc_transformer *t)
{
    int64_t pixels = 3 * t->patch * t->patch;
    sc_iter in = model_dim(SC_D_RANK, pixels, pixels);
    model_linear(l, "patch", in, model_hidden(t), true)->type = SC_PATCH;
    position_table(l, "class_token", model_hidden(t), t->hidden);
}

static void words(sc_layer *l, const sc_transformer *t)
{
    sc_operator *op = model_op(l, "embed", SC_EMBED);
    model_add_dim(op, model_dim(SC_D_VOCAB, t->vocab, t->vocab), SC_I_REDUCE);
    model_add_dim(op, model_hidden(t), SC_I_FREE);
    op->x = MODEL_TOKENS;
    op->w = MODEL_D2 | MODEL_D3;
    op->y = MODEL_TOKENS | MODEL_D3;
    op->params = (uint64_t)t->vocab * (uint64_t)t->hidden;
}

static void embedding(sc_layer *l, const sc_transformer *t)
{
    sc_iter hidden = model_hidden(t);
    l->path = "embedding";
    l->kind = SC_LAYER_EMBED;
    l->repeat = 1;

    if (t->image) {
        patches(l, t);
    } else {
        words(l, t);
    }
    if (t->position == SC_POS_LEARNED) {
        position_table(l, "position", hidden, t->positions * t->hidden);
    } else if (t->position == SC_POS_RELATIVE) {
        int64_t stacks = t->decoder_layers ? 2 : 1;
        position_table(l, "position", hidden,
                       stacks * RELATIVE_BUCKETS * t->heads);
    }
    if (t->encoder && !t->image) {
        position_table(l, "token_type", hidden, 2 * t->hidden);
    }
    if (t->embed_norm) (void)model_norm(l, "embed_norm", hidden, t->norm_bias);
    if (t->dropout) (void)model_sum(l, "embed_drop", hidden, MODEL_NO_SRC);
}

static void loss(sc_layer *l, const char *name, sc_iter vocab)
{
    sc_operator *op = model_op(l, name, SC_LOSS);
    model_add_dim(op, vocab, SC_I_REDUCE);
    op->x = MODEL_TOKENS | MODEL_D2;
    op->y = MODEL_TOKENS;
}

/* BERT's head reads the masked tokens only. */
static void masked_head(sc_layer *l, const sc_transformer *t)
{
    sc_iter inner = model_dim(SC_D_RANK, t->hidden, t->hidden);
    sc_iter vocab = model_dim(SC_D_VOCAB, t->vocab, t->vocab);
    (void)model_linear(l, "mlm_dense", model_hidden(t), inner, t->bias);
    (void)model_pointwise(l, "mlm_act", SC_ACT, inner);
    (void)model_norm(l, "mlm_norm", inner, t->norm_bias);
    sc_operator *op = model_linear(l, "lm_head", inner, vocab, t->bias);
    op->wide = true;
    if (t->tied) op->params = op->bias;
    loss(l, "loss", vocab);
    for (uint32_t i = 0; i < l->n_ops; i++) l->op[i].share = MASKED_SHARE;
}

static void class_head(sc_layer *l, const sc_transformer *t)
{
    sc_iter classes = model_dim(SC_D_VOCAB, t->classes, t->classes);
    int64_t side = t->image / t->patch;
    double share = 1.0 / (double)(side * side + 1);
    sc_operator *op =
        model_linear(l, "classifier", model_hidden(t), classes, true);
    op->share = share;
    op->wide = true;
    loss(l, "loss", classes);
    l->op[l->n_ops - 1].share = share;
}

/* Predictions of later tokens go through the head again, once per block of
 * multi-token prediction. */
static void mtp_head(sc_layer *l, const sc_transformer *t)
{
    sc_iter hidden = model_hidden(t);
    sc_iter vocab = model_dim(SC_D_VOCAB, t->vocab, t->vocab);
    uint32_t first = l->n_ops;
    sc_operator *op = model_norm(l, "mtp_norm", hidden, t->norm_bias);
    op->src = MODEL_LAYER_INPUT;
    op->params *= (uint64_t)t->mtp;
    op->bias *= (uint64_t)t->mtp;
    op = model_linear(l, "mtp_lm_head", hidden, vocab, false);
    op->params = 0;
    op->wide = true;
    loss(l, "mtp_loss", vocab);
    for (uint32_t i = first; i < l->n_ops; i++) {
        l->op[i].share = (double)t->mtp;
    }
}

static void head(sc_layer *l, const sc_transformer *t)
{
    sc_iter hidden = model_hidden(t);
    sc_iter vocab = model_dim(SC_D_VOCAB, t->vocab, t->vocab);
    l->path = "head";
    l->kind = SC_LAYER_HEAD;
    l->repeat = 1;

    if (t->encoder && !t->image) {
        masked_head(l, t);
        return;
    }
    (void)model_norm(l, "norm_f", hidden, t->norm_bias);
    if (t->image) {
        class_head(l, t);
        return;
    }
    sc_operator *op = model_linear(l, "lm_head", hidden, vocab, t->head_bias);
    op->wide = true;
    if (t->tied) op->params = op->bias;
    loss(l, "loss", vocab);
    if (t->mtp) mtp_head(l, t);
}

/* ---- kinds of blocks */

static model_kind hybrid_kind(char letter, bool window)
{
    switch (letter) {
    case 'M': return (model_kind){"layers.mamba.*", .mixer = MODEL_MAMBA};
    case '-': return (model_kind){"layers.mlp.*", .mlp = MODEL_DENSE};
    case 'E': return (model_kind){"layers.moe.*", .mlp = MODEL_MOE};
    default:
        return (model_kind){"layers.attention.*", .mixer = MODEL_ATTENTION,
                            .window = window, .causal = true};
    }
}

static model_kind kind_of(const sc_transformer *t, int64_t i)
{
    bool moe = t->experts && i >= t->first_dense && (i + 1) % t->moe_every == 0;
    int64_t every = t->window_every, full = t->full_every;
    bool some = t->window && (every > 1 || full > 1);
    bool window = t->window && (every < 2 || i % every == 0) &&
                  (!full || (i + 1) % full != 0);
    bool two_mlps = t->experts && (t->first_dense || t->moe_every > 1);
    model_kind k = {moe ? "layers.moe.*" : "layers.dense.*",
                    .mixer = MODEL_ATTENTION,
                    .mlp = moe ? MODEL_MOE : MODEL_DENSE, .window = window,
                    .causal = !t->encoder && !t->image};
    if (i >= t->layers + t->decoder_layers) {
        k.path = "layers.mtp.*";
        k.mtp = true;
        k.window = t->window && !some;
        k.mlp = t->experts ? MODEL_MOE : MODEL_DENSE;
    } else if (t->decoder_layers) {
        bool decoder = i >= t->layers;
        k.last_enc = i == t->layers - 1;
        k.causal = k.cross = decoder;
        k.path = decoder      ? "layers.decoder.*"
                 : k.last_enc ? "layers.encoder_last.*"
                              : "layers.encoder.*";
    } else if (t->pattern) {
        k = hybrid_kind(t->pattern[i], window);
    } else if (some && window) {
        k.path = two_mlps && !moe ? "layers.window_dense.*" : "layers.window.*";
    }
    return k;
}

/* Finds the kind of each block among the entries there are, or adds one:
 * kinds are told apart by their paths. */
static sc_status blocks(sc_model *m, sc_arena *a, sc_err *err)
{
    const sc_transformer *t = &m->t;
    m->n_blocks = (uint32_t)(t->layers + t->decoder_layers + t->mtp);
    m->order = SC_NEW_N(a, uint8_t, m->n_blocks);
    if (!m->order) return sc_error_nomem(err);
    for (uint32_t i = 0; i < m->n_blocks; i++) {
        model_kind k = kind_of(t, i);
        uint32_t at = 1;
        while (at < m->n_layers && strcmp(m->layer[at].path, k.path) != 0) at++;
        if (at == SC_LAYERS - 1) {
            return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                            "too many kinds of blocks");
        }
        if (at == m->n_layers) {
            model_block(&m->layer[at], t, &k);
            m->n_layers++;
        }
        m->layer[at].repeat++;
        m->order[i] = (uint8_t)at;
    }
    if (m->n_layers == 2) m->layer[1].path = "layers.*";
    return SC_OK;
}

/* ---- sums */

/* Beyond 2^53 a count is not exact as a double. */
#define MAX_PARAMS (UINT64_C(1) << 53)

static bool count_params(sc_model *m)
{
    m->params = m->active_params = m->trained_params = 0;
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const sc_layer *l = &m->layer[i];
        uint64_t one = 0, active = 0, trained = 0;
        for (uint32_t k = 0; k < l->n_ops; k++) {
            const sc_operator *op = &l->op[k];
            if (op->params > MAX_PARAMS) return false;
            one += op->params;
            trained += op->frozen ? 0 : op->params;
            active +=
                op->type != SC_EXPERT
                    ? op->params
                    : op->params / (uint64_t)m->t.experts * (uint64_t)m->t.topk;
        }
        if (one > (MAX_PARAMS - m->params) / l->repeat) return false;
        m->params += one * l->repeat;
        m->active_params += active * l->repeat;
        m->trained_params += trained * l->repeat;
    }
    return true;
}

/* Only adapters learn where there are any. */
static void freeze(sc_model *m)
{
    for (uint32_t i = 0; i < m->n_layers; i++) {
        for (uint32_t k = 0; k < m->layer[i].n_ops; k++) {
            sc_operator *op = &m->layer[i].op[k];
            op->frozen = op->w && !strstr(op->name, "_lora_");
        }
    }
}

/* Keys that came after results were kept count where they are given only. */
static bool is_later(ptrdiff_t key)
{
    return (key >= MODEL_NORMS && key <= MODEL_HEAD_BIAS) ||
           key == MODEL_FULL_EVERY;
}

/* Of what the layers are made from; the name changes nothing. */
static uint64_t hash_of(const sc_transformer *t)
{
    const char *base = (const char *)t;
    uint64_t h = 0;
    for (const sc_key *k = sc_transformer_keys; k->name; k++) {
        const void *at = base + k->offset;
        int64_t v = 0;
        switch (k->type) {
        case SC_T_INT: v = *(const int64_t *)at; break;
        case SC_T_ENUM: v = *(const int *)at; break;
        case SC_T_BOOL: v = *(const bool *)at; break;
        default: break;
        }
        if (v == 0 && is_later(k - sc_transformer_keys)) continue;
        h = sc_hash(&v, sizeof v, h);
    }
    return t->pattern ? sc_hash(t->pattern, strlen(t->pattern), h) : h;
}

/* Layers of a complete transformer, written to m->layer; counts parameters
 * and sets m->hash.  SC_C_RANGE when the parameters don't fit 2^53. */
static sc_status generate(sc_model *m, sc_pos pos, sc_arena *a, sc_err *err)
{
    sc_layer *layer = SC_NEW_N(a, sc_layer, SC_LAYERS);
    if (!layer) return sc_error_nomem(err);
    m->layer = layer;
    embedding(&layer[0], &m->t);
    m->n_layers = 1;
    SC_TRY(blocks(m, a, err));
    head(&layer[m->n_layers++], &m->t);
    if (m->t.lora) freeze(m);
    if (!count_params(m)) {
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "the model has more than 2^53 parameters");
    }
    m->hash = hash_of(&m->t);
    return SC_OK;
}

sc_status model_make(const sc_transformer *t, const model_where *w,
                     sc_source source, sc_arena *a, const sc_model **out,
                     sc_err *err)
{
    sc_model *m = SC_NEW(a, sc_model);
    if (!m) return sc_error_nomem(err);

    m->t = *t;
    m->source = source;
    SC_TRY(model_complete(&m->t, w, err));
    m->t.name = m->name = sc_strdup(a, m->t.name);
    if (!m->name) return sc_error_nomem(err);
    if (m->t.pattern) {
        m->t.pattern = sc_strdup(a, m->t.pattern);
        if (!m->t.pattern) return sc_error_nomem(err);
    }
    SC_TRY(generate(m, w->at[MODEL_LAYERS], a, err));
    if (!m->t.frozen) {
        *out = m;
        return SC_OK;
    }
    m->t.frozen = sc_strdup(a, m->t.frozen);
    if (!m->t.frozen) return sc_error_nomem(err);
    return sc_model_freeze(m, m->t.frozen, w->at[MODEL_FROZEN], a, out, err);
}

sc_status sc_model_from_transformer(const sc_transformer *t, sc_pos pos,
                                    sc_arena *a, const sc_model **out,
                                    sc_err *err)
{
    model_where w;
    model_where_all(&w, pos);
    return model_make(t, &w, (sc_source){0}, a, out, err);
}
