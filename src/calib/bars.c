/* SPDX-License-Identifier: Apache-2.0 */
/* bars.c - errors per family that may only fall. */
#include <stepcast/calib.h>

#include <math.h>
#include <string.h>

#define SLACK 0.0005 /* 0.05 points: rounding of what stands in the file */

static const sc_valid_group *find_family(const sc_validation *v,
                                         const char *family)
{
    for (uint32_t i = 0; i < v->n_groups; i++)
        if (!v->groups[i].device && strcmp(v->groups[i].family, family) == 0)
            return &v->groups[i];
    return NULL;
}

static sc_status check_bar(const sc_validation *v, const sc_node *bar,
                           sc_text *report, bool *met, sc_err *err)
{
    double limit;
    if (bar->kind != SC_N_SCALAR)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, bar->pos,
                        "write `family: 3.1%`", "a bar is one number");
    SC_TRY(sc_unit_parse(bar->text, SC_U_NONE, bar->pos, &limit, err));
    const sc_valid_group *g = find_family(v, bar->key);
    if (!g || !(g->mape >= 0)) {
        sc_text_add(report, "%-24s no row was predicted, bar %.2f %%\n",
                    bar->key, 100 * limit);
        *met = false;
        return SC_OK;
    }
    bool above = g->mape > limit + SLACK;
    sc_text_add(report, "%-24s %6.2f %%, bar %.2f %%%s\n", bar->key,
                100 * g->mape, 100 * limit, above ? ": ABOVE" : "");
    if (above) *met = false;
    return SC_OK;
}

sc_status sc_validation_bars(const sc_validation *v, const char *text,
                             size_t len, const char *file, sc_arena *a,
                             sc_text *report, sc_err *err)
{
    sc_node *root = NULL;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    const sc_node *bars =
        root->kind == SC_N_MAP ? sc_node_get(root, "bars") : NULL;
    if (!bars || bars->kind != SC_N_MAP || bars->n == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, (bars ? bars : root)->pos,
                        "write `bars: {family: 3.1%}`", "no bars in the file");
    sc_status first = SC_OK;
    bool met = true;
    for (const sc_node *n = bars->child; n; n = n->next) {
        sc_status s = check_bar(v, n, report, &met, err);
        if (first == SC_OK) first = s;
    }
    if (first != SC_OK) return first;
    return met ? SC_OK : SC_NO;
}

void sc_validation_bars_write(const sc_validation *v, sc_text *out)
{
    sc_text_add(out, "# Errors that may only fall: mean |predicted / measured "
                     "- 1| of each family.\n"
                     "# `stepcast validate --bars` fails above them; a commit "
                     "that raises one says why.\nbars:\n");
    for (uint32_t i = 0; i < v->n_groups; i++) {
        const sc_valid_group *g = &v->groups[i];
        if (!g->device && isfinite(g->mape))
            sc_text_add(out, "  %s: %.2f%%\n", g->family, 100 * g->mape);
    }
}
