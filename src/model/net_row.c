/* SPDX-License-Identifier: Apache-2.0 */
/* net_row.c - the keys of an operator in model.yml, and how to build it. */
#include "model/net_row.h"

#include <string.h>

#define BIT(type) (1u << SC_NET_##type)
#define ALL       ((1u << SC_N_NET_TYPES) - 1)
#define CONVS     (BIT(CONV) | BIT(CONV_TRANSPOSED))
#define BIG       NET_MAX_EXTENT

/* Columns: name, field, type, types of operators, least, most, default,
 * help. */
#define ROW_KEYS(X)                                                            \
    X("path", path, STRING, ALL, 0, 0, NULL, "name of the operator")           \
    X("in", in, NODE, ALL, 0, 0, NULL, "inputs; default: the operator before") \
    X("out", out, INT, BIT(LINEAR) | CONVS | BIT(ATTENTION), 1, BIG, NULL,     \
      "channels or columns of the result")                                     \
    X("kernel", kernel_node, NODE, CONVS | BIT(POOL), 0, 0, NULL,              \
      "side of the window, or [others, last]")                                 \
    X("stride", stride, INT, CONVS | BIT(POOL), 1, 65535, "1", "of a window")  \
    X("pad", pad_node, NODE, CONVS | BIT(POOL), 0, 0, NULL,                    \
      "on each side, or same")                                                 \
    X("dilation", dilation, INT, CONVS | BIT(POOL), 1, 65535, "1",             \
      "of a window")                                                           \
    X("groups", groups, INT, CONVS | BIT(NORM), 1, BIG, NULL, "of channels")   \
    X("bias", bias, BOOL, BIT(LINEAR) | CONVS | BIT(NORM), 0, 0, "true",       \
      "adds one")                                                              \
    X("ceil", ceil, BOOL, BIT(POOL), 0, 0, "false",                            \
      "a last window hangs over")                                              \
    X("to", to, INT, BIT(POOL), 1, BIG, NULL, "positions of the result")       \
    X("factor", factor, INT, BIT(UPSAMPLE), 1, 65535, NULL, "of positions")    \
    X("rows", rows, INT, BIT(EMBED), 1, BIG, NULL, "of the table")             \
    X("width", width, INT, BIT(EMBED), 1, BIG, NULL, "of the table")           \
    X("lookups", lookups, INT, BIT(EMBED), 1, BIG, "1",                        \
      "rows that are summed")                                                  \
    X("access", access, STRING, BIT(EMBED), 0, 0, NULL,                        \
      "distribution of look-ups over rows: uniform, zipf S, reuse N: ...")     \
    X("sparse", sparse, BOOL, BIT(EMBED), 0, 0, NULL,                          \
      "only rows that were looked up are updated")                             \
    X("heads", heads, INT, BIT(ATTENTION), 1, BIG, NULL, "of queries")         \
    X("kv_heads", kv_heads, INT, BIT(ATTENTION), 1, BIG, NULL,                 \
      "heads of keys and values; default: heads")                              \
    X("qk_dim", qk_dim, INT, BIT(ATTENTION), 1, BIG, NULL, "of a query")       \
    X("v_dim", v_dim, INT, BIT(ATTENTION), 1, BIG, NULL, "of a value")         \
    X("window", window, INT, BIT(ATTENTION), 1, BIG, NULL, "keys of a query")  \
    X("causal", causal, BOOL, BIT(ATTENTION), 0, 0, "false", "causal mask")    \
    X("kind", kind, STRING, BIT(ACT) | BIT(ELEMENTWISE), 0, 0, NULL,           \
      "relu, gelu ...; sum, product ...")                                      \
    X("gated", gated, BOOL, BIT(ACT), 0, 0, "false",                           \
      "one half scales the other")                                             \
    X("along", along, STRING, BIT(CONCAT) | BIT(SLICE), 0, 0, NULL,            \
      "name of a dim")                                                         \
    X("extent", extent, INT, BIT(SLICE), 1, BIG, NULL, "that is left")         \
    X("dims", dims_node, NODE, BIT(VIEW), 0, 0, NULL,                          \
      "flat, or a list of {name, extent, from}")                               \
    X("copy", copy, BOOL, BIT(VIEW), 0, 0, "false", "copies the bytes")        \
    X("transposed", transposed, BOOL, BIT(MATMUL), 0, 0, "false",              \
      "the second factor is")                                                  \
    X("reduce", reduce, BOOL, BIT(LOSS), 0, 0, "false",                        \
      "the last dim may be divided")                                           \
    X("dim", dim, STRING, BIT(LINEAR), 0, 0, NULL, "name of the new dim")      \
    X("in_units", in_units, INT, BIT(LINEAR), 1, BIG, NULL,                    \
      "indivisible parts")                                                     \
    X("out_units", out_units, INT, BIT(LINEAR), 1, BIG, NULL,                  \
      "indivisible parts")                                                     \
    X("weight", weight, STRING, BIT(LINEAR) | CONVS, 0, 0, NULL,               \
      "operator whose weight it is, too")                                      \
    X("frozen", frozen, BOOL, ALL, 0, 0, NULL, "its weights do not learn")     \
    X("raw", raw, NODE, ALL, 0, 0, NULL, "iteration dims and ports as they are")

