/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_table.c - validates tables of published whole runs: device-hours and
 * energy.
 *
 * A row has the columns of a table of training runs (runs.h), as far as they are
 * published, and is predicted as such a row with all its tokens, at the level of
 * published runs. Its own columns are `run`, `publisher`, `tokens`, `gpu_hours`,
 * `params`, `energy_mwh`, `pue` and `energy_of`.
 */
#include "calib/whole_table.h"

#include "calib/cells.h"
#include "calib/row.h"
#include "calib/stats.h"

#include <math.h>
#include <string.h>

static const char *const needed[] = {"run", "tokens", "gpu", "gpu_hours"};

bool calib_whole_table(const sc_csv *t)
{
    for (size_t i = 0; i < SC_COUNT(needed); i++)
        if (sc_csv_col(t, needed[i]) < 0) return false;
    return true;
}

/* ---- cells --------------------------------------------------------------- */

typedef struct cells {
    double tokens, hours, gpus, params, energy_mwh, pue; /* NaN: empty */
    const char *rest; /* of gpu_hours after its number: " (upper bound)" */
    bool devices;     /* the energy is that of devices */
} cells;

/* Numbers may have words behind them: "15e12+", "1105920 (upper bound)". */
static sc_status read_cells(const sc_csv *t, uint32_t i, cells *c, sc_err *err)
{
    const char *words;

    const struct {
        const char *column;
        double high;
        double *to;
        const char **rest;
    } column[] = {{"tokens", 9e15, &c->tokens, &words},
                  {"gpu_hours", 1e12, &c->hours, &c->rest},
                  {"gpus", 1e7, &c->gpus, &words},
                  {"params", 1e15, &c->params, &words},
                  {"energy_mwh", 1e9, &c->energy_mwh, &words},
                  {"pue", 10, &c->pue, &words}};

    calib_cell cell[SC_COUNT(column)];
    for (size_t k = 0; k < SC_COUNT(column); k++)
        cell[k] = (calib_cell){.col = sc_csv_col(t, column[k].column),
                               .high = column[k].high,
                               .to = column[k].to,
                               .positive = true,
                               .rest = column[k].rest};
    SC_TRY(calib_cells_read(t, i, cell, SC_COUNT(cell), err));
    int col = sc_csv_col(t, "energy_of");
    const char *of = col < 0 ? "" : sc_csv_get(t, i, col);
    c->devices = strcmp(of, "devices") == 0;
    if (c->devices || of[0] == '\0') return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_TYPE, sc_csv_pos(t, i, col),
                    "write devices, or leave it empty for the whole machine",
                    "energy_of is \"%.40s\"", of);
}

sc_status calib_whole_check(const sc_csv *t, sc_err *err)
{
    sc_status first = SC_OK;
    for (uint32_t i = 0; i < t->n_rows; i++) {
        cells c;
        sc_status s = read_cells(t, i, &c, err);
        if (first == SC_OK) first = s;
    }
    return first;
}

/* ---- runs ---------------------------------------------------------------- */

/* Columns that the reader of runs does not see, or sees as others below. */
static bool own_column(const char *name)
{
    static const char *const own[] = {
        "run",       "publisher", "tokens",       "gpu_hours",
        "gpus",      "params",    "energy_mwh",   "pue",
        "energy_of", "source",    "mfu_reported", "energy_note"};
    for (size_t i = 0; i < SC_COUNT(own); i++)
        if (strcmp(own[i], name) == 0) return true;
    return false;
}

/* Nodes of 8, about as many as train for this time, each with this power if only
 * the energy is stated. */
#define ASSUMED_HOURS (30 * 24.0)
#define ASSUMED_MW    1e-3

static double assumed_devices(const cells *c)
{
    double hours = c->hours;
    if (isnan(hours))
        hours = c->energy_mwh / ASSUMED_MW / (c->pue > 0 ? c->pue : 1);
    return 8 * exp2(fmax(0, round(log2(hours / ASSUMED_HOURS / 8))));
}

typedef struct builder {
    sc_csv t;
    const char **header, **cell;
    sc_csv_at *at;
    uint32_t cap;
} builder;

