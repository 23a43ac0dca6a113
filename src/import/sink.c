/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - collects fields of a job with their origins, and messages. */
#include "import/sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- findings ---------------------------------------------------------------------- */

void import_error(import_sink *s, sc_code code, sc_pos pos, const char *hint,
                  const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sc_error_v(s->err, &s->status, SC_EINPUT, code, pos, hint, fmt, args);
    va_end(args);
}

static sc_status add_line(import_sink *s, const char ***list, uint32_t *n,
                          uint32_t *cap, const char *line)
{
    void *array = sc_grow(s->a, *list, *n, cap, 16, sizeof **list);
    if (!array || !line) return sc_error_nomem(s->err);
    *list = array;
    (*list)[(*n)++] = line;
    return SC_OK;
}

sc_status import_assume(import_sink *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = sc_vsprintf(s->a, fmt, args);
    va_end(args);
    return add_line(s, &s->out->assumptions, &s->out->n_assumptions,
                    &s->cap_assumptions, text);
}

sc_status import_warn(import_sink *s, sc_pos pos, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = sc_vsprintf(s->a, fmt, args);
    va_end(args);
    if (!text) return sc_error_nomem(s->err);
    const char *line =
        pos.line ? sc_sprintf(s->a, "%s:%u:%u: %s", s->file, (unsigned)pos.line,
                              (unsigned)pos.col, text)
                 : sc_sprintf(s->a, "%s: %s", s->file, text);
    return add_line(s, &s->out->warnings, &s->out->n_warnings, &s->cap_warnings,
                    line);
}

/* ---- origins ----------------------------------------------------------------------- */

static sc_origin *find(const import_sink *s, const char *key)
{
    for (uint32_t i = 0; i < s->out->n_origins; i++)
        if (strcmp(s->out->origins[i].key, key) == 0)
            return &s->out->origins[i];
    return NULL;
}

/* Writes "train.sh:12:3: --tensor-model-parallel-size 8 (line 6), how". */
static const char *describe(import_sink *s, const import_value *v,
                            const char *text)
{
    char line[24] = "";
    if (v->at.line != v->pos.line)
        snprintf(line, sizeof line, " (line %u)", (unsigned)v->at.line);
    return sc_sprintf(s->a, "%s:%u:%u: %s%s%s%s%s%s", s->file,
                      (unsigned)v->pos.line, (unsigned)v->pos.col, v->name,
                      v->text[0] ? " " : "", v->text, line, text ? ", " : "",
                      text ? text : "");
}

sc_status import_origin(import_sink *s, bool of_model, const char *key,
                        const import_value *v, const char *text)
{
    sc_import *o = s->out;
    uint32_t *n = of_model ? &o->n_model_origins : &o->n_origins;
    sc_origin **list = of_model ? &o->model_origins : &o->origins;
    sc_origin origin = {key, text, {s->file, 0, 0}};
    if (v && v->given) {
        origin.pos = v->at;
        origin.text = describe(s, v, text);
        if (!origin.text) return sc_error_nomem(s->err);
    }
    sc_origin *known = of_model ? NULL : find(s, key);
    if (known) {
        *known = origin;
        return SC_OK;
    }
    void *array =
        sc_grow(s->a, *list, *n, of_model ? &s->cap_model : &s->cap_origins, 16,
                sizeof **list);
    if (!array) return sc_error_nomem(s->err);
    *list = array;
    (*list)[(*n)++] = origin;
    return SC_OK;
}

/* ---- fields ------------------------------------------------------------------------ */

static const sc_key *row_of(const char *key)
{
    const sc_key *k = sc_job_keys;
    while (k->name && strcmp(k->name, key) != 0) k++;
    return k->name ? k : NULL;
}

bool import_has(const import_sink *s, const char *key)
{
    const sc_key *k = row_of(key);
    return k && sc_job_has(s->job, k);
}

bool import_is_explicit(const import_sink *s, const char *key)
{
    const sc_origin *o = find(s, key);
    return import_has(s, key) && (!o || o->pos.line != 0);
}

static double number_of(const sc_job *job, const sc_key *k)
{
    const void *field = (const char *)job + k->offset;
    switch (k->type) {
    case SC_T_INT: return (double)*(const int64_t *)field;
    case SC_T_TRISTATE:
    case SC_T_ENUM: return *(const int *)field;
    case SC_T_BOOL: return *(const bool *)field;
    case SC_T_QUANTITY: return *(const double *)field;
    case SC_T_STRING:
    case SC_T_LIST:
    case SC_T_NODE: break;
    }
    return 0;
}

static void set_number(sc_job *job, const sc_key *k, double value)
{
    void *field = (char *)job + k->offset;
    if (k->type == SC_T_INT)
        *(int64_t *)field = (int64_t)value;
    else if (k->type == SC_T_ENUM || k->type == SC_T_TRISTATE)
        *(int *)field = (int)value;
    else if (k->type == SC_T_BOOL)
        *(bool *)field = value != 0;
    else if (k->type == SC_T_QUANTITY)
        *(double *)field = value;
}

/* Whether a field should be written: it has no value, or only a default that an
 * explicit value replaces.  `same`: the value would not change. */
static bool to_write(import_sink *s, const char *key, bool same,
                     const import_value *v)
{
    const sc_origin *o = find(s, key);
    if (!import_has(s, key)) return true;
    if (!o || !v || !v->given) return false;
    if (o->pos.line == 0) return true;
    if (!same && (o->pos.file != s->file || o->pos.line != v->at.line)) {
        char hint[240];
        snprintf(hint, sizeof hint, "%.200s has another value", o->text);
        import_error(s, SC_C_CONFLICT, v->at, hint, "%s %.60s", v->name,
                     v->text);
    }
    return false;
}

sc_status import_put(import_sink *s, const char *key, double value,
                     const import_value *v, const char *text)
{
    const sc_key *k = row_of(key);
    if (!to_write(s, key, number_of(s->job, k) == value, v)) return SC_OK;
    set_number(s->job, k, value);
    return import_origin(s, false, key, v, v && v->given ? NULL : text);
}

sc_status import_put_text(import_sink *s, const char *key, const char *value,
                          const import_value *v, const char *text)
{
    const sc_key *k = row_of(key);
    const char **field = (const char **)(void *)((char *)s->job + k->offset);
    if (!to_write(s, key, *field && strcmp(*field, value) == 0, v))
        return SC_OK;
    *field = sc_strdup(s->a, value);
    if (!*field) return sc_error_nomem(s->err);
    return import_origin(s, false, key, v, v && v->given ? NULL : text);
}
