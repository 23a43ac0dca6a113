/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.c - collects the operations of an execution and freezes them.  Ids,
 * cycles and successors are as in build.c; an operation is in one queue on
 * each of its devices.
 */
#include <stepcast/graph_exec.h>

#include "graph/builder.h"

#include <stdio.h>
#include <string.h>

const char *const sc_mem_kind_names[] = {
    "weight", "grad", "optim", "activation", "comm", "other", NULL};

#define FIRST_ITEMS 64
#define CYCLE_SHOWN 4 /* ops of a cycle that an error names */

typedef struct exec_chunk exec_chunk;

struct exec_chunk {
    exec_chunk *next;
    uint32_t n, cap;
    sc_exec_op *op; /* [cap] .dev: not borrowed any more */
};

typedef struct exec_device {
    const char *name;
    uint32_t rank, multiplicity;
} exec_device;

struct sc_exec_builder {
    sc_arena *arena;
    exec_chunk *first, *last;
    graph_deps deps;
    uint32_t n_ops;
    uint64_t n_dev; /* of all ops */
    exec_device *device;
    sc_traffic *traffic;
    uint32_t n_devices, cap_devices, n_traffic, cap_traffic;
    graph_fault fault;
};

sc_exec_builder *sc_exec_builder_new(sc_arena *a)
{
    sc_exec_builder *b = SC_NEW(a, sc_exec_builder);
    if (b) b->arena = a;
    return b;
}

uint32_t sc_exec_add_device(sc_exec_builder *b, const char *name, uint32_t rank,
                            uint32_t multiplicity)
{
    exec_device *all = sc_grow(b->arena, b->device, b->n_devices,
                               &b->cap_devices, FIRST_ITEMS, sizeof *all);
    if (!all) {
        graph_fail_nomem(&b->fault);
        return 0;
    }
    b->device = all;
    if (multiplicity == 0)
        graph_fail(&b->fault, SC_C_RANGE, "device \"%.80s\" stands for no rank",
                   name ? name : "");
    if (b->n_devices >= SC_NONE / SC_N_STREAMS - 1)
        graph_fail(&b->fault, SC_C_TOO_BIG, "more than %u devices",
                   SC_NONE / SC_N_STREAMS - 1);
    all[b->n_devices] = (exec_device){name ? name : "", rank, multiplicity};
    return b->n_devices++;
}

uint32_t sc_exec_add_traffic(sc_exec_builder *b, const sc_traffic *t)
{
    sc_traffic *all = sc_grow(b->arena, b->traffic, b->n_traffic,
                              &b->cap_traffic, FIRST_ITEMS, sizeof *all);
    if (!all) {
        graph_fail_nomem(&b->fault);
        return 0;
    }
    b->traffic = all;
    for (uint32_t k = 0; k < t->n; k++)
        if (!(t->share[k] >= 0 && t->share[k] <= 1e100))
            graph_fail(&b->fault, SC_C_RANGE,
                       "traffic %u has a negative or infinite share of link "
                       "%llu",
                       b->n_traffic, (unsigned long long)t->link[k]);
    all[b->n_traffic] = *t;
    return b->n_traffic++;
}

/* A reason to refuse the op, or NULL. */
static const char *op_fault(const sc_exec_builder *b, const sc_exec_op *op)
{
    if (b->n_ops >= SC_NONE - 1) return "is one too many (2^32 - 2 fit)";
    if (op->latency < 0 || op->latency > op->work)
        return "has a latency that is no part of its work";
    if (op->traffic != SC_NONE && op->traffic >= b->n_traffic)
        return "has no known traffic";
    if (op->n_dev == 0 && op->kind != SC_OP_MARK) return "is on no device";
    for (uint32_t k = 0; k < op->n_dev; k++)
        if (op->dev[k] >= b->n_devices) return "is on no known device";
    if (b->n_dev + op->n_dev >= SC_NONE - 1)
        return "is on one device too many (2^32 - 2 places fit)";
    return graph_op_fault(op->kind, op->stream, op->cat, op->work, op->flops);
}

static exec_chunk *op_room(sc_exec_builder *b)
{
    if (b->last && b->last->n < b->last->cap) return b->last;
    uint32_t cap = graph_next_chunk(b->last ? b->last->cap : 0);
    exec_chunk *c = SC_NEW(b->arena, exec_chunk);
    if (!c || !(c->op = SC_NEW_N(b->arena, sc_exec_op, cap))) {
        graph_fail_nomem(&b->fault);
        return NULL;
    }
    c->cap = cap;
    if (b->last) b->last->next = c;
    if (!b->first) b->first = c;
    b->last = c;
    return c;
}

