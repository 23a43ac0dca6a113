/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.h - the parts of `stepcast simulate`. */
#ifndef CLI_SIMULATE_H
#define CLI_SIMULATE_H

#include "cli/cli.h"
#include "sim/sim_workload.h"
#include "trace/trace.h"

typedef struct simulate_opts {
    const char **workloads, **groups, **stragglers;
    const char *system, *network, *memory, *compat, *trace, *mix, *cluster;
    int fidelity, congestion, links;
    int64_t scale_to, queues, steps;
    double injection, jitter;
    bool rendezvous, symmetry, adaptive;
    bool fidelity_given, congestion_given;
} simulate_opts;

enum { SIMULATE_CHUNK, SIMULATE_FLOW, SIMULATE_ANALYTIC }; /* fidelity */

/* The option with which messages share links, as emulated ones do. */
extern const char cli_simulate_shared_links[];

enum { SIMULATE_AWARE, SIMULATE_UNAWARE }; /* congestion */

/* The inputs and settings of a run. */
typedef struct simulate_run {
    const simulate_opts *o;
    const sc_rules *rules;
    const char *mode;
    const char *machine; /* if its links are not dimensions; NULL: none */
    sc_workload w;
    sc_workload *measured; /* [workloads] without ranks: not measured; NULL:
                              none was read */
    sc_system system;
    sc_network network;
    sc_pool pool;
    sc_simulate_opts opts;
    sc_simulate_result result;
    sc_text warnings, assumptions; /* lines */
} simulate_run;

/* Loads rules, files, and options of the engine. */
sc_status cli_simulate_load(cli *c, simulate_run *r);

/* Reads the traces again, with each rank's own ids and names of nodes. */
sc_status cli_simulate_names(cli *c, const simulate_run *r, sc_workload *out);

/* Whether a --workload names measured traces: a file, a folder or a pattern, and
 * no Chakra trace. */
bool cli_simulate_is_measured(const char *text);

/* Reads the measured traces of all ranks of a job. Errors: nothing matches, files
 * of several kinds, ranks without a trace. */
sc_status cli_simulate_measured(cli *c, simulate_run *r, const char *text,
                                sc_workload *out);

/* Runs the jobs of --mix side by side; `set` has the options of the command. */
sc_status cli_simulate_mix(cli *c, const simulate_opts *o,
                           const sc_opt_set *set);

/* If not all ranks have ended, reports which ranks wait for which. */
sc_status cli_simulate_stuck(cli *c, simulate_run *r);

#endif
