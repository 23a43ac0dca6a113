/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer.h - shared by the files that infer, from a strategy, the layout of
 * every tensor of a network and the exchanges that follow.
 *
 *   infer_vocabulary.c rewrites a vocabulary that is split over stages
 *   infer_roles.c      finds the role of each operator in tensor parallelism
 *   infer_alike.c      finds operators that the same rules match, and units
 *   infer_rules.c      applies presets and rules to operators
 *   infer_spread.c     spreads splits to operators that no rule mentions
 *   infer_keep.c       chooses the layouts of tensors between operators
 *   infer_uneven.c     finds dims that axes do not divide evenly
 *   infer_halo.c       adds exchanges of halos and statistics between parts
 *   infer_cut.c        cuts the network into pipeline stages
 *   infer_places.c     puts operators on some ranks of a stage
 *   infer_program.c    adds values and items to the program
 *   infer_memo.c       prices kernels, each once
 *   infer_groups.c     finds and prices the communicators of exchanges
 *   infer_exchange.c   converts a value from one layout to another
 *   infer_weights.c    gathers weights for use
 *   infer_saved.c      adds what operators save besides their results
 *   infer_forward.c    runs operators in the forward pass
 *   infer_backward.c   runs operators in the backward pass
 *   infer_buckets.c    reduces gradients in buckets
 *   infer_gradients.c  updates weights; sums gradients of tied weights
 *   infer.c            runs all of these in order
 *   infer_levels.c     compiles repeated layers once
 */
#ifndef PLAN_INFER_H
#define PLAN_INFER_H

#include "plan/layout.h"
#include "plan/program.h"

/* An extra dim of layouts, after the dims of the tensor: the index of operators
 * that ranks run round-robin (`assign: round_robin`). */
#define INFER_RR_DIM SC_TENSOR_DIMS

typedef struct infer_rule {
    const sc_strategy_rule *r;
    bool file;        /* from the strategy file; stronger than presets */
    bool matched;     /* its pattern matched an operator's path */
    bool matched_any; /* it applied to something that the operator has */
    bool refused;     /* it is illegal, and the error is reported */
    bool repeats;     /* it makes an operator be recomputed */
    /* Of the results [0] and weights [1] that it assigns round-robin: the rank
     * that holds most of them, and how many elements. */
    uint32_t fullest[2];
    double fullest_elements[2];
} infer_rule;

/* Weights of an operator that can be gathered together with others. */
#define INFER_REGATHERED 4

/* One operator under the strategy. */
typedef struct infer_node {
    uint32_t n_match;
    const uint32_t *match; /* [n_match] rules, weakest first */
    sc_axes split[SC_ITER_DIMS];
    const infer_rule *by[SC_ITER_DIMS]; /* rule that split it; NULL: none did */
    uint32_t decided;                   /* bit per axis whose split is final */
    sc_axes rr_axes; /* one rank of these axes runs the whole operator */
    uint32_t place;  /* index + 1 into inference.place if `devices:` names
                         that rank; 0: round-robin */
    const infer_rule *rr_rule;
    uint32_t rr_index; /* its index among the operators of its rule */
    uint32_t stage;
    uint32_t segment; /* recomputed segment that it is in; SC_NONE */
    bool recomputed;  /* its recomputation has been added */
    /* by phase: gathered weights, value + 1 */
    uint32_t regathered[2][INFER_REGATHERED];
    uint32_t around; /* of a window: value + 1 of neighbours' positions */
    uint32_t spared; /* value + 1: the part of its result that is saved */
    uint32_t unread; /* value + 1: saved though nothing reads it */
} infer_node;

/* Ranks of a stage with these coordinates. */
typedef struct infer_spot {
    uint32_t axes; /* bit per axis */
    uint32_t coord[SC_MESH_AXES];
} infer_spot;

/* A tensor between operators. */
typedef struct infer_kept {
    layout l, grad;
    const char *origin; /* of the rule that asked for `l`; NULL: none did */
    const char *grad_origin;
    bool learns; /* needs a gradient */
    uint32_t n_readers;
    const uint32_t *reader; /* [n_readers] operators that read it, rising */
} infer_kept;

