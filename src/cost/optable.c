/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optable.c - times of operators as others measured them.
 *
 * A file is a map of classes, each with `profile`, a map of shapes to
 * milliseconds.  Shapes are a Python tuple of tuples per side, "_" between
 * inputs and outputs, before them the name of a function where a class has
 * several: "gelu_((1024, 768),)_((1024, 768),)".
 *
 * Entries are kept under a key that does not depend on how tensors were laid
 * out: a linear layer is (rows, in, out) whatever its rows were made of.
 * Where several entries come to one key, their mean counts.
 */
#include "cost/graph_op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS 64
#define DIMS    8

typedef struct shape {
    uint32_t n;
    double dim[DIMS];
} shape;

typedef struct shapes {
    uint32_t n_in, n_out;
    shape in[TENSORS], out[TENSORS];
} shapes;

typedef struct entry {
    const char *key;
    double ms;
    uint32_t n; /* in the mean */
} entry;

struct sc_optable {
    uint32_t n;
    entry *entry; /* [n] by key */
};

static double elements(const shape *s)
{
    double n = 1;
    for (uint32_t i = 0; i < s->n; i++) n *= s->dim[i];
    return n;
}

static double most(const shape *s, uint32_t n)
{
    double best = 0;
    for (uint32_t i = 0; i < n; i++) best = fmax(best, elements(&s[i]));
    return best;
}

static double least(const shape *s, uint32_t n)
{
    double best = INFINITY;
    for (uint32_t i = 0; i < n; i++) best = fmin(best, elements(&s[i]));
    return best;
}

/* ---- the key ----------------------------------------------------------- */

/* "BatchNorm2d" -> "BatchNorm": what counts is in the shapes.  "SliceFW" is the
 * forward pass of "SliceBW". */
static void base_name(const char *class, char out[64], bool *backward)
{
    size_t len = strlen(class);
    if (len > 63) len = 63;
    memcpy(out, class, len);
    out[len] = '\0';
    *backward = len > 2 && strcmp(out + len - 2, "BW") == 0;
    if (*backward || (len > 2 && strcmp(out + len - 2, "FW") == 0))
        out[len -= 2] = '\0';
    if (len > 2 && out[len - 1] == 'd' && strchr("123", out[len - 2]))
        out[len - 2] = '\0';
}

static void append(char key[GOP_KEY], char sep, double x)
{
    size_t len = strlen(key);
    snprintf(key + len, GOP_KEY - len, "%c%.0f", sep, x);
}

static void start(char key[GOP_KEY], const char *name, bool backward)
{
    snprintf(key, GOP_KEY, "%s%s", name, backward ? "BW" : "");
}

static void key_linear(char key[GOP_KEY], double rows, double in, double out)
{
    append(key, ' ', rows);
    append(key, ',', in);
    append(key, ',', out);
}

static void key_shape(char key[GOP_KEY], const shape *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        append(key, i == 0 ? ' ' : ',', s->dim[i]);
}

typedef enum form {
    ELEMENTS, /* largest input, largest output */
    LINEAR,
    MATMUL,
    CONV,
    TABLE,
    SCALED,  /* largest input, smallest input: the scale */
    LARGEST, /* largest tensor */
    PARTS    /* tensors of the side with several, largest tensor */
} form;

static form form_of(const char *name)
{
    static const struct {
        const char *name;
        form f;
    } forms[] = {{"Linear", LINEAR},
                 {"Matmul", MATMUL},
                 {"Conv", CONV},
                 {"ConvTranspose", CONV},
                 {"Embedding", TABLE},
                 {"BatchNorm", SCALED},
                 {"LayerNorm", SCALED},
                 {"GroupNorm", SCALED},
                 {"InstanceNorm", SCALED},
                 {"RMSNorm", SCALED},
                 {"CrossEntropy", LARGEST},
                 {"Concat", PARTS},
                 {"Split", PARTS}};

    for (size_t i = 0; i < SC_COUNT(forms); i++)
        if (strcmp(forms[i].name, name) == 0) return forms[i].f;
    return ELEMENTS;
}

