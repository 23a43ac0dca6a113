/* SPDX-License-Identifier: Apache-2.0 */
/* ownruns.c - `stepcast calibrate --runs TABLE`. */
#include "calib/calib.h"
#include "cli/calibrate.h"
#include "report/report_predict.h"

#define MAX_BYTES ((size_t)64 << 20)

/* With -o, the file has the profile and stdout the document. */
static sc_status print_json(cli *c, const sc_anchors *s)
{
    cli to_stdout = *c;
    sc_json j;
    to_stdout.output = NULL;
    sc_json_init(&j, true);
    sc_json_begin(&j, '{');
    sc_json_put_string(&j, "schema", "stepcast.calibrate/1");
    sc_status st = sc_report_own_runs_json(s, c->arena, &j, c->err);
    sc_json_end(&j, '}');
    if (st == SC_OK) st = cli_emit_json(&to_stdout, &j);
    sc_json_free(&j);
    return st;
}

static sc_status write(cli *c, const char *file, const char *into,
                       const sc_anchors *s, const sc_text *report)
{
    sc_text profile;
    sc_text_init(&profile);
    const char *from =
        sc_sprintf(c->arena,
                   "# Written by `stepcast calibrate --runs`, from %u runs of "
                   "%s.\n",
                   s->n, file);
    sc_status st = from ? sc_anchors_write(s, from, c->arena, &profile, c->err)
                        : sc_error_nomem(c->err);
    if (st == SC_OK && into)
        st = sc_file_write(into, profile.buf, profile.len, c->err);
    else if (st == SC_OK && (!c->json || c->output))
        st = cli_emit_text(c, &profile);
    sc_text_free(&profile);
    SC_TRY(st);
    if (c->json) return print_json(c, s);
    if (into) return cli_emit_text(c, report);
    cli_note(c, "%s", report->buf);
    return SC_OK;
}

sc_status cli_calibrate_runs(cli *c, const char *file, const char *into)
{
    char *text;
    size_t len;
    sc_csv table = {0};
    sc_cost base;
    sc_text report;
    sc_anchors *s = SC_NEW(c->arena, sc_anchors);
    if (!s) return sc_error_nomem(c->err);
    SC_TRY(sc_file_read(file, MAX_BYTES, c->arena, &text, &len, c->err));
    SC_TRY(sc_csv_read(text, len, file, c->arena, &table, c->err));
    SC_TRY(sc_cost_builtin(c->arena, &base, c->err));
    sc_text_init(&report);
    sc_status st = sc_calibrate_runs(&table, &base, cli_progress(c), c->arena,
                                     s, &report, c->err);
    if (st == SC_OK) st = write(c, file, into, s, &report);
    sc_text_free(&report);
    return st;
}
