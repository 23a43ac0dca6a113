/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_raw.c - reads `raw:` of an operator: its iteration dims and, for every
 * tensor, the iteration dim that indexes each dim ("-": none).
 */
#include "model/net_read.h"

#include <string.h>

typedef struct raw_row {
    const sc_node *iter, *in, *weights, *dims, *at;
    int64_t bytes, lookups, heads, kv_heads, qk_dim, v_dim, window, experts,
        topk, route_groups, route_topk;
    double flops;
    int fn;
    bool learns, gated, dropout, causal, cross, copy, keep_bf16;
    const char *detail;
} raw_row;

#define ROW(s, label, field_, type_, text)                              \
    .name = label, .type = SC_T_##type_, .offset = offsetof(s, field_), \
    .help = text

#define COUNT(field, text)                                            \
    {                                                                 \
        ROW(raw_row, #field, field, INT, text), .max = NET_MAX_EXTENT \
    }

static const sc_key raw_keys[] = {
    {ROW(raw_row, "iter", iter, NODE, "iteration dims"), .required = true},
    {ROW(raw_row, "in", in, NODE, "iteration dims that index each input"),
     .required = true},
    {ROW(raw_row, "weights", weights, NODE, "at most two")},
    {ROW(raw_row, "dims", dims, NODE, "of the result"), .required = true},
    {ROW(raw_row, "at", at, NODE, "iteration dims that index it"),
     .required = true},
    {ROW(raw_row, "bytes", bytes, INT, "of an element of the result"),
     .max = 16},
    {ROW(raw_row, "learns", learns, BOOL, "the result has a gradient")},
    {ROW(raw_row, "flops", flops, QUANTITY, "of a sample, forward"),
     .unit = SC_U_NONE, .max = 1e30},
    {ROW(raw_row, "lookups", lookups, INT, "rows that are summed"),
     .max = NET_MAX_EXTENT},
    {ROW(raw_row, "fn", fn, ENUM, "of each element"), .names = sc_net_fn_names,
     .def = "none"},
    COUNT(heads, "of attention"),
    COUNT(kv_heads, "of keys and values"),
    COUNT(qk_dim, "of a query"),
    COUNT(v_dim, "of a value"),
    COUNT(window, "keys that a query sees"),
    COUNT(experts, "of routed tokens"),
    COUNT(topk, "experts of a token"),
    COUNT(route_groups, "groups of experts"),
    COUNT(route_topk, "groups of a token's experts"),
    {ROW(raw_row, "gated", gated, BOOL, "one half scales the other")},
    {ROW(raw_row, "dropout", dropout, BOOL, "in the same kernel")},
    {ROW(raw_row, "causal", causal, BOOL, "of attention")},
    {ROW(raw_row, "cross", cross, BOOL, "keys of another sequence")},
    {ROW(raw_row, "copy", copy, BOOL, "of a view")},
    {ROW(raw_row, "keep_bf16", keep_bf16, BOOL, "not in 8 bits or less")},
    {ROW(raw_row, "detail", detail, STRING, "title for reports")},
    {.name = NULL}};

static const char *const kinds[] = {"batch", "free", "reduce", "opaque", NULL};

typedef struct iter_row {
    const char *name;
    int kind; /* sc_iter_kind */
    const sc_node *extent;
    int64_t units, halo;
    bool batch, sums;
} iter_row;

static const sc_key iter_keys[] = {
    {ROW(iter_row, "name", name, STRING, "of the dim"), .required = true},
    {ROW(iter_row, "kind", kind, ENUM, "whether and how it may be divided"),
     .names = kinds, .required = true},
    {ROW(iter_row, "extent", extent, NODE, "elements"), .required = true},
    {ROW(iter_row, "units", units, INT, "indivisible parts"),
     .max = NET_MAX_EXTENT},
    {ROW(iter_row, "halo", halo, INT, "positions read from neighbours"),
     .max = NET_MAX_EXTENT},
    {ROW(iter_row, "sums", sums, BOOL, "statistics are over it")},
    {ROW(iter_row, "batch", batch, BOOL, "elements are per sample")},
    {.name = NULL}};

typedef struct weight_row {
    const char *name, *of;
    const sc_node *dims, *at;
    int64_t bytes;
    bool learns;
} weight_row;

static const sc_key weight_keys[] = {
    {ROW(weight_row, "name", name, STRING, "weight or bias"), .required = true},
    {ROW(weight_row, "of", of, STRING, "operator whose weight it is")},
    {ROW(weight_row, "dims", dims, NODE, "of a weight of its own")},
    {ROW(weight_row, "at", at, NODE, "iteration dims that index it"),
     .required = true},
    {ROW(weight_row, "bytes", bytes, INT, "of an element"), .max = 16},
    {ROW(weight_row, "learns", learns, BOOL, "has a gradient"), .def = "true"},
    {.name = NULL}};

static bool read_schema(net_reader *r, const sc_key *keys, const sc_node *n,
                        void *out)
{
    sc_status s = sc_schema_defaults(keys, out, r->a, r->err);
    if (s == SC_OK) s = sc_schema_read(keys, n, out, NULL, r->a, r->err);
    net_note(r, s);
    return s == SC_OK;
}

static bool is_list(net_reader *r, const sc_node *n, unsigned least,
                    unsigned most)
{
    if (n->kind == SC_N_SEQ && n->n >= least && n->n <= most) return true;
    net_error(r, SC_C_TYPE, n->pos, NULL, "this must be a list of %u to %u",
              least, most);
    return false;
}

static bool read_iters(net_reader *r, sc_net_op *op, const sc_node *list)
{
    if (!is_list(r, list, 1, SC_ITER_DIMS)) return false;
    for (const sc_node *c = list->child; c; c = c->next) {
        iter_row row = {0};
        uint64_t extent;
        const sc_node *batch =
            c->kind == SC_N_MAP ? sc_node_get(c, "batch") : NULL;
        if (!read_schema(r, iter_keys, c, &row) ||
            !net_read_extent(r, row.extent, &extent))
            return false;
        if ((uint64_t)row.units > extent && strcmp(row.name, "expert") != 0) {
            net_error(r, SC_C_RANGE, c->pos, NULL, "more parts than elements");
            return false;
        }
        uint8_t at = build_iter(op, row.name, (sc_iter_kind)row.kind, extent);
        op->iter[at].units = (uint32_t)row.units;
        op->iter[at].halo = (uint32_t)row.halo;
        op->iter[at].sums = row.sums;
        if (batch) op->iter[at].batch = row.batch;
    }
    return true;
}

/* Reads which iteration dims index the dims of a tensor. */
static bool read_at(net_reader *r, const sc_net_op *op, const sc_node *list,
                    unsigned n, uint8_t at[SC_TENSOR_DIMS])
{
    if (!is_list(r, list, n, n)) return false;
    unsigned i = 0;
    for (const sc_node *c = list->child; c; c = c->next, i++) {
        at[i] = SC_NO_ITER;
        if (c->kind == SC_N_SCALAR && strcmp(c->text, "-") == 0) continue;
        for (uint8_t k = 0; k < op->n_iter && c->kind == SC_N_SCALAR; k++)
            if (strcmp(op->iter[k].name, c->text) == 0) at[i] = k;
        if (at[i] != SC_NO_ITER) continue;
        net_error(r, SC_C_REFERENCE, c->pos, "write -: nothing indexes it",
                  "no iteration dim has the name \"%.40s\"",
                  c->kind == SC_N_SCALAR ? c->text : "");
        return false;
    }
    return true;
}

static bool read_ports(net_reader *r, sc_net_op *op, const sc_node *list)
{
    if (!is_list(r, list, op->n_in, op->n_in)) return false;
    unsigned i = 0;
    for (const sc_node *c = list->child; c; c = c->next, i++) {
        uint8_t at[SC_TENSOR_DIMS];
        unsigned n = build_tensor(&r->b, op->in[i].tensor)->n_dim;
        if (!read_at(r, op, c, n, at)) return false;
        build_port(&op->in[i], at, n);
    }
    return true;
}

/* The operator's weight of this name, or SC_NONE. */
static net_value weight_of(const net_reader *r, const weight_row *w)
{
    const sc_tensor *t = NULL;
    net_value v = net_named(r, w->of);
    if (v != SC_NONE && v != NET_BROKEN) t = build_tensor(&r->b, v);
    if (!t || t->op == SC_NONE) return SC_NONE;
    const sc_net_op *op = &r->b.g.op[t->op];
    for (unsigned i = 0; i < op->n_weight; i++)
        if (strcmp(r->b.g.tensor[op->weight[i].tensor].name, w->name) == 0)
            return op->weight[i].tensor;
    return SC_NONE;
}

static bool read_weight(net_reader *r, sc_net_op *op, const sc_node *n)
{
    weight_row w = {0};
    sc_tensor_dim dim[SC_TENSOR_DIMS];
    unsigned n_dims;
    uint8_t at[SC_TENSOR_DIMS];
    if (!read_schema(r, weight_keys, n, &w)) return false;
    if (w.of) {
        net_value v = weight_of(r, &w);
        if (v == SC_NONE) {
            net_error(r, SC_C_REFERENCE, n->pos, NULL,
                      "no operator before has a %.40s and the name \"%.80s\"",
                      w.name, w.of);
            return false;
        }
        n_dims = build_tensor(&r->b, v)->n_dim;
        if (!read_at(r, op, w.at, n_dims, at)) return false;
        build_weight_of(op, v, n_dims, at);
        return true;
    }
    if (!w.dims) {
        net_error(r, SC_C_MISSING, n->pos, NULL, "a weight needs dims");
        return false;
    }
    if (!net_read_dims(r, w.dims, false, dim, &n_dims) ||
        !read_at(r, op, w.at, n_dims, at))
        return false;
    bool frozen = r->b.frozen;
    r->b.frozen = frozen || !w.learns;
    net_value v = build_weight(&r->b, op, w.name, n_dims, dim, at);
    r->b.frozen = frozen;
    if (v == SC_NONE) return false;
    r->b.g.tensor[v].bytes = (uint8_t)w.bytes;
    return true;
}

static bool read_parts(net_reader *r, sc_net_op *op, const raw_row *row)
{
    if (!read_iters(r, op, row->iter) || !read_ports(r, op, row->in))
        return false;
    if (!row->weights) return true;
    if (!is_list(r, row->weights, 0, 2)) return false;
    for (const sc_node *c = row->weights->child; c; c = c->next)
        if (!read_weight(r, op, c)) return false;
    return true;
}

static void set_facts(sc_net_op *op, const raw_row *row)
{
    op->fn = (uint8_t)row->fn;
    op->gated = row->gated;
    op->dropout = row->dropout;
    op->causal = row->causal;
    op->cross = row->cross;
    op->copy = row->copy;
    op->keep_bf16 = row->keep_bf16;
    op->heads = (uint32_t)row->heads;
    op->kv_heads = (uint32_t)row->kv_heads;
    op->qk_dim = (uint32_t)row->qk_dim;
    op->v_dim = (uint32_t)row->v_dim;
    op->window = (uint64_t)row->window;
    op->experts = (uint32_t)row->experts;
    op->topk = (uint32_t)row->topk;
    op->route_groups = (uint32_t)row->route_groups;
    op->route_topk = (uint32_t)row->route_topk;
    op->lookups = (uint32_t)row->lookups;
}

static net_value read_result(net_reader *r, sc_net_op *op, const raw_row *row,
                             const sc_node *n)
{
    sc_tensor_dim dim[SC_TENSOR_DIMS];
    unsigned n_dims;
    uint8_t at[SC_TENSOR_DIMS];
    if (!net_read_dims(r, row->dims, false, dim, &n_dims) ||
        !read_at(r, op, row->at, n_dims, at))
        return SC_NONE;
    if (row->flops > 0 && op->type > SC_NET_SCAN) {
        net_error(r, SC_C_CONFLICT, n->pos, NULL,
                  "flops: applies to products and attention");
        return SC_NONE;
    }
    op->flops = row->flops;
    set_facts(op, row);
    op->detail = row->detail;
    if (op->type == SC_NET_ATTENTION) build_attention_parts(op);
    net_value v = build_close(&r->b, op, n_dims, dim, at);
    if (v == SC_NONE) return SC_NONE;
    sc_tensor *t = &r->b.g.tensor[v];
    t->bytes = (uint8_t)row->bytes;
    if (sc_node_get(n, "learns")) t->learns = row->learns;
    return v;
}

net_value net_read_raw(net_reader *r, const net_row *row, const net_value *in,
                       unsigned n_in)
{
    raw_row raw = {0};
    uint32_t n_ops = r->b.g.n_ops, n_tensors = r->b.g.n_tensors;
    if (!read_schema(r, raw_keys, row->raw, &raw)) return SC_NONE;
    sc_net_op *op =
        build_open(&r->b, row->path, (sc_net_type)row->type, n_in, in);
    net_value v = SC_NONE;
    if (op && read_parts(r, op, &raw)) v = read_result(r, op, &raw, row->raw);
    const char *why =
        v == SC_NONE ? r->b.why : net_row_too_large(&r->b, n_tensors);
    if (why)
        net_error(r, SC_C_TOO_BIG, row->raw->pos, NULL, "%.80s: %s", row->path,
                  why);
    if (v != SC_NONE && !why) return v;
    net_row_undo(&r->b, n_ops, n_tensors);
    return SC_NONE;
}
