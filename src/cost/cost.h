/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.h - the price of one op.
 *
 * Pricing is a pure function of (machine, parameters, op).  Parameters come in
 * five sets, each in one table: `kernel` (physics and fits over kernel tables,
 * fixed, each with its source), `network` (fitted on
 * data/validation/network*.csv), `step` (fitted on measured steps of
 * transformers), `program` (on those of programs with keys that are fitted) and
 * `graph` (on those of operator networks, the others fixed).
 * Fitted values are in data/fit/<set>.yml, which only `stepcast calibrate
 * --truth` writes.
 *
 * Units: seconds, bytes, FLOP.  A price is never below the bound that the
 * device's peak or a port's rate sets.
 */
#ifndef SC_COST_H
#define SC_COST_H

#include "coll/coll.h"
#include "cost/cost_held_out.h"
#include "cost/cost_kernel.h"
#include "cost/cost_lookup.h"
#include "cost/cost_params.h"
#include "cost/cost_params_op.h"
#include "cost/cost_params_program.h"
#include "cost/cost_run_level.h"
#include "net/net.h"

/* One parameter: X(enumerator, name, unit text, centre, sd, lo, hi, meaning
 * and source).  `centre` is the value before any fit (datasheet, physics,
 * literature), `sd` the standard deviation of its logarithm that the fit uses
 * as prior; sd 0 = fixed. */
#define SC_PARAM_ENUM(id, name, unit, centre, sd, lo, hi, text) id,

typedef enum sc_param {
    SC_PARAMS_KERNEL(SC_PARAM_ENUM) SC_PARAMS_NETWORK(SC_PARAM_ENUM)
        SC_PARAMS_STEP(SC_PARAM_ENUM) SC_PARAMS_PROGRAM(SC_PARAM_ENUM)
            SC_PARAMS_OP(SC_PARAM_ENUM) SC_N_PARAMS
} sc_param;

#undef SC_PARAM_ENUM

typedef enum sc_param_set {
    SC_SET_KERNEL,
    SC_SET_NETWORK,
    SC_SET_STEP,
    SC_SET_PROGRAM,
    SC_SET_GRAPH,
    SC_N_SETS
} sc_param_set;

typedef struct sc_param_info {
    const char *name, *unit, *text;
    double centre, sd, lo, hi;
    sc_param_set set;
} sc_param_info;

extern const sc_param_info sc_params[SC_N_PARAMS];

/* The origin of a parameter's value. The parameter's text states if another
 * program fitted it to the rows of data/validation. */
typedef enum sc_param_origin {
    SC_PARAM_FITTED,    /* sd > 0: by `stepcast calibrate`, from its centre */
    SC_PARAM_ELSEWHERE, /* fixed, but fitted elsewhere on the same rows */
    SC_PARAM_ASSUMED,   /* only plausible; the text says so */
    SC_PARAM_SOURCED,   /* datasheet, physics, literature */
    SC_N_PARAM_ORIGINS
} sc_param_origin;

extern const char *const sc_param_origin_names[]; /* "fitted" ...; NULL ends */
sc_param_origin sc_param_origin_of(const sc_param_info *p);
int sc_param_find(const char *name); /* -1: unknown name */

/* A network between nodes on which parameters were calibrated. */
typedef struct sc_calibrated {
    char device[40]; /* "h100-sxm" */
    double nic_bw;   /* bytes/s of a node's NICs, nominal */
    uint32_t nodes;  /* largest number of nodes that was measured */
} sc_calibrated;

#define SC_CALIBRATED 8

/* Time of a kind of kernel on one device over that of its form, from a few
 * kernels that were measured there (`calibrate --kernel-levels`). */
typedef struct sc_kernel_level {
    char device[40]; /* "l40s" */
    int kind;        /* sc_form_kind */
    double factor;
} sc_kernel_level;

#define SC_KERNEL_LEVELS 32
struct sc_anchors;
struct sc_covariance;