/* A dim of a tensor that axes divide into unequal parts.  The first ranks have
 * the larger parts, and all ranks wait for them. */
typedef struct infer_uneven {
    uint32_t units; /* indivisible parts; 0: all parts are equal */
    uint32_t axes;  /* bit per axis that divides it */
} infer_uneven;

/* A value that holds a tensor in some layout on a stage. */
typedef struct infer_form {
    struct infer_form *next;
    uint32_t value, stage;
    uint32_t by; /* of a gradient: operator that made it */
    bool lasts;  /* lives until the backward pass; else freed after use */
    double part; /* of a gradient: fraction of the tensor's elements */
    layout l;
} infer_form;

/* Gradients of one weight on one stage. */
typedef struct infer_wgrad {
    uint32_t tensor, stage;
    uint32_t op, port; /* the last use that added to it */
    layout used, made, want, state, kept;
    const char *origin;
    bool parts; /* kept sharded */
    bool once;  /* exchanged once a step */
    /* made in the format of values, then cast for the exchange of its unit or
     * for the sum over micro-batches */
    bool cast;
    bool tied; /* summed over stages */
    uint32_t n_values, cap_values;
    uint32_t *value; /* [n_values] one per use */
    uint32_t n_reduced;
    const uint32_t
        *reduced;    /* [n_reduced] gradients that the optimizer reads */
    uint32_t before; /* index + 1 of the same weight on another stage */
    uint32_t last;   /* item that made the last value */
} infer_wgrad;

/* Values (+ 1; 0: none) that a forward pass saves besides the result. */
typedef struct infer_saved {
    uint32_t own[SC_OP_OWN]; /* masks, sums of rows */
    uint32_t copy;           /* its first input as it is kept */
} infer_saved;

/* Position of an item in the program. */
typedef struct infer_order {
    uint32_t stage, phase, place, item;
} infer_order;

/* Counts at the moment when the compiler reached an operator. */
typedef struct infer_mark {
    uint32_t values, items, exchanges, wgrads;
} infer_mark;

typedef struct inference {
    const sc_net_run *job;
    const sc_net *g;
    const sc_strategy *s;
    const sc_rules *rules;
    sc_arena *a;
    sc_net_plan *p;
    sc_err *err;
    layout_mesh mesh;
    uint32_t stride[SC_MESH_AXES];
    int pp, tp, cp;   /* axes; -1 */
    uint32_t ep_axis; /* bit of that axis; of those of replicas */
    uint32_t replica_axes;
    double replicas;
    uint32_t devices; /* along pp */
    sc_schedule schedule;
    uint32_t chunks; /* stages that a device holds */
    uint32_t n_stages;
    double samples; /* of a micro-batch on all replicas */
    uint32_t n_rules;
    infer_rule *rule;     /* [n_rules] weakest first */
    infer_node *node;     /* [g->n_ops] */
    const uint32_t *role; /* [g->n_ops] bits of infer_role */
    const uint32_t *unit; /* [g->n_ops] number of the block, or module beside
                             blocks; neighbours' differ by 1 */
    /* [whole network's n_ops] the first operator that the same rules match */
    const uint32_t *equal_op;
    const uint32_t *whole_op; /* [g->n_ops] operator of the whole network; NULL:
                                 this is the whole network */
    uint32_t n_places, cap_places;
    infer_spot *place;    /* [n_places] that rules name */
    infer_kept *kept;     /* [g->n_tensors] */
    bool ragged;          /* a rule cuts a dim in parts of unequal size */
    infer_uneven *uneven; /* [n_tensors * SC_TENSOR_DIMS] if so; NULL */
    infer_form **fwd;     /* [g->n_tensors] forms made in the forward pass */
    infer_form **bwd;     /* forms that the backward pass made or recomputed */
    sc_op_held *kernel_memory; /* [g->n_ops] */
    double *elements;      /* [g->n_tensors] of infer_elements(); 0: unknown */
    infer_saved *saved[2]; /* [g->n_ops] by phase that made them */
    infer_form **grad;     /* gradients that consumers have made */
    uint32_t *depth;       /* [g->n_ops] of the backward pass */
    uint32_t n_wgrads, cap_wgrads;
    infer_wgrad *wgrad;
    uint32_t *wgrad_of; /* [g->n_tensors] the latest of a weight, + 1 */
    net_program *prog;
    infer_order *order; /* [n_items] */
    uint32_t cap_values, cap_items, cap_order, cap_exchanges;
    struct infer_groups **groups; /* of all levels (infer_levels.c) */
    struct infer_memo *memo;
    double hidden_s; /* seconds of the last product for inputs */
    bool no_memory;
    /* Of a folded network (fold.h), else NULL: */
    const uint32_t *stage_as; /* [n_stages] number among those that are left */
    infer_mark *mark[2]; /* [n_ops + 1] of the forward pass by operator, of the
                         backward pass from the last one */
} inference;

