/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c - `stepcast validate FILE.csv...`. */
#include "calib/calib.h"
#include "cli/predict.h"

#include <math.h>
#include <string.h>

#define MAX_BYTES ((size_t)64 << 20)

typedef struct options {
    const char *leave_out, *bars, *write_bars, *family, *where, *profile;
    int engine;
    int64_t anchors;
    bool rows;
} options;

static const char *const engine_names[] = {"event", "fast", NULL};

#define WORD(key, field, option, value, text)                                 \
    {                                                                         \
        .name = key, .type = SC_T_STRING, .offset = offsetof(options, field), \
        .flag = option, .meta = value, .help = text                           \
    }

const sc_key cli_validate_keys[] = {
    WORD("leave-out", leave_out, "--leave-out", "WHAT",
         "fit without each family, device or model in turn, and predict its "
         "rows with that fit"),
    {.name = "anchors",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = offsetof(options, anchors),
     .min = 1,
     .max = 100,
     .flag = "--anchors",
     .meta = "N",
     .help = "with --leave-out family: predict each row with N others of its "
             "family as own runs"},
    WORD("bars", bars, "--bars", "FILE",
         "exit 1 if the error of a family exceeds its limit in FILE"),
    WORD("write-bars", write_bars, "--write-bars", "FILE",
         "write the current errors as such a file"),
    WORD("family", family, "--family", "GLOB", "only rows of these families"),
    WORD("where", where, "--where", "GLOB",
         "only rows whose id matches the pattern"),
    WORD("profile", profile, "--profile", "FILE",
         "parameters as written by calibrate"),
    {.name = "engine",
     .type = SC_T_ENUM,
     .offset = offsetof(options, engine),
     .def = "fast",
     .names = engine_names,
     .flag = "--engine",
     .help = "fast: without a graph, as in fits; event: with a graph"},
    {.name = "rows",
     .type = SC_T_BOOL,
     .offset = offsetof(options, rows),
     .def = "false",
     .flag = "--rows",
     .help = "print every row, not only the groups"},
    {0},
};

static sc_status print(cli *c, const options *o, const sc_validation *v)
{
    sc_text text;
    sc_json json;
    sc_text_init(&text);
    sc_json_init(&json, true);
    if (c->json)
        sc_validation_json(v, &json);
    else
        sc_validation_text(v, o->rows, &text);
    sc_status s = SC_OK;
    if (json.failed || text.failed)
        s = sc_error_nomem(c->err);
    else
        s = c->json ? cli_emit_json(c, &json) : cli_emit_text(c, &text);
    sc_json_free(&json);
    sc_text_free(&text);
    return s;
}

/* Checks `v` against the limits of --bars; SC_NO: an error is too large. */
static sc_status check_bars(const cli *c, const options *o,
                            const sc_validation *v, sc_text *report)
{
    char *file;
    size_t len;
    if (!o->bars) return SC_OK;
    SC_TRY(sc_file_read(o->bars, MAX_BYTES, c->arena, &file, &len, c->err));
    return sc_validation_bars(v, file, len, o->bars, c->arena, report, c->err);
}

static sc_status write_bars(const cli *c, const options *o,
                            const sc_validation *v)
{
    sc_text text;
    if (!o->write_bars) return SC_OK;
    sc_text_init(&text);
    sc_validation_bars_write(v, &text);
    sc_status s =
        text.failed ? sc_error_nomem(c->err)
                    : sc_file_write(o->write_bars, text.buf, text.len, c->err);
    sc_text_free(&text);
    return s;
}

static sc_status measure(cli *c, const options *o, const sc_csv *tables,
                         uint32_t n, sc_validation *v)
{
    sc_validate_opts opts = {.engine = o->engine,
                             .family = o->family,
                             .where = o->where,
                             .anchors = (uint32_t)o->anchors,
                             .progress = cli_progress(c)};
    sc_cost cost;
    if (o->profile && o->leave_out)
        return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_none(),
                        "give one of them",
                        "--leave-out fits the parameters that --profile sets");
    if (o->anchors && (!o->leave_out || strcmp(o->leave_out, "family") != 0))
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "stepcast validate --leave-out family --anchors 1",
                        "--anchors needs --leave-out family");
    if (o->leave_out)
        return sc_validate_leave_out(tables, n, o->leave_out, &opts, c->arena,
                                     v, c->err);
    if (o->profile) {
        SC_TRY(sc_cost_builtin(c->arena, &cost, c->err));
        SC_TRY(sc_cost_profile(o->profile, c->arena, &cost, c->err));
        opts.cost = &cost;
    }
    return sc_validate(tables, n, &opts, c->arena, v, c->err);
}

/* Whether any row was compared; if not, reports why. */
static sc_status compared(const cli *c, const options *o,
                          const sc_validation *v)
{
    for (uint32_t i = 0; i < v->n_groups; i++)
        if (isfinite(v->groups[i].mape) || isfinite(v->groups[i].mem_mape) ||
            v->groups[i].fits.rows > 0)
            return SC_OK;
    if (v->n_rows)
        cli_note(c, "nothing to compare: all %u rows are skipped\n", v->n_rows);
    else if (o->family || o->where)
        cli_note(c, "nothing to compare: no row matches%s%s%s%s%s\n",
                 o->family ? " --family " : "", o->family ? o->family : "",
                 o->family && o->where ? " and" : "",
                 o->where ? " --where " : "", o->where ? o->where : "");
    else
        cli_note(c, "nothing to compare: the tables have no rows\n");
    return SC_NO;
}

/* Prints only after everything that can fail has succeeded. */
static sc_status conclude(cli *c, const options *o, const sc_validation *v)
{
    sc_text report;
    sc_text_init(&report);
    sc_status bars = check_bars(c, o, v, &report), s = bars;
    if (s == SC_NO) s = SC_OK;
    if (s == SC_OK) s = write_bars(c, o, v);
    if (s == SC_OK) s = print(c, o, v);
    if (s == SC_OK) cli_note(c, "%s", report.buf);
    if (s == SC_OK) s = compared(c, o, v);
    sc_text_free(&report);
    return s == SC_OK ? bars : s;
}

sc_status cli_validate(cli *c, int argc, char *const *argv)
{
    options o = {0};
    sc_opt_set set = {.keys = cli_validate_keys, .target = &o};
    sc_words files;
    SC_TRY(sc_schema_defaults(cli_validate_keys, &o, c->arena, c->err));
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &files));
    if (c->dump_config) return cli_dump(c, &set, 1);
    if (files.n == 0)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "stepcast validate data/validation/*.csv",
                        "no table is named");
    sc_csv *tables = SC_NEW_N(c->arena, sc_csv, files.n);
    if (!tables) return sc_error_nomem(c->err);
    SC_TRY(cli_read_tables(c, files.w, files.n, tables));
    sc_validation v;
    SC_TRY(measure(c, &o, tables, files.n, &v));
    return conclude(c, &o, &v);
}
