/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - `stepcast replay`: measured traces run again, as they were or with
 * changes. */
#include "cli/replay.h"

#include "cli/predict.h"
#include "report/report_replay.h"
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_CAUSES 10
#define MAX_HASHED ((off_t)64 << 20) /* bytes of a trace whose hash is given */

#define OFF(f) offsetof(replay_opts, f)
const sc_key cli_replay_keys[] = {
    {.name = "steps",
     .group = "what runs",
     .type = SC_T_STRING,
     .offset = OFF(steps),
     .def = "all",
     .flag = "--steps",
     .meta = "first|all|N..M",
     .help = "steps of the traces, numbered from 0"},
    {.name = "rank-pattern",
     .group = "what runs",
     .type = SC_T_STRING,
     .offset = OFF(pattern),
     .flag = "--rank-pattern",
     .meta = "PATTERN",
     .help = "where names of files have the rank: 'worker{rank}_*' [the trace "
             "states it, or a number behind rank or worker]"},
    {.name = "scale",
     .group = "what changes",
     .type = SC_T_LIST,
     .offset = OFF(scales),
     .flag = "--scale",
     .meta = "KIND=FACTOR",
     .help = "multiply durations of compute, comm, memory or host, or of "
             "kernel:GLOB, by FACTOR"},
    {.name = "device",
     .group = "what changes",
     .type = SC_T_STRING,
     .offset = OFF(device),
     .flag = "--device",
     .meta = "NAME",
     .help = "run kernels on this device: their times are predicted from the "
             "shapes of operators, relative to those on the traced device"},
    {.name = "predict-kernels",
     .group = "what changes",
     .type = SC_T_BOOL,
     .offset = OFF(predict_kernels),
     .def = "false",
     .flag = "--predict-kernels",
     .help = "predict kernels from the shapes of operators alone, not relative "
             "to what was measured"},
    {.name = "measured",
     .group = "what changes",
     .type = SC_T_STRING,
     .offset = OFF(times),
     .flag = "--measured",
     .meta = "TABLE",
     .help = "with --device or --predict-kernels: times of operators, as the "
             "program of calibrate --measure-list prints them"},
    {.name = "cluster",
     .group = "what changes",
     .type = SC_T_STRING,
     .offset = OFF(cluster),
     .flag = "--cluster",
     .meta = "SPEC",
     .help =
         "run collectives on this machine, on which ranks are in its order"},
    {.name = "ranks",
     .group = "what changes",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(ranks),
     .min = 1,
     .max = 1 << 24,
     .flag = "--ranks",
     .meta = "N",
     .help = "run the job on N ranks of --cluster, each with the work of a "
             "traced one: groups that exchange parameters grow with it"},
    {.name = "batch",
     .group = "what changes",
     .type = SC_T_QUANTITY,
     .offset = OFF(batch),
     .def = "1",
     .min = 1e-6,
     .max = 1e6,
     .flag = "--batch",
     .meta = "FACTOR",
     .help = "multiply the samples of each rank: operators take what is "
             "predicted from their shapes, relative to what was measured"},
    {.name = "host",
     .group = "what changes",
     .type = SC_T_LIST,
     .offset = OFF(hosts),
     .flag = "--host",
     .meta = "TRACE",
     .help = "let operators and launches cost the host what they cost in this "
             "trace, or in several together"},
    {.name = "drop-straggler",
     .group = "what changes",
     .type = SC_T_BOOL,
     .offset = OFF(drop_straggler),
     .def = "false",
     .flag = "--drop-straggler",
     .help = "make no rank slower than the median rank"},
    {.name = "cuda-graphs",
     .group = "what changes",
     .type = SC_T_BOOL,
     .offset = OFF(cuda_graphs),
     .def = "false",
     .flag = "--cuda-graphs",
     .help = "launch kernels between two waits of the host as one graph"},
    {.name = "fuse",
     .group = "what changes",
     .type = SC_T_BOOL,
     .offset = OFF(fuse),
     .def = "false",
     .flag = "--fuse",
     .help = "make element-wise kernels in a row one kernel"},
    {.name = "overlap",
     .group = "what changes",
     .type = SC_T_BOOL,
     .offset = OFF(overlap),
     .def = "false",
     .flag = "--overlap",
     .help = "let no kernel wait for a collective"},
    {.name = "no-sync",
     .group = "what changes",
     .type = SC_T_BOOL,
     .offset = OFF(no_sync),
     .def = "false",
     .flag = "--no-sync",
     .help = "let the host wait for no device"},
    {.name = "against",
     .group = "the answer",
     .type = SC_T_LIST,
     .offset = OFF(against),
     .flag = "--against",
     .meta = "TRACE",
     .help = "explain the difference from these traces"},
    {.name = "findings",
     .group = "the answer",
     .type = SC_T_BOOL,
     .offset = OFF(findings),
     .def = "true",
     .flag = "--findings",
     .help = "simulate what the step would gain; --no-findings saves the time"},
    {.name = "emit-chakra",
     .group = "the answer",
     .type = SC_T_STRING,
     .offset = OFF(chakra),
     .flag = "--emit-chakra",
     .meta = "DIR",
     .help = "write the replay as Chakra traces DIR/replay.RANK.et"},
    {.name = "trace",
     .group = "the answer",
     .type = SC_T_STRING,
     .offset = OFF(trace),
     .flag = "--trace",
     .meta = "FILE",
     .help = "write the replayed timeline as Chrome trace JSON; .gz: "
             "compressed"},
    {0},
};

