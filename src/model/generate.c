/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.c - the layers of a dense transformer.
 *
 * Each operator is its list of iteration dims and, as bits of that list, which
 * of them index input, weight and output.
 */
#include "model/read.h"

/* Iteration dims by position; every operator starts with batch and seq. */
enum { B = 1, S = 2, D2 = 4, D3 = 8 };

#define TOKENS (B | S)

#define NO_SRC      (-2)
#define LAYER_INPUT (-1)

static sc_operator *op_add(sc_layer *l, const char *name, sc_op_type type)
{
    sc_operator *op = &l->op[l->n_ops];
    *op = (sc_operator){.name = name,
                        .type = (uint8_t)type,
                        .n_iter = 2,
                        .src = (int8_t)((int)l->n_ops - 1),
                        .src2 = NO_SRC};
    op->iter[0] = (sc_iter){SC_D_BATCH, SC_I_BATCH, 0, 0};
    op->iter[1] = (sc_iter){SC_D_SEQ, SC_I_BATCH, 0, 0};
    l->n_ops++;
    return op;
}

/* Elements of a dim, and the parts a parallel degree may not cut. */
static sc_iter dim_of(sc_dimname name, uint64_t extent, uint64_t units)
{
    sc_iter it = {(uint8_t)name, SC_I_FREE, extent,
                  units == extent ? 0 : (uint32_t)units};
    return it;
}

static void dim_add(sc_operator *op, sc_iter dim, sc_iter_kind kind)
{
    dim.kind = (uint8_t)kind;
    op->iter[op->n_iter++] = dim;
}

/* One dim beside batch and seq that input and output share. */
static sc_operator *add_pointwise(sc_layer *l, const char *name,
                                  sc_op_type type, sc_iter dim)
{
    sc_operator *op = op_add(l, name, type);
    op->iter[op->n_iter++] = dim;
    op->x = op->y = TOKENS | D2;
    return op;
}

static sc_operator *add_norm(sc_layer *l, const char *name,
                             const sc_transformer *t)
{
    uint64_t h = (uint64_t)t->hidden;
    sc_iter hidden = {SC_D_HIDDEN, SC_I_OPAQUE, h, 0};
    sc_operator *op = add_pointwise(l, name, SC_NORM, hidden);
    op->w = D2;
    op->bias = t->norm_bias ? h : 0;
    op->params = h + op->bias;
    return op;
}

static sc_operator *add_residual(sc_layer *l, const char *name,
                                 const sc_transformer *t, int residual)
{
    sc_iter hidden = {SC_D_HIDDEN, SC_I_FREE, (uint64_t)t->hidden, 0};
    sc_operator *op = add_pointwise(l, name, SC_DROPOUT_ADD, hidden);
    op->src2 = (int8_t)residual;
    return op;
}

static sc_operator *add_linear(sc_layer *l, const char *name, sc_iter in,
                               sc_iter out, bool bias)
{
    sc_operator *op = op_add(l, name, SC_LINEAR);
    dim_add(op, in, SC_I_REDUCE);
    dim_add(op, out, SC_I_FREE);
    op->x = TOKENS | D2;
    op->w = D2 | D3;
    op->y = TOKENS | D3;
    op->bias = bias ? out.extent : 0;
    op->params = in.extent * out.extent + op->bias;
    return op;
}

static void embedding(sc_layer *l, const sc_transformer *t)
{
    uint64_t h = (uint64_t)t->hidden, v = (uint64_t)t->vocab;
    l->path = "embedding";
    l->kind = SC_LAYER_EMBED;
    l->repeat = 1;

    sc_operator *op = op_add(l, "embed", SC_EMBED);
    dim_add(op, dim_of(SC_D_VOCAB, v, v), SC_I_REDUCE);
    dim_add(op, dim_of(SC_D_HIDDEN, h, h), SC_I_FREE);
    op->x = TOKENS;
    op->w = D2 | D3;
    op->y = TOKENS | D3;
    op->params = v * h;

    if (t->position == SC_POS_LEARNED) {
        op = add_pointwise(l, "position", SC_POSITION,
                           dim_of(SC_D_HIDDEN, h, h));
        op->w = D2;
        op->params = (uint64_t)t->positions * h;
    }
    if (t->embed_norm) add_norm(l, "embed_norm", t);
    if (t->dropout) add_residual(l, "embed_drop", t, NO_SRC);
}

