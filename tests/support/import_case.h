/* SPDX-License-Identifier: Apache-2.0 */
/* import_case.h - files of other programs as tables of text and what it means. */
#ifndef TESTS_IMPORT_CASE_H
#define TESTS_IMPORT_CASE_H

#include "findings.h"
#include "import/import.h"

#include <stdio.h>
#include <string.h>

typedef struct import_case {
    sc_arena a;
    sc_err err;
    sc_job job;
    sc_import out;
    sc_status status;
} import_case;

static inline void import_open(import_case *r)
{
    sc_arena_init(&r->a, 0);
    sc_err_init(&r->err);
    sc_job_init(&r->job);
    memset(&r->out, 0, sizeof r->out);
}

static inline void import_text(import_case *r, sc_import_format format,
                               const char *text)
{
    sc_import_file f = {"f", text, strlen(text), format};
    import_open(r);
    r->status = sc_import_read(&f, 1, NULL, &r->a, &r->job, &r->out, &r->err);
}

/* The fields of a job that are set, as "tp=1 zero=3 ", in order of the table. */
static inline void import_fields(const sc_job *job, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        char value[200];
        if (!sc_job_has(job, k)) continue;
        sc_schema_print(k, job, value, sizeof value);
        if (k->type == SC_T_TRISTATE)
            snprintf(value, sizeof value, "%s", value[0] == 't' ? "yes" : "no");
        at += (size_t)snprintf(out + at, size - at, "%s%s=%s", at ? " " : "",
                               k->name, value);
        if (at >= size) fail_msg("more fields than expected");
    }
}

/* Fails unless `text` gives exactly these fields and no error. */
static inline void import_gives(sc_import_format format, const char *text,
                                const char *fields)
{
    import_case r;
    char found[1000];
    import_text(&r, format, text);
    none_found(&r.err, text);
    import_fields(&r.job, found, sizeof found);
    if (strcmp(found, fields) != 0)
        fail_msg("%s\n  instead of\n%s\n  for\n%s", found, fields, text);
    sc_arena_free(&r.a);
}

/* Fails unless `text` has exactly these errors: "unknown-key 1:2". */
static inline void import_fails(sc_import_format format, const char *text,
                                const char *errors)
{
    import_case r;
    char found[FINDINGS];
    import_text(&r, format, text);
    findings(&r.err, found);
    if (strcmp(found, errors) != 0 || r.status == SC_OK)
        fail_msg("%s instead of %s for\n%s\n%s", found, errors, text,
                 r.err.n ? r.err.d[0].msg : "");
    assert_int_equal(r.out.n_origins, 0);
    sc_arena_free(&r.a);
}

/* Fails unless a warning of `text` has the part; NULL: there is none at all. */
static inline void import_warns(sc_import_format format, const char *text,
                                const char *part)
{
    import_case r;
    bool found = !part;
    import_text(&r, format, text);
    none_found(&r.err, text);
    if (!part && r.out.n_warnings)
        fail_msg("warning %s for\n%s", r.out.warnings[0], text);
    for (uint32_t i = 0; part && i < r.out.n_warnings; i++)
        found = found || strstr(r.out.warnings[i], part);
    if (!found) fail_msg("no warning with '%s' for\n%s", part, text);
    sc_arena_free(&r.a);
}

#endif
