/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - prints a simulated run as text. */
#include "report/simulate.h"

#include "report/report_row.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_RANKS 3 /* number of slowest and of fastest ranks */
#define SHOWN_LINKS 3
#define SHOWN_JOBS  4
#define FULL        0.75 /* busy fraction from which a link is the reason */

static report_word time_of(sc_time t)
{
    return report_seconds(sc_time_to_s(t));
}

static double percent(sc_time part, sc_time of)
{
    return of > 0 ? 100 * (double)part / (double)of : 0;
}

/* ---- workload and machine ------------------------------------------------ */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void dimensions(const sc_network *net, sc_text *out)
{
    for (uint32_t i = 0; i < net->n_dims; i++) {
        const sc_net_dim *d = &net->dim[i];
        char bw[32];
        sc_unit_print_short(d->gib_per_s * (1 << 30), SC_U_RATE, bw, sizeof bw);
        sc_text_add(out, "%s%s of %u, %s and %s per link", i ? " x " : "",
                    report_net_kinds[d->kind], d->size, bw,
                    time_of((sc_time)(d->latency_ns * 1000)).s);
    }
}

/* Ranks between jobs do no work. */
static bool works(const sc_report_simulation *s, uint32_t rank)
{
    return s->w->classes[s->w->ranks[rank].cls].n_tasks > 0;
}

static uint32_t count_working(const sc_report_simulation *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->r->n_ranks; i++) n += works(s, i);
    return n;
}

static bool is_job(const sc_report_simulation *s, const sc_rank_job *j)
{
    for (uint32_t i = j->first; i < j->first + j->n; i++)
        if (works(s, i)) return true;
    return false;
}

static void head(const sc_report_simulation *s, sc_text *out)
{
    const sc_workload *w = s->w;
    uint32_t n = count_working(s), shown = 0, more = 0, kinds = 0;
    for (uint32_t i = 0; i < w->n_jobs; i++) {
        if (!is_job(s, &w->jobs[i])) continue;
        if (shown == SHOWN_JOBS)
            more++;
        else
            sc_text_add(out, "%s%s", shown++ ? " + " : "",
                        base_name(w->jobs[i].name));
    }
    if (more) sc_text_add(out, " + %u more", more);
    for (uint32_t i = 0; i < w->n_classes; i++)
        kinds += w->classes[i].n_tasks > 0;
    sc_text_add(out, ", %u ranks of %u kind%s", n, kinds,
                kinds == 1 ? "" : "s");
    if (n < w->n_ranks) sc_text_add(out, ", %u without work", w->n_ranks - n);
    sc_text_add(out, "\n");
    if (s->machine)
        sc_text_add(out, "%s", s->machine);
    else
        dimensions(s->net, out);
    bool own = s->opts->rules == sc_rules_find(NULL);
    sc_text_add(out, "\n%s %s\n\n", own ? "fidelity" : "compatible with",
                s->mode);
}

/* ---- ranks --------------------------------------------------------------- */

/* The rank that ends last or first; the lowest of equal ones. */
static uint32_t extreme(const sc_report_simulation *s, bool last)
{
    const sc_rank_times *t = s->r->rank;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < s->r->n_ranks; i++)
        if (works(s, i) &&
            (best == UINT32_MAX || (last ? t[i].finish > t[best].finish
                                         : t[i].finish < t[best].finish)))
            best = i;
    return best == UINT32_MAX ? 0 : best;
}

static void shares(const sc_rank_times *t, sc_text *out)
{
    const struct {
        const char *name;
        sc_time time;
    } part[] = {{"compute", t->compute},
                {"exposed communication", t->exposed},
                {"remote memory", t->stalled},
                {"idle", t->idle}};

    char item[64];
    report_row row = report_row_begin("time goes to", out);
    for (size_t i = 0; i < SC_COUNT(part); i++) {
        double v = percent(part[i].time, t->finish);
        snprintf(item, sizeof item, "%s %.1f %%", part[i].name, v);
        if (v >= 0.05) report_row_add(&row, "  ", item);
    }
    report_row_end(&row);
}

