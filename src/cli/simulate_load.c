/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_load.c - loads the files of `stepcast simulate`. */
#include "cli/simulate.h"
#include "graph/graph_scale.h"
#include "trace/trace_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- modes --------------------------------------------------------------- */

static sc_status conflict(cli *c, const char *option, const char *hint,
                          const char *what)
{
    return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(option), hint,
                    "%s", what);
}

static sc_status find_rules(cli *c, simulate_run *r)
{
    const char *names[16];
    uint32_t n, known = 0;
    const sc_rules *rows = sc_rules_all(&n);
    for (uint32_t i = 1; i < n && known < 15; i++)
        if (rows[i].of_traces) names[known++] = rows[i].name;
    names[known] = NULL;
    r->rules = sc_rules_find(r->o->compat);
    bool fits = r->rules && r->rules->of_traces;
    if (fits && (!r->o->compat || r->rules != rows)) return SC_OK;
    const char *one = sc_sprintf(c->arena, "write %s", names[0]);
    return sc_error(c->err, SC_EINPUT, SC_C_UNKNOWN_NAME,
                    sc_pos_option(c->arena, "--compat", r->o->compat),
                    cli_hint(c, r->o->compat, names, one), "no such mode");
}

static sc_status find_mode(cli *c, simulate_run *r)
{
    static const char *const fidelities[] = {"chunk", "flow", "analytic"};
    static const char *const congestions[] = {"congestion aware",
                                              "congestion unaware"};
    const simulate_opts *o = r->o;
    SC_TRY(find_rules(c, r));
    if (!o->compat && o->congestion_given)
        return conflict(c, "--congestion",
                        "--fidelity chunk has links, --fidelity analytic none",
                        "only compatible modes have it");
    if (o->compat && o->fidelity_given && o->fidelity != SIMULATE_CHUNK)
        return conflict(c, "--fidelity",
                        "--congestion aware has links, --congestion unaware "
                        "none",
                        "a compatible mode has its own");
    r->opts.links = o->compat ? o->congestion == SIMULATE_AWARE
                              : o->fidelity != SIMULATE_ANALYTIC;
    r->mode = o->compat ? sc_sprintf(c->arena, "%s, %s", o->compat,
                                     congestions[o->congestion])
                        : fidelities[o->fidelity];
    return r->mode ? SC_OK : sc_error_nomem(c->err);
}

/* ---- network ------------------------------------------------------------- */

/* A text that is no file and does not end like a file name is a machine. */
static bool names_file(const char *text)
{
    struct stat st;
    size_t n = strlen(text);
    static const char *const ends[] = {".yml", ".yaml", ".json"};
    if (stat(text, &st) == 0 || strcmp(text, "-") == 0) return true;
    for (size_t i = 0; i < SC_COUNT(ends); i++) {
        size_t k = strlen(ends[i]);
        if (n > k && strcmp(text + n - k, ends[i]) == 0) return true;
    }
    return false;
}

/* A YAML file of dimensions contains lists; other files describe machines. */
static sc_status names_network(cli *c, const char *file, bool *out)
{
    static const char *const keys[] = {"node", "nodes", "device", "wiring"};
    char *text = NULL;
    size_t len = 0;
    sc_node *root = NULL;
    sc_err err;
    sc_err_init(&err);
    *out = true;
    SC_TRY(sc_file_read(file, SC_DOC_MAX_BYTES, c->arena, &text, &len, c->err));
    if (sc_doc_parse(text, len, SC_FMT_AUTO, file, c->arena, &root, &err) !=
            SC_OK ||
        root->kind != SC_N_MAP)
        return SC_OK; /* its reader reports the error */
    for (size_t i = 0; i < SC_COUNT(keys); i++)
        if (sc_node_get(root, keys[i])) *out = false;
    return SC_OK;
}

static sc_status load_machine(cli *c, simulate_run *r, const sc_hw **hw)
{
    const char *text = r->o->network;
    sc_pos pos = sc_pos_option(c->arena, "--network", text);
    SC_TRY(sc_hw_build(text, pos, c->arena, hw, c->err));
    if ((*hw)->n_groups > 0) r->opts.devices = *hw;
    SC_TRY(sc_trace_machine_network(*hw, pos, &r->network, c->err));
    if (sc_trace_machine_is_network(*hw)) return SC_OK;
    if (r->o->compat || !r->opts.links)
        return sc_error(c->err, SC_EINPUT, SC_C_UNSUPPORTED, pos,
                        "use --fidelity chunk or flow, which follow its routes",
                        "this machine has links other than rings, meshes, "
                        "switches and fully connected dimensions");
    r->opts.hw = *hw;
    r->machine = text;
    return SC_OK;
}

