/* SPDX-License-Identifier: Apache-2.0 */
/* net_read.c - reads a model.yml with `operators:`: inputs, modules, names. */
#include "model/net_read.h"

#include "model/read.h"

#include <stdio.h>
#include <string.h>

#define MAX_OPS   65536u
#define MAX_DEPTH 16

/* ---- operators */

/* The module that contains the operators. */
typedef struct place {
    const char *prefix;    /* prefix of their paths; NULL: none */
    net_value entry, prev; /* the module's input and the last value */
    bool frozen;
    unsigned depth;
} place;

static const char *join(net_reader *r, const place *p, const char *name)
{
    const char *s =
        p->prefix ? sc_sprintf(r->a, "%s.%s", p->prefix, name) : name;
    if (!s) r->b.no_memory = true;
    return s ? s : name;
}

/* Looks a name up from the innermost module outwards, then as `entry` or
 * `prev`. */
static net_value resolve(net_reader *r, const place *p, const char *word)
{
    char *prefix = p->prefix ? sc_strdup(r->a, p->prefix) : NULL;
    while (prefix) {
        place at = {.prefix = prefix};
        net_value v = net_named(r, join(r, &at, word));
        if (v != SC_NONE) return v;
        char *dot = strrchr(prefix, '.');
        if (!dot) break;
        *dot = '\0';
    }
    net_value v = net_named(r, word);
    if (v == SC_NONE && strcmp(word, "entry") == 0) v = p->entry;
    if (v == SC_NONE && strcmp(word, "prev") == 0) v = p->prev;
    return v;
}

static net_value look_up(net_reader *r, const place *p, const sc_node *n)
{
    if (n->kind != SC_N_SCALAR) {
        net_error(r, SC_C_TYPE, n->pos, "write in: conv1, or [a, b]",
                  "a name must be text");
        return NET_BROKEN;
    }
    net_value v = resolve(r, p, n->text);
    if (v != SC_NONE) return v;
    char hint[120];
    r->names.name[r->names.n] = NULL;
    const char *near = sc_nearest(n->text, r->names.name);
    if (near) snprintf(hint, sizeof hint, "did you mean %.80s?", near);
    net_error(r, SC_C_REFERENCE, n->pos,
              near ? hint : "name an input or an operator before this one",
              "nothing before has the name \"%.80s\"", n->text);
    return NET_BROKEN;
}

/* Returns the number of inputs; after an error some are NET_BROKEN. */
static unsigned read_in(net_reader *r, const place *p, const sc_node *in,
                        sc_pos pos, net_value *out)
{
    if (!in || in->kind == SC_N_NULL) {
        *out = p->prev;
        if (*out == SC_NONE) {
            net_error(r, SC_C_MISSING, pos, "write in: with an input's name",
                      "the first operator has nothing before it");
            *out = NET_BROKEN;
        }
        return 1;
    }
    if (in->kind != SC_N_SEQ) {
        *out = look_up(r, p, in);
        return 1;
    }
    unsigned n = 0;
    if (in->n == 0 || in->n > NET_MAX_INPUTS) {
        net_error(r, SC_C_RANGE, in->pos, NULL,
                  "an operator must read 1 to %d values", NET_MAX_INPUTS);
        *out = NET_BROKEN;
        return 1;
    }
    for (const sc_node *c = in->child; c; c = c->next)
        out[n++] = look_up(r, p, c);
    return n;
}

