/* SPDX-License-Identifier: Apache-2.0 */
/* operators.c - which arguments of PyTorch's operators are parameters. */
#include "et/et.h"

#include <string.h>

/* Bits of the arguments. */
#define WEIGHT_AND_BIAS (1u << 1 | 1u << 2)

static const struct {
    const char *name;
    uint32_t places;
} weights[] = {
    {"linear", WEIGHT_AND_BIAS},
    {"conv1d", WEIGHT_AND_BIAS},
    {"conv2d", WEIGHT_AND_BIAS},
    {"conv3d", WEIGHT_AND_BIAS},
    {"convolution", WEIGHT_AND_BIAS},
    {"conv_transpose1d", WEIGHT_AND_BIAS},
    {"conv_transpose2d", WEIGHT_AND_BIAS},
    {"conv_transpose3d", WEIGHT_AND_BIAS},
    {"embedding", 1u << 0},
    {"embedding_bag", 1u << 0},
    {"batch_norm", 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4},
    {"layer_norm", 1u << 2 | 1u << 3},
    {"native_layer_norm", 1u << 2 | 1u << 3},
    {"group_norm", 1u << 2 | 1u << 3},
    {"rms_norm", 1u << 2},
};

bool sc_et_is_parameter(const char *op, uint32_t argument)
{
    const char *own = strstr(op, "::");
    own = own ? own + 2 : op;
    for (size_t i = 0; i < SC_COUNT(weights); i++)
        if (strcmp(weights[i].name, own) == 0)
            return argument < 32 && weights[i].places >> argument & 1;
    return false;
}
