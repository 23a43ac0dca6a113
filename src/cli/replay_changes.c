/* SPDX-License-Identifier: Apache-2.0 */
/* replay_changes.c - what `stepcast replay` is to change: durations, and the device,
 * machine, host and job on which the traces run again. */
#include "cli/replay.h"
#include "cost/cost_alone.h"
#include "replay/replay_host.h"
#include "replay/replay_measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sc_status cli_replay_bad(const cli *c, const char *flag, const char *value,
                         const char *hint, const char *what)
{
    return sc_error(c->err, SC_EUSAGE, SC_C_OPTION,
                    sc_pos_option(c->arena, flag, value), hint, "%s", what);
}

static sc_status read_factor(const cli *c, const char *scale, const char *text,
                             double *out)
{
    sc_err err;
    sc_err_init(&err);
    sc_status s = sc_unit_parse(text, SC_U_NONE, sc_pos_none(), out, &err);
    if (s == SC_OK && *out >= 0 && *out <= 1e6) return SC_OK;
    return cli_replay_bad(c, "--scale", scale, "write compute=0.5",
                          "the factor is not a number from 0 to 1e6");
}

static sc_status read_scale(const cli *c, const char *scale,
                            sc_replay_change *out, sc_replay_glob *glob)
{
    const char *eq = strrchr(scale, '=');
    double factor;
    if (!eq || eq == scale)
        return cli_replay_bad(c, "--scale", scale, "write compute=0.5",
                              "this has no factor");
    char *kind = sc_strndup(c->arena, scale, (size_t)(eq - scale));
    if (!kind) return sc_error_nomem(c->err);
    SC_TRY(read_factor(c, scale, eq + 1, &factor));
    if (strncmp(kind, "kernel:", 7) == 0 && kind[7]) {
        glob[out->n_globs++] = (sc_replay_glob){kind + 7, factor};
        return SC_OK;
    }
    for (int i = 0; i < SC_N_REPLAY_CLASSES; i++) {
        if (strcmp(kind, sc_replay_class_names[i]) != 0) continue;
        out->factor[i] *= factor;
        return SC_OK;
    }
    return cli_replay_bad(c, "--scale", scale,
                          cli_hint(c, kind, sc_replay_class_names,
                                   "kinds are compute, comm, memory, host and "
                                   "kernel:GLOB"),
                          "this is no kind of time");
}

/* Reads the changes and lists them as the user would write them. */
sc_status cli_replay_changes(cli *c, const replay_opts *o, replay_run *r)
{
    uint32_t n = 0, n_hosts = 0;

    const struct {
        bool on;
        const char *flag;
    } flags[] = {{o->drop_straggler, "--drop-straggler"},
                 {o->cuda_graphs, "--cuda-graphs"},
                 {o->fuse, "--fuse"},
                 {o->overlap, "--overlap"},
                 {o->no_sync, "--no-sync"}};

    sc_replay_change *x = &r->change;
    while (o->scales && o->scales[n]) n++;
    while (o->hosts && o->hosts[n_hosts]) n_hosts++;
    sc_replay_glob *glob = SC_NEW_N(c->arena, sc_replay_glob, n);
    r->name =
        SC_NEW_N(c->arena, const char *, n + n_hosts + SC_COUNT(flags) + 6);
    if (!glob || !r->name) return sc_error_nomem(c->err);
    sc_replay_change_init(x);
    for (uint32_t i = 0; i < n; i++) {
        SC_TRY(read_scale(c, o->scales[i], x, glob));
        r->name[r->n_names] = sc_sprintf(c->arena, "--scale %s", o->scales[i]);
        if (!r->name[r->n_names++]) return sc_error_nomem(c->err);
    }
    for (size_t i = 0; i < SC_COUNT(flags); i++)
        if (flags[i].on) r->name[r->n_names++] = flags[i].flag;
    x->glob = glob;
    x->drop_straggler = o->drop_straggler;
    x->cuda_graphs = o->cuda_graphs;
    x->fuse = o->fuse;
    x->overlap = o->overlap;
    x->no_sync = o->no_sync;
    return SC_OK;
}

