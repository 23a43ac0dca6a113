/* SPDX-License-Identifier: Apache-2.0 */
/* covariance.c - reads the covariance of fitted parameters. */
#include "cost/anchor.h"

#include <math.h>
#include <string.h>

typedef struct reader {
    sc_covariance c;
    double *cell; /* of c.of_log */
    double se[SC_N_PARAMS];
    int at[SC_N_PARAMS]; /* index of a parameter; -1: fixed */
    sc_err *err;
} reader;

/* Index of the parameter that a key names. A parameter that no longer exists
 * or is fixed is not an error: *out is -1. */
static int index_of(const reader *r, const char *name)
{
    int p = sc_param_find(name);
    return p < 0 ? -1 : r->at[p];
}

static const char *const error_key = "standard_error";

/* Sets standard errors, before correlations are scaled with them. */
static sc_status read_error(reader *r, const sc_node *row)
{
    int i = index_of(r, row->key);
    const sc_node *n =
        row->kind == SC_N_MAP ? sc_node_get(row, error_key) : NULL;
    if (!n)
        return sc_error(r->err, SC_EINPUT, SC_C_MISSING, row->pos,
                        "`stepcast calibrate --truth` writes such a file",
                        "'%s' has no %s", row->key, error_key);
    double se = 0;
    SC_TRY(anchor_number(n, 1e-9, 100, &se, r->err));
    if (i >= 0) r->se[i] = se;
    return SC_OK;
}

static sc_status read_row(reader *r, const sc_node *row)
{
    int i = index_of(r, row->key);
    for (const sc_node *n = row->child; n; n = n->next) {
        int k = index_of(r, n->key);
        double c = 0;
        if (strcmp(n->key, error_key) == 0) continue;
        SC_TRY(anchor_number(n, -1, 1, &c, r->err));
        if (i < 0 || k < 0 || i == k) continue;
        size_t size = r->c.n, a = (size_t)i, b = (size_t)k;
        r->cell[a * size + b] = r->cell[b * size + a] = c * r->se[a] * r->se[b];
    }
    return SC_OK;
}

/* All parameters that a fit moves, independent and as far off as their prior
 * allows. */
static sc_status begin(sc_arena *a, reader *r)
{
    sc_param *param = SC_NEW_N(a, sc_param, SC_N_PARAMS);
    if (!param) return sc_error_nomem(r->err);
    for (int k = 0; k < (int)SC_N_PARAMS; k++) {
        r->at[k] = -1;
        if (!(sc_params[k].sd > 0)) continue;
        r->se[r->c.n] = sc_params[k].sd;
        r->at[k] = (int)r->c.n;
        param[r->c.n++] = (sc_param)k;
    }
    r->c.param = param;
    r->cell = SC_NEW_N(a, double, (size_t)r->c.n * r->c.n + 1);
    r->c.of_log = r->cell;
    return r->cell ? SC_OK : sc_error_nomem(r->err);
}

static sc_status read_tree(reader *r, const sc_node *root)
{
    const sc_node *map =
        root->kind == SC_N_MAP ? sc_node_get(root, "covariance") : NULL;
    sc_status first = SC_OK;
    if (!map || map->kind != SC_N_MAP)
        return sc_error(r->err, SC_EINPUT, SC_C_MISSING, root->pos,
                        "`stepcast calibrate --truth` writes such a file",
                        "the file has no map 'covariance'");
    for (const sc_node *n = map->child; n; n = n->next) {
        sc_status s = read_error(r, n);
        if (first == SC_OK) first = s;
    }
    for (const sc_node *n = map->child; n && first == SC_OK; n = n->next)
        first = read_row(r, n);
    return first;
}

static void diagonal(reader *r)
{
    for (size_t i = 0; i < r->c.n; i++)
        r->cell[i * r->c.n + i] = r->se[i] * r->se[i];
}

sc_status sc_covariance_read(const char *text, size_t len, const char *file,
                             sc_arena *a, sc_covariance *out, sc_err *err)
{
    sc_node *root = NULL;
    reader r = {.err = err};
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    SC_TRY(begin(a, &r));
    SC_TRY(read_tree(&r, root));
    diagonal(&r);
    *out = r.c;
    return SC_OK;
}

sc_status sc_covariance_builtin(sc_arena *a, sc_covariance *out, sc_err *err)
{
    const sc_embedded *e = sc_embedded_find("fit/covariance.yml");
    sc_node *root = NULL;
    reader r = {.err = err};
    SC_TRY(begin(a, &r));
    if (e) SC_TRY(sc_embedded_read(e, a, &root, err));
    if (e) SC_TRY(read_tree(&r, root));
    diagonal(&r);
    *out = r.c;
    return SC_OK;
}

double sc_covariance_error(const sc_covariance *c, sc_param p)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->param[i] == p) return sqrt(c->of_log[i * c->n + i]);
    return NAN;
}
