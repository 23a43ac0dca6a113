/* SPDX-License-Identifier: Apache-2.0 */
/* et_kineto_results.c - the shapes of an operator's results, which profilers do not
 * record, from its arguments. Old profilers do not record numbers either: then
 * some extents stay open. */
#include "model/et_kineto.h"

#include <string.h>

/* ---- arguments ----------------------------------------------------------- */

static const et_tensor *tensor(const kineto_op *o, uint32_t i)
{
    const et_node *n = o->node;
    return i < n->n_in && n->in[i].kind == ET_TENSOR ? n->in[i].t : NULL;
}

static const kineto_list *list(const kineto_op *o, uint32_t i)
{
    static const kineto_list none = {.given = false};
    return i < o->node->n_in && o->list[i].given ? &o->list[i] : &none;
}

static int64_t number(const kineto_op *o, uint32_t i, int64_t otherwise)
{
    const kineto_list *l = list(o, i);
    return l->given && l->n == 1 ? l->v[0] : otherwise;
}

/* An axis that may count from the end; `n` if it is none. */
static unsigned axis(int64_t v, unsigned n)
{
    int64_t k = v < 0 ? v + n : v;
    return k >= 0 && k < n ? (unsigned)k : n;
}

/* ---- what results have --------------------------------------------------- */

/* The first result, like `x`. */
static et_tensor *like(kineto_op *o, const et_tensor *x)
{
    et_tensor *y = &o->node->out[0];
    uint8_t bytes = x->bytes;
    *y = *x;
    y->id = y->storage = 0;
    y->bytes = bytes;
    o->node->n_out = 1;
    return y;
}

/* The same elements in a shape that the arguments do not tell. */
static void unshaped(kineto_op *o, double elements)
{
    o->open = o->shapeless = true;
    o->elements = elements;
}

static void open_from(kineto_op *o, unsigned known)
{
    o->open = true;
    o->known = (uint8_t)known;
}

static void broadcast(et_tensor *y, const et_tensor *x)
{
    et_tensor out = x->n_dim > y->n_dim ? *x : *y;
    for (unsigned i = 1; i <= out.n_dim; i++) {
        uint64_t a = i <= x->n_dim ? x->dim[x->n_dim - i] : 1;
        uint64_t b = i <= y->n_dim ? y->dim[y->n_dim - i] : 1;
        out.dim[out.n_dim - i] = a == 1 ? b : a;
    }
    memcpy(y->dim, out.dim, sizeof y->dim);
    y->n_dim = out.n_dim;
}

/* ---- products ------------------------------------------------------------ */

static void linear(kineto_op *o, const et_tensor *x)
{
    const et_tensor *w = tensor(o, 1);
    et_tensor *y = like(o, x);
    if (w && w->n_dim == 2 && y->n_dim) y->dim[y->n_dim - 1] = w->dim[0];
}

static void product(kineto_op *o, const et_tensor *x, const et_tensor *w)
{
    et_tensor *y = like(o, x);
    if (!w || w->n_dim == 0 || x->n_dim == 0) return;
    if (w->n_dim == 1) {
        y->n_dim--;
        return;
    }
    et_tensor xs = *x, ws = *w;
    uint64_t rows = x->n_dim > 1 ? x->dim[x->n_dim - 2] : 0;
    xs.n_dim = x->n_dim > 2 ? (uint8_t)(x->n_dim - 2) : 0;
    ws.n_dim = (uint8_t)(w->n_dim - 2);
    broadcast(&xs, &ws);
    if (xs.n_dim + 2u > ET_DIMS) return;
    if (rows) xs.dim[xs.n_dim++] = rows;
    xs.dim[xs.n_dim++] = w->dim[w->n_dim - 1];
    memcpy(y->dim, xs.dim, sizeof y->dim);
    y->n_dim = xs.n_dim;
}

static void matmul(kineto_op *o, const et_tensor *x)
{
    product(o, x, tensor(o, 1));
}

