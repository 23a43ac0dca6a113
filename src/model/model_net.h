/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_net.h - a network of operators on tensors with named dimensions, before
 * any parallelism.
 *
 * An operator has an iteration space: dims that have a name and a kind.  For
 * every tensor that it reads or writes, a list names the iteration dim that
 * indexes each dim of the tensor (Proteus, section 1.2).  Backward products use
 * the same space with exchanged roles: the gradient of a tensor is summed over
 * the iteration dims that do not index it.  All collectives follow from this.
 *
 * Extents count elements.  The extent of a batch dim is per sample of a
 * micro-batch (512 tokens of a sample: 512 with `batch` set), so that a network
 * does not depend on the batch size.  All other extents, such as the sequence
 * length or the size of an image, are fixed in the network.
 *
 * Operators are in the order of the forward pass, each after those whose
 * results it reads.  Ownership: everything is in one arena and is immutable.
 */
#ifndef SC_MODEL_NET_H
#define SC_MODEL_NET_H

#include "model/model.h"
#include "model/model_access.h"

typedef enum sc_net_type {
    SC_NET_LINEAR, /* y[.., out] = x[.., in] w[out, in] + b[out] */
    SC_NET_MATMUL, /* batched product of two values */
    SC_NET_CONV,   /* 1 to 3 dims; iter dims: batch, group, out, in, o1..o3,
                      k1..k3 (group only where there are several) */
    SC_NET_CONV_TRANSPOSED,
    SC_NET_EMBED,      /* sums `lookups` rows of a table per output row */
    SC_NET_ATTENTION,  /* fused attention: scores, softmax, context.  Reads two
                          values (q; k and v, which may be one value) or three.
                          Weights: "sinks" [head], "relative" [bucket, head]
                          (T5) */
    SC_NET_EXPERT,     /* linear of routed tokens, one weight per expert:
                          y[.., expert, out] = x[.., expert, in]
                          w[expert, out, in] + b[expert, out] */
    SC_NET_SCAN,       /* state-space scan (Mamba-2); iter dims: those of the
                          result, then "rank", the width of the state */
    SC_NET_BATCH_NORM, /* statistics over the batch and all positions */
    SC_NET_NORM,       /* layer, group, instance, RMS: within a sample */
    SC_NET_ACT,
    SC_NET_SOFTMAX,
    SC_NET_DROPOUT,
    SC_NET_ELEMENTWISE, /* sum or product of its inputs; an input that is
                           broadcast lacks the iteration dim */
    SC_NET_POOL,
    SC_NET_UPSAMPLE,
    SC_NET_CONCAT, /* joins its inputs along one opaque dim */
    SC_NET_SLICE,
    SC_NET_VIEW, /* the same bytes under other dims: reshape, flatten; with
                    `copy` the data move in memory (a transposition) */
    SC_NET_LOSS,
    SC_NET_POSITION, /* adds rows of a learned table to its input */
    SC_NET_ROPE,     /* rotates pairs of elements by their positions; the
                        iteration dim may be narrower than the tensor's (a part
                        of each head) */
    SC_NET_DISPATCH, /* selects the top-k of the scores (second input) and
                        permutes tokens to their experts: [.., width] ->
                        [.., expert, width] */
    SC_NET_COMBINE,  /* the inverse of DISPATCH, weighted by the scores (second
                        input) */
    SC_NET_CONV1D,   /* short causal convolution of each channel (Mamba); weight
                        [channel, kernel] */
    SC_N_NET_TYPES
} sc_net_type;

extern const char *const sc_net_type_names[]; /* "linear" ...; NULL ends */

/* The function that ACT and ELEMENTWISE apply to each element. */
typedef enum sc_net_fn {
    SC_F_NONE, /* for all other types */
    SC_F_SUM,
    SC_F_PRODUCT,
    SC_F_SCALE, /* multiplies by a constant and adds a constant */
    SC_F_RELU,
    SC_F_RELU2, /* ReLU squared */
    SC_F_GELU,
    SC_F_SILU,
    SC_F_SIGMOID,
    SC_F_TANH,
    SC_F_OTHER, /* `detail` names the function */
    SC_N_NET_FNS
} sc_net_fn;

extern const char *const sc_net_fn_names[]; /* "none" "sum" ...; NULL ends */

typedef enum sc_iter_kind {
    SC_I_BATCH,  /* indexes input and output, not the weight */
    SC_I_FREE,   /* indexes weight and output (or all of an elementwise op) */
    SC_I_REDUCE, /* the operator sums over it: splitting it leaves partial
                    sums */
    SC_I_OPAQUE  /* can't be split */
} sc_iter_kind;

