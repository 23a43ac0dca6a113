/* SPDX-License-Identifier: Apache-2.0 */
/* measured.c - compares a prediction with a measurement. */
#include "cli/predict.h"
#include "report/report_row.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_LOG    ((size_t)1 << 30)
#define MAX_CAUSES 4

/* ---- reading ------------------------------------------------------------- */

static bool ends(const char *text, const char *suffix)
{
    size_t n = strlen(text), k = strlen(suffix);
    return n > k && strcmp(text + n - k, suffix) == 0;
}

static bool is_log(const char *text)
{
    struct stat st;
    return ends(text, ".log") || ends(text, ".txt") || stat(text, &st) == 0;
}

static sc_status read_time(cli *c, const char *flag, const char *text,
                           double *out)
{
    static const sc_key key = {.name = "measured",
                               .type = SC_T_QUANTITY,
                               .unit = SC_U_TIME,
                               .min = 1e-9,
                               .max = DBL_MAX};
    const char *shown = sc_sprintf(c->arena, "%s %.120s", flag, text);
    if (!shown) return sc_error_nomem(c->err);
    bool first = c->err->status == SC_OK;
    sc_status s =
        sc_schema_set(&key, text, sc_pos_file(shown), out, c->arena, c->err);
    if (s != SC_EINPUT) return s;
    if (first) c->err->status = SC_EUSAGE; /* it can't be parsed */
    return SC_EUSAGE;
}

sc_status cli_measured_read(cli *c, const char *flag, const char *text,
                            cli_measured *out)
{
    cli_measured m = {.step_s = NAN, .memory = NAN};
    char *log = NULL;
    size_t len = 0;
    if (text && is_log(text)) {
        SC_TRY(sc_file_read(text, MAX_LOG, c->arena, &log, &len, c->err));
        SC_TRY(sc_trainlog_read(log, len, text, c->arena, &m.log, c->err));
        m.from_log = true;
        m.step_s = m.log.step_time_s;
        if (m.log.memory_bytes > 0) m.memory = m.log.memory_bytes;
    } else if (text) {
        SC_TRY(read_time(c, flag, text, &m.step_s));
    }
    *out = m;
    return SC_OK;
}

void cli_measured_settle(const cli *c, const sc_prediction *p, cli_measured *m)
{
    const sc_run *r = &p->run;
    if (!m->from_log) return;
    m->step_s = sc_trainlog_step_s(&m->log, (double)r->gbs * (double)r->seq,
                                   r->hw->n_devices);
    if (m->log.global_batch > 0 && (uint64_t)m->log.global_batch != r->gbs)
        cli_note(c,
                 "warning: the log's global batch is %lld, the prediction's is "
                 "%llu\n",
                 (long long)m->log.global_batch, (unsigned long long)r->gbs);
}

/* ---- possible causes of the gap ------------------------------------------ */

/* A part of the step that alone could explain the gap. */
typedef struct cause {
    sc_cat cat;
    double seconds, change;
} cause;

/* Finds the largest parts that explain the gap by a factor below 3. */
static uint32_t causes(const sc_prediction *p, double gap,
                       cause out[MAX_CAUSES])
{
    uint32_t n = 0;
    for (int k = 0; k < (int)SC_N_CATS; k++) {
        double s = p->time_breakdown_s[k];
        cause x = {(sc_cat)k, s, s > 0 ? gap / s : INFINITY};
        if (x.change <= -1 || x.change > 2) continue;
        uint32_t at = n;
        while (at > 0 && s > out[at - 1].seconds) at--;
        if (at == MAX_CAUSES) continue;
        if (n < MAX_CAUSES) n++;
        for (uint32_t i = n - 1; i > at; i--) out[i] = out[i - 1];
        out[at] = x;
    }
    return n;
}

static void log_text(const cli_measured *m, const sc_prediction *p,
                     sc_text *out)
{
    const sc_trainlog *l = &m->log;
    double spread = l->spread_s;
    char spread_text[64] = "";
    if (spread > 0 && m->step_s > 0)
        snprintf(spread_text, sizeof spread_text,
                 "; half of them are within %.1f %% of the median",
                 100 * spread / m->step_s);
    report_line(out, "log", "%u of %u steps, lines %u to %u%s", l->n_used,
                l->n_lines, l->first.line, l->last.line, spread_text);
    if (l->n_torn)
        report_line(out, "", "%u incomplete line%s left out", l->n_torn,
                    l->n_torn > 1 ? "s" : "");
    if (m->memory > 0)
        report_line(out, "memory",
                    "measured %.1f GiB, the prediction differs by %+.1f %%",
                    m->memory / SC_GIB,
                    100 * (sc_predict_reported_memory(p) / m->memory - 1));
}

static void gap_text(const cli_measured *m, const sc_prediction *p,
                     sc_text *out)
{
    cause x[MAX_CAUSES];
    double gap = m->step_s - p->step_time_s;
    bool inside =
        m->step_s >= p->step_time_low_s && m->step_s <= p->step_time_high_s;
    uint32_t n = causes(p, gap, x);
    report_line(out, "gap", "the measured step is %s %s, %s the 80 %% interval",
                report_seconds(fabs(gap)).s, gap < 0 ? "shorter" : "longer",
                inside ? "inside" : "outside");
    if (n == 0)
        report_line(out, "", "no part of the step explains it alone");
    else
        report_line(out, "", "one change alone would explain it:");
    for (uint32_t i = 0; i < n; i++)
        sc_text_add(out, "%*s%-20s %+.1f %%\n", REPORT_INDENT + 2, "",
                    report_category((sc_cat)x[i].cat).s, 100 * x[i].change);
}