static void addmm(kineto_op *o, const et_tensor *x)
{
    const et_tensor *first = tensor(o, 1);
    product(o, first ? first : x, tensor(o, 2));
}

static void attention(kineto_op *o, const et_tensor *x)
{
    const et_tensor *v = tensor(o, 2);
    et_tensor *y = like(o, x);
    if (v && v->n_dim && y->n_dim) y->dim[y->n_dim - 1] = v->dim[v->n_dim - 1];
}

static void embedding(kineto_op *o, const et_tensor *w)
{
    const et_tensor *ids = tensor(o, 1), *ends = tensor(o, 2);
    bool bag = strstr(o->what, "bag") != NULL;
    if (!ids || w->n_dim != 2) return (void)like(o, w);
    et_tensor *y = like(o, bag && ends && ids->n_dim == 1 ? ends : ids);
    y->bytes = w->bytes;
    if (bag && ids->n_dim > 1) y->n_dim = 1;
    if (y->n_dim < ET_DIMS) y->dim[y->n_dim++] = w->dim[1];
}

/* FBGEMM's tables, called with the begin of each one's part of the result and of
 * each bag's look-ups: samples after each other, for each table. */
static void tables(kineto_op *o, const et_tensor *first)
{
    uint32_t total = strncmp(o->what, "split", 5) == 0 ? 7 : 3;
    const et_tensor *parts = tensor(o, total - 1), *bags = tensor(o, total + 5);
    et_tensor *y = like(o, first);
    int64_t width = number(o, total, 0);
    if (!parts || !bags || parts->n_dim != 1 || bags->n_dim != 1 ||
        parts->dim[0] < 2 || bags->dim[0] < 2)
        return;
    y->n_dim = 2;
    y->dim[0] = (bags->dim[0] - 1) / (parts->dim[0] - 1);
    y->dim[1] = width > 0 ? (uint64_t)width & UINT32_MAX : 0;
    if (width <= 0) open_from(o, 1);
}

/* ---- windows ------------------------------------------------------------- */

typedef struct window {
    kineto_list kernel, stride, pad, dilation;
} window;

static int64_t per_axis(const kineto_list *l, unsigned i, int64_t otherwise)
{
    if (!l->given || l->n == 0) return otherwise;
    return l->v[l->n == 1 ? 0 : i < l->n ? i : l->n - 1u];
}

/* Places of a window along one axis; 0: it does not fit. */
static uint64_t places(uint64_t from, const window *w, unsigned i, bool ceil)
{
    int64_t kernel = per_axis(&w->kernel, i, 1);
    int64_t stride = per_axis(&w->stride, i, kernel);
    int64_t pad = per_axis(&w->pad, i, 0), dil = per_axis(&w->dilation, i, 1);
    if (kernel < 1 || stride < 1 || pad < 0 || dil < 1 || kernel > 1 << 24 ||
        stride > 1 << 24 || pad > 1 << 24 || dil > 1 << 24)
        return 0;
    int64_t free = (int64_t)from + 2 * pad - dil * (kernel - 1) - 1;
    if (free < 0) return 0;
    return (uint64_t)((free + (ceil ? stride - 1 : 0)) / stride) + 1;
}

/* The extents of a transposed convolution stay open. */
static void conv(kineto_op *o, const et_tensor *x)
{
    const et_tensor *w = tensor(o, 1);
    et_tensor *y = like(o, x);
    bool generic = strcmp(o->what, "convolution") == 0;
    bool back = strstr(o->what, "transpose") || (generic && number(o, 6, 0));
    window win = {
        .stride = *list(o, 3), .pad = *list(o, 4), .dilation = *list(o, 5)};
    if (!w || w->n_dim != x->n_dim || x->n_dim < 3) return;
    if (back) return open_from(o, 1);
    y->dim[1] = w->dim[0];
    if (!win.stride.given || !win.pad.given || !win.dilation.given)
        return open_from(o, 2);
    for (unsigned i = 2; i < x->n_dim; i++) {
        win.kernel = (kineto_list){true, 1, {(int64_t)w->dim[i]}};
        y->dim[i] = places(x->dim[i], &win, i - 2, false);
        if (y->dim[i] == 0) open_from(o, 2);
    }
}

