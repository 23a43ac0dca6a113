/* SPDX-License-Identifier: Apache-2.0 */
/* figure.c - adds up the memory that figures of Korthikanti et al. 2022
 * show. */
#include "calib/figure.h"

#include <string.h>

static bool starts(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static bool ends(const char *name, const char *with)
{
    size_t n = strlen(name), m = strlen(with);
    return n > m && strcmp(name + n - m, with) == 0;
}

/* Whether the layers keep it. The first layer's input is a result of the
 * embedding. */
static bool of_layers(const sc_lifetime *l)
{
    bool input = starts(l->name, "embedding.") && ends(l->name, " out");
    return l->device == 0 && (starts(l->name, "layers.") || input);
}

static bool is_gradient(const sc_lifetime *l)
{
    return ends(l->name, " grad");
}

/* The operation that contains a part. */
static sc_op op_of(const sc_graph *g, uint32_t part)
{
    sc_op next = 1;
    SC_FIRST(next, g->n_ops, mid, sc_part_first(g, mid) > part);
    return next - 1;
}

static sc_time start_of(const sc_net_step *s, uint32_t part)
{
    const sc_graph *g = &s->plan.step;
    sc_op op = op_of(g, part);
    return sc_part_start(g, &s->run, op, part - sc_part_first(g, op));
}

static sc_time end_of(const sc_net_step *s, uint32_t part)
{
    const sc_graph *g = &s->plan.step;
    sc_op op = op_of(g, part);
    return sc_part_end(g, &s->run, op, part - sc_part_first(g, op));
}

static bool lives_at(const sc_net_step *s, const sc_lifetime *l, sc_time t)
{
    if (l->first == SC_NONE) return true;
    if (start_of(s, l->first) >= t) return false;
    for (uint32_t i = 0; i < l->n_last; i++)
        if (end_of(s, l->last[i]) > t) return true;
    return l->n_last == 0;
}

static bool is_kernel(const sc_graph *g, uint32_t part)
{
    sc_op op = op_of(g, part);
    const sc_parts *p = g->parts ? g->parts[op] : NULL;
    uint8_t kind = p ? p->kind[part - sc_part_first(g, op)] : g->kind[op];
    return kind == SC_OP_COMPUTE;
}

/* The time at which the first kernel makes the gradient of a value. At that
 * time all activations of the micro-batches in flight are kept. */
static sc_time turning_point(const sc_net_step *s)
{
    const sc_graph *g = &s->plan.step;
    sc_time t = s->run.makespan;
    for (uint32_t i = 0; i < g->n_lifetimes; i++) {
        const sc_lifetime *l = &g->lifetime[i];
        bool value = l->kind == SC_MEM_ACTIVATION && l->first != SC_NONE;
        if (!value || l->device != 0 || !is_gradient(l)) continue;
        if (!is_kernel(g, l->first)) continue;
        sc_time from = start_of(s, l->first);
        if (from < t) t = from;
    }
    return t;
}

/* The last layer's result on a device that also has the head. It is the head's
 * input, so it does not count as memory of the layers. */
static const sc_lifetime *of_head(const sc_net_step *s, sc_time t)
{
    const sc_graph *g = &s->plan.step;
    const sc_lifetime *last = NULL;
    bool head = false;
    for (uint32_t i = 0; i < g->n_lifetimes; i++) {
        const sc_lifetime *l = &g->lifetime[i];
        if (l->device != 0) continue;
        head = head || starts(l->name, "head.");
        if (l->first == SC_NONE || !starts(l->name, "layers.") ||
            !ends(l->name, " out") || !lives_at(s, l, t))
            continue;
        if (!last || start_of(s, l->first) > start_of(s, last->first)) last = l;
    }
    return head ? last : NULL;
}

double calib_figure_memory(const sc_net_step *s)
{
    const sc_graph *g = &s->plan.step;
    sc_time t = turning_point(s);
    const sc_lifetime *not = of_head(s, t);
    double sum = 0;
    for (uint32_t i = 0; i < g->n_lifetimes; i++) {
        const sc_lifetime *l = &g->lifetime[i];
        if (l != not &&of_layers(l) && lives_at(s, l, t))
            sum += (double)l->bytes;
    }
    return sum;
}
