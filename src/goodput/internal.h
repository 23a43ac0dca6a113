/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the closed form and the simulation share. */
#ifndef GOODPUT_INTERNAL_H
#define GOODPUT_INTERNAL_H

#include "goodput/goodput.h"

/* Training per time while the job trains, 1 without slow nodes. */
double goodput_speed(const sc_goodput_job *j);
/* Seconds of training between two checkpoints, whole steps at that speed. */
double goodput_interval(const sc_goodput_job *j);

#endif
