/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - `stepcast simulate`: runs execution traces on a system. */
#include "cli/simulate.h"

#include "cli/predict.h"
#include "report/report_simulate.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char cli_simulate_shared_links[] = "--fidelity flow";

#define MAX_INPUTS 4
#define CHEAP_EVENTS \
    1000000 /* largest number of events to repeat in another mode */

static const char *const fidelity_names[] = {"chunk", "flow", "analytic", NULL};
static const char *const congestion_names[] = {"aware", "unaware", NULL};
static const char *const links_names[] = {"busiest", "all", NULL};

#define OFF(f) offsetof(simulate_opts, f)
const sc_key cli_simulate_keys[] = {
    {.name = "workload",
     .group = "what runs",
     .type = SC_T_LIST,
     .offset = OFF(workloads),
     .flag = "--workload",
     .meta = "PREFIX[@RANK]",
     .help = "traces PREFIX.<rank>.et (.et.gz, .et.zst, .json), or a folder or "
             "quoted pattern of measured traces of all ranks; @: the first "
             "rank of this job, if several jobs are given"},
    {.name = "mix",
     .group = "what runs",
     .type = SC_T_STRING,
     .offset = OFF(mix),
     .flag = "--mix",
     .meta = "FILE",
     .help = "instead of traces: jobs that train at the same time on their own "
             "nodes of --cluster (docs/simulate.md)"},
    {.name = "steps",
     .group = "what runs",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(steps),
     .def = "5",
     .min = 2,
     .max = 1000,
     .flag = "--steps",
     .meta = "N",
     .help = "with --mix: steps of the job whose step is longest"},
    {.name = "cluster",
     .group = "where it runs",
     .type = SC_T_STRING,
     .offset = OFF(cluster),
     .flag = "--cluster",
     .meta = "SPEC|FILE",
     .help = "with --mix: the machine, as predict takes it"},
    {.name = "system",
     .group = "where it runs",
     .type = SC_T_STRING,
     .offset = OFF(system),
     .flag = "--system",
     .meta = "FILE",
     .help = "system JSON of ASTRA-sim"},
    {.name = "network",
     .group = "where it runs",
     .type = SC_T_STRING,
     .offset = OFF(network),
     .flag = "--network",
     .meta = "FILE|LINE",
     .help = "network yml of ASTRA-sim, or one line: ring8@100GB/s,500ns"},
    {.name = "memory",
     .group = "where it runs",
     .type = SC_T_STRING,
     .offset = OFF(memory),
     .flag = "--memory",
     .meta = "FILE",
     .help = "remote-memory JSON [none]"},
    {.name = "comm-groups",
     .group = "what runs",
     .type = SC_T_LIST,
     .offset = OFF(groups),
     .flag = "--comm-groups",
     .meta = "FILE",
     .help = "communicator groups, or empty"},
    {.name = "fidelity",
     .group = "how it is simulated",
     .type = SC_T_ENUM,
     .offset = OFF(fidelity),
     .def = "chunk",
     .names = fidelity_names,
     .flag = "--fidelity",
     .help = "chunk: messages queue on links; flow: messages share links; "
             "analytic: closed formulas"},
    {.name = "compat",
     .group = "how it is simulated",
     .type = SC_T_STRING,
     .offset = OFF(compat),
     .flag = "--compat",
     .meta = "MODE",
     .help = "reproduce another simulator exactly (docs/simulate.md)"},
    {.name = "congestion",
     .group = "how it is simulated",
     .type = SC_T_ENUM,
     .offset = OFF(congestion),
     .def = "aware",
     .names = congestion_names,
     .flag = "--congestion",
     .help = "with --compat: the congestion-aware or the congestion-unaware "
             "backend"},
    {.name = "scale-to",
     .group = "what runs",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(scale_to),
     .min = 1,
     .max = 1 << 24,
     .flag = "--scale-to",
     .meta = "M",
     .help = "scale to M ranks by adding data-parallel replicas"},
    {.name = "straggler",
     .group = "what runs",
     .type = SC_T_LIST,
     .offset = OFF(stragglers),
     .flag = "--straggler",
     .meta = "RANK:FACTOR",
     .help = "multiply the duration of this rank's kernels by FACTOR"},
    {.name = "jitter",
     .group = "what runs",
     .type = SC_T_QUANTITY,
     .offset = OFF(jitter),
     .def = "0",
     .max = 10,
     .flag = "--jitter",
     .meta = "F",
     .help = "vary the durations of kernels at random by this relative "
             "standard deviation (--seed)"},
    {.name = "num-queues-per-dim",
     .group = "how it is simulated",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(queues),
     .def = "1",
     .min = 1,
     .max = 4096,
     .flag = "--num-queues-per-dim",
     .meta = "N",
     .help = "queues of chunks per dimension"},
    {.name = "injection-scale",
     .group = "how it is simulated",
     .type = SC_T_QUANTITY,
     .offset = OFF(injection),
     .def = "1",
     .max = 1e9,
     .flag = "--injection-scale",
     .meta = "X",
     .help = "factor on endpoint-delay"},
    {.name = "rendezvous",
     .group = "how it is simulated",
     .type = SC_T_BOOL,
     .offset = OFF(rendezvous),
     .def = "false",
     .flag = "--rendezvous",
     .help = "messages wait until the receiver has posted its receive"},
    {.name = "adaptive-routing",
     .group = "how it is simulated",
     .type = SC_T_BOOL,
     .offset = OFF(adaptive),
     .def = "false",
     .flag = "--adaptive-routing",
     .help = "take the least loaded of several equal routes, not a random one "
             "(--seed); with --mix all of them evenly, unless "
             "--no-adaptive-routing"},
    {.name = "links",
     .group = "the answer",
     .type = SC_T_ENUM,
     .offset = OFF(links),
     .def = "busiest",
     .names = links_names,
     .flag = "--links",
     .help = "links to list in --json: the 100 busiest, or all"},
    {.name = "symmetry",
     .group = "how it is simulated",
     .type = SC_T_BOOL,
     .offset = OFF(symmetry),
     .def = "true",
     .flag = "--symmetry",
     .help = "simulate one rank for all equal ranks if the result is exact; "
             "--no-symmetry: simulate all"},
    {.name = "trace",
     .group = "the answer",
     .type = SC_T_STRING,
     .offset = OFF(trace),
     .flag = "--trace",
     .meta = "FILE",
     .help = "write a timeline as Chrome trace JSON; .gz: compressed"},
    {0},
};

