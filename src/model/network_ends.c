/* SPDX-License-Identifier: Apache-2.0 */
/* network_ends.c - builds embeddings and heads of transformers. */
#include "model/network.h"

#include <math.h>

/* Fraction of the tokens that BERT's loss covers (Devlin et al. 2019). */
#define MASKED_SHARE 0.15

/* ---- embedding */

static int64_t table_width(const sc_transformer *t)
{
    return t->embed_width ? t->embed_width : t->hidden;
}

static net_value words(network *n)
{
    const sc_transformer *t = n->t;
    const sc_tensor_dim dim[] = {{"batch", 1, true}, {"seq", n->seq, false}};
    n->ids = build_input(&n->b, "tokens", 2, dim, 8);
    net_value y = build_embed(&n->b, "embed", n->ids, (uint64_t)t->vocab,
                              (uint64_t)table_width(t), 1);
    if (y != SC_NONE) n->table = network_made(n, y)->weight[0].tensor;
    return y;
}

static net_value patches(network *n)
{
    const sc_transformer *t = n->t;
    const sc_tensor_dim dim[] = {
        {"batch", 1, true},
        {"seq", n->seq - 1, false},
        {"rank", (uint64_t)(3 * t->patch * t->patch), false}};
    build_product p = {.out_name = "hidden",
                       .out = (uint64_t)t->hidden,
                       .weight = SC_NONE,
                       .bias = true};
    return build_linear_named(&n->b, "patch",
                              build_input(&n->b, "patches", 3, dim, 0), &p);
}

/* A learned table.  It has a row per position, of which the first are used, or
 * one row for all positions. */
static net_value table(network *n, const char *name, sc_net_type type,
                       net_value x, int64_t rows)
{
    static const uint8_t same[] = {0, 1, 2};
    net_builder *b = &n->b;
    bool token = type == SC_NET_CONCAT;
    sc_net_op *g = build_open(b, name, type, 1, &x);
    if (!g) return SC_NONE;
    sc_tensor t = *build_tensor(b, x);
    if (token) t.dim[1].extent = n->seq;
    build_iters_of(g, &t);
    if (token) g->iter[1].kind = SC_I_OPAQUE;
    build_port(&g->in[0], same, 3);
    const sc_tensor_dim row[] = {{"position", (uint64_t)rows, false}, t.dim[2]};
    /* every rank keeps all rows, whichever positions it has */
    const uint8_t ws[] = {SC_NO_ITER, 2};
    if (rows > 1) {
        (void)build_weight(b, g, "weight", 2, row, ws);
    } else {
        (void)build_weight(b, g, "weight", 1, row + 1, ws + 1);
    }
    return build_close(b, g, 3, t.dim, same);
}

net_value network_embedding(network *n)
{
    const sc_transformer *t = n->t;
    net_value x = t->image ? patches(n) : words(n);
    if (t->image) x = table(n, "class_token", SC_NET_CONCAT, x, 1);
    /* T5's table belongs to attention */
    if (t->position == SC_POS_LEARNED)
        x = table(n, "position", SC_NET_POSITION, x, t->positions);
    if (t->encoder && !t->image && t->position == SC_POS_LEARNED)
        x = table(n, "token_type", SC_NET_POSITION, x, 2);
    if (t->embed_norm) x = network_norm(n, "embed_norm", x);
    if (t->dropout) x = build_dropout(&n->b, "embed_drop", x);
    return t->embed_width
               ? network_linear(n, "embed_proj", x, network_hidden(n), t->bias)
               : x;
}

net_value network_decoder_embedding(network *n)
{
    const sc_transformer *t = n->t;
    net_value x = network_words_again(n, "embed_decoder");
    if (t->position == SC_POS_LEARNED)
        x = table(n, "position_decoder", SC_NET_POSITION, x, t->positions);
    if (t->embed_norm) x = network_norm(n, "embed_decoder_norm", x);
    return t->dropout ? build_dropout(&n->b, "embed_decoder_drop", x) : x;
}

