/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - freezes a builder: topological ids, CSR successors.
 */
#include "graph/builder.h"
#include "graph/map.h"

#include <stdlib.h>
#include <string.h>

/* ---- successors ---------------------------------------------------------- */

/* CSR of all dependencies, in ids mapped by `id` (NULL: as given).  `head`
 * has n_ops + 2 entries, zeroed: while filling, head[i + 1] runs from the
 * start of i's list to its end, so that no cursors are needed. */
static void csr_fill(const sc_graph_builder *b, const sc_op *id, uint32_t *head,
                     sc_op *succ)
{
    for (const graph_dep_chunk *c = b->dep_first; c; c = c->next)
        for (uint32_t k = 0; k < c->n; k++)
            head[(id ? id[c->pair[k][0]] : c->pair[k][0]) + 2]++;
    for (uint32_t i = 0; i < b->n_ops; i++) head[i + 2] += head[i + 1];
    for (const graph_dep_chunk *c = b->dep_first; c; c = c->next) {
        for (uint32_t k = 0; k < c->n; k++) {
            sc_op p = c->pair[k][0], q = c->pair[k][1];
            succ[head[(id ? id[p] : p) + 1]++] = id ? id[q] : q;
        }
    }
}

static int compare_ops(const void *x, const void *y)
{
    sc_op a = *(const sc_op *)x, b = *(const sc_op *)y;
    return (a > b) - (a < b);
}

static void sort_ops(sc_op *v, uint32_t n)
{
    uint32_t i = 1;
    while (i < n && v[i - 1] <= v[i]) i++;
    if (i >= n) return;
    if (n > 16) {
        qsort(v, n, sizeof *v, compare_ops);
        return;
    }
    for (; i < n; i++) {
        sc_op x = v[i];
        uint32_t j = i;
        for (; j && v[j - 1] > x; j--) v[j] = v[j - 1];
        v[j] = x;
    }
}

/* Sorts each list, drops repeated dependencies, counts predecessors. */
static void csr_tidy(sc_graph *g)
{
    uint32_t w = 0;
    for (sc_op i = 0; i < g->n_ops; i++) {
        uint32_t from = g->succ_head[i], to = g->succ_head[i + 1];
        sort_ops(g->succ + from, to - from);
        g->succ_head[i] = w;
        for (uint32_t k = from; k < to; k++) {
            sc_op s = g->succ[k];
            if (w > g->succ_head[i] && g->succ[w - 1] == s) continue;
            g->succ[w++] = s;
            g->n_preds[s]++;
        }
    }
    g->succ_head[g->n_ops] = g->n_deps = w;
}

/* ---- renumbering --------------------------------------------------------- */

typedef struct order {
    uint32_t *head; /* [n_ops + 2] CSR in old ids */
    sc_op *succ;    /* [n_deps] */
    sc_op *next;    /* [n_ops] next op of the same stream */
    uint32_t *wait; /* [n_ops] predecessors not yet numbered */
    sc_op *heap;    /* [n_ops] ready ops, smallest on top */
    sc_op *id;      /* [n_ops] new id, SC_NONE: not yet */
    uint32_t n_heap;
} order;

