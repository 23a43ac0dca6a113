/* SPDX-License-Identifier: Apache-2.0 */
/* replay_json.c - writes replayed traces as stepcast.replay/1. */
#include "report/origin.h"
#include "report/replay.h"

#define SHOWN_ENTRIES   100
#define SHOWN_OVERHEADS 100
#define SHOWN_KERNELS   100

static void put_s(sc_json *j, const char *key, sc_time t)
{
    sc_json_put_double(j, key, sc_time_to_s(t));
}

static void put_split(const sc_replay_split *p, sc_json *j)
{
    put_s(j, "compute_s", p->compute);
    put_s(j, "exposed_comm_s", p->exposed_comm);
    put_s(j, "host_bound_s", p->host_bound);
    put_s(j, "memory_s", p->memory);
    put_s(j, "idle_s", p->idle);
    put_s(j, "waiting_s", p->waiting);
}

static void put_step(const sc_replay_step *s, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "name", s->name);
    put_s(j, "measured_s", s->measured);
    put_s(j, "predicted_s", s->predicted);
    put_split(&s->split, j);
    sc_json_end(j, '}');
}

static void put_facts(const sc_replay_facts *f, sc_json *j)
{
    sc_json_key(j, "recorded");
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "kernels", f->kernels);
    sc_json_put_uint(j, "streams", f->streams);
    put_s(j, "busy_sum_s", f->busy_sum);
    put_s(j, "busy_s", f->busy_union);
    sc_json_put_uint(j, "collectives", f->collectives);
    put_s(j, "collective_sum_s", f->collective_sum);
    put_s(j, "exposed_comm_s", f->exposed_comm);
    sc_json_end(j, '}');
}

static void put_rank(const sc_replay_rank *r, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "rank", r->rank);
    sc_json_key(j, "world_size");
    if (r->world_size)
        sc_json_uint(j, r->world_size);
    else
        sc_json_null(j);
    sc_json_put_string(j, "device", r->device);
    put_s(j, "offset_s", r->offset);
    sc_json_key(j, "steps");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < r->n_steps; i++) put_step(&r->step[i], j);
    sc_json_end(j, ']');
    put_facts(&r->facts, j);
    sc_json_end(j, '}');
}

static void put_path(const sc_report_replay *s, sc_json *j)
{
    const sc_replay_path *p = &s->r->path;
    sc_json_key(j, "critical_path");
    sc_json_begin(j, '{');
    put_s(j, "total_s", p->total);
    put_s(j, "host_s", p->host);
    put_s(j, "compute_s", p->compute);
    put_s(j, "comm_s", p->comm);
    put_s(j, "memory_s", p->memory);
    put_s(j, "latency_s", p->latency);
    put_s(j, "other_ranks_s", p->later);
    sc_json_key(j, "entries");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->n_entries && i < SHOWN_ENTRIES; i++) {
        const sc_replay_entry *e = &s->entry[i];
        sc_json_begin(j, '{');
        sc_json_put_string(j, "path", e->path);
        sc_json_put_string(j, "class", report_replay_class(e->class));
        sc_json_put_uint(j, "count", e->count);
        put_s(j, "time_s", e->time);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_end(j, '}');
}

static void put_memory(const sc_replay_memory *m, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "rank", m->rank);
    sc_json_put_uint(j, "device", m->device);
    sc_json_put_uint(j, "peak_bytes", m->peak);
    sc_json_key(j, "relative");
    sc_json_bool(j, m->relative);
    put_s(j, "peak_at_s", m->peak_at);
    sc_json_put_string(j, "peak_step", m->peak_step);
    sc_json_put_string(j, "peak_path", m->peak_path);
    sc_json_put_uint(j, "before_trace_bytes", m->before);
    sc_json_key(j, "holders");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < m->n_holders; i++) {
        sc_json_begin(j, '{');
        sc_json_put_string(j, "path", m->holder[i].path);
        sc_json_put_uint(j, "bytes", m->holder[i].bytes);
        sc_json_put_uint(j, "count", m->holder[i].count);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_key(j, "timeline");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < m->n_parts; i++) {
        sc_json_begin(j, '{');
        put_s(j, "from_s", m->part[i].from);
        sc_json_put_uint(j, "most_bytes", m->part[i].most);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_end(j, '}');
}

static void put_memories(const sc_report_replay *s, sc_json *j)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < s->n_memory; i++)
        if (s->memory[i].peak > most) most = s->memory[i].peak;
    sc_json_key(j, "memory_peak_bytes");
    if (most)
        sc_json_uint(j, most);
    else
        sc_json_null(j);
    sc_json_key(j, "memory");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->n_memory; i++) put_memory(&s->memory[i], j);
    sc_json_end(j, ']');
}

