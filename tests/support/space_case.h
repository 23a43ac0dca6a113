/* SPDX-License-Identifier: Apache-2.0 */
/* space_case.h - opens spaces of a search from a few words, in tests. */
#ifndef SPACE_CASE_H
#define SPACE_CASE_H

#include "search/search.h"
#include "unit.h"

#include <string.h>

typedef struct space_case {
    const char *model, *cluster, *software;
    int64_t gbs, seq;
    const char *more; /* axes beside the usual ones: "pp=1,2 offload=0,0.5" */
    uint32_t draws;
} space_case;

enum { SPACE_MORE = 8 };

/* Reads "pp=1,2 precision=bf16,fp8". */
static inline uint32_t space_axes(const char *more, sc_job *job, sc_arena *a,
                                  sc_search_option *out, sc_err *e)
{
    static const sc_given none = {{0}};
    char *all = sc_strdup(a, more ? more : ""), *next = NULL;
    uint32_t n = 0;
    for (char *w = strtok_r(all, " ", &next); w;
         w = strtok_r(NULL, " ", &next)) {
        char *eq = strchr(w, '=');
        const sc_key *k = sc_job_keys;
        *eq = '\0';
        while (strcmp(k->name, w) != 0) k++;
        const sc_node word = sc_search_word(eq + 1, sc_pos_none());
        sc_status s =
            sc_search_is_strategy(k)
                ? sc_search_strategies_read(&word, &none, a, job, &out[n++], e)
                : sc_search_option_read_node(k, &word, a, &out[n++], e);
        if (s != SC_OK) print_message("%s: %s\n", w, e->d[0].msg);
        assert_int_equal(s, SC_OK);
    }
    return n;
}

static inline sc_status space_open(const space_case *c, sc_arena *a,
                                   sc_inputs *in, sc_search_jobs *out,
                                   sc_err *e)
{
    sc_job job;
    sc_search_option given[SPACE_MORE];
    sc_job_init(&job);
    job.model = c->model;
    job.cluster = c->cluster;
    job.software = c->software;
    job.gbs = c->gbs;
    job.seq = c->seq;
    job.engine = SC_ENGINE_FAST;
    uint32_t n = space_axes(c->more, &job, a, given, e);
    assert_int_equal(sc_predict_load(&job, a, in, e), SC_OK);
    return sc_search_jobs_open(&job, in, given, n, a, out, e);
}

#endif
