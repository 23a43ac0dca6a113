/* SPDX-License-Identifier: Apache-2.0 */
/* difference.c - the difference of two outcomes, as text and as JSON. */
#include "report/report_difference.h"
#include "report/report_row.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int64_t change(const sc_term *t)
{
    return t->b - t->a;
}

static int64_t size(const sc_term *t)
{
    return change(t) < 0 ? -change(t) : change(t);
}

/* Keeps the terms that differ, the largest first. */
static uint32_t terms(const int64_t *a, const int64_t *b, int n, sc_term *out)
{
    uint32_t used = 0;
    for (int i = 0; i < n; i++) {
        sc_term t = {i, a[i], b[i]};
        uint32_t at = used;
        if (change(&t) == 0) continue;
        for (; at > 0 && size(&out[at - 1]) < size(&t); at--)
            out[at] = out[at - 1];
        out[at] = t;
        used++;
    }
    return used;
}

sc_status sc_difference_of(const sc_outcome *a, const sc_outcome *b,
                           sc_arena *arena, sc_difference *out, sc_err *err)
{
    uint32_t n = 0;
    sc_difference d = {.a = a, .b = b};
    for (const sc_key *k = sc_job_keys; k->name; k++)
        n += !sc_schema_same(k, &a->job, &b->job);
    d.choice = SC_NEW_N(arena, const sc_key *, n);
    if (!d.choice) return sc_error_nomem(err);
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (!sc_schema_same(k, &a->job, &b->job)) d.choice[d.n_choices++] = k;
    d.n_time = terms(a->time, b->time, SC_N_CATS, d.time);
    d.n_memory = terms(a->memory, b->memory, SC_N_PARTS, d.memory);
    *out = d;
    return SC_OK;
}

/* ---- text ------------------------------------------------------------------------- */

enum { NAME = 22, CELL = 15, VALUE = 80 };

/* The value of a choice; "-": none. */
static void value_of(const sc_outcome *o, const sc_key *k, char buf[VALUE])
{
    const void *field = (const char *)&o->job + k->offset;
    if (k->type == SC_T_TRISTATE && *(const int *)field >= 0)
        snprintf(buf, VALUE, "%s", *(const int *)field ? "yes" : "no");
    else if (k->type == SC_T_BOOL)
        snprintf(buf, VALUE, "%s", *(const bool *)field ? "yes" : "no");
    else if (!sc_job_has(&o->job, k))
        snprintf(buf, VALUE, "-");
    else if (k->type == SC_T_STRING)
        snprintf(buf, VALUE, "%s", *(const char *const *)field);
    else
        sc_schema_print(k, &o->job, buf, VALUE);
}

static void row(sc_text *out, int indent, const char *name, const char *a,
                const char *b, const char *change_, const char *part)
{
    int room = NAME - 2 - indent, w = (int)strlen(name);
    size_t from = out->len;
    sc_text_add(out, "  %*s%-*s%s", indent, "", room, name,
                w >= room ? "  " : "");
    sc_text_add(out, "%*s%*s%*s  %s", CELL, a, CELL, b, CELL, change_, part);
    while (out->len > from && out->buf[out->len - 1] == ' ') out->len--;
    out->buf[out->len] = '\0';
    sc_text_add(out, "\n");
}

/* Long names, such as paths and descriptions of clusters, continue on the next
 * line. */
static void folded(sc_text *out, const char *fmt, ...) SC_PRINTF(2, 3);

static void folded(sc_text *out, const char *fmt, ...)
{
    sc_text line;
    va_list args;
    sc_text_init(&line);
    va_start(args, fmt);
    sc_text_add_v(&line, fmt, args);
    va_end(args);
    report_fold(line.buf, out->width ? out->width : 80, out);
    out->failed = out->failed || line.failed;
    sc_text_free(&line);
}

/* Long values, such as names of clusters, take a line each. */
static void choices(const sc_difference *d, sc_text *out)
{
    for (uint32_t i = 0; i < d->n_choices; i++) {
        const sc_key *k = d->choice[i];
        char a[VALUE], b[VALUE];
        value_of(d->a, k, a);
        value_of(d->b, k, b);
        if (strlen(a) < CELL && strlen(b) < CELL) {
            row(out, 2, k->name, a, b, "", "");
            continue;
        }
        folded(out, "    %-*s A: %s\n", NAME - 4, k->name, a);
        folded(out, "%*s B: %s\n", NAME, "", b);
    }
}

/* A quantity of which the table has one column each: `unit` is its size in the
 * unit of the numbers. */
typedef struct scale {
    double unit;
    const char *name;
    int digits;
    double whole; /* of A, in that unit; changes are fractions of it */
} scale;

static scale scale_of_time(const sc_difference *d)
{
    double s = (double)(d->a->step > d->b->step ? d->a->step : d->b->step) /
               (double)SC_PS_PER_S;
    scale x = {1e12, "s", 3, 0};
    if (s < 10) x = (scale){1e9, "ms", 3, 0};
    if (s < 0.01) x = (scale){1e6, "us", 3, 0};
    x.whole = (double)d->a->step / x.unit;
    return x;
}

