/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - prints results that only an executed graph has. */
#include "report/net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOMENTS 12 /* of a timeline in the text report */
#define LINKS   8
#define SAMPLES 200 /* of a timeline in JSON */

void report_net_head(const sc_prediction *p, sc_text *out)
{
    const sc_run *r = &p->run;
    const sc_net_run *g = p->net->job;
    const sc_strategy *s = g->strategy;
    sc_text_add(out, "mesh");
    for (uint32_t i = 0; i < s->n_axes; i++)
        sc_text_add(out, " %s=%u", s->axis[i].name, s->axis[i].size);
    if (s->file) sc_text_add(out, " (%s)", s->file);
    if (p->net->plan.n_stages > 1)
        sc_text_add(out, "  %u stages, %s", p->net->plan.n_stages,
                    sc_schedule_names[r->schedule]);
    if (r->zero) sc_text_add(out, "  ZeRO-%d", r->zero);
    sc_text_add(out, "  %s  %s  %s%s\n", sc_recipe_names[r->recipe],
                g->optimizer, r->sw->name,
                r->forward_only ? "  forward only" : "");
    if (r->seq > 1)
        sc_text_add(out, "sequence %llu  ", (unsigned long long)r->seq);
    uint64_t replicas = sc_strategy_replicas(s);
    sc_text_add(out,
                "global batch %llu %ss = %s%u micro-batch%s of %llu x %llu "
                "replicas\n\n",
                (unsigned long long)r->gbs, g->net->sample,
                r->gbs < r->mbs * r->ga * replicas ? "at most " : "", r->ga,
                r->ga == 1 ? "" : "es", (unsigned long long)r->mbs,
                (unsigned long long)replicas);
}

static uint32_t fullest(const sc_net_step *g)
{
    uint32_t most = 0;
    for (uint32_t d = 1; d < g->plan.step.n_classes; d++)
        if (g->memory[d].peak_reserved > g->memory[most].peak_reserved)
            most = d;
    return most;
}

/* Largest memory use in each of equal parts of the step. */
static void timeline(const sc_mem_device *m, sc_time makespan, sc_text *out)
{
    sc_text_add(out, "largest live memory in each part of the step\n");
    uint32_t i = 0;
    uint64_t live = 0;
    for (uint32_t k = 0; k < MOMENTS; k++) {
        sc_time until = makespan / MOMENTS * (k + 1);
        uint64_t most = live;
        for (; i < m->n && (m->at[i].t <= until || k + 1 == MOMENTS); i++) {
            live = m->at[i].live;
            if (live > most) most = live;
        }
        int bar = m->peak_live ? (int)(40 * most / m->peak_live) : 0;
        sc_text_add(out, "  to %8.3g ms %8.2f GiB %.*s\n", 1e-9 * (double)until,
                    (double)most / SC_GIB, bar,
                    "########################################");
    }
}

static void tensors(const sc_net_step *g, const sc_mem_device *m, sc_text *out)
{
    sc_text_add(out, "largest tensors at the peak, %.4g ms\n",
                1e-9 * (double)m->peak_t);
    for (uint32_t i = 0; i < m->n_top; i++) {
        const sc_lifetime *t = &g->plan.step.lifetime[m->top[i]];
        sc_text_add(out, "  %10.1f MiB  %-12s ", (double)t->bytes / 1048576.0,
                    sc_mem_kind_names[t->kind]);
        sc_lifetime_name(t, out);
        sc_text_add(out, "\n");
    }
}

static void links(const sc_prediction *p, sc_text *out)
{
    const sc_result *r = &p->net->run;
    const sc_hw *hw = p->run.hw;
    double seconds = sc_time_to_s(r->makespan), last = INFINITY;
    if (r->n_links) sc_text_add(out, "busiest links\n");
    for (uint32_t k = 0; k < LINKS && k < r->n_links; k++) {
        uint32_t most = SC_NONE;
        for (uint32_t i = 0; i < r->n_links; i++)
            if (r->link_bytes[i] < last &&
                (most == SC_NONE || r->link_bytes[i] > r->link_bytes[most]))
                most = i;
        if (most == SC_NONE) return;
        char name[96], bytes[32];
        last = r->link_bytes[most];
        sc_hw_link_name(hw, r->link[most], name, sizeof name);
        sc_unit_print_short(last, SC_U_BYTES, bytes, sizeof bytes);
        sc_text_add(out, "  %-40s %9s, %.1f %% of its capacity\n", name, bytes,
                    100 * last / seconds / sc_hw_link_bw(hw, r->link[most]));
    }
}

void sc_report_graph(const sc_prediction *p, sc_text *out)
{
    const sc_net_step *g = p->net;
    uint32_t d = fullest(g);
    sc_text_add(
        out, "%s has the largest peak: %.2f GiB live, %.2f GiB reserved\n",
        g->plan.step.classes[d].name, (double)g->memory[d].peak_live / SC_GIB,
        (double)g->memory[d].peak_reserved / SC_GIB);
    if (g->fast) return;
    timeline(&g->memory[d], g->run.makespan, out);
    tensors(g, &g->memory[d], out);
    links(p, out);
}

