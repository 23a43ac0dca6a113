/* SPDX-License-Identifier: Apache-2.0 */
/* net_segments.c - finds and copies runs of operators that a network
 * repeats. */
#include "model/net_build.h"

#include <string.h>

void build_instance(net_builder *b, uint32_t segment, uint32_t op)
{
    if (b->no_memory || b->wrong || op == b->g.n_ops) return;
    sc_net_instance *grown = sc_grow(b->a, b->g.instance, b->g.n_instances,
                                     &b->cap_instances, 16, sizeof *grown);
    if (!grown) {
        b->no_memory = true;
        return;
    }
    b->g.instance = grown;
    grown[b->g.n_instances++] =
        (sc_net_instance){.path = b->scope ? b->scope : "",
                          .segment = segment,
                          .kind = b->kind,
                          .first = op,
                          .n_ops = b->g.n_ops - op};
    if (segment == b->g.n_segments) b->g.n_segments++;
}

/* ---- copies */

void build_reserve(net_builder *b, uint32_t ops, uint32_t tensors)
{
    sc_net_op *op =
        sc_reserve(b->a, b->g.op, b->g.n_ops, &b->cap_ops, ops, sizeof *op);
    sc_tensor *t = sc_reserve(b->a, b->g.tensor, b->g.n_tensors,
                              &b->cap_tensors, tensors, sizeof *t);
    if (op) b->g.op = op;
    if (t) b->g.tensor = t;
    b->no_memory = b->no_memory || !op || !t;
}

typedef struct shift {
    const build_copy *from;
    uint32_t op, tensor; /* offset of operator and tensor numbers */
} shift;

static uint32_t moved(const shift *s, uint32_t tensor)
{
    if (tensor == s->from->in) return s->from->in_again;
    bool inside = tensor >= s->from->tensor &&
                  tensor - s->from->tensor < s->from->n_tensors;
    return inside ? tensor + s->tensor : tensor;
}

static void copy_ports(const shift *s, sc_net_op *to, sc_operand *port)
{
    memcpy(port, to->in, to->n_in * sizeof *port);
    memcpy(port + to->n_in, to->weight, to->n_weight * sizeof *port);
    to->in = port;
    to->weight = port + to->n_in;
    for (uint32_t i = 0; i < (uint32_t)to->n_in + to->n_weight; i++)
        port[i].tensor = moved(s, port[i].tensor);
    to->out.tensor = moved(s, to->out.tensor);
}

/* Copies paths, ports and names, each in one block of memory. */
static bool copy_ops(net_builder *b, const shift *s, const char *scope,
                     size_t n)
{
    const sc_net_op *old = b->g.op + s->from->op;
    size_t text = 0, ports = 0, was = strlen(s->from->scope);
    for (uint32_t i = 0; i < s->from->n_ops; i++) {
        text += strlen(old[i].path) - was + n + 1;
        ports += (size_t)old[i].n_in + old[i].n_weight;
    }
    char *path = SC_NEW_N(b->a, char, text + n + 1);
    sc_operand *port = SC_NEW_N(b->a, sc_operand, ports);
    if (!path || !port) return false;
    memcpy(path, scope, n);
    path[n] = '\0';
    b->scope = path;
    path += n + 1;
    for (uint32_t i = 0; i < s->from->n_ops; i++) {
        sc_net_op *to = &b->g.op[s->op + s->from->op + i];
        size_t rest = strlen(old[i].path + was) + 1;
        *to = old[i];
        memcpy(path, scope, n);
        memcpy(path + n, old[i].path + was, rest);
        to->path = path;
        path += n + rest;
        copy_ports(s, to, port);
        port += (size_t)to->n_in + to->n_weight;
    }
    return true;
}

bool build_again(net_builder *b, const build_copy *from, const char *scope,
                 size_t n)
{
    if (b->no_memory || b->wrong) return false;
    const shift s = {from, b->g.n_ops - from->op,
                     b->g.n_tensors - from->tensor};
    build_reserve(b, from->n_ops, from->n_tensors);
    b->copied = true;
    if (b->no_memory || !copy_ops(b, &s, scope, n)) {
        b->no_memory = true;
        return false;
    }
    sc_tensor *t = b->g.tensor + b->g.n_tensors;
    memcpy(t, b->g.tensor + from->tensor, from->n_tensors * sizeof *t);
    for (uint32_t i = 0; i < from->n_tensors; i++) {
        t[i].op += s.op;
        if (t[i].kind == SC_TENSOR_VALUE) t[i].name = b->g.op[t[i].op].path;
    }
    b->g.n_ops += from->n_ops;
    b->g.n_tensors += from->n_tensors;
    return true;
}