static void push(builder *b, const char *header, const char *text, sc_csv_at at)
{
    if (b->t.n_cols == b->cap || !text) return;
    b->header[b->t.n_cols] = header;
    b->at[b->t.n_cols] = at;
    b->cell[b->t.n_cols++] = text;
}

/* The row as a table of one training run, whose measured step is not known. */
static sc_status as_run(const sc_csv *t, uint32_t i, const cells *c,
                        sc_arena *a, calib_run **out, sc_err *err)
{
    enum { MORE = 8 };

    builder b = {.cap = t->n_cols + MORE};
    const char *name = sc_csv_get(t, i, sc_csv_col(t, "run"));
    sc_csv_at at = {t->line[i], 1};
    uint32_t n, *line = SC_NEW(a, uint32_t);
    b.header = SC_NEW_N(a, const char *, b.cap);
    b.cell = SC_NEW_N(a, const char *, b.cap);
    b.at = SC_NEW_N(a, sc_csv_at, b.cap);
    if (!b.header || !b.cell || !b.at || !line) return sc_error_nomem(err);
    *line = t->line[i];
    for (uint32_t k = 0; k < t->n_cols; k++)
        if (!own_column(t->header[k]))
            push(&b, t->header[k], t->cells[(size_t)i * t->n_cols + k],
                 t->at[(size_t)i * t->n_cols + k]);
    double gpus = c->gpus > 0 ? c->gpus : assumed_devices(c);
    push(&b, "id", name, at);
    push(&b, "family", "device-hours", at);
    push(&b, "iter_s", "1", at);
    if (sc_csv_col(t, "quality") < 0) push(&b, "quality", "A", at);
    push(&b, "gpus", sc_sprintf(a, "%.0f", gpus), at);
    const char *model = calib_column_name(C_MODEL);
    if (sc_csv_col(t, model) < 0) push(&b, model, name, at);
    if (c->params > 0)
        push(&b, "params_b", sc_sprintf(a, "%.9g", c->params / 1e9), at);
    b.t = (sc_csv){.file = t->file,
                   .n_cols = b.t.n_cols,
                   .n_rows = 1,
                   .header = b.header,
                   .cells = b.cell,
                   .line = line,
                   .at = b.at};
    return calib_runs_read(&b.t, 1, a, out, &n, err);
}

static const char *unusable(const cells *c)
{
    if (isnan(c->tokens)) return "no number of tokens is stated";
    if (isnan(c->hours) && isnan(c->gpus) && isnan(c->energy_mwh))
        return "neither device-hours nor a number of devices is stated";
    return NULL;
}

/* ---- rows ---------------------------------------------------------------- */

typedef struct reader {
    const sc_validate_opts *o;
    sc_arena *a;
    sc_arena scratch;
    sc_err *err;
    sc_validation v;
    uint32_t cap;
} reader;

static sc_status add_row(reader *rd, const sc_valid_row *r)
{
    if ((rd->o->family && !sc_glob(rd->o->family, r->family)) ||
        (rd->o->where && !sc_glob(rd->o->where, r->id)))
        return SC_OK;
    rd->v.rows = sc_grow(rd->a, rd->v.rows, rd->v.n_rows, &rd->cap, 64,
                         sizeof *rd->v.rows);
    if (!rd->v.rows) return sc_error_nomem(rd->err);
    rd->v.rows[rd->v.n_rows] = *r;
    sc_valid_row *kept = &rd->v.rows[rd->v.n_rows++];
    kept->median = kept->measured;
    if (!kept->reason && isnan(kept->measured))
        kept->reason = "nothing measured is stated";
    kept->counted = kept->reason == NULL;
    kept->error = kept->counted ? kept->predicted / kept->measured - 1 : NAN;
    return SC_OK;
}

/* What a row states that is not as usual. */
static sc_status warn(const reader *rd, const cells *c, calib_run *run)
{
    const char *text[2] = {NULL, NULL};
    if (!(c->gpus > 0))
        text[0] = sc_sprintf(rd->a,
                             "%.0f devices: assumed, because that many "
                             "train about 30 days",
                             assumed_devices(c));
    if (c->rest && c->rest[0])
        text[1] = sc_sprintf(rd->a, "gpu_hours is qualified:%.60s", c->rest);
    if ((!(c->gpus > 0) && !text[0]) || (c->rest && c->rest[0] && !text[1]))
        return sc_error_nomem(rd->err);
    for (size_t i = 0; i < SC_COUNT(text); i++)
        if (text[i] && run->n_warnings < CALIB_ASSUMPTIONS)
            run->warnings[run->n_warnings++] = text[i];
    return SC_OK;
}