/* ---- options ------------------------------------------------------------- */

static sc_status read_steps(const cli *c, const char *text,
                            sc_replay_steps *out)
{
    char *end;
    *out = (sc_replay_steps){0, UINT32_MAX};
    if (strcmp(text, "all") == 0) return SC_OK;
    if (strcmp(text, "first") == 0) {
        out->last = 0;
        return SC_OK;
    }
    if (cli_whole(text, &end, &out->first)) {
        out->last = out->first;
        if (!*end) return SC_OK;
        if (strncmp(end, "..", 2) == 0 && !end[2]) {
            out->last = UINT32_MAX;
            return SC_OK;
        }
        if (strncmp(end, "..", 2) == 0 &&
            cli_whole(end + 2, &end, &out->last) && !*end &&
            out->last >= out->first)
            return SC_OK;
    }
    return cli_replay_bad(c, "--steps", text, "write first, all, 3 or 1..4",
                          "this names no steps");
}

/* ---- printing ------------------------------------------------------------ */

static sc_status inputs(cli *c, const sc_words *words, sc_report_replay *s)
{
    struct stat st;
    sc_report_input *in =
        SC_NEW_N(c->arena, sc_report_input, words->n + (size_t)1);
    if (!in) return sc_error_nomem(c->err);
    for (uint32_t i = 0; i < words->n; i++) {
        if (stat(words->w[i], &st) != 0 || st.st_size > MAX_HASHED) continue;
        SC_TRY(cli_add_input(c, "TRACE", words->w[i], in, &s->n_inputs));
    }
    s->input = in;
    return SC_OK;
}

static void as_text(const void *report, sc_text *out)
{
    sc_report_replay_text(report, out);
}

static void as_json(const void *report, sc_json *out)
{
    sc_report_replay_json(report, out);
}

static sc_status print(cli *c, replay_run *r, sc_report_replay *s)
{
    SC_TRY(cli_lines(c, &r->warnings, &s->warnings, &s->n_warnings));
    SC_TRY(cli_lines(c, &r->assumptions, &s->assumptions, &s->n_assumptions));
    return cli_print(c, s, as_text, as_json);
}

static sc_status write_trace(cli *c, const replay_opts *o,
                             const sc_replay_result *r)
{
    sc_json j;
    if (!o->trace) return SC_OK;
    sc_json_init(&j, false);
    sc_report_chrome_trace(r->graph, r->run, NULL, 0, &j);
    sc_status s = cli_write_json(c, o->trace, &j);
    sc_json_free(&j);
    return s;
}

static sc_status write_chakra(cli *c, const replay_opts *o, replay_run *r,
                              const sc_replay_result *result)
{
    sc_workload w;
    if (!o->chakra) return SC_OK;
    const char *prefix = sc_sprintf(c->arena, "%s/replay", o->chakra);
    if (!prefix) return sc_error_nomem(c->err);
    SC_TRY(sc_replay_workload(r->set.model, result, c->arena, &r->warnings, &w,
                              c->err));
    SC_TRY(sc_folder_make(o->chakra, c->err));
    return sc_trace_write(&w, prefix, c->err);
}

/* ---- the command --------------------------------------------------------- */

