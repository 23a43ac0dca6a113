/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - prints replayed traces as text. */
#include "report/replay.h"

#include "report/report_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_RANKS    16
#define SHOWN_PATH     6
#define SHOWN_FINDINGS 8
#define SHOWN_HOLDERS  4
#define NAME_WIDTH     56

static double percent(sc_time part, sc_time of)
{
    return of > 0 ? 100 * (double)part / (double)of : 0;
}

static report_word time_of(sc_time t)
{
    return report_seconds(sc_time_to_s(t));
}

sc_replay_split report_sum_split(const sc_replay_rank *r, sc_time *all)
{
    sc_replay_split sum = {0};
    *all = 0;
    for (uint32_t i = 0; i < r->n_steps; i++) {
        const sc_replay_split *s = &r->step[i].split;
        sum.compute += s->compute;
        sum.exposed_comm += s->exposed_comm;
        sum.memory += s->memory;
        sum.host_bound += s->host_bound;
        sum.idle += s->idle;
        sum.waiting += s->waiting;
        *all += r->step[i].predicted;
    }
    return sum;
}

sc_time report_per_step(sc_time t, uint32_t steps)
{
    return steps ? t / steps : t;
}

/* ---- the head ------------------------------------------------------------ */

static void head(const sc_report_replay *s, sc_text *out)
{
    const sc_replay_result *r = s->r;
    uint32_t world = r->rank[0].world_size;
    const char *device = r->rank[0].device;
    sc_text_add(out, "%u rank%s", r->n_ranks, r->n_ranks == 1 ? "" : "s");
    if (world) sc_text_add(out, " of %u", world);
    if (device) sc_text_add(out, " on %s", device);
    sc_text_add(out, ", %u step%s, %llu events\n\n", r->n_steps,
                r->n_steps == 1 ? "" : "s", (unsigned long long)s->n_events);
}

static void step(const sc_report_replay *s, sc_text *out)
{
    const sc_replay_result *r = s->r;
    uint32_t n = r->n_steps;
    const sc_replay_result *base = s->unchanged ? s->unchanged : r;
    double error =
        base->measured
            ? 100 * ((double)base->predicted / (double)base->measured - 1)
            : 0;
    report_value(out, "step", time_of(report_per_step(r->predicted, n)).s,
                 "measured %s; the replay without changes is %+.3f %% off",
                 time_of(report_per_step(base->measured, n)).s, error);
    if (!s->unchanged) return;
    for (uint32_t i = 0; i < s->n_changes; i++)
        report_line(out, i ? "" : "with", "%s", s->change[i]);
    report_line(
        out, "which gives", "%+.1f %% step time, %.3g times the speed",
        -percent(base->predicted - r->predicted, base->predicted),
        r->predicted > 0 ? (double)base->predicted / (double)r->predicted : 0);
}

/* ---- where time goes ----------------------------------------------------- */

static void split_row(const sc_replay_split *p, sc_time all, sc_text *out)
{
    const struct {
        const char *name;
        sc_time t;
    } part[] = {{"compute", p->compute},
                {"exposed communication", p->exposed_comm},
                {"copies", p->memory},
                {"host-bound", p->host_bound},
                {"idle", p->idle}};

    char item[80];
    report_row row = report_row_begin("time goes to", out);
    for (size_t i = 0; i < SC_COUNT(part); i++) {
        double v = percent(part[i].t, all);
        if (v < 0.05) continue;
        snprintf(item, sizeof item, "%s %.1f %%", part[i].name, v);
        if (part[i].t == p->exposed_comm && percent(p->waiting, all) >= 0.05)
            snprintf(item, sizeof item, "%s %.1f %% (%.1f %% waiting)",
                     part[i].name, v, percent(p->waiting, all));
        report_row_add(&row, "  ", item);
    }
    report_row_end(&row);
}

static void splits(const sc_report_replay *s, sc_text *out)
{
    sc_replay_split sum = {0};
    sc_time all = 0;
    for (uint32_t k = 0; k < s->r->n_ranks; k++) {
        sc_time t;
        sc_replay_split p = report_sum_split(&s->r->rank[k], &t);
        sum.compute += p.compute;
        sum.exposed_comm += p.exposed_comm;
        sum.memory += p.memory;
        sum.host_bound += p.host_bound;
        sum.idle += p.idle;
        sum.waiting += p.waiting;
        all += t;
    }
    split_row(&sum, all, out);
}

