/* SPDX-License-Identifier: Apache-2.0 */
/* zoo_unet3d.c - the 3-D U-Net of MLPerf's image segmentation: kidneys and
 * tumours in volumes of 128^3. */
#include "model/zoo.h"

#include <stdio.h>

static const uint32_t widths[] = {32, 64, 128, 256, 320, 320};

enum { LEVELS = SC_COUNT(widths), CLASSES = 3, SIDE = 128 };

static gb_value conv(gb_graph *b, int n, gb_value x, uint32_t out,
                     uint32_t stride)
{
    char name[3][24];
    snprintf(name[0], sizeof name[0], "conv%d.0", n);
    snprintf(name[1], sizeof name[1], "conv%d.1", n);
    snprintf(name[2], sizeof name[2], "conv%d.2", n);
    gb_window w = {.k = 3, .stride = stride, .pad = 1};
    x = gb_conv(b, name[0], x, out, w);
    x = gb_group_norm(b, name[1], x, 0);
    return gb_act(b, name[2], x, "relu");
}

static gb_value two(gb_graph *b, gb_value x, uint32_t out, uint32_t stride)
{
    return conv(b, 2, conv(b, 1, x, out, stride), out, 1);
}

void zoo_unet3d(gb_graph *b)
{
    gb_value level[LEVELS];
    gb_window up = {.k = 2, .stride = 2, .bias = true};
    gb_scope(b, "input_block");
    gb_value x = level[0] = two(b, gb_image(b, 1, 3, SIDE), widths[0], 1);
    for (int i = 1; i < LEVELS; i++) {
        if (i + 1 < LEVELS)
            gb_scope(b, "downsample.%d", i - 1);
        else
            gb_scope(b, "bottleneck");
        x = level[i] = two(b, x, widths[i], 2);
    }
    for (int i = LEVELS - 2; i >= 0; i--) {
        gb_scope(b, "upsample.%d", LEVELS - 2 - i);
        x = gb_conv_transposed(b, "upsample_conv", x, widths[i], up);
        const gb_value v[] = {x, level[i]};
        x = two(b, gb_concat(b, "concat", v, 2, 1), widths[i], 1);
    }
    gb_scope(b, "%s", "");
    x = gb_conv(b, "output", x, CLASSES, (gb_window){.k = 1, .bias = true});
    const sc_gdim dim[] = {{"batch", 1, true},
                           {"c", 1, false},
                           {"d", SIDE, false},
                           {"h", SIDE, false},
                           {"w", SIDE, false}};
    gb_value labels = gb_input(b, "labels", 5, dim, 1);
    (void)gb_loss(b, "loss", x, labels, false);
}