static sc_status simulate(cli *c, const simulate_run *r,
                          const sc_simulate_opts *o, sc_simulate_result *out,
                          sc_err *err)
{
    return sc_simulate(&r->w, &r->system, &r->network, &r->pool, o, c->arena,
                       out, err);
}

/* Runs the same files in the compatible mode if that takes little time; with
 * links if that mode has them. */
static void compare(cli *c, const simulate_run *r, sc_report_other *out)
{
    uint32_t n, other = 1; /* the first row is our own mode */
    const sc_rules *rows = sc_rules_all(&n);
    sc_simulate_opts o = r->opts;
    sc_simulate_result x;
    sc_err err;
    if (r->machine) return; /* the mode has no such networks */
    while (other < n && !rows[other].of_traces) other++;
    if (r->rules != rows || r->result.n_events > CHEAP_EVENTS || other == n)
        return;
    o.rules = &rows[other];
    o.links = r->opts.links && r->network.n_dims == 1;
    o.record = o.flows = false;
    o.hw = NULL;
    o.max_events = (uint64_t)2 * CHEAP_EVENTS;
    sc_err_init(&err);
    sc_arena_mark mark = sc_arena_save(c->arena);
    sc_status s = simulate(c, r, &o, &x, &err);
    sc_arena_restore(c->arena, mark);
    const char *name = sc_sprintf(
        c->arena, "%s, congestion %s", o.rules->name,
        congestion_names[o.links ? SIMULATE_AWARE : SIMULATE_UNAWARE]);
    if (s != SC_OK || !name) return;
    bool ends = !x.together && x.n_finished == x.n_ranks;
    *out = (sc_report_other){name, ends, x.makespan};
}

static sc_status write_trace(cli *c, const simulate_run *r)
{
    sc_workload own;
    sc_json j;
    if (!r->o->trace) return SC_OK;
    SC_TRY(cli_simulate_names(c, r, &own));
    sc_json_init(&j, false);
    sc_report_simulation_trace(&own, &r->result, &j);
    sc_status s = cli_write_json(c, r->o->trace, &j);
    sc_json_free(&j);
    return s;
}

/* ---- printing ------------------------------------------------------------ */

static sc_status inputs(cli *c, const simulate_opts *o, sc_report_input *in,
                        uint32_t *n)
{
    *n = 0;
    SC_TRY(cli_add_input(c, "--system", o->system, in, n));
    SC_TRY(cli_add_input(c, "--network", o->network, in, n));
    SC_TRY(cli_add_input(c, "--memory", o->memory, in, n));
    for (uint32_t i = 0; o->groups && o->groups[i]; i++)
        SC_TRY(cli_add_input(c, "--comm-groups", o->groups[i], in, n));
    return cli_add_input(c, "--config", c->config, in, n);
}

static void as_text(const void *report, sc_text *out)
{
    sc_report_simulation_text(report, out);
}

static void as_json(const void *report, sc_json *out)
{
    sc_report_simulation_json(report, out);
}