/* Flows run over the links of a machine. */
static sc_status load_flows(cli *c, simulate_run *r, const sc_hw *hw)
{
    r->opts.flows = true;
    r->opts.hw = hw;
    if (hw) return SC_OK;
    return sc_network_machine(&r->network, c->arena, &r->opts.hw, c->err);
}

static sc_status load_network(cli *c, simulate_run *r)
{
    const sc_hw *hw = NULL;
    bool network = false;
    if (names_file(r->o->network))
        SC_TRY(names_network(c, r->o->network, &network));
    if (network)
        SC_TRY(sc_network_read(r->o->network, c->arena, &r->network, c->err));
    else
        SC_TRY(load_machine(c, r, &hw));
    if (!r->o->compat && r->o->fidelity == SIMULATE_FLOW)
        SC_TRY(load_flows(c, r, hw));
    r->opts.routes.rule = r->o->adaptive ? SC_ROUTE_ADAPTIVE : SC_ROUTE_ECMP;
    r->opts.routes.seed = (uint64_t)c->seed;
    if (!r->o->compat || !r->opts.links || r->network.n_dims == 1) return SC_OK;
    return sc_error(
        c->err, SC_EINPUT, SC_C_CONFLICT, r->network.dim[1].pos,
        "--congestion unaware takes several dimensions; without --compat, "
        "several dimensions with congestion are simulated",
        "the congestion-aware network of %s has one dimension, "
        "this one %u",
        r->o->compat, r->network.n_dims);
}

/* ---- workloads ----------------------------------------------------------- */

/* One --workload PREFIX[@FIRST_RANK]. */
typedef struct job {
    const char *text, *prefix;
    int64_t first; /* -1: after the previous one */
    uint32_t n;    /* ranks; 0: as many as there are files */
    sc_workload w;
} job;

static sc_status split_job(cli *c, const char *text, job *j)
{
    const char *at = strrchr(text, '@');
    *j = (job){.text = text, .prefix = text, .first = -1};
    if (!at || at[1] == '\0' || strspn(at + 1, "0123456789") != strlen(at + 1))
        return SC_OK;
    if (strlen(at + 1) > 9)
        return sc_error(c->err, SC_EUSAGE, SC_C_RANGE,
                        sc_pos_option(c->arena, "--workload", text), NULL,
                        "the number of ranks is out of range");
    j->first = strtol(at + 1, NULL, 10);
    j->prefix = sc_strndup(c->arena, text, (size_t)(at - text));
    return j->prefix ? SC_OK : sc_error_nomem(c->err);
}

static const char *groups_of(const simulate_opts *o, uint32_t i)
{
    const char *file = NULL;
    for (uint32_t k = 0; o->groups && o->groups[k] && k <= i; k++)
        file = o->groups[k];
    return file && strcmp(file, "empty") != 0 ? file : NULL;
}

static sc_status read_job(cli *c, simulate_run *r, uint32_t i, bool names,
                          job *j)
{
    sc_trace_opts t = {.names = names,
                       .ids = names || r->system.n_node_ccl > 0,
                       .micros = r->rules->durations_in_micros,
                       .zero_is_world = r->rules->group_zero_is_world,
                       .warnings = &r->warnings};
    sc_rank_group *groups = NULL;
    const char *file = groups_of(r->o, i);
    if (j->n == 0) j->n = sc_trace_ranks(j->prefix);
    if (j->n == 0) j->n = 1; /* the reader reports missing files */
    if (file)
        SC_TRY(
            sc_groups_read(file, j->n, c->arena, &groups, &t.n_groups, c->err));
    t.groups = groups;
    return sc_trace_read(j->prefix, j->n, &t, c->arena, &j->w, c->err);
}

/* Measured traces are read once: they keep names and ids anyway. `fill`: the
 * network determines the number of ranks. */
