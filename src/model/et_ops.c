/* SPDX-License-Identifier: Apache-2.0 */
/* et_ops.c - builds each PyTorch operator of a trace by its name. */
#include "model/et_build.h"

#include <string.h>

/* ---- arguments */

static const et_tensor *tensor(const et_op *o, uint32_t arg)
{
    const et_node *n = o->n;
    return arg < n->n_in && n->in[arg].kind == ET_TENSOR ? &n->in[arg].t[0]
                                                         : NULL;
}

static double number(const et_op *o, uint32_t arg)
{
    const et_node *n = o->n;
    return arg < n->n_in && n->in[arg].kind == ET_NUMBER ? n->in[arg].number
                                                         : 0.0;
}

static const et_tensor *result(const et_op *o)
{
    return &o->n->out[0];
}

static uint64_t last(const et_tensor *t)
{
    return t->n_dim ? t->dim[t->n_dim - 1] : 1;
}

static et_value *leaf_of(et_op *o, const et_tensor *t)
{
    return &o->g->entry[et_entry(o->g, t)->leaf];
}

/* Keeps only the tensors of these arguments. */
static void keep(et_op *o, const et_tensor *x, const et_tensor *y)
{
    o->n_in = 0;
    if (x) o->in[o->n_in++] = *x;
    if (y) o->in[o->n_in++] = *y;
}

/* ---- products */

/* x[.., k] w: [out, k], or [k, out] where `kn`. */
static net_value linear(et_op *o, const et_tensor *x, const et_tensor *w,
                        bool bias, bool kn)
{
    et_builder *g = o->g;
    if (x->n_dim < 2 || w->n_dim != 2 || x->n_dim > SC_TENSOR_DIMS ||
        last(x) != w->dim[kn ? 0 : 1] || last(x) == 0 ||
        w->dim[kn ? 1 : 0] == 0)
        return SC_NONE;
    uint64_t out = w->dim[kn ? 1 : 0];
    et_value *leaf = leaf_of(o, w);
    net_value in = et_use(g, x);
    if (in == SC_NONE) return SC_NONE;
    build_product p = {.out = out, .bias = bias, .weight = leaf->weight};
    const sc_tensor *shared = build_tensor(&g->b, leaf->weight);
    if (shared && (shared->n_dim != 2 || shared->dim[0].extent != out ||
                   shared->dim[1].extent != last(x)))
        p.weight = SC_NONE;
    net_value v = build_linear_named(&g->b, o->path, in, &p);
    if (v != SC_NONE)
        leaf->weight = g->b.g.op[g->b.g.n_ops - 1].weight[0].tensor;
    return v;
}

static net_value product(et_op *o, const et_tensor *x, const et_tensor *y)
{
    et_builder *g = o->g;
    const et_tensor *out = result(o);
    bool same =
        x->n_dim == y->n_dim && x->n_dim >= 3 && x->n_dim <= SC_TENSOR_DIMS;
    for (unsigned i = 0; same && i + 2 < x->n_dim; i++)
        same = x->dim[i] == y->dim[i];
    if (same && last(x) == y->dim[y->n_dim - 2] && et_elements(out) > 0 &&
        et_elements(x) > 0) {
        net_value in[] = {et_use(g, x), et_use(g, y)};
        if (in[0] == SC_NONE || in[1] == SC_NONE) return SC_NONE;
        return build_matmul(&g->b, o->path, in[0], in[1], false);
    }
    keep(o, x, y);
    return et_shaped(o, SC_NET_MATMUL, out,
                     2.0 * et_elements(out) * (double)last(x));
}

/* A factor that no operator made is a weight. */
static net_value multiply(et_op *o, uint32_t first, bool bias)
{
    const et_tensor *x = tensor(o, first), *y = tensor(o, first + 1);
    if (!x || !y) return SC_NONE;
    if (et_is_leaf(o->g, y) && y->n_dim == 2) {
        net_value v = linear(o, x, y, bias, true);
        if (v != SC_NONE) return v;
    }
    return product(o, x, y);
}

static net_value add_linear(et_op *o)
{
    const et_tensor *x = tensor(o, 0), *w = tensor(o, 1);
    return x && w ? linear(o, x, w, tensor(o, 2) != NULL, false) : SC_NONE;
}

