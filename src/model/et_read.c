/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et_read.c - reads the nodes of a PyTorch execution trace one at a time.
 *
 * Up to schema 1.0.2 a node has flat fields (`inputs`, `input_shapes`,
 * `parent`); later schemas group them (`inputs: {values, shapes, types}`,
 * `ctrl_deps`, `attrs`).  A tensor is [id, storage, offset, elements, bytes per
 * element, device].
 */
#include "model/et.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NODES (1u << 22)
#define MAX_DEPTH 16

typedef struct reader {
    sc_arena *a;
    sc_arena scratch; /* memory of one node */
    const char *file;
    sc_err *err;
    sc_status status; /* first error; reading continues after it */
    uint32_t depth;
    bool in_nodes, found;

    struct {
        sc_node *node, *last;
    } open[MAX_DEPTH];

    uint32_t n_open;
    const char *key;
    et_trace t;
    uint32_t cap;
} reader;

static void wrong(reader *r, sc_pos pos, sc_code code, const char *what)
{
    sc_status s = sc_error(r->err, SC_EINPUT, code, pos, NULL, "%s", what);
    if (r->status == SC_OK) r->status = s;
}

double et_elements(const et_tensor *t)
{
    double n = 1.0;
    for (unsigned i = 0; i < t->n_dim; i++) n *= (double)t->dim[i];
    return n;
}

/* ---- parts of a node */

static const sc_node *get(const sc_node *map, const char *key)
{
    return map && map->kind == SC_N_MAP ? sc_node_get(map, key) : NULL;
}

static bool whole(const sc_node *n, uint64_t *out)
{
    char *end;
    if (!n || n->kind != SC_N_SCALAR || n->text[0] < '0' || n->text[0] > '9')
        return false;
    *out = strtoull(n->text, &end, 10);
    return *end == '\0' && *out < (uint64_t)1 << 53;
}

static uint64_t attribute(const sc_node *node, const char *name)
{
    const sc_node *attrs = get(node, "attrs");
    uint64_t v = 0;
    (void)whole(get(node, name), &v);
    if (!attrs || attrs->kind != SC_N_SEQ) return v;
    for (const sc_node *c = attrs->child; c; c = c->next) {
        const sc_node *key = get(c, "name");
        if (key && key->kind == SC_N_SCALAR && strcmp(key->text, name) == 0)
            (void)whole(get(c, "value"), &v);
    }
    return v;
}

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* Floating-point elements have the run's precision. */
static bool is_float(const char *type)
{
    return strstr(type, "float") || strstr(type, "double") ||
           strstr(type, "Half") || strstr(type, "Float");
}

static bool read_tensor(reader *r, const sc_node *v, const sc_node *shape,
                        const char *type, et_tensor *t)
{
    *t = (et_tensor){0};
    if (!v || v->kind != SC_N_SEQ || v->n < 5 || !shape ||
        shape->kind != SC_N_SEQ) {
        wrong(r, v ? v->pos : sc_pos_none(), SC_C_TYPE,
              "a tensor must be [id, storage, offset, elements, bytes, device] "
              "with a shape");
        return false;
    }
    uint64_t bytes = 0;
    const sc_node *storage = v->child->next;
    const sc_node *size = storage->next->next->next;
    bool good = whole(v->child, &t->id) && whole(storage, &t->storage) &&
                whole(size, &bytes) && bytes <= 16 && shape->n <= ET_DIMS;
    for (const sc_node *d = shape->child; d && good; d = d->next) {
        good = whole(d, &t->dim[t->n_dim]) &&
               t->dim[t->n_dim] <= (uint64_t)UINT32_MAX;
        t->n_dim++;
    }
    t->bytes = is_float(type) ? 0 : (uint8_t)bytes;
    good = good && et_elements(t) < 9e15;
    if (!good)
        wrong(r, v->pos, SC_C_RANGE,
              "ids or extents of a tensor are not valid");
    return good;
}

/* Reads the tensors of a list whose values and shapes are in parallel lists. */
static bool read_list(reader *r, const sc_node *v, const sc_node *shape,
                      const char *type, et_arg *arg)
{
    if (v->kind != SC_N_SEQ || !shape || shape->kind != SC_N_SEQ) return false;
    arg->t = SC_NEW_N(r->a, et_tensor, v->n);
    if (!arg->t) return false;
    const sc_node *s = shape->child;
    for (const sc_node *c = v->child; c && s; c = c->next, s = s->next) {
        if (c->kind != SC_N_SEQ || c->n < 5) continue; /* Python's None */
        if (!read_tensor(r, c, s, type, &arg->t[arg->n])) return false;
        arg->n++;
    }
    arg->kind = ET_TENSORS;
    return true;
}

