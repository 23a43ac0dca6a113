/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_build.h - inside model/: builds operator networks with one call per
 * operator and infers shapes.
 *
 * A value is the index of its tensor; functions return the value that they
 * make.  After an error (memory, shapes that do not fit) they return SC_NONE
 * and accept it, so that only the result of build_finish() has to be checked.
 *
 * Dims of a value are the batch, then c and (d) h w of an image, or names given
 * by the caller. docs/model-graph.md lists the names of iteration dims.
 */
#ifndef MODEL_NET_BUILD_H
#define MODEL_NET_BUILD_H

#include "graph/graph.h" /* SC_NONE */
#include "model/model_net.h"

typedef uint32_t net_value;

typedef struct net_builder {
    sc_arena *a;
    const char *scope;  /* prefix of paths; NULL: none */
    bool frozen;        /* weights made from now on do not learn */
    const char *freeze; /* patterns of operators whose weights do not learn
                           either */
    const char *alias;  /* another name of the scope that patterns match; NULL:
                           none */
    bool copied;        /* equal instances are copies: only the first is
                           checked */
    uint8_t kind;       /* of the instance that is being built */
    bool no_memory;
    const char *wrong; /* first operator whose shapes do not fit */
    const char *why;
    sc_net g;
    uint32_t cap_ops, cap_tensors, cap_instances;
} net_builder;

/* A sliding window; a field that is 0 has the usual value. */
typedef struct build_window {
    uint32_t k, kw;  /* kernel size, and that of the last dim if it differs */
    uint32_t stride; /* 1 */
    uint32_t pad;
    uint32_t dilation;     /* 1 */
    uint32_t groups;       /* 1 */
    net_value shared_with; /* result of the operator whose weights are shared; 0
                          (which no operator makes): own weights */
    bool same;             /* pads with k / 2 in each dim */
    bool ceil;             /* a pool's last window may exceed the input */
    bool bias;
} build_window;

typedef struct build_dim {
    const char *name;
    uint64_t extent;
    int from; /* for views: the input dim whose split it follows; -1: none */
} build_dim;

/* Reserves room for this many operators and tensors. */
void build_reserve(net_builder *b, uint32_t ops, uint32_t tensors);
void build_init(net_builder *b, sc_arena *a, const char *name,
                const char *sample);
/* Counts parameters.  `*out` has passed sc_net_check(). */
sc_status build_finish(net_builder *b, const sc_net **out, sc_err *err);

/* Sets the prefix of the paths that follow: printf of at most 120 bytes. */
void build_scope(net_builder *b, const char *fmt, ...) SC_PRINTF(2, 3);

/* Adds input data; `dim[0]` is the batch. */
net_value build_input(net_builder *b, const char *name, unsigned n_dim,
                      const sc_tensor_dim *dim, unsigned bytes);
net_value build_image(net_builder *b, unsigned channels, unsigned n,
                      uint64_t side);
/* Adds integer labels, one or `per_sample` for each sample. */
net_value build_labels(net_builder *b, const char *name, uint64_t per_sample);

const sc_tensor *build_tensor(const net_builder *b,
                              net_value v); /* NULL if v is SC_NONE */
uint64_t build_extent(const net_builder *b, net_value v, unsigned dim);

/* ---- layers; net_layers.c and net_window.c */

net_value build_conv(net_builder *b, const char *name, net_value x,
                     uint32_t out, build_window w);
net_value build_conv_transposed(net_builder *b, const char *name, net_value x,
                                uint32_t out, build_window w);

/* For shapes that are known instead of inferred: of the window only groups,
 * bias, `shared_with` and the texts about stride and dilation are used. */
typedef struct build_known {
    uint32_t out;
    uint64_t kernel[3], to[3]; /* kernel size and positions of the result */
} build_known;

net_value build_conv_to(net_builder *b, const char *name, net_value x,
                        const build_known *k, build_window w, bool transposed);
net_value build_pool(net_builder *b, const char *name, net_value x,
                     build_window w);
/* Pools to `side` positions per dim: the mean over each part. */
net_value build_pool_to(net_builder *b, const char *name, net_value x,
                        uint64_t side);
/* Upsamples to exactly these positions (NULL: by `factor` in each dim). */
net_value build_upsample(net_builder *b, const char *name, net_value x,
                         uint32_t factor);

/* x[.., in] -> [.., out]; the new dim is named like the last dim of x. */
net_value build_linear(net_builder *b, const char *name, net_value x,
                       uint64_t out, bool bias);

/* A linear layer with a name for the new dim and indivisible parts of both
 * dims.  `weight` other than SC_NONE is an existing weight. */
typedef struct build_product {
    const char *out_name;
    uint64_t out;
    uint32_t in_units, out_units;
    net_value weight; /* SC_NONE: a new weight */
    bool bias;
} build_product;

net_value build_linear_named(net_builder *b, const char *name, net_value x,
                             const build_product *p);
/* [.., m, k] [.., k, n] -> [.., m, n]; `bt`: the second is [.., n, k]. */
net_value build_matmul(net_builder *b, const char *name, net_value x,
                       net_value y, bool bt);
net_value build_embed(net_builder *b, const char *name, net_value ids,
                      uint64_t rows, uint64_t width, uint32_t lookups);

/* Looks up an existing table again. */
net_value build_embed_of(net_builder *b, const char *name, net_value ids,
                         net_value table);

typedef struct build_attend {
    net_value q, k, v;        /* v SC_NONE: k holds keys and values; k SC_NONE
                                 too: q holds all three */
    uint32_t heads, kv_heads; /* kv_heads 0: as many as heads */
    uint64_t out;             /* width of the result */
    uint64_t qk_dim, v_dim;   /* per head */
    uint64_t seen;            /* keys that a query reads; 0: all */
    bool causal, cross;
} build_attend;