static net_value add_addmm(et_op *o)
{
    return multiply(o, 1, tensor(o, 0) && et_is_leaf(o->g, tensor(o, 0)));
}

static net_value add_mm(et_op *o)
{
    return multiply(o, 0, false);
}

/* The weight is [out, in / groups, kernel], or [in, out / groups] if
 * transposed. */
static net_value add_conv(et_op *o)
{
    et_builder *g = o->g;
    const et_tensor *x = tensor(o, 0), *w = tensor(o, 1), *y = result(o);
    if (!x || !w || x->n_dim < 3 || x->n_dim > 5 || w->n_dim != x->n_dim ||
        y->n_dim != x->n_dim || !(et_elements(w) > 0) || !(et_elements(y) > 0))
        return SC_NONE;
    bool generic = strcmp(o->what, "convolution") == 0 ||
                   strcmp(o->what, "_convolution") == 0;
    bool back = strstr(o->what, "transpose") || (generic && number(o, 6) > 0);
    uint64_t groups = back ? y->dim[1] / w->dim[1] : x->dim[1] / w->dim[1];
    if (groups == 0 || x->dim[1] % groups || y->dim[1] % groups) return SC_NONE;
    et_value *leaf = leaf_of(o, w);
    build_window win = {.groups = (uint32_t)groups,
                        .bias = tensor(o, 2) != NULL,
                        .shared_with =
                            leaf->maker == SC_NONE ? 0 : leaf->maker};
    build_known known = {.out = (uint32_t)y->dim[1]};
    for (unsigned i = 2; i < x->n_dim; i++) {
        known.kernel[i - 2] = w->dim[i];
        known.to[i - 2] = y->dim[i];
    }
    net_value in = et_use(g, x);
    if (in == SC_NONE) return SC_NONE;
    net_value v = build_conv_to(&g->b, o->path, in, &known, win, back);
    if (v != SC_NONE) leaf->maker = v;
    return v;
}

static net_value add_embedding(et_op *o)
{
    et_builder *g = o->g;
    const et_tensor *w = tensor(o, 0), *ids = tensor(o, 1), *y = result(o);
    if (!w || !ids || w->n_dim != 2 || ids->n_dim < 1 || ids->n_dim > 4 ||
        !(et_elements(w) > 0))
        return SC_NONE;
    et_tensor rows = *ids;
    bool bag = strstr(o->what, "bag") && y->n_dim == 2 && y->dim[0] > 0 &&
               ids->n_dim == 1 && ids->dim[0] >= y->dim[0];
    uint32_t lookups = 1;
    if (bag) lookups = (uint32_t)(ids->dim[0] / y->dim[0]);
    if (bag) {
        rows.dim[0] = y->dim[0];
        if (lookups > 1) rows.dim[rows.n_dim++] = lookups;
    }
    net_value in = et_use(g, &rows);
    if (in == SC_NONE || build_tensor(&g->b, in)->n_dim != rows.n_dim)
        return SC_NONE;
    net_value v =
        build_embed(&g->b, o->path, in, w->dim[0], w->dim[1], lookups);
    if (v == SC_NONE) return v;
    sc_net_op *op = &g->b.g.op[g->b.g.n_ops - 1];
    op->sparse = false; /* PyTorch's default */
    leaf_of(o, w)->weight = op->weight[0].tensor;
    return v;
}

/* FBGEMM's tables: one tensor holds the rows of all tables, which have equal
 * width, and the look-ups of all samples and tables follow each other. */
