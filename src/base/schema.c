/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - tables of keys: reading, defaults, printing.
 *
 * A map is read twice: once to find every error and then, if there was none, to
 * write the target.
 */
#include "base/schema.h"

#include "base/assert.h"
#include "base/number.h"
#include "base/util.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct value {
    double number;
    int64_t whole;
    bool truth;
    int index;
} value;

const char *sc_key_renamed(const char *name, size_t len)
{
    static const char *const now[][2] = {{"wide", "keep-bf16"}};
    for (size_t i = 0; i < SC_COUNT(now); i++)
        if (strlen(now[i][0]) == len && memcmp(now[i][0], name, len) == 0)
            return now[i][1];
    return NULL;
}

static int key_index(const sc_key *keys, const char *name)
{
    for (int i = 0; keys[i].name != NULL; i++)
        if (strcmp(keys[i].name, name) == 0) return i;
    const char *now = sc_key_renamed(name, strlen(name));
    return now ? key_index(keys, now) : -1;
}

bool sc_given_has(const sc_given *g, const sc_key *keys, const char *name)
{
    int i = key_index(keys, name);
    return i >= 0 && i < 256 && (g->bits[i / 64] >> (i % 64) & 1) != 0;
}

void sc_given_set(sc_given *g, const sc_key *keys, const char *name)
{
    int i = key_index(keys, name);
    sc_assert(i < 256); /* the set has room for this many rows */
    if (i >= 0 && i < 256) g->bits[i / 64] |= (uint64_t)1 << (i % 64);
}

/* Prints a limit as people write it. */
static void print_limit(const sc_key *key, double v, char *buf, size_t size)
{
    if (key->type == SC_T_QUANTITY)
        sc_unit_print(v, key->unit, buf, size);
    else
        sc_double_print(v, buf, size);
}

static sc_status check_range(const sc_key *key, double v, const char *text,
                             sc_pos pos, sc_err *err)
{
    if (key->min == 0 && key->max == 0) return SC_OK;
    if (v >= key->min && v <= key->max) return SC_OK;
    char lo[64], hi[64], hint[180];
    print_limit(key, key->min, lo, sizeof lo);
    print_limit(key, key->max, hi, sizeof hi);
    bool any_lo = key->min <= -DBL_MAX, any_hi = key->max >= DBL_MAX;
    if (any_lo)
        snprintf(hint, sizeof hint, "%s is at most %s", key->name, hi);
    else if (any_hi)
        snprintf(hint, sizeof hint, "%s is at least %s", key->name, lo);
    else
        snprintf(hint, sizeof hint, "%s is from %s to %s", key->name, lo, hi);
    return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, hint,
                    "%s is out of range: %.60s", key->name, text);
}

/* Plain digits are exact in all 64 bits; "8K" is parsed as a double. */
static sc_status parse_int(const sc_key *key, const char *text, sc_pos pos,
                           int64_t *out, sc_err *err)
{
    const char *digits = text + (*text == '-');
    if (*digits != '\0' && strspn(digits, "0123456789") == strlen(digits)) {
        int64_t v = 0;
        for (const char *p = digits; *p != '\0'; p++) {
            int d = *p - '0';
            if (v > (INT64_MAX - d) / 10)
                return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                                "%s is too large: %.60s", key->name, text);
            v = 10 * v + d;
        }
        *out = *text == '-' ? -v : v;
        return SC_OK;
    }
    double v;
    SC_TRY(sc_unit_parse(text, SC_U_COUNT, pos, &v, err));
    if (fabs(v) > 0x1p53)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "%s is too large: %.60s", key->name, text);
    *out = (int64_t)v;
    return SC_OK;
}

static sc_status parse_bool(const sc_key *key, const char *text, sc_pos pos,
                            bool *out, sc_err *err)
{
    static const char *const words[] = {"false", "true", "no",
                                        "yes",   "off",  "on"};
    for (unsigned i = 0; i < SC_COUNT(words); i++)
        if (strcasecmp(text, words[i]) == 0) {
            *out = i % 2 == 1;
            return SC_OK;
        }
    return sc_error(err, SC_EINPUT, SC_C_TYPE, pos, "write true or false",
                    "%s is neither true nor false: \"%.60s\"", key->name, text);
}

static sc_status parse_enum(const sc_key *key, const char *text, sc_pos pos,
                            int *out, sc_err *err)
{
    for (int i = 0; key->names[i] != NULL; i++)
        if (strcmp(key->names[i], text) == 0) {
            *out = i;
            return SC_OK;
        }
    char hint[240];
    const char *near = sc_nearest(text, key->names);
    size_t at = 0;
    if (near != NULL) {
        snprintf(hint, sizeof hint, "did you mean %s?", near);
    } else {
        at = (size_t)snprintf(hint, sizeof hint, "one of");
        for (int i = 0; key->names[i] != NULL && at < sizeof hint; i++)
            at += (size_t)snprintf(hint + at, sizeof hint - at, "%s %s",
                                   i == 0 ? "" : ",", key->names[i]);
    }
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, pos, hint,
                    "unknown %s \"%.60s\"", key->name, text);
}

