/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_software.h - profiles of training frameworks: properties of a version
 * that change the time of a step, such as its kernels, its overlaps and the
 * precision of stored values and reductions.  data/software/ has the profiles
 * with their sources; a user may name one or override single keys.
 */
#ifndef SC_PLAN_SOFTWARE_H
#define SC_PLAN_SOFTWARE_H

#include "cost/cost.h"

typedef enum sc_stage_split {
    SC_SPLIT_BALANCED,
    SC_SPLIT_CEIL,
    SC_SPLIT_COST /* a stage ends with the block that exceeds its part of the
                     cost of all blocks and the head */
} sc_stage_split;

/* Part of a step that CUDA graphs (recorded launches) cover. */
typedef enum sc_capture {
    SC_CAPTURE_NONE,   /* everything is issued one by one from Python */
    SC_CAPTURE_LAYERS, /* everything in a layer except its experts */
    SC_CAPTURE_STEP
} sc_capture;

extern const char *const sc_capture_names[]; /* NULL ends */

/* Delayed scales come from past steps, so one kernel casts many tensors.
 * Current scales need the maximum of the tensor itself first. */
typedef enum sc_fp8_scaling { SC_FP8_DELAYED, SC_FP8_CURRENT } sc_fp8_scaling;

/* Memory that a program reports. */
typedef enum sc_memory_report {
    SC_REPORT_DEVICE,    /* all memory in use on the device */
    SC_REPORT_ALLOCATOR, /* memory of the allocator: no context or libraries */
    SC_REPORT_ALLOCATED, /* what of it tensors use: no reserve either */
    SC_REPORT_FIRST      /* the same of the first stage alone */
} sc_memory_report;

/* Communication by which context-parallel attention gets all keys. */
typedef enum sc_cp_comm {
    SC_CP_RING,      /* keys and values pass round, overlapped with attention */
    SC_CP_ALLGATHER, /* gathered before it */
    SC_CP_ULYSSES    /* tokens exchanged for heads by all-to-all */
} sc_cp_comm;

extern const char *const sc_cp_comm_names[]; /* NULL ends */

/* Most layers that are gathered ahead. */
#define SC_PREFETCH_MAX 64

/* Most keys of a profile that are parameters of the fit. */
#define SC_FITTED_KEYS 8

/* What a program does unless an option of the job says otherwise: a profile has
 * a value for each, a job a negative one where it leaves the profile's.  A new
 * one is a field here, a row of sc_software_keys and one of sc_job_keys, and
 * the code on which it acts. */
#define SC_PROGRAM_OPTION_FIELDS                                               \
    int64_t                                                                    \
        prefetch; /* layers that ZeRO-3 gathers ahead of the current one */    \
    int cp_comm;  /* sc_cp_comm */                                             \
    int grad_overlap;     /* gradient exchange overlaps the backward pass */   \
    int tp_overlap;       /* TP exchanges overlap matrix products */           \
    int ep_overlap;       /* token dispatch overlaps other micro-batches */    \
    int capture;          /* sc_capture */                                     \
    int fused_accumulate; /* products add to the gradient themselves */        \
    int fused_experts;    /* biases, clamps and activations of experts       \
                             inside their grouped products */ \
    int low_attention;    /* attention in FP8 beside products in FP8 */        \
    int low_params;       /* weights are kept and gathered as operands */      \
    int64_t etp; /* ranks of tp over which an expert is split; 0: all */

typedef struct sc_program_options {
    SC_PROGRAM_OPTION_FIELDS
} sc_program_options;

/* Member of a struct that has these options, as `program` and each by its
 * name. */
#define SC_PROGRAM_OPTIONS           \
    union {                          \
        sc_program_options program;  \
        struct {                     \
            SC_PROGRAM_OPTION_FIELDS \
        };                           \
    }

