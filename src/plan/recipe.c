/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.c - names of precisions and of recipes of low precision. */
#include <stepcast/plan.h>

const char *const sc_recipe_names[] = {"fp32",      "tf32",    "fp16", "bf16",
                                       "fp8",       "nvfp4",   "int8", "mxfp8",
                                       "fp8-block", "fp8-row", NULL};

sc_precision sc_recipe_precision(sc_recipe r)
{
    if (r == SC_RECIPE_NVFP4) return SC_FP4;
    if (r == SC_RECIPE_INT8) return SC_INT8;
    return r >= SC_RECIPE_FP8 ? SC_FP8 : (sc_precision)r;
}