/* Checks `text` against the row without writing anything. */
static sc_status parse_value(const sc_key *key, const char *text, sc_pos pos,
                             value *v, sc_err *err)
{
    switch (key->type) {
    case SC_T_QUANTITY:
        SC_TRY(sc_unit_parse(text, key->unit, pos, &v->number, err));
        return check_range(key, v->number, text, pos, err);
    case SC_T_INT:
        SC_TRY(parse_int(key, text, pos, &v->whole, err));
        return check_range(key, (double)v->whole, text, pos, err);
    case SC_T_BOOL:
    case SC_T_TRISTATE: return parse_bool(key, text, pos, &v->truth, err);
    case SC_T_ENUM: return parse_enum(key, text, pos, &v->index, err);
    case SC_T_STRING:
    case SC_T_LIST: return SC_OK;
    case SC_T_NODE: break;
    }
    return sc_error(err, SC_EINPUT, SC_C_TYPE, pos, NULL,
                    "%s can't be written as one word", key->name);
}

static sc_status append(const char ***list, const char *text, sc_arena *a,
                        sc_err *err)
{
    size_t n = 0;
    while (*list != NULL && (*list)[n] != NULL) n++;
    const char **more = SC_NEW_N(a, const char *, n + 2);
    const char *copy = sc_strdup(a, text);
    if (more == NULL || copy == NULL) return sc_error_nomem(err);
    for (size_t i = 0; i < n; i++) more[i] = (*list)[i];
    more[n] = copy;
    *list = more;
    return SC_OK;
}

sc_status sc_schema_set(const sc_key *key, const char *text, sc_pos pos,
                        void *target, sc_arena *a, sc_err *err)
{
    value v = {0, 0, false, 0};
    SC_TRY(parse_value(key, text, pos, &v, err));
    void *field = (char *)target + key->offset;
    const char *copy;
    switch (key->type) {
    case SC_T_QUANTITY: *(double *)field = v.number; break;
    case SC_T_INT: *(int64_t *)field = v.whole; break;
    case SC_T_BOOL: *(bool *)field = v.truth; break;
    case SC_T_TRISTATE: *(int *)field = v.truth; break;
    case SC_T_ENUM: *(int *)field = v.index; break;
    case SC_T_STRING:
        if ((copy = sc_strdup(a, text)) == NULL) return sc_error_nomem(err);
        *(const char **)field = copy;
        break;
    case SC_T_LIST: return append(field, text, a, err);
    case SC_T_NODE: break;
    }
    return SC_OK;
}

sc_status sc_schema_defaults(const sc_key *keys, void *target, sc_arena *a,
                             sc_err *err)
{
    for (const sc_key *k = keys; k->name != NULL; k++)
        if (k->def != NULL)
            SC_TRY(sc_schema_set(k, k->def, sc_pos_file("default value"),
                                 target, a, err));
    return SC_OK;
}

static sc_status unknown_key(const sc_key *keys, const sc_node *c, sc_err *err)
{
    const char *names[257];
    char hint[160];
    size_t n = 0;
    for (; n < 256 && keys[n].name != NULL; n++) names[n] = keys[n].name;
    names[n] = NULL;
    const char *near = sc_nearest(c->key, names);
    snprintf(hint, sizeof hint, "did you mean \"%s\"?", near ? near : "");
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_KEY, c->key_pos,
                    near == NULL ? NULL : hint, "unknown key \"%s\"", c->key);
}

/* JSON can write "8GB" only as a string, but it writes 8 as a number. */
static bool is_quoted_number(const sc_key *key, const sc_node *c)
{
    if (!c->quoted) return false;
    if (sc_key_is_flag(key)) return true;
    bool bare = key->unit == SC_U_NONE || key->unit == SC_U_COUNT;
    if (key->type != SC_T_INT && (key->type != SC_T_QUANTITY || !bare))
        return false;
    size_t len = strlen(c->text);
    return len > 0 && number_span(c->text) == len;
}

static sc_status check_node(const sc_key *key, const sc_node *c, sc_err *err);

static sc_status check_list(const sc_key *key, const sc_node *c, sc_err *err)
{
    sc_key entry = *key;
    sc_status first = SC_OK;
    entry.type = SC_T_STRING;
    for (const sc_node *e = c->child; e != NULL; e = e->next) {
        sc_status s = check_node(&entry, e, err);
        if (first == SC_OK) first = s;
    }
    return first;
}