/* Device-hours, without those of spare nodes, which sources do not count, and
 * energy, at the level of published runs and with its interval. Without a level
 * it is that of the step. */
static sc_status add_rows(reader *rd, const cells *c, sc_valid_row *r,
                          const calib_whole *w)
{
    const sc_run_level *l = &rd->o->cost->run_level;
    double low = r->low / r->predicted, high = r->high / r->predicted;
    if (l->rows > 0) low = exp(l->low);
    if (l->rows > 0) high = exp(l->high);
    sc_valid_row e = *r;
    r->measured = c->hours;
    e.measured = c->energy_mwh;
    if (!r->reason) {
        double hours = w->days * 24 * w->devices * l->factor;
        double pue = c->pue > 0 && !(w->pue > 0) ? c->pue : 1;
        if (c->devices) pue *= w->device_part;
        r->predicted = hours;
        e.predicted = w->energy_j * l->factor * pue / 3.6e9;
        r->low = low * hours;
        r->high = high * hours;
        e.low = low * e.predicted;
        e.high = high * e.predicted;
        if (isnan(e.predicted)) e.reason = "no power of this device is known";
    }
    if (isfinite(c->hours) || isnan(c->energy_mwh)) SC_TRY(add_row(rd, r));
    if (isnan(c->energy_mwh)) return SC_OK;
    e.id = sc_sprintf(rd->a, "%s, energy", r->id);
    e.family = "energy";
    e.unit = "MWh";
    return e.id ? add_row(rd, &e) : sc_error_nomem(rd->err);
}

static sc_status read_row(reader *rd, const sc_csv *t, uint32_t i)
{
    cells c;
    calib_whole w = {.days = NAN};
    calib_run *run = NULL;
    const char *name = sc_csv_get(t, i, sc_csv_col(t, "run"));
    int publisher = sc_csv_col(t, "publisher");
    sc_valid_row r = {.id = name,
                      .publisher =
                          publisher < 0 ? name : sc_csv_get(t, i, publisher),
                      .family = "device-hours",
                      .device = sc_csv_get(t, i, sc_csv_col(t, "gpu")),
                      .model = name,
                      .predicted = NAN,
                      .error = NAN,
                      .mem_measured = NAN,
                      .mem_predicted = NAN,
                      .low = NAN,
                      .high = NAN};
    SC_TRY(read_cells(t, i, &c, rd->err));
    r.reason = unusable(&c);
    if (r.reason) return add_rows(rd, &c, &r, &w);
    SC_TRY(as_run(t, i, &c, rd->a, &run, rd->err));
    SC_TRY(warn(rd, &c, run));
    run->job.tokens = (int64_t)c.tokens;
    const char *who = r.publisher;
    SC_TRY(calib_row_predict(
        run, rd->o->cost, rd->o->engine, rd->a, &rd->scratch, &r,
        (calib_row_also){.interval = true, .whole = &w}, rd->err));
    r.publisher = who;
    return add_rows(rd, &c, &r, &w);
}

sc_status calib_whole_validate(const sc_csv *tables, uint32_t n_tables,
                               const sc_validate_opts *o, sc_arena *a,
                               sc_validation *out, sc_err *err)
{
    reader rd = {
        .o = o, .a = a, .err = err, .v = {.unit = "h", .kernels = true}};
    sc_status first = SC_OK;
    sc_arena_init(&rd.scratch, a->limit);
    for (uint32_t k = 0; k < n_tables; k++) {
        for (uint32_t i = 0; i < tables[k].n_rows; i++) {
            sc_status s = read_row(&rd, &tables[k], i);
            if (first == SC_OK) first = s;
            sc_progress_tell(o->progress, "rows predicted", i + 1,
                             tables[k].n_rows);
        }
    }
    sc_arena_free(&rd.scratch);
    SC_TRY(first);
    SC_TRY(calib_summarise(&rd.v, a, err));
    *out = rd.v;
    return SC_OK;
}
