/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_strategy.h - strategy.yml: a user's description of how a model is split.
 *
 * Three layers, each optional: a named mesh with presets; rules by glob on
 * module paths that split iteration dims, place tensors, recompute; pipeline,
 * overlap and pools.  Rules of the file override those of presets.  If several
 * rules match, the one with more literal characters applies, and among equals
 * the later one.  docs/strategy-file.md has the keys.
 *
 * A strategy holds the keys as written, with positions.  sc_strategy_to_job()
 * copies those that a job has, too, into an sc_job; the plan resolves rules
 * together with those of the presets.
 */
#ifndef SC_PLAN_STRATEGY_H
#define SC_PLAN_STRATEGY_H

#include "model/model.h"
#include "plan/plan_axes.h"

#define SC_MESH_AXES 12

/* Mesh axes as a list in one word, four bits each, axis + 1, first lowest. */
typedef uint64_t sc_axes;

typedef struct sc_mesh_axis {
    const char *name; /* "tp" */
    uint32_t size;
    sc_pos pos;
    sc_axis is; /* SC_AX_OTHER: only rules use it */
} sc_mesh_axis;

/* Part of an operator that a rule splits. */
typedef enum sc_rule_tensor {
    SC_RT_OP, /* the iteration space, which determines all its tensors */
    SC_RT_WEIGHT,
    SC_RT_BIAS,
    SC_RT_GRAD, /* of weights and biases */
    SC_RT_OPTIM,
    SC_RT_OUT,
    SC_RT_OUT_GRAD,
    SC_RT_IN, /* input `input` */
    SC_N_RULE_TENSORS
} sc_rule_tensor;

extern const char *const sc_rule_tensor_names[]; /* "op" "weight" ... */

/* Memories by distance from the device. Devices update states in their
 * expanded memory (sc_expanded) themselves, hosts those in farther ones. */
typedef enum sc_tier {
    SC_TIER_DEVICE,
    SC_TIER_EXPANDED,
    SC_TIER_CPU,
    SC_TIER_NVME
} sc_tier;

extern const char *const sc_tier_names[]; /* "device" "expanded" "cpu" "nvme" */

/* Memories that keep offloaded weights and activations; -1 is SC_OFFLOAD_CPU. */
typedef enum sc_offload_to {
    SC_OFFLOAD_CPU,
    SC_OFFLOAD_NVME,
    SC_OFFLOAD_EXPANDED
} sc_offload_to;

extern const char *const sc_offload_to_names[]; /* "cpu" "nvme" "expanded" */

sc_tier sc_offload_tier(int to);

/* Blocks of a stage that are recomputed, as in Megatron-LM's
 * --recompute-method.  uniform: all, in groups that keep only the input of the
 * first block; block: only a number of first blocks, one by one. */
typedef enum sc_rc_method { SC_RCM_UNIFORM, SC_RCM_BLOCK } sc_rc_method;

extern const char *const sc_rc_method_names[]; /* "uniform" "block" */

typedef struct sc_rule_split {
    const char *dim; /* of an operator: iteration dim; of a tensor: its dim by
                        name, or "dim0" "dim1" ... */
    sc_axes axes;    /* none: left whole */
    sc_pos pos;
} sc_rule_split;

typedef struct sc_strategy_rule {
    const char *match; /* glob on paths; subtrees match too */
    sc_pos pos;
    const char *origin;    /* "strategy.yml:12" or "preset megatron" */
    sc_rule_tensor tensor; /* what `split` divides */
    uint32_t input;
    uint32_t n_split;
    sc_rule_split *split; /* [n_split] */
    bool has_split;       /* `split: {}`, too, means not split */
    int recompute;        /* 0, 1; -1: not given */
    uint32_t rc_group;    /* blocks recomputed together; 0: one by one */
    uint32_t rc_first;    /* recompute only so many blocks of a stage; 0: all */
    bool over_stages;     /* a split over pp, which the network has already */
    int tier;             /* sc_tier that stores the tensor; -1: not given */
    bool round_robin;     /* `assign: round_robin`: each matching operator runs
                             unsplit on the next rank of `axes` */
    bool balanced;        /* with round_robin, `assign: balanced`: operators are
                             cut by rows and columns to balance the ranks */
    sc_axes assign;
    /* `devices: {pp: 1}`: coordinates on some axes; `devices: pool.h100` */
    uint32_t n_at;

    struct {
        uint8_t axis;
        uint32_t coord;
    } at[SC_MESH_AXES];

    const char *pool; /* NULL: none */
    /* For rules of presets: the roles of the operators to match and the usual
     * name of these operators; 0, NULL: all that match the path. */
    uint32_t roles;
    const char *called;
    bool where_divides; /* a dim that is not divisible stays unsplit */
} sc_strategy_rule;

typedef enum sc_cut_kind {
    SC_CUT_EVEN,
    SC_CUT_LIST,
    SC_CUT_BALANCED
} sc_cut_kind;

typedef struct sc_strategy_cut {
    const char *path; /* first operator or module of the next stage; NULL: */
    uint32_t blocks;  /* blocks of this stage */
    sc_pos pos;
} sc_strategy_cut;

/* Devices of one kind in a cluster with several kinds, as a number of pipeline
 * stages or of replicas. */
typedef struct sc_strategy_pool {
    const char *name;
    const char *device; /* catalogue name */
    uint32_t stages;    /* pipeline stages on it; 0: not by stages */
    uint32_t replicas;  /* data-parallel replicas on it; 0: not by replicas */
    uint32_t micro_batches; /* of each replica per step; 0: equal */
    sc_pos pos;
} sc_strategy_pool;