#define KEY(label, field_, type_, types, lo, hi, preset, text) \
    {.name = label,                                            \
     .type = SC_T_##type_,                                     \
     .offset = offsetof(net_row, field_),                      \
     .min = lo,                                                \
     .max = hi,                                                \
     .def = preset,                                            \
     .help = text},
#define TYPES(label, field_, type_, types, lo, hi, preset, text) types,

const sc_key net_row_keys[] = {{.name = "type",
                                .type = SC_T_ENUM,
                                .offset = offsetof(net_row, type),
                                .names = sc_net_type_names,
                                .help = "what it computes",
                                .required = true},
                               ROW_KEYS(KEY){.name = NULL}};
const uint32_t net_row_types[] = {ALL, ROW_KEYS(TYPES) 0};

/* ---- conditions that the builders need */

static const char *need(bool good, const char *why)
{
    return good ? NULL : why;
}

static bool needs_channels(int type)
{
    return type == SC_NET_BATCH_NORM || type == SC_NET_CONV ||
           type == SC_NET_CONV_TRANSPOSED || type == SC_NET_POOL ||
           type == SC_NET_UPSAMPLE;
}

static int find_dim(const sc_tensor *t, const char *name)
{
    for (int i = 0; i < t->n_dim; i++)
        if (name && strcmp(t->dim[i].name, name) == 0) return i;
    return -1;
}

static const char *guard_linear(const net_row *r, const sc_tensor *x,
                                const net_builder *b)
{
    const sc_tensor_dim *last = &x->dim[x->n_dim - 1];
    const sc_tensor *w = build_tensor(b, r->shared);
    if (last->batch) return "there is nothing to multiply";
    if (!r->out) return "give out:, the width of the result";
    if ((uint64_t)r->in_units > last->extent || r->out_units > r->out)
        return "more parts than elements";
    if (w && (w->n_dim != 2 || w->dim[0].extent != (uint64_t)r->out ||
              w->dim[1].extent != last->extent))
        return "the weight that it shares has another shape";
    return NULL;
}

static const char *guard_embed(const net_row *r, const sc_tensor *x)
{
    if (!r->rows || !r->width) return "rows: and width: are the table's";
    if (x->n_dim > 4) return "too many dims";
    if (r->lookups > 1 &&
        (x->n_dim < 2 || x->dim[x->n_dim - 1].extent != (uint64_t)r->lookups))
        return "lookups: must be the last dim of its input";
    return NULL;
}