/* ---- finding segments in a finished network */

/* Levels of numbered modules that are considered. */
#define LEVELS 4

typedef struct run {
    uint32_t first, n_ops;
    uint8_t level; /* level of its path; LEVELS: not divided further */
    bool repeated;
    uint64_t sign[2];
    uint32_t segment;
} run;

typedef struct finder {
    const sc_net *g;
    run *r;
    uint32_t n;
    sc_arena *a;
    sc_map by_sign;  /* runs by signature; has room for all operators */
    uint32_t *stamp; /* [n_tensors] the last run that each tensor is an input
                        of */
    uint32_t *index; /* [n_tensors + 1] the input's number in that run; last:
                        their count */
    uint32_t run;
} finder;

/* Length of a path up to its `level`-th number with something after it; 0: it
 * has fewer numbers. */
static size_t module_of(const char *path, unsigned level)
{
    for (const char *at = path; *at;) {
        size_t n = strcspn(at, ".");
        bool number = n > 0 && strspn(at, "0123456789") == n;
        if (at[n] == '\0') return 0;
        if (number && --level == 0) return (size_t)(at - path) + n;
        at += n + 1;
    }
    return 0;
}

/* Updates two hashes at once, eight bytes at a time. */
static void sign(run *r, const void *data, size_t n)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t w = 0;
        memcpy(&w, at + i, n - i < 8 ? n - i : 8);
        r->sign[0] = (r->sign[0] ^ w) * UINT64_C(0x9e3779b97f4a7c15);
        r->sign[0] ^= r->sign[0] >> 29;
        r->sign[1] = (r->sign[1] + w) * UINT64_C(0xbf58476d1ce4e5b9);
        r->sign[1] ^= r->sign[1] >> 32;
    }
}

