/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_write.c - a network of operators as a model.yml.
 *
 * For every operator a row is guessed as a person would write it, and built
 * again over the same inputs; where that does not give the operator back, its
 * parts are printed (`raw:`).
 */
#include "net_write.h"

#include "model/net_row.h"

#include <stdlib.h>
#include <string.h>

/* Room of the builder that rows are tried in: one operator at a time. */
#define SPARE 8

typedef struct writer {
    const sc_net *g;
    net_builder b; /* holds g, what is tried comes behind */
    sc_arena *a;
    sc_text *out;
} writer;

/* ---- words */

static bool plain(const char *s)
{
    static const char *const special[] = {"true", "false", "yes",  "no",
                                          "on",   "off",   "null", NULL};
    static const char first[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char more[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789./-";
    for (const char *const *w = special; *w; w++)
        if (strcmp(*w, s) == 0) return false;
    return *s && strchr(first, *s) && s[strspn(s, more)] == '\0';
}

static void put_word(sc_text *t, const char *s)
{
    if (plain(s)) {
        sc_text_add(t, "%s", s);
        return;
    }
    sc_text_add(t, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < ' ' || c == 0x7f)
            sc_text_add(t, "\\x%02x", c);
        else
            sc_text_add(t, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    sc_text_add(t, "\"");
}

static void put_key(sc_text *t, const char *key, const char *word)
{
    sc_text_add(t, ", %s: ", key);
    put_word(t, word);
}

static void put_number(sc_text *t, const char *key, uint64_t v)
{
    sc_text_add(t, ", %s: %llu", key, (unsigned long long)v);
}

static void put_dims(sc_text *t, const sc_tensor *v)
{
    sc_text_add(t, "[");
    for (unsigned i = 0; i < v->n_dim; i++) {
        sc_text_add(t, "%s{name: ", i ? ", " : "");
        put_word(t, v->dim[i].name);
        put_number(t, "extent", v->dim[i].extent);
        sc_text_add(t, v->dim[i].batch ? ", batch: true}" : "}");
    }
    sc_text_add(t, "]");
}

/* ---- guesses */

/* "3x3, stride 2, dilation 2" */
static uint32_t after(const char *detail, const char *word)
{
    const char *at = detail ? strstr(detail, word) : NULL;
    unsigned long v = at ? strtoul(at + strlen(word), NULL, 10) : 1;
    return v > 0 && v < 65536 ? (uint32_t)v : 1;
}

/* Sides of the kernel: of a pool its words say them. */
static bool guess_kernel(const writer *w, const sc_net_op *op, net_row *row)
{
    uint64_t side[3] = {0};
    unsigned n = 0;
    if (op->type == SC_NET_POOL) {
        const char *s = op->detail;
        for (; s && n < 3 && *s >= '0' && *s <= '9'; n++) {
            char *end;
            side[n] = strtoul(s, &end, 10);
            s = *end == 'x' ? end + 1 : end;
        }
    } else {
        const sc_tensor *t = &w->g->tensor[op->weight[0].tensor];
        for (unsigned i = 2; i < t->n_dim && n < 3; i++)
            side[n++] = t->dim[i].extent;
    }
    if (n == 0 || side[0] > 65535 || side[n - 1] > 65535) return false;
    row->k = (uint32_t)side[0];
    row->kw = (uint32_t)side[n - 1];
    row->stride = after(op->detail, "stride ");
    row->dilation = after(op->detail, "dilation ");
    return true;
}

/* Of a weight that another operator had first. */
static void guess_shared(const writer *w, const sc_net_op *op, net_row *row)
{
    const sc_net_op *first = &w->g->op[w->g->tensor[op->weight[0].tensor].op];
    if (first == op) return;
    row->shared = op->weight[0].tensor;
    row->shared_with = first->out.tensor;
    row->weight = first->path;
}

static void guess_linear(const sc_net_op *op, net_row *row)
{
    uint8_t from = op->n_iter > 1 ? (uint8_t)(op->n_iter - 2) : 0;
    row->out = (int64_t)op->iter[from + 1].extent;
    row->in_units = op->iter[from].units;
    row->out_units = op->iter[from + 1].units;
}

static const char *opaque_dim(const sc_net_op *op)
{
    for (unsigned i = 0; i < op->n_iter; i++)
        if (op->iter[i].kind == SC_I_OPAQUE) return op->iter[i].name;
    return NULL;
}

static void guess_moves(const writer *w, const sc_net_op *op, net_row *row)
{
    const sc_tensor *y = &w->g->tensor[op->out.tensor];
    row->along = opaque_dim(op);
    for (unsigned i = 0; i < y->n_dim; i++) {
        if (row->along && strcmp(y->dim[i].name, row->along) == 0)
            row->extent = (int64_t)y->dim[i].extent;
        int from = op->out.at[i] == SC_NO_ITER ? -1 : op->out.at[i];
        row->view[i] = (build_dim){y->dim[i].name, y->dim[i].extent, from};
    }
    row->n_dims = y->n_dim;
    row->copy = op->copy;
    row->reduce = op->n_iter && op->iter[op->n_iter - 1].kind == SC_I_REDUCE;
}

static void guess_width(const writer *w, const sc_net_op *op, net_row *row)
{
    const sc_tensor *x = &w->g->tensor[op->in[0].tensor];
    const sc_tensor *y = &w->g->tensor[op->out.tensor];
    if (y->n_dim > 1) row->out = (int64_t)y->dim[1].extent;
    if (op->type == SC_NET_ATTENTION && op->n_iter > 2) {
        const sc_iter_dim *it = &op->iter[2];
        row->out = (int64_t)it->extent;
        row->heads = (int64_t)(it->units ? it->units : it->extent);
        row->causal = op->causal;
        row->kv_heads = op->kv_heads == op->heads ? 0 : op->kv_heads;
        row->qk_dim = op->qk_dim * row->heads == row->out ? 0 : op->qk_dim;
        row->v_dim = op->v_dim * row->heads == row->out ? 0 : op->v_dim;
        row->window = (int64_t)op->window;
    }
    if (op->type == SC_NET_EMBED && op->n_weight) {
        const sc_tensor *t = &w->g->tensor[op->weight[0].tensor];
        row->rows = (int64_t)t->dim[0].extent;
        row->width = (int64_t)t->dim[1].extent;
        row->lookups = op->lookups;
    }
    if (op->type == SC_NET_UPSAMPLE && y->n_dim == x->n_dim && y->n_dim > 2)
        row->factor = (int64_t)(y->dim[2].extent / x->dim[2].extent);
    bool adaptive = op->detail && strcmp(op->detail, "adaptive") == 0;
    if (op->type == SC_NET_POOL && adaptive && y->n_dim > 2)
        row->to = (int64_t)y->dim[2].extent;
    bool grouped = op->iter[0].extent && y->n_dim > 2 && op->n_weight &&
                   op->weight[0].at[0] == 1;
    if (op->type == SC_NET_NORM && grouped)
        row->groups = (int64_t)(op->iter[1].units ? op->iter[1].units
                                                  : op->iter[1].extent);
}

/* False: there is nothing to guess. */
static bool guess(const writer *w, const sc_net_op *op, net_row *row)
{
    *row = (net_row){.path = op->path,
                     .type = op->type,
                     .stride = 1,
                     .dilation = 1,
                     .lookups = 1,
                     .shared = SC_NONE,
                     .kind = op->detail,
                     .gated = op->gated,
                     .bias = op->n_weight > 1};
    if (op->n_in > NET_MAX_INPUTS || op->n_in == 0) return false;
    for (unsigned i = 0; i < op->n_weight; i++)
        row->frozen |= !w->g->tensor[op->weight[i].tensor].learns;
    guess_width(w, op, row);
    guess_moves(w, op, row);
    bool conv = op->type == SC_NET_CONV || op->type == SC_NET_CONV_TRANSPOSED;
    bool products = conv || op->type == SC_NET_LINEAR;
    if (products && op->n_weight == 0) return false;
    if (products) guess_shared(w, op, row);
    if (op->type == SC_NET_LINEAR) guess_linear(op, row);
    if (conv) {
        bool some = op->n_iter > 1 && strcmp(op->iter[1].name, "group") == 0;
        if (some) row->groups = (int64_t)op->iter[1].extent;
    }
    if (conv || (op->type == SC_NET_POOL && !row->to))
        return guess_kernel(w, op, row);
    return true;
}

/* ---- comparing */

static bool same_text(const char *x, const char *y)
{
    return x == y || (x && y && strcmp(x, y) == 0);
}

static bool same_tensor(const sc_tensor *x, const sc_tensor *y)
{
    if (x->kind != y->kind || x->n_dim != y->n_dim || x->bytes != y->bytes ||
        x->learns != y->learns || !same_text(x->name, y->name))
        return false;
    for (unsigned i = 0; i < x->n_dim; i++)
        if (x->dim[i].extent != y->dim[i].extent ||
            x->dim[i].batch != y->dim[i].batch ||
            !same_text(x->dim[i].name, y->dim[i].name))
            return false;
    return true;
}

static bool same_at(const sc_operand *x, const sc_operand *y)
{
    return memcmp(x->at, y->at, sizeof x->at) == 0;
}

static bool same_facts(const sc_net_op *x, const sc_net_op *y)
{
    return x->fn == y->fn && x->gated == y->gated && x->dropout == y->dropout &&
           x->copy == y->copy && x->causal == y->causal &&
           x->cross == y->cross && x->keep_bf16 == y->keep_bf16 &&
           x->heads == y->heads && x->kv_heads == y->kv_heads &&
           x->qk_dim == y->qk_dim && x->v_dim == y->v_dim &&
           x->window == y->window && x->experts == y->experts &&
           x->topk == y->topk && x->route_groups == y->route_groups &&
           x->route_topk == y->route_topk && x->lookups == y->lookups;
}

static bool same_op(const writer *w, const sc_net_op *x, const sc_net_op *y)
{
    const sc_tensor *t = w->b.g.tensor;
    if (!same_facts(x, y) || x->n_iter != y->n_iter || x->n_in != y->n_in ||
        x->n_weight != y->n_weight || x->flops != y->flops ||
        !same_text(x->detail, y->detail))
        return false;
    for (unsigned i = 0; i < x->n_iter; i++) {
        const sc_iter_dim *m = &x->iter[i], *n = &y->iter[i];
        if (m->kind != n->kind || m->batch != n->batch ||
            m->extent != n->extent || m->units != n->units ||
            m->halo != n->halo || m->sums != n->sums ||
            !same_text(m->name, n->name))
            return false;
    }
    for (unsigned i = 0; i < x->n_in; i++)
        if (!same_at(&x->in[i], &y->in[i])) return false;
    for (unsigned i = 0; i < x->n_weight; i++) {
        uint32_t m = x->weight[i].tensor, n = y->weight[i].tensor;
        bool own = &w->g->op[t[m].op] == x;
        if (!same_at(&x->weight[i], &y->weight[i]) ||
            (own ? n < w->g->n_tensors || !same_tensor(&t[m], &t[n]) : m != n))
            return false;
    }
    return same_at(&x->out, &y->out) &&
           same_tensor(&t[x->out.tensor], &t[y->out.tensor]);
}

static bool rebuilds(writer *w, const sc_net_op *op, const net_row *row)
{
    net_value in[NET_MAX_INPUTS];
    const char *why;
    for (unsigned i = 0; i < op->n_in; i++) in[i] = op->in[i].tensor;
    sc_arena_mark mark = sc_arena_save(w->a);
    w->b.frozen = row->frozen;
    net_value v = net_row_build(&w->b, row, in, op->n_in, &why);
    bool good = v != SC_NONE && same_op(w, op, &w->b.g.op[w->g->n_ops]);
    net_row_undo(&w->b, w->g->n_ops, w->g->n_tensors);
    sc_arena_restore(w->a, mark);
    return good;
}

static bool try_pads(writer *w, const sc_net_op *op, net_row *row)
{
    uint32_t span =
        (row->k > row->kw ? row->k : row->kw) * (uint32_t)row->dilation;
    for (int ceil = 0; ceil < (op->type == SC_NET_POOL ? 2 : 1); ceil++) {
        row->ceil = ceil == 1;
        for (row->pad = 0; row->pad <= span && row->pad < 64; row->pad++)
            if (rebuilds(w, op, row)) return true;
        row->pad = 0;
        row->same = true;
        if (rebuilds(w, op, row)) return true;
        row->same = false;
    }
    return false;
}

/* A row that builds the operator again. */
static bool find_row(writer *w, const sc_net_op *op, net_row *row)
{
    if (!guess(w, op, row)) return false;
    if (row->k) return try_pads(w, op, row);
    if (op->type == SC_NET_VIEW) row->flat = true;
    if (rebuilds(w, op, row)) return true;
    const sc_tensor *y = &w->g->tensor[op->out.tensor];
    row->flat = false;
    row->transposed = op->type == SC_NET_MATMUL;
    if (op->type == SC_NET_LINEAR && y->n_dim)
        row->dim = y->dim[y->n_dim - 1].name;
    return rebuilds(w, op, row);
}

/* ---- printing */

static const char *name_of(const writer *w, uint32_t tensor)
{
    const sc_tensor *t = &w->g->tensor[tensor];
    return t->kind == SC_TENSOR_VALUE ? w->g->op[t->op].path : t->name;
}

static void push_in(const writer *w, uint32_t i)
{
    const sc_net_op *op = &w->g->op[i];
    if (i > 0 && op->n_in == 1 &&
        op->in[0].tensor == w->g->op[i - 1].out.tensor)
        return;
    sc_text_add(w->out, op->n_in == 1 ? ", in: " : ", in: [");
    for (unsigned k = 0; k < op->n_in; k++) {
        if (k) sc_text_add(w->out, ", ");
        put_word(w->out, name_of(w, op->in[k].tensor));
    }
    if (op->n_in != 1) sc_text_add(w->out, "]");
}

static void put_window(sc_text *t, const net_row *r)
{
    if (r->k && r->k == r->kw) put_number(t, "kernel", r->k);
    if (r->k != r->kw) sc_text_add(t, ", kernel: [%u, %u]", r->k, r->kw);
    if (!r->k) return;
    if (r->stride != 1) put_number(t, "stride", (uint64_t)r->stride);
    if (r->pad) put_number(t, "pad", r->pad);
    if (r->same) sc_text_add(t, ", pad: same");
    if (r->dilation != 1) put_number(t, "dilation", (uint64_t)r->dilation);
    if (r->ceil) sc_text_add(t, ", ceil: true");
}

static void put_view(const writer *w, const sc_net_op *op, const net_row *r)
{
    const sc_tensor *x = &w->g->tensor[op->in[0].tensor];
    sc_text *t = w->out;
    sc_text_add(t, r->flat ? ", dims: flat" : ", dims: [");
    for (unsigned i = 0; i < r->n_dims && !r->flat; i++) {
        sc_text_add(t, "%s{name: ", i ? ", " : "");
        put_word(t, r->view[i].name);
        put_number(t, "extent", r->view[i].extent);
        if (r->view[i].from >= 0)
            put_key(t, "from", x->dim[r->view[i].from].name);
        sc_text_add(t, "}");
    }
    if (!r->flat) sc_text_add(t, "]");
    if (r->copy) sc_text_add(t, ", copy: true");
}

/* Keys whose value is not the default, where the type has them. */
static void put_known(const net_row *r, sc_text *t)
{
    const sc_key *k = net_row_keys;
    for (int i = 0; k[i].name; i++) {
        const char *field = (const char *)r + k[i].offset;
        if (!(net_row_types[i] >> r->type & 1) || k[i].required) continue;
        int64_t v, preset = k[i].def && k[i].type == SC_T_INT ? 1 : 0;
        if (k[i].offset == offsetof(net_row, path) ||
            k[i].offset == offsetof(net_row, stride) ||
            k[i].offset == offsetof(net_row, dilation) ||
            k[i].offset == offsetof(net_row, ceil) ||
            k[i].offset == offsetof(net_row, copy))
            continue;
        if (k[i].type == SC_T_INT) {
            memcpy(&v, field, sizeof v);
            if (v != preset) put_number(t, k[i].name, (uint64_t)v);
        } else if (k[i].type == SC_T_BOOL) {
            bool def = k[i].def && strcmp(k[i].def, "true") == 0, b;
            memcpy(&b, field, sizeof b);
            if (b != def)
                sc_text_add(t, ", %s: %s", k[i].name, b ? "true" : "false");
        } else if (k[i].type == SC_T_STRING) {
            const char *s;
            memcpy(&s, field, sizeof s);
            if (s) put_key(t, k[i].name, s);
        }
    }
}

static void put_at(const writer *w, const sc_net_op *op, const sc_operand *p)
{
    const sc_tensor *t = &w->g->tensor[p->tensor];
    sc_text_add(w->out, "[");
    for (unsigned i = 0; i < t->n_dim; i++) {
        sc_text_add(w->out, i ? ", " : "");
        if (p->at[i] == SC_NO_ITER)
            sc_text_add(w->out, "\"-\"");
        else
            put_word(w->out, op->iter[p->at[i]].name);
    }
    sc_text_add(w->out, "]");
}

static void put_iters(const writer *w, const sc_net_op *op)
{
    static const char *const kinds[] = {"batch", "free", "reduce", "opaque"};
    sc_text_add(w->out, "\n      iter: [");
    for (unsigned i = 0; i < op->n_iter; i++) {
        const sc_iter_dim *it = &op->iter[i];
        sc_text_add(w->out, "%s{name: ", i ? ", " : "");
        put_word(w->out, it->name);
        put_key(w->out, "kind", kinds[it->kind]);
        put_number(w->out, "extent", it->extent);
        if (it->units) put_number(w->out, "units", it->units);
        if (it->halo) put_number(w->out, "halo", it->halo);
        if (it->sums) sc_text_add(w->out, ", sums: true");
        if (it->batch != (it->kind == SC_I_BATCH))
            sc_text_add(w->out, ", batch: %s", it->batch ? "true" : "false");
        sc_text_add(w->out, "}");
    }
    sc_text_add(w->out, "],\n      in: [");
    for (unsigned i = 0; i < op->n_in; i++) {
        sc_text_add(w->out, i ? ", " : "");
        put_at(w, op, &op->in[i]);
    }
    sc_text_add(w->out, "]");
}

static void put_weights(const writer *w, const sc_net_op *op)
{
    sc_text_add(w->out, ",\n      weights: [");
    for (unsigned i = 0; i < op->n_weight; i++) {
        const sc_tensor *t = &w->g->tensor[op->weight[i].tensor];
        sc_text_add(w->out, "%s{name: ", i ? ", " : "");
        put_word(w->out, t->name);
        if (&w->g->op[t->op] == op) {
            sc_text_add(w->out, ", dims: ");
            put_dims(w->out, t);
            if (t->bytes) put_number(w->out, "bytes", t->bytes);
            if (!t->learns) sc_text_add(w->out, ", learns: false");
        } else {
            put_key(w->out, "of", w->g->op[t->op].path);
        }
        sc_text_add(w->out, ", at: ");
        put_at(w, op, &op->weight[i]);
        sc_text_add(w->out, "}");
    }
    sc_text_add(w->out, "]");
}

static void put_facts(const sc_net_op *op, sc_text *t)
{
    const struct {
        const char *key;
        uint64_t v;
    } number[] = {{"lookups", op->lookups},
                  {"heads", op->heads},
                  {"kv_heads", op->kv_heads},
                  {"qk_dim", op->qk_dim},
                  {"v_dim", op->v_dim},
                  {"window", op->window},
                  {"experts", op->experts},
                  {"topk", op->topk},
                  {"route_groups", op->route_groups},
                  {"route_topk", op->route_topk}};

    const struct {
        const char *key;
        bool is;
    } flag[] = {{"gated", op->gated},   {"dropout", op->dropout},
                {"causal", op->causal}, {"cross", op->cross},
                {"copy", op->copy},     {"keep_bf16", op->keep_bf16}};

    if (op->fn) put_key(t, "fn", sc_net_fn_names[op->fn]);
    for (size_t i = 0; i < SC_COUNT(number); i++)
        if (number[i].v) put_number(t, number[i].key, number[i].v);
    for (size_t i = 0; i < SC_COUNT(flag); i++)
        if (flag[i].is) sc_text_add(t, ", %s: true", flag[i].key);
}

static void put_raw(const writer *w, const sc_net_op *op)
{
    const sc_tensor *y = &w->g->tensor[op->out.tensor];
    sc_text_add(w->out, ", raw: {");
    put_iters(w, op);
    if (op->n_weight) put_weights(w, op);
    sc_text_add(w->out, ",\n      dims: ");
    put_dims(w->out, y);
    sc_text_add(w->out, ", at: ");
    put_at(w, op, &op->out);
    sc_text_add(w->out, ", learns: %s", y->learns ? "true" : "false");
    if (y->bytes) put_number(w->out, "bytes", y->bytes);
    if (op->flops > 0) sc_text_add(w->out, ", flops: %.17g", op->flops);
    put_facts(op, w->out);
    if (op->detail) put_key(w->out, "detail", op->detail);
    sc_text_add(w->out, "}");
}

static void put_op(writer *w, uint32_t i)
{
    const sc_net_op *op = &w->g->op[i];
    net_row row;
    sc_text_add(w->out, "  - {path: ");
    put_word(w->out, op->path);
    put_key(w->out, "type", sc_net_type_names[op->type]);
    if (op->type == SC_NET_EMBED)
        sc_text_add(w->out, ", sparse: %s", op->sparse ? "true" : "false");
    if (op->access) {
        sc_text_add(w->out, ", access: \"");
        sc_access_print(op->access, w->out);
        sc_text_add(w->out, "\"");
    }
    push_in(w, i);
    if (find_row(w, op, &row)) {
        put_known(&row, w->out);
        put_window(w->out, &row);
        if (op->type == SC_NET_VIEW) put_view(w, op, &row);
    } else {
        put_raw(w, op);
    }
    sc_text_add(w->out, "}\n");
}

static void put_input(const writer *w, const sc_tensor *t)
{
    bool simple = t->n_dim > 0 && t->dim[0].batch && t->bytes == 0;
    for (unsigned i = 1; i < t->n_dim; i++) simple &= !t->dim[i].batch;
    for (unsigned i = 0; i < t->n_dim; i++)
        simple &= strcmp(t->dim[i].name, "dims") != 0;
    sc_text_add(w->out, "  ");
    put_word(w->out, t->name);
    sc_text_add(w->out, ": {");
    for (unsigned i = 0; i < t->n_dim && simple; i++) {
        sc_text_add(w->out, i ? ", " : "");
        put_word(w->out, t->dim[i].name);
        sc_text_add(w->out, ": %llu", (unsigned long long)t->dim[i].extent);
    }
    if (!simple) {
        sc_text_add(w->out, "dims: ");
        put_dims(w->out, t);
        if (t->bytes) put_number(w->out, "bytes", t->bytes);
    }
    sc_text_add(w->out, "}\n");
}

/* The graph in a builder, with room for one operator more. */
static bool hold(writer *w)
{
    const sc_net *g = w->g;
    build_init(&w->b, w->a, g->name, g->sample);
    w->b.g.op = SC_NEW_N(w->a, sc_net_op, g->n_ops + SPARE);
    w->b.g.tensor = SC_NEW_N(w->a, sc_tensor, g->n_tensors + SPARE);
    if (!w->b.g.op || !w->b.g.tensor) return false;
    memcpy(w->b.g.op, g->op, g->n_ops * sizeof *g->op);
    memcpy(w->b.g.tensor, g->tensor, g->n_tensors * sizeof *g->tensor);
    w->b.cap_ops = g->n_ops + SPARE;
    w->b.cap_tensors = g->n_tensors + SPARE;
    net_row_undo(&w->b, g->n_ops, g->n_tensors);
    return true;
}

void net_write(const sc_net *g, sc_text *out)
{
    sc_arena a;
    sc_arena_init(&a, 0);
    writer w = {.g = g, .a = &a, .out = out};
    if (!hold(&w)) {
        out->failed = true;
        sc_arena_free(&a);
        return;
    }
    sc_text_add(out, "name: ");
    put_word(out, g->name);
    sc_text_add(out, "\nsample: ");
    put_word(out, g->sample);
    sc_text_add(out, g->fixed ? "\nfixed: true\ninputs:\n" : "\ninputs:\n");
    for (uint32_t i = 0; i < g->n_tensors; i++)
        if (g->tensor[i].kind == SC_TENSOR_INPUT) put_input(&w, &g->tensor[i]);
    sc_text_add(out, "operators:\n");
    for (uint32_t i = 0; i < g->n_ops; i++) put_op(&w, i);
    sc_arena_free(&a);
}
