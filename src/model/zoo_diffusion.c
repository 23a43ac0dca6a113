/* SPDX-License-Identifier: Apache-2.0 */
/* zoo_diffusion.c - the U-Net of Stable Diffusion v2 on latents of 64x64, with
 * the paths of its checkpoints, alone or behind its text encoder.  What does
 * not learn and is not there gives inputs: latents, the encoded text. */
#include "model/zoo.h"

#include <stdio.h>
#include <string.h>

enum {
    CHANNELS = 320,
    LATENT = 4,
    SIDE = 64,
    TEXT = 77,
    TEXT_WIDTH = 1024,
    TEXT_LAYERS = 23, /* of 24: the last one's result is not used */
    TEXT_HEADS = 16,
    WORDS = 49408,
    EMB = 4 * CHANNELS,
    HEAD = 64,
    GROUPS = 32,
    LEVELS = 4,
    ATTENTION_LEVELS = 3, /* the lowest resolution has none */
    PER_LEVEL = 2,
    SKIPS = LEVELS * (PER_LEVEL + 1)
};

static const uint32_t mult[LEVELS] = {1, 2, 4, 4};
static const gb_window three = {.k = 3, .pad = 1, .bias = true};
static const gb_window half = {.k = 3, .pad = 1, .stride = 2, .bias = true};
static const gb_window one = {.k = 1, .bias = true};

typedef struct net {
    gb_graph *b;
    gb_value emb;  /* of the time step */
    gb_value text; /* [batch, text, 1024] */
    gb_value skip[SKIPS];
    int n_skips;
    int n_out; /* number of the next output block */
} net;

static gb_value norm_act_conv(gb_graph *b, const char *path, gb_value x,
                              uint32_t out)
{
    char name[3][24];
    int conv = strcmp(path, "out_layers") == 0 ? 3 : 2;
    snprintf(name[0], sizeof name[0], "%s.0", path);
    snprintf(name[1], sizeof name[1], "%s.1", path);
    snprintf(name[2], sizeof name[2], "%s.%d", path, conv);
    x = gb_group_norm(b, name[0], x, GROUPS);
    x = gb_act(b, name[1], x, "silu");
    return gb_conv(b, name[2], x, out, three);
}

static gb_value residual(const net *n, const char *path, gb_value x,
                         uint32_t out)
{
    gb_graph *b = n->b;
    gb_scope(b, "%s", path);
    gb_value y = norm_act_conv(b, "in_layers", x, out);
    gb_value e = gb_act(b, "emb_layers.0", n->emb, "silu");
    e = gb_linear(b, "emb_layers.1", e, out, true);
    y = gb_add(b, "emb_add", y, e);
    y = norm_act_conv(b, "out_layers", y, out);
    if (gb_extent(b, x, 1) != out)
        x = gb_conv(b, "skip_connection", x, out, one);
    return gb_add(b, "add", y, x);
}

/* Attention to `from`: the rows of x themselves, or the text. */
static gb_value attend(gb_graph *b, const char *path, gb_value x, gb_value from)
{
    char name[5][24];
    static const char *const parts[] = {"to_q", "to_k", "to_v", "core",
                                        "to_out.0"};
    for (int i = 0; i < 5; i++)
        snprintf(name[i], sizeof name[i], "%s.%s", path, parts[i]);
    uint64_t c = gb_extent(b, x, 2);
    gb_product p = {.out_name = "head",
                    .out = c,
                    .out_units = (uint32_t)(c / HEAD),
                    .weight = SC_NONE};
    gb_product out = {.out_name = "c",
                      .out = c,
                      .in_units = p.out_units,
                      .weight = SC_NONE,
                      .bias = true};
    gb_attend at = {
        .heads = p.out_units, .out = c, .qk_dim = HEAD, .v_dim = HEAD};
    at.q = gb_linear_named(b, name[0], x, &p);
    at.k = gb_linear_named(b, name[1], from, &p);
    at.v = gb_linear_named(b, name[2], from, &p);
    return gb_linear_named(b, name[4], gb_attention(b, name[3], &at), &out);
}

