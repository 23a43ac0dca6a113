/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_yaml.c - writes resolved jobs and models as files with origins. */
#include "import/import.h"

#include <stdio.h>
#include <string.h>

enum { COMMENT_COLUMN = 32 };

static const char *find_origin(const sc_origin *o, uint32_t n, const char *key)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(o[i].key, key) == 0) return o[i].text;
    return NULL;
}

/* Bytes of the control character at S, which no YAML file may hold: 1 below
 * U+0080, 2 from U+0080 to U+009F (C2 80 to C2 9F in UTF-8), else 0. */
static int control(const char *s)
{
    unsigned char c = (unsigned char)s[0], next = (unsigned char)s[c != 0];
    if (c < 0x20 || c == 0x7f) return 1;
    return c == 0xc2 && next >= 0x80 && next < 0xa0 ? 2 : 0;
}

/* A double-quoted YAML scalar. */
static void put_quoted(sc_text *out, const char *s)
{
    sc_text_add(out, "\"");
    while (*s) {
        int n = control(s);
        if (n > 0)
            sc_text_add(out, "\\x%02x", (unsigned)(unsigned char)s[n - 1]);
        else
            sc_text_add(out, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
        s += n > 0 ? n : 1;
    }
    sc_text_add(out, "\"");
}

static void put(sc_text *out, const char *key, const char *value, bool quoted,
                const char *origin)
{
    size_t from = out->len;
    sc_text_add(out, "%s: ", key);
    if (quoted)
        put_quoted(out, value);
    else
        sc_text_add(out, "%s", value);
    if (origin) {
        size_t width = out->len - from;
        int pad = width < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - width) : 1;
        sc_text_add(out, "%*s# ", pad, "");
        /* No comment may hold control characters. */
        while (*origin) {
            int n = control(origin);
            char c = *origin == '\n' ? ' ' : n > 0 ? '?' : *origin;
            sc_text_add(out, "%c", c);
            origin += n > 0 ? n : 1;
        }
    }
    sc_text_add(out, "\n");
}

void sc_job_yaml(const sc_job *job, const sc_import *m, const char *model,
                 sc_text *out)
{
    if (!job->model && model) put(out, "model", model, true, NULL);
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        const char *origin =
            m ? find_origin(m->origins, m->n_origins, k->name) : NULL;
        char value[200];
        if (!sc_job_has(job, k)) continue;
        if (k->type == SC_T_TRISTATE) {
            const int *is = (const void *)((const char *)job + k->offset);
            put(out, k->name, *is ? "yes" : "no", false, origin);
            continue;
        }
        if (k->type == SC_T_STRING) {
            const char *const *s =
                (const void *)((const char *)job + k->offset);
            put(out, k->name, *s, true, origin);
            continue;
        }
        sc_schema_print(k, job, value, sizeof value);
        put(out, k->name, value, false, origin);
    }
}

void sc_import_model_yaml(const sc_import *m, sc_text *out)
{
    put(out, "name", m->model.name, true, NULL);
    for (const sc_key *k = sc_transformer_keys; k->name; k++) {
        char value[200];
        const char *origin =
            find_origin(m->model_origins, m->n_model_origins, k->name);
        bool shown = origin || strcmp(k->name, "norm_bias") == 0;
        if (!shown || k->type == SC_T_STRING || k->type == SC_T_NODE) continue;
        sc_schema_print(k, &m->model, value, sizeof value);
        put(out, k->name, value, false, origin);
    }
}

void sc_transformer_yaml(const sc_transformer *t, sc_text *out)
{
    for (const sc_key *k = sc_transformer_keys; k->name; k++) {
        const void *field = (const char *)t + k->offset;
        const char *const *text = field;
        char value[200];
        if (k->type == SC_T_STRING) {
            if (*text) put(out, k->name, *text, true, NULL);
            continue;
        }
        if (k->type == SC_T_INT && *(const int64_t *)field == 0) continue;
        sc_schema_print(k, t, value, sizeof value);
        put(out, k->name, value, false, NULL);
    }
}
