/* SPDX-License-Identifier: Apache-2.0 */
/* plan_host.h - optimizer states in host memory, and checkpoints. */
#ifndef PLAN_HOST_H
#define PLAN_HOST_H

#include "plan/plan.h"
#include "plan/plan_net.h"
#include "plan/plan_strategy.h"

/* Default rate of checkpoint storage per writing host, bytes/s; assumed. */
#define PLAN_STORAGE_BW 2e9
/* Nominal memory bandwidth of a host with such devices, bytes/s. */
double plan_host_memory(const sc_device *d, uint32_t host_size);

/* Fraction of that bandwidth that updates reach; assumed.  They stream seven
 * arrays, some of them from the other socket. */
#define PLAN_UPDATE_FRACTION 0.5

/* Default rate of a host's NVMe drives, bytes/s: a DGX-2 reaches 1.6 GB/s for
 * each of its 16 devices (Rajbhandari et al. 2021, ZeRO-Infinity, figure 2b).
 */
#define PLAN_NVME_BW 25e9

/* Seconds of an update that takes `seconds` with all data in the device's own
 * memory, if it reads and writes `moved` bytes of states in expanded memory: both
 * memories work at the same time. */
double plan_expanded_update(const sc_hw *hw, double seconds, double moved);

/* A checkpoint of a run. */
void sc_plan_save(const sc_plan *p, const sc_segment *segments,
                  sc_net_save *out);

/* Adds these costs to `c`, whose optimizer_s must be set. */
void plan_host_costs(const sc_plan *p, const sc_segment *segments, uint32_t dev,
                     sc_step_costs *c);

#endif