/* ---- infer_roles.c */

typedef enum infer_role {
    INFER_COLUMN = 1, /* a product that tensor parallelism divides by columns */
    INFER_ROW = 2,    /* and the one behind it, by rows */
    INFER_TABLE = 4,  /* word embedding, divided by rows */
    INFER_LOSS = 8,   /* loss of scores that are divided by classes */
    INFER_POSITIONS =
        16,             /* all between these: sequence parallelism divides it */
    INFER_EXPERTS = 32, /* works on tokens that were sent to experts */
    INFER_ATTENTION = 64
} infer_role;

sc_status infer_roles(inference *f);

/* ---- infer_vocabulary.c */

/* The run itself, or an equivalent one in which nothing is split over pp. */
sc_status infer_vocabulary(const sc_net_run *job, sc_arena *a,
                           const sc_net_run **out, sc_err *err);

/* ---- infer_alike.c */

sc_status infer_number_units(inference *f);
sc_status infer_alike(inference *f);
/* The first operator of the whole network that the same rules match. */
uint32_t infer_equal_op(const inference *f, uint32_t op);

/* ---- infer_rules.c, infer_presets.c */

/* Presets as rules, which are appended to `out`. */
typedef struct infer_list {
    uint32_t n, cap;
    sc_strategy_rule *rule;
} infer_list;

sc_status infer_presets(inference *f, infer_list *out);
sc_status infer_rules(inference *f);
/* Collects the rules that matched, to be shown. */
sc_status infer_expansion(inference *f);
/* The rule of highest priority that places a tensor of an operator, or NULL. */
const infer_rule *infer_stated(const inference *f, uint32_t op,
                               sc_rule_tensor what, uint32_t input);
/* The memory tier (sc_tier) in which the tensor is kept.  `said` (may be NULL)
 * is set to whether a rule names the tier. */
int infer_tier(const inference *f, uint32_t op, sc_rule_tensor what,
               bool *said);
/* Number of parts that a list of axes makes. */
uint32_t infer_parts(const inference *f, sc_axes list);
sc_axes infer_without(sc_axes list, uint32_t mask);
/* Iteration dim by name; -1: none. */
int infer_iter_named(const inference *f, const sc_net_op *o, const char *name);
/* Origin of the rule of highest priority that splits an operator, or NULL. */
const char *infer_by(const inference *f, uint32_t op);

/* ---- infer_spread.c, infer_keep.c, infer_cut.c */

/* infer_pools.c: checks that the machine has the devices of all pools. */
sc_status infer_pools(const inference *f);
/* A pool by name, with its first stage or replica; NULL if there is none. */
const sc_strategy_pool *infer_pool(const inference *f, const char *name,
                                   uint32_t *first);
/* The device of a stage; if its ranks differ, one that is as slow as any. */
const sc_device *infer_slowest(const inference *f, uint32_t stage);

/* infer_places.c: the place that a rule names, + 1; 0: all ranks of a stage. */
sc_status infer_place_of(inference *f, const sc_strategy_rule *r,
                         uint32_t *out);
/* Shortens items that run on some ranks while other items run on others.  Items
 * have to be in order. */
sc_status infer_side_by_side(inference *f);