typedef struct sc_software {
    const char *name, *title, *source;
    const struct sc_software *base; /* gives missing keys; may be NULL */
    bool open; /* the default profile, or the nearest: options that it does not
                  list are allowed */
    const char
        *nearest;     /* why it replaces an unknown name; NULL: it does not */
    const char *date; /* of the release: 2025-02; NULL: unknown */
    const char **vendor;   /* of the devices of its measured rows; NULL ends */
    const char **read_off; /* keys whose numbers were read off measured rows of
                              the program and no fit changes; NULL ends */
    bool unread;           /* by sc_software_unread() */
    /* Supported features, to which the search is limited.  As written: */
    const char **axis, **schedule, **zero_stage, **recompute, **cp_kind;
    /* and as bits of sc_axis, sc_schedule, stages, sc_recompute, sc_cp_comm: */
    uint32_t axes, schedules, zero_stages, recomputes, cp_kinds;
    SC_PROGRAM_OPTIONS;
    bool sequence_parallel; /* activations that TP replicates are split by
                               tokens */
    int recipe;             /* default sc_recipe + 1; 0: that of the device */
    int attention;          /* sc_attention_kernel */
    bool fused_softmax;     /* Megatron's scale-mask-softmax kernel where its
                               conditions hold */
    bool pad_head_dim;      /* attention pads head dims 65..127 to 128 */
    bool param_overlap;     /* ZeRO gathers overlap the forward pass */
    bool p2p_overlap;       /* pipeline transfers overlap compute if stages are
                               interleaved */
    bool p2p_scatter;       /* transfers split over TP ranks and re-gathered */
    bool step_ahead;        /* the host issues the next step without waiting
                               for this one's norm and loss */
    bool early_stop;        /* recomputation skips unneeded operators */
    bool grouped_loop;      /* products of experts issued one by one */
    int fp8_scaling;        /* sc_fp8_scaling, of one scale per tensor */
    const char *mxfp8;      /* profile that replaces this one with MXFP8 */
    const char *nvfp4;      /* the same with NVFP4 */
    const char *zero1;      /* the same with ZeRO-1 */
    bool fused;             /* a compiler computes element-wise operators in the
                               kernels that make their inputs */
    bool single_pass;       /* element-wise operators have kernels that move
                               each operand once */
    bool spatial;           /* positions of images split over a node's ranks */
    bool fused_cast;        /* casts to low precision fused with neighbours */
    bool low_gather;        /* operands are cast to low precision before they
                               are gathered over tp */
    bool tp_async;          /* in the backward pass, exchanges over tp run
                               during the layer's other product */
    int64_t tp_pieces;      /* parts in which tp_overlap scatters a result; 0:
                               one for each rank */
    bool benchmark;         /* made for one benchmark: never a default */
    bool unfitted;          /* only its own fitted keys are fitted to its rows:
                               its facts are not checked, or a mechanism of its
                               runs is missing */
    bool dedup_dispatch;    /* a token is sent once per rank, not per expert */
    double filled;          /* mean fraction of an encoder's samples that is not
                               padding, if only this part is computed; 0 */
    int64_t tuned_tokens;   /* mean length of the documents that are packed
                               into samples for fine-tuning; 0: a sample is
                               one document */
    double attended;        /* keys of a token over the mean length of samples
                               whose padding is not computed; 0: 1.  No profile
                               has it: it follows from a job */
    bool low_activations;   /* inputs of activations kept in low precision */
    bool offload;           /* can keep activations in host memory */
    bool long_rounds;       /* rounds of interleaved schedules may be longer
                              than pp, all of equal length */
    bool stage_batches;     /* default: as many micro-batches as stages */
    bool root_group;        /* FSDP gathers embedding and head as one, for
                               the whole step */
    bool stage_gather;      /* with pipeline stages, weights stay gathered and
                               gradients unsharded until the last micro-batch */
    bool zero2_weights;     /* ZeRO-2 shards weights, too; gathered weights stay
                               from the forward to the backward pass */
    bool keep_gathered;     /* activations gathered over TP stay gathered */
    bool batch_buffers;     /* every micro-batch has its own stage buffers */
    int memory_report;      /* sc_memory_report */
    int stage_split;        /* sc_stage_split, if pp does not divide layers */
    double bucket_bytes;    /* gradient bucket; 0: one exchange at the end */
    int64_t bucket_params;  /* parameters in a bucket of up to 40 replicas; more
                               replicas enlarge it in proportion; 0:
                               bucket_bytes */
    double weight_bytes;    /* kept per parameter, in the working precision */
    double grad_bytes;      /* kept per parameter */
    double reduce_bytes;    /* per gradient element on the wire */
    double optim_bytes;     /* states and master weights per parameter */
    double update_bytes;    /* moved per parameter by the optimizer */
    double accum_bytes;     /* moved per parameter by each accumulation */
    double loss_bytes;      /* moved per logit, forward and backward */
    double logit_bytes;     /* held per logit at the peak of the loss */
    double split_logit_bytes; /* with a split vocabulary; 0: the same */
    double next_logit_bytes;  /* more per logit, with several micro-batches:
                                 saved activations of the next one take pieces
                                 of the freed logits */
    int64_t zero3_rails;      /* NICs of a node that parameter gathers use; 0:
                               all */
    bool two_gradients;       /* low-precision gradients are kept in addition to
                               FP32 sums */
    double flat_bytes;        /* staging buffers of flattened exchanges */
    double copy_bytes;        /* buckets of gradients beside their sums, per
                                 parameter, if replicas keep all states */
    int64_t exchanges_ahead;  /* most inputs of asynchronous reduce-scatters
                                 that wait for their stream, because the host
                                 runs ahead of the device */
    int64_t ahead_tp;         /* largest TP at which it does, beside stages */
    double stage_reserve;     /* activations of pipeline stages that are freed
                                 late, as a fraction of all */
    double launch_s;          /* host time of a launch; 0: the fitted one */
    double step_fixed_s;      /* per step beside kernels and links; 0: the
                                 fitted one */
    double weight_slice_s;    /* host time of ZeRO-1's gather per weight and
                                 replica */
    double stages_apart_s;    /* more host time of an exchange over TP, per
                                 member of its group, if stages are on different
                                 nodes */
    double transfer_wait_s;   /* added to a transfer between stages on different
                                 nodes ... */
    int64_t transfer_wait_nodes; /* ... in jobs of this many nodes and more */
    int64_t transfer_wait_tp;    /* ... or with TP groups of this many members
                                    and more; 0: of none */
    double idle_stages;     /* fraction of runs that do not fail, of those with
                                 stages behind the loss (sc_run_idle_stages()) */
    double memory_overhead; /* bytes of context and libraries per device */
    double fragmentation;   /* allocator reserve over allocated, fraction */
    /* Keys that the profile states as `fitted`: offsets of members, and the
     * parameter (sc_param) that has the value of each. */
    uint32_t n_fitted, fitted_offset[SC_FITTED_KEYS];
    int fitted[SC_FITTED_KEYS];
} sc_software;