static void number_row(sc_text *out, int indent, const char *name,
                       const scale *x, double a, double b)
{
    char ta[40], tb[40], td[40], part[40] = "";
    a /= x->unit;
    b /= x->unit;
    snprintf(ta, sizeof ta, "%.*f", x->digits, a);
    snprintf(tb, sizeof tb, "%.*f", x->digits, b);
    snprintf(td, sizeof td, "%+.*f", x->digits, b - a);
    if (x->whole > 0)
        snprintf(part, sizeof part, "%+.1f %%", 100 * (b - a) / x->whole);
    row(out, indent, name, ta, tb, td, part);
}

static void times(const sc_difference *d, sc_text *out)
{
    char title[40];
    scale x = scale_of_time(d);
    snprintf(title, sizeof title, "step time (%s)", x.name);
    number_row(out, 0, title, &x, (double)d->a->step, (double)d->b->step);
    for (uint32_t i = 0; i < d->n_time; i++)
        number_row(out, 2, report_category((sc_cat)d->time[i].of).s, &x,
                   (double)d->time[i].a, (double)d->time[i].b);
}

static void memory(const sc_difference *d, sc_text *out)
{
    scale x = {SC_GIB, "GiB", 2, (double)d->a->peak / SC_GIB};
    sc_text_add(out, "\n");
    number_row(out, 0, "peak memory (GiB)", &x, (double)d->a->peak,
               (double)d->b->peak);
    for (uint32_t i = 0; i < d->n_memory; i++)
        number_row(out, 2, sc_part_names[d->memory[i].of], &x,
                   (double)d->memory[i].a, (double)d->memory[i].b);
    char a[40], b[40];
    if (d->a->n_stages > 1 || d->b->n_stages > 1) {
        snprintf(a, sizeof a, "%u of %u", d->a->stage, d->a->n_stages);
        snprintf(b, sizeof b, "%u of %u", d->b->stage, d->b->n_stages);
        row(out, 2, "at stage", a, b, "", "");
    }
    if (d->a->fits != d->b->fits)
        row(out, 2, "fits?", d->a->fits ? "yes" : "NO",
            d->b->fits ? "yes" : "NO", "", "");
}

/* Rows of the table, with the factor from the field's unit. */
static const struct {
    const char *title;
    double unit;
    int digits;
} figures[SC_N_FIGURES] = {
    [SC_FIG_TOKENS] = {"tokens/s", 1, 0},
    [SC_FIG_TOKENS_DEVICE] = {"tokens/s/device", 1, 1},
    [SC_FIG_SAMPLES] = {"samples/s", 1, 3},
    [SC_FIG_MFU] = {"MFU (%)", 0.01, 2},
    [SC_FIG_FITS] = {"likely to fit (%)", 0.01, 1},
    [SC_FIG_ENERGY] = {"energy (kJ/step)", 1e3, 3},
    [SC_FIG_COST] = {"cost (USD/step)", 1, 4},
    [SC_FIG_DAYS] = {"whole run (days)", 1, 2},
    [SC_FIG_RUN_ENERGY] = {"whole run (MWh)", 3.6e9, 2},
    [SC_FIG_RUN_COST] = {"whole run (USD)", 1, 0},
};

/* Figures that neither outcome has, or that are the same, are left out. */
static void rates(const sc_difference *d, sc_text *out)
{
    sc_text_add(out, "\n");
    for (int i = 0; i < (int)SC_N_FIGURES; i++) {
        double a = d->a->figure[i], b = d->b->figure[i];
        char ta[40] = "-", tb[40] = "-";
        bool fraction = figures[i].unit < 1; /* of a whole already */
        scale x = {figures[i].unit, "", figures[i].digits,
                   fraction ? 0 : a / figures[i].unit};
        if (a == b || (isnan(a) && isnan(b))) continue;
        if (!isnan(a) && !isnan(b)) {
            number_row(out, 0, figures[i].title, &x, a, b);
            continue;
        }
        if (!isnan(a)) snprintf(ta, sizeof ta, "%.*f", x.digits, a / x.unit);
        if (!isnan(b)) snprintf(tb, sizeof tb, "%.*f", x.digits, b / x.unit);
        row(out, 0, figures[i].title, ta, tb, "", "");
    }
}

static void head(const char *letter, const sc_outcome *o, sc_text *out)
{
    folded(out, "%s: %s: %s on %u devices\n", letter, o->name, o->model,
           o->n_devices);
}

void sc_report_difference_line(const sc_difference *d, sc_text *out)
{
    int64_t all = 0, said = 0;
    for (uint32_t i = 0; i < d->n_time; i++) all += size(&d->time[i]);
    for (uint32_t i = 0; i < d->n_time && said < all - all / 10; i++) {
        const sc_term *t = &d->time[i];
        char s[40];
        sc_unit_print_short((double)size(t) / (double)SC_PS_PER_S, SC_U_TIME, s,
                            sizeof s);
        sc_text_add(out, "%s%s %c%s", i ? ", " : "",
                    report_category((sc_cat)t->of).s, change(t) < 0 ? '-' : '+',
                    s);
        said += size(t);
    }
    if (d->n_time == 0) sc_text_add(out, "equal step time");
}