typedef struct sc_strategy {
    const char *file;
    const sc_node *doc; /* as written: positions of single keys */
    const char *model, *cluster, *software; /* NULL: not given */
    sc_pos model_pos, cluster_pos;
    uint32_t n_axes;
    sc_mesh_axis axis[SC_MESH_AXES]; /* outer to inner */
    sc_pos mesh_pos;
    /* batch; 0: not given */
    int64_t global, micro, seq;
    int precision;         /* -1, sc_recipe */
    const char *optimizer; /* "adam" "sgd" ...; NULL: not given */
    /* preset */
    int tensor_parallel;  /* -1, 0 none, 1 megatron, 2 megatron-sp */
    bool experts_over_tp; /* experts are split over tp, too */
    int64_t zero;         /* -1 */
    int zero_axis;        /* index into `axis`; -1: dp */
    int recompute;        /* -1, sc_recompute */
    int rc_method;        /* -1, sc_rc_method of `recompute: full` */
    int64_t rc_blocks;    /* blocks of that method; 0: not given, 1 */
    int context_parallel; /* -1, sc_cp_comm */
    bool data_parallel;   /* samples are split over dp, fsdp, ep and rep */
    /* pipeline */
    int schedule;              /* -1, sc_schedule */
    const char *schedule_file; /* NULL */
    int64_t virtual_stages;    /* 0 */
    uint32_t n_in_flight;
    const uint32_t *in_flight; /* [n_in_flight], per stage; 0: auto */
    sc_cut_kind cuts;
    uint32_t n_cuts;
    sc_strategy_cut *cut; /* [n_cuts] */
    /* overlap */
    double grad_bucket;                        /* bytes; 0: not given */
    int grad_overlap, p2p_overlap, tp_overlap; /* -1, 0, 1 */
    double gamma;                              /* NaN: the model's own rates */
    /* offload and checkpoints */
    double offload_activations; /* fraction; -1: not given */
    double offload_weights;     /* fraction; 0: none */
    int offload_to;             /* sc_offload_to of both; -1: not given */
    int optimizer_tier;         /* sc_tier; -1 */
    int64_t checkpoint_every;   /* steps; 0: none */
    bool checkpoint_async;
    int checkpoint_tier; /* sc_tier that is written first */
    uint32_t n_pools;
    sc_strategy_pool *pool; /* [n_pools] */
    uint32_t n_rules;
    sc_strategy_rule *rule; /* [n_rules], as written */
} sc_strategy;

void sc_strategy_init(sc_strategy *s);

/* Reads the text of a file.  Reports all errors at once, each with its
 * position: unknown keys, unknown axes and dims, an axis used twice by one
 * rule, a mesh without axes, contradictions between keys. */
sc_status sc_strategy_read(const char *text, size_t len, const char *file,
                           sc_arena *a, sc_strategy *out, sc_err *err);
/* Reads a file; relative paths in it start at its directory. */
sc_status sc_strategy_load(const char *path, sc_arena *a,
                           const sc_strategy **out, sc_err *err);

/* Position of a key: "preset" and "zero" find `preset: {zero: 1}`; NULL finds a
 * key outside of sections.  If the key is missing: position of the file. */
sc_pos sc_strategy_pos(const sc_strategy *s, const char *section,
                       const char *key);

int sc_strategy_axis(const sc_strategy *s, sc_axis axis); /* -1: none */
/* Appends an axis to the mesh. */
void sc_strategy_add_axis(sc_strategy *s, sc_axis axis, uint32_t size);
sc_axes sc_axes_add(sc_axes list, uint32_t axis);
uint32_t sc_axes_mask(sc_axes list);
/* Ranks of the mesh. */
uint64_t sc_strategy_ranks(const sc_strategy *s);
/* The mesh's axes whose bits (1 << sc_axis) are in `mask`, in its order. */
sc_axes sc_strategy_axes(const sc_strategy *s, uint32_t mask);
/* Those of the axes rep, dp, fsdp and ep that the mesh has: samples are split
 * over them unless the strategy has `data_parallel: false`. */
sc_axes sc_strategy_samples(const sc_strategy *s);
/* Number of parts into which samples are split, over these axes and over those
 * of rules. */
uint64_t sc_strategy_replicas(const sc_strategy *s);

/* Whether what it leaves open can be searched for: all axes among those of
 * plan.h in their order, rules of dims and tensors of layers.  Else `why` (may
 * be NULL) gets the first thing that the search lacks. */
bool sc_strategy_searchable(const sc_strategy *s, const char **why, sc_pos *at);

/* Number of ranks from one coordinate of an axis to the next, and a rank's
 * coordinate.  For axis -1 they are 1 and 0. */
uint32_t sc_strategy_stride(const sc_strategy *s, int axis);
uint32_t sc_strategy_coordinate(const sc_strategy *s, int axis, uint32_t rank);
/* Size of an axis; 1 if the mesh lacks it. */
uint64_t sc_strategy_degree(const sc_strategy *s, sc_axis axis);

/* Stages per device, from `virtual` or the number of cuts; 0: not given. */
uint32_t sc_strategy_chunks(const sc_strategy *s);

/* The model that sc_plan_build() needs for this strategy: blocks that rules
 * treat differently become kinds of their own; without such blocks it is `m`.
 * Errors at the rule: SC_C_UNKNOWN_NAME with the nearest path if it matches no
 * operator, or none that has its dim; SC_C_TOO_BIG beyond SC_LAYERS kinds. */
sc_status sc_strategy_model(const sc_strategy *s, const sc_model *m,
                            sc_arena *a, const sc_model **out, sc_err *err);

/* As sc_path_match() and sc_path_specificity(), but every path below a match
 * matches, too. */
bool sc_rule_matches(const char *glob, const char *path);
size_t sc_rule_specificity(const char *glob);
#endif