void infer_spread(inference *f);
sc_status infer_keep(inference *f);
/* infer_uneven.c: after all splits are known. */
sc_status infer_find_uneven(inference *f);
sc_status infer_cut(inference *f);
/* The rule by which an operator is recomputed, or NULL. */
infer_rule *infer_recompute_rule(const inference *f, uint32_t op);
/* How many ranks of a stage hold the same part of a tensor of layout `l`. */
double infer_copies(const inference *f, const layout *l);

/* Layout in which an operator reads or makes a tensor.  If it is `made`, axes
 * that split other iteration dims leave partial sums. */
layout infer_port(const inference *f, uint32_t op, const sc_operand *p,
                  bool made);
/* Layout in which an operator makes the gradient of its weight `k`. */
layout infer_weight_grad(const inference *f, uint32_t op, uint32_t k);
/* The layout that a rule's placement gives: its axes split the named dims,
 * together with those of `used` if `add`. */
sc_status infer_place(const inference *f, const sc_tensor *t,
                      const infer_rule *r, const layout *used, bool add,
                      layout *out);
/* Number of indivisible parts of an iteration dim, and the fraction of them
 * that the busiest of `parts` ranks has. */
uint64_t infer_units(const sc_iter_dim *it);
double infer_busiest(uint64_t units, uint64_t parts);
/* Fraction of a tensor's elements that the fullest rank holds, as far as the
 * dims of `dims` (bit per dim) split it. */
double infer_fraction(const inference *f, uint32_t tensor, const layout *l,
                      uint32_t dims);
/* infer_memo.c: as layout_sequence(), with a memo. */
uint32_t infer_sequence(const inference *f, const layout *from,
                        const layout *to, layout_move *out);
/* As layout_sequence(); parts of unequal size are padded to the largest. */
uint32_t infer_moves(const inference *f, uint32_t tensor, const layout *from,
                     const layout *to, layout_move *out);
double infer_bytes(const inference *f, const sc_tensor *t);
/* The bytes of the tensor that one rank holds. */
double infer_rank_bytes(const inference *f, const sc_tensor *t,
                        const layout *l);
double infer_elements(const inference *f, const sc_tensor *t);

/* ---- infer_program.c */

enum { INFER_FORWARD, INFER_BACKWARD, INFER_ONCE }; /* phases */

/* infer_host.c: adds the time by which issuing kernels makes passes longer. */
sc_status infer_host(inference *f);
/* Whether the host waits after `it` for a number from the device. */
bool infer_waits(const sc_net_run *job, const program_item *it);
/* Whether an item is an exchange of weights or gradients. */
bool infer_of_weights(const net_program *prog, const sc_net_exchange *exchange,
                      const program_item *it);
/* Adds an item that the host issues to a span; `tp` is that axis or -1. */
void infer_issue(const sc_net_run *job, const net_program *prog,
                 const sc_net_exchange *exchange, int tp,
                 const program_item *it, sc_span *to);
void plan_span_add(sc_span *to, const sc_span *more);
/* Seconds that the host adds to a span of kernels. */
double infer_host_seconds(const sc_host_rate *host, const sc_span *span);
/* Whether a recorded CUDA graph contains `it`, an item of an operator of
 * job->net, so that it is not issued alone. */
bool infer_captured(const sc_net_run *job, const program_item *it);

uint32_t infer_value(inference *f, program_value v);
/* Appends an item; copies the list `in`. */
uint32_t infer_item(inference *f, program_item it, const uint32_t *in,
                    uint32_t phase);
/* An item of kernels that reads and makes nothing yet. */
program_item infer_kernels(uint32_t op, uint32_t stage, sc_op_pass pass);
/* Appends an item whose list of inputs need not be copied. */
uint32_t infer_item_as_is(inference *f, const program_item *it, uint32_t phase);
/* Moves an item right behind another. */
void infer_item_behind(inference *f, uint32_t item, uint32_t after);
sc_status infer_finish(inference *f);
/* Price of an operator's pass; infer_memo.c keeps it. */
sc_status infer_compute(inference *f, uint32_t op, sc_op_pass pass,
                        uint32_t weight, double weight_parts, sc_price *out);
