/* SPDX-License-Identifier: Apache-2.0 */
/* held_out.c - reads the errors of predictions that were fitted without the
 * run. */
#include "cost/cost_held_out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LOG    3.0 /* a larger error than a factor of 20 is refused */
#define MAX_FACTOR 10.0

const char *const sc_model_kind_names[] = {"adapters", "encoder", "experts",
                                           "dense",    "graph",   NULL};

/* Files without `memory`, and fits to tables with few measured peaks, have that
 * of the 935 peaks in data/validation (calib_learn_memory()). */
static const sc_interval unknown_memory = {.low = -0.037, .high = 0.265};
const char *const sc_effect_names[] = {"parameters", "network", "site",
                                       "release",    "device",  "similar",
                                       "job",        NULL};

/* Estimated from data/fit/held-out.yml's errors, rounded. */
const sc_effects sc_effects_usual = {{[SC_EFFECT_PARAMETERS] = 1.3,
                                      [SC_EFFECT_NETWORK] = 0.25,
                                      [SC_EFFECT_SITE] = 0.025,
                                      [SC_EFFECT_RELEASE] = 0.025,
                                      [SC_EFFECT_DEVICE] = 0.08,
                                      [SC_EFFECT_SIMILAR] = 0.07,
                                      [SC_EFFECT_JOB] = 0.05}};

void sc_held_out_none(sc_held_out *out)
{
    *out = (sc_held_out){.unseen = NAN, .effects = sc_effects_usual};
    out->all.low = out->all.high = NAN;
    for (int k = 0; k < (int)SC_N_KINDS; k++) out->kind[k] = out->all;
    out->memory = unknown_memory;
}

uint32_t sc_held_out_rows(const sc_counted *list, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) return list[i].rows;
    return 0;
}

uint32_t sc_held_out_measured(const sc_held_out *h, const char *program,
                              const char *generation)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n_measured; i++) {
        const sc_measured *m = &h->measured[i];
        if (strcmp(m->program, program) == 0 &&
            (!generation || strcmp(m->generation, generation) == 0))
            n += m->rows;
    }
    return n;
}

/* ---- reading */

static sc_status need(const sc_node *map, const char *key, sc_node_kind kind,
                      const sc_node **out, sc_err *err)
{
    *out = map->kind == SC_N_MAP ? sc_node_get(map, key) : NULL;
    if (*out && (*out)->kind == kind) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_MISSING, map->pos,
                    "`stepcast calibrate --held-out` writes such a file",
                    "'%s' is missing, or is not in its form", key);
}

static sc_status number(const sc_node *map, const char *key, double lo,
                        double hi, double *out, sc_err *err)
{
    const sc_node *n = NULL;
    SC_TRY(need(map, key, SC_N_SCALAR, &n, err));
    SC_TRY(sc_unit_parse(n->text, SC_U_NONE, n->pos, out, err));
    if (*out >= lo && *out <= hi) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_RANGE, n->pos, NULL,
                    "'%s' is %g, outside [%g, %g]", key, *out, lo, hi);
}

static sc_status count(const sc_node *map, const char *key, uint32_t *out,
                       sc_err *err)
{
    double v = 0;
    SC_TRY(number(map, key, 0, 1e9, &v, err));
    *out = (uint32_t)v;
    return SC_OK;
}

static sc_status interval(const sc_node *kinds, const char *name,
                          sc_interval *out, sc_err *err)
{
    const sc_node *n = NULL;
    sc_interval v = {0};
    SC_TRY(need(kinds, name, SC_N_MAP, &n, err));
    sc_status s[4] = {number(n, "low", -MAX_LOG, 0, &v.low, err),
                      number(n, "high", 0, MAX_LOG, &v.high, err),
                      count(n, "rows", &v.rows, err),
                      count(n, "families", &v.families, err)};
    for (size_t i = 0; i < SC_COUNT(s); i++) SC_TRY(s[i]);
    *out = v;
    return SC_OK;
}

static sc_status list(const sc_node *root, const char *key, sc_arena *a,
                      const sc_counted **out, uint32_t *n_out, sc_err *err)
{
    const sc_node *map = NULL;
    uint32_t n = 0;
    SC_TRY(need(root, key, SC_N_MAP, &map, err));
    sc_counted *v = SC_NEW_N(a, sc_counted, (size_t)map->n + 1);
    if (!v) return sc_error_nomem(err);
    for (const sc_node *c = map->child; c; c = c->next, n++) {
        v[n].name = c->key;
        SC_TRY(count(map, c->key, &v[n].rows, err));
    }
    *out = v;
    *n_out = n;
    return SC_OK;
}

