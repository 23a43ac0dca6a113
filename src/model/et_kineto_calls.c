/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et_kineto_calls.c - whether a step calls a model several times, as a loop that
 * generates does.
 *
 * Parameters that are used again would count again.  In a trace with gradients
 * their sum would show it; without, a loop shows itself as a sequence of
 * parameters that is repeated and has repeated layers inside.  Layers have none.
 */
#include "et/et.h"
#include "model/et_kineto.h"

#include <string.h>

#define MOST_USES    20000 /* of parameters; more are not looked through */
#define LEAST_LAYERS 4
#define LEAST_LAYER  2 /* uses of parameters in a layer */

/* What an operator does with which parameters; 0: it has none. */
static uint64_t use_of(const kineto_op *o)
{
    const et_node *n = o->node;
    bool product = strcmp(o->what, "addmm") == 0 || strcmp(o->what, "mm") == 0;
    uint64_t h = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        bool operand = product && i + 1 == n->n_in;
        if (n->in[i].n != 1 || n->in[i].t->n_dim == 0) continue;
        if (!operand && !sc_et_is_parameter(o->what, i)) continue;
        h = sc_hash(n->in[i].t->dim, n->in[i].t->n_dim * sizeof(uint64_t),
                    h + i + 1);
    }
    return h ? sc_hash(o->what, strlen(o->what), h) : 0;
}

/* How many uses from `i` on equal those `period` later. */
static uint32_t equal_run(const uint64_t *v, uint32_t n, uint32_t i,
                          uint32_t period)
{
    uint32_t k = i;
    while (k + period < n && v[k] == v[k + period]) k++;
    return k - i;
}

/* Whether v[0 .. n) is several times the same. */
static bool is_power(const uint64_t *v, uint32_t n)
{
    for (uint32_t d = 1; d <= n / 2; d++)
        if (n % d == 0 && equal_run(v, n, 0, d) == n - d) return true;
    return false;
}

static bool has_layers(const uint64_t *v, uint32_t n)
{
    for (uint32_t d = LEAST_LAYER; d * LEAST_LAYERS <= n; d++)
        for (uint32_t i = 0; i + d * LEAST_LAYERS <= n;) {
            uint32_t run = equal_run(v, n, i, d);
            if (run >= d * (LEAST_LAYERS - 1)) return true;
            i += run + 1;
        }
    return false;
}

/* How often a sequence with layers follows itself; 1: none does. */
static uint32_t count_calls(const uint64_t *v, uint32_t n, uint32_t *at)
{
    for (uint32_t p = n / 2; p >= LEAST_LAYER * LEAST_LAYERS; p--)
        for (uint32_t i = 0; i + 2 * p <= n;) {
            uint32_t run = equal_run(v, n, i, p);
            *at = i;
            if (run >= p && !is_power(v + i, p) && has_layers(v + i, p))
                return (run + p) / p;
            i += run + 1;
        }
    return 1;
}

sc_status kineto_check_calls(const kineto_op *op, uint32_t n, sc_arena *a,
                             sc_err *err)
{
    uint64_t *v = SC_RAW_N(a, uint64_t, n);
    uint32_t *of = SC_RAW_N(a, uint32_t, n);
    uint32_t n_uses = 0, at = 0;
    if (!v || !of) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t use = use_of(&op[i]);
        if (!use) continue;
        of[n_uses] = i;
        v[n_uses++] = use;
    }
    if (n_uses > MOST_USES) return SC_OK;
    uint32_t calls = count_calls(v, n_uses, &at);
    if (calls == 1) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, op[of[at]].node->pos,
                    "call the profiler's step() after each call of the model",
                    "the step calls a model %u times from here on, whose "
                    "parameters would count as often",
                    calls);
}
