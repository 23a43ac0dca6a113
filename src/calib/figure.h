/* SPDX-License-Identifier: Apache-2.0 */
/* figure.h - memory as a figure of a paper shows it. */
#ifndef CALIB_FIGURE_H
#define CALIB_FIGURE_H

#include "predict/predict.h"

/* Bytes of parameters and kept activations of the layers alone on the first
 * stage (Korthikanti et al. 2022, figure 1). */
double calib_figure_memory(const sc_net_step *s);

#endif