/* Modes whose streams run ready work first have no fast engine. */
static bool varies(const sc_prediction *p)
{
    return !p->net->job->rules->ready_order;
}

/* Formats "the step is as measured with NIC bandwidth x 0.4". */
static sc_status inputs_text(cli *c, const cli_measured *m,
                             const sc_prediction *p, sc_text *out)
{
    sc_input in[SC_INPUTS_MAX];
    uint32_t n = 0, told = 0;
    SC_TRY(sc_predict_inputs(p, m->step_s / p->step_time_s, c->arena, in, &n,
                             c->err));
    for (uint32_t i = 0; i < n; i++) {
        if (isnan(in[i].factor)) continue;
        told++;
        sc_text_add(out, "%*s%-20s x %.2f\n", REPORT_INDENT + 2, "", in[i].name,
                    in[i].factor);
    }
    if (told == 0 && n > 0)
        report_line(out, "",
                    "no peak or bandwidth between 1/4 and 4 times the assumed "
                    "one explains it");
    return SC_OK;
}

static sc_status sensitivity_text(cli *c, const cli_measured *m,
                                  const sc_prediction *p, sc_text *out)
{
    sc_sensitivity s[SC_SENSITIVITY_MAX];
    uint32_t n = 0;
    SC_TRY(sc_predict_sensitivity(p, c->arena, s, &n, c->err));
    for (uint32_t i = 0; i < n; i++) {
        double factor = NAN;
        SC_TRY(sc_predict_what_if(p, s[i].parameter, m->step_s / p->step_time_s,
                                  c->arena, &factor, c->err));
        report_row r = report_row_begin(i ? "" : "sensitive to", out);
        char text[120], close[48] = "";
        if (isfinite(factor))
            snprintf(close, sizeof close,
                     "; x %.2f would give the measured time", factor);
        snprintf(text, sizeof text, "+10 %% makes the step %.1f %% %s%s",
                 100 * fabs(s[i].change),
                 s[i].change < 0 ? "shorter" : "longer", close);
        sc_text_add(out, "%-22s ", s[i].parameter);
        r.col += 23;
        report_row_words(&r, text);
        report_row_end(&r);
    }
    return SC_OK;
}

sc_status cli_measured_text(cli *c, const cli_measured *m,
                            const sc_prediction *p, sc_text *out)
{
    if (isnan(m->step_s)) return SC_OK;
    if (m->from_log) log_text(m, p, out);
    gap_text(m, p, out);
    if (!varies(p)) return SC_OK;
    SC_TRY(inputs_text(c, m, p, out));
    return sensitivity_text(c, m, p, out);
}

/* ---- for programs -------------------------------------------------------- */

/* `needs` is the factor that alone would explain the gap; null: there is
 * none. */
static void moved_json(const char *key, const char *name, double change,
                       double needs, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, key, name);
    sc_json_put_double(j, "change", change);
    sc_json_put_double(j, "needs", needs);
    sc_json_end(j, '}');
}

static void cause_json(const cause *x, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "part", sc_cat_names[x->cat]);
    sc_json_put_double(j, "change", x->change);
    sc_json_end(j, '}');
}

sc_status cli_measured_json(cli *c, const cli_measured *m,
                            const sc_prediction *p, sc_json *out)
{
    cause x[MAX_CAUSES];
    sc_sensitivity s[SC_SENSITIVITY_MAX];
    sc_input in[SC_INPUTS_MAX];
    uint32_t n = 0, n_in = 0;
    double gap = m->step_s - p->step_time_s, ratio = m->step_s / p->step_time_s;
    if (varies(p)) {
        SC_TRY(sc_predict_sensitivity(p, c->arena, s, &n, c->err));
        SC_TRY(sc_predict_inputs(p, ratio, c->arena, in, &n_in, c->err));
    }
    if (m->from_log) {
        sc_json_put_uint(out, "measured_steps", m->log.n_used);
        sc_json_put_double(out, "measured_spread_s", m->log.spread_s);
    }
    sc_json_put_double(out, "measured_peak", m->memory);
    sc_json_put_double(out, "peak_error",
                       sc_predict_reported_memory(p) / m->memory - 1);
    sc_json_put_double(out, "gap_s", gap);
    sc_json_key(out, "gap_causes");
    sc_json_begin(out, '[');
    uint32_t n_causes = causes(p, gap, x);
    for (uint32_t i = 0; i < n_causes; i++) cause_json(&x[i], out);
    sc_json_end(out, ']');
    sc_json_key(out, "gap_inputs");
    sc_json_begin(out, '[');
    for (uint32_t i = 0; i < n_in; i++)
        moved_json("input", in[i].name, in[i].change, in[i].factor, out);
    sc_json_end(out, ']');
    sc_json_key(out, "sensitivity");
    sc_json_begin(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        double needs = NAN;
        SC_TRY(sc_predict_what_if(p, s[i].parameter, ratio, c->arena, &needs,
                                  c->err));
        moved_json("parameter", s[i].parameter, s[i].change, needs, out);
    }
    sc_json_end(out, ']');
    return SC_OK;
}