static void rank_line(const sc_simulate_result *r, uint32_t i, sc_text *out)
{
    const sc_rank_times *t = &r->rank[i];
    sc_text_add(out, "  %13u  %10s %10s %13s %14s %10s\n", i,
                time_of(t->finish).s, time_of(t->compute).s,
                time_of(t->exposed).s, time_of(t->stalled).s,
                time_of(t->idle).s);
}

/* The `n` ranks that end last or first, in descending order of their end. */
static void some_ranks(const sc_report_simulation *s, uint32_t n, bool last,
                       sc_text *out)
{
    const sc_rank_times *t = s->r->rank;
    uint32_t chosen[2 * SHOWN_RANKS], have = 0;
    for (uint32_t i = 0; i < s->r->n_ranks; i++) {
        if (!works(s, i)) continue;
        uint32_t at = have < n ? have++ : n;
        while (at > 0) {
            sc_time other = t[chosen[at - 1]].finish;
            if (last ? t[i].finish <= other : t[i].finish > other) break;
            if (at < n) chosen[at] = chosen[at - 1];
            at--;
        }
        if (at < n) chosen[at] = i;
    }
    for (uint32_t c = 0; c < have; c++)
        rank_line(s->r, chosen[last ? c : have - 1 - c], out);
}

static bool all_equal(const sc_report_simulation *s)
{
    const sc_rank_times *a = NULL;
    for (uint32_t i = 0; i < s->r->n_ranks; i++) {
        const sc_rank_times *b = &s->r->rank[i];
        if (!works(s, i)) continue;
        if (a && (a->finish != b->finish || a->compute != b->compute ||
                  a->exposed != b->exposed || a->stalled != b->stalled))
            return false;
        a = b;
    }
    return true;
}

static void ranks(const sc_report_simulation *s, sc_text *out)
{
    if (all_equal(s)) return;
    sc_text_add(out, "  %-13s  %10s %10s %13s %14s %10s\n", "rank", "finish",
                "compute", "exposed comm", "remote memory", "idle");
    if (count_working(s) <= 2 * SHOWN_RANKS) {
        some_ranks(s, 2 * SHOWN_RANKS, true, out);
        return;
    }
    some_ranks(s, SHOWN_RANKS, true, out);
    sc_text_add(out, "  %13s\n", "...");
    some_ranks(s, SHOWN_RANKS, false, out);
}

static void jobs(const sc_report_simulation *s, sc_text *out)
{
    const char *title = "jobs";
    for (uint32_t i = 0; s->w->n_jobs > 1 && i < s->w->n_jobs; i++) {
        const sc_rank_job *j = &s->w->jobs[i];
        sc_time end = 0;
        if (!is_job(s, j)) continue;
        for (uint32_t r = j->first; r < j->first + j->n; r++)
            if (s->r->rank[r].finish > end) end = s->r->rank[r].finish;
        report_value(out, title, time_of(end).s, "ranks %u to %u, %s", j->first,
                     j->first + j->n - 1, base_name(j->name));
        title = "";
    }
}

/* ---- links --------------------------------------------------------------- */

static void links(const sc_report_simulation *s, sc_text *out)
{
    report_tier tier[SC_HW_DIMS];
    uint32_t top[SHOWN_LINKS];
    uint32_t n_tiers = report_tiers(s, tier);
    for (uint32_t i = 0; i < n_tiers; i++) {
        if (tier[i].links == 0) continue;
        report_row row = report_row_begin(i ? "" : "links", out);
        char name[64];
        snprintf(name, sizeof name, "%s %s", tier[i].name,
                 tier[i].kind ? tier[i].kind : "");
        sc_text_add(out, "%-20s ", name);
        row.col += 21;
        char text[120];
        snprintf(text, sizeof text, "%llu of %llu links used, %s, busy %.1f %%",
                 (unsigned long long)tier[i].used,
                 (unsigned long long)tier[i].links,
                 report_bytes(tier[i].bytes).s, 100 * tier[i].mean);
        report_row_words(&row, text);
        report_row_end(&row);
    }
    uint32_t n = report_busiest(s, SHOWN_LINKS, top);
    for (uint32_t i = 0; i < n; i++) {
        const sc_link_use *l = &s->r->link[top[i]];
        char name[96];
        report_link_name(s, l, name, sizeof name);
        report_row row = report_row_begin(i ? "" : "busiest", out);
        sc_text_add(out, "%-20s %10s, busy %.1f %%", name,
                    report_bytes(l->bytes).s, 100 * report_utilization(s, l));
        report_row_end(&row);
    }
}

