/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const sc_op_kind_names[] = {"compute", "coll", "p2p", "mem",
                                        "host",    "mark", NULL};

const char *const sc_stream_names[] = {"compute", "comm", "grad",    "p2p",
                                       "copy",    "host", "p2p_odd", NULL};

const char *const sc_cat_names[] = {
    "compute",        "exposed_tp", "exposed_pp", "exposed_dp",
    "exposed_cp",     "exposed_ep", "bubble",     "host",
    "memory_offload", "optimizer",  "other",      NULL};

const char *const sc_mem_kind_names[] = {
    "weight", "grad", "optim", "activation", "comm", "other", NULL};

uint8_t graph_default_stream(unsigned kind)
{
    static const uint8_t stream[SC_N_OP_KINDS] = {
        SC_S_COMPUTE, SC_S_COMM, SC_S_P2P, SC_S_COPY, SC_S_HOST, SC_S_HOST};
    return stream[kind];
}

uint8_t graph_default_cat(unsigned kind, unsigned stream)
{
    static const uint8_t cat[SC_N_OP_KINDS] = {SC_CAT_COMPUTE, SC_CAT_TP,
                                               SC_CAT_PP,      SC_CAT_OFFLOAD,
                                               SC_CAT_HOST,    SC_CAT_OTHER};
    if (kind == SC_OP_COLL && stream == SC_S_GRAD) return SC_CAT_DP;
    return cat[kind];
}

SC_PRINTF(3, 4)

static void fail(graph_fault *f, sc_code code, const char *fmt, ...)
{
    if (f->status) return;
    f->status = code == SC_C_MEMORY ? SC_ENOMEM : SC_EINPUT;
    f->code = code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->msg, sizeof f->msg, fmt, ap);
    va_end(ap);
}

static void fail_nomem(graph_fault *f)
{
    fail(f, SC_C_MEMORY, "out of memory building a graph");
}

/* ---- what is refused ----------------------------------------------------- */

static const char *place_fault(const sc_graph *g, const sc_op_desc *op)
{
    if (!op->dev && op->cls < g->n_classes) return NULL;
    if (!op->dev && op->cls != SC_NONE) return "has an unknown class";
    if ((!op->dev || op->n_dev == 0) && op->kind != SC_OP_MARK)
        return "has no class";
    for (uint32_t k = 0; op->dev && k < op->n_dev; k++)
        if (op->dev[k] >= g->n_classes) return "has an unknown class";
    return NULL;
}

const char *graph_op_fault(const sc_graph *g, const sc_op_desc *op)
{
    if (op->traffic != SC_NONE && op->traffic >= g->n_traffic)
        return "has no known traffic";
    if (op->kind >= SC_N_OP_KINDS) return "has no legal kind";
    if (op->stream >= SC_N_STREAMS) return "has no legal stream";
    if (op->cat >= SC_N_CATS || op->cat == SC_CAT_BUBBLE)
        return "has no legal category";
    if (op->work < 0) return "has negative work";
    if (op->latency < 0 || op->latency > op->work)
        return "has a latency that is not part of its work";
    const sc_parts *p = op->parts;
    if (p && (p->n == 0 || p->end[p->n - 1] != op->work))
        return "is not the sum of its parts";
    if (!(op->flops >= 0) || op->flops - op->flops != 0)
        return "has negative or infinite flops";
    return place_fault(g, op);
}

const char *graph_traffic_fault(const sc_traffic *t)
{
    for (uint32_t k = 0; k < t->n; k++)
        if (!(t->share[k] >= 0 && t->share[k] <= 1e100))
            return "has a negative or infinite share of a link";
    return NULL;
}

const char *graph_lifetime_fault(const sc_graph *g, const sc_lifetime *l)
{
    if (l->device >= g->n_classes) return "has an unknown class";
    if (l->kind >= SC_N_MEM_KINDS) return "has no legal kind";
    uint32_t n = sc_part_first(g, g->n_ops);
    if (l->first != SC_NONE && l->first >= n)
        return "has no op that allocates it";
    for (uint32_t k = 0; k < l->n_last; k++)
        if (l->last[k] >= n) return "has no op that uses it last";
    if (l->bytes > UINT64_MAX / 4) return "is larger than any memory";
    return NULL;
}

/* ---- classes, traffic ----------------------------------------------------- */

sc_graph_builder *sc_graph_builder_new(sc_arena *a)
{
    sc_graph_builder *b = SC_NEW(a, sc_graph_builder);
    if (!b) return NULL;
    b->arena = a;
    b->next_ops = graph_next_chunk(0);
    return b;
}

/* Makes room for one more element; returns NULL and keeps the error when out of
 * memory. */
static void *grow(sc_graph_builder *b, void *old, uint32_t n, uint32_t *cap,
                  size_t size)
{
    if (n >= SC_NONE / SC_N_STREAMS - 1) {
        fail(&b->fault, SC_C_TOO_BIG,
             "more than %u classes or kinds of traffic",
             SC_NONE / SC_N_STREAMS - 1);
        return NULL;
    }
    void *p = sc_grow(b->arena, old, n, cap, 8, size);
    if (!p) fail_nomem(&b->fault);
    return p;
}

