/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optable.c - reads measured times of operators.
 *
 * A file is a map of classes, each with `profile`, a map of shapes to
 * milliseconds.  Shapes are one Python tuple of tuples for the inputs and one
 * for the outputs, separated by "_".  If a class has several functions, the
 * name of the function comes first: "gelu_((1024, 768),)_((1024, 768),)".
 *
 * Entries are kept by key (optable.h); if several have the same key, their mean
 * is used.
 */
#include "cost/optable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *key;
    double ms;
    uint32_t n; /* number of values in the mean */
} entry;

struct sc_optable {
    uint32_t n;
    entry *entry; /* [n] sorted by key */
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->key, ((const entry *)b)->key);
}

double net_op_table_ms(const sc_optable *t, const char *key)
{
    entry want = {.key = key};
    if (t->n == 0) return NAN;
    const entry *e = bsearch(&want, t->entry, t->n, sizeof *e, by_key);
    return e ? e->ms : NAN;
}

/* ---- reading */

typedef struct reader {
    sc_arena *a;
    sc_err *err;
    sc_status first; /* first of all errors */
    uint32_t n, cap;
    entry *entry;
} reader;

static void fail(reader *r, sc_code code, sc_pos pos, const char *hint,
                 const char *what, const char *about)
{
    sc_status s =
        sc_error(r->err, SC_EINPUT, code, pos, hint, "%s%s", what, about);
    if (r->first == SC_OK) r->first = s;
}

/* Position in the text of a key. */
typedef struct cursor {
    const char *text, *at;
} cursor;

static void blanks(cursor *c)
{
    while (*c->at == ' ' || *c->at == '\t') c->at++;
}

static bool take(cursor *c, char what)
{
    blanks(c);
    if (*c->at != what) return false;
    c->at++;
    return true;
}

static bool number(cursor *c, double *out)
{
    double x = 0;
    uint32_t digits = 0;
    blanks(c);
    const char *first = c->at;
    for (; *c->at >= '0' && *c->at <= '9' && digits < 16; c->at++, digits++)
        x = x * 10 + (*c->at - '0');
    *out = x;
    if (digits > 0 && x > 0 && x < 1e15) return true;
    c->at = first;
    return false;
}

static bool tuple(cursor *c, optable_shape *s)
{
    s->n = 0;
    if (!take(c, '(')) return false;
    while (!take(c, ')')) {
        if (s->n == OPTABLE_DIMS || !number(c, &s->dim[s->n])) return false;
        s->n++;
        if (!take(c, ',')) return take(c, ')');
    }
    return true;
}

static bool tuples(cursor *c, optable_shape *s, uint32_t *n)
{
    *n = 0;
    if (!take(c, '(')) return false;
    while (!take(c, ')')) {
        if (*n == OPTABLE_TENSORS || !tuple(c, &s[*n])) return false;
        (*n)++;
        if (!take(c, ',')) return *n > 0 && take(c, ')');
    }
    return *n > 0;
}

static bool read_shapes(cursor *c, optable_shapes *s)
{
    while (*c->at && *c->at != '(') c->at++; /* the function's name */
    return tuples(c, s->in, &s->n_in) && take(c, '_') &&
           tuples(c, s->out, &s->n_out) && *c->at == '\0';
}

static void read_entry(reader *r, const char *class, const sc_node *n)
{
    char name[OPTABLE_CLASS], key[NET_OP_KEY];
    bool backward;
    double ms = 0;
    optable_shapes s;
    cursor c = {.text = n->key, .at = n->key};
    sc_pos pos = n->key_pos;
    optable_class(class, name, &backward);
    bool good = read_shapes(&c, &s);
    if (!good || !optable_key(name, backward, &s, key)) {
        if (!good && pos.col > 0) pos.col += 1 + (uint32_t)(c.at - c.text);
        fail(r, good ? SC_C_TYPE : SC_C_SYNTAX, pos,
             "write ((8, 64), (32, 64))_((8, 32),): inputs, then outputs",
             good ? "the shapes do not belong to class "
                  : "can't read the shapes of class ",
             class);
        return;
    }
    if (n->kind != SC_N_SCALAR) {
        fail(r, SC_C_TYPE, n->pos, "write milliseconds", "this is not a time",
             "");
        return;
    }
    sc_status st = sc_unit_parse(n->text, SC_U_NONE, n->pos, &ms, r->err);
    if (st == SC_OK && !(ms >= 0 && ms < 1e9)) {
        fail(r, SC_C_RANGE, n->pos, "write milliseconds",
             "a time below 0 or above 11 days: ", n->text);
    } else if (st != SC_OK) {
        if (r->first == SC_OK) r->first = st;
        return;
    }
    entry *e = sc_grow(r->a, r->entry, r->n, &r->cap, 64, sizeof *e);
    const char *kept = e ? sc_strdup(r->a, key) : NULL;
    if (!kept) {
        r->first = sc_error_nomem(r->err);
        return;
    }
    r->entry = e;
    r->entry[r->n++] = (entry){.key = kept, .ms = ms, .n = 1};
}

static void read_class(reader *r, const sc_node *class)
{
    const sc_node *p =
        class->kind == SC_N_MAP ? sc_node_get(class, "profile") : NULL;
    if (!p || p->kind != SC_N_MAP) {
        fail(r, SC_C_MISSING, class->key_pos,
             "write {\"profile\": {\"shapes\": milliseconds}}",
             "there are no times of class ", class->key);
        return;
    }
    for (const sc_node *n = p->child; n && r->first != SC_ENOMEM; n = n->next)
        read_entry(r, class->key, n);
}

/* Merges entries with equal keys. */
static uint32_t merge(entry *e, uint32_t n)
{
    uint32_t kept = 0;
    qsort(e, n, sizeof *e, by_key);
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || strcmp(e[kept - 1].key, e[i].key) != 0) {
            e[kept++] = e[i];
            continue;
        }
        entry *k = &e[kept - 1];
        k->ms = (k->ms * k->n + e[i].ms) / (k->n + 1);
        k->n++;
    }
    return kept;
}

sc_status sc_optable_read(const char *text, size_t len, const char *file,
                          sc_arena *a, const sc_optable **out, sc_err *err)
{
    sc_node *root;
    reader r = {.a = a, .err = err, .first = SC_OK};
    SC_TRY(sc_doc_parse(text, len, SC_FMT_JSON, file, a, &root, err));
    if (root->kind != SC_N_MAP)
        return sc_error(
            err, SC_EINPUT, SC_C_TYPE, root->pos,
            "write {\"Linear\": {\"profile\": {...}}}",
            "a table of times must be a map of classes of operators");
    for (const sc_node *n = root->child; n && r.first != SC_ENOMEM; n = n->next)
        read_class(&r, n);
    if (r.first != SC_OK) return r.first;
    sc_optable *t = SC_NEW(a, sc_optable);
    if (!t) return sc_error_nomem(err);
    *t = (sc_optable){.n = r.n > 0 ? merge(r.entry, r.n) : 0, .entry = r.entry};
    *out = t;
    return SC_OK;
}

sc_status sc_optable_load(const char *path, sc_arena *a, const sc_optable **out,
                          sc_err *err)
{
    char *text;
    size_t len;
    SC_TRY(sc_file_read(path, SC_DOC_MAX_BYTES, a, &text, &len, err));
    return sc_optable_read(text, len, path, a, out, err);
}
