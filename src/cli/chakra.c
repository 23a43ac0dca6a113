/* SPDX-License-Identifier: Apache-2.0 */
/* chakra.c - `stepcast predict --emit-chakra DIR`. */
#include "cli/predict.h"
#include "emu/emu_log.h"
#include "plan/plan.h"
#include "trace/trace.h"
#include "trace/trace_machine.h"

#include <inttypes.h>
#include <string.h>

#define MAX_RANKS 65536u
#define MAX_BYTES ((uint64_t)64 << 30)
/* Approximate size of a task in a file, with name and attributes. */
#define TASK_BYTES 100u

static sc_status too_large(cli *c, const cli_traces *t, uint64_t n,
                           const char *what, uint64_t limit)
{
    return sc_error(c->err, SC_EINPUT, SC_C_TOO_BIG,
                    sc_pos_option(c->arena, t->flag, t->dir), t->hint,
                    "the traces would be %" PRIu64 " %s, more than %" PRIu64, n,
                    what, limit);
}

/* The model's name as part of a file name that no other file of the folder
 * has. */
static const char *file_name(cli *c, const char *model)
{
    bool taken = strcmp(model, "system") == 0 || strcmp(model, "memory") == 0;
    char *name = sc_sprintf(c->arena, "%s%s", model, taken ? "-1" : "");
    for (char *at = name; at && *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                    "0123456789._-",
                    *at))
            *at = '-';
    return name;
}

static sc_status write_step(cli *c, const cli_traces *t, const cli_emitted *e,
                            sc_text *notes)
{
    sc_trace_machine m = {.hw = t->hw, .precision = t->precision};
    if (sc_workload_has_copies(t->workload)) {
        m.remote_bw = t->remote_bw;
        m.remote_latency_s = t->remote_latency_s;
    }
    const char *prefix = sc_sprintf(c->arena, "%s/%s", e->dir, e->name);
    if (!prefix) return sc_error_nomem(c->err);
    SC_TRY(sc_trace_machine_write(&m, e->dir, c->arena, notes, c->err));
    return sc_trace_write(t->workload, prefix, c->err);
}

static sc_status write_files(cli *c, const cli_traces *t, cli_emitted *e)
{
    sc_text notes;
    sc_text_init(&notes);
    sc_status s =
        t->live ? sc_emu_trace_write(t->workload, t->hw, t->precision, e->dir,
                                     e->name, c->arena, &notes, c->err)
                : write_step(c, t, e, &notes);
    e->notes = sc_strdup(c->arena, notes.buf);
    if (s == SC_OK && (notes.failed || !e->notes)) s = sc_error_nomem(c->err);
    sc_text_free(&notes);
    return s;
}

sc_status cli_chakra_check(cli *c, const cli_traces *t, uint32_t n)
{
    if (n < 2)
        return sc_error(c->err, SC_EINPUT, SC_C_UNSUPPORTED,
                        sc_pos_option(c->arena, t->flag, t->dir), NULL,
                        "a single device has no communication");
    if (n > MAX_RANKS) return too_large(c, t, n, "files", MAX_RANKS);
    return SC_OK;
}

sc_status cli_chakra_write(cli *c, const cli_traces *t, cli_emitted *out)
{
    const sc_workload *w = t->workload;
    cli_emitted e = {.dir = t->dir,
                     .name = file_name(c, t->name),
                     .ranks = w->n_ranks,
                     .classes = w->n_classes,
                     .groups = w->n_groups};
    if (!e.name) return sc_error_nomem(c->err);
    for (uint32_t r = 0; r < w->n_ranks; r++)
        e.tasks += w->classes[w->ranks[r].cls].n_tasks;
    if (e.tasks > MAX_BYTES / TASK_BYTES)
        return too_large(c, t, e.tasks * TASK_BYTES >> 30, "GiB",
                         MAX_BYTES >> 30);
    SC_TRY(sc_folder_make(t->dir, c->err));
    SC_TRY(write_files(c, t, &e));
    *out = e;
    return SC_OK;
}

sc_status cli_chakra(cli *c, const char *dir, const sc_prediction *p,
                     cli_emitted *out)
{
    sc_net_workload g;
    cli_traces t = {.flag = "--emit-chakra",
                    .dir = dir,
                    .hint = "fewer micro-batches or replicas; replicas can be "
                            "added to traces later",
                    .hw = p->run.hw,
                    .precision = p->run.precision,
                    .workload = &g.work};
    t.remote_bw = sc_net_copy_bw(p->net->job, &t.remote_latency_s);
    t.name = p->run.model->name;
    SC_TRY(cli_chakra_check(c, &t, p->run.hw->n_devices));
    SC_TRY(sc_net_plan_workload(p->net->job, p->net->fixed_alone_s, false,
                                c->arena, &g, c->err));
    return cli_chakra_write(c, &t, out);
}

void cli_chakra_text(const cli_emitted *e, sc_text *out)
{
    sc_text_add(out,
                "  chakra         %u ranks of %u kind%s, %u communicator%s, "
                "%" PRIu64 " tasks\n"
                "                 %s/%s.0.et to %u.et%s%s%s,\n"
                "                 system.json, network.yml, memory.json\n",
                e->ranks, e->classes, e->classes == 1 ? "" : "s", e->groups,
                e->groups == 1 ? "" : "s", e->tasks, e->dir, e->name,
                e->ranks - 1, e->groups ? ", " : "", e->groups ? e->name : "",
                e->groups ? ".json" : "");
    for (const char *at = e->notes; *at;) {
        size_t n = strcspn(at, "\n");
        sc_text_add(out, "                 network.yml: %.*s\n", (int)n, at);
        at += n + (at[n] == '\n');
    }
}

void cli_chakra_json(const cli_emitted *e, sc_arena *a, sc_json *out)
{
    sc_json_key(out, "chakra");
    sc_json_begin(out, '{');
    sc_json_put_string(out, "prefix", sc_sprintf(a, "%s/%s", e->dir, e->name));
    sc_json_put_uint(out, "ranks", e->ranks);
    sc_json_put_uint(out, "classes", e->classes);
    sc_json_put_uint(out, "communicators", e->groups);
    sc_json_put_uint(out, "tasks", e->tasks);
    sc_json_key(out, "network");
    cli_lines_json(e->notes, a, out);
    sc_json_end(out, '}');
}
