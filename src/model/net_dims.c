/* SPDX-License-Identifier: Apache-2.0 */
/* net_dims.c - reads names, dims and inputs of a model.yml with
 * `operators:`. */
#include "model/net_read.h"

#include <string.h>

void net_note(net_reader *r, sc_status s)
{
    if (r->status == SC_OK) r->status = s;
}

void net_error(net_reader *r, sc_code code, sc_pos pos, const char *hint,
               const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sc_error_v(r->err, &r->status, SC_EINPUT, code, pos, hint, fmt, args);
    va_end(args);
}

/* ---- names */

net_value net_named(const net_reader *r, const char *name)
{
    const net_names *n = &r->names;
    uint32_t i = sc_map_name(&n->index, n->name, name);
    return i == SC_MAP_END ? SC_NONE : n->value[i];
}

void net_add_name(net_reader *r, const char *name, net_value v, sc_pos pos)
{
    net_names *n = &r->names;
    if (sc_map_name(&n->index, n->name, name) != SC_MAP_END) {
        net_error(r, SC_C_DUPLICATE, pos, NULL, "a second \"%.80s\"", name);
        return;
    }
    n->name[n->n] = name;
    n->value[n->n] = v;
    if (!sc_map_add_name(&n->index, r->a, name, n->n++))
        net_note(r, sc_error_nomem(r->err));
}

sc_status net_names_init(net_names *n, uint32_t most, sc_arena *a, sc_err *err)
{
    n->name = SC_NEW_N(a, const char *, (size_t)most + 1);
    n->value = SC_NEW_N(a, net_value, most);
    return n->name && n->value ? SC_OK : sc_error_nomem(err);
}

/* ---- dims */

bool net_read_extent(net_reader *r, const sc_node *n, uint64_t *out)
{
    double v = 0.0;
    *out = 1;
    if (n->kind != SC_N_SCALAR) {
        net_error(r, SC_C_TYPE, n->pos, "write a whole number",
                  "an extent is not a number");
        return false;
    }
    sc_status s = sc_unit_parse(n->text, SC_U_COUNT, n->pos, &v, r->err);
    net_note(r, s);
    if (s != SC_OK) return false;
    if (!(v >= 1.0 && v <= NET_MAX_EXTENT)) {
        net_error(r, SC_C_RANGE, n->pos, NULL,
                  "an extent of %.40s is not in 1 to 4294967295", n->text);
        return false;
    }
    *out = (uint64_t)v;
    return true;
}

typedef struct dim_row {
    const char *name;
    const sc_node *extent;
    bool batch;
} dim_row;

static const sc_key dim_keys[] = {{.name = "name",
                                   .type = SC_T_STRING,
                                   .offset = offsetof(dim_row, name),
                                   .help = "of the dim",
                                   .required = true},
                                  {.name = "extent",
                                   .type = SC_T_NODE,
                                   .offset = offsetof(dim_row, extent),
                                   .help = "elements",
                                   .required = true},
                                  {.name = "batch",
                                   .type = SC_T_BOOL,
                                   .offset = offsetof(dim_row, batch),
                                   .help = "elements are per sample"},
                                  {.name = NULL}};

/* The usual name of dim i of a tensor with n dims (1 to 5). */
static const char *usual_name(unsigned i, unsigned n)
{
    static const char *const image[] = {"d", "h", "w"};
    if (i == 0) return "batch";
    if (n == 3) return i == 1 ? "seq" : "hidden";
    if (i == 1) return "c";
    return n <= 5 ? image[i + 3 - n] : "x";
}

static bool read_dim(net_reader *r, const sc_node *c, bool list, unsigned i,
                     unsigned n, sc_tensor_dim *out)
{
    if (c->kind == SC_N_MAP) {
        dim_row row = {0};
        sc_status s = sc_schema_read(dim_keys, c, &row, NULL, r->a, r->err);
        net_note(r, s);
        if (s != SC_OK) return false;
        out->name = row.name;
        out->batch = row.batch;
        return net_read_extent(r, row.extent, &out->extent);
    }
    out->name = list ? usual_name(i, n) : c->key;
    out->batch = i == 0;
    if (list && i == 0 && c->kind == SC_N_SCALAR &&
        strcmp(c->text, "batch") == 0) {
        out->extent = 1;
        return true;
    }
    return net_read_extent(r, c, &out->extent);
}

bool net_read_dims(net_reader *r, const sc_node *n, bool input,
                   sc_tensor_dim dim[SC_TENSOR_DIMS], unsigned *n_dims)
{
    bool good = true, list = n->kind == SC_N_SEQ;
    *n_dims = 0;
    if ((!list && n->kind != SC_N_MAP) || n->n == 0 || n->n > SC_TENSOR_DIMS) {
        net_error(r, SC_C_TYPE, n->pos,
                  "write {batch: 1, c: 3, h: 224, w: 224}",
                  "a tensor must have 1 to %d dims", SC_TENSOR_DIMS);
        return false;
    }
    for (const sc_node *c = n->child; c; c = c->next) {
        sc_tensor_dim *d = &dim[*n_dims];
        good &= read_dim(r, c, list, *n_dims, n->n, d);
        if (!input && c->kind != SC_N_MAP) d->batch = false;
        for (unsigned k = 0; k < *n_dims && good; k++) {
            if (strcmp(dim[k].name, d->name) != 0) continue;
            net_error(r, SC_C_DUPLICATE, c->pos, NULL,
                      "dim %.40s is there twice", d->name);
            good = false;
        }
        ++*n_dims;
    }
    return good;
}

/* ---- inputs */

typedef struct input_row {
    const sc_node *dims;
    int64_t bytes;
} input_row;

static const sc_key input_keys[] = {
    {.name = "dims",
     .type = SC_T_NODE,
     .offset = offsetof(input_row, dims),
     .help = "of the tensor",
     .required = true},
    {.name = "bytes",
     .type = SC_T_INT,
     .offset = offsetof(input_row, bytes),
     .min = 0,
     .max = 16,
     .help = "of an element; 0: the precision of the run"},
    {.name = NULL}};

static net_value read_input(net_reader *r, const sc_node *n)
{
    input_row row = {.dims = n};
    sc_tensor_dim dim[SC_TENSOR_DIMS];
    unsigned n_dims;
    const sc_node *dims = n->kind == SC_N_MAP ? sc_node_get(n, "dims") : NULL;
    if (dims && dims->kind != SC_N_SCALAR) {
        sc_status s = sc_schema_read(input_keys, n, &row, NULL, r->a, r->err);
        net_note(r, s);
        if (s != SC_OK) return NET_BROKEN;
    }
    if (!net_read_dims(r, row.dims, true, dim, &n_dims)) return NET_BROKEN;
    uint32_t before = r->b.g.n_tensors;
    net_value v = build_input(&r->b, n->key, n_dims, dim, (unsigned)row.bytes);
    const char *why = net_row_too_large(&r->b, before);
    if (!why) return v;
    net_error(r, SC_C_TOO_BIG, n->pos, NULL, "%s: %s", n->key, why);
    return NET_BROKEN;
}

void net_read_inputs(net_reader *r, const sc_node *inputs)
{
    if (inputs->kind != SC_N_MAP || inputs->n == 0) {
        net_error(r, SC_C_TYPE, inputs->pos,
                  "write {image: {batch: 1, c: 3, h: 224, w: 224}}",
                  "inputs must be a mapping of names to dims");
        return;
    }
    for (const sc_node *c = inputs->child; c; c = c->next)
        net_add_name(r, c->key, read_input(r, c), c->key_pos);
}
