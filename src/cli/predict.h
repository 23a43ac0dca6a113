/* SPDX-License-Identifier: Apache-2.0 */
/* predict.h - what `predict` and `show` share. */
#ifndef CLI_PREDICT_H
#define CLI_PREDICT_H

#include <stepcast/predict.h>

#include "cli/cli.h"

typedef struct predict_opts {
    double measured; /* seconds; NaN: none */
    const char *trace, *profile;
    bool why, explain;
} predict_opts;

extern const sc_key cli_predict_keys[];

sc_status cli_predict_run(cli *c, const sc_job *job, const predict_opts *o,
                          sc_prediction *p);

#endif