static const char *guard_attention(const net_row *r, const net_builder *b,
                                   const net_value *in, unsigned n)
{
    if (!r->out || !r->heads) return "out: and heads: are missing";
    if (r->out % r->heads) return "heads do not divide out";
    for (unsigned i = 0; i < n; i++)
        if (build_tensor(b, in[i])->n_dim != 3)
            return "attention reads [batch, positions, width]";
    return need(n < 3 || build_extent(b, in[1], 1) == build_extent(b, in[2], 1),
                "as many keys as values");
}

static bool shared_fits(const net_row *r, const sc_tensor *x,
                        const net_builder *b)
{
    const sc_tensor *w = build_tensor(b, r->shared);
    uint64_t groups = (uint64_t)(r->groups ? r->groups : 1);
    if (!w) return true;
    if (w->n_dim != x->n_dim || w->dim[0].extent != (uint64_t)r->out ||
        w->dim[1].extent != x->dim[1].extent / groups)
        return false;
    for (unsigned i = 2; i < w->n_dim; i++)
        if (w->dim[i].extent != (i + 1 == w->n_dim ? r->kw : r->k))
            return false;
    return true;
}

static const char *guard_window(const net_row *r, const sc_tensor *x,
                                const net_builder *b)
{
    if (r->type == SC_NET_BATCH_NORM) return NULL;
    if (r->type == SC_NET_UPSAMPLE)
        return need(r->factor > 0, "give factor:, by which it gets larger");
    if (r->type == SC_NET_POOL && r->to) return NULL;
    if (!r->k) return "kernel: is missing";
    bool conv = r->type != SC_NET_POOL;
    if (conv && !r->out) return "give out:, the channels of the result";
    if (conv && (x->dim[1].extent > UINT32_MAX ||
                 x->dim[1].extent % (uint64_t)(r->groups ? r->groups : 1)))
        return "groups do not divide the channels";
    if (conv && !shared_fits(r, x, b))
        return "the weight that it shares has another shape";
    for (unsigned i = 2; i < x->n_dim; i++) {
        uint64_t room = x->dim[i].extent + 2 * (uint64_t)r->pad;
        uint64_t k = i + 1 == x->n_dim ? r->kw : r->k;
        uint64_t span = (k - 1) * (uint64_t)r->dilation + 1;
        if (r->type != SC_NET_CONV_TRANSPOSED && !r->same && span > room)
            return "the kernel is larger than the image";
    }
    return NULL;
}

static const char *guard_along(const net_row *r, const sc_tensor *x)
{
    int d = find_dim(x, r->along);
    if (d < 0) return "along: must name a dim of its input";
    if (x->dim[d].batch) return "it can't cut or join samples";
    return need(r->type == SC_NET_CONCAT || r->extent > 0,
                "give extent:, the size of the result");
}

static const char *guard_count(const net_row *r, unsigned n)
{
    switch (r->type) {
    case SC_NET_MATMUL:
    case SC_NET_LOSS: return need(n == 2, "it reads two values");
    case SC_NET_ATTENTION:
        return need(n >= 1 && n <= 3, "it reads q, k and v, or fewer values");
    case SC_NET_ELEMENTWISE:
        return need(n == 1 || n == 2, "it reads one value or two");
    case SC_NET_CONCAT:
        return need(n > 0 && n <= NET_MAX_INPUTS, "it reads 1 to 64 values");
    default: return need(n == 1, "it reads one value");
    }
}

/* Types that only `raw:` can describe. */
static bool by_parts(int type)
{
    return type == SC_NET_EXPERT || type == SC_NET_SCAN || type > SC_NET_LOSS;
}