/* Pools are called with kernel, stride and padding. */
static void pool(kineto_op *o, const et_tensor *x)
{
    et_tensor *y = like(o, x);
    unsigned axes = o->what[strlen(o->what) - 1] == 's' /* with_indices */
                        ? 2
                        : (unsigned)(o->what[strlen(o->what) - 2] - '0');
    bool max = strncmp(o->what, "max", 3) == 0;
    if (axes < 1 || axes > 3 || x->n_dim < axes) return;
    unsigned first = x->n_dim - axes;
    window w = {
        .kernel = *list(o, 1), .stride = *list(o, 2), .pad = *list(o, 3)};
    if (max) w.dilation = *list(o, 4);
    if (!w.kernel.given) return open_from(o, first);
    bool ceil = number(o, max ? 5 : 4, 0) != 0;
    for (unsigned i = 0; i < axes; i++)
        y->dim[first + i] = places(x->dim[first + i], &w, i, ceil);
}

/* The last dims are those of the list. */
static void resized(kineto_op *o, const et_tensor *x)
{
    et_tensor *y = like(o, x);
    const kineto_list *to = list(o, 1);
    if (!to->given || to->n > x->n_dim)
        return open_from(o, x->n_dim > 1 ? 2 : 0);
    for (unsigned i = 0; i < to->n; i++)
        y->dim[x->n_dim - to->n + i] = (uint64_t)to->v[i] & UINT32_MAX;
}

/* ---- views --------------------------------------------------------------- */

static void viewed(kineto_op *o, const et_tensor *x)
{
    const kineto_list *to = list(o, 1);
    et_tensor *y = like(o, x);
    double rest = et_elements(x);
    int free = -1;
    if (!to->given) return unshaped(o, rest);
    y->n_dim = to->n;
    for (unsigned i = 0; i < to->n; i++) {
        y->dim[i] = (uint64_t)to->v[i] & UINT32_MAX;
        if (to->v[i] < 0)
            free = (int)i;
        else if (to->v[i] > 0)
            rest /= (double)to->v[i];
    }
    if (free >= 0) y->dim[free] = (uint64_t)rest & UINT32_MAX;
}

/* -1 keeps an extent. */
static void expand(kineto_op *o, const et_tensor *x)
{
    const kineto_list *to = list(o, 1);
    et_tensor *y = like(o, x);
    if (!to->given || to->n < x->n_dim) return;
    unsigned more = to->n - x->n_dim;
    y->n_dim = to->n;
    for (unsigned i = 0; i < to->n; i++)
        y->dim[i] = to->v[i] >= 0 ? (uint64_t)to->v[i] & UINT32_MAX
                    : i >= more   ? x->dim[i - more]
                                  : 1;
}

static void repeat(kineto_op *o, const et_tensor *x)
{
    const kineto_list *by = list(o, 1);
    et_tensor *y = like(o, x);
    if (!by->given || by->n < x->n_dim) return;
    unsigned more = by->n - x->n_dim;
    y->n_dim = by->n;
    for (unsigned i = 0; i < by->n; i++) {
        uint64_t k = (uint64_t)by->v[i] & UINT32_MAX;
        y->dim[i] = (i < more ? 1 : x->dim[i - more]) * k & UINT32_MAX;
    }
}

static void expand_as(kineto_op *o, const et_tensor *x)
{
    const et_tensor *to = tensor(o, 1);
    uint8_t bytes = x->bytes;
    like(o, to ? to : x)->bytes = bytes;
}

