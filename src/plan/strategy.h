/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.h - shared by the readers of a strategy's sections. */
#ifndef PLAN_STRATEGY_READ_H
#define PLAN_STRATEGY_READ_H

#include "plan/plan.h"
#include "plan/plan_strategy.h"

typedef struct strategy_reader {
    sc_strategy *s;
    sc_arena *a;
    sc_err *err;
    sc_status first; /* first error so far */
    bool no_mesh;    /* the mesh is wrong: names of axes cannot be checked */
    bool no_sizes;   /* sizes of axes cannot be checked */
    const char *zero_axis; /* as written; NULL: not given */
} strategy_reader;

void strategy_wrong(strategy_reader *r, sc_code code, sc_pos pos,
                    const char *hint, const char *fmt, ...) SC_PRINTF(5, 6);
void strategy_keep(strategy_reader *r, sc_status s);

/* Index of the axis with this name; -1, and an error, if there is none. */
int strategy_axis_of(strategy_reader *r, const char *name, sc_pos pos);

/* Call these after the mesh and the sections of single keys are read. */
void strategy_read_pools(strategy_reader *r, const sc_node *list);
void strategy_read_rules(strategy_reader *r, const sc_node *list);

/* The sc_axis that corresponds to an axis of a strategy's mesh; -1: none. */
int plan_run_axis(const sc_strategy *s, uint32_t axis);

/* The error of a rule that matches no operator of a network, with the nearest
 * path. */
sc_status plan_rule_unmatched(const sc_strategy_rule *r, const sc_net *g,
                              sc_arena *a, sc_err *err);

/* Reports contradictions between keys. */
void strategy_check(strategy_reader *r);

#endif