static const char *guard(const net_builder *b, const net_row *r,
                         const net_value *in, unsigned n)
{
    if (by_parts(r->type)) return "its parts have to be written under raw:";
    const char *why = guard_count(r, n);
    if (why) return why;
    if (r->type > SC_NET_LOSS || r->type == SC_NET_EXPERT ||
        r->type == SC_NET_SCAN)
        return "only generated models have it";
    const sc_tensor *x = build_tensor(b, in[0]);
    bool channels = needs_channels(r->type) ||
                    (r->type == SC_NET_NORM && r->groups) ||
                    (r->type == SC_NET_VIEW && r->flat);
    if (channels && (x->n_dim < 2 || !x->dim[0].batch || x->dim[1].batch))
        return "it reads [batch, channels, ...]";
    switch (r->type) {
    case SC_NET_LINEAR: return guard_linear(r, x, b);
    case SC_NET_EMBED: return guard_embed(r, x);
    case SC_NET_ATTENTION: return guard_attention(r, b, in, n);
    case SC_NET_CONCAT:
    case SC_NET_SLICE: return guard_along(r, x);
    case SC_NET_VIEW: return need(r->flat || r->n_dims, "dims: is missing");
    case SC_NET_NORM:
        if (x->dim[x->n_dim - 1].batch) return "there is nothing to normalize";
        return need(!r->groups || x->dim[1].extent % (uint64_t)r->groups == 0,
                    "groups do not divide the channels");
    case SC_NET_ACT:
        return need(!r->gated || x->dim[x->n_dim - 1].extent % 2 == 0,
                    "a gate is half of an even width");
    case SC_NET_SOFTMAX:
        return need(!x->dim[x->n_dim - 1].batch,
                    "there is nothing to sum over");
    default: return needs_channels(r->type) ? guard_window(r, x, b) : NULL;
    }
}

/* ---- building */

static build_window window_of(const net_row *r)
{
    bool bias = r->type == SC_NET_POOL ? false : r->bias;
    return (build_window){.k = r->k,
                          .kw = r->kw,
                          .stride = (uint32_t)r->stride,
                          .pad = r->pad,
                          .dilation = (uint32_t)r->dilation,
                          .groups = (uint32_t)r->groups,
                          .shared_with = r->shared_with,
                          .same = r->same,
                          .ceil = r->ceil,
                          .bias = bias};
}

static net_value attend(net_builder *b, const net_row *r, const net_value *in,
                        unsigned n)
{
    uint64_t dim = (uint64_t)(r->out / r->heads);
    build_attend at = {.q = in[0],
                       .k = n > 1 ? in[1] : SC_NONE,
                       .v = n > 2 ? in[2] : SC_NONE,
                       .heads = (uint32_t)r->heads,
                       .kv_heads = (uint32_t)r->kv_heads,
                       .out = (uint64_t)r->out,
                       .qk_dim = r->qk_dim ? (uint64_t)r->qk_dim : dim,
                       .v_dim = r->v_dim ? (uint64_t)r->v_dim : dim,
                       .seen = (uint64_t)r->window,
                       .causal = r->causal};
    return build_attention(b, r->path, &at);
}

static net_value add_moves(net_builder *b, const net_row *r,
                           const net_value *in, unsigned n)
{
    const char *p = r->path;
    switch (r->type) {
    case SC_NET_CONCAT:
        return build_concat(
            b, p, in, n, (unsigned)find_dim(build_tensor(b, in[0]), r->along));
    case SC_NET_SLICE:
        return build_slice(b, p, in[0],
                           (unsigned)find_dim(build_tensor(b, in[0]), r->along),
                           (uint64_t)r->extent);
    case SC_NET_VIEW:
        if (r->flat) return build_flatten(b, p, in[0]);
        return build_view(b, p, in[0], r->view, r->n_dims, r->copy);
    case SC_NET_LOSS: return build_loss(b, p, in[0], in[1], r->reduce);
    default: return build_wrong(b, p, "there is no such type");
    }
}

