/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - optimizer states with the host, and checkpoints. */
#ifndef PLAN_HOST_H
#define PLAN_HOST_H

#include <stepcast/plan.h>
#include <stepcast/plan_strategy.h>

/* Of storage for checkpoints, for each host that writes to it. */
#define PLAN_STORAGE_BW 2e9

/* Rates that hold where a run gives none, bytes/s: of a host's memory, of its
 * NVMe drives (25 GB/s each way), and of the storage that all hosts write to
 * (2 GB/s for each); the last two are assumptions. */
double plan_host_memory_bw(const sc_run *r);
double plan_nvme_bw(const sc_run *r);
double plan_storage_bw(const sc_run *r);
/* Where a checkpoint goes; SC_TIER_DEVICE: to that storage. */
sc_tier plan_checkpoint_tier(const sc_run *r);

/* Adds to the costs of a step; they have the device's optimizer already. */
void plan_host_costs(const sc_plan *p, const sc_block *blocks, uint32_t dev,
                     sc_step_costs *c);

#endif
