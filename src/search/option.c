/* SPDX-License-Identifier: Apache-2.0 */
/* option.c - values of an option of a job. */
#include "search/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *field(const sc_key *k, sc_job *job)
{
    return (char *)job + k->offset;
}

void sc_search_option_set(const sc_search_option *o, uint32_t digit,
                          sc_job *job)
{
    void *to = field(o->key, job);
    int64_t v = o->axis.value[digit];
    if (o->job) *job = o->job[digit];
    if (v == SC_SEARCH_AS_GIVEN) return;
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
    if (o->axis.value[digit] == SC_SEARCH_AS_GIVEN || (o->job && !job.strategy))
        snprintf(buf, size, "%s", o->job ? "none" : "as given");
    else
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
    if (l->n == SEARCH_VALUES)
        return sc_error(err, search_status_at(pos), SC_C_TOO_BIG, pos, NULL,
                        "there are more than %d values", SEARCH_VALUES);
    l->value[l->n] = real ? (int64_t)l->n : v;
    l->quantity[l->n++] = q;
    return SC_OK;
}

/* All whole numbers from one to the other. */
static sc_status add_range(list *l, const sc_key *k, int64_t from, int64_t to,
                           sc_pos pos, sc_err *err)
{
    sc_job job;
    sc_job_init(&job);
    for (int64_t v = from; v <= to; v++) {
        *(int64_t *)field(k, &job) = v;
        SC_TRY(add(l, k, &job, pos, err));
    }
    return SC_OK;
}

/* Most values of a number that "all" lists, and parts of a fraction. */
enum { NUMBERS = 64, PARTS = 8 };

static bool is_fraction(const sc_key *k)
{
    return k->type == SC_T_QUANTITY && k->unit == SC_U_NONE && k->min == 0 &&
           k->max == 1;
}

/* All values of a number, or eighths of a fraction. */
static sc_status add_numbers(list *l, const sc_key *k, sc_pos pos, sc_err *err)
{
    sc_job job;
    bool fraction = is_fraction(k);
    int64_t last = fraction ? PARTS : (int64_t)k->max;
    sc_job_init(&job);
    for (int64_t v = fraction ? 0 : (int64_t)k->min; v <= last; v++) {
        if (fraction)
            *(double *)field(k, &job) = (double)v / PARTS;
        else
            *(int64_t *)field(k, &job) = v;
        SC_TRY(add(l, k, &job, pos, err));
    }
    return SC_OK;
}

/* "all": every value of a flag, of an option with names, or of a number with few
 * of them. */
static sc_status add_all(list *l, const sc_key *k, sc_pos pos, sc_arena *a,
                         sc_err *err)
{
    static const char *const flags[] = {"false", "true", NULL};
    const char *const *name = sc_key_is_flag(k)      ? flags
                              : k->type == SC_T_ENUM ? k->names
                                                     : NULL;
    bool few = k->type == SC_T_INT && k->max - k->min <= NUMBERS;
    if (is_fraction(k) || few) return add_numbers(l, k, pos, err);
    if (!name)
        return sc_error(err, search_status_at(pos), SC_C_OPTION, pos,
                        "for example 1,2,4 or 1..8",
                        "not all values of %s can be listed", k->name);
    for (; *name; name++) {
        sc_job job;
        SC_TRY(sc_schema_set(k, *name, pos, &job, a, err));
        SC_TRY(add(l, k, &job, pos, err));
    }
    return SC_OK;
}

/* All values of a word: "1,2,4..8". */
static sc_status add_word(list *l, const sc_key *k, const char *word,
                          sc_pos pos, sc_arena *a, sc_err *err)
{
    for (char *w;;) {
        sc_job job;
        bool range;
        int64_t from = 0, to = 0;
        SC_TRY(search_next_value(&word, a, &w, err));
        if (!w) return SC_OK;
        SC_TRY(search_range(k, w, pos, a, &range, &from, &to, err));
        if (range || strcmp(w, "all") == 0) {
            SC_TRY(range ? add_range(l, k, from, to, pos, err)
                         : add_all(l, k, pos, a, err));
            continue;
        }
        SC_TRY(sc_schema_set(k, w, pos, &job, a, err));
        SC_TRY(add(l, k, &job, pos, err));
    }
}

sc_node sc_search_word(const char *text, sc_pos pos)
{
    return (sc_node){.kind = SC_N_SCALAR, .text = text, .pos = pos};
}

bool sc_search_is_list(const sc_key *key, const char *word)
{
    if (sc_search_is_strategy(key)) return strchr(word, ',') != NULL;
    bool many =
        strchr(word, ',') || strstr(word, "..") || strcmp(word, "all") == 0;
    return many && key->type != SC_T_STRING && key->type != SC_T_LIST;
}

sc_status sc_search_option_read_node(const sc_key *key, const sc_node *value,
                                     sc_arena *a, sc_search_option *out,
                                     sc_err *err)
{
    list l = {0, SC_NEW_N(a, int64_t, SEARCH_VALUES),
              SC_NEW_N(a, double, SEARCH_VALUES)};
    bool seq = value->kind == SC_N_SEQ;
    if (!l.value || !l.quantity) return sc_error_nomem(err);
    if (key->type == SC_T_STRING || key->type == SC_T_LIST ||
        key->type == SC_T_NODE)
        return sc_error(err, search_status_at(value->pos), SC_C_OPTION,
                        value->pos, "give it one value",
                        "several values of %s can't be searched", key->name);
    for (const sc_node *w = seq ? value->child : value; w;
         w = seq ? w->next : NULL)
        SC_TRY(add_word(&l, key, w->text, w->pos, a, err));
    if (l.n == 0)
        return sc_error(err, search_status_at(value->pos), SC_C_MISSING,
                        value->pos, "for example 1,2,4 or 1..8",
                        "%s has no values", key->name);
    *out = (sc_search_option){
        .key = key, .axis = {key->name, l.n, l.value}, .quantity = l.quantity};
    return SC_OK;
}

sc_status sc_search_option_read(const sc_key *key, const char *text, sc_pos pos,
                                sc_arena *a, sc_search_option *out, sc_err *err)
{
    sc_node word = sc_search_word(text, pos);
    return sc_search_option_read_node(key, &word, a, out, err);
}
