/* SPDX-License-Identifier: Apache-2.0 */
/* axes.c - names of mesh axes. */
#include "base/util.h"
#include "plan/plan_axes.h"

#include <string.h>

const char *const sc_axis_names[] = {"pp",  "dp",   "ep",      "cp", "tp",
                                     "rep", "fsdp", "spatial", NULL};

_Static_assert(SC_COUNT(sc_axis_names) == SC_N_AX_NAMES + 1, "names");

sc_axis sc_axis_named(const char *name)
{
    sc_axis ax = 0;
    while (ax < SC_N_AX_NAMES && strcmp(name, sc_axis_names[ax]) != 0) ax++;
    return ax;
}