static net_value add_tables(et_op *o)
{
    et_builder *g = o->g;
    uint32_t first = strncmp(o->what, "split", 5) == 0 ? 1 : 0;
    uint32_t total = first ? 7 : 3;
    const et_tensor *w = tensor(o, first), *ends = tensor(o, total - 1);
    const et_tensor *ids = tensor(o, total + 4), *y = result(o);
    if (!w || !ends || !ids || y->n_dim != 2 || ends->n_dim != 1 ||
        ends->dim[0] < 2 || !(et_elements(w) > 0) || !(et_elements(y) > 0))
        return SC_NONE;
    uint64_t tables = ends->dim[0] - 1, width = y->dim[1] / tables;
    uint64_t n = (uint64_t)et_elements(ids) / (y->dim[0] * tables);
    if (width == 0 || width * tables != y->dim[1]) return SC_NONE;
    uint64_t rows = (uint64_t)et_elements(w) / width;
    if (n == 0) n = 1;
    if (rows == 0 || n > UINT32_MAX) return SC_NONE;
    const sc_tensor_dim in[] = {{"batch", y->dim[0], true},
                                {"table", tables, false},
                                {"lookups", n, false}};
    const build_dim out[] = {{"batch", y->dim[0], 0}, {"c", y->dim[1], 1}};
    const char *name = sc_sprintf(g->a, "%s.indices", o->path);
    const char *joined = sc_sprintf(g->a, "%s.joined", o->path);
    if (!name || !joined) g->b.no_memory = true;
    if (g->b.no_memory) return SC_NONE;
    net_value v = build_input(&g->b, name, n > 1 ? 3 : 2, in, ids->bytes);
    v = build_embed(&g->b, o->path, v, rows, width, (uint32_t)n);
    if (v == SC_NONE) return v;
    sc_net_op *op = &g->b.g.op[g->b.g.n_ops - 1];
    op->sparse = first > 0; /* the backward pass of dense_... has a gradient */
    leaf_of(o, w)->weight = op->weight[0].tensor;
    return build_view(&g->b, joined, v, out, 2, false);
}

/* q, k, v of [batch, heads, positions, width]. */
static net_value add_attention(et_op *o)
{
    const et_tensor *q = tensor(o, 0), *k = tensor(o, 1), *v = tensor(o, 2);
    if (!q || !k || !v || q->n_dim != 4 || k->n_dim != 4 || v->n_dim != 4)
        return SC_NONE;
    double rows = (double)q->dim[0] * (double)q->dim[1] * (double)q->dim[2];
    double flops = 2.0 * rows * (double)k->dim[2] *
                   ((double)q->dim[3] + (double)v->dim[3]);
    keep(o, q, k);
    o->in[o->n_in++] = *v;
    net_value y = et_shaped(o, SC_NET_ATTENTION, result(o), flops);
    if (y == SC_NONE) return y;
    sc_net_op *op = &o->g->b.g.op[o->g->b.g.n_ops - 1];
    op->heads = (uint32_t)q->dim[1];
    op->kv_heads = (uint32_t)k->dim[1];
    op->qk_dim = (uint32_t)q->dim[3];
    op->v_dim = (uint32_t)v->dim[3];
    return y;
}

/* ---- operators that keep the number of elements */

static net_value first_value(et_op *o)
{
    const et_tensor *x = tensor(o, 0);
    if (!x || x->n_dim == 0 || x->n_dim > SC_TENSOR_DIMS) return SC_NONE;
    if (!et_same_shape(x, result(o))) return SC_NONE;
    return et_use(o->g, x);
}

static net_value add_batch_norm(et_op *o)
{
    net_value x = first_value(o);
    if (x == SC_NONE || build_tensor(&o->g->b, x)->n_dim < 2) return SC_NONE;
    return build_batch_norm(&o->g->b, o->path, x);
}

static net_value add_layer_norm(et_op *o)
{
    net_value x = first_value(o);
    bool bias = o->n_in > 2;
    if (x == SC_NONE || build_tensor(&o->g->b, x)->n_dim < 2) return SC_NONE;
    return build_layer_norm(&o->g->b, o->path, x, bias);
}

static net_value add_group_norm(et_op *o)
{
    net_value x = first_value(o);
    const sc_tensor *t = build_tensor(&o->g->b, x);
    double groups = number(o, 1);
    if (!t || t->n_dim < 2) return SC_NONE;
    if (!(groups >= 1 && groups <= (double)t->dim[1].extent)) groups = 0;
    return build_group_norm(&o->g->b, o->path, x, (uint32_t)groups);
}

static net_value add_act(et_op *o)
{
    net_value x = first_value(o);
    return x == SC_NONE ? x : build_act(&o->g->b, o->path, x, o->what);
}

static net_value add_softmax(et_op *o)
{
    net_value x = first_value(o);
    if (x == SC_NONE || build_tensor(&o->g->b, x)->n_dim < 2) return SC_NONE;
    return build_softmax(&o->g->b, o->path, x);
}