static void transpose(kineto_op *o, const et_tensor *x)
{
    et_tensor *y = like(o, x);
    bool two = strcmp(o->what, "t") == 0;
    unsigned a = axis(number(o, 1, two ? 0 : 99), x->n_dim);
    unsigned b = axis(number(o, 2, two ? 1 : 99), x->n_dim);
    if (a < x->n_dim && b < x->n_dim) {
        y->dim[a] = x->dim[b];
        y->dim[b] = x->dim[a];
    } else if (!two) {
        unshaped(o, et_elements(x));
    }
}

static void permute(kineto_op *o, const et_tensor *x)
{
    const kineto_list *to = list(o, 1);
    et_tensor *y = like(o, x);
    if (!to->given || to->n != x->n_dim) return unshaped(o, et_elements(x));
    for (unsigned i = 0; i < to->n; i++) {
        unsigned k = axis(to->v[i], x->n_dim);
        if (k < x->n_dim) y->dim[i] = x->dim[k];
    }
}

static void flatten(kineto_op *o, const et_tensor *x)
{
    unsigned from = axis(number(o, 1, 99), x->n_dim);
    unsigned to = axis(number(o, 2, 99), x->n_dim);
    et_tensor *y = like(o, x);
    if (from > to || to >= x->n_dim) return unshaped(o, et_elements(x));
    double n = 1;
    for (unsigned i = from; i <= to; i++) n *= (double)x->dim[i];
    y->dim[from] = (uint64_t)n & UINT32_MAX;
    memmove(&y->dim[from + 1], &x->dim[to + 1],
            (x->n_dim - to - 1) * sizeof x->dim[0]);
    y->n_dim = (uint8_t)(x->n_dim - (to - from));
}

static void unsqueeze(kineto_op *o, const et_tensor *x)
{
    et_tensor *y = like(o, x);
    unsigned k = axis(number(o, 1, 99), x->n_dim + 1u);
    if (k > x->n_dim || x->n_dim == ET_DIMS) return unshaped(o, et_elements(x));
    memmove(&y->dim[k + 1], &x->dim[k], (x->n_dim - k) * sizeof x->dim[0]);
    y->dim[k] = 1;
    y->n_dim++;
}

static void drop(et_tensor *y, unsigned k)
{
    memmove(&y->dim[k], &y->dim[k + 1], (y->n_dim - k - 1) * sizeof y->dim[0]);
    y->n_dim--;
}

static void squeeze(kineto_op *o, const et_tensor *x)
{
    et_tensor *y = like(o, x);
    if (o->node->n_in > 1 && !list(o, 1)->given)
        return unshaped(o, et_elements(x));
    for (unsigned k = x->n_dim; k-- > 0;) {
        bool named = o->node->n_in == 1;
        for (unsigned i = 0; i < list(o, 1)->n; i++)
            named |= axis(list(o, 1)->v[i], x->n_dim) == k;
        if (named && y->dim[k] == 1) drop(y, k);
    }
}

/* ---- parts --------------------------------------------------------------- */

static void selected(kineto_op *o, const et_tensor *x)
{
    et_tensor *y = like(o, x);
    unsigned k = axis(number(o, 1, 99), x->n_dim);
    if (k < x->n_dim)
        drop(y, k);
    else if (x->n_dim)
        open_from(o, 0);
}

static int64_t within(int64_t v, int64_t extent)
{
    if (v < 0) v += extent;
    return v < 0 ? 0 : v > extent ? extent : v;
}

static void slice(kineto_op *o, const et_tensor *x)
{
    et_tensor *y = like(o, x);
    unsigned k = axis(number(o, 1, 99), x->n_dim);
    if (k >= x->n_dim) return open_from(o, 0);
    int64_t extent = (int64_t)x->dim[k], step = number(o, 4, 1);
    int64_t from = within(number(o, 2, 0), extent);
    int64_t to = within(number(o, 3, extent), extent);
    if (strcmp(o->what, "narrow") == 0) {
        to = within(from + number(o, 3, 0), extent);
        step = 1;
    }
    if (step < 1 || to < from) return;
    y->dim[k] = (uint64_t)((to - from + step - 1) / step);
}

/* The number of equal parts is bounded by the room for results. */
#define MAX_PARTS 64

