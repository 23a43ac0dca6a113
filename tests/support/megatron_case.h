/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_case.h - a text read as the arguments of Megatron-LM. */
#ifndef MEGATRON_CASE_H
#define MEGATRON_CASE_H

#include "findings.h"
#include "import/import.h"

#include <stdio.h>
#include <string.h>

#define SIZES "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 "
#define RUN   "--seq-length 2048 --micro-batch-size 2 "
#define REST  "--max-position-embeddings 2048 --vocab-size 50000\n"
#define WHOLE SIZES RUN REST

typedef struct reading {
    sc_arena a;
    sc_err err;
    sc_job job;
    sc_import m;
    sc_status status;
} reading;

static inline void read_defined(reading *r, const char *text,
                                const char *const *define)
{
    sc_arena_init(&r->a, 0);
    sc_err_init(&r->err);
    sc_job_init(&r->job);
    memset(&r->m, 0, sizeof r->m);
    r->status = sc_megatron_read(text, strlen(text), "f", define, &r->a,
                                 &r->job, &r->m, &r->err);
}

static inline void good(reading *r, const char *text)
{
    read_defined(r, text, NULL);
    none_found(&r->err, text);
}

static inline const char *origin(const reading *r, bool model, const char *key)
{
    const sc_origin *o = model ? r->m.model_origins : r->m.origins;
    uint32_t n = model ? r->m.n_model_origins : r->m.n_origins;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(o[i].key, key) == 0) return o[i].text;
    return "";
}

#endif