/* A gated product: half of the first one multiplies the other half. */
static gb_value feed_forward(gb_graph *b, gb_value x)
{
    uint64_t c = gb_extent(b, x, 2);
    gb_product up = {.out_name = "ffn",
                     .out = 8 * c,
                     .out_units = (uint32_t)(4 * c),
                     .weight = SC_NONE,
                     .bias = true};
    gb_product down = {
        .out_name = "c", .out = c, .weight = SC_NONE, .bias = true};
    x = gb_linear_named(b, "ff.net.0.proj", x, &up);
    x = gb_act_gated(b, "ff.net.0.act", x, "geglu");
    return gb_linear_named(b, "ff.net.2", x, &down);
}

static gb_value transformer(const net *n, const char *path, gb_value x)
{
    gb_graph *b = n->b;
    uint64_t c = gb_extent(b, x, 1), h = gb_extent(b, x, 2);
    const gb_dim rows[] = {{"batch", 1, 0}, {"seq", h * h, 2}, {"c", c, 1}};
    const gb_dim image[] = {
        {"batch", 1, 0}, {"c", c, 2}, {"h", h, 1}, {"w", h, -1}};
    gb_scope(b, "%s", path);
    gb_value y = gb_group_norm(b, "norm", x, GROUPS);
    y = gb_view(b, "to_rows", y, rows, 3, true);
    y = gb_linear(b, "proj_in", y, c, true);
    gb_scope(b, "%s.transformer_blocks.0", path);
    gb_value z = gb_layer_norm(b, "norm1", y, true);
    y = gb_add(b, "add1", attend(b, "attn1", z, z), y);
    z = gb_layer_norm(b, "norm2", y, true);
    y = gb_add(b, "add2", attend(b, "attn2", z, n->text), y);
    z = gb_layer_norm(b, "norm3", y, true);
    y = gb_add(b, "add3", feed_forward(b, z), y);
    gb_scope(b, "%s", path);
    y = gb_linear(b, "proj_out", y, c, true);
    y = gb_view(b, "to_image", y, image, 4, true);
    return gb_add(b, "add", y, x);
}

static void keep(net *n, gb_value x)
{
    n->skip[n->n_skips++] = x;
}

static gb_value down(net *n, gb_value x)
{
    char path[40];
    for (int level = 0; level < LEVELS; level++) {
        for (int i = 0; i < PER_LEVEL; i++) {
            snprintf(path, sizeof path, "input_blocks.%d.0", n->n_skips);
            x = residual(n, path, x, mult[level] * CHANNELS);
            snprintf(path, sizeof path, "input_blocks.%d.1", n->n_skips);
            if (level < ATTENTION_LEVELS) x = transformer(n, path, x);
            keep(n, x);
        }
        if (level + 1 == LEVELS) break;
        gb_scope(n->b, "input_blocks.%d.0", n->n_skips);
        x = gb_conv(n->b, "op", x, mult[level] * CHANNELS, half);
        keep(n, x);
    }
    return x;
}

/* Each block also reads the value of the way down that has its size. */
static gb_value up_block(net *n, gb_value x, int level, bool last)
{
    char path[40];
    int at = n->n_out++, part = 1;
    gb_scope(n->b, "output_blocks.%d.0", at);
    const gb_value both[] = {x, n->skip[--n->n_skips]};
    x = gb_concat(n->b, "concat", both, 2, 1);
    snprintf(path, sizeof path, "output_blocks.%d.0", at);
    x = residual(n, path, x, mult[level] * CHANNELS);
    snprintf(path, sizeof path, "output_blocks.%d.1", at);
    if (level < ATTENTION_LEVELS) {
        x = transformer(n, path, x);
        part = 2;
    }
    if (!last || level == 0) return x;
    gb_scope(n->b, "output_blocks.%d.%d", at, part);
    x = gb_upsample(n->b, "up", x, 2);
    return gb_conv(n->b, "conv", x, mult[level] * CHANNELS, three);
}

/* ---- the text encoder of OpenCLIP ViT-H */