static bool add_part(kineto_op *o, unsigned k, uint64_t extent)
{
    et_node *n = o->node;
    if (n->n_out == MAX_PARTS) return false;
    n->out[n->n_out] = n->out[0];
    n->out[n->n_out++].dim[k] = extent;
    return true;
}

static void split(kineto_op *o, const et_tensor *x)
{
    et_tensor *y = like(o, x);
    const kineto_list *by = list(o, 1);
    bool chunk = strcmp(o->what, "chunk") == 0;
    unsigned k = axis(number(o, 2, 0), x->n_dim);
    if (!by->given || by->n == 0 || k >= x->n_dim) return open_from(o, 0);
    uint64_t left = x->dim[k], n = (uint64_t)by->v[0];
    if (chunk && by->v[0] > 0) n = (left + n - 1) / n;
    for (unsigned i = 0; left > 0; i++) {
        if (by->n > 1 && i >= by->n) break;
        uint64_t part = by->n > 1 ? (uint64_t)by->v[i] : n;
        if (part == 0 || part > left) part = left;
        if (i == 0)
            y->dim[k] = part;
        else if (!add_part(o, k, part))
            break;
        left -= part;
    }
}

static void unbind(kineto_op *o, const et_tensor *x)
{
    unsigned k = axis(number(o, 1, 0), x->n_dim);
    uint64_t n = k < x->n_dim ? x->dim[k] : 1;
    et_tensor *y = like(o, x);
    if (k >= x->n_dim) return open_from(o, 0);
    drop(y, k);
    for (uint64_t i = 1; i < n && i < MAX_PARTS; i++)
        o->node->out[o->node->n_out++] = *y;
}

static void rows_of(kineto_op *o, const et_tensor *x)
{
    const et_tensor *ids = tensor(o, 2);
    unsigned k = axis(number(o, 1, 99), x->n_dim);
    et_tensor *y = like(o, x);
    if (!ids || k >= x->n_dim) return open_from(o, 0);
    y->dim[k] = (uint64_t)et_elements(ids);
}

static void joined(kineto_op *o, const et_tensor *x)
{
    const et_arg *all = &o->node->in[0];
    bool stack = strcmp(o->what, "stack") == 0;
    et_tensor *y = like(o, x);
    unsigned k = axis(number(o, 1, 99), x->n_dim + stack);
    if (stack) {
        if (k > x->n_dim || x->n_dim == ET_DIMS) return open_from(o, 0);
        memmove(&y->dim[k + 1], &x->dim[k], (x->n_dim - k) * sizeof *x->dim);
        y->dim[k] = all->n;
        y->n_dim++;
        return;
    }
    if (k >= x->n_dim) return open_from(o, 0);
    for (uint32_t i = 1; i < all->n; i++)
        if (all->t[i].n_dim == x->n_dim) y->dim[k] += all->t[i].dim[k];
    y->dim[k] &= UINT32_MAX;
}

/* ---- others -------------------------------------------------------------- */

static void terms(kineto_op *o, const et_tensor *x)
{
    et_tensor *y = like(o, x);
    for (uint32_t i = 1; i < o->node->n_in; i++)
        if (tensor(o, i)) broadcast(y, tensor(o, i));
}

static void same(kineto_op *o, const et_tensor *x)
{
    (void)like(o, x);
}

static void loss(kineto_op *o, const et_tensor *x)
{
    like(o, x)->n_dim = 0;
}

/* Over all dims, or those of a list; a truth value keeps them. */
static void reduced(kineto_op *o, const et_tensor *x)
{
    et_tensor *y = like(o, x);
    const kineto_list *over = list(o, 1);
    if (o->node->n_in < 3) {
        y->n_dim = 0;
        return;
    }
    if (!over->given) return open_from(o, 0);
    bool keep = number(o, 2, 0) != 0;
    for (unsigned k = x->n_dim; k-- > 0;) {
        bool named = over->n == 0;
        for (unsigned i = 0; i < over->n; i++)
            named |= axis(over->v[i], x->n_dim) == k;
        if (named && keep)
            y->dim[k] = 1;
        else if (named)
            drop(y, k);
    }
}

