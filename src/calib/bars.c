/* SPDX-License-Identifier: Apache-2.0 */
/* bars.c - compares the errors of each family with bars, which may only get
 * better. */
#include "calib/calib.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SLACK 0.0005 /* 0.05 points: the file's figures are rounded */

static const sc_valid_group *find_family(const sc_validation *v,
                                         const char *family)
{
    for (uint32_t i = 0; i < v->n_groups; i++)
        if (!v->groups[i].device && strcmp(v->groups[i].family, family) == 0)
            return &v->groups[i];
    return NULL;
}

/* The maps of a file of bars. */
static const struct kind {
    const char *key, *of;
    size_t offset; /* of the figure in sc_valid_group */
    bool rises;    /* it may only rise; otherwise it may only fall */
    double scale;  /* as it is printed */
    const char *unit;
} kinds[] = {
    {"bars", "", offsetof(sc_valid_group, mape), false, 100, " %"},
    {"memory", " (memory)", offsetof(sc_valid_group, mem_mape), false, 100,
     " %"},
    {"tau", " (tau)", offsetof(sc_valid_group, kendall_tau), true, 1, ""},
    {"regret", " (regret)", offsetof(sc_valid_group, regret), false, 100, " %"},
};

static double figure_of(const sc_valid_group *g, const struct kind *k)
{
    const char *at = (const char *)g + k->offset;
    return *(const double *)(const void *)at;
}

static sc_status check_bar(const sc_validation *v, const struct kind *k,
                           const sc_node *bar, sc_text *report, bool *met,
                           sc_err *err)
{
    double limit;
    if (bar->kind != SC_N_SCALAR)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, bar->pos,
                        "write `family: 3.1%`", "a bar must be one number");
    SC_TRY(sc_unit_parse(bar->text, SC_U_NONE, bar->pos, &limit, err));
    const sc_valid_group *g = find_family(v, bar->key);
    char name[64];
    snprintf(name, sizeof name, "%s%s", bar->key, k->of);
    if (!g || !isfinite(figure_of(g, k))) {
        sc_text_add(report, "%-24s no row was predicted, bar %.2f%s\n", name,
                    k->scale * limit, k->unit);
        *met = false;
        return SC_OK;
    }
    double got = figure_of(g, k);
    bool broken = k->rises ? got < limit - SLACK : got > limit + SLACK;
    sc_text_add(report, "%-24s %6.2f%s, bar %.2f%s%s\n", name, k->scale * got,
                k->unit, k->scale * limit, k->unit,
                !broken    ? ""
                : k->rises ? ": BELOW"
                           : ": ABOVE");
    if (broken) *met = false;
    return SC_OK;
}

sc_status sc_validation_bars(const sc_validation *v, const char *text,
                             size_t len, const char *file, sc_arena *a,
                             sc_text *report, sc_err *err)
{
    sc_node *root = NULL;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    sc_status first = SC_OK;
    bool met = true;
    uint32_t n_bars = 0;
    for (size_t i = 0; i < SC_COUNT(kinds); i++) {
        const struct kind *kind = &kinds[i];
        const sc_node *bars =
            root->kind == SC_N_MAP ? sc_node_get(root, kind->key) : NULL;
        if (!bars || bars->kind != SC_N_MAP) continue;
        for (const sc_node *n = bars->child; n; n = n->next) {
            sc_status s = check_bar(v, kind, n, report, &met, err);
            if (first == SC_OK) first = s;
            n_bars++;
        }
    }
    if (n_bars == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(file),
                        "write `bars: {family: 3.1%}`, or memory, tau, regret",
                        "the file has no bars");
    if (first != SC_OK) return first;
    return met ? SC_OK : SC_NO;
}

void sc_validation_bars_write(const sc_validation *v, sc_text *out)
{
    sc_text_add(out,
                "# Limits for each family: its mean |predicted / measured - 1| "
                "of step times (bars) and\n"
                "# of memory (memory) may only fall, and so may its regret, "
                "by which the configuration\n"
                "# that is predicted fastest is slower than the fastest one.  "
                "The rank correlation of its\n"
                "# rows (tau) may only rise.  `stepcast validate --bars` fails "
                "if a figure is worse; a\n"
                "# commit that makes one worse states the reason.\n");
    for (size_t k = 0; k < SC_COUNT(kinds); k++) {
        const struct kind *kind = &kinds[k];
        sc_text_add(out, "%s:\n", kind->key);
        for (uint32_t i = 0; i < v->n_groups; i++) {
            const sc_valid_group *g = &v->groups[i];
            if (g->device || !isfinite(figure_of(g, kind))) continue;
            sc_text_add(out,
                        kind->scale > 1 ? "  %s: %.2f%%\n" : "  %s: %.3f\n",
                        g->family, kind->scale * figure_of(g, kind));
        }
    }
}
