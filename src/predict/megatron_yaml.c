/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_yaml.c - resolved jobs and models as files with origins. */
#include <stepcast/predict_inputs.h>

#include <stdio.h>
#include <string.h>

enum { COMMENT_COLUMN = 32 };

static const char *find_origin(const sc_origin *o, uint32_t n, const char *key)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(o[i].key, key) == 0) return o[i].text;
    return NULL;
}

/* A double-quoted YAML scalar. */
static void put_quoted(sc_text *out, const char *s)
{
    sc_text_add(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            sc_text_add(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            sc_text_add(out, "\\x%02x", c);
        else
            sc_text_add(out, "%c", c);
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
        for (; *origin; origin++)
            sc_text_add(out, "%c", *origin == '\n' ? ' ' : *origin);
    }
    sc_text_add(out, "\n");
}

/* Keys whose field only keeps what an option said; see sc_job_given(). */
static const int *tri_state(const sc_job *job, const char *key)
{
    if (strcmp(key, "sp") == 0) return &job->sp;
    if (strcmp(key, "overlap-grad-reduce") == 0) return &job->grad_overlap;
    return NULL;
}

/* Whether a field differs from what it is in a job of which nothing is given. */
static bool changed(const sc_key *k, const sc_job *job, const sc_job *empty)
{
    const char *a = (const char *)job + k->offset;
    const char *b = (const char *)empty + k->offset;
    switch (k->type) {
    case SC_T_INT: return memcmp(a, b, sizeof(int64_t)) != 0;
    case SC_T_ENUM: return memcmp(a, b, sizeof(int)) != 0;
    case SC_T_BOOL: return memcmp(a, b, sizeof(bool)) != 0;
    case SC_T_QUANTITY: return memcmp(a, b, sizeof(double)) != 0;
    case SC_T_STRING: return *(const char *const *)(const void *)a != NULL;
    case SC_T_NODE: break;
    }
    return false;
}

void sc_job_yaml(const sc_job *job, const sc_megatron *m, const char *model,
                 sc_text *out)
{
    sc_job empty;
    sc_job_init(&empty);
    sc_text_add(out, "# What is missing here is inferred.\n");
    if (!job->model && model) put(out, "model", model, true, NULL);
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        const int *three = tri_state(job, k->name);
        const char *origin =
            m ? find_origin(m->origins, m->n_origins, k->name) : NULL;
        char value[200];
        if (three) {
            if (*three != SC_INFER)
                put(out, k->name, *three ? "yes" : "no", false, origin);
            continue;
        }
        if (!changed(k, job, &empty)) continue;
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

void sc_megatron_model_yaml(const sc_megatron *m, sc_text *out)
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