static void ranks(const sc_report_replay *s, sc_text *out)
{
    const sc_replay_result *r = s->r;
    if (r->n_ranks < 2) return;
    sc_text_add(out, "\n  %-6s %10s %10s %9s %8s %12s %8s %8s %11s\n", "rank",
                "measured", "replayed", "off", "compute", "exposed comm",
                "waiting", "copies", "host-bound");
    for (uint32_t k = 0; k < r->n_ranks && k < SHOWN_RANKS; k++) {
        sc_time all, measured = 0;
        sc_replay_split p = report_sum_split(&r->rank[k], &all);
        for (uint32_t i = 0; i < r->rank[k].n_steps; i++)
            measured += r->rank[k].step[i].measured;
        sc_text_add(
            out,
            "  %-6u %10s %10s %7.2f %% %6.1f %% %10.1f %% %6.1f %% %6.1f %% "
            "%9.1f %%\n",
            r->rank[k].rank,
            time_of(report_per_step(measured, r->rank[k].n_steps)).s,
            time_of(report_per_step(all, r->rank[k].n_steps)).s,
            percent(all - measured, measured), percent(p.compute, all),
            percent(p.exposed_comm, all), percent(p.waiting, all),
            percent(p.memory, all), percent(p.host_bound, all));
    }
    if (r->n_ranks > SHOWN_RANKS)
        sc_text_add(out, "  and %u more\n", r->n_ranks - SHOWN_RANKS);
    sc_text_add(out, "\n");
}

/* ---- the critical path --------------------------------------------------- */

const char *report_replay_class(uint8_t class)
{
    return class < SC_N_REPLAY_CLASSES ? sc_replay_class_names[class]
                                       : "latency";
}

/* The inner end of a call path says most. */
static const char *shortened(const char *path, char buf[NAME_WIDTH + 4])
{
    size_t n = strlen(path);
    if (n <= NAME_WIDTH) return path;
    if (strstr(path, " > ")) {
        snprintf(buf, NAME_WIDTH + 4, "...%s", path + n - NAME_WIDTH + 3);
        return buf;
    }
    snprintf(buf, NAME_WIDTH + 4, "%.*s...", NAME_WIDTH - 3, path);
    return buf;
}

static void path(const sc_report_replay *s, sc_text *out)
{
    const sc_replay_path *p = &s->r->path;
    char buf[NAME_WIDTH + 4];
    if (p->total == 0) return;
    report_line(out, "critical path",
                "host %.1f %%, compute %.1f %%, communication %.1f %%, copies "
                "%.1f %%, latency of launches %.1f %%",
                percent(p->host, p->total), percent(p->compute, p->total),
                percent(p->comm, p->total), percent(p->memory, p->total),
                percent(p->latency, p->total));
    if (p->later)
        report_line(out, "", "%s %.1f %%",
                    "other ranks begin earlier:", percent(p->later, p->total));
    for (uint32_t i = 0; i < s->n_entries && i < SHOWN_PATH; i++)
        sc_text_add(out, "%17s%5.1f %%  %-8s %s\n", "",
                    percent(s->entry[i].time, p->total),
                    report_replay_class(s->entry[i].class),
                    shortened(s->entry[i].path, buf));
}

static void findings(const sc_report_replay *s, sc_text *out)
{
    for (uint32_t i = 0; i < s->n_findings && i < SHOWN_FINDINGS; i++) {
        const sc_replay_finding *f = &s->finding[i];
        char gain[32];
        snprintf(gain, sizeof gain, "-%.1f %%",
                 percent(f->saves, s->r->predicted));
        report_value(out, i ? "" : "findings", gain, "%s", f->text);
        if (f->try) report_value(out, "", "", "try %s", f->try);
    }
}

/* The rank that needs the most. */
static void memory(const sc_report_replay *s, sc_text *out)
{
    const sc_replay_memory *m = s->memory;
    char buf[NAME_WIDTH + 4];
    for (uint32_t i = 1; i < s->n_memory; i++)
        if (s->memory[i].peak > m->peak) m = &s->memory[i];
    if (s->n_memory == 0) return;
    report_value(out, "memory", report_bytes(m->peak).s,
                 "%s on rank %u at %s%s%s%s%s",
                 m->relative ? "most above the begin of the trace"
                             : "most that was allocated",
                 m->rank, time_of(m->peak_at).s, m->peak_step ? ", " : "",
                 m->peak_step ? m->peak_step : "",
                 m->peak_path[0] ? ", by " : "", shortened(m->peak_path, buf));
    if (m->n_holders && m->before)
        report_value(out, "", report_bytes(m->before).s,
                     "of it since before the trace");
    for (uint32_t i = 0; i < m->n_holders && i < SHOWN_HOLDERS; i++)
        report_value(out, "", report_bytes(m->holder[i].bytes).s,
                     "of it in %u allocation%s of %s", m->holder[i].count,
                     m->holder[i].count == 1 ? "" : "s",
                     m->holder[i].path[0] ? shortened(m->holder[i].path, buf)
                                          : "no operator");
}