sc_status infer_compute_anew(inference *f, uint32_t op, sc_op_pass pass,
                             uint32_t weight, double weight_parts,
                             uint32_t chunks, sc_price *out);
/* Price of one of `chunks` equal parts of the rows of a product. */
sc_status infer_compute_chunk(inference *f, uint32_t op, sc_op_pass pass,
                              uint32_t chunks, sc_price *out);
sc_status infer_memo_new(inference *f);
/* Price of the operators that ranks run round-robin at the same time as `op`:
 * the largest one, or the mean if they are balanced. */
sc_status infer_compute_rr(inference *f, uint32_t op, sc_op_pass pass,
                           uint32_t weight, double weight_parts, sc_price *out);
/* Outputs (or weights) of those operators that one rank holds, as a multiple of
 * those of `op`; 1 unless they are balanced. */
double infer_rr_fraction(const inference *f, uint32_t op, bool weight);
sc_status infer_rr_weigh(inference *f);
/* Whether a table is updated row by row: it is `sparse`, and no ranks have to
 * sum its gradient. */
bool infer_by_rows(const inference *f, uint32_t op);
/* Of such a table: elements of the rows that a rank looks up in a micro-batch,
 * of all tables that it runs round-robin at the same time. */
double infer_touched(const inference *f, uint32_t op);
/* Bytes of the results of all operators that are run round-robin from `op` on,
 * as if every rank had as many as the rank with the most. */
double infer_rr_bytes(const inference *f, uint32_t op);
/* Memory that its kernels hold besides what they read and make. */
sc_op_held infer_kernel_memory_anew(const inference *f, uint32_t op);
sc_status infer_kernel_memory(inference *f, uint32_t op, sc_op_held *out);
/* The form on a stage; `l` NULL: of any layout. */
infer_form *infer_find(infer_form *list, uint32_t stage, const layout *l);
infer_form *infer_remember(inference *f, infer_form **list, uint32_t stage,
                           uint32_t value, const layout *l);

/* ---- infer_exchange.c */

/* The purpose of an exchange. */
typedef struct infer_why {
    const char *path, *tensor, *origin;
    sc_op_pass pass;
    uint32_t op, stage;
    uint32_t of;  /* tensor of the network */
    uint8_t what; /* value_kind of what comes out */
    uint8_t phase;
    bool grad, once, recomputed;
    double hidden_s; /* time of the kernels that can overlap it */
} infer_why;

/* Values whose sum is the result. */
typedef struct infer_sum {
    uint32_t n, cap;
    uint32_t *value; /* [n] */
    bool gathered;   /* larger than before: not kept for the backward pass */
} infer_sum;

/* Adds a value; false (and f->no_memory) without memory. */
bool infer_sum_add(inference *f, infer_sum *sum, uint32_t value);

/* Adds items that convert `*v` from one layout to another and updates it; does
 * nothing if no exchange is needed.  `bytes`: size of the whole tensor. */
sc_status infer_convert(inference *f, const infer_why *w, const layout *from,
                        const layout *to, double bytes, infer_sum *v);

/* One collective over `axes` that moves several values of `bytes` in all. */
typedef struct infer_coll {
    sc_coll coll;
    uint32_t axes;
    double bytes, out_bytes;
    const char *reason;
    const uint32_t *in;
    uint32_t n_in;
    bool bucketed;
    bool ring; /* part by part around a ring, by point-to-point messages */
} infer_coll;

/* Appends a collective and returns its item. */
sc_status infer_collective(inference *f, const infer_why *w,
                           const infer_coll *c, uint32_t *item);
/* Sends values of layout `l` to another stage; `bytes`: on one rank. */
sc_status infer_send(inference *f, const infer_why *w, uint32_t to,
                     const layout *l, double bytes, infer_sum *v);
/* Broadcasts to all stages, or reduces from them; `out`: the first of a value
 * for each stage. */
sc_status infer_over_stages(inference *f, const infer_why *w, sc_coll coll,
                            double bytes, const infer_sum *in,
                            const uint32_t *stage, uint32_t n, uint32_t *out);
/* Sums a shared weight's gradient over stages; `out`: the first of a value for
 * each stage. */