static bool read_arg(reader *r, const sc_node *v, const sc_node *shape,
                     const sc_node *type, et_arg *arg)
{
    const char *word = type && type->kind == SC_N_SCALAR ? type->text : "";
    if (starts(word, "Tensor") && v->kind == SC_N_SEQ) {
        arg->t = SC_NEW(r->a, et_tensor);
        arg->kind = ET_TENSOR;
        arg->n = 1;
        return arg->t && read_tensor(r, v, shape, word, arg->t);
    }
    if (starts(word, "GenericList[Tensor"))
        return read_list(r, v, shape, word, arg);
    if (v->kind != SC_N_SCALAR) return true;
    arg->number = strcmp(v->text, "true") == 0 ? 1.0 : strtod(v->text, NULL);
    arg->kind = ET_NUMBER;
    return true;
}

/* The values, shapes and types of a node's inputs or outputs, in either
 * schema. */
typedef struct side {
    const sc_node *values, *shapes, *types;
} side;

static side side_of(const sc_node *node, bool out)
{
    const sc_node *all = get(node, out ? "outputs" : "inputs");
    if (all && all->kind == SC_N_MAP)
        return (side){get(all, "values"), get(all, "shapes"),
                      get(all, "types")};
    return (side){all, get(node, out ? "output_shapes" : "input_shapes"),
                  get(node, out ? "output_types" : "input_types")};
}

/* Checks that the lists have equal length; true if there is nothing to read. */
static bool check_side(reader *r, const side *s, sc_pos pos, bool *empty)
{
    *empty = !s->values || s->values->kind == SC_N_NULL;
    if (*empty) return true;
    if (s->values->kind == SC_N_SEQ && s->shapes && s->types &&
        s->shapes->kind == SC_N_SEQ && s->types->kind == SC_N_SEQ &&
        s->values->n == s->shapes->n && s->values->n == s->types->n)
        return true;
    wrong(r, pos, SC_C_TYPE,
          "values, shapes and types of a node must be lists of equal length");
    return false;
}

static bool read_in(reader *r, const sc_node *node, et_node *out)
{
    bool empty;
    side s = side_of(node, false);
    if (!check_side(r, &s, node->pos, &empty)) return false;
    if (empty) return true;
    sc_assert(s.values && s.shapes && s.types);
    uint32_t n = s.values->n < ET_ARGS ? s.values->n : ET_ARGS;
    out->in = SC_NEW_N(r->a, et_arg, n);
    if (!out->in) return false;
    const sc_node *shape = s.shapes->child, *type = s.types->child;
    for (const sc_node *v = s.values->child; v && out->n_in < n;
         v = v->next, shape = shape->next, type = type->next)
        if (!read_arg(r, v, shape, type, &out->in[out->n_in++])) return false;
    return true;
}

static bool read_out(reader *r, const sc_node *node, et_node *out)
{
    bool empty;
    side s = side_of(node, true);
    if (!check_side(r, &s, node->pos, &empty)) return false;
    if (empty) return true;
    uint32_t cap = 0;
    const sc_node *shape = s.shapes->child, *type = s.types->child;
    for (const sc_node *v = s.values->child; v;
         v = v->next, shape = shape->next, type = type->next) {
        et_arg arg = {0};
        if (!read_arg(r, v, shape, type, &arg)) return false;
        for (uint32_t i = 0; i < arg.n; i++) {
            out->out =
                sc_grow(r->a, out->out, out->n_out, &cap, 2, sizeof *out->out);
            if (!out->out) return false;
            out->out[out->n_out++] = arg.t[i];
        }
    }
    return true;
}

static sc_status read_node(reader *r, const sc_node *n)
{
    et_node e = {.pos = n->pos};
    const sc_node *name = get(n, "name"), *parent = get(n, "ctrl_deps");
    if (!parent) parent = get(n, "parent");
    if (!whole(get(n, "id"), &e.id) || !whole(parent, &e.parent) || !name ||
        name->kind != SC_N_SCALAR) {
        wrong(r, n->pos, SC_C_MISSING,
              "a node needs a name, an id and a ctrl_deps or parent");
        return SC_OK;
    }
    if (r->t.n == MAX_NODES)
        return sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG, n->pos, NULL,
                        "the trace has more than %u nodes", MAX_NODES);
    et_node *list =
        sc_grow(r->a, r->t.node, r->t.n, &r->cap, 1024, sizeof *list);
    e.name = sc_strdup(r->a, name->text);
    if (!list || !e.name) return sc_error_nomem(r->err);
    r->t.node = list;
    e.backward = attribute(n, "scope") == 1 || starts(e.name, "autograd::");
    bool op = strstr(e.name, "::") && !e.backward;
    uint32_t before = r->err->n;
    if (op && !(read_in(r, n, &e) && read_out(r, n, &e)) &&
        r->err->n == before && r->status == SC_OK)
        return sc_error_nomem(r->err);
    list[r->t.n++] = e;
    return SC_OK;
}

/* ---- the tree of one node */

static sc_node *add(reader *r, const sc_event *ev)
{
    sc_node *n = SC_NEW(&r->scratch, sc_node);
    if (!n) return NULL;
    n->pos = ev->pos;
    n->pos.file = r->file;
    n->key = r->key;
    r->key = NULL;
    if (r->n_open == 0) return n;
    sc_node *parent = r->open[r->n_open - 1].node;
    if (r->open[r->n_open - 1].last)
        r->open[r->n_open - 1].last->next = n;
    else
        parent->child = n;
    r->open[r->n_open - 1].last = n;
    parent->n++;
    return n;
}