static sc_status name_change(cli *c, replay_run *r, const char *flag,
                             const char *value)
{
    const char *name =
        value ? sc_sprintf(c->arena, "%s %s", flag, value) : flag;
    if (!name) return sc_error_nomem(c->err);
    r->name[r->n_names++] = name;
    return SC_OK;
}

bool cli_has_kernels(const sc_profiled *m)
{
    for (uint64_t i = 0; i < m->n_spans; i++)
        if (sc_trace_span_at(m, i)->kind == SC_SPAN_KERNEL) return true;
    return false;
}

/* NVTX has no types of operators' inputs. */
static bool shapes_without_types(const replay_set *x)
{
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t k = 0; k < x->m[i]->n_args; k++)
            if (x->m[i]->args[k].dims && !x->m[i]->args[k].types) return true;
    return false;
}

/* The device of the traces and the one to predict for. */
static sc_status other_device(cli *c, const replay_opts *o, replay_run *r)
{
    const sc_profiled *m = r->set.m[0];
    const char *why = NULL;
    const char *flag = o->device            ? "--device"
                       : o->predict_kernels ? "--predict-kernels"
                                            : "--batch";
    sc_pos pos = sc_pos_option(c->arena, flag, o->device);
    bool needed = o->device || o->predict_kernels || cli_has_kernels(m);
    if (!needed) return SC_OK;
    if (!m->device)
        return sc_error(
            c->err, SC_EINPUT, SC_C_MISSING, pos,
            "a trace needs deviceProperties, a report TARGET_INFO_GPU",
            "%.80s does not state its device", m->file);
    if (o->device) {
        sc_status s =
            sc_device_find(o->device, c->arena, &r->change.to, c->err);
        if (s != SC_OK && c->err->n && !c->err->d[0].file[0])
            snprintf(c->err->d[0].file, sizeof c->err->d[0].file, "%s",
                     pos.file);
        SC_TRY(s);
    }
    SC_TRY(
        sc_device_nearest(m->device, c->arena, &r->change.from, &why, c->err));
    if (why) sc_text_add(&r->warnings, "%s\n", why);
    if (shapes_without_types(&r->set))
        sc_text_add(&r->assumptions,
                    "operators whose types are not stated work on fp32\n");
    r->change.predict_kernels = o->predict_kernels;
    if (o->device) SC_TRY(name_change(c, r, "--device", o->device));
    if (o->predict_kernels)
        SC_TRY(name_change(c, r, "--predict-kernels", NULL));
    if (!o->device) return SC_OK;
    sc_text_add(&r->assumptions,
                "the program calls the same operators on %s; launches, copies "
                "and collectives take as long as on %s\n",
                r->change.to->name, r->change.from->name);
    return SC_OK;
}

/* Operators that somebody measured on the device. */
static sc_status measured_times(cli *c, const replay_opts *o, replay_run *r)
{
    sc_csv table;
    uint32_t n_other;
    const sc_device *d = r->change.to ? r->change.to : r->change.from;
    sc_replay_times *t = SC_NEW(c->arena, sc_replay_times);
    if (!o->times) return SC_OK;
    if (!t) return sc_error_nomem(c->err);
    if (!o->device && !o->predict_kernels)
        return cli_replay_bad(c, "--measured", o->times,
                              "give --device NAME or --predict-kernels",
                              "times of operators replace predicted ones");
    if (o->batch != 1)
        return cli_replay_bad(
            c, "--measured", o->times, "leave one of them out",
            "operators were measured with the traced batch, not with "
            "another one");
    SC_TRY(cli_read_tables(c, &o->times, 1, &table));
    SC_TRY(sc_replay_times_read(&table, d, c->arena, t, &n_other, c->err));
    if (n_other)
        sc_text_add(&r->warnings, "%s: %u rows are of other devices than %s\n",
                    o->times, n_other, d->name);
    r->change.times = t;
    return name_change(c, r, "--measured", o->times);
}