/* ---- heads */

/* A projection to the vocabulary or to classes; tied: with the embedding's
 * weight. */
static net_value words_of(network *n, const char *name, net_value x, bool bias,
                          bool tied)
{
    network_dim vocab = network_width("vocab", n->t->vocab, n->t->vocab);
    net_value w = !tied ? SC_NONE : n->head != SC_NONE ? n->head : n->table;
    net_value v =
        network_keep_bf16(n, network_product(n, name, x, vocab, bias, w));
    if (v != SC_NONE && !tied) n->head = network_made(n, v)->weight[0].tensor;
    return v;
}

/* Drops the tokens that the head does not use; if many remain, each part of a
 * sequence has some of them. */
static net_value chosen(network *n, net_value x, double fraction)
{
    uint64_t some = (uint64_t)llround(fraction * (double)n->seq);
    if (some == 0) some = 1;
    x = build_slice(&n->b, "chosen", x, 1, some);
    if (x != SC_NONE && some > 1) network_made(n, x)->iter[1].kind = SC_I_FREE;
    return x;
}

static void loss(network *n, const char *name, net_value x)
{
    const sc_tensor_dim dim[] = {{"batch", 1, true},
                                 {"seq", build_extent(&n->b, x, 1), false}};
    if (n->labels == SC_NONE)
        n->labels = build_input(&n->b, "labels", 2, dim, 8);
    (void)build_loss(&n->b, name, x, n->labels, true);
}

/* BERT's head reads only the masked tokens. */
static net_value masked(network *n, net_value x)
{
    const sc_transformer *t = n->t;
    x = chosen(n, x, MASKED_SHARE);
    x = network_linear(n, "mlm_dense", x, network_rank(table_width(t)),
                       t->bias);
    int act = t->act == SC_ACT_GEGLU ? SC_ACT_GELU : t->act; /* not gated */
    x = build_act(&n->b, "mlm_act", x, sc_act_names[act]);
    x = network_norm(n, "mlm_norm", x);
    return words_of(n, "lm_head", x, t->bias || t->head_bias, t->tied);
}

/* ELECTRA's discriminator has one output for each token. */
static net_value replaced(network *n, net_value x)
{
    const sc_transformer *t = n->t;
    int act = t->act == SC_ACT_GEGLU ? SC_ACT_GELU : t->act; /* not gated */
    x = network_linear(n, "found_dense", x, network_rank(t->hidden), t->bias);
    x = build_act(&n->b, "found_act", x, sc_act_names[act]);
    return network_linear(n, "found", x, network_width("vocab", 1, 1), t->bias);
}

/* ViT's head reads only the class token. */
static net_value class_of(network *n, net_value x)
{
    int64_t side = n->t->image / n->t->patch;
    x = chosen(n, x, 1.0 / (double)(side * side + 1));
    return words_of(n, "classifier", x, true, false);
}

/* Multi-token prediction uses the head's weight, each time after a norm of its
 * own. */
static void mtp_heads(network *n, const net_value *later, uint32_t n_later)
{
    for (uint32_t k = 0; n_later && k < n->t->mtp; k++) {
        if (k > 0) build_scope(&n->b, "head.%u", k);
        net_value x = later[k < n_later ? k : n_later - 1];
        x = network_norm(n, "mtp_norm", x);
        loss(n, "mtp_loss", words_of(n, "mtp_lm_head", x, false, true));
    }
}

void network_head(network *n, net_value x, const net_value *later,
                  uint32_t n_later)
{
    const sc_transformer *t = n->t;
    bool encoder = t->encoder && !t->image;
    build_scope(&n->b, "head");
    if (!model_post_norm(t)) x = network_norm(n, "norm_f", x);
    x = t->replaced ? replaced(n, x)
        : encoder   ? masked(n, x)
        : t->image  ? class_of(n, x)
                    : words_of(n, "lm_head", x, t->head_bias, t->tied);
    loss(n, "loss", x);
    if (!encoder && !t->image) mtp_heads(n, later, n_later);
}