typedef struct sc_tensor_dim {
    const char *name; /* "batch" "seq" "hidden" "cout" "h" ... */
    uint64_t extent;  /* per sample if it is a batch dim */
    bool batch;
} sc_tensor_dim;

#define SC_TENSOR_DIMS 6

typedef enum sc_tensor_kind {
    SC_TENSOR_INPUT,  /* data; needs no gradient */
    SC_TENSOR_WEIGHT, /* or bias, scale, table */
    SC_TENSOR_VALUE   /* result of an operator */
} sc_tensor_kind;

typedef struct sc_tensor {
    const char *name; /* of a weight: "weight" or "bias"; of a value: the path
                         of its operator; of an input: its own name */
    uint8_t kind;     /* sc_tensor_kind */
    uint8_t n_dim;
    uint8_t bytes;      /* bytes per element; 0: the precision of the run */
    bool learns;        /* needs a gradient */
    bool on_all_stages; /* all pipeline stages read it at once: broadcast */
    sc_tensor_dim dim[SC_TENSOR_DIMS];
    uint32_t op; /* operator that makes it; for a weight: the first that uses
                    it; for an input: SC_NONE */
} sc_tensor;

typedef struct sc_iter_dim {
    const char *name;
    uint8_t kind; /* sc_iter_kind.  Splitting a BATCH dim is data parallelism;
                     an OPAQUE dim can't be split */
    bool batch;   /* `extent` is per sample */
    uint64_t extent;
    uint32_t units; /* indivisible parts (heads); 0: `extent` parts.  A dim
                       "expert" has extent top-k, the copies of a token, and its
                       units are the experts */
    uint32_t halo;  /* positions of the first input that a part of a split dim
                       reads from its neighbours (sliding windows) */
    bool sums;      /* statistics are taken over this dim: the parts of a split
                       exchange sums */
} sc_iter_dim;

/* conv3d with groups: batch, group, out, in, o1..o3, k1..k3 */
#define SC_ITER_DIMS 10
#define SC_NO_ITER   255

/* A tensor as an operator reads or writes it. */
typedef struct sc_operand {
    uint32_t tensor;
    uint8_t at[SC_TENSOR_DIMS]; /* iteration dim that indexes each tensor dim;
                                   SC_NO_ITER: whole on every rank.  A tensor
                                   dim may name an iteration dim of another
                                   extent: both are cut into equally many
                                   parts */
    float part; /* fraction of each row that the operator reads (queries, if q,
                   k and v share a tensor); 0: all */
} sc_operand;

typedef struct sc_net_op {
    const char *path; /* "layer1.0.conv2" */
    uint8_t type;     /* sc_net_type */
    uint8_t n_iter, n_in, n_weight;
    sc_iter_dim iter[SC_ITER_DIMS];
    sc_operand *in;     /* [n_in] */
    sc_operand *weight; /* [n_weight]: weight, then bias */
    sc_operand out;
    uint8_t fn;         /* sc_net_fn; used by ACT and ELEMENTWISE */
    bool gated;         /* used by ACT: the input is twice as wide, and one half
                           scales the function of the other */
    bool dropout;       /* of a sum: its first term passes through dropout in
                           the same kernel; of attention: the scores do */
    bool copy;          /* used by VIEW */
    bool on_all_stages; /* used by VIEW: its inputs, one from each pipeline
                           stage, are parts of a sum */
    bool causal, cross; /* used by attention; cross: keys come from another
                           sequence */
    bool keep_bf16;     /* used by products: recipes with 8 bits or less leave
                           it in 16 bits */
    uint32_t heads, kv_heads, qk_dim, v_dim; /* used by attention; dims per
                                                head */
    uint64_t window;        /* used by attention: keys that a query reads; 0:
                               all */
    uint32_t experts, topk; /* used by DISPATCH, EXPERT, COMBINE and the
                               operators between them */
    /* used by DISPATCH: a token's experts are in `route_topk` of `route_groups`
     * equal groups; 0: in any */
    uint32_t route_groups, route_topk;
    uint32_t lookups;        /* used by EMBED: rows per output row */
    const sc_access *access; /* used by EMBED: distribution of look-ups over
                                rows; NULL: not known */
    bool sparse;             /* used by EMBED: no gradient of the whole table is
                           formed, and the optimizer updates only the rows that
                           were looked up */
    double flops;       /* forward FLOP per sample, for types LINEAR to SCAN (0
                           for others).  The backward pass has as many for each
                           of values and weights that learn */
    const char *detail; /* for people: "3x3, stride 2"; may be NULL */
} sc_net_op;