typedef struct sc_cost {
    double p[SC_N_PARAMS];
    uint64_t hash;         /* of data/fit */
    const sc_forms *forms; /* of kernels; NULL: stated constants */
    const sc_forms *alone; /* of single kernels of a trace (cost_alone.h), on
                              which no step depends; NULL: not read */
    uint32_t n_levels;
    sc_kernel_level level[SC_KERNEL_LEVELS];
    bool burst;       /* kernels run alone, as tables of kernels measure them */
    sc_held_out held; /* errors of steps priced with these parameters */
    sc_run_level run_level;
    uint32_t n_calibrated;
    sc_calibrated calibrated[SC_CALIBRATED];
    const struct sc_covariance *cov; /* of the parameters (cost_anchor.h); NULL:
                                        not known */
    const struct sc_anchors *anchors; /* own runs that moved `p` and give steps
                                         levels (cost_anchor.h); NULL: none */
} sc_cost;

/* Every parameter at its centre. */
void sc_cost_centres(sc_cost *out);

/* Reads the built-in forms of kernels into `inout`. */
sc_status sc_cost_forms(sc_arena *a, sc_cost *inout, sc_err *err);

/* Centres overridden by the built-in data/fit files. */
/* Hash of all numbers: parameters, kernel forms and levels of devices. */
uint64_t sc_cost_hash(const sc_cost *c);

sc_status sc_cost_builtin(sc_arena *a, sc_cost *out, sc_err *err);

/* Overrides values of `inout` from the text of a fit file or profile:
 *   parameters: {sustained_ampere: {value: 0.93, ...}, ...}
 * Adds the networks of `calibrated:`, if the text has that key:
 *   calibrated: [{device: h100-sxm, nodes: 2, nic_bw: 400GB/s}] */
sc_status sc_cost_read(const char *text, size_t len, const char *file,
                       sc_arena *a, sc_cost *inout, sc_err *err);

/* Replaces parameters by those of a profile; `file` NULL: none. */
sc_status sc_cost_profile(const char *file, sc_arena *a, sc_cost *inout,
                          sc_err *err);

/* ---- kernels */

typedef enum sc_attention_kernel {
    SC_ATTN_UNFUSED, /* batched products and a softmax kernel */
    SC_ATTN_FLASH1,  /* FlashAttention 1, Triton */
    SC_ATTN_FLASH2,
    SC_ATTN_CUDNN,
    SC_ATTN_TE2024, /* Transformer Engine of 2024 */
    SC_N_ATTN
} sc_attention_kernel;

extern const char *const sc_attention_names[];

/* The number of elements that share a scale in low precision. */
typedef enum sc_scaling {
    SC_SCALE_TENSOR,
    SC_SCALE_BLOCK,
    SC_SCALE_MX,
    SC_SCALE_ROW
} sc_scaling;

typedef enum sc_kernel_kind {
    SC_K_GEMM,     /* batch products (m, n, k) */
    SC_K_FLASH,    /* fused attention; m = query rows, n = key rows, k = head
                    dim, batch = samples * heads on this device */
    SC_K_MEMORY,   /* moves `bytes` through device memory */
    SC_K_LOOKUP,   /* gathers rows: `bytes` with random access */
    SC_K_CONV,     /* convolution as a product without its matrix: (m, n, k) in
                    each of `batch` groups; `bytes` are all that it moves */
    SC_K_QUANTIZE, /* casts m rows of k values of 16 bits to `precision`, in
                      each of `batch` tensors one after the other */
    SC_K_AMAX,     /* finds the scale of m rows of k values of 16 bits, the
                      same */
    /* The next kinds are single kernels of a trace (cost_alone.h); lists of
     * operators have SC_K_MEMORY and SC_K_LOOKUP instead. */
    SC_K_ELEMENT,    /* element-wise, a copy, a concatenation: `bytes`; m > 1:
                        elements that are addressed one by one */
    SC_K_REDUCE,     /* sums, means, maxima: `bytes` */
    SC_K_OPTIMIZER,  /* an update of weights: `bytes` */
    SC_K_TRANSPOSE,  /* m rows of k values */
    SC_K_DROPOUT,    /* m rows of k values and their masks */
    SC_K_SOFTMAX,    /* m rows of k values */
    SC_K_NORM,       /* layer norm of m rows of k values */
    SC_K_RMS_NORM,   /* m rows of k values */
    SC_K_BATCH_NORM, /* k channels of m values */
    SC_K_ROPE,       /* rotary positions of m rows of k values, fused */
    SC_K_GATE,       /* gated activation of m rows of k values, fused */
    SC_K_GATHER      /* m rows of k values from `n` different rows of a table,
                       summed into `batch` rows; backward: their gradients */
} sc_kernel_kind;