static void heap_push(order *o, sc_op x)
{
    uint32_t i = o->n_heap++;
    while (i && o->heap[(i - 1) / 2] > x) {
        o->heap[i] = o->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    o->heap[i] = x;
}

static sc_op heap_pop(order *o)
{
    sc_op top = o->heap[0], x = o->heap[--o->n_heap];
    uint32_t i = 0, n = o->n_heap;
    for (;;) {
        uint32_t c = 2 * i + 1;
        if (c >= n) break;
        if (c + 1 < n && o->heap[c + 1] < o->heap[c]) c++;
        if (o->heap[c] >= x) break;
        o->heap[i] = o->heap[c];
        i = c;
    }
    o->heap[i] = x;
    return top;
}

/* Links ops of a stream; marks belong to none. */
static bool link_streams(const sc_graph_builder *b, sc_arena *a, sc_op *next)
{
    size_t slots = (size_t)b->n_classes * SC_N_STREAMS;
    sc_op *last = SC_NEW_N(a, sc_op, slots);
    if (!last) return false;
    memset(last, 0xff, slots * sizeof *last);
    sc_op i = 0;
    for (const graph_op_chunk *c = b->op_first; c; c = c->next) {
        for (uint32_t k = 0; k < c->n; k++, i++) {
            next[i] = SC_NONE;
            if (c->cols.kind[k] == SC_OP_MARK) continue;
            sc_op *l = &last[(size_t)c->cols.cls[k] * SC_N_STREAMS +
                             c->cols.stream[k]];
            if (*l != SC_NONE) next[*l] = i;
            *l = i;
        }
    }
    return true;
}

/* An op on a cycle: backwards from any op that got no number, through ops
 * that got none, one must come round. */
static sc_op on_cycle(const order *o, uint32_t n)
{
    sc_op *pred = o->heap; /* empty by now */
    sc_op at = SC_NONE;
    for (sc_op i = 0; i < n; i++) {
        if (o->id[i] != SC_NONE) continue;
        at = i;
        if (o->next[i] != SC_NONE) pred[o->next[i]] = i;
        for (uint32_t k = o->head[i]; k < o->head[i + 1]; k++)
            pred[o->succ[k]] = i;
    }
    for (uint32_t k = 0; k < n; k++) at = pred[at];
    return at;
}

static const char *op_name(const sc_graph_builder *b, sc_op i)
{
    const graph_op_chunk *c = b->op_first;
    for (; i >= c->n; c = c->next) i -= c->n;
    return c->cols.name[i];
}

static sc_status renumber(const sc_graph_builder *b, sc_arena *a, order *o,
                          sc_err *err)
{
    uint32_t n = b->n_ops, done = 0;
    if (!(o->head = SC_NEW_N(a, uint32_t, (size_t)n + 2)) ||
        !(o->succ = SC_NEW_N(a, sc_op, b->n_deps)) ||
        !(o->next = SC_NEW_N(a, sc_op, n)) ||
        !(o->wait = SC_NEW_N(a, uint32_t, n)) ||
        !(o->heap = SC_NEW_N(a, sc_op, n)) ||
        !(o->id = SC_NEW_N(a, sc_op, n)) || !link_streams(b, a, o->next))
        return sc_error_nomem(err);
    memset(o->id, 0xff, n * sizeof *o->id);
    csr_fill(b, NULL, o->head, o->succ);
    for (uint32_t k = 0; k < b->n_deps; k++) o->wait[o->succ[k]]++;
    for (sc_op i = 0; i < n; i++)
        if (o->next[i] != SC_NONE) o->wait[o->next[i]]++;
    for (sc_op i = 0; i < n; i++)
        if (o->wait[i] == 0) heap_push(o, i);
    while (o->n_heap) {
        sc_op i = heap_pop(o), s = o->next[i];
        o->id[i] = done++;
        if (s != SC_NONE && --o->wait[s] == 0) heap_push(o, s);
        for (uint32_t k = o->head[i]; k < o->head[i + 1]; k++)
            if (--o->wait[o->succ[k]] == 0) heap_push(o, o->succ[k]);
    }
    if (done == n) return SC_OK;
    sc_op at = on_cycle(o, n);
    sc_pos pos = sc_pos_file(b->file);
    if (b->line) pos.line = b->line[at];
    return sc_error(err, SC_EINPUT, SC_C_CYCLE, pos,
                    "the order of ops on one stream counts as a dependency",
                    "dependency cycle through op \"%.80s\"", op_name(b, at));
}

/* ---- freezing ------------------------------------------------------------ */

static void copy_op(sc_graph *to, sc_op i, const sc_graph *from, uint32_t k)
{
    to->work[i] = from->work[k];
    to->cls[i] = from->cls[k];
    to->kind[i] = from->kind[k];
    to->stream[i] = from->stream[k];
    to->cat[i] = from->cat[k];
    to->bytes[i] = from->bytes[k];
    to->flops[i] = from->flops[k];
    to->group[i] = from->group[k];
    to->peer[i] = from->peer[k];
    to->name[i] = from->name[k];
}

static sc_status range_error(sc_err *err, const char *what, const char *name,
                             const char *why)
{
    return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                    "%s \"%.80s\" %s", what, name, why);
}

static sc_status check_names(sc_arena *a, const char *what, const void *first,
                             size_t stride, uint32_t n, sc_err *err)
{
    graph_map m;
    if (!graph_map_init(&m, a, n)) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        const char *name;
        memcpy(&name, (const char *)first + i * stride, sizeof name);
        if (!name) return range_error(err, what, "", "has no name");
        if (graph_map_add(&m, name, strlen(name), i))
            return sc_error(err, SC_EINPUT, SC_C_DUPLICATE, sc_pos_none(), NULL,
                            "two %ss are named \"%.80s\"", what, name);
    }
    return SC_OK;
}

