/* SPDX-License-Identifier: Apache-2.0 */
/* et_read.c - the nodes of an execution trace that a network needs. */
#include "model/et.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NODES (1u << 22)

typedef struct reader {
    sc_arena *a;
    sc_err *err;
    sc_pos pos; /* of the node at hand */
    et_trace t;
    uint32_t cap;
} reader;

static bool wrong(reader *r, sc_code code, const char *what)
{
    (void)sc_error(r->err, SC_EINPUT, code, r->pos, NULL, "%s", what);
    return false;
}

double et_elements(const et_tensor *t)
{
    double n = 1.0;
    for (unsigned i = 0; i < t->n_dim; i++) n *= (double)t->dim[i];
    return n;
}

bool et_same_shape(const et_tensor *x, const et_tensor *y)
{
    return x->n_dim == y->n_dim &&
           memcmp(x->dim, y->dim, x->n_dim * sizeof x->dim[0]) == 0;
}

/* ---- parts of a node */

static bool has(const scan_token *type, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= type->len; i++)
        if (memcmp(type->at + i, word, n) == 0) return true;
    return false;
}

/* Floating-point elements have the run's precision. */
static bool is_float(const scan_token *type)
{
    return has(type, "float") || has(type, "double") || has(type, "Half") ||
           has(type, "Float");
}

static bool read_dims(const scan_token *shape, et_tensor *t)
{
    const char *p = shape->at + 1, *end = shape->at + shape->len;
    scan_token d;
    while (scan_element(&p, end, &d)) {
        if (t->n_dim == ET_DIMS || !sc_et_whole(&d, &t->dim[t->n_dim]) ||
            t->dim[t->n_dim] > (uint64_t)UINT32_MAX)
            return false;
        t->n_dim++;
    }
    return et_elements(t) < 9e15;
}

static bool read_tensor(reader *r, const scan_token *v, const scan_token *shape,
                        const scan_token *type, et_tensor *t)
{
    sc_et_tensor x;
    *t = (et_tensor){0};
    if (shape->type != SCAN_ARRAY || !sc_et_tensor_read(v, &x))
        return wrong(r, SC_C_TYPE,
                     "a tensor must be [id, storage, offset, elements, bytes, "
                     "device] with a shape");
    t->id = x.id;
    t->storage = x.storage;
    t->bytes = is_float(type) ? 0 : (uint8_t)x.bytes;
    if (!read_dims(shape, t) || x.bytes > 16)
        return wrong(r, SC_C_RANGE, "ids or extents of a tensor are not valid");
    return true;
}

/* Reads the tensors of a list whose values and shapes are in parallel lists. */
static bool read_list(reader *r, const scan_token *v, const scan_token *shape,
                      const scan_token *type, et_arg *arg)
{
    const char *p = v->at + 1, *end = v->at + v->len;
    const char *q = shape->at + 1, *behind = shape->at + shape->len;
    scan_token e, dims;
    uint32_t cap = 0;
    arg->kind = ET_TENSORS;
    if (v->type != SCAN_ARRAY || shape->type != SCAN_ARRAY)
        return wrong(r, SC_C_TYPE, "a list of tensors must have shapes");
    while (scan_element(&p, end, &e) && scan_element(&q, behind, &dims)) {
        if (e.type != SCAN_ARRAY) continue; /* Python's None */
        arg->t = sc_grow(r->a, arg->t, arg->n, &cap, 4, sizeof *arg->t);
        if (!arg->t || !read_tensor(r, &e, &dims, type, &arg->t[arg->n]))
            return false;
        arg->n++;
    }
    return true;
}

static bool read_arg(reader *r, const scan_token *v, const scan_token *shape,
                     const scan_token *type, et_arg *arg)
{
    if (sc_et_is_tensor(type) && v->type == SCAN_ARRAY) {
        arg->t = SC_NEW(r->a, et_tensor);
        arg->kind = ET_TENSOR;
        arg->n = 1;
        return arg->t && read_tensor(r, v, shape, type, arg->t);
    }
    if (sc_et_is_tensor_list(type)) return read_list(r, v, shape, type, arg);
    if (v->type == SCAN_ARRAY || v->type == SCAN_OBJECT) return true;
    arg->number = SCAN_IS(v, "true") ? 1.0 : strtod(v->at, NULL);
    arg->kind = ET_NUMBER;
    return true;
}

