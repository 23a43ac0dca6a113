/* SPDX-License-Identifier: Apache-2.0 */
/* graph_explain.c - a plan of an operator graph as text. */
#include "plan/graph.h"

#include <stdio.h>
#include <string.h>

static void axes_text(const sc_strategy *s, sc_axes list, const char *between,
                      sc_text *out)
{
    for (const char *sep = ""; list; list >>= 4, sep = between)
        sc_text_add(out, "%s%s", sep, s->axis[(list & 15) - 1].name);
}

static void splits_text(const sc_strategy *s, const sc_strategy_rule *r,
                        sc_text *out)
{
    static const char *const verb[SC_N_RULE_TENSORS] = {
        [SC_RT_OP] = "split",
        [SC_RT_WEIGHT] = "shard weights",
        [SC_RT_BIAS] = "shard biases",
        [SC_RT_GRAD] = "shard gradients",
        [SC_RT_OPTIM] = "shard optimizer states",
        [SC_RT_OUT] = "keep results split",
        [SC_RT_OUT_GRAD] = "keep their gradients split",
        [SC_RT_IN] = "read an input split",
    };
    if (r->n_split == 0)
        sc_text_add(out, "%s: whole", sc_rule_tensor_names[r->tensor]);
    else
        sc_text_add(out, "%s", verb[r->tensor]);
    for (uint32_t i = 0; i < r->n_split; i++) {
        const sc_rule_split *d = &r->split[i];
        sc_text_add(out, "%s %s ", i ? "," : "", d->dim);
        if (d->axes)
            sc_text_add(out, "over ");
        else
            sc_text_add(out, "whole");
        axes_text(s, d->axes, " x ", out);
    }
}

static void rule_text(const sc_strategy *s, const sc_strategy_rule *r,
                      sc_text *out)
{
    const char *sep = "";
    sc_text_add(out, "  %-24s ", r->called ? r->called : r->match);
    if (r->has_split) {
        splits_text(s, r, out);
        sep = ", ";
    }
    if (r->recompute >= 0) {
        sc_text_add(out, "%s%s", sep,
                    r->recompute ? "recompute" : "do not recompute");
        sep = ", ";
    }
    if (r->tier >= 0) {
        sc_text_add(out, "%s%s waits on %s", sep,
                    sc_rule_tensor_names[r->tensor], sc_tier_names[r->tier]);
        sep = ", ";
    }
    if (r->round_robin) {
        sc_text_add(out, "%s%s", sep,
                    r->balanced ? "in parts, as much on all ranks of "
                                : "whole, in turn on the ranks of ");
        axes_text(s, r->assign, " x ", out);
        sep = ", ";
    }
    for (uint32_t i = 0; i < r->n_at; i++, sep = ", ")
        sc_text_add(out, "%s%s = %u", sep, s->axis[r->at[i].axis].name,
                    r->at[i].coord);
    sc_text_add(out, "   (%s)\n", r->origin);
}

static void stages_text(const sc_gplan *p, sc_text *out)
{
    const sc_opgraph *g = p->job->graph;
    sc_text_add(out, "stages\n");
    for (uint32_t v = 0; v < p->n_stages; v++) {
        uint32_t first = g->n_ops, last = 0, n = 0;
        for (uint32_t op = 0; op < g->n_ops; op++) {
            if (p->stage_of[op] != v) continue;
            if (first == g->n_ops) first = op;
            last = op;
            n++;
        }
        if (n)
            sc_text_add(out, "  %u: %u operators, %s to %s\n", v, n,
                        g->op[first].path, g->op[last].path);
    }
}

static const char *pass_text(const sc_gexchange *x)
{
    if (x->pass == SC_GP_FWD) return "forward";
    return x->pass == SC_GP_UPDATE ? "update" : "backward";
}

static void exchange_text(const sc_gplan *p, const sc_gexchange *x,
                          sc_text *out)
{
    const sc_strategy *s = p->job->strategy;
    char size[32], name[96];
    sc_unit_print_short(x->bytes, SC_U_BYTES, size, sizeof size);
    snprintf(name, sizeof name, "%s %s", x->path, x->tensor);
    sc_text_add(out, "%-9s %-32s %-14s %9s", pass_text(x), name,
                x->p2p ? "transfer" : sc_coll_names[x->coll], size);
    sc_axes list = 0;
    for (uint32_t ax = 0; ax < s->n_axes; ax++)
        if (x->axes >> ax & 1) list = sc_axes_add(list, ax);
    if (list) sc_text_add(out, " over ");
    axes_text(s, list, "+", out);
    if (x->p2p) sc_text_add(out, " rank %u to %u", x->rank[0], x->rank[1]);
    sc_text_add(out, " (%u x %u ranks): %s%s", x->n_groups, x->size,
                x->bucketed ? "together, " : "", x->why);
    if (x->origin) sc_text_add(out, "   (%s)", x->origin);
    sc_text_add(out, "\n");
}

void sc_gplan_explain(const sc_gplan *p, sc_text *out)
{
    const sc_strategy *s = p->job->strategy;
    sc_text_add(out, "mesh");
    for (uint32_t ax = 0; ax < s->n_axes; ax++)
        sc_text_add(out, "  %s=%u", s->axis[ax].name, s->axis[ax].size);
    sc_text_add(out, "\nrules, the strongest last\n");
    for (uint32_t i = 0; i < p->n_rules; i++) rule_text(s, p->rule[i], out);
    stages_text(p, out);
    sc_text_add(out, "collectives inferred, per micro-batch; of gradients "
                     "that are kept whole per step\n");
    for (uint32_t i = 0; i < p->n_exchanges; i++)
        exchange_text(p, &p->exchange[i], out);
}