net_value build_attention(net_builder *b, const char *name,
                          const build_attend *at);
/* Attention in two steps, so that weights can be added in between. */
sc_net_op *build_attention_open(net_builder *b, const char *name,
                                const build_attend *at);
/* Sets the part of a joint query, key and value tensor that each port reads. */
void build_attention_parts(sc_net_op *op);
net_value build_attention_close(net_builder *b, sc_net_op *op);

/* Routes tokens [.., width] to [.., expert, width], with one copy for each of
 * the `topk` experts by score; build_combine() is the inverse. */
net_value build_dispatch(net_builder *b, const char *name, net_value x,
                         net_value scores, uint64_t topk);
net_value build_combine(net_builder *b, const char *name, net_value x,
                        net_value scores);
/* A linear layer per expert; `p` has no existing weight. */
net_value build_experts(net_builder *b, const char *name, net_value x,
                        uint64_t experts, const build_product *p);

net_value build_batch_norm(net_builder *b, const char *name, net_value x);
/* Normalizes over the last dim. */
net_value build_layer_norm(net_builder *b, const char *name, net_value x,
                           bool bias);
/* Normalizes over positions and the channels of a group; `groups` 0: one group
 * per channel. */
net_value build_group_norm(net_builder *b, const char *name, net_value x,
                           uint32_t groups);

net_value build_act(net_builder *b, const char *name, net_value x,
                    const char *what);
/* One half of the last dim scales the activation of the other half. */
net_value build_act_gated(net_builder *b, const char *name, net_value x,
                          const char *what);
net_value build_dropout(net_builder *b, const char *name, net_value x);
net_value build_softmax(net_builder *b, const char *name, net_value x);
/* Sum or product (`what`) of x and y; y SC_NONE: of x alone. y may lack
 * trailing dims or have fewer elements of a dim; it is broadcast there. */
net_value build_elementwise(net_builder *b, const char *name, net_value x,
                            net_value y, const char *what);

static inline net_value build_add(net_builder *b, const char *name, net_value x,
                                  net_value y)
{
    return build_elementwise(b, name, x, y, "sum");
}

net_value build_concat(net_builder *b, const char *name, const net_value *v,
                       unsigned n, unsigned dim);
/* Takes `extent` elements of a dim; `lead`: other extents may be smaller
 * too. */
net_value build_slice(net_builder *b, const char *name, net_value x,
                      unsigned dim, uint64_t extent);
net_value build_view(net_builder *b, const char *name, net_value x,
                     const build_dim *dim, unsigned n, bool copy);
/* [batch, c, ..] -> [batch, c * ..] */
net_value build_flatten(net_builder *b, const char *name, net_value x);
/* Mean loss of a sample's predictions against `target`.  The last dim is not
 * divided, unless `reduce` is set. */
net_value build_loss(net_builder *b, const char *name, net_value x,
                     net_value target, bool reduce);

/* ---- operators by parts, for what has no function */

sc_net_op *build_open(net_builder *b, const char *name, sc_net_type type,
                      unsigned n_in, const net_value *in);
uint8_t build_iter(sc_net_op *op, const char *name, sc_iter_kind kind,
                   uint64_t extent);
/* Adds an iteration dim for each dim of a tensor: the batch first, then FREE
 * dims. */
void build_iters_of(sc_net_op *op, const sc_tensor *t);
/* Sets the function of an ACT or ELEMENTWISE from a word of a file or a
 * person. */
void build_function(sc_net_op *op, const char *word);
void build_port(sc_operand *p, const uint8_t *at, unsigned n);
/* Adds a weight to an operator; weights keep this order. */
net_value build_weight(net_builder *b, sc_net_op *op, const char *name,
                       unsigned n, const sc_tensor_dim *dim, const uint8_t *at);
void build_weight_of(sc_net_op *op, net_value weight, unsigned n,
                     const uint8_t *at);
/* Closes the operator and returns its result, whose dims the port gives. */
net_value build_close(net_builder *b, sc_net_op *op, unsigned n,
                      const sc_tensor_dim *dim, const uint8_t *at);
/* sc_net_check(); `once`: checks only the first of equal instances. */
sc_status model_net_check(const sc_net *g, bool once, sc_err *err);
net_value build_wrong(net_builder *b, const char *name, const char *why);

/* ---- segments; net_segments.c */

/* Makes the operators from `op` to the last an instance of `segment`, which is
 * new if it equals n_segments.  Does nothing if there are no such operators. */
void build_instance(net_builder *b, uint32_t segment, uint32_t op);

/* Finds instances: modules with numbered paths (layer1.0, blocks.3) whose
 * operators, extents and wiring are equal. */
void build_segments(net_builder *b);

/* Whether a path matches one of the comma-separated patterns.  `hit` collects a
 * bit for each of the first 64 patterns that match; it may be NULL, like the
 * patterns. */
bool model_matches(const char *patterns, const char *path, uint64_t *hit);
/* Whether the patterns match operator `name` in the current scope. */
bool build_named(net_builder *b, const char *patterns, const char *name);

/* Operators and tensors to repeat with other inputs. */
typedef struct build_copy {
    uint32_t op, n_ops, tensor, n_tensors;
    net_value in, in_again;
    const char *scope; /* scope in which they were built */
} build_copy;

/* Repeats them under the paths of `scope` [n]; false after an error. */
bool build_again(net_builder *b, const build_copy *from, const char *scope,
                 size_t n);

#endif