static void causes(const sc_report_replay *s, sc_text *out)
{
    char buf[NAME_WIDTH + 4];
    if (!s->against) return;
    sc_time here = report_per_step(s->r->predicted, s->r->n_steps);
    sc_time there = report_per_step(s->against->predicted, s->against->n_steps);
    report_value(out, "against", time_of(there).s,
                 "the step is %s %s, of which",
                 time_of(here > there ? here - there : there - here).s,
                 here > there ? "longer" : "shorter");
    for (uint32_t i = 0; i < s->n_causes; i++) {
        sc_time d = s->cause[i].here - s->cause[i].there;
        sc_text_add(out, "%17s%c%-10s %-8s %s\n", "", d < 0 ? '-' : '+',
                    time_of(d < 0 ? -d : d).s,
                    report_replay_class(s->cause[i].class),
                    shortened(s->cause[i].path, buf));
    }
}

void sc_report_replay_text(const sc_report_replay *s, sc_text *out)
{
    head(s, out);
    step(s, out);
    splits(s, out);
    ranks(s, out);
    if (s->r->n_ranks > 1)
        report_value(out, "clocks", time_of(s->residual).s,
                     "largest difference of the ends of one collective after "
                     "the clocks are aligned");
    memory(s, out);
    path(s, out);
    causes(s, out);
    findings(s, out);
    report_row_list("assumption", s->assumptions, s->n_assumptions, out);
    report_row_list("warning", s->warnings, s->n_warnings, out);
}

/* ---- two traces ---------------------------------------------------------- */

typedef struct joined {
    sc_report_cause *c;
    uint32_t n;
    sc_map map;
} joined;

static int by_difference(const void *p, const void *q)
{
    const sc_report_cause *a = p, *b = q;
    sc_time x = a->here - a->there, y = b->here - b->there;
    x = x < 0 ? -x : x;
    y = y < 0 ? -y : y;
    if (x != y) return x > y ? -1 : 1;
    return strcmp(a->path, b->path);
}

static sc_status join(joined *j, const sc_replay_entry *e, uint32_t steps,
                      bool here, sc_arena *a, sc_err *err)
{
    uint64_t hash = sc_hash(e->path, strlen(e->path), e->class);
    uint32_t at = 0, i;
    while ((i = sc_map_next(&j->map, hash, &at)) != SC_MAP_END)
        if (j->c[i].class == e->class && strcmp(j->c[i].path, e->path) == 0)
            break;
    if (i == SC_MAP_END) {
        i = j->n++;
        j->c[i] = (sc_report_cause){.path = e->path, .class = e->class};
        if (!sc_map_add(&j->map, a, hash, i)) return sc_error_nomem(err);
    }
    *(here ? &j->c[i].here : &j->c[i].there) += report_per_step(e->time, steps);
    return SC_OK;
}

sc_status sc_report_causes(const sc_replay_entry *a, uint32_t n_a,
                           uint32_t steps_a, const sc_replay_entry *b,
                           uint32_t n_b, uint32_t steps_b, uint32_t most,
                           sc_arena *arena, sc_report_cause **out, uint32_t *n,
                           sc_err *err)
{
    joined j = {
        SC_NEW_N(arena, sc_report_cause, (size_t)n_a + n_b + 1), 0, {0}};
    if (!j.c) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n_a; i++)
        SC_TRY(join(&j, &a[i], steps_a, true, arena, err));
    for (uint32_t i = 0; i < n_b; i++)
        SC_TRY(join(&j, &b[i], steps_b, false, arena, err));
    if (j.n) qsort(j.c, j.n, sizeof *j.c, by_difference);
    sc_report_cause rest = {.path = "everything else", .class = SC_REPLAY_HOST};
    for (uint32_t i = most ? most - 1 : 0; i < j.n; i++) {
        rest.here += j.c[i].here;
        rest.there += j.c[i].there;
    }
    if (j.n >= most && most) {
        j.c[most - 1] = rest;
        j.n = most;
    }
    *out = j.c;
    *n = j.n;
    return SC_OK;
}