static sc_status check_node(const sc_key *key, const sc_node *c, sc_err *err)
{
    static const char *const kinds[] = {"nothing", "a value", "a list",
                                        "a mapping"};
    value v = {0, 0, false, 0};
    if (key->type == SC_T_NODE) return SC_OK;
    if (key->type == SC_T_LIST && c->kind == SC_N_SEQ)
        return check_list(key, c, err);
    if (c->kind != SC_N_SCALAR)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, c->pos, NULL,
                        "%s needs a value, this is %s", key->name,
                        kinds[c->kind]);
    if (is_quoted_number(key, c))
        return sc_error(err, SC_EINPUT, SC_C_TYPE, c->pos,
                        "write it without quotes",
                        "%s is a string here: \"%.60s\"", key->name, c->text);
    return parse_value(key, c->text, c->pos, &v, err);
}

static sc_status check_map(const sc_key *keys, const sc_node *map,
                           sc_given *seen, sc_err *err)
{
    sc_status first = SC_OK;
    for (const sc_node *c = map->child; c != NULL; c = c->next) {
        int i = key_index(keys, c->key);
        sc_status s =
            i < 0 ? unknown_key(keys, c, err) : check_node(&keys[i], c, err);
        if (first == SC_OK) first = s;
        if (i >= 0) sc_given_set(seen, keys, c->key);
    }
    for (const sc_key *k = keys; k->name != NULL; k++) {
        if (!k->required || sc_given_has(seen, keys, k->name)) continue;
        sc_status s = sc_error(err, SC_EINPUT, SC_C_MISSING, map->pos, k->help,
                               "missing key \"%s\"", k->name);
        if (first == SC_OK) first = s;
    }
    return first;
}

sc_status sc_schema_set_node(const sc_key *key, const sc_node *c, void *target,
                             sc_arena *a, sc_err *err)
{
    bool list = c->kind == SC_N_SEQ;
    for (const sc_node *e = list ? c->child : c; e; e = list ? e->next : NULL)
        SC_TRY(sc_schema_set(key, e->text, e->pos, target, a, err));
    return SC_OK;
}

sc_status sc_schema_read(const sc_key *keys, const sc_node *node, void *target,
                         sc_given *given, sc_arena *a, sc_err *err)
{
    sc_given seen = {{0, 0, 0, 0}};
    if (node->kind != SC_N_MAP && node->kind != SC_N_NULL)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, node->pos,
                        "write \"key: value\" lines", "not a mapping");
    SC_TRY(check_map(keys, node, &seen, err));
    for (const sc_node *c = node->child; c != NULL; c = c->next) {
        const sc_key *k = &keys[key_index(keys, c->key)];
        if (k->type == SC_T_NODE)
            *(const sc_node **)(void *)((char *)target + k->offset) = c;
        else
            SC_TRY(sc_schema_set_node(k, c, target, a, err));
    }
    if (given != NULL) *given = seen;
    return SC_OK;
}

static size_t size_of(sc_type type)
{
    switch (type) {
    case SC_T_QUANTITY: return sizeof(double);
    case SC_T_INT: return sizeof(int64_t);
    case SC_T_BOOL: return sizeof(bool);
    case SC_T_TRISTATE:
    case SC_T_ENUM: return sizeof(int);
    case SC_T_STRING:
    case SC_T_LIST:
    case SC_T_NODE: break;
    }
    return sizeof(void *);
}

void sc_schema_copy(const sc_key *key, const void *from, void *to)
{
    sc_schema_copy_from(key, from, key->offset, to);
}

void sc_schema_copy_from(const sc_key *key, const void *from, size_t offset,
                         void *to)
{
    memcpy((char *)to + key->offset, (const char *)from + offset,
           size_of(key->type));
}

bool sc_schema_same(const sc_key *key, const void *x, const void *y)
{
    const void *a = (const char *)x + key->offset;
    const void *b = (const char *)y + key->offset;
    if (key->type != SC_T_STRING) return memcmp(a, b, size_of(key->type)) == 0;
    const char *s = *(const char *const *)a, *t = *(const char *const *)b;
    return s && t ? strcmp(s, t) == 0 : s == t;
}

static void print_list(const char *const *word, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = '\0';
    for (size_t i = 0; word && word[i] && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? " " : "",
                               word[i]);
}

void sc_schema_print(const sc_key *key, const void *target, char *buf,
                     size_t size)
{
    const void *field = (const char *)target + key->offset;
    const char *text = "";
    switch (key->type) {
    case SC_T_QUANTITY:
        sc_unit_print(*(const double *)field, key->unit, buf, size);
        return;
    case SC_T_INT:
        snprintf(buf, size, "%" PRId64, *(const int64_t *)field);
        return;
    case SC_T_BOOL: text = *(const bool *)field ? "true" : "false"; break;
    case SC_T_TRISTATE:
        text = *(const int *)field > 0 ? "true" : "false";
        break;
    case SC_T_ENUM: text = key->names[*(const int *)field]; break;
    case SC_T_STRING: text = *(const char *const *)field; break;
    case SC_T_LIST:
        print_list(*(const char *const *const *)field, buf, size);
        return;
    case SC_T_NODE: break; /* more than a word */
    }
    snprintf(buf, size, "%s", text == NULL ? "" : text);
}