extern const sc_key sc_software_keys[];

/* The value of a key of numbers at this offset: the profile's or, if it is
 * fitted, the parameter's. */
double sc_software_value(const sc_software *sw, size_t offset,
                         const sc_cost *cost);
/* The profile with the values of its base for the keys of `read_off`: what would
 * be known of the program without its rows.  A profile of the same program for
 * a recipe or ZeRO-1 that replaces it is unread too. */
sc_status sc_software_unread(const sc_software *sw, sc_arena *a,
                             const sc_software **out, sc_err *err);
/* The parameter that has the value of a key; -1: the profile has it. */
int sc_software_fitted(const sc_software *sw, size_t offset);

/* No option says anything. */
extern const sc_program_options sc_program_options_none;
/* Whether an option says anything, and the profile with what they say. */
bool sc_program_options_any(const sc_program_options *said);
void sc_program_options_apply(const sc_program_options *said, sc_software *sw);

/* `name` is a profile, or an alias with an optional year ("megatron-lm-2022",
 * "llm-foundry (composer, pytorch fsdp)" with `date` "2023").  NULL or ""
 * gives the default profile. */
sc_status sc_software_find(const char *name, const char *date, sc_pos pos,
                           sc_arena *a, const sc_software **out, sc_err *err);
/* So many measured rows are preferred in a program that is assumed. */
#define SC_DEFAULT_ROWS 5

/* The program that is assumed on devices of a generation: the newest with
 * SC_DEFAULT_ROWS measured rows on them that a fit uses, else with any, no
 * variant of another and made for no benchmark. With a date (YYYY-MM; NULL or "": none) it is no newer, if there is
 * such a program. NULL: none has rows. */
sc_status sc_software_default(const sc_held_out *rows, const char *arch,
                              const char *date, sc_arena *a, const char **name,
                              sc_err *err);
/* As sc_software_find(), but an unknown name is the nearest profile, and
 * `nearest` says which and why: the one whose names share most words with it, of
 * the nearest date (YYYY-MM; NULL or "": that of the version in the name), else
 * the newest measured on devices of the same vendor. Without a name it is
 * sc_software_default() of the device's generation, else the default of its
 * vendor; `device` may be NULL. */
sc_status sc_software_nearest(const char *name, const char *date,
                              const sc_device *device, sc_pos pos, sc_arena *a,
                              const sc_software **out, sc_err *err);
/* Reads a profile of one's own: keys of a profile, and `base`, the profile that
 * gives the rest (the default one).  sc_software_find() reads a name that ends
 * with .yml or .yaml as such a file. */
sc_status sc_software_read(const char *text, size_t len, const char *file,
                           sc_arena *a, const sc_software **out, sc_err *err);
/* Bytes of a bucket of gradients or updated weights with `each` bytes per
 * element, exchanged among `replicas`; 0: one exchange at the end.  `units`:
 * each layer is a bucket. */
double sc_software_bucket(const sc_software *sw, bool units, double replicas,
                          double each);
sc_status sc_software_list(sc_arena *a, const char ***names, uint32_t *n,
                           sc_err *err);
#endif