static bool small_number(net_reader *r, const sc_node *n, uint32_t least,
                         uint32_t *out)
{
    double v = 0.0;
    if (n->kind != SC_N_SCALAR) {
        net_error(r, SC_C_TYPE, n->pos, "write a whole number",
                  "%.40s is not a number", n->key ? n->key : "a side");
        return false;
    }
    sc_status s = sc_unit_parse(n->text, SC_U_COUNT, n->pos, &v, r->err);
    net_note(r, s);
    if (s != SC_OK) return false;
    if (!(v >= least && v <= 65535.0)) {
        net_error(r, SC_C_RANGE, n->pos, NULL, "%.40s is not in %u to 65535",
                  n->text, least);
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

static bool read_window(net_reader *r, net_row *row)
{
    const sc_node *k = row->kernel_node, *pad = row->pad_node;
    bool good = true;
    if (k && k->kind == SC_N_SEQ && k->n == 2) {
        good = small_number(r, k->child, 1, &row->k) &&
               small_number(r, k->child->next, 1, &row->kw);
    } else if (k) {
        good = small_number(r, k, 1, &row->k);
        row->kw = row->k;
    }
    if (!pad) return good;
    row->same = pad->kind == SC_N_SCALAR && strcmp(pad->text, "same") == 0;
    return (row->same || small_number(r, pad, 0, &row->pad)) && good;
}

typedef struct view_row {
    const char *name, *from;
    const sc_node *extent;
} view_row;

static const sc_key view_keys[] = {
    {.name = "name",
     .type = SC_T_STRING,
     .offset = offsetof(view_row, name),
     .help = "of the dim",
     .required = true},
    {.name = "extent",
     .type = SC_T_NODE,
     .offset = offsetof(view_row, extent),
     .help = "elements",
     .required = true},
    {.name = "from",
     .type = SC_T_STRING,
     .offset = offsetof(view_row, from),
     .help = "dim of the input that it is divided with"},
    {.name = NULL}};

static bool read_view(net_reader *r, net_row *row, const sc_tensor *x)
{
    const sc_node *n = row->dims_node;
    if (!n) return true;
    row->flat = n->kind == SC_N_SCALAR && strcmp(n->text, "flat") == 0;
    if (row->flat) return true;
    if (n->kind != SC_N_SEQ || n->n == 0 || n->n > SC_TENSOR_DIMS) {
        net_error(r, SC_C_TYPE, n->pos,
                  "write flat, or [{name: n, extent: 1, from: batch}, ...]",
                  "a view must have 1 to %d dims", SC_TENSOR_DIMS);
        return false;
    }
    for (const sc_node *c = n->child; c; c = c->next) {
        view_row v = {0};
        build_dim *d = &row->view[row->n_dims++];
        sc_status s = sc_schema_read(view_keys, c, &v, NULL, r->a, r->err);
        net_note(r, s);
        if (s != SC_OK || !net_read_extent(r, v.extent, &d->extent))
            return false;
        d->name = v.name;
        d->from = -1;
        for (int i = 0; i < x->n_dim; i++)
            if (v.from && strcmp(x->dim[i].name, v.from) == 0) d->from = i;
        if (!v.from || d->from >= 0) continue;
        net_error(r, SC_C_REFERENCE, c->pos, NULL, "its input has no dim %.40s",
                  v.from);
        return false;
    }
    return true;
}

/* Reports keys that this type does not have. */
static bool check_keys(net_reader *r, const net_row *row, const sc_node *n)
{
    bool good = true;
    for (const sc_node *c = n->child; c; c = c->next)
        for (int i = 0; net_row_keys[i].name; i++) {
            if (strcmp(net_row_keys[i].name, c->key) != 0) continue;
            if (net_row_types[i] >> row->type & 1) continue;
            net_error(r, SC_C_CONFLICT, c->key_pos, NULL,
                      "%s: does not apply to a %s", c->key,
                      sc_net_type_names[row->type]);
            good = false;
        }
    return good;
}

/* Finds the weight of another operator that is to be shared. */
static bool find_weight(net_reader *r, const place *p, net_row *row,
                        const sc_node *n)
{
    row->shared = SC_NONE;
    if (!row->weight) return true;
    net_value v = resolve(r, p, row->weight);
    if (v == NET_BROKEN) return false;
    const sc_tensor *t = build_tensor(&r->b, v);
    const sc_net_op *op = t && t->op != SC_NONE ? &r->b.g.op[t->op] : NULL;
    bool conv = row->type == SC_NET_CONV || row->type == SC_NET_CONV_TRANSPOSED;
    if (op && op->n_weight && (!conv || op->type == row->type)) {
        row->shared = op->weight[0].tensor;
        row->shared_with = v;
        return true;
    }
    const sc_node *at = sc_node_get(n, "weight");
    net_error(r, SC_C_REFERENCE, at ? at->pos : n->pos, NULL,
              "no operator before has a weight and the name \"%.80s\"",
              row->weight);
    return false;
}

/* The distribution of a table's look-ups over its rows; NULL: none, or it is
 * wrong. */
static const sc_access *read_access(net_reader *r, const net_row *row,
                                    const sc_node *n)
{
    const sc_node *at = sc_node_get(n, "access");
    sc_access *x = SC_NEW(r->a, sc_access);
    if (!row->access || !x) return NULL;
    sc_status s = sc_access_read(row->access, at ? at->pos : n->pos, x, r->err);
    net_note(r, s);
    return s == SC_OK ? x : NULL;
}

static net_value build_row(net_reader *r, const net_row *row,
                           const net_value *in, unsigned n_in, const sc_node *n)
{
    const char *why;
    if (row->raw) {
        net_value v = net_read_raw(r, row, in, n_in);
        return v == SC_NONE ? NET_BROKEN : v;
    }
    net_value v = net_row_build(&r->b, row, in, n_in, &why);
    if (v != SC_NONE) return v;
    if (why)
        net_error(r, SC_C_CONFLICT, n->pos, NULL, "%.80s: %s", row->path, why);
    return NET_BROKEN;
}

static net_value build(net_reader *r, const place *p, net_row *row,
                       const sc_node *n)
{
    net_value in[NET_MAX_INPUTS];
    unsigned n_in = read_in(r, p, row->in, n->pos, in);
    bool good = check_keys(r, row, n);
    good &= find_weight(r, p, row, n);
    good &= read_window(r, row);
    for (unsigned i = 0; i < n_in; i++)
        if (in[i] == NET_BROKEN) return NET_BROKEN;
    good &= read_view(r, row, build_tensor(&r->b, in[0]));
    if (!good) return NET_BROKEN;
    r->b.scope = p->prefix;
    r->b.frozen = p->frozen || row->frozen;
    const sc_access *access = read_access(r, row, n);
    if (row->access && !access) return NET_BROKEN;
    net_value v = build_row(r, row, in, n_in, n);
    sc_net_op *op = r->b.g.n_ops ? &r->b.g.op[r->b.g.n_ops - 1] : NULL;
    if (v != NET_BROKEN && access) op->access = access;
    if (v != NET_BROKEN && sc_node_get(n, "sparse")) op->sparse = row->sparse;
    return v;
}

static void read_list(net_reader *r, place *p, const sc_node *list);

static void read_op(net_reader *r, place *p, const sc_node *n)
{
    net_row row = {0};
    net_note(r, sc_schema_defaults(net_row_keys, &row, r->a, r->err));
    sc_status s = sc_schema_read(net_row_keys, n, &row, NULL, r->a, r->err);
    net_note(r, s);
    const sc_node *path = n->kind == SC_N_MAP ? sc_node_get(n, "path") : NULL;
    net_value v = NET_BROKEN;
    if (s == SC_OK && (!row.path || !*row.path))
        net_error(r, SC_C_MISSING, n->pos, "write path: conv1",
                  "an operator needs a path");
    else if (s == SC_OK)
        v = build(r, p, &row, n);
    if (path && path->kind == SC_N_SCALAR && *path->text)
        net_add_name(r, join(r, p, path->text), v, path->pos);
    p->prev = v;
}

typedef struct module_row {
    const char *module;
    int64_t repeat;
    const sc_node *in, *operators;
    bool frozen;
} module_row;

static const sc_key module_keys[] = {
    {.name = "module",
     .type = SC_T_STRING,
     .offset = offsetof(module_row, module),
     .help = "prefix of the paths in it",
     .required = true},
    {.name = "repeat",
     .type = SC_T_INT,
     .offset = offsetof(module_row, repeat),
     .min = 1,
     .max = MAX_OPS,
     .help = "number of repetitions in a row: NAME.0, NAME.1"},
    {.name = "in",
     .type = SC_T_NODE,
     .offset = offsetof(module_row, in),
     .help = "its input; default: the operator before"},
    {.name = "operators",
     .type = SC_T_NODE,
     .offset = offsetof(module_row, operators),
     .help = "operators, as at the top level",
     .required = true},
    {.name = "frozen",
     .type = SC_T_BOOL,
     .offset = offsetof(module_row, frozen),
     .help = "its weights do not learn"},
    {.name = NULL}};

/* The name of a module means its last value.  After an error further
 * repetitions are skipped, because they would only repeat it. */
static void read_module(net_reader *r, place *p, const sc_node *n)
{
    module_row row = {0};
    net_value in[NET_MAX_INPUTS] = {NET_BROKEN};
    sc_status s = sc_schema_read(module_keys, n, &row, NULL, r->a, r->err);
    net_note(r, s);
    if (s == SC_OK && p->depth == MAX_DEPTH) {
        net_error(r, SC_C_TOO_BIG, n->pos, NULL,
                  "modules are nested deeper than %d", MAX_DEPTH);
        s = SC_EINPUT;
    }
    if (s != SC_OK) {
        p->prev = NET_BROKEN;
        return;
    }
    place inside = {.frozen = p->frozen || row.frozen, .depth = p->depth + 1};
    inside.prev = p->prev;
    if (row.in && read_in(r, p, row.in, n->pos, in) > 1)
        net_error(r, SC_C_RANGE, row.in->pos, NULL, "a module has one input");
    if (row.in) inside.prev = in[0];
    const char *path = join(r, p, row.module);
    uint32_t before = r->err->n + r->err->n_more;
    for (int64_t i = 0; i < (row.repeat ? row.repeat : 1); i++) {
        inside.prefix = path;
        inside.entry = inside.prev;
        if (row.repeat)
            inside.prefix = sc_sprintf(r->a, "%s.%u", path, (unsigned)i);
        if (!inside.prefix || r->b.no_memory) {
            r->b.no_memory = true;
            return;
        }
        read_list(r, &inside, row.operators);
        if (row.repeat) net_add_name(r, inside.prefix, inside.prev, n->pos);
        if (r->err->n + r->err->n_more != before) break;
    }
    net_add_name(r, path, inside.prev, n->pos);
    p->prev = inside.prev;
}

static void read_list(net_reader *r, place *p, const sc_node *list)
{
    if (list->kind != SC_N_SEQ || list->n == 0) {
        net_error(r, SC_C_TYPE, list->pos, "write - {path: fc, type: linear}",
                  "operators must be a list");
        p->prev = NET_BROKEN;
        return;
    }
    for (const sc_node *c = list->child; c && !r->b.no_memory; c = c->next) {
        if (c->kind == SC_N_MAP && sc_node_get(c, "module"))
            read_module(r, p, c);
        else
            read_op(r, p, c);
    }
}

/* Number of names that a list defines; MAX_OPS + 1 if there are more. */
static uint32_t count(const sc_node *list, unsigned depth)
{
    uint64_t n = 0;
    if (!list || list->kind != SC_N_SEQ || depth > MAX_DEPTH) return 0;
    for (const sc_node *c = list->child; c; c = c->next) {
        const sc_node *sub = NULL, *times = NULL;
        double repeat = 1.0;
        n++;
        if (c->kind != SC_N_MAP || !sc_node_get(c, "module")) continue;
        sub = sc_node_get(c, "operators");
        times = sc_node_get(c, "repeat");
        if (times && times->kind == SC_N_SCALAR)
            (void)sc_unit_parse(times->text, SC_U_COUNT, times->pos, &repeat,
                                NULL);
        double all = (count(sub, depth + 1) + 1.0) * repeat;
        n += all > MAX_OPS ? MAX_OPS + 1 : all > 0 ? (uint64_t)all : 0;
    }
    return n > MAX_OPS ? MAX_OPS + 1 : (uint32_t)n;
}

/* ---- the file */

typedef struct file_row {
    const char *name, *sample;
    const sc_node *inputs, *operators;
    bool fixed;
} file_row;

static const sc_key file_keys[] = {
    {.name = "name",
     .type = SC_T_STRING,
     .offset = offsetof(file_row, name),
     .help = "of the network; default the file's"},
    {.name = "sample",
     .type = SC_T_STRING,
     .offset = offsetof(file_row, sample),
     .def = "sample",
     .help = "what a sample is: image, sequence"},
    {.name = "inputs",
     .type = SC_T_NODE,
     .offset = offsetof(file_row, inputs),
     .help = "names and dims of the data",
     .required = true},
    {.name = "operators",
     .type = SC_T_NODE,
     .offset = offsetof(file_row, operators),
     .help = "in the order of the forward pass",
     .required = true},
    {.name = "fixed",
     .type = SC_T_BOOL,
     .offset = offsetof(file_row, fixed),
     .help = "the batch is in the extents, as one sample"},
    {.name = NULL}};

sc_status net_read_map(const sc_node *root, const char *fallback, sc_arena *a,
                       const sc_net **out, sc_err *err)
{
    net_reader r = {.a = a, .err = err};
    file_row f = {0};
    SC_TRY(sc_schema_defaults(file_keys, &f, a, err));
    SC_TRY(sc_schema_read(file_keys, root, &f, NULL, a, err));
    uint32_t n = count(f.operators, 0);
    if (n > MAX_OPS)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, f.operators->pos, NULL,
                        "more than %u operators", MAX_OPS);
    uint32_t n_inputs = f.inputs->kind == SC_N_MAP ? f.inputs->n : 0;
    SC_TRY(net_names_init(&r.names, n + n_inputs + 1, a, err));
    const char *name = f.name && *f.name ? f.name : fallback;
    build_init(&r.b, a, name, f.sample);
    r.b.g.fixed = f.fixed;
    net_read_inputs(&r, f.inputs);
    place top = {.entry = SC_NONE, .prev = SC_NONE};
    if (n_inputs == 1) top.prev = top.entry = r.names.value[0];
    read_list(&r, &top, f.operators);
    SC_TRY(r.status);
    return net_row_finish(&r.b, root->pos, out, err);
}

sc_status sc_net_read(const char *text, size_t len, const char *file,
                      sc_arena *a, const sc_net **out, sc_err *err)
{
    sc_node *root;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    const char *name = model_stem(file, a);
    if (!name) return sc_error_nomem(err);
    if (root->kind != SC_N_MAP)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, root->pos,
                        "write inputs: and operators:",
                        "a model must be a mapping of keys");
    return net_read_map(root, name, a, out, err);
}
