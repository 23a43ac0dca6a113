/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect.h - traffic between devices that does not pass through this library.
 */
#ifndef NCCL_DETECT_H
#define NCCL_DETECT_H

#include "common/live.h"

/* Warns of each library in the process that moves data by other ways. */
void detect_bypass(live *l);

#endif
