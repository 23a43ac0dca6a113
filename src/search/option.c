/* SPDX-License-Identifier: Apache-2.0 */
/* option.c - values of an option of a job. */
#include "search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most values of one axis. */
#define VALUES 4096

static void *field(const sc_key *k, sc_job *job)
{
    return (char *)job + k->offset;
}

void sc_search_option_set(const sc_search_option *o, uint32_t digit,
                          sc_job *job)
{
    void *to = field(o->key, job);
    int64_t v = o->axis.value[digit];
    switch (o->key->type) {
    case SC_T_INT: *(int64_t *)to = v; break;
    case SC_T_BOOL: *(bool *)to = v != 0; break;
    case SC_T_TRISTATE:
    case SC_T_ENUM: *(int *)to = (int)v; break;
    case SC_T_QUANTITY: *(double *)to = o->quantity[digit]; break;
    default: break;
    }
}

void sc_search_option_print(const sc_search_option *o, uint32_t digit,
                            char *buf, size_t size)
{
    sc_job job;
    sc_job_init(&job);
    sc_search_option_set(o, digit, &job);
    sc_schema_print(o->key, &job, buf, size);
}

static int64_t read_back(const sc_key *k, sc_job *job)
{
    const void *from = field(k, job);
    switch (k->type) {
    case SC_T_INT: return *(const int64_t *)from;
    case SC_T_BOOL: return *(const bool *)from;
    case SC_T_TRISTATE:
    case SC_T_ENUM: return *(const int *)from;
    default: return 0;
    }
}

typedef struct list {
    uint32_t n;
    int64_t *value;
    double *quantity;
} list;

static sc_status add(list *l, const sc_key *k, sc_job *job, sc_pos pos,
                     sc_err *err)
{
    int64_t v = read_back(k, job);
    bool real = k->type == SC_T_QUANTITY;
    double q = real ? *(const double *)field(k, job) : 0;
    for (uint32_t i = 0; i < l->n; i++)
        if (real ? l->quantity[i] == q : l->value[i] == v) return SC_OK;
    if (l->n == VALUES)
        return sc_error(err, SC_EUSAGE, SC_C_TOO_BIG, pos, NULL,
                        "there are more than %d values", VALUES);
    l->value[l->n] = real ? (int64_t)l->n : v;
    l->quantity[l->n++] = q;
    return SC_OK;
}

/* "1..8": all whole numbers from one to the other. */
static sc_status add_range(list *l, const sc_key *k, char *word, char *dots,
                           sc_pos pos, sc_arena *a, sc_err *err)
{
    sc_job job;
    *dots = '\0';
    SC_TRY(sc_schema_set(k, word, pos, &job, a, err));
    int64_t from = read_back(k, &job);
    SC_TRY(sc_schema_set(k, dots + 2, pos, &job, a, err));
    int64_t to = read_back(k, &job);
    if (k->type != SC_T_INT || to < from)
        return sc_error(err, SC_EUSAGE, SC_C_RANGE, pos,
                        "write the smaller whole number first: 1..8",
                        "%s..%s is no range", word, dots + 2);
    for (int64_t v = from; v <= to; v++) {
        *(int64_t *)field(k, &job) = v;
        SC_TRY(add(l, k, &job, pos, err));
    }
    return SC_OK;
}

sc_status sc_search_option_read(const sc_key *key, const char *text, sc_pos pos,
                                sc_arena *a, sc_search_option *out, sc_err *err)
{
    char *all = sc_strdup(a, text), *next = NULL;
    list l = {0, SC_NEW_N(a, int64_t, VALUES), SC_NEW_N(a, double, VALUES)};
    if (!all || !l.value || !l.quantity) return sc_error_nomem(err);
    if (key->type == SC_T_STRING || key->type == SC_T_LIST ||
        key->type == SC_T_NODE)
        return sc_error(err, SC_EUSAGE, SC_C_OPTION, pos, "give it one value",
                        "several values of %s can't be searched", key->name);
    for (char *w = strtok_r(all, ", ", &next); w;
         w = strtok_r(NULL, ", ", &next)) {
        sc_job job;
        char *dots = strstr(w, "..");
        if (dots) {
            SC_TRY(add_range(&l, key, w, dots, pos, a, err));
            continue;
        }
        SC_TRY(sc_schema_set(key, w, pos, &job, a, err));
        SC_TRY(add(&l, key, &job, pos, err));
    }
    if (l.n == 0)
        return sc_error(err, SC_EUSAGE, SC_C_MISSING, pos,
                        "for example 1,2,4 or 1..8", "%s has no values",
                        key->name);
    *out = (sc_search_option){
        .key = key, .axis = {key->name, l.n, l.value}, .quantity = l.quantity};
    return SC_OK;
}