static void attention(sc_layer *l, const sc_transformer *t)
{
    uint64_t heads = (uint64_t)t->heads, kv = (uint64_t)t->kv_heads;
    uint64_t d = (uint64_t)t->head_dim;
    sc_iter hidden =
        dim_of(SC_D_HIDDEN, (uint64_t)t->hidden, (uint64_t)t->hidden);

    add_norm(l, "norm1", t);
    add_linear(l, "qkv", hidden, dim_of(SC_D_HEAD, (heads + 2 * kv) * d, heads),
               t->qkv_bias);
    if (t->position == SC_POS_ROTARY) {
        add_pointwise(l, "rope", SC_ROPE,
                      dim_of(SC_D_HEAD, (heads + kv) * d, heads));
    }
    sc_operator *op = add_pointwise(l, "attn", SC_ATTENTION,
                                    dim_of(SC_D_HEAD, heads * d, heads));
    op->iter[1].kind = SC_I_OPAQUE;
    op->window = (uint64_t)t->window;
    add_linear(l, "proj", dim_of(SC_D_HEAD, heads * d, heads), hidden, t->bias);
}

static void block(sc_layer *l, const sc_transformer *t)
{
    uint64_t f = (uint64_t)t->ffn;
    sc_iter hidden =
        dim_of(SC_D_HIDDEN, (uint64_t)t->hidden, (uint64_t)t->hidden);
    l->path = "layers.*";
    l->kind = SC_LAYER_BLOCK;
    l->repeat = (uint32_t)t->layers;

    attention(l, t);
    add_residual(l, "add1", t, LAYER_INPUT);
    int add1 = (int)l->n_ops - 1;
    sc_operator *norm2 = add_norm(l, "norm2", t);
    if (t->parallel) norm2->src = LAYER_INPUT;
    add_linear(l, "fc1", hidden,
               dim_of(SC_D_FFN, model_gated(t) ? 2 * f : f, f), t->bias);
    add_pointwise(l, "act", SC_ACT, dim_of(SC_D_FFN, f, f));
    add_linear(l, "fc2", dim_of(SC_D_FFN, f, f), hidden, t->bias);
    add_residual(l, "add2", t, add1);
}

static void head(sc_layer *l, const sc_transformer *t)
{
    uint64_t h = (uint64_t)t->hidden, v = (uint64_t)t->vocab;
    l->path = "head";
    l->kind = SC_LAYER_HEAD;
    l->repeat = 1;

    add_norm(l, "norm_f", t);
    sc_operator *op = add_linear(l, "lm_head", dim_of(SC_D_HIDDEN, h, h),
                                 dim_of(SC_D_VOCAB, v, v), false);
    if (t->tied) op->params = 0;

    op = op_add(l, "loss", SC_LOSS);
    dim_add(op, dim_of(SC_D_VOCAB, v, v), SC_I_REDUCE);
    op->x = TOKENS | D2;
    op->y = TOKENS;
}

static uint64_t layer_params(const sc_layer *l)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < l->n_ops; i++) sum += l->op[i].params;
    return sum;
}

/* Beyond 2^53 a count is not exact as a double. */
#define MAX_PARAMS (UINT64_C(1) << 53)

static bool count_params(sc_model *m)
{
    m->params = 0;
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const sc_layer *l = &m->layer[i];
        uint64_t one = layer_params(l);
        if (one > (MAX_PARAMS - m->params) / l->repeat) return false;
        m->params += one * l->repeat;
    }
    return true;
}

/* Of what the layers are made from; the name changes nothing. */
static uint64_t hash_of(const sc_transformer *t)
{
    const int64_t v[] = {t->layers,    t->hidden,     t->heads,    t->kv_heads,
                         t->head_dim,  t->ffn,        t->vocab,    t->max_seq,
                         t->positions, t->window,     t->position, t->act,
                         t->norm,      t->tied,       t->bias,     t->qkv_bias,
                         t->norm_bias, t->embed_norm, t->dropout,  t->parallel};
    return sc_hash(v, sizeof v, 0);
}

sc_status model_generate(sc_model *m, sc_pos pos, sc_arena *a, sc_err *err)
{
    m->n_layers = 3;
    m->layer = SC_NEW_N(a, sc_layer, m->n_layers);
    if (!m->layer) return sc_error_nomem(err);

    embedding(&m->layer[0], &m->t);
    block(&m->layer[1], &m->t);
    head(&m->layer[2], &m->t);
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
    SC_TRY(model_generate(m, w->at[MODEL_LAYERS], a, err));
    *out = m;
    return SC_OK;
}

sc_status sc_model_from_transformer(const sc_transformer *t, sc_pos pos,
                                    sc_arena *a, const sc_model **out,
                                    sc_err *err)
{
    model_where w;
    model_where_all(&w, pos);
    return model_make(t, &w, (sc_source){0}, a, out, err);
}