static net_value add_dropout(et_op *o)
{
    net_value x = first_value(o);
    return x == SC_NONE ? x : build_dropout(&o->g->b, o->path, x);
}

/* ---- by the shape of the result */

static net_value add_terms(et_op *o)
{
    return et_shaped(o, SC_NET_ELEMENTWISE, result(o), 0);
}

static net_value add_pool(et_op *o)
{
    return et_shaped(o, SC_NET_POOL, result(o), 0);
}

static net_value add_upsample(et_op *o)
{
    return et_shaped(o, SC_NET_UPSAMPLE, result(o), 0);
}

static net_value add_concat(et_op *o)
{
    return et_shaped(o, SC_NET_CONCAT, result(o), 0);
}

static net_value add_loss(et_op *o)
{
    return et_shaped(o, SC_NET_LOSS, result(o), 0);
}

/* A move to its own layout changes nothing. */
static net_value moved(et_op *o, bool copy)
{
    const et_tensor *x = tensor(o, 0), *y = result(o);
    if (!x) return SC_NONE;
    net_value v = et_entry(o->g, x)->value;
    if (v != SC_NONE && et_same_shape(x, y) && !copy) return v;
    keep(o, x, NULL);
    v = et_shaped(o, SC_NET_VIEW, y, 0);
    if (v != SC_NONE) o->g->b.g.op[o->g->b.g.n_ops - 1].copy = copy;
    return v;
}

static net_value add_view(et_op *o)
{
    return moved(o, false);
}

static net_value add_copy(et_op *o)
{
    const et_tensor *x = tensor(o, 0);
    bool same = x && x->storage == result(o)->storage;
    return moved(o, !same);
}

/* Each result is a separate slice. */
static net_value add_slice(et_op *o)
{
    const et_tensor *x = tensor(o, 0);
    net_value first = SC_NONE;
    const char *path = o->path;
    if (!x) return SC_NONE;
    keep(o, x, NULL);
    for (uint32_t i = 0; i < o->n->n_out && !o->g->b.no_memory; i++) {
        o->path = i ? sc_sprintf(o->g->a, "%s.%u", path, i) : path;
        if (!o->path) {
            o->g->b.no_memory = true;
            return SC_NONE;
        }
        net_value v = et_shaped(o, SC_NET_SLICE, &o->n->out[i], 0);
        if (i == 0) first = v;
        et_entry(o->g, &o->n->out[i])->value = v;
    }
    return first;
}

/* ---- names */

typedef net_value (*add_fn)(et_op *o);

