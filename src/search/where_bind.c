/* SPDX-License-Identifier: Apache-2.0 */
/* where_bind.c - finds what the names of a condition mean in a space. */
#include "search/where.h"

#include <string.h>

typedef struct binder {
    sc_search_where *w;
    const sc_job *job;
    const sc_run *run;
    const sc_search_option *option;
    uint32_t n;
    sc_arena *a;
    sc_err *err;
} binder;

static sc_status unknown(const binder *b, const where_node *x, const char *what,
                         const char *hint)
{
    return sc_error(b->err, SC_EINPUT, SC_C_UNKNOWN_NAME,
                    where_place(b->w, x->at), hint, "%.40s %s", x->word, what);
}

/* ---- values --------------------------------------------------------------- */

static double constant(const binder *b, const char *name)
{
    const sc_hw *hw = b->run->hw;
    const sc_transformer *t = &b->run->model->t;
    if (strcmp(name, "devices") == 0) return hw->n_devices;
    if (strcmp(name, "nodes") == 0) return hw->n_nodes ? hw->n_nodes : 1;
    if (strcmp(name, "node") == 0) return hw->node_size;
    if (strcmp(name, "layers") == 0) return (double)t->layers;
    if (strcmp(name, "heads") == 0) return (double)t->heads;
    return (double)t->experts;
}

/* The value of an option that is no axis. */
static sc_status fixed(binder *b, where_node *x)
{
    sc_search_option one;
    char text[80];
    if (!sc_job_has(b->job, x->key))
        return unknown(b, x, "has no value",
                       "give it as an option, or as an axis with its values");
    x->op = WHERE_NUMBER;
    if (x->key->type == SC_T_QUANTITY) {
        x->number = *(const double *)((const char *)b->job + x->key->offset);
        return SC_OK;
    }
    sc_schema_print(x->key, b->job, text, sizeof text);
    SC_TRY(sc_search_option_read(x->key, text, where_place(b->w, x->at), b->a,
                                 &one, b->err));
    x->number = (double)one.axis.value[0];
    return SC_OK;
}

static sc_status bind_axis(binder *b, where_node *x, uint32_t i)
{
    const sc_search_option *o = &b->option[i];
    double *v = SC_NEW_N(b->a, double, o->axis.n);
    if (!v) return sc_error_nomem(b->err);
    for (uint32_t k = 0; k < o->axis.n; k++)
        v[k] = o->key->type == SC_T_QUANTITY ? o->quantity[k]
                                             : (double)o->axis.value[k];
    x->op = WHERE_AXIS;
    x->axis = i;
    x->value = v;
    b->w->axes |= (uint64_t)1 << i;
    return SC_OK;
}

static sc_status bind_name(binder *b, where_node *x)
{
    if (!x->key) {
        x->op = WHERE_NUMBER;
        x->number = constant(b, x->word);
        return SC_OK;
    }
    if (x->key->type == SC_T_STRING || x->key->type == SC_T_LIST)
        return unknown(b, x, "has no numbers to compare",
                       "compare options such as tp, zero or recompute");
    for (uint32_t i = 0; i < b->n; i++)
        if (b->option[i].key == x->key) return bind_axis(b, x, i);
    return fixed(b, x);
}

/* "full" beside recompute. */
static sc_status bind_word(binder *b, where_node *x, const sc_key *k)
{
    sc_search_option one;
    if (k->type == SC_T_INT || k->type == SC_T_QUANTITY)
        return unknown(b, x, "is no number", "write a number, or an option");
    SC_TRY(sc_search_option_read(k, x->word, where_place(b->w, x->at), b->a,
                                 &one, b->err));
    x->op = WHERE_NUMBER;
    x->number = (double)one.axis.value[0];
    return SC_OK;
}

sc_status where_bind(const sc_search_where *of, const sc_job *job,
                     const sc_run *run, const sc_search_option *option,
                     uint32_t n, sc_arena *a, sc_search_where **out,
                     sc_err *err)
{
    sc_search_where *w = SC_NEW(a, sc_search_where);
    if (!w) return sc_error_nomem(err);
    *w = *of;
    w->node = SC_NEW_N(a, where_node, w->n);
    if (!w->node) return sc_error_nomem(err);
    memcpy(w->node, of->node, w->n * sizeof *w->node);
    binder b = {w, job, run, option, n, a, err};
    for (uint32_t i = 0; i < w->n; i++) {
        const where_node *c = &w->node[i];
        where_node *l = &w->node[c->left], *r = &w->node[c->right];
        if (c->op < WHERE_OR) continue;
        if (l->op == WHERE_WORD) SC_TRY(bind_word(&b, l, r->key));
        if (r->op == WHERE_WORD) SC_TRY(bind_word(&b, r, l->key));
    }
    for (uint32_t i = 0; i < w->n; i++)
        if (w->node[i].op == WHERE_NAME) SC_TRY(bind_name(&b, &w->node[i]));
    *out = w;
    return SC_OK;
}

sc_status sc_search_jobs_where(sc_search_jobs *jobs,
                               const sc_search_where *const *where, uint32_t n,
                               sc_arena *a, sc_err *err)
{
    uint32_t all = jobs->n_rules + n;
    sc_search_rule *rule = SC_NEW_N(a, sc_search_rule, all + 1);
    sc_search_axis *axis = SC_NEW_N(a, sc_search_axis, jobs->n + 1);
    if (!rule || !axis) return sc_error_nomem(err);
    if (n == 0) return SC_OK;
    memcpy(rule, jobs->rule, jobs->n_rules * sizeof *rule);
    for (uint32_t i = 0; i < jobs->n; i++) axis[i] = jobs->option[i].axis;
    for (uint32_t i = 0; i < n; i++) {
        sc_search_where *bound;
        SC_TRY(where_bind(where[i], &jobs->job, sc_points_run(jobs->points),
                          jobs->option, jobs->n, a, &bound, err));
        rule[jobs->n_rules + i] = (sc_search_rule){.kind = SC_SEARCH_WHERE,
                                                   .left.axes = bound->axes,
                                                   .where = bound,
                                                   .why = bound->text};
    }
    jobs->rule = rule;
    jobs->n_rules = all;
    SC_TRY(sc_search_space_new(axis, jobs->n, rule, all, a, &jobs->space, err));
    if (sc_search_space_points(jobs->space) > 0) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, where_place(where[0], 0),
                    "leave one out; --explain-space prints all rules",
                    "no point of the space satisfies all conditions");
}
