/* SPDX-License-Identifier: Apache-2.0 */
/* emulate.c - prints a live run as text. */
#include "report/report_emulate.h"
#include "report/report_row.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define SHOWN_CALLS 8
#define SHOWN_RANKS 8

static double mean(sc_time sum, uint64_t n)
{
    return n ? sc_time_to_s(sum) / (double)n : 0;
}

static void head(const sc_report_emulation *s, sc_text *out)
{
    sc_text_add(out, "%u ranks on %s, real ranks: ", s->config->world,
                s->machine);
    for (uint32_t i = 0; i < s->n && i < SHOWN_RANKS; i++)
        sc_text_add(out, "%s%u", i ? ", " : "", s->rank[i].rank);
    if (s->n > SHOWN_RANKS) sc_text_add(out, " ... (%u)", s->n);
    sc_text_add(out, "; %s, %s clock\n\n", s->library,
                s->config->clock == SC_EMU_VIRTUAL ? "virtual" : "real");
}

static double percent(double part, double of)
{
    return of > 0 ? 100 * part / of : 0;
}

/* Shows how the time of a step is spent. */
static void waiting(const sc_report_emu_sum *m, sc_text *out)
{
    char late[96] = "";
    if (m->device) {
        report_line(out, "in flight",
                    "%s of a step on average (%.1f %%); streams wait for it or "
                    "compute at the same time",
                    report_seconds(m->in_flight_s).s,
                    percent(m->in_flight_s, m->step_mean_s));
        return;
    }
    double hidden = m->in_flight_s - (m->waited_s - m->waited_for_ranks_s);
    if (m->waited_for_ranks_s >= 0.01 * m->waited_s && m->waited_s > 0)
        snprintf(late, sizeof late, ", %s of it before the last rank arrived",
                 report_seconds(m->waited_for_ranks_s).s);
    report_line(out, "waiting", "%s of a step on average (%.1f %%)%s",
                report_seconds(m->waited_s).s,
                percent(m->waited_s, m->step_mean_s), late);
    report_line(out, "in flight",
                "%s of a step on average, %.0f %% of it hidden behind "
                "computation",
                report_seconds(m->in_flight_s).s,
                percent(hidden > 0 ? hidden : 0, m->in_flight_s));
}

static void step(const sc_report_emulation *s, sc_text *out)
{
    const sc_report_emu_sum *m = s->sum;
    if (isnan(m->step_s)) {
        report_line(out, "steps", "none found in %" PRIu64 " operations",
                    m->n_ops);
        return;
    }
    report_line(
        out, "step time",
        "%s, median of %" PRIu64 " step%s (quartiles %s and %s, longest %s)",
        report_seconds(m->step_s).s, m->n_steps, m->n_steps == 1 ? "" : "s",
        report_seconds(m->step_q1_s).s, report_seconds(m->step_q3_s).s,
        report_seconds(m->step_max_s).s);
    waiting(m, out);
    if (!isnan(m->compute_spread))
        report_line(out, "computation",
                    "%s of a step, median; its quartiles are %.1f %% apart%s",
                    report_seconds(m->compute_s).s, 100 * m->compute_spread,
                    s->n > 1 ? " on the rank that varies most" : "");
}

static void operations(const sc_report_emu_sum *m, sc_text *out)
{
    if (m->n_calls == 0) return;
    sc_text_add(out, "\n  %-15s %10s %8s %8s %11s %11s\n", "operation", "bytes",
                "group", "calls", "modelled", "waited");
    for (uint32_t i = 0; i < m->n_calls && i < SHOWN_CALLS; i++) {
        const sc_report_calls *k = &m->calls[i];
        sc_text_add(out, "  %-15s %10s %8u %8" PRIu64 " %11s %11s\n",
                    sc_coll_names[k->coll], report_bytes(k->bytes).s,
                    k->group_size, k->count,
                    report_seconds(mean(k->modelled, k->ended)).s,
                    k->device ? "unknown"
                              : report_seconds(mean(k->waited, k->count)).s);
    }
    if (m->n_calls > SHOWN_CALLS)
        sc_text_add(out, "  and %u more kinds; times are for one call\n",
                    m->n_calls - SHOWN_CALLS);
    else
        sc_text_add(out, "  times are for one call\n");
}

static void ranks(const sc_report_emulation *s, sc_text *out)
{
    sc_text_add(out, "\n");
    for (uint32_t i = 0; i < s->n && i < SHOWN_RANKS; i++) {
        const sc_report_real *k = &s->rank[i];
        char name[24], end[40] = "";
        snprintf(name, sizeof name, "rank %u", k->rank);
        if (k->signal)
            snprintf(end, sizeof end, ", ended by %s", k->signal);
        else if (k->status)
            snprintf(end, sizeof end, ", exit code %d", k->status);
        if (isnan(k->cpu_s)) /* it did not live to say so */
            report_line(out, name, "CPU time and memory unknown%s", end);
        else
            report_line(out, name, "%s of CPU time, %s of memory%s",
                        report_seconds(k->cpu_s).s,
                        report_bytes(k->peak_rss_bytes).s, end);
    }
    if (s->n > SHOWN_RANKS)
        sc_text_add(out, "  and %u more\n", s->n - SHOWN_RANKS);
}

static void cost(const sc_report_emu_sum *m, sc_text *out)
{
    char late[64] = "";
    if (m->n_ops == 0) return;
    if (m->late_s > 0)
        snprintf(late, sizeof late, "; released %s late on average",
                 report_seconds(m->late_s).s);
    report_line(out, "overhead",
                "%s in %" PRIu64 " operations, including new groups and "
                "sizes%s",
                report_seconds(m->overhead_s).s, m->n_ops, late);
}

void sc_report_emulation_text(const sc_report_emulation *s, sc_text *out)
{
    head(s, out);
    step(s, out);
    operations(s->sum, out);
    ranks(s, out);
    cost(s->sum, out);
    report_row_list("assumed", s->assumptions, s->n_assumptions, out);
    report_row_list("warning", s->warnings, s->n_warnings, out);
}