static sc_status against(cli *c, const replay_opts *o, replay_run *r,
                         sc_report_replay *s)
{
    uint32_t n = 0, n_there;
    replay_set set = {0};
    sc_replay_entry *there;
    sc_replay_result *result = SC_NEW(c->arena, sc_replay_result);
    sc_report_cause *cause;
    sc_replay_change none;
    while (o->against && o->against[n]) n++;
    if (n == 0) return SC_OK;
    if (!result) return sc_error_nomem(c->err);
    sc_replay_change_init(&none);
    SC_TRY(cli_replay_load(c, o->pattern, &r->steps, o->against, n,
                           &r->warnings, &r->assumptions, &set));
    s->n_events += set.n_events;
    SC_TRY(sc_replay_run(set.model, &none, c->arena, result, c->err));
    SC_TRY(sc_replay_entries(set.model, result, c->arena, &there, &n_there,
                             c->err));
    SC_TRY(sc_report_causes(s->entry, s->n_entries, s->r->n_steps, there,
                            n_there, result->n_steps, MAX_CAUSES, c->arena,
                            &cause, &s->n_causes, c->err));
    s->cause = cause;
    s->against = result;
    return SC_OK;
}

static sc_status analyse(cli *c, const replay_opts *o, replay_run *r,
                         sc_report_replay *s)
{
    const sc_replay_model *m = r->set.model;
    sc_replay_entry *entry;
    sc_replay_kernel *kernel;
    sc_replay_finding *finding;
    SC_TRY(sc_replay_entries(m, s->r, c->arena, &entry, &s->n_entries, c->err));
    SC_TRY(
        sc_replay_kernels(m, s->r, c->arena, &kernel, &s->n_kernels, c->err));
    s->entry = entry;
    s->kernel = kernel;
    if (!o->findings) return SC_OK;
    SC_TRY(sc_replay_find(m, s->r, &r->change, c->arena, &finding,
                          &s->n_findings, c->err));
    s->finding = finding;
    return SC_OK;
}

static sc_status go(cli *c, const replay_opts *o, const sc_words *words,
                    replay_run *r)
{
    double begun = cli_now_s();
    sc_replay_result result, unchanged;
    sc_replay_change none;
    sc_report_replay s = {.r = &result};
    sc_replay_memory *memory;
    sc_host_overheads host;
    SC_TRY(read_steps(c, o->steps, &r->steps));
    SC_TRY(cli_replay_changes(c, o, r));
    SC_TRY(cli_replay_load(c, o->pattern, &r->steps, words->w, words->n,
                           &r->warnings, &r->assumptions, &r->set));
    SC_TRY(cli_replay_machines(c, o, r));
    SC_TRY(sc_replay_run(r->set.model, &r->change, c->arena, &result, c->err));
    if (r->n_names) {
        sc_replay_change_init(&none);
        SC_TRY(
            sc_replay_run(r->set.model, &none, c->arena, &unchanged, c->err));
        s.unchanged = &unchanged;
    }
    s.change = r->name;
    s.n_changes = r->n_names;
    s.residual = sc_replay_residual(r->set.model);
    SC_TRY(sc_replay_memory_of(r->set.model, c->arena, &memory, &s.n_memory,
                               c->err));
    s.memory = memory;
    const sc_replay_model *model = r->set.model;
    SC_TRY(sc_host_overheads_of(&model, 1, c->arena, &host, c->err));
    s.host = &host;
    SC_TRY(analyse(c, o, r, &s));
    SC_TRY(against(c, o, r, &s));
    SC_TRY(write_trace(c, o, &result));
    SC_TRY(write_chakra(c, o, r, &result));
    SC_TRY(inputs(c, words, &s));
    s.n_events += r->set.n_events;
    s.wall_s = cli_now_s() - begun;
    s.peak_rss_bytes = cli_peak_rss();
    return print(c, r, &s);
}

sc_status cli_replay(cli *c, int argc, char *const *argv)
{
    replay_opts o = {0};
    sc_opt_set set = {cli_replay_keys, &o, {{0}}};
    sc_words words = {0};
    replay_run r = {.n_names = 0};
    SC_TRY(sc_schema_defaults(cli_replay_keys, &o, c->arena, c->err));
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &words));
    if (c->dump_config) return cli_dump(c, &set, 1);
    if (words.n == 0)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "give the trace of each rank: stepcast replay "
                        "rank*.json.gz",
                        "no trace is given");
    sc_text_init(&r.warnings);
    sc_text_init(&r.assumptions);
    sc_status s = go(c, &o, &words, &r);
    sc_text_free(&r.warnings);
    sc_text_free(&r.assumptions);
    return s;
}
