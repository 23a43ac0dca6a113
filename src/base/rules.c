/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - the table of modes, and the only file with their names. */
#include "base/rules.h"

#include <string.h>

static const sc_rules rows[] = {
    {.name = "stepcast", .of_traces = true, .of_steps = true, .quantum = 1},
    {
        .name = "astra-sim",
        .of_traces = true,
        .quantum = 1000,
        .store_and_forward = true,
        .first_dim_only = true,
        .ports_unlimited = true,
        .subgroup_endpoint = 10000,
        .early_second_exchange = true,
        .reduce_next_message = true,
        .ring_all_to_all_single = true,
        .collectives_start_alone = true,
        .ready_waits = true,
        .chunks_cut = true,
        .unfit_runs = true,
        .subgroups_ring = true,
        .dims_left_out = true,
        .all_given = true,
        .group_keeps_algorithm = true,
        .broadcast_replayed = true,
        .orders_ignored = true,
        .switches_only_forward = true,
        .empty_kernels_free = true,
        .durations_in_micros = true,
        .group_zero_is_world = true,
        .idle_is_exposed = true,
    },
    {
        .name = "proteus",
        .of_steps = true,
        .quantum = 1,
        .attention_unfused = true,
        .gradients_as_weights = true,
        .nothing_fixed = true,
        .launch_gap = 2000000,
        .ready_order = true,
        .overlap_whole = true,
        .transfers_first = true,
        .links_private = true,
        .ring_simple = true,
        .first_bucket = 1000000,
        .buckets_counted_together = true,
        .scattered_last = true,
        .bias_partial = true,
        .tables_dense = true,
        .loss_per_sample = true,
        .exchanges_overlap = true,
        .gather_ahead = 2,
        .copy_ahead = 3,
    },
};

const sc_rules *sc_rules_all(uint32_t *n)
{
    *n = sizeof rows / sizeof rows[0];
    return rows;
}

const sc_rules *sc_rules_find(const char *name)
{
    if (!name) return &rows[0];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}
