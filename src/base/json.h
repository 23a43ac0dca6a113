/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - streaming JSON writer into a growing buffer.
 *
 *   sc_json_begin(&j, '{'); sc_json_key(&j, "step_time_s");
 *   sc_json_double(&j, 1.5); sc_json_end(&j, '}');
 *
 * Doubles are printed with the fewest digits that read back exactly (same
 * text on every compiler); NaN and infinities become null.  Strings are
 * escaped; invalid UTF-8 becomes U+FFFD.  Misuse (key outside an object) sets
 * `failed`.  The buffer is owned by the writer: sc_json_free().
 */
#ifndef SC_BASE_JSON_H
#define SC_BASE_JSON_H

#include "base/err.h"

/* The text of a number, cached because reports repeat their numbers. */
typedef struct sc_json_number {
    double v;
    uint8_t len; /* 0: of none */
    char text[31];
} sc_json_number;

typedef struct sc_json {
    char *buf; /* terminated */
    size_t len, cap;
    bool failed, pretty; /* pretty: indented by two blanks, for people */
    uint8_t depth;
    bool need_comma, after_key;
    char stack[64];
    sc_json_number number[64]; /* cache by hash of the numbers written last */
} sc_json;

void sc_json_init(sc_json *j, bool pretty);
void sc_json_free(sc_json *j);
void sc_json_begin(sc_json *j, char bracket); /* '{' or '[' */
void sc_json_end(sc_json *j, char bracket);   /* '}' or ']' */
void sc_json_key(sc_json *j, const char *key);
void sc_json_string(sc_json *j, const char *s); /* NULL gives null */
void sc_json_double(sc_json *j, double v);
void sc_json_int(sc_json *j, int64_t v);
void sc_json_uint(sc_json *j, uint64_t v);
void sc_json_bool(sc_json *j, bool v);
void sc_json_null(sc_json *j);

/* A member: key and value. */
void sc_json_put_string(sc_json *j, const char *key, const char *v);
void sc_json_put_double(sc_json *j, const char *key, double v);
void sc_json_put_uint(sc_json *j, const char *key, uint64_t v);
void sc_json_put_strings(sc_json *j, const char *key, const char *const *v,
                         uint32_t n);
#endif