sc_op sc_exec_add_op(sc_exec_builder *b, const sc_exec_op *op)
{
    const char *fault = op_fault(b, op);
    if (fault) {
        graph_fail(&b->fault, SC_C_RANGE, "op %u \"%.80s\" %s", b->n_ops,
                   op->name ? op->name : "", fault);
        return 0;
    }
    exec_chunk *c = op_room(b);
    uint32_t *dev = SC_NEW_N(b->arena, uint32_t, op->n_dev);
    if (!c || !dev) {
        graph_fail_nomem(&b->fault);
        return 0;
    }
    if (op->n_dev) memcpy(dev, op->dev, op->n_dev * sizeof *dev);
    sc_exec_op *own = &c->op[c->n++];
    *own = *op;
    own->dev = dev;
    if (!op->name) own->name = "";
    b->n_dev += op->n_dev;
    return b->n_ops++;
}

void sc_exec_add_dep(sc_exec_builder *b, sc_op before, sc_op after)
{
    if (b->deps.n >= SC_NONE - 1)
        graph_fail(&b->fault, SC_C_TOO_BIG, "more than 2^32 - 2 dependencies");
    else if (!graph_deps_add(&b->deps, b->arena, before, after))
        graph_fail_nomem(&b->fault);
}

/* ---- freezing ------------------------------------------------------------ */

static const char *op_name(const sc_exec_builder *b, sc_op i)
{
    const exec_chunk *c = b->first;
    for (; i >= c->n; c = c->next) i -= c->n;
    return c->op[i].name;
}

static sc_status twice_error(const sc_exec_builder *b, sc_op i, uint32_t dev,
                             sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_DUPLICATE, sc_pos_none(), NULL,
                    "op %u \"%.80s\" is on device \"%.80s\" twice", i,
                    op_name(b, i), b->device[dev].name);
}

/* In-stream order as dependencies; marks belong to no stream. */
static sc_status stream_deps(const sc_exec_builder *b, sc_arena *a,
                             graph_deps *out, sc_err *err)
{
    size_t slots = (size_t)b->n_devices * SC_N_STREAMS;
    sc_op *last = SC_NEW_N(a, sc_op, slots);
    if (!last) return sc_error_nomem(err);
    memset(last, 0xff, slots * sizeof *last);
    sc_op i = 0;
    for (const exec_chunk *c = b->first; c; c = c->next) {
        for (uint32_t k = 0; k < c->n; k++, i++) {
            const sc_exec_op *op = &c->op[k];
            if (op->kind == SC_OP_MARK) continue;
            for (uint32_t d = 0; d < op->n_dev; d++) {
                size_t slot = (size_t)op->dev[d] * SC_N_STREAMS + op->stream;
                sc_op l = last[slot];
                if (l == i) return twice_error(b, i, op->dev[d], err);
                if (l != SC_NONE && !graph_deps_add(out, a, l, i))
                    return sc_error_nomem(err);
                last[slot] = i;
            }
        }
    }
    return SC_OK;
}

static sc_status cycle_error(const sc_exec_builder *b, const graph_cycle *cycle,
                             sc_err *err)
{
    char names[CYCLE_SHOWN * 48 + 32];
    uint32_t shown = cycle->n < CYCLE_SHOWN ? cycle->n : CYCLE_SHOWN;
    size_t at = 0;
    for (uint32_t k = 0; k < shown; k++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s\"%.40s\"",
                               k ? ", " : "", op_name(b, cycle->op[k]));
    if (shown < cycle->n)
        snprintf(names + at, sizeof names - at, " and %u more",
                 cycle->n - shown);
    return sc_error(err, SC_EINPUT, SC_C_CYCLE, sc_pos_none(),
                    "the order of ops on one stream counts as a dependency",
                    "dependency cycle: each of %s waits for the one before",
                    names);
}

/* New ids; NULL where those given are a topological order. */
static sc_status find_ids(const sc_exec_builder *b, sc_arena *a, sc_op **id,
                          sc_err *err)
{
    graph_deps streams = {0};
    graph_cycle cycle = {0};
    *id = NULL;
    SC_TRY(stream_deps(b, a, &streams, err));
    if (!b->deps.backwards) return SC_OK;
    const graph_deps *deps[] = {&b->deps, &streams};
    SC_TRY(graph_order(deps, 2, b->n_ops, a, id, &cycle, err));
    return cycle.n ? cycle_error(b, &cycle, err) : SC_OK;
}

