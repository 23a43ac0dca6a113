/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_json.c - writes a simulated run as stepcast.simulate/1. */
#include "report/origin.h"
#include "report/report_row.h"
#include "report/simulate.h"

#define BUSIEST 100

static void put_ns(sc_json *j, const char *key, sc_time t)
{
    sc_json_put_double(j, key, (double)t / 1000);
}

static void rank(const sc_rank_times *t, uint32_t i, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "rank", i);
    put_ns(j, "finish_ns", t->finish);
    put_ns(j, "compute_ns", t->compute);
    put_ns(j, "exposed_comm_ns", t->exposed);
    put_ns(j, "memory_ns", t->memory);
    put_ns(j, "idle_ns", t->idle);
    sc_json_end(j, '}');
}

static void jobs(const sc_report_simulation *s, sc_json *j)
{
    sc_json_key(j, "jobs");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->w->n_jobs; i++) {
        const sc_rank_job *job = &s->w->jobs[i];
        sc_time end = 0;
        for (uint32_t r = job->first; r < job->first + job->n; r++)
            if (s->r->rank[r].finish > end) end = s->r->rank[r].finish;
        sc_json_begin(j, '{');
        sc_json_put_string(j, "name", job->name);
        sc_json_put_uint(j, "first_rank", job->first);
        sc_json_put_uint(j, "ranks", job->n);
        put_ns(j, "finish_ns", end);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void link(const sc_report_simulation *s, uint64_t i, sc_json *j)
{
    const sc_link_use *l = &s->r->link[i];
    char name[96];
    report_link_name(s, l, name, sizeof name);
    sc_json_begin(j, '{');
    sc_json_put_string(j, "name", name);
    sc_json_put_uint(j, "bytes", l->bytes);
    sc_json_put_double(j, "utilization", report_utilization(s, l));
    sc_json_end(j, '}');
}

static void links(const sc_report_simulation *s, sc_json *j)
{
    sc_json_key(j, "links");
    sc_json_begin(j, '[');
    if (s->all_links) {
        for (uint64_t i = 0; i < s->r->n_links; i++) link(s, i, j);
    } else {
        uint32_t busiest[BUSIEST];
        uint32_t n = report_busiest(s, BUSIEST, busiest);
        for (uint32_t i = 0; i < n; i++) link(s, busiest[i], j);
    }
    sc_json_end(j, ']');
}

static void tiers(const sc_report_simulation *s, sc_json *j)
{
    report_tier tier[SC_HW_DIMS];
    uint32_t n = report_tiers(s, tier);
    sc_json_key(j, "tiers");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < n; i++) {
        sc_json_begin(j, '{');
        sc_json_put_string(j, "name", tier[i].name);
        sc_json_put_string(j, "kind", tier[i].kind);
        sc_json_put_uint(j, "npus", tier[i].npus);
        sc_json_put_uint(j, "links", tier[i].links);
        sc_json_put_uint(j, "links_used", tier[i].used);
        sc_json_put_uint(j, "bytes", tier[i].bytes);
        sc_json_put_double(j, "utilization", tier[i].mean);
        sc_json_put_double(j, "utilization_most", tier[i].most);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void engine(const sc_report_simulation *s, sc_json *j)
{
    sc_json_key(j, "engine");
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "ops", s->r->n_tasks);
    sc_json_put_uint(j, "events", s->r->n_events);
    sc_json_put_uint(j, "messages", s->r->n_messages);
    sc_json_put_uint(j, "classes", s->w->n_classes);
    sc_json_put_uint(j, "simulated", s->r->n_simulated);
    sc_json_put_double(j, "wall_s", s->wall_s);
    sc_json_put_uint(j, "peak_rss_bytes", s->peak_rss_bytes);
    sc_json_end(j, '}');
}

static void other(const sc_report_simulation *s, sc_json *j)
{
    if (!s->other.name) return;
    sc_json_key(j, "compatible");
    sc_json_begin(j, '{');
    sc_json_put_string(j, "mode", s->other.name);
    sc_json_key(j, "finished");
    sc_json_bool(j, s->other.finished);
    if (s->other.finished) {
        put_ns(j, "makespan_ns", s->other.makespan);
        sc_json_put_double(j, "difference",
                           (double)s->other.makespan / (double)s->r->makespan -
                               1);
    }
    sc_json_end(j, '}');
}

static void provenance(const sc_report_simulation *s, sc_json *j)
{
    report_provenance(j);
    sc_json_put_uint(j, "seed", s->opts->seed);
    report_hex(j, "workload_hash", s->workload_hash);
    report_inputs(s->input, s->n_inputs, j);
    sc_json_end(j, '}');
}

void sc_report_simulation_json(const sc_report_simulation *s, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "schema", "stepcast.simulate/1");
    sc_json_put_string(j, "mode", s->mode);
    sc_json_put_uint(j, "npus", s->r->n_ranks);
    put_ns(j, "makespan_ns", s->r->makespan);
    other(s, j);
    jobs(s, j);
    sc_json_key(j, "per_npu");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->r->n_ranks; i++) rank(&s->r->rank[i], i, j);
    sc_json_end(j, ']');
    tiers(s, j);
    links(s, j);
    engine(s, j);
    sc_json_put_strings(j, "assumptions", s->assumptions, s->n_assumptions);
    sc_json_put_strings(j, "warnings", s->warnings, s->n_warnings);
    provenance(s, j);
    sc_json_end(j, '}');
}