static sc_status other_machine(cli *c, const replay_opts *o, replay_run *r)
{
    SC_TRY(sc_hw_build(o->cluster,
                       sc_pos_option(c->arena, "--cluster", o->cluster),
                       c->arena, &r->change.hw, c->err));
    sc_text_add(&r->assumptions,
                "collectives are NCCL's and run alone on their links; those "
                "whose sizes the trace does not state last as long as "
                "recorded\n");
    return name_change(c, r, "--cluster", o->cluster);
}

/* Another number of ranks, or of samples. */
static sc_status other_job(cli *c, const replay_opts *o, replay_run *r)
{
    if (o->ranks) {
        if (!o->cluster)
            return cli_replay_bad(
                c, "--ranks", sc_sprintf(c->arena, "%lld", (long long)o->ranks),
                "give --cluster",
                "collectives among other ranks need "
                "the machine on which they run");
        r->change.ranks = (uint32_t)o->ranks;
        sc_text_add(
            &r->assumptions,
            "each of %lld ranks has the work of a traced one; groups of "
            "all ranks, and those that exchange flat buffers, have more "
            "or fewer members\n",
            (long long)o->ranks);
        SC_TRY(name_change(c, r, "--ranks",
                           sc_sprintf(c->arena, "%lld", (long long)o->ranks)));
    }
    if (o->batch == 1) return SC_OK;
    const char *text = sc_sprintf(c->arena, "%g", o->batch);
    r->change.batch = o->batch;
    sc_text_add(&r->assumptions,
                "tensors with more than one dimension have the samples first, "
                "except parameters; the program launches as many kernels\n");
    return name_change(c, r, "--batch", text);
}

/* The overheads of other traces, each a job of its own. */
static sc_status other_host(cli *c, const replay_opts *o, replay_run *r)
{
    uint32_t n = 0, n_jobs = 0;
    while (o->hosts && o->hosts[n]) n++;
    if (n == 0) return SC_OK;
    sc_host_overheads *host = SC_NEW(c->arena, sc_host_overheads);
    const sc_replay_model **m = SC_NEW_N(c->arena, const sc_replay_model *, n);
    if (!host || !m) return sc_error_nomem(c->err);
    for (uint32_t i = 0, files; i < n; i += files) {
        replay_set set;
        sc_replay_steps all = {0, UINT32_MAX};
        files = cli_replay_job(&o->hosts[i]);
        SC_TRY(cli_replay_load(c, o->pattern, &all, &o->hosts[i], files,
                               &r->warnings, &r->assumptions, &set));
        if (!cli_has_kernels(set.m[0]))
            return cli_replay_bad(c, "--host", o->hosts[i],
                                  "give a trace of a run on a device",
                                  "operators of this trace compute on the "
                                  "host, so that their time is no overhead");
        SC_TRY(name_change(c, r, "--host", o->hosts[i]));
        m[n_jobs++] = set.model;
    }
    r->change.host = host;
    return sc_host_overheads_of(m, n_jobs, c->arena, host, c->err);
}

/* What needs prices. */
sc_status cli_replay_machines(cli *c, const replay_opts *o, replay_run *r)
{
    sc_cost *cost = SC_NEW(c->arena, sc_cost);
    bool kernels = o->device || o->predict_kernels || o->batch != 1;
    SC_TRY(other_job(c, o, r));
    SC_TRY(other_host(c, o, r));
    if (!kernels && !o->cluster && !o->times) return SC_OK;
    if (!cost) return sc_error_nomem(c->err);
    if (kernels) SC_TRY(other_device(c, o, r));
    SC_TRY(measured_times(c, o, r));
    if (o->cluster) SC_TRY(other_machine(c, o, r));
    SC_TRY(sc_cost_builtin(c->arena, cost, c->err));
    SC_TRY(sc_cost_alone(c->arena, cost, c->err));
    r->change.cost = cost;
    return SC_OK;
}
