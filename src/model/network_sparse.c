/* SPDX-License-Identifier: Apache-2.0 */
/* network_sparse.c - routed experts and Mamba-2 mixers. */
#include "model/network.h"

#include <string.h>

/* ---- routed tokens */

static gb_value route(network *n, gb_value v)
{
    const sc_transformer *t = n->t;
    sc_gop *g = network_made(n, v);
    if (!g) return v;
    g->experts = (uint32_t)t->experts;
    g->topk = (uint32_t)t->topk;
    for (unsigned i = 0; i < g->n_iter; i++)
        if (strcmp(g->iter[i].name, "expert") == 0)
            g->iter[i].units = g->experts;
    if (g->type != SC_G_DISPATCH) return v;
    g->route_groups = (uint32_t)t->route_groups;
    g->route_topk = (uint32_t)t->route_topk;
    return v;
}

static gb_value expert(network *n, const char *name, gb_value x,
                       uint32_t in_units, network_dim out)
{
    const gb_product p = {.out_name = out.name,
                          .out = out.extent,
                          .in_units = in_units,
                          .out_units = out.units,
                          .weight = SC_NONE,
                          .bias = n->t->bias};
    gb_value v =
        route(n, gb_experts(&n->b, name, x, (uint64_t)n->t->experts, &p));
    sc_gop *op = network_made(n, v);
    if (op) op->keep_bf16 = gb_named(&n->b, n->m->wide, name);
    return v;
}

static network_dim inner_of(const network *n, int64_t ffn)
{
    return network_width("ffn", model_gated(n->t) ? 2 * ffn : ffn, ffn);
}

static gb_value routed(network *n, gb_value x, gb_value router)
{
    const sc_transformer *t = n->t;
    int64_t width = t->latent ? t->latent : t->hidden;
    gb_value v =
        route(n, gb_dispatch(&n->b, "dispatch", x, router, (uint64_t)t->topk));
    v = expert(n, "experts_fc1", v, 0, inner_of(n, t->moe_ffn));
    v = route(n, network_act(n, "experts_act", v));
    v = expert(n, "experts_fc2", v, 0, network_width("hidden", width, width));
    return route(n, gb_combine(&n->b, "combine", v, router));
}

static gb_value shared(network *n, gb_value x, gb_value other)
{
    const sc_transformer *t = n->t;
    network_product fc1 = {.out = inner_of(n, t->shared_ffn), .bias = t->bias};
    network_product fc2 = {.out = network_hidden(n), .bias = t->bias};
    gb_value v = network_linear(n, "shared_fc1", x, fc1);
    v = network_act(n, "shared_act", v);
    v = network_linear(n, "shared_fc2", v, fc2);
    return network_sum(n, "shared_add", v, other);
}

gb_value network_experts(network *n, gb_value x)
{
    const sc_transformer *t = n->t;
    network_product scores = {.out =
                                  network_width("rank", t->experts, t->experts),
                              .bias = t->router_bias,
                              .wide = true};
    network_product down = {.out = network_width("rank", t->latent, t->latent)};
    network_product up = {.out = network_hidden(n)};
    gb_value router = network_linear(n, "router", x, scores), in = x;
    if (t->latent) in = network_linear(n, "moe_down", x, down);
    gb_value v = routed(n, in, router);
    if (t->latent) v = network_linear(n, "moe_up", v, up);
    return t->shared_ffn ? shared(n, x, v) : v;
}

/* ---- Mamba */

static const uint8_t same[] = {0, 1, 2};

static gb_value conv(network *n, gb_value x, network_dim dim)
{
    static const uint8_t at[] = {2, SC_G_NO_ITER};
    sc_gop *g = gb_open(&n->b, "conv", SC_G_CONV1D, 1, &x);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&n->b, x);
    t.dim[2].extent = dim.extent;
    gb_iters_of(g, &t);
    g->iter[2].units = dim.units;
    const sc_gdim w[] = {{"state", dim.extent, false},
                         {"k", (uint64_t)n->t->ssm_conv, false}};
    gb_port(&g->in[0], same, 3);
    (void)gb_weight(&n->b, g, "weight", 2, w, at);
    (void)gb_weight(&n->b, g, "bias", 1, w, at);
    return gb_close(&n->b, g, 3, t.dim, same);
}

/* Reads what the convolution made, and beside it gates and step lengths. */
static gb_value scan(network *n, gb_value x, gb_value gates, network_dim dim)
{
    static const uint8_t at = 2;
    const gb_value in[] = {x, gates};
    uint64_t state = (uint64_t)n->t->ssm_state;
    sc_gop *g = gb_open(&n->b, "scan", SC_G_SCAN, 2, in);
    if (!g) return SC_NONE;
    sc_gtensor t = *gb_tensor(&n->b, x);
    t.dim[2].extent = dim.extent;
    gb_iters_of(g, &t);
    g->iter[1].kind = SC_I_OPAQUE;
    g->iter[2].units = dim.units;
    (void)gb_iter(g, "rank", SC_I_OPAQUE, state);
    gb_port(&g->in[0], same, 3);
    gb_port(&g->in[1], same, 3);
    /* Decay, skip and bias of the step of each head. */
    const sc_gdim w = {"state", 3 * (uint64_t)n->t->ssm_heads, false};
    (void)gb_weight(&n->b, g, "weight", 1, &w, &at);
    g->flops = 7.0 * (double)n->seq * (double)dim.extent * (double)state;
    return gb_close(&n->b, g, 3, t.dim, same);
}

gb_value network_mamba(network *n, gb_value x)
{
    const sc_transformer *t = n->t;
    int64_t heads = t->ssm_heads, groups = t->ssm_groups;
    int64_t d = heads * t->ssm_head_dim;
    int64_t xbc = d + 2 * groups * t->ssm_state; /* x, B and C */
    network_dim inner = network_width("state", d, groups);
    /* gate z beside them, and a step length per head */
    network_product in = {.out =
                              network_width("state", xbc + d + heads, groups),
                          .bias = t->bias};
    network_product out = {
        .out = network_hidden(n), .in_units = inner.units, .bias = t->bias};

    gb_value v = network_norm(n, "norm1", x);
    gb_value all = network_linear(n, "in_proj", v, in);
    v = conv(n, all, network_width("state", xbc, groups));
    v = scan(n, v, all, inner);
    v = network_norm_each(n, "ssm_norm", v, inner, inner.extent);
    v = network_linear(n, "out_proj", v, out);
    return network_sum(n, "add1", v, x);
}