static sc_status read_measured(cli *c, simulate_run *r, uint32_t i, bool fill,
                               job *j)
{
    if (groups_of(r->o, i))
        return conflict(c, "--comm-groups", "leave it out, or write empty",
                        "measured traces have their groups");
    if (r->measured[i].n_ranks == 0)
        SC_TRY(cli_simulate_measured(c, r, j->prefix, &r->measured[i]));
    j->w = r->measured[i];
    if (!fill || j->w.n_ranks >= r->network.n_ranks) return SC_OK;
    return sc_error(c->err, SC_EINPUT, SC_C_MISSING,
                    sc_pos_option(c->arena, "--workload", j->text),
                    sc_sprintf(c->arena,
                               "--workload '%.60s@0' takes as many NPUs as "
                               "there are traces",
                               j->prefix),
                    "traces of %u ranks on a network of %u", j->w.n_ranks,
                    r->network.n_ranks);
}

static sc_status scale(cli *c, simulate_run *r, job *j)
{
    uint32_t to = (uint32_t)r->o->scale_to;
    sc_workload larger;
    sc_status s = sc_workload_scale(&j->w, to, NULL, c->arena, &r->assumptions,
                                    &larger, c->err);
    if (s != SC_OK) {
        for (uint32_t i = 0; i < c->err->n; i++)
            if (!c->err->d[i].file[0])
                snprintf(c->err->d[i].file, sizeof c->err->d[i].file,
                         "--scale-to %u", to);
        return s;
    }
    j->w = larger;
    return SC_OK;
}

static sc_status too_many(cli *c, const simulate_run *r, const job *j,
                          uint64_t end)
{
    return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT,
                    sc_pos_option(c->arena, "--workload", j->text),
                    "the product of the network's dimensions is its ranks",
                    "ranks up to %llu on a network of %u",
                    (unsigned long long)end - 1, r->network.n_ranks);
}

static int by_first(const void *a, const void *b)
{
    const job *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Sorts jobs by their ranks and adds idle ranks between them. */
static sc_status join(cli *c, simulate_run *r, job *j, uint32_t n)
{
    sc_workload *all = SC_NEW_N(c->arena, sc_workload, 2 * (size_t)n);
    uint32_t have = 0;
    int64_t next = 0;
    if (!all) return sc_error_nomem(c->err);
    for (uint32_t i = 0; i < n; i++) {
        if (j[i].first < 0) j[i].first = next;
        next = j[i].first + j[i].w.n_ranks;
    }
    qsort(j, n, sizeof *j, by_first);
    next = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (j[i].first < next)
            return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT,
                            sc_pos_option(c->arena, "--workload", j[i].text),
                            "write PREFIX@FIRST_RANK",
                            "rank %lld already belongs to \"%.80s\"",
                            (long long)j[i].first, j[i - 1].prefix);
        if (j[i].first + j[i].w.n_ranks > r->network.n_ranks)
            return too_many(c, r, &j[i], (uint64_t)j[i].first + j[i].w.n_ranks);
        if (j[i].first > next)
            SC_TRY(sc_workload_idle((uint32_t)(j[i].first - next), c->arena,
                                    &all[have++], c->err));
        all[have++] = j[i].w;
        next = j[i].first + j[i].w.n_ranks;
    }
    if (have == 1) {
        r->w = all[0];
        return SC_OK;
    }
    return sc_workload_join(all, have, c->arena, &r->w, c->err);
}

/* Reports an error if the network has more NPUs than there are traces. */
static sc_status few_traces(cli *c, const job *j, sc_status s)
{
    for (uint32_t i = 0; j->first < 0 && i < c->err->n; i++) {
        sc_diag *d = &c->err->d[i];
        if (d->code == SC_C_IO && !d->hint[0])
            snprintf(
                d->hint, sizeof d->hint,
                "--workload %.60s@0 takes as many NPUs as there are traces",
                j->prefix);
    }
    return s;
}

/* The workload `i` of `n`. */
static sc_status load_job(cli *c, simulate_run *r, uint32_t i, uint32_t n,
                          bool names, job *j)
{
    SC_TRY(split_job(c, r->o->workloads[i], j));
    /* As in ASTRA-sim, the network determines the number of files. */
    bool fill = n == 1 && j->first < 0 && !r->o->scale_to;
    if (cli_simulate_is_measured(j->prefix)) {
        SC_TRY(read_measured(c, r, i, fill, j));
    } else {
        if (fill) j->n = r->network.n_ranks;
        sc_status s = read_job(c, r, i, names, j);
        if (s != SC_OK) return few_traces(c, j, s);
        if (sc_trace_exists(j->prefix, j->n))
            sc_text_add(&r->warnings,
                        "%s: warning: traces of ranks from %u on are not "
                        "read: the network has %u\n",
                        j->prefix, j->n, r->network.n_ranks);
    }
    return r->o->scale_to ? scale(c, r, j) : SC_OK;
}