sc_status infer_tie(inference *f, const infer_why *w, const uint32_t *stage,
                    uint32_t n, double bytes, const uint32_t *in, uint32_t n_in,
                    uint32_t *out);

/* Whether an exchange goes over an axis; -1: there is none of that name. */
static inline bool infer_over(uint32_t axes, int axis)
{
    return axis >= 0 && axes >> axis & 1;
}

/* Whether an exchange over these axes moves tokens to or from experts. */
bool infer_dispatches(const inference *f, uint32_t axes);
/* Fraction of the copies of a token that have to travel to its experts. */
double infer_copies_sent(const inference *f, uint32_t op, uint32_t axes,
                         const sc_place *at);

/* The part of an exchange that lengthens a pass. */
typedef struct infer_exposure {
    double seconds;        /* before: all of the exchange */
    const char *hidden_by; /* what runs during the rest */
} infer_exposure;

sc_status infer_exposed(inference *f, const infer_why *w, const infer_coll *c,
                        const sc_place *at, uint32_t channels,
                        infer_exposure *out);
/* Fraction of a gradient of layout `l` that attention holds at one time: two
 * parts if keys and their gradients go around a ring. */
double infer_ring_fraction(const inference *f, uint32_t op, uint32_t tensor,
                           const layout *l);
/* Fills in ranks and price of an exchange on the stages of its item. */
sc_status infer_exchange_at(inference *f, program_item *it, sc_net_exchange *x);
/* Pipeline coordinate of a stage. */
uint32_t infer_device(const inference *f, uint32_t stage);
/* Pipeline coordinate in the whole pipeline, if some stages are folded. */
uint32_t infer_own_device(const inference *f, uint32_t stage);

/* ---- infer_low.c */

/* Fractions of the input and of the result's gradient that one rank casts to
 * low precision: less than 1 if cast parts are gathered. */
void infer_low_parts(const inference *f, uint32_t op, double *input,
                     double *gradient);
/* Bytes of an exchange over those in 16 bits. */
double infer_low_bytes(const inference *f, const infer_why *w,
                       const infer_coll *c);
/* Bytes of a gathered weight over those in 16 bits. */
double infer_low_gathered(const inference *f, uint32_t tensor);
/* Bytes that a step moves to cast weight `k` of `op`, per element that the
 * optimizer updates, of which the rank has 1 / `parts`. */
double infer_low_cast(inference *f, uint32_t op, uint32_t k, double parts);

/* ---- infer_halo.c */

#define INFER_EXTRA 4

/* What an operator reads besides its inputs. */
typedef struct infer_extra {
    uint32_t n, value[INFER_EXTRA];
} infer_extra;

/* Adds the exchange of positions and statistics with other parts, behind the
 * values `in`. */
sc_status infer_neighbours(inference *f, uint32_t op, uint32_t phase,
                           bool recomputed, const uint32_t *in, uint32_t n_in,
                           infer_extra *extra);

/* ---- infer_saved.c */

/* Adds to the item of an operator's (recomputed) forward pass the values that
 * it saves besides its result. */
sc_status infer_save(inference *f, uint32_t op, bool recomputed,
                     program_item *it);
/* Fraction of its result that `op` saves if the rest is recomputed. */
double infer_spared(const inference *f, uint32_t op);
/* The same for what is saved though the backward pass does not read it: the
 * cache of torch.utils.checkpoint holds whatever operators returned. */
double infer_unread(const inference *f, uint32_t op);
/* Adds the saved part to the item that first makes it.  Returns the value + 1,
 * or 0. */
uint32_t infer_save_spared(inference *f, uint32_t op, double bytes,
                           program_item *it);
/* The saved values that the backward pass of `op` reads. */
infer_saved infer_saved_of(const inference *f, uint32_t op);
/* Whether what an operator gathers over tp is saved for the backward pass. */
bool infer_keeps_input(const inference *f, uint32_t op);
/* Layout of the saved copy of its first input. */
layout infer_copy_layout(const inference *f, uint32_t op);
/* Adds to an item of the backward pass the memory that its kernels hold. */
uint32_t infer_hold(inference *f, uint32_t op, double bytes, program_item *it);

