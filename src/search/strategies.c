/* SPDX-License-Identifier: Apache-2.0 */
/* strategies.c - strategy files as the values of an axis. */
#include "search/values.h"

#include <stdlib.h>
#include <string.h>

/* Most files of one axis. */
#define FILES 256

typedef struct reader {
    const sc_given *given;
    sc_arena *a;
    sc_job *base; /* without a file */
    sc_job *all;  /* [n] */
    int64_t *value;
    uint32_t n;
    const char *first; /* file that said what all agree on; NULL: none */
    sc_err *err;
} reader;

/* "x.yml: error: y.yml gives global-batch 32, this file 64". */
static sc_status differs(const reader *x, const sc_key *k, const char *file,
                         const sc_job *job)
{
    char one[80], two[80];
    sc_schema_print(k, x->base, one, sizeof one);
    sc_schema_print(k, job, two, sizeof two);
    return sc_error(x->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(file),
                    "search files that differ in this one after the other",
                    "%s is %s here and %s in %s", k->name, two, one,
                    x->first ? x->first : "the job");
}

static sc_status agree(reader *x, const char *file, const sc_job *job)
{
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        if (!sc_strategy_compares(k->name) || !sc_job_has(job, k) ||
            sc_schema_same(k, job, x->base))
            continue;
        if (x->first && sc_job_has(x->base, k)) return differs(x, k, file, job);
        sc_schema_copy(k, job, x->base);
    }
    if (!x->first) x->first = file;
    return SC_OK;
}

static sc_status add(reader *x, const char *file, sc_pos pos)
{
    sc_job *job = &x->all[x->n];
    if (x->n == FILES)
        return sc_error(x->err, SC_EUSAGE, SC_C_TOO_BIG, pos, NULL,
                        "there are more than %d files", FILES);
    *job = *x->base;
    x->value[x->n] = x->n;
    if (strcmp(file, "none") != 0) {
        job->strategy = file;
        SC_TRY(sc_job_strategy(job, x->given, x->a, x->err));
        SC_TRY(agree(x, file, job));
    }
    x->n++;
    return SC_OK;
}

bool sc_search_is_strategy(const sc_key *k)
{
    return k->offset == offsetof(sc_job, strategy);
}

static sc_status add_word(reader *x, const char *word, sc_pos pos)
{
    for (char *w;;) {
        SC_TRY(search_next_value(&word, x->a, &w, x->err));
        if (!w) return SC_OK;
        SC_TRY(add(x, w, pos));
    }
}

sc_status sc_search_strategies_read(const sc_node *value, const sc_given *given,
                                    sc_arena *a, sc_job *job,
                                    sc_search_option *out, sc_err *err)
{
    bool seq = value->kind == SC_N_SEQ;
    reader x = {.given = given,
                .a = a,
                .base = job,
                .all = SC_NEW_N(a, sc_job, FILES),
                .value = SC_NEW_N(a, int64_t, FILES),
                .err = err};
    if (!x.all || !x.value) return sc_error_nomem(err);
    for (const sc_node *w = seq ? value->child : value; w;
         w = seq ? w->next : NULL)
        SC_TRY(add_word(&x, w->text, w->pos));
    if (x.n == 0)
        return sc_error(err, SC_EUSAGE, SC_C_MISSING, value->pos,
                        "for example tensor.yml,pipeline.yml,none",
                        "strategy has no values");
    /* what a later file says holds for earlier ones too */
    for (uint32_t i = 0; i < x.n; i++)
        for (const sc_key *k = sc_job_keys; k->name; k++)
            if (sc_strategy_compares(k->name))
                sc_schema_copy(k, job, &x.all[i]);
    const sc_key *k = sc_job_keys;
    while (!sc_search_is_strategy(k)) k++;
    *out = (sc_search_option){
        .key = k, .axis = {k->name, x.n, x.value}, .job = x.all};
    return SC_OK;
}
