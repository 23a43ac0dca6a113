/* SPDX-License-Identifier: Apache-2.0 */
/* emit_files.c - `--emit FORMAT DIR`. */
#include "cli/predict.h"
#include "import/import_emit.h"
#include "report/report_row.h"

#include <string.h>

/* What was written. */
typedef struct cli_emits {
    uint32_t n;

    struct cli_emits_one {
        const char *format, *dir;
        sc_emitted e;
    } * one; /* [n] */
} cli_emits;

static uint32_t count(const char *const *list)
{
    uint32_t n = 0;
    while (list && list[n]) n++;
    return n;
}

static int format_of(const char *name)
{
    for (int i = 0; sc_emit_names[i]; i++)
        if (strcmp(sc_emit_names[i], name) == 0) return i;
    return -1;
}

static sc_status unknown(cli *c, const char *name)
{
    const char *names[SC_N_EMITS + 2];
    for (int i = 0; i < (int)SC_N_EMITS; i++) names[i] = sc_emit_names[i];
    names[SC_N_EMITS] = "chakra";
    names[SC_N_EMITS + 1] = NULL;
    return sc_error(c->err, SC_EUSAGE, SC_C_OPTION,
                    sc_pos_option(c->arena, "--emit", name),
                    cli_hint(c, name, names,
                             "megatron, nemo, deepspeed, torchtitan, strategy, "
                             "job, cluster, astra-sim or chakra"),
                    "unknown format");
}

sc_status cli_emit_formats(cli *c, predict_opts *o)
{
    uint32_t n = count(o->emits), kept = 0;
    if (n % 2)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_file("--emit"),
                        "write a format and a folder: [megatron, DIR]",
                        "a folder is missing");
    for (uint32_t i = 0; i < n; i += 2) {
        if (strcmp(o->emits[i], "chakra") == 0) {
            if (o->emit && strcmp(o->emit, o->emits[i + 1]) != 0)
                return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT,
                                sc_pos_file("--emit chakra"), NULL,
                                "traces are written to one folder");
            o->emit = o->emits[i + 1];
            continue;
        }
        if (format_of(o->emits[i]) < 0) return unknown(c, o->emits[i]);
        o->emits[kept++] = o->emits[i];
        o->emits[kept++] = o->emits[i + 1];
    }
    if (o->emits) o->emits[kept] = NULL;
    return SC_OK;
}

/* All errors of all formats are reported before a file is written. */
sc_status cli_emit_files(cli *c, const sc_job *job, const sc_prediction *p,
                         predict_opts *o)
{
    sc_status first = SC_OK;
    uint32_t n = count(o->emits) / 2;
    cli_emits *x = SC_NEW(c->arena, cli_emits);
    if (n == 0) return SC_OK;
    if (x) x->one = SC_NEW_N(c->arena, struct cli_emits_one, n);
    if (!x || !x->one) return sc_error_nomem(c->err);
    for (x->n = 0; x->n < n; x->n++) {
        struct cli_emits_one *one = &x->one[x->n];
        one->format = o->emits[2 * x->n];
        one->dir = o->emits[2 * x->n + 1];
        sc_status s = sc_emit((sc_emit_format)format_of(one->format), one->dir,
                              job, p, c->arena, &one->e, c->err);
        if (first == SC_OK) first = s;
    }
    SC_TRY(first);
    for (uint32_t i = 0; i < n; i++)
        SC_TRY(sc_emit_write(&x->one[i].e, x->one[i].dir, c->arena, c->err));
    o->written = x;
    return SC_OK;
}

void cli_emit_files_text(const predict_opts *o, sc_text *out)
{
    for (uint32_t i = 0; o->written && i < o->written->n; i++) {
        const struct cli_emits_one *one = &o->written->one[i];
        for (uint32_t k = 0; k < one->e.n_files; k++)
            report_line(out, k ? "" : one->format, "%s/%s", one->dir,
                        one->e.file[k].name);
        report_line(out, "", "%s", one->e.command);
        if (one->e.note) report_line(out, "", "%s", one->e.note);
    }
}

void cli_emit_files_json(const predict_opts *o, sc_json *j)
{
    sc_json_key(j, "emitted");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; o->written && i < o->written->n; i++) {
        const struct cli_emits_one *one = &o->written->one[i];
        sc_json_begin(j, '{');
        sc_json_put_string(j, "format", one->format);
        sc_json_put_string(j, "folder", one->dir);
        sc_json_key(j, "files");
        sc_json_begin(j, '[');
        for (uint32_t k = 0; k < one->e.n_files; k++)
            sc_json_string(j, one->e.file[k].name);
        sc_json_end(j, ']');
        sc_json_put_string(j, "command", one->e.command);
        sc_json_put_string(j, "note", one->e.note);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}