/* ---- names --------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*shape)(kineto_op *o, const et_tensor *first);
} table[] = {
    {"linear", linear},
    {"addmm", addmm},
    {"baddbmm", addmm},
    {"mm", matmul},
    {"bmm", matmul},
    {"matmul", matmul},
    {"conv1d", conv},
    {"conv2d", conv},
    {"conv3d", conv},
    {"convolution", conv},
    {"conv_transpose1d", conv},
    {"conv_transpose2d", conv},
    {"conv_transpose3d", conv},
    {"embedding", embedding},
    {"embedding_bag", embedding},
    {"dense_embedding_codegen_lookup_function", tables},
    {"split_embedding_codegen_lookup_sgd_function", tables},
    {"split_embedding_codegen_lookup_adam_function", tables},
    {"split_embedding_codegen_lookup_adagrad_function", tables},
    {"split_embedding_codegen_lookup_rowwise_adagrad_function", tables},
    {"scaled_dot_product_attention", attention},
    {"scaled_dot_product_flash_attention", attention},
    {"scaled_dot_product_efficient_attention", attention},
    {"scaled_dot_product_cudnn_attention", attention},
    {"add", terms},
    {"sub", terms},
    {"rsub", terms},
    {"mul", terms},
    {"div", terms},
    {"pow", terms},
    {"where", terms},
    {"masked_fill", terms},
    {"addcmul", terms},
    {"sum", reduced},
    {"mean", reduced},
    {"max_pool1d", pool},
    {"max_pool2d", pool},
    {"max_pool3d", pool},
    {"max_pool2d_with_indices", pool},
    {"avg_pool1d", pool},
    {"avg_pool2d", pool},
    {"avg_pool3d", pool},
    {"adaptive_avg_pool1d", resized},
    {"adaptive_avg_pool2d", resized},
    {"adaptive_avg_pool3d", resized},
    {"adaptive_max_pool2d", resized},
    {"upsample_nearest1d", resized},
    {"upsample_nearest2d", resized},
    {"upsample_bilinear2d", resized},
    {"cat", joined},
    {"stack", joined},
    {"cross_entropy_loss", loss},
    {"nll_loss", loss},
    {"nll_loss_nd", loss},
    {"mse_loss", loss},
    {"l1_loss", loss},
    {"smooth_l1_loss", loss},
    {"binary_cross_entropy", loss},
    {"binary_cross_entropy_with_logits", loss},
    {"view", viewed},
    {"reshape", viewed},
    {"reshape_alias", viewed},
    {"unsafe_view", viewed},
    {"flatten", flatten},
    {"squeeze", squeeze},
    {"unsqueeze", unsqueeze},
    {"t", transpose},
    {"transpose", transpose},
    {"permute", permute},
    {"expand", expand},
    {"expand_as", expand_as},
    {"repeat", repeat},
    {"slice", slice},
    {"narrow", slice},
    {"select", selected},
    {"split", split},
    {"split_with_sizes", split},
    {"chunk", split},
    {"unbind", unbind},
    {"index_select", rows_of},
};

bool kineto_results(kineto_op *o, sc_arena *a)
{
    const et_tensor *first = NULL;
    et_node *n = o->node;
    for (uint32_t i = 0; i < n->n_in && !first; i++)
        if (n->in[i].n) first = n->in[i].t;
    if (!first) return true;
    void (*shape)(kineto_op *, const et_tensor *) = same;
    for (size_t i = 0; i < SC_COUNT(table); i++)
        if (strcmp(table[i].name, o->what) == 0) shape = table[i].shape;
    bool parts = shape == split || shape == unbind;
    n->out = SC_NEW_N(a, et_tensor, parts ? MAX_PARTS : 1);
    if (n->out) shape(o, first);
    return n->out != NULL;
}