static sc_status build(reader *r, const sc_event *ev)
{
    bool map = ev->kind == SC_EV_MAP_BEGIN;
    if (ev->kind == SC_EV_MAP_END || ev->kind == SC_EV_SEQ_END) {
        const sc_node *done = r->open[--r->n_open].node;
        if (r->n_open > 0) return SC_OK;
        SC_TRY(read_node(r, done));
        sc_arena_reset(&r->scratch);
        return SC_OK;
    }
    if (ev->kind == SC_EV_KEY) {
        r->key = sc_strndup(&r->scratch, ev->text, ev->len);
        return r->key ? SC_OK : sc_error_nomem(r->err);
    }
    sc_node *n = add(r, ev);
    if (!n) return sc_error_nomem(r->err);
    if (ev->kind == SC_EV_SCALAR) {
        n->kind = SC_N_SCALAR;
        n->text = sc_strndup(&r->scratch, ev->text, ev->len);
        return n->text ? SC_OK : sc_error_nomem(r->err);
    }
    n->kind = map ? SC_N_MAP : SC_N_SEQ;
    if (r->n_open == MAX_DEPTH)
        return sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG, n->pos, NULL,
                        "a node is nested deeper than %d levels", MAX_DEPTH);
    r->open[r->n_open].node = n;
    r->open[r->n_open++].last = NULL;
    return SC_OK;
}

/* Depth 1 is the file's map, depth 2 the list of nodes. */
static sc_status on_event(void *ctx, const sc_event *ev, sc_err *err)
{
    reader *r = ctx;
    (void)err;
    bool begin = ev->kind == SC_EV_MAP_BEGIN || ev->kind == SC_EV_SEQ_BEGIN;
    bool end = ev->kind == SC_EV_MAP_END || ev->kind == SC_EV_SEQ_END;
    if (r->in_nodes && (r->depth > 2 || (begin && r->depth == 2)))
        SC_TRY(build(r, ev));
    else if (r->in_nodes && ev->kind == SC_EV_SCALAR)
        wrong(r, ev->pos, SC_C_TYPE, "a node must be a mapping");
    if (ev->kind == SC_EV_KEY && r->depth == 1)
        r->found = ev->len == 5 && memcmp(ev->text, "nodes", 5) == 0;
    if (begin && ev->kind == SC_EV_SEQ_BEGIN && r->depth == 1 && r->found)
        r->in_nodes = true;
    if (begin) r->depth++;
    if (end && --r->depth == 1) r->in_nodes = false;
    return SC_OK;
}

/* Returns SC_NO once the file is known to be a trace, to stop reading. */
static sc_status look(void *ctx, const sc_event *ev, sc_err *err)
{
    reader *r = ctx;
    (void)err;
    if (ev->kind == SC_EV_KEY && r->depth == 1)
        r->found = ev->len == 5 && memcmp(ev->text, "nodes", 5) == 0;
    if (ev->kind == SC_EV_SEQ_BEGIN && r->depth == 1 && r->found) return SC_NO;
    if (ev->kind == SC_EV_MAP_BEGIN || ev->kind == SC_EV_SEQ_BEGIN) r->depth++;
    if (ev->kind == SC_EV_MAP_END || ev->kind == SC_EV_SEQ_END) r->depth--;
    return SC_OK;
}

bool et_is(const char *text, size_t len)
{
    reader r = {0};
    sc_err err;
    sc_err_init(&err);
    return sc_doc_events(text, len, SC_FMT_JSON, "", look, &r, &err) == SC_NO;
}

static int by_id(const void *x, const void *y)
{
    const et_node *m = x, *n = y;
    if (m->id != n->id) return m->id < n->id ? -1 : 1;
    return m->pos.line < n->pos.line   ? -1
           : m->pos.line > n->pos.line ? 1
           : m->pos.col < n->pos.col   ? -1
                                       : m->pos.col > n->pos.col;
}

sc_status et_read(const char *text, size_t len, const char *file, sc_arena *a,
                  et_trace *out, sc_err *err)
{
    reader r = {.a = a, .err = err, .file = sc_strdup(a, file)};
    if (!r.file) return sc_error_nomem(err);
    sc_arena_init(&r.scratch, (size_t)64 << 20);
    sc_status s =
        sc_doc_events(text, len, SC_FMT_JSON, file, on_event, &r, err);
    sc_arena_free(&r.scratch);
    SC_TRY(s);
    if (r.t.n > 0) qsort(r.t.node, r.t.n, sizeof *r.t.node, by_id);
    for (uint32_t i = 1; i < r.t.n; i++)
        if (r.t.node[i].id == r.t.node[i - 1].id)
            wrong(&r, r.t.node[i].pos, SC_C_DUPLICATE,
                  "another node has this id");
    *out = r.t;
    return r.status;
}