static gb_value text_layer(gb_graph *b, gb_value x)
{
    gb_product qkv = {.out_name = "head",
                      .out = (uint64_t)3 * TEXT_WIDTH,
                      .out_units = TEXT_HEADS,
                      .weight = SC_NONE,
                      .bias = true};
    gb_product out = {.out_name = "c",
                      .out = TEXT_WIDTH,
                      .in_units = TEXT_HEADS,
                      .weight = SC_NONE,
                      .bias = true};
    gb_product up = {.out_name = "ffn",
                     .out = (uint64_t)4 * TEXT_WIDTH,
                     .weight = SC_NONE,
                     .bias = true};
    gb_product down = {
        .out_name = "c", .out = TEXT_WIDTH, .weight = SC_NONE, .bias = true};
    gb_attend at = {.k = SC_NONE,
                    .v = SC_NONE,
                    .heads = TEXT_HEADS,
                    .out = TEXT_WIDTH,
                    .qk_dim = HEAD,
                    .v_dim = HEAD,
                    .causal = true};
    at.q = gb_linear_named(b, "attn.in_proj", gb_layer_norm(b, "ln_1", x, true),
                           &qkv);
    gb_value y = gb_attention(b, "attn.core", &at);
    y = gb_linear_named(b, "attn.out_proj", y, &out);
    x = gb_add(b, "add1", x, y);
    y = gb_linear_named(b, "mlp.c_fc", gb_layer_norm(b, "ln_2", x, true), &up);
    y = gb_act(b, "mlp.gelu", y, "gelu");
    return gb_add(b, "add2", x, gb_linear_named(b, "mlp.c_proj", y, &down));
}

static gb_value positions(gb_graph *b, gb_value x)
{
    static const uint8_t at[] = {0, 1, 2};
    sc_gop *op = gb_open(b, "positional_embedding", SC_G_ELEMENTWISE, 1, &x);
    if (!op) return SC_NONE;
    sc_gtensor t = *gb_tensor(b, x);
    gb_iters_of(op, &t);
    gb_port(&op->in[0], at, 3);
    (void)gb_weight(b, op, "weight", 2, t.dim + 1, at + 1);
    gb_function(op, "sum");
    return gb_close(b, op, 3, t.dim, at);
}

static gb_value text_encoder(gb_graph *b)
{
    const sc_gdim words[] = {{"batch", 1, true}, {"text", TEXT, false}};
    b->frozen = true;
    gb_scope(b, "text");
    gb_value x = gb_input(b, "words", 2, words, 8);
    x = gb_embed(b, "token_embedding", x, WORDS, TEXT_WIDTH, 1);
    x = positions(b, x);
    for (int i = 0; i < TEXT_LAYERS; i++) {
        gb_scope(b, "text.resblocks.%d", i);
        x = text_layer(b, x);
    }
    gb_scope(b, "text");
    x = gb_layer_norm(b, "ln_final", x, true);
    b->frozen = false;
    return x;
}

/* ---- both */

static gb_value encoded_text(gb_graph *b)
{
    const sc_gdim text[] = {
        {"batch", 1, true}, {"text", TEXT, false}, {"c", TEXT_WIDTH, false}};
    return gb_input(b, "text", 3, text, 0);
}

static void unet(gb_graph *b, gb_value text)
{
    const sc_gdim latent[] = {{"batch", 1, true},
                              {"c", LATENT, false},
                              {"h", SIDE, false},
                              {"w", SIDE, false}};
    const sc_gdim time[] = {{"batch", 1, true}, {"c", CHANNELS, false}};
    net n = {.b = b, .text = text};
    gb_value x = gb_input(b, "latent", 4, latent, 0);
    gb_value target = gb_input(b, "target", 4, latent, 0);
    gb_scope(b, "time_embed");
    n.emb = gb_input(b, "timestep", 2, time, 0);
    n.emb = gb_linear(b, "0", n.emb, EMB, true);
    n.emb = gb_act(b, "1", n.emb, "silu");
    n.emb = gb_linear(b, "2", n.emb, EMB, true);
    gb_scope(b, "input_blocks.0");
    x = gb_conv(b, "0", x, CHANNELS, three);
    keep(&n, x);
    x = down(&n, x);
    uint32_t widest = mult[LEVELS - 1] * CHANNELS;
    x = residual(&n, "middle_block.0", x, widest);
    x = transformer(&n, "middle_block.1", x);
    x = residual(&n, "middle_block.2", x, widest);
    for (int level = LEVELS - 1; level >= 0; level--)
        for (int i = 0; i <= PER_LEVEL; i++)
            x = up_block(&n, x, level, i == PER_LEVEL);
    gb_scope(b, "%s", "");
    x = norm_act_conv(b, "out", x, LATENT);
    (void)gb_loss(b, "loss", x, target, false);
}

void zoo_sd_unet(gb_graph *b)
{
    unet(b, encoded_text(b));
}

void zoo_sd_v2(gb_graph *b)
{
    unet(b, text_encoder(b));
}