static net_value add_simple(net_builder *b, const net_row *r,
                            const net_value *in, unsigned n)
{
    const char *p = r->path;
    switch (r->type) {
    case SC_NET_BATCH_NORM: return build_batch_norm(b, p, in[0]);
    case SC_NET_NORM:
        if (r->groups)
            return build_group_norm(b, p, in[0], (uint32_t)r->groups);
        return build_layer_norm(b, p, in[0], r->bias);
    case SC_NET_ACT:
        return r->gated ? build_act_gated(b, p, in[0], r->kind)
                        : build_act(b, p, in[0], r->kind);
    case SC_NET_SOFTMAX: return build_softmax(b, p, in[0]);
    case SC_NET_DROPOUT: return build_dropout(b, p, in[0]);
    case SC_NET_ELEMENTWISE:
        return build_elementwise(b, p, in[0], n > 1 ? in[1] : SC_NONE, r->kind);
    case SC_NET_POOL:
        if (r->to) return build_pool_to(b, p, in[0], (uint64_t)r->to);
        return build_pool(b, p, in[0], window_of(r));
    case SC_NET_UPSAMPLE:
        return build_upsample(b, p, in[0], (uint32_t)r->factor);
    default: return add_moves(b, r, in, n);
    }
}

static net_value add(net_builder *b, const net_row *r, const net_value *in,
                     unsigned n)
{
    const char *p = r->path;
    build_product product = {.out_name = r->dim,
                             .out = (uint64_t)r->out,
                             .in_units = (uint32_t)r->in_units,
                             .out_units = (uint32_t)r->out_units,
                             .weight = r->shared,
                             .bias = r->bias};
    switch (r->type) {
    case SC_NET_LINEAR: return build_linear_named(b, p, in[0], &product);
    case SC_NET_MATMUL: return build_matmul(b, p, in[0], in[1], r->transposed);
    case SC_NET_CONV:
        return build_conv(b, p, in[0], (uint32_t)r->out, window_of(r));
    case SC_NET_CONV_TRANSPOSED:
        return build_conv_transposed(b, p, in[0], (uint32_t)r->out,
                                     window_of(r));
    case SC_NET_EMBED:
        return build_embed(b, p, in[0], (uint64_t)r->rows, (uint64_t)r->width,
                           (uint32_t)r->lookups);
    case SC_NET_ATTENTION: return attend(b, r, in, n);
    default: return add_simple(b, r, in, n);
    }
}

const char *net_row_too_large(const net_builder *b, uint32_t n_tensors)
{
    for (uint32_t i = n_tensors; i < b->g.n_tensors; i++) {
        const sc_tensor *t = &b->g.tensor[i];
        for (unsigned k = 0; k < t->n_dim; k++) {
            if (!t->dim[k].extent) return "nothing is left";
            if ((double)t->dim[k].extent > NET_MAX_EXTENT)
                return "a dim has more than 4294967295 elements";
        }
        if (sc_tensor_elements(t, 1.0) > NET_MAX_ELEMENTS)
            return "there are more than 2^53 elements";
    }
    return NULL;
}

void net_row_undo(net_builder *b, uint32_t n_ops, uint32_t n_tensors)
{
    b->g.n_ops = n_ops;
    b->g.n_tensors = n_tensors;
    b->wrong = NULL;
    b->why = NULL;
}

net_value net_row_build(net_builder *b, const net_row *row, const net_value *in,
                        unsigned n_in, const char **why)
{
    uint32_t n_ops = b->g.n_ops, n_tensors = b->g.n_tensors;
    net_value v = SC_NONE;
    *why = guard(b, row, in, n_in);
    if (*why) return SC_NONE;
    v = add(b, row, in, n_in);
    *why = b->why;
    if (v != SC_NONE) *why = net_row_too_large(b, n_tensors);
    if (!*why) return v;
    net_row_undo(b, n_ops, n_tensors);
    return SC_NONE;
}

sc_status net_row_finish(net_builder *b, sc_pos pos, const sc_net **out,
                         sc_err *err)
{
    sc_err found;
    sc_err_init(&found);
    sc_status s = build_finish(b, out, &found);
    if (s == SC_OK) return SC_OK;
    if (s == SC_ENOMEM) return sc_error_nomem(err);
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos, NULL, "%s",
                    found.n ? found.d[0].msg : "the network does not fit");
}
