/* SPDX-License-Identifier: Apache-2.0 */
/* net_window.c - builds operators with a sliding window: convolutions, pools,
 * upsampling. */
#include "model/net_build.h"

#include <string.h>

/* Names of the 1 to 3 position dims. */
static const char *const at_names[] = {"od", "oh", "ow"};
static const char *const kernel_names[] = {"kd", "kh", "kw"};

/* The positions of the result of a window. */
typedef struct shape {
    unsigned n; /* position dims */
    sc_tensor_dim dim[SC_TENSOR_DIMS];
    uint64_t kernel[3], points, taps; /* products of extents */
} shape;

/* Positions of the input that a part of the result needs beyond its own. */
static uint32_t halo(uint64_t k, const build_window *w, bool transposed)
{
    uint64_t span = (k - 1) * w->dilation + 1;
    if (span <= w->stride) return 0;
    uint64_t more = span - w->stride;
    if (transposed) more = (more + w->stride - 1) / w->stride;
    return (uint32_t)more;
}

/* Adds iteration dims for positions. A part of such a dim also reads positions
 * of its neighbours. */
static uint8_t position(sc_net_op *op, const shape *s, unsigned i,
                        uint32_t beyond)
{
    uint8_t at =
        build_iter(op, at_names[3 - s->n + i], SC_I_FREE, s->dim[2 + i].extent);
    op->iter[at].halo = beyond;
    return at;
}

static build_window usual(build_window w)
{
    if (!w.kw) w.kw = w.k;
    if (!w.stride) w.stride = 1;
    if (!w.dilation) w.dilation = 1;
    if (!w.groups) w.groups = 1;
    return w;
}

static uint64_t slid(uint64_t in, uint64_t k, const build_window *w)
{
    uint64_t span = (k - 1) * w->dilation + 1;
    uint64_t pad = w->same ? span / 2 : w->pad;
    uint64_t room = in + 2 * pad;
    if (room < span) return 0;
    uint64_t out = (room - span + (w->ceil ? w->stride - 1 : 0)) / w->stride;
    /* the last window has to start in the input or the padding before it */
    if (w->ceil && out * w->stride >= in + pad) out--;
    return out + 1;
}

static bool window_shape(net_builder *b, const char *name, net_value x,
                         const build_window *w, bool transposed, shape *s)
{
    const sc_tensor *t = build_tensor(b, x);
    if (!t) return false;
    *s = (shape){.points = 1, .taps = 1};
    bool fits = t->n_dim >= 3 && t->n_dim <= 5 && t->dim[0].batch;
    if (fits) s->n = t->n_dim - 2U;
    memcpy(s->dim, t->dim, sizeof s->dim);
    for (unsigned i = 0; i < s->n && fits; i++) {
        uint64_t in = t->dim[2 + i].extent, k = i + 1 == s->n ? w->kw : w->k;
        uint64_t out = transposed
                           ? (in - 1) * w->stride + k - 2 * (uint64_t)w->pad
                           : slid(in, k, w);
        fits = out > 0 && out < UINT32_MAX;
        s->dim[2 + i].extent = out;
        s->kernel[i] = k;
        s->points *= transposed ? in : out;
        s->taps *= k;
    }
    if (!fits) (void)build_wrong(b, name, "the window does not fit its input");
    return fits;
}

static const char *describe(net_builder *b, const shape *s,
                            const build_window *w)
{
    sc_text t;
    sc_text_init(&t);
    for (unsigned i = 0; i < s->n; i++)
        sc_text_add(&t, "%s%u", i ? "x" : "", (unsigned)s->kernel[i]);
    if (w->stride > 1) sc_text_add(&t, ", stride %u", w->stride);
    if (w->dilation > 1) sc_text_add(&t, ", dilation %u", w->dilation);
    if (w->groups > 1) sc_text_add(&t, ", %u groups", w->groups);
    const char *text = t.failed ? NULL : sc_strdup(b->a, t.buf);
    if (!text) b->no_memory = true;
    sc_text_free(&t);
    return text;
}

static void weights(net_builder *b, sc_net_op *op, const build_window *w,
                    unsigned n, const sc_tensor_dim *dim, const uint8_t *at)
{
    if (!w->shared_with) {
        (void)build_weight(b, op, "weight", n, dim, at);
        if (w->bias) (void)build_weight(b, op, "bias", 1, dim, at);
        return;
    }
    const sc_net_op *from = &b->g.op[build_tensor(b, w->shared_with)->op];
    for (unsigned i = 0; i < from->n_weight; i++)
        build_weight_of(op, from->weight[i].tensor, i ? 1 : n, at);
}

/* Iteration dims are batch, (group), out, in, positions, kernel.  If there are
 * several groups, the group dim indexes the channels of the ports. */
