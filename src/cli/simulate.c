/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - `stepcast simulate`: execution traces on a system. */
#include <stepcast/sim_workload.h>
#include <stepcast/trace.h>

#include "cli/cli.h"

#include <string.h>
#include <time.h>

typedef struct options {
    const char *workload, *system, *network, *memory, *groups, *compat;
    int congestion;
    int64_t queues;
    double injection;
    bool rendezvous, symmetry;
} options;

static const char *const congestion_names[] = {"aware", "unaware", "flow", NULL};

#define OFF(f) offsetof(options, f)
const sc_key cli_simulate_keys[] = {
    {"workload", SC_T_STRING, SC_U_NONE, OFF(workload), NULL, 0, 0, NULL,
     "--workload", "PREFIX", "traces PREFIX.<rank>.et[.gz|.zst]", false},
    {"system", SC_T_STRING, SC_U_NONE, OFF(system), NULL, 0, 0, NULL,
     "--system", "FILE", "system JSON", false},
    {"network", SC_T_STRING, SC_U_NONE, OFF(network), NULL, 0, 0, NULL,
     "--network", "FILE", "network yml", false},
    {"memory", SC_T_STRING, SC_U_NONE, OFF(memory), NULL, 0, 0, NULL,
     "--memory", "FILE", "remote-memory JSON", false},
    {"comm_groups", SC_T_STRING, SC_U_NONE, OFF(groups), NULL, 0, 0, NULL,
     "--comm-groups", "FILE", "communicator groups", false},
    {"compat", SC_T_STRING, SC_U_NONE, OFF(compat), NULL, 0, 0, NULL,
     "--compat", "MODE", "reproduce another simulator exactly", false},
    {"congestion", SC_T_ENUM, SC_U_NONE, OFF(congestion), "aware", 0, 0,
     congestion_names, "--congestion", NULL, "links queue, or a closed form",
     false},
    {"num_queues_per_dim", SC_T_INT, SC_U_COUNT, OFF(queues), "1", 1, 4096,
     NULL, "--num-queues-per-dim", "N", "queues of chunks per dimension",
     false},
    {"injection_scale", SC_T_QUANTITY, SC_U_NONE, OFF(injection), "1", 0, 1e9,
     NULL, "--injection-scale", "X", "factor on endpoint-delay", false},
    {"rendezvous", SC_T_BOOL, SC_U_NONE, OFF(rendezvous), "false", 0, 0, NULL,
     "--rendezvous", NULL, "a message waits until it is asked for", false},
    {"symmetry", SC_T_BOOL, SC_U_NONE, OFF(symmetry), "true", 0, 0, NULL,
     "--symmetry", NULL, "one rank stands for equal ones where exact", false},
    {0},
};

typedef struct job {
    sc_workload w;
    sc_system system;
    sc_network network;
    sc_pool pool;
    sc_simulate_opts opts;
    sc_simulate_result out;
    double seconds;
} job;

static sc_status load(cli *c, const options *o, job *j)
{
    sc_rank_group *groups = NULL;
    uint32_t n_groups = 0;
    sc_text warnings;
    sc_text_init(&warnings);
    sc_status s =
        sc_system_read(o->system, c->arena, &warnings, &j->system, c->err);
    if (s == SC_OK) cli_note(c, "%s", warnings.buf);
    sc_text_free(&warnings);
    SC_TRY(s);
    SC_TRY(sc_network_read(o->network, c->arena, &j->network, c->err));
    if (o->memory) SC_TRY(sc_pool_read(o->memory, c->arena, &j->pool, c->err));
    uint32_t n = j->network.n_ranks;
    if (o->groups && strcmp(o->groups, "empty") != 0)
        SC_TRY(
            sc_groups_read(o->groups, n, c->arena, &groups, &n_groups, c->err));
    sc_trace_opts t = {.n_groups = n_groups, .groups = groups};
    return sc_trace_read(o->workload, n, &t, c->arena, &j->w, c->err);
}