static sc_status print(cli *c, const simulate_run *r, sc_report_simulation *s)
{
    uint32_t n_groups = 0;
    while (r->o->groups && r->o->groups[n_groups]) n_groups++;
    sc_report_input *in =
        SC_NEW_N(c->arena, sc_report_input, (size_t)MAX_INPUTS + n_groups);
    if (!in) return sc_error_nomem(c->err);
    SC_TRY(inputs(c, r->o, in, &s->n_inputs));
    s->input = in;
    SC_TRY(cli_lines(c, &r->warnings, &s->warnings, &s->n_warnings));
    SC_TRY(cli_lines(c, &r->assumptions, &s->assumptions, &s->n_assumptions));
    return cli_print(c, s, as_text, as_json);
}

/* ---- the command --------------------------------------------------------- */

static sc_status go(cli *c, simulate_run *r)
{
    double begun = cli_now_s();
    sc_report_simulation s = {.w = &r->w,
                              .net = &r->network,
                              .opts = &r->opts,
                              .r = &r->result,
                              .all_links = r->o->links == 1};
    SC_TRY(cli_simulate_load(c, r));
    cli_note(c, "%s", r->warnings.buf);
    r->opts.progress = cli_progress(c);
    SC_TRY(simulate(c, r, &r->opts, &r->result, c->err));
    cli_note(c, "%s", r->result.warnings);
    sc_text_add(&r->warnings, "%s", r->result.warnings);
    if (r->result.n_finished < r->result.n_ranks)
        return cli_simulate_stuck(c, r);
    s.mode = r->mode;
    s.machine = r->machine;
    s.wall_s = cli_now_s() - begun;
    s.peak_rss_bytes = cli_peak_rss();
    s.workload_hash = sc_workload_hash(&r->w);
    compare(c, r, &s.other);
    SC_TRY(write_trace(c, r));
    return print(c, r, &s);
}

static sc_status check(cli *c, const simulate_opts *o, const sc_given *given,
                       const sc_words *words)
{
    if (words->n)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        "`stepcast simulate --help` lists the options",
                        "unexpected word \"%.60s\"", words->w[0]);
    if (o->mix) return SC_OK;
    const char *alone = o->cluster ? "--cluster"
                        : sc_given_has(given, cli_simulate_keys, "steps")
                            ? "--steps"
                            : NULL;
    if (alone)
        return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_file(alone),
                        "traces run on --system and --network",
                        "it belongs to --mix");
    const char *missing = !o->workloads || !o->workloads[0] ? "--workload"
                          : !o->system                      ? "--system"
                          : !o->network                     ? "--network"
                                                            : NULL;
    if (!missing) return SC_OK;
    return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                    "simulate needs --workload, --system and --network, or "
                    "--mix and --cluster",
                    "%s is missing", missing);
}

static sc_status check_mix(cli *c, const simulate_opts *o,
                           const sc_opt_set *set)
{
    static const char *const used[] = {"mix",   "cluster",          "steps",
                                       "links", "adaptive-routing", NULL};
    SC_TRY(cli_check_used(c, set, used, "it does not apply to --mix"));
    if (o->cluster) return SC_OK;
    return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_file("--mix"),
                    "for example --cluster dgx-h100:16", "no cluster is given");
}

/* Errors of a run name PREFIX.RANK.et for all formats of the rank's file. */
static void name_files(cli *c)
{
    static const char *const forms[] = {".et.zst", ".et.gz", ".json"};
    for (uint32_t i = 0; i < c->err->n; i++) {
        char *file = c->err->d[i].file, other[sizeof c->err->d[i].file];
        size_t n = strlen(file);
        if (n < 4 || strcmp(file + n - 3, ".et") != 0) continue;
        if (access(file, F_OK) == 0) continue;
        for (size_t k = 0; k < SC_COUNT(forms); k++) {
            int len = snprintf(other, sizeof other, "%.*s%s", (int)n - 3, file,
                               forms[k]);
            if (len < 0 || (size_t)len >= sizeof other) continue;
            if (access(other, F_OK) != 0) continue;
            memcpy(file, other, (size_t)len + 1);
            break;
        }
    }
}

sc_status cli_simulate(cli *c, int argc, char *const *argv)
{
    simulate_opts o = {0};
    sc_opt_set set = {cli_simulate_keys, &o, {{0}}};
    sc_words words = {0};
    simulate_run r = {.o = &o};
    SC_TRY(sc_schema_defaults(cli_simulate_keys, &o, c->arena, c->err));
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &words));
    if (c->dump_config) return cli_dump(c, &set, 1);
    SC_TRY(check(c, &o, &set.given, &words));
    if (o.mix) {
        SC_TRY(check_mix(c, &o, &set));
        return cli_simulate_mix(c, &o, &set);
    }
    o.fidelity_given = sc_given_has(&set.given, cli_simulate_keys, "fidelity");
    o.congestion_given =
        sc_given_has(&set.given, cli_simulate_keys, "congestion");
    sc_text_init(&r.warnings);
    sc_text_init(&r.assumptions);
    sc_status s = go(c, &r);
    sc_text_free(&r.warnings);
    sc_text_free(&r.assumptions);
    if (s != SC_OK) name_files(c);
    return s;
}