/* A convolution by a square window that moves by one position. For such
 * convolutions there are algorithms with fewer multiplications. */
typedef struct sc_window {
    uint8_t side;        /* 0: another convolution */
    bool weights;        /* the gradient of the weights: m channels that come
                            out, n what a window covers, k positions; else m
                            positions and k what a window covers */
    uint32_t rows, cols; /* of positions in one sample */
} sc_window;

typedef struct sc_kernel {
    sc_kernel_kind kind;
    sc_precision precision;
    sc_scaling scaling; /* of FP8 and FP4 */
    uint64_t batch, m, n, k;
    double bytes;      /* for memory kinds all bytes; for others additional
                          bytes */
    uint32_t launches; /* kernels launched; 0 counts as 1 */
    sc_attention_kernel attention;
    bool backward, causal;
    bool grouped;    /* GEMM: batch weights of different experts */
    double padded;   /* work of a convolution with channels in groups of 8 over
                        that of its own; 0: 1 */
    bool low_scores; /* attention in the kernel's own FP8, not in 16 bits */
    /* of attention */
    uint32_t kv_group; /* query heads per key/value head; 0 counts as 1 */
    uint32_t v_dim;    /* head dimension of values; 0: that of keys */
    uint32_t band;     /* keys that a query sees; 0: all */
    sc_window window;
    sc_row_reads reads; /* of LOOKUP: the part of `bytes` that reads rows, which
                           the last-level cache may serve */
    const char *name;
} sc_kernel;

typedef struct sc_price {
    double seconds;
    double flops; /* executed */
    double bytes; /* through device memory or the port */
    uint32_t launches;
    const char *limit; /* "compute" "memory" "launch" "wave" "align" ... */
} sc_price;

/* FLOP, bytes and launches of a kernel on any device; no seconds, no limit. */
sc_price sc_kernel_amount(const sc_kernel *k);

sc_price sc_cost_kernel(const sc_cost *c, const sc_device *d,
                        const sc_kernel *k);

/* The shape by which a kernel's form prices it, on this device and level; false
 * if kernels of this kind have no form. */
bool sc_form_use_of(const sc_cost *c, const sc_device *d, const sc_kernel *k,
                    sc_form_use *out);

/* ---- collectives */

typedef struct sc_coll_price {
    double seconds;
    double link_s[2];     /* by sc_scope: the time of its bytes on the links */
    double bound;         /* lower bound: the larger of both */
    int algorithm;        /* index into sc_algorithms() */
    const char *protocol; /* "LL" "LL128" "Simple" */
    double port_bytes;    /* through the busiest port inside the node */
    double nic_bytes;     /* through the busiest node's NICs, one direction */
    uint32_t channels;    /* compute units that it occupies */
} sc_coll_price;

/* Price of one collective of `bytes` (nccl-tests' V) over a group placed
 * `at`; the cheapest algorithm and protocol, or `algorithm` if >= 0.
 * n <= 1 or bytes == 0 costs nothing. */
sc_status sc_cost_coll(const sc_cost *c, const sc_hw *hw, sc_coll coll,
                       double bytes, const sc_place *at, int algorithm,
                       sc_coll_price *out, sc_err *err);

/* Prices of collectives on one machine with one set of parameters. Neither may
 * change, and only one thread may use it. */