static net_value convolve(net_builder *b, const char *name, net_value x,
                          uint32_t out, build_window w, bool transposed,
                          shape s)
{
    uint64_t in = s.dim[1].extent;
    if (in % w.groups || out % w.groups || out == 0)
        return build_wrong(b, name, "groups do not divide the channels");
    sc_net_op *op = build_open(
        b, name, transposed ? SC_NET_CONV_TRANSPOSED : SC_NET_CONV, 1, &x);
    if (!op) return SC_NONE;
    bool some = w.groups > 1;
    sc_iter_kind split = some ? SC_I_OPAQUE : SC_I_FREE;
    uint8_t batch = build_iter(op, "batch", SC_I_BATCH, s.dim[0].extent),
            group = 0;
    if (some) group = build_iter(op, "group", SC_I_FREE, w.groups);
    uint8_t to = build_iter(op, "out", split, out / w.groups);
    uint8_t from =
        build_iter(op, "in", some ? SC_I_OPAQUE : SC_I_REDUCE, in / w.groups);
    uint8_t xs[SC_TENSOR_DIMS] = {batch, some ? group : from};
    uint8_t ys[SC_TENSOR_DIMS] = {batch, some ? group : to};
    uint8_t ws[SC_TENSOR_DIMS] = {ys[1], from};
    for (unsigned i = 0; i < s.n; i++)
        xs[2 + i] = ys[2 + i] =
            position(op, &s, i, halo(s.kernel[i], &w, transposed));
    sc_tensor_dim weight[5] = {{"out", out, false},
                               {"in", in / w.groups, false}};
    for (unsigned i = 0; i < s.n; i++) {
        const char *k = kernel_names[3 - s.n + i];
        weight[2 + i] = (sc_tensor_dim){k, s.kernel[i], false};
        ws[2 + i] = build_iter(op, k, SC_I_OPAQUE, s.kernel[i]);
    }
    build_port(&op->in[0], xs, 2 + s.n);
    weights(b, op, &w, 2 + s.n, weight, ws);
    op->detail = describe(b, &s, &w);
    op->flops = 2.0 * (double)out * (double)weight[1].extent * (double)s.taps *
                (double)s.points * (double)s.dim[0].extent;
    s.dim[1].extent = out;
    return build_close(b, op, 2 + s.n, s.dim, ys);
}

static net_value slide(net_builder *b, const char *name, net_value x,
                       uint32_t out, build_window w, bool transposed)
{
    shape s;
    w = usual(w);
    if (!window_shape(b, name, x, &w, transposed, &s)) return SC_NONE;
    return convolve(b, name, x, out, w, transposed, s);
}

net_value build_conv(net_builder *b, const char *name, net_value x,
                     uint32_t out, build_window w)
{
    return slide(b, name, x, out, w, false);
}

net_value build_conv_transposed(net_builder *b, const char *name, net_value x,
                                uint32_t out, build_window w)
{
    return slide(b, name, x, out, w, true);
}

net_value build_conv_to(net_builder *b, const char *name, net_value x,
                        const build_known *k, build_window w, bool transposed)
{
    const sc_tensor *t = build_tensor(b, x);
    shape s = {.points = 1, .taps = 1};
    if (!t) return SC_NONE;
    if (t->n_dim < 3 || t->n_dim > 5 || !t->dim[0].batch)
        return build_wrong(b, name, "the window does not fit its input");
    s.n = t->n_dim - 2U;
    memcpy(s.dim, t->dim, sizeof s.dim);
    for (unsigned i = 0; i < s.n; i++) {
        s.points *= transposed ? t->dim[2 + i].extent : k->to[i];
        s.taps *= k->kernel[i];
        s.kernel[i] = k->kernel[i];
        s.dim[2 + i].extent = k->to[i];
    }
    return convolve(b, name, x, k->out, usual(w), transposed, s);
}

/* Channels are independent; positions need the neighbours in their window.
 * NULL: any window. */
static net_value per_channel(net_builder *b, const char *name, sc_net_type type,
                             net_value x, const shape *s, const build_window *w,
                             const char *detail)
{
    static const uint8_t same[SC_TENSOR_DIMS] = {0, 1, 2, 3, 4, 5};
    sc_net_op *op = build_open(b, name, type, 1, &x);
    if (!op) return SC_NONE;
    (void)build_iter(op, "batch", SC_I_BATCH, s->dim[0].extent);
    (void)build_iter(op, s->dim[1].name, SC_I_FREE, s->dim[1].extent);
    for (unsigned i = 0; i < s->n; i++) {
        uint8_t at = position(op, s, i, w ? halo(s->kernel[i], w, false) : 0);
        if (!w) op->iter[at].kind = SC_I_OPAQUE;
    }
    op->detail = detail;
    build_port(&op->in[0], same, 2 + s->n);
    return build_close(b, op, 2 + s->n, s->dim, same);
}

net_value build_pool(net_builder *b, const char *name, net_value x,
                     build_window w)
{
    shape s;
    w = usual(w);
    if (!window_shape(b, name, x, &w, false, &s)) return SC_NONE;
    return per_channel(b, name, SC_NET_POOL, x, &s, &w, describe(b, &s, &w));
}

net_value build_pool_to(net_builder *b, const char *name, net_value x,
                        uint64_t side)
{
    shape s;
    build_window w = usual((build_window){.k = 1});
    if (!window_shape(b, name, x, &w, false, &s)) return SC_NONE;
    for (unsigned i = 0; i < s.n; i++) s.dim[2 + i].extent = side;
    return per_channel(b, name, SC_NET_POOL, x, &s, NULL, "adaptive");
}

net_value build_upsample(net_builder *b, const char *name, net_value x,
                         uint32_t factor)
{
    shape s;
    build_window w = usual((build_window){.k = 1});
    if (!window_shape(b, name, x, &w, false, &s)) return SC_NONE;
    for (unsigned i = 0; i < s.n; i++) s.dim[2 + i].extent *= factor;
    return per_channel(b, name, SC_NET_UPSAMPLE, x, &s, &w, "nearest");
}
