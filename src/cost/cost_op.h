/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_op.h - lists the kernels of one operator and pass on one rank.
 *
 * The input is the operator's kind and its part on the rank, and the facts of a
 * run that change kernels.  The list has the kernels that a framework launches,
 * the bytes that they read and write, and the data that are kept for the
 * backward pass.  Prices, `show --layers`, `--why` and memory all use this
 * list. docs/dev/operator-costs.md has it as a table.
 */
#ifndef SC_COST_OP_H
#define SC_COST_OP_H

#include "cost/cost.h"
#include "model/model_net.h"

typedef enum sc_op_pass {
    SC_PASS_FWD,
    SC_PASS_BWD, /* both of the following passes, as tables state them */
    SC_PASS_DGRAD,
    SC_PASS_WGRAD,
    SC_PASS_UPDATE /* the optimizer's update of one weight */
} sc_op_pass;

/* Facts of a run that change the kernels of every operator. */
typedef struct sc_op_facts {
    sc_precision precision; /* of products */
    sc_scaling scaling;     /* of FP8 and FP4 */
    uint8_t attention;      /* sc_attention_kernel */
    bool fused;             /* a compiler puts element-wise operators into the
                               kernels that make their inputs */
    bool single_pass;       /* element-wise operators have specialized kernels
                               that move each operand once */
    bool fused_softmax;     /* Megatron's scale-mask-softmax kernel */
    bool fused_cast;        /* casts to low precision are fused with their
                               neighbours */
    bool fused_accumulate;  /* products accumulate into the gradient
                               themselves */
    bool grouped_loop;      /* one product per expert, in a loop */
    bool fused_experts;     /* biases and activations of experts are fused into
                               their products */
    bool delayed_scaling;   /* the scale of a tensor comes from earlier steps */
    bool any_layout;        /* tensor-scaled products in low precision read
                               operands along either dim */
    bool low_activations;   /* inputs of activations are kept in low
                               precision */
    bool low_attention;     /* attention in FP8 beside products in FP8 */
    bool pad_head_dim;      /* attention pads head dims 65..127 to 128 */
    double attended;        /* keys of a token over the mean length of samples
                               of several lengths; 0: 1 */
    double logit_bytes;     /* largest memory of the loss per logit */
    double split_logits;    /* the same if ranks share the classes; 0:
                               `logit_bytes` */
    double accum_bytes;     /* bytes moved per weight to accumulate over
                               micro-batches; 0: there is nothing to add to */
    double loss_bytes;      /* bytes that both passes of the loss move per
                               logit */
} sc_op_facts;

typedef struct sc_op_work {
    uint8_t type;     /* sc_net_type */
    uint8_t pass;     /* sc_op_pass, except UPDATE */
    const char *name; /* of products, sums and norms; NULL: the name of the
                         kind */
    /* Bytes on this rank, for values in the run's width. */
    double x, others, y, w; /* first input, other inputs, output, first
                               weight */
    double elements;        /* of the output */
    double each;            /* bytes per element of a value */
    /* Products: `groups` products of (m, n, k).  Attention: `groups` heads of
     * all samples with m queries, n keys per query and width k. */
    double groups, m, n, k;
    double keys;     /* used by attention and softmax: number of keys */
    double channels; /* used by convolutions: the part of k that the input holds
                        too */
    uint8_t window;  /* used by convolutions: width of a square window with
                        stride 1; 0: another window */
    double rows, cols; /* positions of that window */
    double lookups;    /* used by tables: rows that are summed into one output
                          row */
    const sc_access *access; /* used by tables: NULL: not known, and all rows
                                come from memory */
    double table_rows, table_width; /* used by tables: all rows; columns on this
                                       rank */
    double row_parts; /* used by tables: parts of the rows, of which this rank
                         has one; 0: 1 */
    uint32_t tables;  /* used by tables: that the same kernel looks up; 0: 1 */
    bool input_learns, weight_learns;
    uint8_t learns; /* bits of the inputs that learn */
    bool bias;
    bool low_precision;               /* a product in the run's low precision */
    double cast_input, cast_gradient; /* fractions of both operands that this
                           rank casts, before they are gathered; 0: all */
    bool gated;                       /* the activation also reads a gate */
    bool expert_bias; /* is between the products of experts that have
                           biases */
    bool dropout;
    bool causal;
    bool wide_rows; /* used by norms: a row does not fit on the chip */
    bool dense;     /* used by tables: the gradient is as large as the table */
    bool split;     /* used by losses: several ranks share the classes */
    /* the next fields are used with `fused` */
    bool joins;       /* runs inside the kernel that makes its input */
    bool behind_norm; /* that kernel belongs to a norm, or to an operator after
                         one */
    bool behind_conv; /* the convolution's kernel computes the statistics */
    bool same_kernel; /* one kernel looks up several tables */
} sc_op_work;

#define SC_OP_KERNELS 12

typedef struct sc_op_kernels {
    uint32_t n;
    bool full; /* the list overflowed: a defect, which pricing reports */
    sc_kernel k[SC_OP_KERNELS];
    bool joined[SC_OP_KERNELS]; /* [n] runs inside another operator's kernel:
                                   adds traffic but no launch */
} sc_op_kernels;

void sc_op_list(const sc_cost *c, const sc_op_facts *f, const sc_op_work *w,
                sc_op_kernels *out);

/* FLOP and bytes of the operator in 16 bits with specialized kernels, whatever
 * program runs it; no price. */
sc_price sc_op_amount(const sc_op_work *w);

/* The price of all kernels. */
sc_price sc_op_price(const sc_cost *c, const sc_device *d,
                     const sc_op_kernels *l);
void sc_op_explain(const sc_cost *c, const sc_device *d, const sc_op_kernels *l,
                   sc_text *out);

/* The values of the forward pass that the backward pass of a kind reads. */
enum {
    SC_OP_READS_INPUTS = 1, /* for the gradients of inputs */
    SC_OP_READS_RESULT = 2,
    SC_OP_READS_FIRST = 4, /* the first input, for the gradients of weights */
    SC_OP_READS_WEIGHT = 8
};

unsigned sc_op_reads(sc_net_type type);

#define SC_OP_OWN 3

/* Bytes on a rank in addition to an operator's inputs and outputs. */
typedef struct sc_op_held {
    double own[SC_OP_OWN]; /* tensors kept from the forward pass: masks, sums of
                              rows, a softmax, a result of dropout */
    double copy;           /* kept instead of the first input, per element; 0:
                              the input itself is kept */
    double forward;        /* during the forward kernels */
    double grad;           /* a copy of the result's gradient, in both backward
                              passes */
    double operand;        /* a copy of the first input, for the gradients of
                              weights */
} sc_op_held;

void sc_op_hold(const sc_op_facts *f, const sc_op_work *w, sc_op_held *out);
#endif