/* False: the class has other shapes than it should. */
static bool make_key(const char *name, bool backward, const shapes *s,
                     char key[GOP_KEY])
{
    uint32_t at = backward ? 1 : 0; /* behind the output's gradient */
    const shape *x = &s->in[at], *w = &s->in[at + 1];
    const shape *y = backward ? &s->in[0] : &s->out[0];
    form f = form_of(name);
    bool two = s->n_in > at + 1 && x->n > 0 && w->n > 0;
    start(key, name, backward);
    switch (f) {
    case LINEAR:
        if (!two || w->n != 2 || !(x->dim[x->n - 1] == w->dim[1])) return false;
        key_linear(key, elements(x) / w->dim[1], w->dim[1], w->dim[0]);
        return true;
    case MATMUL:
        if (!two || x->n < 2 || w->n < 2) return false;
        append(key, ' ', elements(x) / (x->dim[x->n - 2] * x->dim[x->n - 1]));
        append(key, ',', x->dim[x->n - 2]);
        append(key, ',', w->dim[w->n - 1]);
        append(key, ',', x->dim[x->n - 1]);
        return true;
    case CONV:
        if (!two || y->n != x->n || w->n != x->n) return false;
        key_shape(key, x);
        key_shape(key, w);
        key_shape(key, y);
        return true;
    case TABLE:
        w = backward ? &s->out[0] : w;
        if (s->n_in < 2 || w->n != 2) return false;
        key_linear(key, elements(x), w->dim[0], w->dim[1]);
        return true;
    case PARTS:
        append(key, ' ', s->n_in > s->n_out ? s->n_in : s->n_out);
        append(key, ',', fmax(most(s->in, s->n_in), most(s->out, s->n_out)));
        return true;
    case SCALED:
        append(key, ' ', most(s->in, s->n_in));
        append(key, ',', least(s->in, s->n_in));
        return true;
    case LARGEST:
        append(key, ' ', fmax(most(s->in, s->n_in), most(s->out, s->n_out)));
        return true;
    default:
        append(key, ' ', most(s->in, s->n_in));
        append(key, ',', most(s->out, s->n_out));
        return true;
    }
}

/* ---- of an operator of a graph ------------------------------------------ */

static shape shape_of(const sc_gwork *w, const sc_gport *p)
{
    shape s = {.n = w->graph->tensor[p->tensor].n_dim};
    for (uint32_t i = 0; i < s.n; i++) s.dim[i] = round(gop_length(w, p, i));
    return s;
}

/* The second factor of a product as tables have it: [.., k, n]. */
static void untranspose(const sc_gop *o, shape *w)
{
    uint32_t n = w->n;
    if (n < 2 || o->in[1].at[n - 2] != o->out.at[n - 1]) return;
    double k = w->dim[n - 1];
    w->dim[n - 1] = w->dim[n - 2];
    w->dim[n - 2] = k;
}

/* Classes that an operator may stand under; the first is what people see. */
static const char *class_of(const sc_gwork *w, bool backward, uint32_t i)
{
    static const char *const names[SC_N_GTYPES][4] = {
        [SC_G_LINEAR] = {"Linear"},
        [SC_G_MATMUL] = {"Matmul"},
        [SC_G_CONV] = {"Conv"},
        [SC_G_CONV_TRANSPOSED] = {"ConvTranspose"},
        [SC_G_EMBED] = {"Embedding"},
        [SC_G_ATTENTION] = {"Attention"},
        [SC_G_BATCH_NORM] = {"BatchNorm"},
        [SC_G_NORM] = {"LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm"},
        [SC_G_ACT] = {"ReLU", "Activation"},
        [SC_G_SOFTMAX] = {"Softmax"},
        [SC_G_DROPOUT] = {"Dropout"},
        [SC_G_ELEMENTWISE] = {"Elementwise"},
        [SC_G_POOL] = {"Pool", "AdaptivePool"},
        [SC_G_UPSAMPLE] = {"Upsample"},
        [SC_G_CONCAT] = {"Concat"},
        [SC_G_SLICE] = {"Slice"},
        [SC_G_LOSS] = {"CrossEntropy"}};
    if (i >= 4) return NULL;
    const sc_gop *o = w->op;
    if (o->type == SC_G_CONCAT && backward) return i == 0 ? "Split" : NULL;
    /* Functions other than this one share a class. */
    if (o->type == SC_G_ACT && o->detail && strcmp(o->detail, "relu") != 0)
        i = i < 2 ? 1 - i : i;
    return names[o->type][i];
}

static bool update_key(const sc_gwork *w, uint32_t i, char key[GOP_KEY])
{
    static const char *const ours[] = {"adam", "sgd", "lamb", "adagrad"};
    static const char *const names[] = {"Adam", "SGD", "LAMB", "Adagrad"};
    double n = round(gop_weight_elements(w));
    const char *o = w->optimizer ? w->optimizer : ours[0];
    if (i > 0) return false;
    for (size_t a = 0; a < SC_COUNT(ours); a++) {
        if (strcmp(ours[a], o) != 0) continue;
        start(key, names[a], false);
        append(key, ' ', n);
        append(key, ',', n);
        return true;
    }
    return false;
}