/* Names match without a '_' at either end and before an overload's name. */
static const struct {
    const char *name;
    add_fn add;
} table[] = {
    {"linear", add_linear},
    {"addmm", add_addmm},
    {"baddbmm", add_addmm},
    {"mm", add_mm},
    {"bmm", add_mm},
    {"matmul", add_mm},
    {"conv1d", add_conv},
    {"conv2d", add_conv},
    {"conv3d", add_conv},
    {"convolution", add_conv},
    {"cudnn_convolution", add_conv},
    {"miopen_convolution", add_conv},
    {"conv_transpose1d", add_conv},
    {"conv_transpose2d", add_conv},
    {"conv_transpose3d", add_conv},
    {"embedding", add_embedding},
    {"embedding_bag", add_embedding},
    {"dense_embedding_codegen_lookup_function", add_tables},
    {"split_embedding_codegen_lookup_sgd_function", add_tables},
    {"split_embedding_codegen_lookup_adam_function", add_tables},
    {"split_embedding_codegen_lookup_adagrad_function", add_tables},
    {"split_embedding_codegen_lookup_rowwise_adagrad_function", add_tables},
    {"scaled_dot_product_attention", add_attention},
    {"scaled_dot_product_flash_attention", add_attention},
    {"scaled_dot_product_efficient_attention", add_attention},
    {"scaled_dot_product_cudnn_attention", add_attention},
    {"batch_norm", add_batch_norm},
    {"native_batch_norm", add_batch_norm},
    {"cudnn_batch_norm", add_batch_norm},
    {"batch_norm_impl_index", add_batch_norm},
    {"layer_norm", add_layer_norm},
    {"native_layer_norm", add_layer_norm},
    {"rms_norm", add_layer_norm},
    {"group_norm", add_group_norm},
    {"native_group_norm", add_group_norm},
    {"instance_norm", add_group_norm},
    {"relu", add_act},
    {"relu6", add_act},
    {"gelu", add_act},
    {"silu", add_act},
    {"mish", add_act},
    {"elu", add_act},
    {"tanh", add_act},
    {"sigmoid", add_act},
    {"leaky_relu", add_act},
    {"hardtanh", add_act},
    {"hardswish", add_act},
    {"hardsigmoid", add_act},
    {"softplus", add_act},
    {"threshold", add_act},
    {"clamp", add_act},
    {"clamp_min", add_act},
    {"softmax", add_softmax},
    {"log_softmax", add_softmax},
    {"dropout", add_dropout},
    {"native_dropout", add_dropout},
    {"feature_dropout", add_dropout},
    {"add", add_terms},
    {"sub", add_terms},
    {"rsub", add_terms},
    {"mul", add_terms},
    {"div", add_terms},
    {"pow", add_terms},
    {"exp", add_terms},
    {"log", add_terms},
    {"sqrt", add_terms},
    {"rsqrt", add_terms},
    {"neg", add_terms},
    {"where", add_terms},
    {"masked_fill", add_terms},
    {"addcmul", add_terms},
    {"sum", add_terms},
    {"cos", add_terms},
    {"sin", add_terms},
    {"mean", add_pool},
    {"max_pool1d", add_pool},
    {"max_pool2d", add_pool},
    {"max_pool2d_with_indices", add_pool},
    {"max_pool3d", add_pool},
    {"avg_pool1d", add_pool},
    {"avg_pool2d", add_pool},
    {"avg_pool3d", add_pool},
    {"adaptive_avg_pool1d", add_pool},
    {"adaptive_avg_pool2d", add_pool},
    {"adaptive_avg_pool3d", add_pool},
    {"adaptive_max_pool2d", add_pool},
    {"upsample_nearest2d", add_upsample},
    {"upsample_bilinear2d", add_upsample},
    {"cat", add_concat},
    {"stack", add_concat},
    {"cross_entropy_loss", add_loss},
    {"nll_loss", add_loss},
    {"nll_loss_nd", add_loss},
    {"mse_loss", add_loss},
    {"l1_loss", add_loss},
    {"smooth_l1_loss", add_loss},
    {"binary_cross_entropy", add_loss},
    {"binary_cross_entropy_with_logits", add_loss},
    {"view", add_view},
    {"reshape", add_view},
    {"reshape_alias", add_view},
    {"unsafe_view", add_view},
    {"flatten", add_view},
    {"unflatten", add_view},
    {"squeeze", add_view},
    {"unsqueeze", add_view},
    {"t", add_view},
    {"transpose", add_view},
    {"permute", add_view},
    {"expand", add_view},
    {"expand_as", add_view},
    {"detach", add_view},
    {"alias", add_view},
    {"as_strided", add_view},
    {"contiguous", add_copy},
    {"clone", add_copy},
    {"to", add_copy},
    {"to_copy", add_copy},
    {"type_as", add_copy},
    {"slice", add_slice},
    {"select", add_slice},
    {"narrow", add_slice},
    {"split", add_slice},
    {"split_with_sizes", add_slice},
    {"chunk", add_slice},
    {"unbind", add_slice},
    {"index", add_slice},
    {"index_select", add_slice},
    {"ones_like", NULL}, /* constants with the shape of a value */
    {"zeros_like", NULL},
    {"full_like", NULL},
    {"empty_like", NULL},
    {"rand_like", NULL},
    {"randn_like", NULL},
};

net_value et_add(et_op *o, bool *known)
{
    const char *name = o->what + (o->what[0] == '_');
    size_t len = strcspn(name, ".");
    if (len > 1 && name[len - 1] == '_') len--;
    for (size_t i = 0; i < SC_COUNT(table); i++) {
        if (strlen(table[i].name) != len ||
            memcmp(table[i].name, name, len) != 0)
            continue;
        if (!table[i].add) return SC_NONE;
        net_value v = table[i].add(o);
        *known = v != SC_NONE || o->g->b.wrong != NULL;
        return v;
    }
    *known = false;
    return SC_NONE;
}
