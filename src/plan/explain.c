/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - the strategy tree as text: rules, stages, and every inferred
 * collective with its reason. */
#include "plan/block.h"

#include <stdio.h>
#include <string.h>

static void axes_text(uint32_t mask, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = 0;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++)
        if (mask >> ax & 1 && at < size)
            at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? "+" : "",
                                   sc_axis_names[ax]);
}

void block_reason(emit *e, const char *name, const sc_move *m, double bytes,
                  const char *how)
{
    static const char *const why[SC_N_COLLS] = {
        [SC_ALL_REDUCE] = "partial sums, wanted whole",
        [SC_ALL_GATHER] = "sharded, wanted whole",
        [SC_REDUCE_SCATTER] = "partial sums, wanted sharded",
        [SC_ALL_TO_ALL] = "sharded over another dimension",
    };
    char axes[32], size[32];
    axes_text(m->axes, axes, sizeof axes);
    sc_unit_print_short(m->fraction * bytes, SC_U_BYTES, size, sizeof size);
    const sc_place *at = &e->p->place[m->axes];
    int path = (int)strlen(e->layer->path), width = 26;
    sc_text_add(e->reasons, "%-9s %s.%-*s %-14s %9s over %s (%u ranks", e->pass,
                e->layer->path, path < width ? width - path : 1, name,
                sc_coll_names[m->coll], size, axes, at->n);
    if (at->nodes > 1) sc_text_add(e->reasons, " on %u nodes", at->nodes);
    sc_text_add(e->reasons, "): %s%s%s%s\n", why[m->coll],
                m->dim < SC_N_DIMNAMES ? " in " : "",
                m->dim < SC_N_DIMNAMES ? sc_dimname_names[m->dim] : "", how);
}

static void rule_text(const sc_rule *r, sc_text *out)
{
    static const char *const more[] = {"out", "in"};
    char axes[32];
    bool named = r->dim < SC_N_DIMNAMES;
    const char *dim =
        named ? sc_dimname_names[r->dim] : more[r->dim - SC_D_OUT];
    axes_text(sc_axlist_mask(r->axes), axes, sizeof axes);
    if (!r->axes) snprintf(axes, sizeof axes, "nothing");
    sc_text_add(out, "  %-24s ", r->match);
    switch (r->aspect) {
    case SC_R_SPLIT:
        if (r->axes)
            sc_text_add(out, "split %s over %s", dim, axes);
        else
            sc_text_add(out, "leave %s whole", dim);
        break;
    case SC_R_WEIGHT: sc_text_add(out, "shard weights over %s", axes); break;
    case SC_R_GRAD: sc_text_add(out, "shard gradients over %s", axes); break;
    case SC_R_OPTIM:
        sc_text_add(out, "shard optimizer states over %s", axes);
        break;
    case SC_R_RECOMPUTE:
        sc_text_add(out, "%s", r->on ? "recompute" : "do not recompute");
        break;
    }
    sc_text_add(out, "   (%s)\n", r->origin);
}

static void stages_text(const sc_plan *p, sc_text *out)
{
    sc_text_add(out, "stages\n");
    for (uint32_t v = 0; v < p->n_stages; v++)
        sc_text_add(out, "  %u on device %u: %s%u blocks%s\n", v,
                    sc_run_device(&p->run, v, 0),
                    p->stage[v].embed ? "embedding, " : "", p->stage[v].blocks,
                    p->stage[v].head ? ", head" : "");
}

void sc_plan_explain(const sc_plan *p, sc_text *out)
{
    sc_text_add(out, "mesh");
    for (uint32_t ax = 0; ax < SC_N_AX; ax++)
        if (ax != SC_AX_REP || p->run.size[ax] > 1)
            sc_text_add(out, "  %s=%u", sc_axis_names[ax], p->run.size[ax]);
    sc_text_add(out, "\nrules\n");
    for (uint32_t i = 0; i < p->n_rules; i++) rule_text(&p->rules[i], out);
    stages_text(p, out);
    plan_recipe_text(&p->run, out);
    sc_text_add(out, "collectives inferred, per layer and micro-batch\n");
    for (uint32_t l = 0; l < p->run.model->n_layers; l++)
        block_reasons(p, l, out);
}