static sc_status freeze_mesh(const sc_graph_builder *b, sc_arena *a,
                             sc_graph *g, sc_err *err)
{
    g->n_axes = b->n_axes;
    memcpy(g->axis_name, b->axis_name, sizeof g->axis_name);
    memcpy(g->axis_size, b->axis_size, sizeof g->axis_size);
    g->n_classes = b->n_classes;
    g->n_groups = b->n_groups;
    g->classes = SC_NEW_N(a, sc_class, b->n_classes);
    g->groups = SC_NEW_N(a, sc_group, b->n_groups);
    if (!g->classes || !g->groups) return sc_error_nomem(err);
    if (graph_ranks(g->axis_size, g->n_axes, 0) == 0)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "the axes span more than 2^32 - 2 ranks");
    uint32_t axes = (1u << g->n_axes) - 1;
    for (uint32_t c = 0; c < g->n_classes; c++) {
        sc_class *k = &g->classes[c];
        *k = b->classes[c];
        if (k->fixed & ~axes)
            return range_error(err, "class", k->name, "fixes an unknown axis");
        for (uint32_t ax = 0; ax < g->n_axes; ax++)
            if ((k->fixed >> ax & 1) && k->coord[ax] >= g->axis_size[ax])
                return range_error(err, "class", k->name,
                                   "has a coordinate beyond its axis");
        k->multiplicity = graph_ranks(g->axis_size, g->n_axes, k->fixed);
    }
    for (uint32_t i = 0; i < g->n_groups; i++) {
        g->groups[i] = b->groups[i];
        if (g->groups[i].span & ~axes)
            return range_error(err, "group", g->groups[i].name,
                               "spans an unknown axis");
        g->groups[i].size =
            graph_ranks(g->axis_size, g->n_axes, ~g->groups[i].span);
    }
    return SC_OK;
}

static sc_status check_unique(const sc_graph *g, sc_arena *a, sc_err *err)
{
    for (uint32_t ax = 0; ax < g->n_axes; ax++)
        for (uint32_t bx = 0; bx < ax; bx++)
            if (strcmp(g->axis_name[ax], g->axis_name[bx]) == 0)
                return sc_error(err, SC_EINPUT, SC_C_DUPLICATE, sc_pos_none(),
                                NULL, "two axes are named \"%.80s\"",
                                g->axis_name[ax]);
    SC_TRY(check_names(a, "class", &g->classes->name, sizeof *g->classes,
                       g->n_classes, err));
    return check_names(a, "group", &g->groups->name, sizeof *g->groups,
                       g->n_groups, err);
}

sc_status sc_graph_build(sc_graph_builder *b, sc_arena *a, sc_graph *out,
                         sc_err *err)
{
    if (b->status)
        return sc_error(err, b->status, b->code, sc_pos_file(b->file), NULL,
                        "%s", b->msg);
    if (b->n_deps && b->max_ref >= b->n_ops)
        return sc_error(err, SC_EINPUT, SC_C_REFERENCE, sc_pos_file(b->file),
                        NULL, "a dependency names op %u of %u", b->max_ref,
                        b->n_ops);
    sc_graph g = {0};
    SC_TRY(freeze_mesh(b, a, &g, err));
    g.n_ops = b->n_ops;
    bool reuse =
        b->arena == a && !b->renumber && b->op_first && !b->op_first->next;
    if (reuse) {
        const sc_graph *cols = &b->op_first->cols;
        g.work = cols->work, g.cls = cols->cls, g.kind = cols->kind;
        g.stream = cols->stream, g.cat = cols->cat, g.bytes = cols->bytes;
        g.flops = cols->flops, g.group = cols->group, g.peer = cols->peer;
        g.name = cols->name;
    } else if (!graph_columns_alloc(a, g.n_ops, &g)) {
        return sc_error_nomem(err);
    }
    if (!(g.succ_head = SC_NEW_N(a, uint32_t, (size_t)g.n_ops + 2)) ||
        !(g.succ = SC_NEW_N(a, sc_op, b->n_deps)) ||
        !(g.n_preds = SC_NEW_N(a, uint32_t, g.n_ops)))
        return sc_error_nomem(err);

    sc_arena_mark mark = sc_arena_save(a);
    order o = {0};
    SC_TRY(check_unique(&g, a, err));
    if (b->renumber) SC_TRY(renumber(b, a, &o, err));
    csr_fill(b, o.id, g.succ_head, g.succ);
    csr_tidy(&g);
    sc_op i = 0;
    for (const graph_op_chunk *c = b->op_first; c && !reuse; c = c->next)
        for (uint32_t k = 0; k < c->n; k++, i++)
            copy_op(&g, o.id ? o.id[i] : i, &c->cols, k);
    sc_arena_restore(a, mark);
    *out = g;
    return SC_OK;
}