typedef struct sc_coll_memo {
    const sc_cost *cost;
    const sc_hw *hw;
    uint32_t n;

    struct sc_coll_kept {
        sc_coll coll;
        double bytes; /* 0: free */
        sc_place at;
        sc_coll_price price;
    } * kept; /* [n] by a hash of the others; a new price replaces an old one */
} sc_coll_memo;

/* An empty memo of at most `n` prices, in `a`; NULL: out of memory. */
sc_coll_memo *sc_coll_memo_new(sc_arena *a, const sc_cost *cost,
                               const sc_hw *hw, uint32_t n);

/* sc_cost_coll() with the library's choice, or the same price from an earlier
 * call. The memo is not used if it is NULL or for another machine or other
 * parameters. */
sc_status sc_cost_coll_kept(sc_coll_memo *memo, const sc_cost *c,
                            const sc_hw *hw, sc_coll coll, double bytes,
                            const sc_place *at, sc_coll_price *out,
                            sc_err *err);

/* Token dispatch is priced as an all-to-all of the copies that are sent, times
 * this factor: libraries for it use NICs better (`dedup`, over nodes), and each
 * copy of `hidden` values costs more than its bytes, for its expert, weight and
 * position. */
double sc_cost_dispatch_factor(const sc_cost *c, const sc_place *at, bool dedup,
                               double hidden);

/* Expected copies of a token over `topk`, if one is sent to each of `ranks`
 * ranks (over the network: nodes) that have one of its experts. */
double sc_cost_dispatch_copies(double ranks, double topk);

/* True if measurements of such a network support the price: the group is inside
 * a node, or `c` was calibrated on at least a quarter as many nodes with this
 * device and these NICs. */
bool sc_cost_calibrated(const sc_cost *c, const sc_hw *hw, const sc_place *at);

/* 80 % interval of a price: seconds / f to seconds * f with one of the factors
 * interval_*, at least 2 if sc_cost_calibrated() is false.  It never includes
 * times below those of the nominal rates of ports and NICs. */
void sc_cost_coll_interval(const sc_cost *c, const sc_hw *hw,
                           const sc_place *at, double bytes,
                           const sc_coll_price *price, double *low,
                           double *high);

/* ---- choices of NCCL that are priced much slower than others

 * NCCL's tables choose by an estimate of their own.  A price is the cheapest of
 * what the tables choose for this message, for larger ones and over slower
 * links, so it can be below the price of the choice itself. */

/* From this factor on a choice is reported: single prices of small messages
 * have an interval of that factor (interval_small), so less may be an error of
 * the prices. */
#define SC_SLOW_CHOICE 1.5

typedef struct sc_coll_slow {
    const char *algorithm, *protocol; /* NCCL's choice, in NCCL's words */
    const char *best_algorithm, *best_protocol; /* of those that it can run */
    double seconds, best_s;                     /* their prices */
    double price_s;                             /* sc_cost_coll() */
} sc_coll_slow;

/* Whether NCCL's choice is priced at SC_SLOW_CHOICE times the cheapest pair or
 * more; false where NCCL does not choose. */
bool sc_cost_coll_slow(const sc_cost *c, const sc_hw *hw, sc_coll coll,
                       double bytes, const sc_place *at, sc_coll_slow *out);

/* Appends it as a sentence without a period, with the variables of NCCL that
 * force the cheaper pair.  `step_s`: what it costs per step; 0: unknown. */
void sc_cost_coll_slow_text(const sc_coll_slow *s, sc_coll coll, double bytes,
                            const sc_place *at, double step_s, sc_text *out);

/* ---- explanations */

/* Appends the same prices as text, with their factors. */
void sc_cost_explain_kernel(const sc_cost *c, const sc_device *d,
                            const sc_kernel *k, sc_text *out);
void sc_cost_explain_coll(const sc_cost *c, const sc_hw *hw, sc_coll coll,
                          double bytes, const sc_place *at, sc_text *out);
#endif