/* ---- reasons ------------------------------------------------------------- */

static const char *why_messages(const sc_report_simulation *s, char *buf,
                                size_t size)
{
    uint32_t top;
    if (report_busiest(s, 1, &top) != 1) return "waits for messages";
    const sc_link_use *l = &s->r->link[top];
    char name[96];
    report_link_name(s, l, name, sizeof name);
    double u = report_utilization(s, l);
    if (u >= FULL)
        snprintf(
            buf, size,
            "waits for messages while %s is saturated: bandwidth limits it",
            name);
    else
        snprintf(buf, size,
                 "waits for messages while no link is busy more than %.0f %%: "
                 "latency or other ranks limit it",
                 100 * u);
    return buf;
}

static void reason(const sc_report_simulation *s, uint32_t last, sc_text *out)
{
    const sc_rank_times *t = &s->r->rank[last];
    char buf[200];
    const char *why = "its device is idle and waits for the host";
    if (t->compute >= t->exposed && t->compute >= t->stalled &&
        t->compute >= t->idle)
        why = "computes most of the time";
    else if (t->exposed >= t->stalled && t->exposed >= t->idle)
        why = why_messages(s, buf, sizeof buf);
    else if (t->stalled >= t->idle)
        why = "waits for remote memory";
    report_line(out, "because", "rank %u %s", last, why);
}

static void other(const sc_report_simulation *s, sc_text *out)
{
    if (!s->other.name) return;
    double off = percent(s->other.makespan - s->r->makespan, s->r->makespan);
    char by[32] = "equal";
    if (off >= 0.05 || off <= -0.05) snprintf(by, sizeof by, "%+.1f %%", off);
    if (s->other.finished)
        report_value(out, "compatible", time_of(s->other.makespan).s, "%s: %s",
                     s->other.name, by);
    else
        report_line(out, "compatible", "%s never ends: a deadlock",
                    s->other.name);
}

void sc_report_simulation_text(const sc_report_simulation *s, sc_text *out)
{
    const sc_simulate_result *r = s->r;
    uint32_t last = extreme(s, true), first = extreme(s, false);
    char ends[96] = "all ranks end together";
    head(s, out);
    if (all_equal(s))
        snprintf(ends, sizeof ends, "the same for all ranks");
    else if (r->rank[first].finish != r->rank[last].finish)
        snprintf(ends, sizeof ends,
                 "rank %u ends last; rank %u ends first, after %s", last, first,
                 time_of(r->rank[first].finish).s);
    report_value(out, "makespan", time_of(r->makespan).s, "%s", ends);
    shares(&r->rank[last], out);
    reason(s, last, out);
    other(s, out);
    jobs(s, out);
    ranks(s, out);
    links(s, out);
    char alike[64] = "";
    if (r->n_simulated < r->n_ranks)
        snprintf(alike, sizeof alike,
                 "; %u of %u ranks were simulated and stand for all",
                 r->n_simulated, r->n_ranks);
    report_line(out, "simulated", "%llu messages of %llu task%s%s",
                (unsigned long long)r->n_messages,
                (unsigned long long)r->n_tasks, r->n_tasks == 1 ? "" : "s",
                alike);
    report_row_list("assumed", s->assumptions, s->n_assumptions, out);
}
