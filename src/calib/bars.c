/* SPDX-License-Identifier: Apache-2.0 */
/* bars.c - errors per family, of step times and memory, that may only fall. */
#include <stepcast/calib.h>

#include <math.h>
#include <stddef.h>
#include <stdio.h>
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

/* The maps of a file of bars. */
static const struct {
    const char *key, *of;
    size_t offset; /* of the error in sc_valid_group */
} kinds[] = {
    {"bars", "", offsetof(sc_valid_group, mape)},
    {"memory", " (memory)", offsetof(sc_valid_group, mem_mape)},
};

static double error_of(const sc_valid_group *g, size_t kind)
{
    const char *at = (const char *)g + kinds[kind].offset;
    return *(const double *)(const void *)at;
}

static sc_status check_bar(const sc_validation *v, size_t kind,
                           const sc_node *bar, sc_text *report, bool *met,
                           sc_err *err)
{
    double limit;
    if (bar->kind != SC_N_SCALAR)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, bar->pos,
                        "write `family: 3.1%`", "a bar is one number");
    SC_TRY(sc_unit_parse(bar->text, SC_U_NONE, bar->pos, &limit, err));
    const sc_valid_group *g = find_family(v, bar->key);
    char name[64];
    snprintf(name, sizeof name, "%s%s", bar->key, kinds[kind].of);
    if (!g || !(error_of(g, kind) >= 0)) {
        sc_text_add(report, "%-24s no row was predicted, bar %.2f %%\n", name,
                    100 * limit);
        *met = false;
        return SC_OK;
    }
    bool above = error_of(g, kind) > limit + SLACK;
    sc_text_add(report, "%-24s %6.2f %%, bar %.2f %%%s\n", name,
                100 * error_of(g, kind), 100 * limit, above ? ": ABOVE" : "");
    if (above) *met = false;
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
    for (size_t kind = 0; kind < SC_COUNT(kinds); kind++) {
        const sc_node *bars =
            root->kind == SC_N_MAP ? sc_node_get(root, kinds[kind].key) : NULL;
        if (!bars || bars->kind != SC_N_MAP) continue;
        for (const sc_node *n = bars->child; n; n = n->next) {
            sc_status s = check_bar(v, kind, n, report, &met, err);
            if (first == SC_OK) first = s;
            n_bars++;
        }
    }
    if (n_bars == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(file),
                        "write `bars: {family: 3.1%}`, or `memory:`",
                        "no bars in the file");
    if (first != SC_OK) return first;
    return met ? SC_OK : SC_NO;
}

void sc_validation_bars_write(const sc_validation *v, sc_text *out)
{
    sc_text_add(out, "# Errors that may only fall: mean |predicted / measured "
                     "- 1| of each family, of its\n"
                     "# step times and of its memory.\n"
                     "# `stepcast validate --bars` fails above them; a commit "
                     "that raises one says why.\n");
    for (size_t kind = 0; kind < SC_COUNT(kinds); kind++) {
        sc_text_add(out, "%s:\n", kinds[kind].key);
        for (uint32_t i = 0; i < v->n_groups; i++) {
            const sc_valid_group *g = &v->groups[i];
            if (!g->device && isfinite(error_of(g, kind)))
                sc_text_add(out, "  %s: %.2f%%\n", g->family,
                            100 * error_of(g, kind));
        }
    }
}