static void summary(const sc_difference *d, sc_text *out)
{
    sc_text line;
    int64_t more = d->b->step - d->a->step;
    double part = d->a->step > 0 ? (double)more / (double)d->a->step : 0;
    sc_text_init(&line);
    sc_report_difference_line(d, &line);
    sc_text_add(out, "\n");
    if (more == 0)
        report_line(out, "B against A", "the same step time%s%s",
                    d->n_time ? ": " : "", d->n_time ? line.buf : "");
    else
        report_line(out, "B against A", "%s %.1f %% %s: %s", "a step takes",
                    fabs(100 * part), more < 0 ? "less" : "more", line.buf);
    out->failed = out->failed || line.failed;
    sc_text_free(&line);
}

void sc_report_difference(const sc_difference *d, sc_text *out)
{
    head("A", d->a, out);
    head("B", d->b, out);
    summary(d, out);
    sc_text_add(out, "\n");
    row(out, 0, d->n_choices ? "choices" : "equal choices", "A", "B", "B - A",
        "of A");
    choices(d, out);
    sc_text_add(out, "\n");
    times(d, out);
    memory(d, out);
    rates(d, out);
}

/* ---- JSON ------------------------------------------------------------------------- */

static void put_int(sc_json *j, const char *key, int64_t v)
{
    sc_json_key(j, key);
    sc_json_int(j, v);
}

static void outcome_json(const char *key, const sc_outcome *o, sc_json *j)
{
    sc_json_key(j, key);
    sc_json_begin(j, '{');
    sc_json_put_string(j, "name", o->name);
    sc_json_put_string(j, "model_name", o->model);
    sc_json_put_uint(j, "devices", o->n_devices);
    sc_json_key(j, "fits");
    sc_json_bool(j, o->fits);
    put_int(j, "step_time_ps", o->step);
    put_int(j, "peak_bytes", o->peak);
    sc_json_put_double(j, "memory_capacity_bytes", o->capacity);
    sc_json_put_uint(j, "stage", o->stage);
    sc_json_put_uint(j, "stages", o->n_stages);
    sc_json_end(j, '}');
}

static void terms_json(const char *key, const char *unit, const sc_term *t,
                       uint32_t n, const char *const *names, double whole,
                       sc_json *j)
{
    char name[40];
    sc_json_key(j, key);
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < n; i++) {
        sc_json_begin(j, '{');
        sc_json_put_string(j, "term", names[t[i].of]);
        snprintf(name, sizeof name, "a_%s", unit);
        put_int(j, name, t[i].a);
        snprintf(name, sizeof name, "b_%s", unit);
        put_int(j, name, t[i].b);
        snprintf(name, sizeof name, "difference_%s", unit);
        put_int(j, name, change(&t[i]));
        sc_json_put_double(j, "fraction_of_a",
                           whole > 0 ? (double)change(&t[i]) / whole : NAN);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

static void choices_json(const sc_difference *d, sc_json *j)
{
    sc_json_key(j, "choices");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < d->n_choices; i++) {
        char a[VALUE], b[VALUE];
        value_of(d->a, d->choice[i], a);
        value_of(d->b, d->choice[i], b);
        sc_json_begin(j, '{');
        sc_json_put_string(j, "option", d->choice[i]->name);
        sc_json_put_string(j, "a", strcmp(a, "-") == 0 ? NULL : a);
        sc_json_put_string(j, "b", strcmp(b, "-") == 0 ? NULL : b);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

void sc_report_difference_json(const sc_difference *d, sc_json *j)
{
    outcome_json("a", d->a, j);
    outcome_json("b", d->b, j);
    choices_json(d, j);
    put_int(j, "step_time_difference_ps", d->b->step - d->a->step);
    terms_json("time", "ps", d->time, d->n_time, sc_cat_names,
               (double)d->a->step, j);
    put_int(j, "peak_difference_bytes", d->b->peak - d->a->peak);
    terms_json("memory", "bytes", d->memory, d->n_memory, sc_part_names,
               (double)d->a->peak, j);
    sc_json_key(j, "figures");
    sc_json_begin(j, '{');
    for (int i = 0; i < (int)SC_N_FIGURES; i++) {
        double a = d->a->figure[i], b = d->b->figure[i];
        if (isnan(a) && isnan(b)) continue;
        sc_json_key(j, sc_figure_names[i]);
        sc_json_begin(j, '{');
        sc_json_put_double(j, "a", a);
        sc_json_put_double(j, "b", b);
        sc_json_put_double(j, "difference", b - a);
        sc_json_end(j, '}');
    }
    sc_json_end(j, '}');
}
