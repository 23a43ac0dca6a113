/* SPDX-License-Identifier: Apache-2.0 */
/* plan_internal.h - shared inside plan/. */
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

#include <stepcast/plan_schedule.h>

/* Presets to rules; *n rules are appended to `rules` (room for PLAN_RULES). */
#define PLAN_RULES 80
sc_status plan_presets(const sc_run *run, sc_rule *rules, uint32_t *n,
                       sc_err *err);

/* Mesh axes from neighbours outwards. */
extern const sc_axis plan_inner_first[SC_N_AX];

/* Tokens that experts of the busiest rank work on, over balanced. */
double plan_routed(const sc_run *r);

/* Module path of an operator: "layers.*.qkv". */
void plan_path(const sc_layer *layer, const sc_operator *op, char *buf,
               size_t size);

/* Resolves the rules for one operator: the most specific wins, of equals the
 * later.  Two rules of one preset level that put the same axis on two dims of
 * one operator are a conflict. */
sc_status plan_resolve(const sc_plan *p, const sc_layer *layer,
                       const sc_operator *op, sc_placed *out, sc_err *err);

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

/* Which products a recipe of low precision runs low; nothing of others. */
void plan_recipe_text(const sc_run *r, sc_text *out);

/* Whether the pipeline can run its schedule. */
sc_status plan_check_schedule(const sc_run *r, sc_err *err);

/* Embedding and head are on different devices. */
bool plan_ends_apart(const sc_run *r);

/* Elements of the tensor with these dims, whole. */
double plan_elements(const sc_run *r, const sc_operator *op, uint8_t dims);

#endif