/* A run of consecutive operators.  Instances of one segment have equal kinds,
 * extents and internal connections; their paths and incoming values differ.
 * Each has its own weights, except those that come from before the first
 * instance. */
typedef struct sc_net_instance {
    const char *path; /* prefix of the operators' paths; may be "" */
    uint32_t segment; /* number of the segment, by first appearance */
    uint8_t kind;     /* of a transformer: index into the model's layers */
    uint32_t first, n_ops;
} sc_net_instance;

typedef struct sc_net {
    const char *name;
    uint32_t n_ops, n_tensors, n_inputs;
    sc_net_op *op;      /* [n_ops] */
    sc_tensor *tensor;  /* [n_tensors] */
    const char *sample; /* what one sample is: "image", "sequence" */
    uint32_t n_instances, n_segments;
    sc_net_instance *instance; /* instances in order; together they hold all
                                  operators */
    double params;             /* elements of all weights, shared ones counted
                                  once */
    double active;             /* parameters that one token uses: of experts the
                                  top-k */
    double learned;            /* parameters that learn */
    const char *optimizer;     /* usual optimizer; NULL: unknown */
    bool fixed;       /* the extents are those of a trace: its whole batch
                         is one sample */
    const char *note; /* for people: what a trace contains that is not known;
                         NULL: nothing */
} sc_net;

/* Errors of all functions below: SC_EINPUT at `pos` or at a place in a file. */

/* The operators of a generated model for sequences of `seq` tokens.  Block i
 * has the paths "layers.i.*" instead of the "layers.*" of its kind.  `unfused`:
 * attention consists of products, softmax and dropout as separate operators. */
sc_status sc_net_from_model(const sc_model *m, uint64_t seq, bool unfused,
                            sc_arena *a, const sc_net **out, sc_err *err);

/* Name of an operator of a model's `kinds` within its layer ("qkv"), and its
 * path in block `block` if the layer is a block: "layers.3.qkv". */
const char *sc_kind_op_name(const sc_layer *l, const sc_net_op *op);
void sc_kind_path(const sc_layer *l, uint32_t block, const sc_net_op *op,
                  char *buf, size_t size);

/* FLOP of the operator's forward pass over a whole (unsplit) batch of sequences
 * of `seq` tokens.  Matrix products: 2 per weight and token (for experts: the
 * top-k).  Attention: 2 heads (qk_dim + v_dim) min(seq, window) per token, not
 * halved for the causal mask.  Scans: 7 per element of the state and token, as
 * Megatron-LM counts.  Memory-bound operators: 0.  The backward pass has twice
 * as many. */
double sc_kind_flops(const sc_net_op *op, uint64_t batch, uint64_t seq);

/* Reads a user's network: a model.yml with `operators:`
 * (docs/model-file.md). */
sc_status sc_net_read(const char *text, size_t len, const char *file,
                      sc_arena *a, const sc_net **out, sc_err *err);

/* Reads the forward pass of a PyTorch execution trace (ExecutionTraceObserver,
 * JSON of schema 1.0.1 to 1.1.1).  The result is `fixed`: the batch of the
 * trace is one sample.  Operators that are not known only move their bytes;
 * their `detail` reports this. */
sc_status sc_net_read_trace(const char *text, size_t len, const char *file,
                            sc_arena *a, const sc_net **out, sc_err *err);

/* A network of the zoo: its name and its builder. */
typedef struct sc_zoo_entry {
    const char *name, *title;
    sc_source source;
} sc_zoo_entry;

const sc_zoo_entry *sc_zoo_find(const char *name);
const sc_zoo_entry *sc_zoo_all(uint32_t *n);
sc_status sc_zoo_build(const sc_zoo_entry *z, sc_arena *a, const sc_net **out,
                       sc_err *err);

/* Checks the invariants of a network: order, references, extents, fitting
 * ports.  The error SC_C_BUG names the first violation. */
sc_status sc_net_check(const sc_net *g, sc_err *err);

/* Index of an iteration dim by name, -1 if there is none. "out" and "in" are
 * also accepted for the dim of the weight that indexes the result and for the
 * one that is summed over, whatever their names.  Without a weight, "out" is
 * the channel dim or else the last dim of the result. */
int sc_net_op_iter(const sc_net_op *op, const char *name);

/* Elements of a tensor, and extent of an iteration dim, for `samples`
 * samples. */
double sc_tensor_elements(const sc_tensor *t, double samples);
double sc_iter_dim_extent(const sc_iter_dim *it, double samples);

/* Model FLOP of one step of `samples` samples: the forward pass, and as much
 * again for each of inputs and weights that learn. */
double sc_net_flops(const sc_net *g, double samples, bool forward_only);
#endif