void sc_report_ops(const sc_net_step *g, sc_text *out)
{
    const sc_graph *x = &g->plan.step;
    sc_graph_write(x, out);
    for (uint32_t d = 0; g->fixed_s > 0 && d < x->n_classes; d++)
        sc_text_add(
            out,
            "op %%%u host class %s stream compute cat other work %lldps "
            "name step\n",
            x->n_ops + d, x->classes[d].name,
            (long long)sc_time_from_s(g->fixed_s));
}

/* ---- JSON ---------------------------------------------------------------- */

static const char *pass_name(uint8_t pass)
{
    static const char *const names[] = {
        [SC_PASS_FWD] = "forward",          [SC_PASS_BWD] = "backward",
        [SC_PASS_DGRAD] = "backward input", [SC_PASS_WGRAD] = "backward weight",
        [SC_PASS_UPDATE] = "update",
    };
    return pass < SC_COUNT(names) ? names[pass] : "";
}

static void exchange(const sc_net_exchange *e, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "path", e->path);
    sc_json_put_string(j, "tensor", e->tensor);
    sc_json_put_string(j, "pass", pass_name(e->pass));
    sc_json_put_string(j, "op", e->p2p ? "p2p" : sc_coll_names[e->coll]);
    sc_json_put_double(j, "bytes", e->bytes);
    sc_json_put_uint(j, "group_size", e->size);
    sc_json_put_uint(j, "groups", e->n_groups);
    sc_json_put_uint(j, "stage", e->stage);
    sc_json_put_double(j, "seconds", e->seconds);
    sc_json_put_string(j, "why", e->why);
    if (e->origin) sc_json_put_string(j, "rule", e->origin);
    sc_json_end(j, '}');
}

static void device(const sc_net_step *g, uint32_t d, sc_json *j)
{
    const sc_mem_device *m = &g->memory[d];
    uint32_t step = m->n / SAMPLES + 1;
    sc_json_begin(j, '{');
    sc_json_put_string(j, "device", g->plan.step.classes[d].name);
    sc_json_put_uint(j, "ranks", g->plan.step.classes[d].multiplicity);
    sc_json_put_double(j, "peak_at_s", sc_time_to_s(m->peak_t));
    sc_json_put_uint(j, "live_bytes", m->peak_live);
    sc_json_put_uint(j, "reserved_bytes", m->peak_reserved);
    sc_json_key(j, "largest");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < m->n_top; i++) {
        const sc_lifetime *t = &g->plan.step.lifetime[m->top[i]];
        sc_text name;
        sc_text_init(&name);
        sc_lifetime_name(t, &name);
        sc_json_begin(j, '{');
        sc_json_put_string(j, "name", name.failed ? NULL : name.buf);
        sc_json_put_uint(j, "bytes", t->bytes);
        sc_json_end(j, '}');
        sc_text_free(&name);
    }
    sc_json_end(j, ']');
    sc_json_key(j, "timeline"); /* [seconds, live, reserved] */
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < m->n; i += step) {
        /* Each part shows the moment at which most memory is live. */
        uint32_t at = i;
        for (uint32_t k = i; k < m->n && k < i + step; k++)
            if (m->at[k].live > m->at[at].live) at = k;
        sc_json_begin(j, '[');
        sc_json_double(j, sc_time_to_s(m->at[at].t));
        sc_json_uint(j, m->at[at].live);
        sc_json_uint(j, m->at[at].reserved);
        sc_json_end(j, ']');
    }
    sc_json_end(j, ']');
    sc_json_end(j, '}');
}

void report_net_json(const sc_prediction *p, sc_json *j)
{
    const sc_net_step *g = p->net;
    const sc_strategy *s = g->job->strategy;
    sc_json_key(j, "graph");
    sc_json_begin(j, '{');
    sc_json_key(j, "mesh");
    sc_json_begin(j, '{');
    for (uint32_t i = 0; i < s->n_axes; i++)
        sc_json_put_uint(j, s->axis[i].name, s->axis[i].size);
    sc_json_end(j, '}');
    sc_json_put_uint(j, "stages", g->plan.n_stages);
    sc_json_put_uint(j, "operators", g->job->net->n_ops);
    sc_json_put_uint(j, "operations",
                     sc_part_first(&g->plan.step, g->plan.step.n_ops));
    sc_json_put_uint(j, "idle_devices", g->idle);
    sc_json_key(j, "exchanges");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < g->plan.n_exchanges; i++)
        exchange(&g->plan.exchange[i], j);
    sc_json_end(j, ']');
    sc_json_key(j, "memory");
    sc_json_begin(j, '[');
    for (uint32_t d = 0; d < g->plan.step.n_classes; d++) device(g, d, j);
    sc_json_end(j, ']');
    sc_json_end(j, '}');
}
