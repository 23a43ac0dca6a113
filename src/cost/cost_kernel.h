/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_kernel.h - times of matrix products, attention and casts by shape.
 *
 * A form has a few constants of a physical model (whole waves of tiles, memory
 * traffic, start-up) and a table of corrections: the logarithm of measured over
 * physical time at powers of two of three sizes, interpolated linearly.  There
 * is one form for each class of generations and kind of kernel.  The forms of
 * data/fit/kernels.yml are fitted to tables of measured kernels and to nothing
 * else (`stepcast calibrate --kernels`); a class that has none uses constants
 * that are stated in kernel_form.c.
 *
 * Forms give the time of a kernel that runs alone at burst clocks.
 *
 * The forms of data/fit/kernels-alone.yml are for single kernels of a trace
 * (cost_alone.h) and are never part of a training step.  Each belongs to the
 * device on which its rows were measured.
 */
#ifndef COST_KERNEL_H
#define COST_KERNEL_H

#include "base/schema.h"
#include "hw/hw.h"
#include "hw/hw_class.h"

#include <stdint.h>

/* X(enumerator, name) */
#define SC_FORMS(X)                                                           \
    X(SC_FORM_GEMM, "gemm")                 /* 16 bits and wider */           \
    X(SC_FORM_GEMM_FP8, "gemm-fp8")         /* one scale per tensor, or MX */ \
    X(SC_FORM_GEMM_BLOCK, "gemm-fp8-block") /* scales of 128 values */        \
    X(SC_FORM_GEMM_FP4, "gemm-fp4")                                           \
    X(SC_FORM_GEMM_INT8, "gemm-int8")                                         \
    X(SC_FORM_GROUPED, "grouped") /* products of experts */                   \
    X(SC_FORM_GROUPED_FP8, "grouped-fp8")                                     \
    X(SC_FORM_GROUPED_BLOCK, "grouped-fp8-block")                             \
    X(SC_FORM_GROUPED_FP4, "grouped-fp4")                                     \
    X(SC_FORM_ATTENTION, "attention")                                         \
    X(SC_FORM_ATTENTION_WINDOW, "attention-window")                           \
    X(SC_FORM_ATTENTION_LATENT,                                               \
      "attention-latent") /* values have smaller    \
                                                        heads than keys */                         \
    X(SC_FORM_ATTENTION_FP8, "attention-fp8")                                 \
    X(SC_FORM_QUANTIZE, "quantize") /* cast to 8 bits by a known scale */     \
    X(SC_FORM_AMAX, "amax")         /* largest absolute value */              \
    /* only for kernels alone */                                              \
    X(SC_FORM_GEMM_FP32, "gemm-fp32") /* on vector units */                   \
    X(SC_FORM_BMM_FP32, "bmm-fp32")   /* the same, batched */                 \
    X(SC_FORM_CONV, "conv")                                                   \
    X(SC_FORM_ELEMENT, "elementwise")                                         \
    X(SC_FORM_SOFTMAX, "softmax")                                             \
    X(SC_FORM_NORM, "norm")                                                   \
    X(SC_FORM_RMS_NORM, "rms-norm")                                           \
    X(SC_FORM_ROPE, "rope")                                                   \
    X(SC_FORM_GATE, "gated-activation")                                       \
    X(SC_FORM_LOOKUP, "lookup")

#define SC_FORM_ENUM(id, name) id,

typedef enum sc_form_kind { SC_FORMS(SC_FORM_ENUM) SC_N_FORMS } sc_form_kind;

#undef SC_FORM_ENUM

extern const char *const sc_form_names[]; /* NULL ends */

/* Constants of the physical model.  Products use those above the line of
 * attention, casts `start` and `memory`. */
typedef struct sc_form_constants {
    double start;   /* s: launch, first loads, last stores */
    double memory;  /* fraction of the datasheet's memory bandwidth */
    double blend;   /* exponent p of (compute^p + memory^p)^(1/p) */
    double depth;   /* prologue of a tile as extra depth, elements; attention:
                      prologue of 128 queries as keys, in units of 128 */
    double rate[3]; /* fraction of the peak that tiles of 256 x 128, of 128 x
                       128 and smaller ones reach; attention: [0] with heads of
                       128, [1] head size / 128 whose products take as long as
                       the exponentials, [2] more prologue with a window */
    /* Kernels over rows: rate[0]: fraction of the clocks in which schedulers
     * issue, where instructions limit; depth: more time of rows that do not start at 32 bytes;
     * rate[1]: the same per thread without a value; rate[2]: the part of the
     * bytes `again` that counts. */
} sc_form_constants;

#define SC_FORM_CONSTANTS 7

/* Corrections at 2^(first + i) of each axis; count 0: none. */
typedef struct sc_form_table {
    int first[3];
    uint32_t count[3];
    const int16_t *log; /* [count[0]][count[1]][count[2]], in thousandths */
} sc_form_table;

