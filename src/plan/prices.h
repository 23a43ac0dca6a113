/* SPDX-License-Identifier: Apache-2.0 */
/* prices.h - explains as text how the prices of a network's step are computed.
 * The code that computes a price reports it to sc_net_run.prices unless that is
 * NULL. */
#ifndef PLAN_PRICES_H
#define PLAN_PRICES_H

#include "plan/plan_net.h"

typedef struct infer_prices infer_prices;
struct infer_exposure;

/* Reports the lines that explain the price of an operator's pass.  Equal lines
 * of several blocks are printed once.  Frees the text. */
sc_status prices_report(infer_prices *p, const char *path, const char *pass,
                        sc_text *lines, sc_err *err);
/* A path with its numbers as "*": "layers.*.fc1" for "layers.12.fc1". */
char *prices_starred(sc_arena *a, const char *path);
const char *prices_pass_name(sc_op_pass pass);

/* Reports an exchange and the part of it that does not overlap kernels. */
sc_status prices_report_exchange(const sc_net_run *job,
                                 const sc_net_exchange *x, const sc_place *at,
                                 const struct infer_exposure *e, sc_err *err);
/* Reports a copy between memories. */
sc_status prices_report_copy(const sc_net_run *job, const char *path,
                             const char *value, double bytes, double bw,
                             sc_err *err);

#endif