/* {program: {generation: rows}}; files written before it was counted have
 * none. */
static sc_status measured(const sc_node *root, sc_arena *a, sc_held_out *h,
                          sc_err *err)
{
    const sc_node *map = sc_node_get(root, "measured"), *one = NULL;
    uint32_t n = 0;
    if (!map) return SC_OK;
    SC_TRY(need(root, "measured", SC_N_MAP, &map, err));
    for (const sc_node *p = map->child; p; p = p->next) {
        SC_TRY(need(map, p->key, SC_N_MAP, &one, err));
        n += one->n;
    }
    sc_measured *v = SC_NEW_N(a, sc_measured, (size_t)n + 1);
    if (!v) return sc_error_nomem(err);
    n = 0;
    for (const sc_node *p = map->child; p; p = p->next)
        for (const sc_node *c = p->child; c; c = c->next, n++) {
            v[n] = (sc_measured){.program = p->key, .generation = c->key};
            SC_TRY(count(p, c->key, &v[n].rows, err));
        }
    h->measured = v;
    h->n_measured = n;
    return SC_OK;
}

/* Files written before there were effects have none. */
static sc_status effects(const sc_node *root, sc_effects *out, sc_err *err)
{
    const sc_node *map = sc_node_get(root, "effects");
    sc_effects e = sc_effects_usual;
    if (!map) return SC_OK;
    SC_TRY(need(root, "effects", SC_N_MAP, &map, err));
    for (int k = 0; k < (int)SC_N_EFFECTS; k++)
        SC_TRY(
            number(map, sc_effect_names[k], 1e-6, MAX_FACTOR, &e.sd[k], err));
    *out = e;
    return SC_OK;
}

static sc_status fit_hash(const sc_node *root, uint64_t *out, sc_err *err)
{
    const sc_node *n = NULL;
    char *end = NULL;
    SC_TRY(need(root, "fit", SC_N_SCALAR, &n, err));
    *out = strtoull(n->text, &end, 16);
    if (strlen(n->text) == 16 && *end == '\0') return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_TYPE, n->pos, NULL,
                    "'fit' is the hash of a fit, 16 hexadecimal digits");
}

sc_status sc_held_out_tree(const sc_node *root, sc_arena *a, sc_held_out *out,
                           sc_err *err)
{
    const sc_node *kinds = NULL;
    sc_held_out h;
    sc_held_out_none(&h);
    SC_TRY(need(root, "kinds", SC_N_MAP, &kinds, err));
    sc_status first = interval(kinds, "all", &h.all, err);
    if (first == SC_OK && sc_node_get(root, "memory"))
        first = interval(root, "memory", &h.memory, err);
    for (int k = 0; k < (int)SC_N_KINDS; k++) {
        sc_status s = interval(kinds, sc_model_kind_names[k], &h.kind[k], err);
        if (first == SC_OK) first = s;
    }
    const sc_status rest[] = {
        effects(root, &h.effects, err),
        fit_hash(root, &h.fit, err),
        number(root, "unseen", 1, MAX_FACTOR, &h.unseen, err),
        list(root, "architectures", a, &h.arch, &h.n_archs, err),
        list(root, "software", a, &h.program, &h.n_programs, err),
        measured(root, a, &h, err)};
    SC_TRY(first);
    for (size_t i = 0; i < SC_COUNT(rest); i++) SC_TRY(rest[i]);
    *out = h;
    return SC_OK;
}

sc_status sc_held_out_read(const char *text, size_t len, const char *file,
                           sc_arena *a, sc_held_out *out, sc_err *err)
{
    sc_node *root = NULL;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    return sc_held_out_tree(root, a, out, err);
}

sc_status sc_held_out_builtin(sc_arena *a, sc_held_out *out, sc_err *err)
{
    sc_node *root = NULL;
    const sc_embedded *e = sc_embedded_find("fit/held-out.yml");
    sc_held_out_none(out);
    if (!e) return SC_OK;
    SC_TRY(sc_embedded_read(e, a, &root, err));
    return sc_held_out_tree(root, a, out, err);
}