typedef struct sc_form {
    sc_form_constants c;
    sc_form_table table;
    uint32_t rows;  /* of measured kernels; 0: not fitted */
    double error;   /* mean |predicted / measured - 1| of shapes that the fit
                      lacks (five folds); NaN */
    double host;    /* s that a row which the host launched takes in addition */
    double least;   /* s that no such row falls below */
    uint32_t tiles; /* bits of sc_form_tiles that the library uses; 0: all */
    /* Time of products on vector units over that of others, if their depth
     * [0] or their columns [1] are a multiple of 8. */
    double whole[2];
    const sc_device *device; /* that has the rows; NULL: a class */
} sc_form;

/* A form of one device. */
typedef struct sc_form_own {
    const sc_device *device;
    sc_form_kind kind;
    const sc_form *form;
} sc_form_own;

typedef struct sc_forms {
    const sc_form *at[SC_N_FIT_CLASSES][SC_N_FORMS]; /* NULL: not fitted */
    uint32_t n_own;
    const sc_form_own *own; /* [n_own] of single devices */
    uint64_t hash;
} sc_forms;

/* What a form needs of a device. */
typedef struct sc_form_device {
    double units;     /* streaming multiprocessors or the like */
    double flops;     /* dense peak in the kernel's precision */
    double bandwidth; /* datasheet, bytes/s */
} sc_form_device;

typedef struct sc_form_product {
    double m, n, k, batch;
    double bytes;   /* operands and result, all batches */
    double split;   /* largest number of parts of the depth */
    double array;   /* side of a systolic array; 0: none */
    uint32_t tiles; /* of products on vector units: bits of their tiles; 0: all
                     */
} sc_form_product;

/* Rows of at most so many values stay in registers in PyTorch's softmax. */
#define SC_NARROW_ROW 1024

/* A kernel that reads and writes rows. */
typedef struct sc_form_rows {
    double width; /* values in a row; 1: an element-wise kernel */
    double bytes; /* each tensor once */
    double again; /* bytes that are read again and miss the L2 */
    double waste; /* threads without a value over those with one */
    double
        issue; /* s that all instructions take, one per scheduler and clock */
    bool odd;  /* rows do not start at 32 bytes */
} sc_form_rows;

/* A convolution that is priced as the fastest of several algorithms. */
typedef struct sc_form_conv {
    double m, n, k; /* of the implicit product */
    double seconds; /* by the physical models of the algorithms */
} sc_form_conv;

typedef struct sc_form_attention {
    double queries, keys, heads; /* heads: of all samples, on this device */
    double size;                 /* of queries' and keys' heads */
    double values;               /* of values' heads */
    double band;                 /* window of keys; 0: none */
    bool causal;
    double exponentials; /* time of one over that of the class; 1 */
    double bytes;
} sc_form_attention;

/* The shape of a kernel that has a form. */
typedef struct sc_form_use {
    sc_form_kind kind;
    sc_fit_class fit;
    sc_form_device on;
    double at[3]; /* position in the table of corrections, log2 */

    union {
        sc_form_product product;
        sc_form_attention attention;
        sc_form_rows rows;
        sc_form_conv conv;
        double bytes; /* of casts */
    };
} sc_form_use;

bool sc_form_is_attention(sc_form_kind kind);
bool sc_form_is_cast(sc_form_kind kind);
bool sc_form_is_vector(sc_form_kind kind); /* a product on vector units */
bool sc_form_is_rows(sc_form_kind kind);

/* Sets `use->at` from the shape. */
void sc_form_place(sc_form_use *use);

/* Seconds by the physical model, without corrections. */
double sc_form_physical(const sc_form_constants *c, const sc_form_use *use);

/* Seconds of a kernel alone: physical time times all corrections. */
double sc_form_seconds(const sc_form *f, const sc_form_use *use);

/* What `whole` of the form says of a product; 1 for other kinds. */
double sc_form_whole(const sc_form *f, const sc_form_use *use);

/* exp of the correction at this position; the edges extend outwards. */
double sc_form_factor(const sc_form_table *t, const double at[3]);

/* The eight corners of the cell around a position and their weights, which sum
 * up to one. */
void sc_form_corners(const sc_form_table *t, const double at[3],
                     uint32_t index[8], double weight[8]);

/* The kind whose form replaces a missing one of this kind; -1: none. */
int sc_form_nearest(sc_form_kind kind);

/* The form that prices this kind on this class: fitted, or the nearest kind's,
 * or stated constants without a table. */
const sc_form *sc_form_of(const sc_forms *forms, sc_fit_class fit,
                          sc_form_kind kind);

/* The form of this device, or that of the measured device that is most like it;
 * NULL: no device has one. */
const sc_form *sc_form_own_of(const sc_forms *forms, const sc_device *d,
                              sc_form_kind kind);

/* Tiles of products on vector units. */
#define SC_FORM_TILES 8

/* Constants of convolutions on vector units, as implicit products. */
extern const sc_form_constants sc_form_vector_conv;

/* Reads the text of data/fit/kernels.yml; `out` in the arena. */
sc_status sc_forms_read(const char *text, size_t len, const char *file,
                        sc_arena *a, const sc_forms **out, sc_err *err);
/* The same from a parsed file. */
sc_status sc_forms_tree(const sc_node *root, const char *file, sc_arena *a,
                        const sc_forms **out, sc_err *err);

#endif