static void sign_text(run *r, const char *text)
{
    sign(r, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void sign_tensor(run *r, const sc_tensor *t)
{
    const uint64_t facts[] = {t->kind, t->n_dim, t->bytes, t->learns};
    sign(r, facts, sizeof facts);
    for (unsigned i = 0; i < t->n_dim; i++) {
        const uint64_t dim[] = {t->dim[i].extent, t->dim[i].batch};
        sign(r, dim, sizeof dim);
        sign_text(r, t->dim[i].name);
    }
    if (t->kind == SC_TENSOR_WEIGHT) sign_text(r, t->name);
}

/* A tensor made in the run is identified by its operator, any other tensor by
 * the order in which the run first reads it. */
static void sign_port(finder *f, run *r, const sc_operand *p)
{
    const sc_tensor *t = &f->g->tensor[p->tensor];
    uint64_t facts[] = {0, 0};
    bool inside = t->op != SC_NONE && t->op >= r->first;
    if (!inside && f->stamp[p->tensor] != f->run) {
        f->stamp[p->tensor] = f->run;
        f->index[p->tensor] = f->index[f->g->n_tensors]++;
    }
    facts[0] = inside ? t->op - r->first : f->index[p->tensor];
    facts[1] = inside;
    sign(r, facts, sizeof facts);
    sign(r, p->at, sizeof p->at);
    sign_tensor(r, t);
}

static void sign_op(finder *f, run *r, const sc_net_op *op)
{
    const uint64_t facts[] = {
        op->type,       op->n_iter,  op->n_in,   op->n_weight, op->fn,
        op->gated,      op->dropout, op->copy,   op->causal,   op->cross,
        op->keep_bf16,  op->heads,   op->qk_dim, op->v_dim,    op->window,
        op->kv_heads,   op->experts, op->topk,   op->lookups,  op->route_groups,
        op->route_topk, op->sparse,
    };
    sign(r, facts, sizeof facts);
    sign(r, &op->flops, sizeof op->flops);
    if (op->access) {
        uint64_t access = sc_access_hash(op->access);
        sign(r, &access, sizeof access);
    }
    for (unsigned i = 0; i < op->n_iter; i++) {
        const sc_iter_dim *it = &op->iter[i];
        const uint64_t iter[] = {it->kind,  it->batch, it->extent,
                                 it->units, it->halo,  it->sums};
        sign(r, iter, sizeof iter);
        sign_text(r, it->name);
    }
    for (unsigned i = 0; i < op->n_in; i++) sign_port(f, r, &op->in[i]);
    for (unsigned i = 0; i < op->n_weight; i++) sign_port(f, r, &op->weight[i]);
    sign_port(f, r, &op->out);
}

static void sign_run(finder *f, run *r)
{
    f->run++;
    f->index[f->g->n_tensors] = 0;
    r->sign[0] = 1;
    r->sign[1] = 2;
    for (uint32_t i = 0; i < r->n_ops; i++)
        sign_op(f, r, &f->g->op[r->first + i]);
}

/* The earlier run with the same signature; NULL: this is the first. */
static run *seen(finder *f, run *r)
{
    uint32_t at = 0, i;
    while ((i = sc_map_next(&f->by_sign, r->sign[0], &at)) != SC_MAP_END) {
        run *old = &f->r[i];
        if (old->sign[1] == r->sign[1] && old->n_ops == r->n_ops) return old;
    }
    (void)sc_map_add(&f->by_sign, f->a, r->sign[0], (uint32_t)(r - f->r));
    return NULL;
}

/* Divides a run that has no equal at the next number of its paths. */
static uint32_t divide(const finder *f, run *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const run *r = &f->r[i];
        if (r->repeated || r->level == LEVELS) {
            out[n++] = *r;
            continue;
        }
        const char *last = NULL;
        size_t was = 0;
        for (uint32_t k = 0; k < r->n_ops; k++) {
            const char *path = f->g->op[r->first + k].path;
            size_t len = module_of(path, r->level + 1U);
            if (!last || len != was || memcmp(path, last, len) != 0)
                out[n++] = (run){.first = r->first + k,
                                 .level = len ? (uint8_t)(r->level + 1)
                                              : (uint8_t)LEVELS};
            out[n - 1].n_ops++;
            last = path;
            was = len;
        }
    }
    return n;
}

static void compare(finder *f)
{
    sc_map_clear(&f->by_sign);
    for (uint32_t i = 0; i < f->n; i++) {
        run *r = &f->r[i];
        if (!r->sign[0]) sign_run(f, r);
        run *old = seen(f, r);
        r->repeated = old != NULL;
        if (old) old->repeated = true;
    }
}

/* The common prefix of the paths of neighbouring operators. */
static const char *common(net_builder *b, uint32_t first, uint32_t n)
{
    const char *x = b->g.op[first].path, *y = b->g.op[first + n - 1].path;
    size_t dot = 0;
    for (size_t i = 0; x[i] && x[i] == y[i]; i++)
        if (x[i] == '.') dot = i;
    const char *path = sc_strndup(b->a, x, dot);
    if (!path) b->no_memory = true;
    return path;
}

/* Joins neighbouring operators whose runs have no equal to one instance. */
static void gather(net_builder *b, finder *f)
{
    const char *scope = b->scope;
    sc_map_clear(&f->by_sign);
    uint32_t n_ops = b->g.n_ops;
    for (uint32_t i = 0; i < f->n && !b->no_memory; i++) {
        run *r = &f->r[i], *old = r->repeated ? seen(f, r) : NULL;
        uint32_t first = r->first;
        while (!r->repeated && i + 1 < f->n && !f->r[i + 1].repeated) i++;
        b->g.n_ops = f->r[i].first + f->r[i].n_ops;
        b->scope = common(b, first, b->g.n_ops - first);
        r->segment = old ? old->segment : b->g.n_segments;
        build_instance(b, r->segment, first);
    }
    b->g.n_ops = n_ops;
    b->scope = scope;
}

void build_segments(net_builder *b)
{
    uint32_t n = b->g.n_ops;
    b->g.n_instances = b->g.n_segments = b->cap_instances = 0;
    b->g.instance = NULL;
    if (n == 0) return;
    finder f = {.g = &b->g, .n = 1, .a = b->a};
    run *other = SC_NEW_N(b->a, run, n);
    f.r = SC_NEW_N(b->a, run, n);
    f.stamp = SC_NEW_N(b->a, uint32_t, b->g.n_tensors);
    f.index = SC_NEW_N(b->a, uint32_t, (uint64_t)b->g.n_tensors + 1);
    if (!other || !f.r || !sc_map_reserve(&f.by_sign, b->a, n) || !f.stamp ||
        !f.index) {
        b->no_memory = true;
        return;
    }
    f.r[0] = (run){.n_ops = n};
    for (unsigned level = 0; level < LEVELS; level++) {
        f.n = divide(&f, other);
        run *swap = f.r;
        f.r = other;
        other = swap;
        compare(&f);
    }
    gather(b, &f);
}