/* True, or an error if the lists of the node do not belong together. */
static bool complete(reader *r, const sc_et_args *it)
{
    return !it->unequal || wrong(r, SC_C_TYPE,
                                 "values, shapes and types of a node must be "
                                 "lists of equal length");
}

static bool read_in(reader *r, const sc_et_node *n, et_node *out)
{
    sc_et_args it;
    scan_token v, shape, type;
    uint32_t cap = 0;
    sc_et_args_init(&it, &n->in);
    while (sc_et_args_next(&it, &v, &shape, &type)) {
        if (out->n_in == ET_ARGS) continue;
        out->in = sc_grow(r->a, out->in, out->n_in, &cap, 4, sizeof *out->in);
        if (!out->in || !read_arg(r, &v, &shape, &type, &out->in[out->n_in++]))
            return false;
    }
    return complete(r, &it);
}

static bool read_out(reader *r, const sc_et_node *n, et_node *out)
{
    sc_et_args it;
    scan_token v, shape, type;
    uint32_t cap = 0;
    sc_et_args_init(&it, &n->out);
    while (sc_et_args_next(&it, &v, &shape, &type)) {
        et_arg arg = {0};
        if (!read_arg(r, &v, &shape, &type, &arg)) return false;
        for (uint32_t i = 0; i < arg.n; i++) {
            out->out =
                sc_grow(r->a, out->out, out->n_out, &cap, 2, sizeof *out->out);
            if (!out->out) return false;
            out->out[out->n_out++] = arg.t[i];
        }
    }
    return complete(r, &it);
}

static sc_status on_node(void *ctx, const sc_et_node *n)
{
    reader *r = ctx;
    et_node e = {.pos = n->pos, .id = n->id, .parent = n->parent};
    r->pos = n->pos;
    if (r->t.n == MAX_NODES)
        return sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG, n->pos, NULL,
                        "the trace has more than %u nodes", MAX_NODES);
    et_node *list =
        sc_grow(r->a, r->t.node, r->t.n, &r->cap, 1024, sizeof *list);
    char *name = SC_RAW_N(r->a, char, (size_t)n->name.len + 1);
    if (!list || !name) return sc_error_nomem(r->err);
    scan_unescape(&n->name, name);
    e.name = name;
    r->t.node = list;
    e.backward = n->scope == 1 || strncmp(name, "autograd::", 10) == 0;
    bool op = strstr(name, "::") && !e.backward;
    uint32_t before = r->err->n;
    bool good = !op || (read_in(r, n, &e) && read_out(r, n, &e));
    list[r->t.n++] = e;
    if (good) return SC_OK;
    return r->err->n > before ? SC_EINPUT : sc_error_nomem(r->err);
}

sc_et_kind et_kind_of(const char *text, size_t len)
{
    sc_stream *in;
    sc_err err;
    sc_et_head head;
    sc_et_kind kind = SC_ET_OTHER;
    sc_err_init(&err);
    if (sc_stream_open_memory(text, len, "", &in, &err) != SC_OK) return kind;
    (void)sc_et_recognise(in, "", &kind, &head, &err);
    sc_stream_close(in);
    return kind;
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
    sc_stream *in;
    reader r = {.a = a, .err = err};
    const char *name = sc_strdup(a, file);
    if (!name) return sc_error_nomem(err);
    SC_TRY(sc_stream_open_memory(text, len, name, &in, err));
    sc_status s = sc_et_read(in, name, on_node, &r, err);
    sc_stream_close(in);
    if (s != SC_OK && s != SC_EINPUT) return s;
    if (r.t.n > 0) qsort(r.t.node, r.t.n, sizeof *r.t.node, by_id);
    for (uint32_t i = 1; i < r.t.n; i++)
        if (r.t.node[i].id == r.t.node[i - 1].id)
            s = sc_error(err, SC_EINPUT, SC_C_DUPLICATE, r.t.node[i].pos, NULL,
                         "another node has this id");
    *out = r.t;
    return s;
}
