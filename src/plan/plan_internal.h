/* SPDX-License-Identifier: Apache-2.0 */
/* plan_internal.h - shared inside plan/. */
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

#include <stepcast/cost_op.h>
#include <stepcast/plan_schedule.h>

/* Presets to rules; *n rules are appended to `rules` (room for PLAN_RULES;
 * SC_EBUG where that is too little). */
#define PLAN_RULES 80
sc_status plan_presets(const sc_run *run, sc_rule *rules, uint32_t *n,
                       sc_err *err);

/* Rows of what is computed again, for graphs of operators too; false behind
 * the last. */
typedef struct plan_recompute_row {
    const char *match, *origin;
} plan_recompute_row;

bool plan_recompute_find(sc_recompute what, bool fused, uint32_t i,
                         plan_recompute_row *out);

/* Mesh axes from neighbours outwards. */
extern const sc_axis plan_inner_first[SC_N_AX];

/* Tokens that experts of the busiest rank work on, over balanced. */
double plan_rows(double capacity, double imbalance);
double plan_routed(const sc_run *r);

/* Module path of an operator: "layers.*.qkv". */
void plan_path(const sc_layer *layer, const sc_operator *op, char *buf,
               size_t size);

/* The same of a strategy's rules that blocks can hold, behind those of the
 * presets; room for plan_strategy_room() more.  SC_C_UNSUPPORTED where blocks
 * can't. */
struct sc_strategy;
uint32_t plan_strategy_room(const struct sc_strategy *s);
sc_status plan_strategy_rules(const struct sc_strategy *s, sc_rule *rules,
                              uint32_t *n, sc_err *err);
/* Stage of ZeRO that they come to. */
int plan_strategy_zero(const struct sc_strategy *s);
/* What has to hold of the layers of a plan with a strategy. */
sc_status plan_strategy_check(const sc_plan *p, sc_err *err);

/* Path of an operator of block `block` in a strategy's file: "layers.3.qkv". */
void plan_own_path(const sc_layer *layer, uint32_t block, const sc_operator *op,
                   char *buf, size_t size);
/* The iteration dim that a rule's dim is in `op`; NULL: it has none. */
const sc_iter *plan_rule_iter(const sc_operator *op, uint32_t dim);

/* Resolves the rules for one operator of layer entry `layer`: those of a
 * strategy's file hold before those of presets, then the most specific one, of
 * equals the later.  Two rules of one of these levels that put the same axis on
 * two dims of one operator are a conflict. */
sc_status plan_resolve(const sc_plan *p, uint32_t layer, const sc_operator *op,
                       sc_placed *out, sc_err *err);

/* Layouts of an operator's tensors under its split.  `dims` are bits of
 * sc_operator.x/w/y.  An axis that splits an iteration dim outside `dims`
 * leaves partial sums if the tensor is computed (`made`). */
sc_layout plan_tensor(const sc_placed *o, uint8_t dims, bool made);

/* Samples of one micro-batch on all replicas. */
uint64_t plan_batch(const sc_run *r);

/* Whether recipes of low precision run the products of an operator in their
 * format: not the router's and the vocabulary's, nor what the user keeps
 * wide. */
bool plan_low(const sc_run *r, const sc_operator *op);

/* What of a run changes kernels: its software, and whether products add to the
 * gradients of other micro-batches. */
sc_op_facts plan_software_facts(const sc_software *sw, const sc_device *d,
                                sc_precision precision, sc_recipe recipe,
                                bool accumulates);

/* Which products a recipe of low precision runs low; nothing of others. */
void plan_recipe_text(const sc_run *r, sc_text *out);
/* Its first lines: what a recipe does. */
void plan_recipe_head(sc_recipe recipe, const sc_software *sw, sc_text *out);

/* Layers of each stage, and its kind of device.  Both are set again where the
 * pipeline changes; the seconds of layers, which balanced cuts need, are kept. */
sc_status plan_kinds(sc_plan *p, sc_arena *a, sc_err *err);
sc_status plan_layer_seconds(sc_plan *p, sc_arena *a, sc_err *err);
sc_status plan_cut_stages(sc_plan *p, sc_arena *a, sc_err *err);

/* Whether the pipeline can run its schedule. */
sc_status plan_check_schedule(const sc_run *r, sc_err *err);

/* Embedding and head are on different devices. */
bool plan_ends_apart(const sc_run *r);

/* Elements of the tensor with these dims, whole. */
double plan_elements(const sc_run *r, const sc_operator *op, uint8_t dims);

/* What every operation waits for the slowest of all ranks: a factor. */
double plan_straggler(const sc_hw *hw, const sc_cost *cost);

#endif
