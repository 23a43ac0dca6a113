/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et_kineto_match.c - which tensor an argument is. A profiler does not record
 * this, so an argument is the latest result of its shape; results that nobody has
 * read come first. Arguments in the place of a weight are parameters.
 */
#include "et/et.h"
#include "model/et_kineto.h"

#include <string.h>

#define MAX_BACK   4096 /* results that an argument is compared with */
#define HIDDEN     8    /* of these, under another shape */
#define MAX_BEHIND 16   /* operators that tell the shape of a result */

typedef struct matcher {
    kineto_op *op;
    uint32_t n;
    sc_arena *a;
    et_tensor *value; /* [n_values] results, in their order */
    uint32_t *reads;  /* [n_values] */
    uint32_t n_values, cap, cap_reads;
    uint64_t last_id;
} matcher;

/* ---- parameters ---------------------------------------------------------- */

static bool is_weight(const kineto_op *o, uint32_t arg)
{
    if (sc_et_is_parameter(o->what, arg)) return true;
    return strcmp(o->what, "addmm") == 0 && arg == 0 &&
           o->node->in[0].t->n_dim == 1;
}

/* ---- results ------------------------------------------------------------- */

static bool add_result(matcher *m, const et_tensor *t)
{
    uint32_t *reads =
        sc_grow(m->a, m->reads, m->n_values, &m->cap_reads, 256, sizeof *reads);
    et_tensor *value =
        sc_grow(m->a, m->value, m->n_values, &m->cap, 256, sizeof *value);
    if (!reads || !value) return false;
    m->reads = reads;
    m->value = value;
    reads[m->n_values] = 0;
    value[m->n_values++] = *t;
    return true;
}

/* The result that an argument is; UINT32_MAX: none. `used` has the results that
 * other arguments of the operator are. */
static uint32_t find(const matcher *m, const et_tensor *t, const uint32_t *used,
                     uint32_t n_used)
{
    uint32_t read = UINT32_MAX, hidden = UINT32_MAX;
    for (uint32_t k = 0; k < MAX_BACK && k < m->n_values; k++) {
        uint32_t i = m->n_values - 1 - k;
        const et_tensor *v = &m->value[i];
        bool taken = v->bytes != t->bytes;
        for (uint32_t u = 0; u < n_used; u++) taken |= used[u] == i;
        if (taken) continue;
        if (et_same_shape(v, t)) {
            if (m->reads[i] == 0) return i;
            if (read == UINT32_MAX) read = i;
        } else if (k < HIDDEN && m->reads[i] == 0 && hidden == UINT32_MAX &&
                   t->n_dim > 1 && et_elements(v) == et_elements(t)) {
            hidden = i;
        }
    }
    return read != UINT32_MAX ? read : hidden;
}

/* Queries, keys and values may be one tensor. */
static uint32_t find_argument(const matcher *m, const kineto_op *o,
                              const et_tensor *t, const uint32_t *used,
                              uint32_t n_used)
{
    uint32_t v = find(m, t, used, n_used);
    bool again = v == UINT32_MAX && strstr(o->what, "attention");
    return again ? find(m, t, used, 0) : v;
}

static void name_arguments(matcher *m, kineto_op *o)
{
    uint32_t used[ET_ARGS], n_used = 0;
    et_node *n = o->node;
    for (uint32_t i = 0; i < n->n_in; i++)
        for (uint32_t k = 0; k < n->in[i].n; k++) {
            et_tensor *t = &n->in[i].t[k];
            bool whole = t->n_dim > 0 && et_elements(t) > 0;
            uint32_t v = whole && !is_weight(o, i) && n_used < ET_ARGS
                             ? find_argument(m, o, t, used, n_used)
                             : UINT32_MAX;
            if (v == UINT32_MAX) {
                t->id = t->storage = ++m->last_id;
                continue;
            }
            t->id = m->value[v].id;
            t->storage = m->value[v].storage;
            m->reads[v]++;
            used[n_used++] = v;
        }
}

/* ---- open shapes --------------------------------------------------------- */

static bool fits(const kineto_op *o, const et_tensor *t)
{
    const et_tensor *y = &o->node->out[0];
    if (t->bytes != y->bytes) return false;
    if (o->shapeless) return et_elements(t) == o->elements;
    if (o->known == 0) return t->n_dim > 0;
    if (t->n_dim != y->n_dim) return false;
    return memcmp(t->dim, y->dim, o->known * sizeof t->dim[0]) == 0;
}

