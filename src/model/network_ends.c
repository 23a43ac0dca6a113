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

static network_product vocabulary(const network *n)
{
    network_product p = {
        .out = network_width("vocab", n->t->vocab, n->t->vocab), .wide = true};
    return p;
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
static void masked_head(network *n, gb_value x)
{
    const sc_transformer *t = n->t;
    network_product inner = {.out = network_width("rank", t->hidden, t->hidden),
                             .bias = t->bias};
    network_product words = vocabulary(n);
    words.bias = t->bias;
    words.tied = t->tied;
    x = chosen(n, x, MASKED_SHARE);
    x = network_linear(n, "mlm_dense", x, inner);
    x = gb_act(&n->b, "mlm_act", x, sc_act_names[t->act]);
    x = network_norm(n, "mlm_norm", x);
    x = network_linear(n, "lm_head", x, words);
    loss(n, "loss", x);
}

static void class_head(network *n, gb_value x)
{
    const sc_transformer *t = n->t;
    int64_t side = t->image / t->patch;
    network_product classes = {
        .out = network_width("vocab", t->classes, t->classes),
        .bias = true,
        .wide = true};
    x = chosen(n, x, 1.0 / (double)(side * side + 1));
    loss(n, "loss", network_linear(n, "classifier", x, classes));
}

/* Predictions of later tokens go through the head's weight, each behind a norm
 * of its own. */
static void mtp_heads(network *n, const gb_value *later, uint32_t n_later)
{
    network_product words = vocabulary(n);
    words.tied = true;
    for (uint32_t k = 0; n_later && k < n->t->mtp; k++) {
        if (k > 0) gb_scope(&n->b, "head.%u", k);
        gb_value x = later[k < n_later ? k : n_later - 1];
        x = network_norm(n, "mtp_norm", x);
        x = network_linear(n, "mtp_lm_head", x, words);
        loss(n, "mtp_loss", x);
    }
}

void network_head(network *n, gb_value x, const gb_value *later,
                  uint32_t n_later)
{
    const sc_transformer *t = n->t;
    gb_scope(&n->b, "head");
    if (t->encoder && !t->image) {
        masked_head(n, x);
        return;
    }
    x = network_norm(n, "norm_f", x);
    if (t->image) {
        class_head(n, x);
        return;
    }
    network_product words = vocabulary(n);
    words.bias = t->head_bias;
    words.tied = t->tied;
    x = network_linear(n, "lm_head", x, words);
    if (x != SC_NONE && !t->tied)
        n->head = network_made(n, x)->weight[0].tensor;
    loss(n, "loss", x);
    mtp_heads(n, later, n_later);
}