static void put_kernels(const sc_report_replay *s, sc_json *j)
{
    sc_json_key(j, "kernels");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->n_kernels && i < SHOWN_KERNELS; i++) {
        const sc_replay_kernel *k = &s->kernel[i];
        sc_json_begin(j, '{');
        sc_json_put_string(j, "name", k->name);
        sc_json_put_string(j, "class", report_replay_class(k->class));
        sc_json_put_uint(j, "count", k->count);
        put_s(j, "total_s", k->total);
        put_s(j, "predicted_s", k->predicted);
        put_s(j, "on_critical_path_s", k->on_path);
        sc_json_key(j, "slack_s");
        if (k->slack == SC_TIME_MAX)
            sc_json_null(j);
        else
            sc_json_double(j, sc_time_to_s(k->slack));
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

/* Overheads of the host: those on which most time is spent. */
static void put_host(const sc_report_replay *s, sc_json *j)
{
    static const char *const parts[] = {"T1", "T2", "T3", "T4", "T5"};
    sc_json_key(j, "host_overheads");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->host->n && i < SHOWN_OVERHEADS; i++) {
        const sc_host_overhead *o = &s->host->of[i];
        sc_json_begin(j, '{');
        sc_json_put_string(j, "part", parts[o->part]);
        sc_json_put_string(j, "name", o->name);
        sc_json_put_uint(j, "count", o->n);
        sc_json_put_double(j, "mean_s", o->mean * 1e-12);
        put_s(j, "total_s", o->total);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void put_findings(const sc_report_replay *s, sc_json *j)
{
    sc_json_key(j, "findings");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->n_findings; i++) {
        const sc_replay_finding *f = &s->finding[i];
        sc_json_begin(j, '{');
        sc_json_put_string(j, "kind", f->kind);
        sc_json_put_string(j, "text", f->text);
        sc_json_put_string(j, "try", f->try);
        put_s(j, "saves_s", report_per_step(f->saves, s->r->n_steps));
        sc_json_put_double(
            j, "saves_fraction",
            s->r->predicted ? (double)f->saves / (double)s->r->predicted : 0);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void put_against(const sc_report_replay *s, sc_json *j)
{
    if (!s->against) return;
    sc_json_key(j, "against");
    sc_json_begin(j, '{');
    put_s(j, "step_time_s",
          report_per_step(s->against->predicted, s->against->n_steps));
    sc_json_key(j, "causes");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->n_causes; i++) {
        const sc_report_cause *c = &s->cause[i];
        sc_json_begin(j, '{');
        sc_json_put_string(j, "path", c->path);
        sc_json_put_string(j, "class", report_replay_class(c->class));
        put_s(j, "time_s", c->here);
        put_s(j, "against_s", c->there);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_end(j, '}');
}

static void put_engine(const sc_report_replay *s, sc_json *j)
{
    sc_json_key(j, "engine");
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "ops", s->r->n_ops);
    sc_json_put_uint(j, "events", s->n_events);
    sc_json_put_double(j, "wall_s", s->wall_s);
    sc_json_put_uint(j, "peak_rss_bytes", s->peak_rss_bytes);
    sc_json_end(j, '}');
}

void sc_report_replay_json(const sc_report_replay *s, sc_json *j)
{
    const sc_replay_result *r = s->r;
    const sc_replay_result *base = s->unchanged ? s->unchanged : r;
    sc_json_begin(j, '{');
    sc_json_put_string(j, "schema", "stepcast.replay/1");
    put_s(j, "step_time_s", report_per_step(r->predicted, r->n_steps));
    put_s(j, "measured_step_time_s", report_per_step(r->measured, r->n_steps));
    put_s(j, "unchanged_step_time_s",
          report_per_step(base->predicted, base->n_steps));
    sc_json_put_strings(j, "changes", s->change, s->n_changes);
    sc_json_key(j, "ranks");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < r->n_ranks; i++) put_rank(&r->rank[i], j);
    sc_json_end(j, ']');
    put_s(j, "clock_residual_s", s->residual);
    put_memories(s, j);
    put_path(s, j);
    put_kernels(s, j);
    put_host(s, j);
    put_findings(s, j);
    put_against(s, j);
    put_engine(s, j);
    sc_json_put_strings(j, "assumptions", s->assumptions, s->n_assumptions);
    sc_json_put_strings(j, "warnings", s->warnings, s->n_warnings);
    report_provenance(j);
    report_inputs(s->input, s->n_inputs, j);
    sc_json_end(j, '}');
    sc_json_end(j, '}');
}