/* The first argument behind operator `i` that can be its result. */
static const et_tensor *reader_of(const matcher *m, uint32_t i)
{
    for (uint32_t k = i + 1; k < m->n && k <= i + MAX_BEHIND; k++) {
        const et_node *n = m->op[k].node;
        for (uint32_t arg = 0; arg < n->n_in; arg++)
            for (uint32_t j = 0; j < n->in[arg].n; j++)
                if (!is_weight(&m->op[k], arg) &&
                    fits(&m->op[i], &n->in[arg].t[j]))
                    return &n->in[arg].t[j];
    }
    return NULL;
}

static sc_status close_shape(const matcher *m, uint32_t i, sc_err *err)
{
    kineto_op *o = &m->op[i];
    et_tensor *y = &o->node->out[0];
    const et_tensor *t = reader_of(m, i);
    if (t) {
        memcpy(y->dim, t->dim, sizeof y->dim);
        y->n_dim = t->n_dim;
        return SC_OK;
    }
    if (!strstr(o->what, "conv") && !strstr(o->what, "embedding"))
        return SC_OK; /* nobody reads it */
    return sc_error(err, SC_EINPUT, SC_C_MISSING, o->node->pos,
                    "record with a newer PyTorch, which writes numbers too, or "
                    "give an execution trace (docs/model-file.md)",
                    "the shape of the result of %s is not known",
                    o->node->name);
}

/* ---- ties ----------------------------------------------------------------- */

static et_tensor *weight_of(const kineto_op *o, const char *what, uint32_t arg)
{
    const et_node *n = o->node;
    if (strcmp(o->what, what) != 0 || arg >= n->n_in || n->in[arg].n != 1)
        return NULL;
    return n->in[arg].t->n_dim == 2 ? n->in[arg].t : NULL;
}

/* The first embedding table of the shape before operator `i`. */
static et_tensor *table_like(const matcher *m, uint32_t i, const et_tensor *w)
{
    for (uint32_t k = 0; k < i; k++) {
        et_tensor *t = weight_of(&m->op[k], "embedding", 0);
        if (t && et_same_shape(t, w)) return t;
    }
    return NULL;
}

/* Lists the linear layers whose weights may be embedding tables; small tables,
 * of positions or kinds, are none of words. */
static sc_status list_ties(const matcher *m, et_trace *t, sc_err *err)
{
    uint32_t cap = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        et_tensor *w = weight_of(&m->op[i], "linear", 1), *table = NULL;
        if (w && w->dim[0] > w->dim[1]) table = table_like(m, i, w);
        if (!table) continue;
        t->tie = sc_grow(m->a, t->tie, t->n_ties, &cap, 8, sizeof *t->tie);
        if (!t->tie) return sc_error_nomem(err);
        t->tie[t->n_ties++] = (et_tie){table, w};
    }
    return SC_OK;
}

/* ---- the whole ----------------------------------------------------------- */

/* Views and what changes its argument share its storage. */
static void name_results(matcher *m, kineto_op *o)
{
    et_node *n = o->node;
    const et_tensor *x = NULL;
    for (uint32_t i = 0; i < n->n_in && !x; i++)
        if (n->in[i].kind == ET_TENSOR) x = n->in[i].t;
    for (uint32_t i = 0; i < n->n_out; i++) {
        n->out[i].id = ++m->last_id;
        n->out[i].storage = x && !o->copies ? x->storage : n->out[i].id;
    }
}

sc_status kineto_match(kineto_op *op, uint32_t n, sc_arena *a, et_trace *t,
                       sc_err *err)
{
    matcher m = {.op = op, .n = n, .a = a};
    for (uint32_t i = 0; i < n; i++) {
        kineto_op *o = &op[i];
        if (o->open && o->node->n_out > 0) SC_TRY(close_shape(&m, i, err));
        name_arguments(&m, o);
        name_results(&m, o);
        for (uint32_t k = 0; k < o->node->n_out; k++)
            if (!add_result(&m, &o->node->out[k])) return sc_error_nomem(err);
    }
    return list_ties(&m, t, err);
}