/* ---- infer_forward.c, infer_backward.c, infer_gradients.c */

/* Records how far the program is; `at` counts the operators of the pass. */
void infer_note_mark(inference *f, uint32_t phase, uint32_t at);
/* Applies rules and cuts stages, which layouts depend on. */
sc_status infer_prepare(inference *f);
/* Infers layouts and adds both passes. */
sc_status infer_passes(inference *f);
/* Adds the end of a step and sorts the items. */
sc_status infer_close(inference *f);

sc_status infer_forward(inference *f);
/* The forward pass of one operator, or of all that run round-robin with it;
 * `recomputed`: it is part of the backward pass. */
sc_status infer_forward_op(inference *f, uint32_t op, bool recomputed);
/* Fraction of the elements of input `k` that the operator reads. */
double infer_part(const inference *f, uint32_t op, uint32_t k, bool grad);
/* Input `k` as the operator's backward pass reads it. */
sc_status infer_recomputed_input(inference *f, uint32_t op, uint32_t k,
                                 uint32_t *value);
/* Whether weights split over these axes are sharded data parallelism. */
bool infer_shards(const inference *f, uint32_t axes);
/* Whether the operator is in FSDP's root unit: it is in no block. */
bool infer_in_root(const inference *f, uint32_t op);
/* Whether the program gathers the weights of two operators in one exchange, and
 * reduces their gradients in one. */
bool infer_one_group(const inference *f, uint32_t a, uint32_t b);
/* Whether weights stay gathered, and gradients unreduced, from the first to the
 * last micro-batch. */
bool infer_stays_gathered(const inference *f);
/* Whether ZeRO-2 shards weights, too, and keeps them gathered from the forward
 * to the backward pass (FSDP with reshard_after_forward=False). */
bool infer_keeps_gathered(const inference *f);
sc_status infer_weight_used(inference *f, uint32_t op, uint32_t k,
                            uint32_t phase, uint32_t *value);
/* Whether 16-bit weights have fp32 master copies. */
bool infer_has_masters(const inference *f);
/* Layout of a weight between uses. */
sc_status infer_weight_kept(inference *f, uint32_t op, uint32_t k, layout *out,
                            const infer_rule **by);
/* Number of operators that run round-robin, if `op` is the first of them; else
 * 0. */
uint32_t infer_rr_count(const inference *f, uint32_t op);
/* Number of ranks that run different ones of these operators at a time. */
uint32_t infer_rr_ranks(const inference *f, uint32_t op);
/* The i-th of these operators. */
uint32_t infer_rr_op(const inference *f, uint32_t op, uint32_t i);

/* Whether the result of `op` is recomputed for the backward pass of `reader`
 * instead of saved.  Recomputed operators drop results that only their own
 * layer reads (Megatron-Core's CheckpointWithoutOutput). */
bool infer_dropped(const inference *f, uint32_t op, uint32_t reader);
/* Recomputes the segment of `op`, unless that is done. */
sc_status infer_recompute(inference *f, uint32_t op);

sc_status infer_backward(inference *f);
/* Records that the backward pass of `op` made `value`, a gradient of weight
 * `k`. */
sc_status infer_add_wgrad(inference *f, uint32_t op, uint32_t k,
                          uint32_t value);
/* Whether gradients of an operator's weights are added to those of earlier
 * micro-batches by the product itself. */
sc_status infer_accumulates(inference *f, uint32_t op, bool *out);
sc_status infer_gradients(inference *f);
/* infer_buckets.c: reduces gradients in the program's buckets. */
sc_status infer_reduce(inference *f);
/* Whether a bucket is full at a size, not at the end of a unit. */
bool infer_sized_buckets(const inference *f);
/* Whether gradients are reduced during the backward pass, not after it. */
bool infer_grads_overlap(const inference *f);
/* Bytes of a weight's whole gradient on the wire. */
double infer_grad_bytes(const inference *f, uint32_t tensor);
/* Memory tier of the optimizer states of an operator's weights. */
int infer_state_tier(const inference *f, uint32_t op);

#endif
