/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et_forward.c - finds the nodes of a trace that form one step's forward pass.
 *
 * Nodes form a tree of threads, steps, modules, operators and the calls inside
 * operators.  Of the first step that computes something, the forward pass is
 * the operators that no other operator calls, up to the first one of autograd's
 * engine.  Later operators on the same thread belong to the optimizer.
 */
#include "model/et.h"

#include <string.h>

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static const et_node *parent_of(const et_trace *t, const et_node *n)
{
    uint32_t at = 0;
    SC_FIRST(at, t->n, mid, t->node[mid].id >= n->parent);
    if (at == t->n || t->node[at].id != n->parent || &t->node[at] == n)
        return NULL;
    return &t->node[at];
}

bool et_is_operator(const char *name)
{
    static const char *const others[] = {
        "c10d::", "nccl:", "torch::", "profiler::", NULL};
    if (!strstr(name, "::")) return false;
    for (const char *const *o = others; *o; o++)
        if (starts(name, *o)) return false;
    return true;
}

static bool is_op(const et_node *n)
{
    return !n->backward && n->n_out > 0 && et_is_operator(n->name);
}

/* Whether the node calls something other than the forward pass. */
static bool is_other(const et_node *n)
{
    return n->backward || starts(n->name, "Optimizer.") ||
           strcmp(n->name, "## backward ##") == 0 ||
           strcmp(n->name, "## optimizer ##") == 0;
}

/* Largest depth of a node below the root. */
enum { MAX_UP = 64 };

static bool on_top(const et_trace *t, const et_node *n)
{
    const et_node *p = parent_of(t, n);
    for (int i = 0; p && i < MAX_UP; i++, p = parent_of(t, p))
        if (is_op(p) || is_other(p)) return false;
    return !is_other(n);
}

bool et_computes(const char *name)
{
    static const char *const words[] = {"conv", "linear", "mm", "matmul", NULL};
    for (const char *const *w = words; *w; w++)
        if (strstr(name, *w)) return true;
    return false;
}

/* Collects the nodes of [from, to) that belong to the forward pass; NULL: only
 * counts them.  `works`: one of them is a product. */
static uint32_t take(const et_trace *t, uint32_t from, uint32_t to,
                     uint32_t *index, bool *works)
{
    uint32_t n = 0;
    *works = false;
    for (uint32_t i = from; i < to && !t->node[i].backward; i++) {
        const et_node *node = &t->node[i];
        if (!is_op(node) || !on_top(t, node)) continue;
        *works |= et_computes(node->name);
        if (index) index[n] = i;
        n++;
    }
    return n;
}

static uint32_t next_step(const et_trace *t, uint32_t i)
{
    for (; i < t->n; i++)
        if (sc_et_is_step(t->node[i].name, strlen(t->node[i].name))) break;
    return i;
}

sc_status et_forward(const et_trace *t, sc_arena *a, uint32_t **index,
                     uint32_t *n, sc_err *err)
{
    bool works = false;
    uint32_t from = next_step(t, 0), to = t->n;
    while (from < t->n) {
        to = next_step(t, from + 1);
        if (take(t, from, to, NULL, &works) > 0 && works) break;
        from = to;
    }
    if (!works) { /* the trace does not mark steps */
        from = 0;
        to = t->n;
        (void)take(t, from, to, NULL, &works);
    }
    sc_pos pos = t->n ? t->node[0].pos : sc_pos_none();
    if (!works)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, pos,
                        "record a whole step with ExecutionTraceObserver",
                        "the trace has no forward pass with shapes");
    *index = SC_NEW_N(a, uint32_t, to - from);
    if (!*index) return sc_error_nomem(err);
    *n = take(t, from, to, *index, &works);
    return SC_OK;
}
