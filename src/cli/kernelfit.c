/* SPDX-License-Identifier: Apache-2.0 */
/* kernelfit.c - `stepcast calibrate --kernels TABLE...`, `--kernel-levels
 * TABLE...` and `--whole-runs TABLE...`. */
#include "calib/calib.h"
#include "cli/calibrate.h"

#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Tables of several devices often have the same name in different folders. */
static bool named_before(const char *const *file, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(base_name(file[k]), base_name(file[i])) == 0) return true;
    return false;
}

/* The tables of a fit, for its file: names without directories. */
static const char *list_of(const cli *c, const char *const *file, uint32_t n)
{
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "Fitted on");
    for (uint32_t i = 0, shown = 0; i < n; i++) {
        if (named_before(file, i)) continue;
        sc_text_add(&t, "%s%s",
                    shown % 8 ? ", "
                    : shown   ? ",\n"
                              : " ",
                    base_name(file[i]));
        shown++;
    }
    sc_text_add(&t, ".");
    const char *out = t.failed ? NULL : sc_strdup(c->arena, t.buf);
    sc_text_free(&t);
    return out;
}

static void form_json(const char *key, const char *of, int kind,
                      const sc_form *f, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, key, of);
    sc_json_put_string(j, "kind", sc_form_names[kind]);
    sc_json_put_uint(j, "rows", f->rows);
    sc_json_put_double(j, "mape_other_shapes", f->error);
    sc_json_end(j, '}');
}

/* The forms, as they are read from the text that was written. */
static sc_status forms_json(const cli *c, const sc_text *yml, sc_json *j)
{
    const sc_forms *forms = NULL;
    SC_TRY(sc_forms_read(yml->buf, yml->len, "kernels.yml", c->arena, &forms,
                         c->err));
    sc_json_key(j, "kernels");
    sc_json_begin(j, '[');
    for (int k = 0; k < (int)SC_N_FIT_CLASSES * (int)SC_N_FORMS; k++) {
        int fit = k / (int)SC_N_FORMS, kind = k % (int)SC_N_FORMS;
        const sc_form *f = forms->at[fit][kind];
        if (f) form_json("class", sc_fit_class_names[fit], kind, f, j);
    }
    for (uint32_t i = 0; i < forms->n_own; i++)
        form_json("device", forms->own[i].device->name, (int)forms->own[i].kind,
                  forms->own[i].form, j);
    sc_json_end(j, ']');
    return SC_OK;
}

static sc_status levels_json(const cli *c, const sc_text *yml, sc_json *j)
{
    sc_cost cost;
    sc_cost_centres(&cost);
    SC_TRY(
        sc_cost_read(yml->buf, yml->len, "profile", c->arena, &cost, c->err));
    sc_json_key(j, "kernel_levels");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < cost.n_levels; i++) {
        sc_json_begin(j, '{');
        sc_json_put_string(j, "device", cost.level[i].device);
        sc_json_put_string(j, "kind", sc_form_names[cost.level[i].kind]);
        sc_json_put_double(j, "factor", cost.level[i].factor);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    return SC_OK;
}

static sc_status run_level_json(const cli *c, const sc_text *yml, sc_json *j)
{
    sc_run_level l;
    SC_TRY(sc_run_level_read(yml->buf, yml->len, "whole-run.yml", c->arena, &l,
                             c->err));
    sc_json_put_double(j, "factor", l.factor);
    sc_json_put_double(j, "low", l.low);
    sc_json_put_double(j, "high", l.high);
    sc_json_put_uint(j, "rows", l.rows);
    sc_json_put_uint(j, "publishers", l.publishers);
    return SC_OK;
}

typedef sc_status members(const cli *c, const sc_text *yml, sc_json *j);

static sc_status print_json(cli *c, members *write, const sc_text *yml)
{
    sc_json j;
    sc_json_init(&j, true);
    sc_json_begin(&j, '{');
    sc_json_put_string(&j, "schema", "stepcast.calibrate/1");
    sc_status s = write(c, yml, &j);
    sc_json_end(&j, '}');
    if (s == SC_OK) s = cli_emit_json(c, &j);
    sc_json_free(&j);
    return s;
}

typedef sc_status fit(const sc_csv *tables, uint32_t n, const char *from,
                      sc_arena *a, sc_text *yml, sc_text *report, sc_err *err);

static sc_status fitted(cli *c, const char *const *file, uint32_t n, fit *by,
                        sc_text *yml, sc_text *report)
{
    sc_csv *tables = SC_NEW_N(c->arena, sc_csv, n);
    const char *from = list_of(c, file, n);
    if (!from || !tables) return sc_error_nomem(c->err);
    SC_TRY(cli_read_tables(c, file, n, tables));
    return by(tables, n, from, c->arena, yml, report, c->err);
}

/* Writes INTO/NAME, and the report or the document as the result. */
static sc_status fit_file(cli *c, const char *const *file, uint32_t n, fit *by,
                          const char *into, const char *name, members *write)
{
    sc_text yml, report;
    sc_text_init(&yml);
    sc_text_init(&report);
    sc_status s = fitted(c, file, n, by, &yml, &report);
    if (s == SC_OK) s = cli_write_fit(c, into, name, &yml);
    if (s == SC_OK)
        s = c->json ? print_json(c, write, &yml) : cli_emit_text(c, &report);
    sc_text_free(&yml);
    sc_text_free(&report);
    return s;
}

sc_status cli_calibrate_kernels(cli *c, const char *const *file, uint32_t n,
                                const char *into, bool alone)
{
    return fit_file(c, file, n,
                    alone ? sc_calibrate_alone : sc_calibrate_kernels, into,
                    alone ? "kernels-alone.yml" : "kernels.yml", forms_json);
}

sc_status cli_calibrate_whole(cli *c, const char *const *file, uint32_t n,
                              const char *into)
{
    return fit_file(c, file, n, sc_calibrate_whole, into, "whole-run.yml",
                    run_level_json);
}

/* With --json and -o, the file has the profile and stdout the document. */
sc_status cli_calibrate_levels(cli *c, const char *const *file, uint32_t n)
{
    cli to_stdout = *c;
    sc_text yml, report;
    to_stdout.output = NULL;
    sc_text_init(&yml);
    sc_text_init(&report);
    sc_status s = fitted(c, file, n, sc_calibrate_levels, &yml, &report);
    if (s == SC_OK && !c->json) cli_note(c, "%s", report.buf);
    if (s == SC_OK && (!c->json || c->output)) s = cli_emit_text(c, &yml);
    if (s == SC_OK && c->json) s = print_json(&to_stdout, levels_json, &yml);
    sc_text_free(&yml);
    sc_text_free(&report);
    return s;
}
