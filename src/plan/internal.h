/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - declarations shared inside plan/. */
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

#include "cost/cost_op.h"
#include "plan/plan_schedule.h"

#include <math.h>

/* Mesh axes, the one whose ranks are closest first. */
extern const sc_axis plan_inner_first[SC_N_AX];

/* Seconds that the program adds to a transfer between two stages. */
double plan_transfer_wait(const sc_software *sw, const sc_cost *cost,
                          const sc_hw *hw, uint32_t tp, const sc_place *place);

/* Tokens of the busiest rank's experts, as a multiple of the mean. */
double plan_rows(double capacity, double imbalance);
struct sc_strategy;
/* The ZeRO stage that the rules of a strategy amount to. */
int plan_strategy_zero(const struct sc_strategy *s);
/* Checks the layers of a plan against its strategy. */
sc_status plan_strategy_check(const sc_plan *p, sc_err *err);

/* The map of software profiles, each with its keys as written. */
sc_status software_profiles(sc_arena *a, const sc_node **profiles, sc_err *err);

/* Whether a key of a profile is written as `fitted`. */
bool software_key_fitted(const sc_node *key);
/* Lists the fitted keys of a profile in `inout`, which has those of its base.
 * Errors: a key that is no number, or that no parameter belongs to. */
sc_status software_list_fitted(const sc_node *profile, sc_software *inout,
                               sc_arena *a, sc_err *err);

/* Errors: a word of `read_off` that is no key. */
sc_status software_check_read_off(const sc_node *profile, const sc_software *sw,
                                  sc_err *err);

/* The properties of a run that change kernels.  `accumulates`: products are
 * added to the gradients of earlier micro-batches. */
sc_op_facts plan_software_facts(const sc_software *sw, const sc_device *d,
                                sc_precision precision, sc_recipe recipe,
                                bool accumulates);

/* Describes a recipe of low precision. */
void plan_recipe_head(sc_recipe recipe, const sc_software *sw, sc_text *out);

/* Sets the layers and the kind of device of each stage.  Both are set again if
 * the pipeline changes; the seconds of layers, which balanced cuts need, are
 * kept. */
sc_status plan_kinds(sc_plan *p, sc_arena *a, sc_err *err);
sc_status plan_layer_seconds(sc_plan *p, sc_arena *a, sc_err *err);
sc_status plan_cut_stages(sc_plan *p, sc_arena *a, sc_err *err);

/* Sets the blocks of each stage by the program's rule.  If the number of stages
 * does not divide them, embedding and head (`ends`) count as a block each if
 * the sum is then divisible (Llama 3 405B: 126 + 2 over 16).  Else some
 * programs fill stages in order, and others give the first stages one more.
 * SC_SPLIT_COST counts the head as `head` blocks (plan_head_blocks()); stages
 * may then have no block. The head is put on the last stage. */
void plan_even_cut(const sc_software *sw, bool ends, double head,
                   uint32_t blocks, uint32_t stages, uint32_t *each);
/* Weights of products behind all blocks over those of the first block. */
double plan_head_blocks(const sc_net *g);

/* Whether the pipeline can run its schedule. */
sc_status plan_check_schedule(const sc_run *r, sc_err *err);

/* Whether Megatron's tensor parallelism is on.  If a strategy says `none`, only
 * its rules use tp. */
bool plan_divides_products(const sc_run *r);

/* Whether embedding and head are on different devices. */
bool plan_ends_apart(const sc_run *r);

/* Whether gradients are copied to a flat buffer after the backward pass. */
bool plan_flattens(const sc_software *sw);
/* Weights of products in low precision: their bytes when gathered over those in
 * 16 bits, and the bytes per element that casts of a step move.  Scales of 32
 * elements belong to one layout, so such weights are gathered in 16 bits. */
bool plan_low_weight(const sc_net *g, uint32_t op, uint32_t k);
double plan_low_gathered(const sc_software *sw, sc_recipe recipe);
double plan_low_cast(const sc_software *sw, sc_recipe recipe,
                     const sc_device *d);
/* Factor by which exchanges of sharded weights and their gradients take longer
 * in programs that use only some of a node's NICs for them. */
double plan_rails(const sc_software *sw, const sc_hw *hw, const sc_place *at);

/* Latency of an exchange that takes `seconds`, `bound_s` of them on links, if a
 * minimal one takes `least_s`: a transfer hides part of its latency behind its
 * bytes. */
static inline double plan_latency(double least_s, double seconds,
                                  double bound_s)
{
    return fmax(0, fmin(least_s, seconds - bound_s));
}

/* Factor by which waiting for the slowest of all ranks lengthens operations. */
double plan_straggler(const sc_hw *hw, const sc_cost *cost);

/* Sets the ZeRO stage of a run from the one that is asked for. */
void plan_resolve_zero(int zero, sc_run *r);

#endif
