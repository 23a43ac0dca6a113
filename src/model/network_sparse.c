/* SPDX-License-Identifier: Apache-2.0 */
/* network_sparse.c - builds routed experts and Mamba mixers. */
#include "model/network.h"

#include <string.h>

/* ---- routed tokens */

static net_value route(network *n, net_value v)
{
    const sc_transformer *t = n->t;
    sc_net_op *g = network_made(n, v);
    if (!g) return v;
    g->experts = (uint32_t)t->experts;
    g->topk = (uint32_t)t->topk;
    for (unsigned i = 0; i < g->n_iter; i++)
        if (strcmp(g->iter[i].name, "expert") == 0)
            g->iter[i].units = g->experts;
    if (g->type != SC_NET_DISPATCH) return v;
    g->route_groups = (uint32_t)t->route_groups;
    g->route_topk = (uint32_t)t->route_topk;
    return v;
}

static net_value expert(network *n, const char *name, net_value x,
                        network_dim out)
{
    const build_product p = {.out_name = out.name,
                             .out = out.extent,
                             .out_units = out.units,
                             .weight = SC_NONE,
                             .bias = n->t->bias};
    net_value v =
        route(n, build_experts(&n->b, name, x, (uint64_t)n->t->experts, &p));
    return build_named(&n->b, n->m->keep_bf16, name) ? network_keep_bf16(n, v)
                                                     : v;
}

static net_value routed(network *n, net_value x, net_value router)
{
    const sc_transformer *t = n->t;
    int64_t width = t->latent ? t->latent : t->hidden;
    net_value v = route(
        n, build_dispatch(&n->b, "dispatch", x, router, (uint64_t)t->topk));
    v = expert(n, "experts_fc1", v, network_ffn(n, t->moe_ffn));
    v = route(n, network_act(n, "experts_act", v));
    v = expert(n, "experts_fc2", v, network_width("hidden", width, width));
    return route(n, build_combine(&n->b, "combine", v, router));
}

static net_value shared(network *n, net_value x, net_value other)
{
    const sc_transformer *t = n->t;
    x = network_linear(n, "shared_fc1", x, network_ffn(n, t->shared_ffn),
                       t->bias);
    x = network_act(n, "shared_act", x);
    x = network_linear(n, "shared_fc2", x, network_hidden(n), t->bias);
    return network_sum(n, "shared_add", x, other);
}

net_value network_experts(network *n, net_value x)
{
    const sc_transformer *t = n->t;
    net_value v = x,
              router = network_linear(n, "router", x, network_rank(t->experts),
                                      t->router_bias);
    (void)network_keep_bf16(n, router);
    if (t->latent)
        v = network_linear(n, "moe_down", x, network_rank(t->latent), false);
    v = routed(n, v, router);
    if (t->latent) v = network_linear(n, "moe_up", v, network_hidden(n), false);
    return t->shared_ffn ? shared(n, x, v) : v;
}

/* ---- Mamba */

static net_value conv(network *n, net_value x, network_dim dim, bool bias)
{
    static const uint8_t at[] = {2, SC_NO_ITER};
    const sc_tensor_dim w[] = {{"state", dim.extent, false},
                               {"k", (uint64_t)n->t->ssm_conv, false}};
    sc_tensor t;
    sc_net_op *g = network_open(n, "conv", SC_NET_CONV1D, 1, &x, dim, &t);
    if (!g) return SC_NONE;
    t.dim[2].extent = dim.extent;
    (void)build_weight(&n->b, g, "weight", 2, w, at);
    if (bias) (void)build_weight(&n->b, g, "bias", 1, w, at);
    return network_close(n, g, &t);
}

/* Reads the convolution's result, gates and step lengths. */
static net_value scan(network *n, net_value x, net_value gates, network_dim dim,
                      bool delta)
{
    static const uint8_t at = 2;
    const net_value in[] = {x, gates};
    uint64_t state = (uint64_t)n->t->ssm_state;
    /* decay and bias of each head's time step; Mamba-2 also has a skip */
    const sc_tensor_dim w = {
        "state", (delta ? 2 : 3) * (uint64_t)n->t->ssm_heads, false};
    sc_tensor t;
    sc_net_op *g = network_open(n, "scan", SC_NET_SCAN, 2, in, dim, &t);
    if (!g) return SC_NONE;
    t.dim[2].extent = dim.extent;
    g->iter[1].kind = SC_I_OPAQUE;
    (void)build_iter(g, "rank", SC_I_OPAQUE, state);
    (void)build_weight(&n->b, g, "weight", 1, &w, &at);
    g->flops = 7.0 * (double)n->seq * (double)dim.extent * (double)state;
    return network_close(n, g, &t);
}