bool gop_table_key(const sc_gwork *w, uint32_t i, char key[GOP_KEY])
{
    if (w->pass == SC_GP_UPDATE) return update_key(w, i, key);
    const sc_gop *o = w->op;
    bool backward = w->pass != SC_GP_FWD;
    const char *name = class_of(w, backward, i);
    if (!name) return false;
    shapes s = {.n_in = 0};
    if (backward) s.in[s.n_in++] = shape_of(w, &o->out);
    uint32_t n_in = o->n_in < TENSORS / 2 ? o->n_in : TENSORS / 2;
    bool whole = form_of(name) != ELEMENTS || !backward;
    for (uint32_t t = 0; t < n_in && whole; t++)
        s.in[s.n_in++] = shape_of(w, &o->in[t]);
    if (o->type == SC_G_MATMUL && n_in == 2) untranspose(o, &s.in[s.n_in - 1]);
    for (uint32_t t = 0; t < o->n_weight && whole; t++)
        s.in[s.n_in++] = shape_of(w, &o->weight[t]);
    if (!backward) s.out[s.n_out++] = shape_of(w, &o->out);
    for (uint32_t t = 0; backward && t < n_in; t++)
        s.out[s.n_out++] = shape_of(w, &o->in[t]);
    if (o->type == SC_G_EMBED && backward)
        s.out[0] = shape_of(w, &o->weight[0]);
    if (form_of(name) == PARTS) {
        /* Of several equal ones, whichever way. */
        s.n_in = n_in;
        s.n_out = 1;
        s.out[0] = shape_of(w, &o->out);
    }
    if (!make_key(name, o->type == SC_G_CONCAT ? false : backward, &s, key))
        start(key, name, backward);
    return true;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->key, ((const entry *)b)->key);
}

double gop_table_ms(const sc_optable *t, const char *key)
{
    entry want = {.key = key};
    if (t->n == 0) return NAN;
    const entry *e = bsearch(&want, t->entry, t->n, sizeof *e, by_key);
    return e ? e->ms : NAN;
}

/* ---- reading ------------------------------------------------------------ */

typedef struct reader {
    sc_arena *a;
    sc_err *err;
    sc_status first; /* of all errors */
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

/* Where in a key reading stands. */
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

static bool tuple(cursor *c, shape *s)
{
    s->n = 0;
    if (!take(c, '(')) return false;
    while (!take(c, ')')) {
        if (s->n == DIMS || !number(c, &s->dim[s->n])) return false;
        s->n++;
        if (!take(c, ',')) return take(c, ')');
    }
    return true;
}

static bool tuples(cursor *c, shape *s, uint32_t *n)
{
    *n = 0;
    if (!take(c, '(')) return false;
    while (!take(c, ')')) {
        if (*n == TENSORS || !tuple(c, &s[*n])) return false;
        (*n)++;
        if (!take(c, ',')) return *n > 0 && take(c, ')');
    }
    return *n > 0;
}

static bool read_shapes(cursor *c, shapes *s)
{
    while (*c->at && *c->at != '(') c->at++; /* the function's name */
    return tuples(c, s->in, &s->n_in) && take(c, '_') &&
           tuples(c, s->out, &s->n_out) && *c->at == '\0';
}

static void read_entry(reader *r, const char *class, const sc_node *n)
{
    char name[64], key[GOP_KEY];
    bool backward;
    double ms = 0;
    shapes s;
    cursor c = {.text = n->key, .at = n->key};
    sc_pos pos = n->key_pos;
    base_name(class, name, &backward);
    bool good = read_shapes(&c, &s);
    if (!good || !make_key(name, backward, &s, key)) {
        if (!good && pos.col > 0) pos.col += 1 + (uint32_t)(c.at - c.text);
        fail(r, good ? SC_C_TYPE : SC_C_SYNTAX, pos,
             "write ((8, 64), (32, 64))_((8, 32),): inputs, then outputs",
             good ? "shapes that do not belong to class "
                  : "can't read the shapes of class ",
             class);
        return;
    }
    if (n->kind != SC_N_SCALAR) {
        fail(r, SC_C_TYPE, n->pos, "write milliseconds", "not a time", "");
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
             "no times of class ", class->key);
        return;
    }
    for (const sc_node *n = p->child; n && r->first != SC_ENOMEM; n = n->next)
        read_entry(r, class->key, n);
}

/* Equal keys become one entry. */
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
        return sc_error(err, SC_EINPUT, SC_C_TYPE, root->pos,
                        "write {\"Linear\": {\"profile\": {...}}}",
                        "a table of times is a map of classes of operators");
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
