/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_plan.c - `stepcast emulate --plan`: chooses the real ranks. */
#include "cli/emulate.h"
#include "cli/predict.h"
#include "emu/emu_real_ranks.h"
#include "plan/plan.h"
#include "trace/trace.h"
#include "trace/trace_system.h"

#include <stepcast_version.h>
#include <string.h>
#include <unistd.h>

/* Distinct roles of a world, and the source they are derived from. */
typedef struct roles {
    sc_emu_role *role; /* [n] */
    uint32_t n, world;
    const char *name, *machine; /* model or prefix; NULL: no cluster */
    uint32_t n_assumptions;
    const char **assumptions;
} roles;

/* ---- roles from a model -------------------------------------------------- */

/* Ranks have distinct roles if their work or their operators differ. */
static sc_status of_ranks(cli *c, const sc_prediction *p, roles *out)
{
    sc_net_workload *g = SC_NEW(c->arena, sc_net_workload);
    if (!g) return sc_error_nomem(c->err);
    if (p->by_mesh)
        return sc_emu_real_ranks_of_net(&p->net->plan, c->arena, &out->role,
                                        &out->n, c->err);
    SC_TRY(sc_net_plan_workload(p->net->job, p->net->fixed_alone_s, false,
                                c->arena, g, c->err));
    return sc_emu_real_ranks(&g->work, c->arena, &out->role, &out->n, c->err);
}

static sc_status of_model(cli *c, emulate_plan *x, roles *out)
{
    sc_prediction *p = SC_NEW(c->arena, sc_prediction);
    sc_job *job = x->job;
    if (!p) return sc_error_nomem(c->err);
    SC_TRY(cli_import(c, x->job_set, job, x->predict));
    SC_TRY(sc_job_strategy(job, &x->job_set->given, c->arena, c->err));
    SC_TRY(cli_predict_run(c, job, x->predict, p));
    out->world = p->run.hw->n_devices;
    out->machine = job->cluster;
    out->name = x->predict->model ? x->predict->model->name : job->model;
    out->assumptions = p->assumptions;
    out->n_assumptions = p->n_assumptions;
    return of_ranks(c, p, out);
}

/* ---- roles from traces --------------------------------------------------- */

static sc_status of_traces(cli *c, const char *prefix, roles *out)
{
    sc_trace_opts o = {0};
    sc_rank_group *groups = NULL;
    sc_workload *w = SC_NEW(c->arena, sc_workload);
    const char *file = sc_sprintf(c->arena, "%s.json", prefix);
    if (!w || !file) return sc_error_nomem(c->err);
    uint32_t n = sc_trace_ranks(prefix);
    if (n == 0)
        return sc_error(c->err, SC_EINPUT, SC_C_REFERENCE,
                        sc_pos_option(c->arena, "--peers", prefix),
                        "traces are PREFIX.<rank>.et, .et.gz, .et.zst or .json",
                        "there is no trace of rank 0");
    if (access(file, F_OK) == 0)
        SC_TRY(sc_groups_read(file, n, c->arena, &groups, &o.n_groups, c->err));
    o.groups = groups;
    SC_TRY(sc_trace_read(prefix, n, &o, c->arena, w, c->err));
    out->world = n;
    out->name = prefix;
    return sc_emu_real_ranks(w, c->arena, &out->role, &out->n, c->err);
}

/* ---- printing ------------------------------------------------------------ */

/* Formats ranks as --ranks takes them: "0,8,16". */
static void rank_list(const roles *x, sc_text *out)
{
    for (uint32_t i = 0; i < x->n; i++)
        sc_text_add(out, "%s%u", i ? "," : "", x->role[i].rank);
}

static void print_text(const roles *x, const char *list, sc_text *out)
{
    sc_text_add(out, "%s, %u ranks", x->name, x->world);
    if (x->machine) sc_text_add(out, " on %s", x->machine);
    sc_text_add(out,
                "\n%u real rank%s every distinct role: --ranks %s\n\n"
                "  %8s  %10s  %s\n",
                x->n, x->n == 1 ? " has" : "s have", list, "rank", "stands for",
                "role");
    for (uint32_t i = 0; i < x->n; i++)
        sc_text_add(out, "  %8u  %10u  %s\n", x->role[i].rank, x->role[i].n,
                    x->role[i].text);
    for (uint32_t i = 0; i < x->n_assumptions; i++) {
        if (i == 0) sc_text_add(out, "\n  assumed:\n");
        cli_wrap(out, 4, x->assumptions[i]);
    }
}

static void role_json(const sc_emu_role *r, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "rank", r->rank);
    sc_json_put_uint(j, "count", r->n);
    sc_json_put_string(j, "role", r->text);
    sc_json_end(j, '}');
}

static void print_json(const roles *x, const char *list, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "schema", "stepcast.emulate-plan/1");
    sc_json_put_string(j, "name", x->name);
    sc_json_put_string(j, "cluster", x->machine);
    sc_json_put_uint(j, "world_size", x->world);
    sc_json_put_string(j, "real", list);
    sc_json_key(j, "roles");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < x->n; i++) role_json(&x->role[i], j);
    sc_json_end(j, ']');
    sc_json_put_strings(j, "assumptions", x->assumptions, x->n_assumptions);
    sc_json_key(j, "provenance");
    sc_json_begin(j, '{');
    sc_json_put_string(j, "version", STEPCAST_VERSION);
    sc_json_put_string(j, "commit", STEPCAST_COMMIT);
    sc_json_end(j, '}');
    sc_json_end(j, '}');
}

static sc_status print(cli *c, const roles *x)
{
    sc_text list, t;
    sc_json j;
    sc_text_init(&list);
    sc_text_init(&t);
    sc_json_init(&j, true);
    rank_list(x, &list);
    if (c->json)
        print_json(x, list.buf, &j);
    else
        print_text(x, list.buf, &t);
    sc_status s = list.failed || t.failed ? sc_error_nomem(c->err)
                  : c->json               ? cli_emit_json(c, &j)
                                          : cli_emit_text(c, &t);
    sc_text_free(&list);
    sc_text_free(&t);
    sc_json_free(&j);
    return s;
}

/* ---- the option ---------------------------------------------------------- */

static sc_status check_world(cli *c, const emulate_plan *x, const roles *r)
{
    if (x->emu->world_size == 0 || x->emu->world_size == (int64_t)r->world)
        return SC_OK;
    const char *at = sc_sprintf(c->arena, "--world-size %lld",
                                (long long)x->emu->world_size);
    if (!at) return sc_error_nomem(c->err);
    return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(at),
                    "leave it out", "%s has %u ranks",
                    r->machine ? r->machine : r->name, r->world);
}

sc_status cli_emulate_plan(cli *c, emulate_plan *x)
{
    roles r = {0};
    bool model = x->job->model || x->job->strategy || x->predict->megatron ||
                 x->predict->from;
    const char *prefix = x->emu->peers;
    bool traces = prefix && strcmp(prefix, "mirror") != 0;
    if (model && traces)
        return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT,
                        sc_pos_option(c->arena, "--peers", prefix),
                        "give one of them",
                        "--plan takes a model or traces, not both");
    if (!model && !traces)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "for example stepcast emulate --plan --model "
                        "llama3-8b --cluster dgx-h100:2 --tp 4 --pp 2",
                        "--plan needs a model and how it is split, or traces "
                        "(--peers PREFIX)");
    SC_TRY(model ? of_model(c, x, &r) : of_traces(c, prefix, &r));
    SC_TRY(check_world(c, x, &r));
    return print(c, &r);
}