/* Mamba-1's scan reads a step for each channel, B, C and the gates. */
static net_value scan_channels(network *n, net_value x, net_value step,
                               net_value bc, net_value gates, network_dim dim)
{
    static const uint8_t at[] = {2, SC_NO_ITER}, rank[] = {0, 1, SC_NO_ITER};
    const net_value in[] = {x, step, bc, gates};
    uint64_t state = (uint64_t)n->t->ssm_state;
    /* decay of each element of the state, and a skip */
    const sc_tensor_dim w[] = {{"state", dim.extent, false},
                               {"width", state + 1, false}};
    sc_tensor t;
    sc_net_op *g = network_open(n, "scan", SC_NET_SCAN, 4, in, dim, &t);
    if (!g) return SC_NONE;
    build_port(&g->in[2], rank, 3);
    g->iter[1].kind = SC_I_OPAQUE;
    (void)build_iter(g, "rank", SC_I_OPAQUE, state);
    (void)build_weight(&n->b, g, "weight", 2, w, at);
    g->flops = 7.0 * (double)n->seq * (double)dim.extent * (double)state;
    return network_close(n, g, &t);
}

/* Gu and Dao, "Mamba" (2023), figure 3 and algorithm 2. */
static net_value channels(network *n, net_value normed)
{
    const sc_transformer *t = n->t;
    int64_t d = t->ssm_heads * t->ssm_head_dim, h = t->ssm_heads;
    int64_t both = t->ssm_rank + 2 * t->ssm_state;
    network_dim inner = network_width("state", d, h);
    net_value made = network_linear(n, "in_proj", normed,
                                    network_width("state", 2 * d, h), t->bias);
    net_value u = conv(n, made, inner, true);
    net_value bc = network_linear(n, "x_proj", u,
                                  network_width("rank", both, both), false);
    net_value v = build_slice(&n->b, "step", bc, 2, (uint64_t)t->ssm_rank);
    v = network_linear(n, "dt_proj", v, inner, true);
    v = scan_channels(n, u, v, bc, made, inner);
    return network_linear(n, "out_proj", v, network_hidden(n), t->bias);
}

/* A gated DeltaNet (Yang et al. 2024, arXiv 2412.06464) has the operators of
 * Mamba-2, with keys and queries in place of B and C and one more gate per
 * head, for the update.  Per token and element of the state the delta rule
 * takes the same 7 FLOP: 2 to read, 2 to write, 2 to query, 1 to decay. */
net_value network_mamba_of(network *n, net_value normed, bool delta)
{
    const sc_transformer *t = n->t;
    if (t->ssm_rank) return channels(n, normed);
    int64_t heads = t->ssm_heads, groups = t->ssm_groups;
    int64_t d = heads * t->ssm_head_dim;
    int64_t xbc = d + 2 * groups * t->ssm_state; /* x, B and C */
    network_dim inner = network_width("state", d, groups);
    /* next to them gate z and a step length per head */
    network_dim all =
        network_width("state", xbc + d + (delta ? 2 : 1) * heads, groups);

    net_value made = network_linear(n, "in_proj", normed, all, t->bias);
    net_value v = conv(n, made, network_width("state", xbc, groups), !delta);
    v = scan(n, v, made, inner, delta);
    v = network_norm_of(n, "ssm_norm", v, inner,
                        delta ? (uint64_t)t->ssm_head_dim : inner.extent);
    return network_linear(n, "out_proj", v, network_hidden(n), t->bias);
}

net_value network_mamba(network *n, net_value x, bool delta)
{
    net_value v = network_norm(n, "norm1", x);
    return network_sum(n, "add1", network_mamba_of(n, v, delta), x);
}