static bool columns_alloc(const sc_exec_builder *b, sc_arena *a, sc_exec *x)
{
    uint32_t n = x->n_ops = b->n_ops;
    return (x->name = SC_NEW_N(a, const char *, n)) &&
           (x->work = SC_NEW_N(a, sc_time, n)) &&
           (x->latency = SC_NEW_N(a, sc_time, n)) &&
           (x->kind = SC_NEW_N(a, uint8_t, n)) &&
           (x->stream = SC_NEW_N(a, uint8_t, n)) &&
           (x->cat = SC_NEW_N(a, uint8_t, n)) &&
           (x->bytes = SC_NEW_N(a, uint64_t, n)) &&
           (x->flops = SC_NEW_N(a, double, n)) &&
           (x->traffic = SC_NEW_N(a, uint32_t, n)) &&
           (x->dev_head = SC_NEW_N(a, uint32_t, (size_t)n + 1)) &&
           (x->dev = SC_NEW_N(a, uint32_t, b->n_dev)) &&
           (x->succ_head = SC_NEW_N(a, uint32_t, (size_t)n + 2)) &&
           (x->succ = SC_NEW_N(a, sc_op, b->deps.n)) &&
           (x->device_name = SC_NEW_N(a, const char *, b->n_devices)) &&
           (x->device_rank = SC_NEW_N(a, uint32_t, b->n_devices)) &&
           (x->multiplicity = SC_NEW_N(a, uint32_t, b->n_devices));
}

static void copy_op(sc_exec *x, sc_op i, const sc_exec_op *op)
{
    x->name[i] = op->name;
    x->work[i] = op->work;
    x->latency[i] = op->latency;
    x->kind[i] = op->kind;
    x->stream[i] = op->stream;
    x->cat[i] = op->cat;
    x->bytes[i] = op->bytes;
    x->flops[i] = op->flops;
    x->traffic[i] = op->traffic;
    x->dev_head[i + 1] = op->n_dev;
}

static void copy_ops(const sc_exec_builder *b, const sc_op *id, sc_exec *x)
{
    sc_op i = 0;
    for (const exec_chunk *c = b->first; c; c = c->next)
        for (uint32_t k = 0; k < c->n; k++, i++)
            copy_op(x, id ? id[i] : i, &c->op[k]);
    for (i = 0; i < x->n_ops; i++) x->dev_head[i + 1] += x->dev_head[i];
    i = 0;
    for (const exec_chunk *c = b->first; c; c = c->next) {
        for (uint32_t k = 0; k < c->n; k++, i++) {
            const sc_exec_op *op = &c->op[k];
            uint32_t at = x->dev_head[id ? id[i] : i];
            if (op->n_dev)
                memcpy(x->dev + at, op->dev, op->n_dev * sizeof *op->dev);
        }
    }
}

static sc_status copy_traffics(const sc_exec_builder *b, sc_arena *a,
                               sc_exec *x, sc_err *err)
{
    sc_traffic *t = SC_NEW_N(a, sc_traffic, b->n_traffic);
    if (!t) return sc_error_nomem(err);
    if (b->n_traffic) memcpy(t, b->traffic, b->n_traffic * sizeof *t);
    x->traffics = t;
    x->n_traffic = b->n_traffic;
    return SC_OK;
}

sc_status sc_exec_build(sc_exec_builder *b, sc_arena *a, sc_exec *out,
                        sc_err *err)
{
    sc_exec x = {.n_devices = b->n_devices};
    if (b->fault.status)
        return sc_error(err, b->fault.status, b->fault.code, sc_pos_none(),
                        NULL, "%s", b->fault.msg);
    if (b->deps.n && b->deps.max_ref >= b->n_ops)
        return sc_error(err, SC_EINPUT, SC_C_REFERENCE, sc_pos_none(), NULL,
                        "a dependency names op %u of %u", b->deps.max_ref,
                        b->n_ops);
    if (!columns_alloc(b, a, &x)) return sc_error_nomem(err);
    SC_TRY(copy_traffics(b, a, &x, err));
    for (uint32_t d = 0; d < b->n_devices; d++) {
        x.device_name[d] = b->device[d].name;
        x.device_rank[d] = b->device[d].rank;
        x.multiplicity[d] = b->device[d].multiplicity;
    }
    sc_arena_mark mark = sc_arena_save(a);
    sc_op *id;
    SC_TRY(find_ids(b, a, &id, err));
    uint32_t *n_preds = SC_NEW_N(a, uint32_t, x.n_ops);
    if (!n_preds) return sc_error_nomem(err);
    graph_csr(&b->deps, id, x.n_ops, x.succ_head, x.succ, n_preds);
    copy_ops(b, id, &x);
    sc_arena_restore(a, mark);
    *out = x;
    return SC_OK;
}