uint32_t sc_graph_add_class(sc_graph_builder *b, const char *name,
                            uint32_t rank, uint32_t multiplicity)
{
    sc_graph *g = &b->g;
    sc_class *all =
        grow(b, g->classes, g->n_classes, &b->cap_classes, sizeof *all);
    if (!all) return 0;
    g->classes = all;
    all[g->n_classes] = (sc_class){name, rank, multiplicity};
    if (multiplicity == 0)
        fail(&b->fault, SC_C_RANGE, "class \"%.80s\" represents no rank",
             name ? name : "");
    return g->n_classes++;
}

uint32_t sc_graph_add_traffic(sc_graph_builder *b, const sc_traffic *t)
{
    sc_graph *g = &b->g;
    sc_traffic *all =
        grow(b, b->traffics, g->n_traffic, &b->cap_traffic, sizeof *all);
    const char *fault = graph_traffic_fault(t);
    if (!all) return 0;
    if (fault)
        fail(&b->fault, SC_C_RANGE, "traffic %u %s", g->n_traffic, fault);
    b->traffics = all;
    all[g->n_traffic] = *t;
    return g->n_traffic++;
}

void sc_graph_set_lifetimes(sc_graph_builder *b, uint32_t n,
                            const sc_lifetime *all)
{
    b->g.lifetime = all;
    b->g.n_lifetimes = n;
}

/* ---- ops ----------------------------------------------------------------- */

bool graph_columns_alloc(sc_arena *a, uint32_t n, sc_graph *g)
{
#define ALLOC(column, type) &&(g->column = SC_NEW_N(a, type, n))
    return true GRAPH_COLUMNS(ALLOC);
#undef ALLOC
}

static graph_op_chunk *op_room(sc_graph_builder *b)
{
    if (b->op_last && b->op_last->n < b->op_last->cap) return b->op_last;
    graph_op_chunk *c = SC_NEW(b->arena, graph_op_chunk);
    if (!c || !graph_columns_alloc(b->arena, b->next_ops, &c->cols)) {
        fail_nomem(&b->fault);
        return NULL;
    }
    c->cap = b->next_ops;
    b->next_ops = graph_next_chunk(c->cap);
    if (b->op_last) b->op_last->next = c;
    if (!b->op_first) b->op_first = c;
    b->op_last = c;
    return c;
}

/* Keeps the classes of an op that is not on exactly one. */
static bool spread(sc_graph_builder *b, const sc_op_desc *op)
{
    uint32_t n = op->dev ? op->n_dev : 0;
    graph_spread *all = sc_grow(b->arena, b->spread, b->n_spread,
                                &b->cap_spread, 64, sizeof *all);
    uint32_t *cls = SC_NEW_N(b->arena, uint32_t, n);
    if (!all || !cls) {
        fail_nomem(&b->fault);
        return false;
    }
    if (n) memcpy(cls, op->dev, n * sizeof *cls);
    b->spread = all;
    all[b->n_spread++] = (graph_spread){b->g.n_ops, n, cls};
    return true;
}

static bool several(sc_graph_builder *b, const sc_parts *p)
{
    b->n_parts += p ? p->n : 1;
    if (!p) return true;
    graph_several *all = sc_grow(b->arena, b->several, b->n_several,
                                 &b->cap_several, 64, sizeof *all);
    if (!all) {
        fail_nomem(&b->fault);
        return false;
    }
    b->several = all;
    all[b->n_several++] = (graph_several){b->g.n_ops, p};
    return true;
}

/* The reason why the op is refused, or NULL. */
static const char *op_fault(const sc_graph_builder *b, const sc_op_desc *op)
{
    if (b->g.n_ops >= SC_NONE - 1) return "is one too many (2^32 - 2 fit)";
    if (b->n_places + (op->dev ? op->n_dev : 1) >= SC_NONE)
        return "is on one class too many (2^32 - 2 places fit)";
    return graph_op_fault(&b->g, op);
}

static uint32_t first_class(const sc_op_desc *op)
{
    if (!op->dev) return op->cls;
    return op->n_dev ? op->dev[0] : SC_NONE;
}

sc_op sc_graph_add_op(sc_graph_builder *b, const sc_op_desc *op)
{
    const char *fault = op_fault(b, op);
    if (fault) {
        fail(&b->fault, SC_C_RANGE, "op %u \"%.80s\" %s", b->g.n_ops,
             op->name ? op->name : "", fault);
        return 0;
    }
    bool one = op->dev ? op->n_dev == 1 : op->cls != SC_NONE;
    if ((!one && !spread(b, op)) || !several(b, op->parts)) return 0;
    b->n_places += op->dev ? op->n_dev : one;
    graph_op_chunk *c = op_room(b);
    if (!c) return 0;
    sc_graph *g = &c->cols;
    uint32_t i = c->n++;
    g->work[i] = op->work;
    g->latency[i] = op->latency;
    g->cls[i] = first_class(op);
    g->kind[i] = op->kind;
    g->stream[i] = op->stream;
    g->cat[i] = op->cat;
    g->bytes[i] = op->bytes;
    g->flops[i] = op->flops;
    g->traffic[i] = op->traffic;
    g->name[i] = op->name ? op->name : "";
    return b->g.n_ops++;
}

void sc_graph_add_dep(sc_graph_builder *b, sc_op before, sc_op after)
{
    if (b->deps.n >= SC_NONE - 1)
        fail(&b->fault, SC_C_TOO_BIG, "more than 2^32 - 2 dependencies");
    else if (!graph_deps_add(&b->deps, b->arena, before, after))
        fail_nomem(&b->fault);
}