static sc_status run(cli *c, const options *o, job *j)
{
    sc_simulate_opts_init(&j->opts);
    j->opts.rules = sc_rules_find(o->compat);
    if (!j->opts.rules)
        return sc_error(c->err, SC_EUSAGE, SC_C_UNKNOWN_NAME,
                        sc_pos_option(c->arena, "--compat", o->compat), NULL,
                        "no such mode");
    j->opts.links = o->congestion == 0;
    j->opts.queues = (uint32_t)o->queues;
    j->opts.endpoint = o->injection;
    j->opts.rendezvous = o->rendezvous;
    j->opts.fold = o->symmetry;
    if (o->congestion == 2) {
        j->opts.flows = true;
        SC_TRY(sc_network_machine(&j->network, c->arena, &j->opts.hw, c->err));
    }
    j->opts.seed = (uint64_t)c->seed;
    clock_t t0 = clock();
    sc_status s = sc_simulate(&j->w, &j->system, &j->network, &j->pool,
                              &j->opts, c->arena, &j->out, c->err);
    j->seconds = (double)(clock() - t0) / CLOCKS_PER_SEC;
    return s;
}

static void per_npu(const sc_simulate_result *r, sc_json *x)
{
    sc_json_key(x, "per_npu");
    sc_json_begin(x, '[');
    for (uint32_t i = 0; i < r->n_ranks; i++) {
        const sc_rank_times *t = &r->rank[i];
        sc_json_begin(x, '{');
        sc_json_key(x, "rank");
        sc_json_uint(x, i);
        sc_json_key(x, "finish_ns");
        if (t->finished)
            sc_json_double(x, (double)t->finish / 1000);
        else
            sc_json_null(x);
        sc_json_key(x, "compute_ns");
        sc_json_double(x, (double)t->compute / 1000);
        sc_json_key(x, "exposed_comm_ns");
        sc_json_double(x, (double)t->exposed / 1000);
        sc_json_key(x, "memory_ns");
        sc_json_double(x, (double)t->memory / 1000);
        sc_json_end(x, '}');
    }
    sc_json_end(x, ']');
}

static void result_json(const job *j, sc_json *x)
{
    const sc_simulate_result *r = &j->out;
    sc_json_begin(x, '{');
    sc_json_key(x, "schema");
    sc_json_string(x, "stepcast.simulate/1");
    sc_json_key(x, "npus");
    sc_json_uint(x, r->n_ranks);
    sc_json_key(x, "makespan_ns");
    sc_json_double(x, (double)r->makespan / 1000);
    per_npu(r, x);
    sc_json_key(x, "engine");
    sc_json_begin(x, '{');
    sc_json_key(x, "ops");
    sc_json_uint(x, r->n_tasks);
    sc_json_key(x, "events");
    sc_json_uint(x, r->n_events);
    sc_json_key(x, "messages");
    sc_json_uint(x, r->n_messages);
    sc_json_key(x, "classes");
    sc_json_uint(x, j->w.n_classes);
    sc_json_key(x, "simulated");
    sc_json_uint(x, r->n_simulated);
    sc_json_key(x, "wall_s");
    sc_json_double(x, j->seconds);
    sc_json_end(x, '}');
    sc_json_end(x, '}');
}

sc_status cli_simulate(cli *c, int argc, char *const *argv)
{
    options o = {0};
    sc_opt_set set = {cli_simulate_keys, &o, {{0}}};
    sc_words words = {0};
    job j = {0};
    SC_TRY(sc_schema_defaults(cli_simulate_keys, &o, c->arena, c->err));
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &words));
    if (c->dump_config) return cli_dump(c, &set, 1);
    if (!o.workload || !o.system || !o.network)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(), NULL,
                        "simulate needs --workload, --system and --network");
    SC_TRY(load(c, &o, &j));
    SC_TRY(run(c, &o, &j));
    sc_json x;
    sc_json_init(&x, true);
    result_json(&j, &x);
    sc_status s = cli_emit_json(c, &x);
    sc_json_free(&x);
    return s;
}
