/* SPDX-License-Identifier: Apache-2.0 */
/* network_ends.c - what a transformer starts with, and its heads. */
#include "model/network.h"

#include <math.h>

/* BERT learns from this part of its tokens (Devlin et al. 2019). */
#define MASKED_SHARE 0.15

/* ---- embedding */

static gb_value words(network *n)
{
    const sc_transformer *t = n->t;
    const sc_gdim dim[] = {{"batch", 1, true}, {"seq", n->seq, false}};
    n->ids = gb_input(&n->b, "tokens", 2, dim, 8);
    gb_value y = gb_embed(&n->b, "embed", n->ids, (uint64_t)t->vocab,
                          (uint64_t)t->hidden, 1);
    if (y != SC_NONE) n->table = network_made(n, y)->weight[0].tensor;
    return y;
}

static gb_value patches(network *n)
{
    const sc_transformer *t = n->t;
    const sc_gdim dim[] = {
        {"batch", 1, true},
        {"seq", n->seq - 1, false},
        {"rank", (uint64_t)(3 * t->patch * t->patch), false}};
    gb_product p = {.out_name = "hidden",
                    .out = (uint64_t)t->hidden,
                    .weight = SC_NONE,
                    .bias = true};
    return gb_linear_named(&n->b, "patch",
                           gb_input(&n->b, "patches", 3, dim, 0), &p);
}

/* A row per position, of which the first are used; or one for all. */
static gb_value table(network *n, const char *name, sc_gtype type, gb_value x,
                      int64_t rows)
{
    static const uint8_t same[] = {0, 1, 2};
    gb_graph *b = &n->b;
    bool token = type == SC_G_CONCAT;
    sc_gop *g = gb_open(b, name, type, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(b, x);
    if (token) t.dim[1].extent = n->seq;
    gb_iters_of(g, &t);
    if (token) g->iter[1].kind = SC_I_OPAQUE;
    gb_port(&g->in[0], same, 3);
    const sc_gdim row[] = {{"position", (uint64_t)rows, false}, t.dim[2]};
    /* every rank keeps all rows, whatever positions it has */
    const uint8_t ws[] = {SC_G_NO_ITER, 2};
    if (rows > 1) {
        (void)gb_weight(b, g, "weight", 2, row, ws);
    } else {
        (void)gb_weight(b, g, "weight", 1, row + 1, ws + 1);
    }
    return gb_close(b, g, 3, t.dim, same);
}

gb_value network_embedding(network *n)
{
    const sc_transformer *t = n->t;
    gb_value x = t->image ? patches(n) : words(n);
    if (t->image) x = table(n, "class_token", SC_G_CONCAT, x, 1);
    /* T5's table is one of attention. */
    if (t->position == SC_POS_LEARNED)
        x = table(n, "position", SC_G_POSITION, x, t->positions);
    if (t->encoder && !t->image)
        x = table(n, "token_type", SC_G_POSITION, x, 2);
    if (t->embed_norm) x = network_norm(n, "embed_norm", x);
    return t->dropout ? gb_dropout(&n->b, "embed_drop", x) : x;
}

/* ---- heads */

/* Of words or classes; tied: with the weight that there is. */
static gb_value words_of(network *n, const char *name, gb_value x, bool bias,
                         bool tied)
{
    network_dim vocab = network_width("vocab", n->t->vocab, n->t->vocab);
    gb_value w = !tied ? SC_NONE : n->head != SC_NONE ? n->head : n->table;
    gb_value v = network_wide(n, network_product(n, name, x, vocab, bias, w));
    if (v != SC_NONE && !tied) n->head = network_made(n, v)->weight[0].tensor;
    return v;
}

/* Tokens that the head does not run on are left out before it; each part of a
 * sequence has some of those that are left, if they are many. */
static gb_value chosen(network *n, gb_value x, double share)
{
    uint64_t some = (uint64_t)llround(share * (double)n->seq);
    if (some == 0) some = 1;
    x = gb_slice(&n->b, "chosen", x, 1, some);
    if (x != SC_NONE && some > 1) network_made(n, x)->iter[1].kind = SC_I_FREE;
    return x;
}

static void loss(network *n, const char *name, gb_value x)
{
    const sc_gdim dim[] = {{"batch", 1, true},
                           {"seq", gb_extent(&n->b, x, 1), false}};
    if (n->labels == SC_NONE) n->labels = gb_input(&n->b, "labels", 2, dim, 8);
    (void)gb_loss(&n->b, name, x, n->labels, true);
}

/* BERT's head reads the masked tokens only. */
static gb_value masked(network *n, gb_value x)
{
    const sc_transformer *t = n->t;
    x = chosen(n, x, MASKED_SHARE);
    x = network_linear(n, "mlm_dense", x, network_rank(t->hidden), t->bias);
    x = gb_act(&n->b, "mlm_act", x, sc_act_names[t->act]);
    x = network_norm(n, "mlm_norm", x);
    return words_of(n, "lm_head", x, t->bias, t->tied);
}

/* ViT's one token. */
static gb_value class_of(network *n, gb_value x)
{
    int64_t side = n->t->image / n->t->patch;
    x = chosen(n, x, 1.0 / (double)(side * side + 1));
    return words_of(n, "classifier", x, true, false);
}

/* Predictions of later tokens go through the head's weight, each behind a norm
 * of its own. */
static void mtp_heads(network *n, const gb_value *later, uint32_t n_later)
{
    for (uint32_t k = 0; n_later && k < n->t->mtp; k++) {
        if (k > 0) gb_scope(&n->b, "head.%u", k);
        gb_value x = later[k < n_later ? k : n_later - 1];
        x = network_norm(n, "mtp_norm", x);
        loss(n, "mtp_loss", words_of(n, "mtp_lm_head", x, false, true));
    }
}

void network_head(network *n, gb_value x, const gb_value *later,
                  uint32_t n_later)
{
    const sc_transformer *t = n->t;
    bool encoder = t->encoder && !t->image;
    gb_scope(&n->b, "head");
    if (!encoder) x = network_norm(n, "norm_f", x);
    x = encoder    ? masked(n, x)
        : t->image ? class_of(n, x)
                   : words_of(n, "lm_head", x, t->head_bias, t->tied);
    loss(n, "loss", x);
    if (!encoder && !t->image) mtp_heads(n, later, n_later);
}
