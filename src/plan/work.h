/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - operators of blocks as the list of kernels (cost_op.h) takes them. */
#ifndef PLAN_WORK_H
#define PLAN_WORK_H

#include <stepcast/cost_op.h>

#include "plan/plan_internal.h"

/* What of a run changes kernels. */
sc_op_facts plan_facts(const sc_run *r);

/* An operator on one rank. */
sc_op_work plan_work(const sc_run *r, const sc_placed *o, sc_gpass pass);

/* Works on tokens sent to experts. */
bool plan_is_routed(const sc_operator *op);

#endif