/* With `names`, ranks share a class only if their tasks have the same names. */
static sc_status load_workloads(cli *c, simulate_run *r, bool names)
{
    const simulate_opts *o = r->o;
    uint32_t n = 0, n_groups = 0;
    while (o->workloads[n]) n++;
    while (o->groups && o->groups[n_groups]) n_groups++;
    if (n_groups > 1 && n_groups != n)
        return conflict(
            c, "--comm-groups", "one file for all jobs, or one for each",
            "the number of files differs from the number of --workload");
    if (n > 1 && o->scale_to)
        return conflict(c, "--scale-to", NULL, "several workloads are given");
    job *j = SC_NEW_N(c->arena, job, n);
    if (!r->measured) r->measured = SC_NEW_N(c->arena, sc_workload, n);
    if (!j || !r->measured) return sc_error_nomem(c->err);
    for (uint32_t i = 0; i < n; i++) SC_TRY(load_job(c, r, i, n, names, &j[i]));
    return join(c, r, j, n);
}

/* ---- options of the engine ----------------------------------------------- */

static sc_status straggler(cli *c, const simulate_run *r, const char *text,
                           double *speed)
{
    sc_pos pos = sc_pos_option(c->arena, "--straggler", text);
    size_t digits = strspn(text, "0123456789");
    double factor;
    if (digits == 0 || digits > 9 || text[digits] != ':')
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, pos,
                        "write RANK:FACTOR, for example 5:1.2",
                        "not a rank and a factor");
    if (sc_unit_parse(text + digits + 1, SC_U_NONE, pos, &factor, c->err) !=
        SC_OK)
        return c->err->status = SC_EUSAGE;
    unsigned long rank = strtoul(text, NULL, 10);
    if (rank >= r->w.n_ranks)
        return sc_error(c->err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "ranks are 0 to %u", r->w.n_ranks - 1);
    if (!(factor > 0 && factor <= 1e6))
        return sc_error(c->err, SC_EINPUT, SC_C_RANGE, pos,
                        "1.2 makes the kernels take 20 % longer",
                        "the factor is out of range");
    speed[rank] *= factor;
    return SC_OK;
}

static sc_status set_opts(cli *c, simulate_run *r)
{
    const simulate_opts *o = r->o;
    double *speed = NULL;
    if (o->stragglers) {
        speed = SC_NEW_N(c->arena, double, r->w.n_ranks);
        if (!speed) return sc_error_nomem(c->err);
        for (uint32_t i = 0; i < r->w.n_ranks; i++) speed[i] = 1;
        for (uint32_t i = 0; o->stragglers[i]; i++)
            SC_TRY(straggler(c, r, o->stragglers[i], speed));
    }
    r->opts.rules = r->rules;
    r->opts.queues = (uint32_t)o->queues;
    r->opts.endpoint = o->injection;
    r->opts.rendezvous = o->rendezvous;
    r->opts.symmetry = o->symmetry;
    r->opts.speed = speed;
    r->opts.jitter = o->jitter;
    r->opts.seed = (uint64_t)c->seed;
    r->opts.record = o->trace != NULL;
    return SC_OK;
}

sc_status cli_simulate_load(cli *c, simulate_run *r)
{
    const simulate_opts *o = r->o;
    sc_simulate_opts_init(&r->opts);
    SC_TRY(find_mode(c, r));
    SC_TRY(
        sc_system_read(o->system, c->arena, &r->warnings, &r->system, c->err));
    if (o->compat) sc_text_add(&r->warnings, "%s", r->system.compat_warnings);
    if (r->system.track_local_mem)
        sc_text_add(&r->warnings,
                    "%.100s: warning: track-local-mem has no effect: lifetimes "
                    "of tensors are not followed\n",
                    o->system);
    SC_TRY(load_network(c, r));
    if (o->memory) SC_TRY(sc_pool_read(o->memory, c->arena, &r->pool, c->err));
    SC_TRY(load_workloads(c, r, false));
    return set_opts(c, r);
}

/* The classes then differ, but the indices of tasks do not. */
sc_status cli_simulate_names(cli *c, const simulate_run *r, sc_workload *out)
{
    simulate_run own = *r;
    sc_text_init(&own.warnings);
    sc_text_init(&own.assumptions);
    sc_status s = load_workloads(c, &own, true);
    sc_text_free(&own.warnings);
    sc_text_free(&own.assumptions);
    *out = own.w;
    return s;
}
