/* SPDX-License-Identifier: Apache-2.0 */
/* zoo_retinanet.c - RetinaNet on ResNeXt-50 32x4d as in MLPerf's object
 * detection: the backbone's norms are fixed, its stem and first layer are
 * frozen, and both heads process five levels with the same weights. */
#include "model/zoo.h"

#include <stdio.h>

enum { LEVELS = 5, WIDTH = 256, ANCHORS = 9, CLASSES = 264, SIDE = 800 };

/* A norm whose statistics and scale are constants. */
static net_value conv_affine(net_builder *b, const char *conv, const char *norm,
                             net_value x, uint32_t out, build_window w)
{
    x = build_conv(b, conv, x, out, w);
    return build_elementwise(b, norm, x, SC_NONE, "scale and shift");
}

static net_value bottleneck(net_builder *b, net_value x, uint32_t planes,
                            uint32_t stride, bool first)
{
    uint32_t width = 2 * planes, out = 4 * planes; /* 32 groups of 4 */
    build_window one = {.k = 1}, down = {.k = 1, .stride = stride};
    build_window three = {.k = 3, .pad = 1, .stride = stride, .groups = 32};
    net_value y = conv_affine(b, "conv1", "bn1", x, width, one);
    y = build_act(b, "relu1", y, "relu");
    y = conv_affine(b, "conv2", "bn2", y, width, three);
    y = build_act(b, "relu2", y, "relu");
    y = conv_affine(b, "conv3", "bn3", y, out, one);
    if (first) x = conv_affine(b, "downsample.0", "downsample.1", x, out, down);
    return build_act(b, "relu3", build_add(b, "add", y, x), "relu");
}

/* The results of layers 2 to 4. */
static void backbone(net_builder *b, net_value x, net_value out[3])
{
    static const uint32_t blocks[] = {3, 4, 6, 3};
    build_window seven = {.k = 7, .stride = 2, .pad = 3};
    b->frozen = true;
    build_scope(b, "backbone.body");
    x = build_act(b, "relu", conv_affine(b, "conv1", "bn1", x, 64, seven),
                  "relu");
    x = build_pool(b, "maxpool", x,
                   (build_window){.k = 3, .stride = 2, .pad = 1});
    for (unsigned s = 0; s < SC_COUNT(blocks); s++) {
        b->frozen = s == 0;
        for (uint32_t i = 0; i < blocks[s]; i++) {
            build_scope(b, "backbone.body.layer%u.%u", s + 1, i);
            x = bottleneck(b, x, 64U << s, s && !i ? 2 : 1, i == 0);
        }
        if (s > 0) out[s - 1] = x;
    }
}

static void pyramid(net_builder *b, const net_value in[3],
                    net_value out[LEVELS])
{
    build_window one = {.k = 1, .bias = true};
    build_window three = {.k = 3, .pad = 1, .bias = true};
    build_window half = {.k = 3, .pad = 1, .stride = 2, .bias = true};
    net_value above = SC_NONE;
    build_scope(b, "backbone.fpn");
    for (int i = 2; i >= 0; i--) {
        char name[4][24];
        snprintf(name[0], sizeof name[0], "inner_blocks.%d", i);
        snprintf(name[1], sizeof name[1], "layer_blocks.%d", i);
        snprintf(name[2], sizeof name[2], "up.%d", i);
        snprintf(name[3], sizeof name[3], "add.%d", i);
        net_value x = build_conv(b, name[0], in[i], WIDTH, one);
        if (i < 2)
            x = build_add(b, name[3], x, build_upsample(b, name[2], above, 2));
        above = x;
        out[i] = build_conv(b, name[1], x, WIDTH, three);
    }
    out[3] = build_conv(b, "extra_blocks.p6", out[2], WIDTH, half);
    net_value x = build_act(b, "extra_blocks.relu", out[3], "relu");
    out[4] = build_conv(b, "extra_blocks.p7", x, WIDTH, half);
}

/* Four convolutions and an output convolution for each level; the predictions
 * are joined, with one row per anchor. */
static void head(net_builder *b, const char *path, const char *last,
                 const net_value level[LEVELS], uint32_t outputs)
{
    net_value first[5] = {0}, rows[LEVELS];
    uint64_t n = 0;
    for (int l = 0; l < LEVELS; l++) {
        net_value x = level[l];
        build_scope(b, "head.%s.level%d", path, l);
        for (int i = 0; i < 5; i++) {
            char name[2][16];
            snprintf(name[0], sizeof name[0], "conv.%d", 2 * i);
            snprintf(name[1], sizeof name[1], "conv.%d", 2 * i + 1);
            build_window w = {
                .k = 3, .pad = 1, .bias = true, .shared_with = first[i]};
            uint32_t out = i < 4 ? WIDTH : ANCHORS * outputs;
            x = build_conv(b, i < 4 ? name[0] : last, x, out, w);
            if (!first[i]) first[i] = x;
            if (i < 4) x = build_act(b, name[1], x, "relu");
        }
        uint64_t at = build_extent(b, x, 2) * build_extent(b, x, 3) * ANCHORS;
        const build_dim dim[] = {
            {"batch", 1, 0}, {"anchor", at, -1}, {"c", outputs, -1}};
        rows[l] = build_view(b, "permute", x, dim, 3, true);
        n += at;
    }
    build_scope(b, "head.%s", path);
    net_value x = build_concat(b, "concat", rows, LEVELS, 1);
    const sc_tensor_dim dim[] = {{"batch", 1, true}, {"anchor", n, false}};
    net_value target = build_input(b, path, 2, dim, 8);
    (void)build_loss(b, "loss", x, target, false);
}

void zoo_retinanet(net_builder *b)
{
    net_value body[3], level[LEVELS];
    backbone(b, build_image(b, 3, 2, SIDE), body);
    pyramid(b, body, level);
    head(b, "classification_head", "cls_logits", level, CLASSES);
    head(b, "regression_head", "bbox_reg", level, 4);
}
